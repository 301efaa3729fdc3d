#include "device/cublaslt/product.h"

#include <string>

namespace assay::device::cublaslt {
namespace {

int library_type(Format type) {
  switch (type) {
    case Format::f32: return kF32;
    case Format::bf16: return kBf16;
    case Format::f16: return kF16;
    case Format::e4m3: return kE4m3;
    case Format::e5m2: return kE5m2;
    default: return kE2m1;
  }
}

std::int32_t scale_mode(const GroupedGemmCall& call, const GemmSide& side, CublasLtRoute route) {
  switch (call.kind) {
    case GemmKind::fp8_per_tensor: return kScaleOneAGroup;
    case GemmKind::mxfp8: return kScaleVector32E8m0;
    case GemmKind::nvfp4: return kScaleVector16E4m3;
    default: break;
  }
  const bool tiles = side.weight && call.weight_block == WeightBlock::b128x128 && route == CublasLtRoute::direct;
  return tiles ? kScaleTile128F32 : kScaleVector128F32;
}

}  // namespace

bool fast_accumulation(const GroupedGemmCall& call) {
  return (call.kind == GemmKind::fp8_per_tensor || call.kind == GemmKind::mxfp8) && !call.split_accumulator;
}

void describe(const CublasLtLibrary& library, const Device& device, const GroupedGemmCall& call, const CublasLtSettings& settings,
              CublasLtRoute route, const GroupArrays& arrays, Product& product) {
  const CublasLtLibrary::EntryPoints& entry = library.entry_points();
  const GemmSides sides = gemm_sides(call);
  const auto layout = [&](Owned& owned, Format type, const std::int32_t* rows, const std::int32_t* columns,
                          const std::int32_t* leading) {
    check_library(entry.grouped_layout_create(owned.address(), library_type(type), call.rows.groups, rows, columns, leading),
                  "cublasLtGroupedMatrixLayoutCreate", library, &call);
  };
  layout(product.a, sides.columns.operand->type, arrays.a_rows, arrays.a_columns, arrays.a_leading);
  layout(product.b, sides.rows.operand->type, arrays.b_rows, arrays.b_columns, arrays.b_leading);
  layout(product.c, call.d_type, arrays.d_rows, arrays.d_columns, arrays.d_leading);
  layout(product.d, call.d_type, arrays.d_rows, arrays.d_columns, arrays.d_leading);

  check_library(entry.product_create(product.product.address(), kComputeF32, kF32), "cublasLtMatmulDescCreate", library, &call);
  const auto set = [&](int attribute, auto value) {
    const int status = entry.product_set(product.product.get(), attribute, &value, sizeof value);
    if (status != kSuccess) {
      const std::string what =
          "cublasLtMatmulDescSetAttribute(" + std::to_string(attribute) + ", " + std::to_string(sizeof value) + " bytes)";
      check_library(status, what.c_str(), library, &call);
    }
  };
  set(kTransposeA, sides.columns.k_major ? kTransposed : kPlain);
  set(kTransposeB, sides.rows.k_major ? kPlain : kTransposed);
  set(kPointerMode, settings.host_scalars ? kScalarsOnHost : kScalarsOnDevice);
  if (per_group_scalars(device) && !settings.host_scalars) {
    set(kAlphaStride, std::int64_t{1});
    set(kBetaStride, std::int64_t{1});
  }
  set(kFastAccumulation, static_cast<std::int8_t>(fast_accumulation(call)));
  if (call.kind != GemmKind::bf16 && call.kind != GemmKind::f16) {
    set(kScaleModeA, scale_mode(call, sides.columns, route));
    set(kScaleModeB, scale_mode(call, sides.rows, route));
    set(kScalePointerA, static_cast<const void*>(arrays.a_scale));
    set(kScalePointerB, static_cast<const void*>(arrays.b_scale));
  }
  if (settings.sm_target != 0) set(kSmTarget, static_cast<std::int32_t>(settings.sm_target));
}

}  // namespace assay::device::cublaslt
