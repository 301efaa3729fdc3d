#pragma once
// The key of a grouped GEMM's accumulation plan: kind, layout, scaling and type of D, on an architecture ("sm90").

#include <string_view>

#include "device/gemm/grouped_gemm.h"
#include "reference/gemm/plan.h"

namespace assay::device {

// Block scaling always splits the accumulator, and wgrad contracts two operands that are scaled 1x128.
inline PlanKey plan_key_of(const GroupedGemmCall& call, std::string_view architecture) {
  PlanKey key;
  key.architecture = architecture;
  key.kind = call.kind;
  key.layout = call.layout;
  key.split_accumulator = call.split_accumulator || call.kind == GemmKind::fp8_block;
  key.d_type = call.d_type;
  key.row_and_column_scales = call.row_and_column_scales;
  if (call.kind == GemmKind::fp8_block)
    key.weight_block = call.layout == GemmLayout::NT ? WeightBlock::b1x128 : call.weight_block;
  return key;
}

}  // namespace assay::device
