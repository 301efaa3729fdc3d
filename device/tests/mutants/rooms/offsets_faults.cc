#include "device/tests/mutants/rooms/offsets_faults.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace assay::mutants {

std::vector<conformance::ContentFault> offsets_faults(const conformance::CaseLine& line, const Case& right) {
  std::vector<conformance::ContentFault> made;
  const std::string name = line.op == "splits_to_offsets_2d" ? "first" : "splits";
  if (line.op.rfind("splits_to_offsets", 0) != 0 || conformance::fault_word(line).empty()) return made;
  const Tensor& values = right.in.at(name);
  if (values.type != Format::i64) return made;
  const auto plant = [&](const std::string& what, const std::function<std::int64_t(std::int64_t)>& value) {
    conformance::ContentFault& each = made.emplace_back();
    each.what = name + ": " + what;
    each.problem = right;
    auto* const to = each.problem.in.at(name).as<std::int64_t>();
    for (std::int64_t i = 0; i < values.elements(); ++i) to[i] = value(i);
  };
  constexpr std::int64_t k32Bits = std::int64_t{1} << 32;
  plant("all -2^32", [](std::int64_t) { return -k32Bits; });
  // In 32 bits the sum is just not past the largest value.
  plant("all (2^32 - 1) / n", [&](std::int64_t) { return (k32Bits - 1) / values.elements(); });
  // The sums of threads 29, 30 and 31, which have four values each, wrap around to a valid one.
  plant("2^63 - 1 at 116, 120 and 124, the others 0",
        [](std::int64_t i) { return i == 116 || i == 120 || i == 124 ? std::numeric_limits<std::int64_t>::max() : 0; });
  return made;
}

}  // namespace assay::mutants
