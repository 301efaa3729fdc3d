// Writes the standard profile as a C++ source that defines lines_of_the_build(): write_lines OUTPUT. Part of the build.

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "conformance/cases/case_line.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/catalogue/lines_of_the_build.h"

namespace assay::conformance {

std::string_view lines_of_the_build() { return {}; }

namespace {

std::string source() {
  std::string text =
      "// Made by conformance/catalogue/build_lines.\n"
      "#include \"conformance/catalogue/lines_of_the_build.h\"\n\n"
      "std::string_view assay::conformance::lines_of_the_build() {\n  return\n";
  for (const CaseLine& line : computed_catalogue(Profile::standard)) {
    text += "      \"";
    for (const char letter : to_text(line)) {
      if (letter == '"' || letter == '\\') text += '\\';
      text += letter;
    }
    text += "\\n\"\n";
  }
  return text + "      ;\n}\n";
}

}  // namespace
}  // namespace assay::conformance

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "write_lines: expected the name of the source to write\n");
    return 2;
  }
  try {
    std::ofstream file(arguments[1], std::ios::binary);
    file << assay::conformance::source();
    if (file.flush()) return 0;
    std::fprintf(stderr, "write_lines: %s cannot be written\n", arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_lines: %s\n", error.what());
  }
  return 1;
}
