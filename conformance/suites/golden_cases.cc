#include "conformance/suites/golden_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "conformance/report/version.h"
#include "conformance/support/interrupt.h"
#include "golden/io/contained_reader.h"
#include "golden/io/fixture_error.h"
#include "golden/io/memory.h"
#include "golden/io/text_file.h"
#include "reference/support/parallel.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::conformance {

std::vector<CaseLine> read_case_list(const std::filesystem::path& path) {
  std::istringstream file(golden::read_text_file(path));
  std::vector<CaseLine> lines;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.empty() || text[0] == '#') continue;
    try {
      lines.push_back(parse_case_line(text));
    } catch (const InvalidArgument& error) {
      throw golden::FixtureError(path.string(), "line " + std::to_string(number), error.what());
    }
  }
  return lines;
}

std::vector<std::filesystem::path> case_lists(const std::filesystem::path& golden_folder) {
  std::vector<std::filesystem::path> lists;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder / "cases", failed)) {
    if (entry.path().extension() == ".txt") lists.push_back(entry.path());
  }
  std::sort(lists.begin(), lists.end());
  return lists;
}

void require_room(const Case& each) {
  std::int64_t stored = 0;
  for (const auto* side : {&each.in, &each.out}) {
    for (const auto& [name, tensor] : *side) stored += static_cast<std::int64_t>(tensor.bytes.size());
  }
  const std::int64_t by_file = (std::int64_t{64} << 20) + 1024 * std::min(stored, INT64_MAX / 2048);
  const std::int64_t most = std::min({golden::ReadLimits{}.bytes, golden::memory_left() / golden::kShareOfMemory, by_file});
  std::int64_t left = most;
  const Request request = Request::read_only(each);
  for (const OutputSpec& spec : outputs_of(request)) {
    std::int64_t bytes = 0;
    const bool fits = !__builtin_mul_overflow(element_count(spec.shape), stored_bytes(spec.type), &bytes) && bytes <= left;
    require(fits, spec.name, shape_text(spec.shape),
            "outputs of at most " + show(most) + " bytes, for the tensors in the file and the memory of this machine");
    left -= bytes;
  }
}

void fill_outputs(Case& each, const std::vector<std::string>* wanted) {
  each.out.clear();
  for (const OutputSpec& spec : outputs_of(Request::of(each))) {
    if (wanted != nullptr && std::find(wanted->begin(), wanted->end(), spec.name) == wanted->end()) continue;
    each.out.emplace(spec.name, make_tensor(spec.type, spec.shape));
  }
  answer(Request::of(each), Layer::fast);
}

std::int64_t schema_of(const Case& each) {
  static const std::set<std::string> kQuantize{"recipe", "otype", "pow2", "eps", "scale_layout", "dbias", "zero_sign"};
  static const std::set<std::string> kQuantizeIn{"x", "splits", "scale", "amax"};
  static const std::set<std::string> kGemm{"kind", "layout", "alpha",        "beta",    "split_accumulator",
                                           "N",    "K",      "weight_block", "dtype_d", "arch"};
  const auto only = [](const auto& members, const std::set<std::string>& known) {
    return std::all_of(members.begin(), members.end(), [&](const auto& member) { return known.count(member.first) != 0; });
  };
  const auto text = [&](const char* name) {
    const auto found = each.attributes.find(name);
    return found == each.attributes.end() || !std::holds_alternative<std::string>(found->second)
               ? std::string()
               : std::get<std::string>(found->second);
  };
  if (each.op == "splits_to_offsets") return 1;
  if (each.op == "quantize") {
    const bool old = only(each.attributes, kQuantize) && only(each.in, kQuantizeIn) && text("zero_sign") != "positive" &&
                     each.out.count("columnwise_amax") == 0;
    return old ? 1 : 2;
  }
  if (each.op == "grouped_gemm") {
    const std::string kind = text("kind");
    const bool old = only(each.attributes, kGemm) && kind != "mxfp8" && kind != "nvfp4" &&
                     (text("arch") == "sm90" || text("arch").empty()) && each.in.count("alpha") == 0 &&
                     each.in.count("beta") == 0 && each.in.count("bias") == 0;
    return old ? 1 : 2;
  }
  return 2;
}

golden::Fixture make_fixture(const std::filesystem::path& list) {
  const std::vector<CaseLine> lines = read_case_list(list);
  golden::Fixture fixture;
  fixture.cases.resize(lines.size());
  parallel_for(static_cast<std::int64_t>(lines.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end && !interrupted(); ++i) {
      Case& each = fixture.cases[static_cast<std::size_t>(i)];
      each = generate(lines[static_cast<std::size_t>(i)]);
      const std::vector<std::string> wanted = wanted_outputs(lines[static_cast<std::size_t>(i)]);
      fill_outputs(each, &wanted);
    }
  });
  for (const Case& each : fixture.cases) fixture.schema = std::max(fixture.schema, schema_of(each));
  fixture.provenance =
      fmt::format(R"({{"producer": "assay golden build", "source": "cases/{}", "note": "computed by the CPU reference"}})",
                  list.filename().string());
  return fixture;
}

}  // namespace assay::conformance
