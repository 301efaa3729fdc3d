#include "conformance/diagnose/product_hints.h"

#include <exception>

#include "conformance/ops/grouped_gemm.h"

namespace assay::conformance {
namespace {

// The whole scale array of an operand in the storage that it is given in; empty where it has none in f32.
std::span<const float> scales_of(const Request& request, const std::string& operand) {
  for (const char* storage : {"_rowwise_scale_inv", "_columnwise_scale_inv"}) {
    const auto found = request.in.find(operand + storage);
    if (found == request.in.end() || found->second.type != Format::f32) continue;
    return {static_cast<const float*>(found->second.data), static_cast<std::size_t>(found->second.elements())};
  }
  return {};
}

}  // namespace

ScaleFindings scale_findings(const Request& request, const Tensor& got, const Tensor& want) {
  try {
    ParsedGroupedGemm parsed;
    parse_grouped_gemm(request, parsed);
    const GroupedGemmProblem& problem = parsed.problem;
    if (problem.kind != GemmKind::fp8_per_tensor && problem.kind != GemmKind::fp8_block) return {};
    if (bits_of(problem.d_type) < 16) return {};  // codes, in which a scale leaves too little
    const GroupedGemmView view = view_of(problem, got.bytes.data());
    std::vector<std::int64_t> numbers;  // groups without an element of D are left out of the view
    for (std::size_t g = 0; g < parsed.splits.size(); ++g) {
      if (problem.layout == GemmLayout::NT || parsed.splits[g] > 0) numbers.push_back(static_cast<std::int64_t>(g));
    }
    if (numbers.size() != view.groups.size()) return {};
    const ScaleArrays scales{scales_of(request, problem.layout == GemmLayout::TN ? "x" : "dy"),
                             scales_of(request, problem.layout == GemmLayout::NT ? "x" : "w")};
    if (scales.rows.empty() || scales.columns.empty()) return {};
    return find_wrong_scales(view, numbers, scales, problem.layout, Elements(got), Elements(want));
  } catch (const std::exception&) {
    return {};  // the failure is then reported without a hint
  }
}

}  // namespace assay::conformance
