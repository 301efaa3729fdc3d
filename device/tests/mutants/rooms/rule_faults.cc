#include "device/tests/mutants/rooms/rule_faults.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace assay::mutants {
namespace {

using conformance::ContentFault;

// A row, or two, of each group that has them are another group's.
void add_moved_rows(const Case& right, std::vector<ContentFault>& made) {
  const Tensor& splits = right.in.at("splits");
  const std::int64_t groups = splits.elements();
  for (std::int64_t t = 0; groups > 1 && t < groups; ++t) {
    for (const std::int64_t rows : {1, 2}) {
      if (splits.as<std::int64_t>()[t] < rows) continue;
      ContentFault& each = made.emplace_back();
      each.what = "rows moved from splits[" + std::to_string(t) + "]: " + std::to_string(rows);
      each.problem = right;
      auto* const values = each.problem.in.at("splits").as<std::int64_t>();
      values[t] -= rows;
      values[(t + 1) % groups] += rows;
    }
  }
}

void add_all_rows(const Case& right, std::vector<ContentFault>& made) {
  ContentFault& each = made.emplace_back();
  each.what = "all rows in each of splits";
  each.problem = right;
  Tensor& splits = each.problem.in.at("splits");
  std::fill_n(splits.as<std::int64_t>(), splits.elements(), right.in.at("x").shape.at(0));
}

}  // namespace

std::vector<ContentFault> rule_faults(const conformance::CaseLine& line, const Case& right) {
  std::vector<ContentFault> made;
  if (line.op != "quantize_by_rule" || conformance::fault_word(line).empty()) return made;
  if (right.in.at("splits").type != Format::i64) return made;
  if (line.integer("transposed") != 0) add_moved_rows(right, made);
  add_all_rows(right, made);
  return made;
}

}  // namespace assay::mutants
