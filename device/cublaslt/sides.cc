#include "device/cublaslt/group_setup.h"

namespace assay::device {

GemmSides gemm_sides(const GroupedGemmCall& call) {
  const auto side = [&](const GemmOperand& operand, const char* name, std::int64_t columns, bool along_rows) {
    GemmSide result;
    result.operand = &operand;
    result.name = name;
    result.weight = *name == 'w';
    result.along_rows = along_rows;
    const bool transposed = operand.columnwise && call.kind != GemmKind::mxfp8;
    result.k_major = transposed == along_rows;
    result.columns = columns;
    const std::int64_t rows = result.weight ? call.N : GemmSide::kOfGroup;
    result.extent = along_rows ? columns : rows;
    result.depth = along_rows ? rows : columns;
    return result;
  };
  switch (call.layout) {
    case GemmLayout::TN: return {side(call.x, "x", call.K, false), side(call.w, "w", call.K, false)};
    case GemmLayout::NN: return {side(call.dy, "dy", call.N, false), side(call.w, "w", call.K, true)};
    default: return {side(call.dy, "dy", call.N, true), side(call.x, "x", call.K, true)};
  }
}

}  // namespace assay::device
