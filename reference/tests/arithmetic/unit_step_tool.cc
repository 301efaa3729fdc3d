// Takes steps of units, for tests in other languages. A line of standard input, numbers in hexadecimal:
//
//   UNIT A_TYPE B_TYPE C COUNT a ... b ... SCALES scale_a ... scale_b ...
//
// answers with a line: the new accumulator. COUNT elements of a and of b, SCALES scale codes of each.
// unit_step_tool --units: every unit as a row of the table, one per line.

#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "reference/arithmetic/unit_table.h"
#include "reference/types/error.h"

namespace {

using namespace assay;

std::uint32_t step_of(const std::string& line) {
  std::istringstream words(line);
  std::string name, a_type, b_type;
  std::uint32_t c = 0, count = 0, scales = 0;
  words >> name >> a_type >> b_type >> std::hex >> c >> count;
  const TensorCoreUnit* unit = find_tensor_core_unit(name);
  require(unit != nullptr, "unit", name, "a row of the table");
  require(count <= 64, "COUNT", count, "at most 64");
  const auto read = [&](std::uint32_t number) {
    std::vector<std::uint32_t> codes(number);
    for (std::uint32_t& code : codes) words >> code;
    return codes;
  };
  const std::vector<std::uint32_t> a = read(count), b = read(count);
  words >> scales;
  require(scales <= 64, "SCALES", scales, "at most 64");
  const std::vector<std::uint32_t> wide_a = read(scales), wide_b = read(scales);
  require(!words.fail(), "line", line, "UNIT A_TYPE B_TYPE C COUNT a ... b ... SCALES scale_a ... scale_b ...");
  const std::vector<std::uint8_t> scale_a(wide_a.begin(), wide_a.end()), scale_b(wide_b.begin(), wide_b.end());
  const auto type_of = [](const std::string& word) {
    const std::optional<Format> type = format_named(word == "tf32" ? "f32" : word);
    require(type.has_value(), "type", word, "a format");
    return *type;
  };
  return tensor_core_step(*unit, type_of(a_type), a, type_of(b_type), b, c, scale_a, scale_b);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--units") {
    for (const TensorCoreUnit& unit : tensor_core_units()) std::printf("%s\n", to_text(unit).c_str());
    return 0;
  }
  try {
    for (std::string line; std::getline(std::cin, line);) std::printf("%x\n", step_of(line));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unit_step_tool: %s\n", error.what());
    return 1;
  }
  return 0;
}
