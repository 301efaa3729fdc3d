#pragma once
// One op: how its requests become calls of the reference. Each NAME.cc in this folder holds the ops of one subject.

#include <string_view>
#include <vector>

#include "conformance/ops/answer.h"
#include "reference/linear/grouped_linear.h"

namespace assay::conformance {

struct Op {
  std::string_view name;
  std::vector<OutputSpec> (*outputs)(const Request&);
  void (*answer)(const Request&, Layer);
  // The op leaves rows of every output beyond the sum of the splits as they are, and writes all others: set for ops whose
  // answers are expensive, so that `written_bytes` need not compute one.
  bool only_tail_rows_untouched = false;
  Numerics (*numerics)(const Request&) = nullptr;  // null: nothing to state
  // For an op with a product: the output that its accumulation plan decides, and how far that may be from exact (answer.h).
  std::string_view product = {};
  std::vector<CertifiedBound> (*bounds)(const Request&, const std::string& unit) = nullptr;
  // Passes the product, with its plan, to the function in place of computing it.
  void (*visit)(const Request&, const Multiply&) = nullptr;
};

extern const Op kQuantize, kQuantizeByRule, kDequantize, kSwizzle, kUnswizzle;
extern const Op kSplitsToOffsets, kSplitsToOffsetsMulti, kSplitsToOffsets2d;
extern const Op kDelayedUpdate, kGroupedDbias;
extern const Op kPermute, kUnpermute;
extern const Op kGroupedGemm;
extern const Op kLinearForward, kLinearDgrad, kLinearWgrad;

}  // namespace assay::conformance
