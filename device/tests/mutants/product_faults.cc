#include "device/tests/mutants/product_faults.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "device/tests/emulated_gemm/give_betas.h"
#include "reference/gemm/plan.h"

namespace assay::mutants {
namespace {

using conformance::ContentFault;

// Each group in turn has another beta than the one that D takes, and a call of all the right ones.
void add_betas(const Case& right, std::size_t groups, float taken, std::vector<ContentFault>& made) {
  for (std::size_t t = 0; t <= groups; ++t) {
    std::vector<float> betas(groups, taken);
    if (t < groups) betas[t] = t % 2 == 0 ? 0.5f : -taken - 1.0f;
    ContentFault& each = made.emplace_back();
    each.what = t < groups ? "beta[" + std::to_string(t) + "] = " + std::to_string(betas[t]) : "a beta of each group";
    each.problem = right;
    conformance::give_betas(each.problem, betas);
  }
}

// One group has `rows` rows, and the others none.
void add_depth(const Case& right, std::int64_t rows, std::vector<ContentFault>& made) {
  const Tensor& splits = right.in.at("splits");
  for (std::int64_t t = 0; t < splits.elements(); ++t) {
    ContentFault& each = made.emplace_back();
    each.what = "splits[" + std::to_string(t) + "] = " + std::to_string(rows) + ", the others 0";
    each.problem = right;
    auto* const values = each.problem.in.at("splits").as<std::int64_t>();
    std::fill_n(values, splits.elements(), 0);
    values[t] = rows;
  }
}

}  // namespace

std::vector<ContentFault> product_faults(const conformance::CaseLine& line, const Case& right) {
  std::vector<ContentFault> made;
  if (line.op != "grouped_gemm" || conformance::fault_word(line).empty()) return made;
  const AccumulationPlan* const plan = line.has("plan") ? find_accumulation_plan(line.text("plan")) : nullptr;
  const bool adds = plan != nullptr && plan->epilogue != GemmEpilogue::scaled_alpha_beta;
  const std::string d_type = line.text("d_type");
  if (adds || d_type == "e4m3" || d_type == "e5m2") add_betas(right, line.splits().size(), adds ? 1 : 0, made);
  const bool sliced = plan != nullptr && plan->slices > 1, paired = line.text("kind") == "nvfp4";
  const auto splits = right.in.find("splits");
  if (line.text("layout") == "NT" && (sliced || paired) && splits != right.in.end() && splits->second.type == Format::i64) {
    std::int64_t rows = 0;
    for (const std::int64_t each : line.splits()) rows += each;
    add_depth(right, rows, made);
    add_depth(right, 1, made);
  }
  return made;
}

}  // namespace assay::mutants
