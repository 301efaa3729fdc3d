#include "device/cublaslt/gemm_checks.h"

#include <string>

#include "device/cublaslt/group_setup.h"
#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_rows.h"

namespace assay::device {
namespace {

void require_row_bytes(std::int64_t elements, Format type, const std::string& name, const std::string& what) {
  if (elements * type_bits(type) % 128 == 0) return;
  throw NotSupported(name + " is " + std::to_string(elements) + ": cuBLASLt's grouped kernels need rows of " + what + " (" +
                     format_name(type) + ") that are a multiple of 16 bytes");
}

// Arrays of scales, by blocks, are read 16 bytes at a time. One scale per tensor is copied by the set-up.
void require_aligned_scales(const GroupedGemmCall& call, const GemmSide& side) {
  if (call.kind != GemmKind::fp8_block && call.kind != GemmKind::mxfp8 && call.kind != GemmKind::nvfp4) return;
  const std::string name = std::string(side.name) + ".scale_inv";
  if (side.operand->scale_inv != nullptr) require_pointer(side.operand->scale_inv, name, 16);
  if (side.operand->scale_inv_list == nullptr) return;
  for (int t = 0; t < call.rows.groups; ++t)
    require_pointer(side.operand->scale_inv_list[t], name + "_list[" + std::to_string(t) + "]", 16);
}

}  // namespace

void require_aligned_operands(const GroupedGemmCall& call) {
  const GemmSides sides = gemm_sides(call);
  for (const GemmSide* side : {&sides.rows, &sides.columns}) {
    if (pitch_is_of_group(*side)) {
      if (call.layout != GemmLayout::NT) {
        throw NotSupported(std::string(side->name) + ".columnwise is 1: cuBLASLt is given rowwise storage in layout " +
                           layout_name(call.layout) + ", whose pitch does not depend on the group");
      }
      // The groups of a transposed operand begin at multiples of a row of the matrix.
      require_row_bytes(side->columns, side->operand->type, side->columns == call.N ? "N" : "K", side->name);
    } else {
      const bool transposed = side->k_major == side->along_rows;
      const std::int64_t pitch = transposed ? call.N : side->columns;
      require_row_bytes(pitch, side->operand->type, pitch == call.N ? "N" : "K", side->name);
    }
    require_aligned_scales(call, *side);
  }
}

void require_aligned_output(const GroupedGemmCall& call) {
  const std::int64_t d_columns = call.layout == GemmLayout::TN ? call.N : call.K;
  require_row_bytes(d_columns, call.d_type, call.layout == GemmLayout::TN ? "N" : "K", "D");
  if (call.d_list != nullptr) {
    for (int t = 0; t < call.rows.groups; ++t) require_pointer(call.d_list[t], "d_list[" + std::to_string(t) + "]", 16);
  } else {
    require_pointer(call.d, "d", 16);
  }
  if (call.c != nullptr) require_pointer(call.c, "c", 16);
}

namespace cublaslt {

bool has_products(const GroupedGemmCall& call) {
  return call.rows.groups > 0 && call.rows.capacity > 0 && call.N > 0 && call.K > 0;
}

void check_settings(const GroupedGemmCall& call, const CublasLtSettings& settings) {
  require(settings.workspace_bytes >= 0, "workspace_bytes of the settings", settings.workspace_bytes, "a value of at least 0");
  require(settings.multiprocessors >= 0, "multiprocessors of the settings", settings.multiprocessors, "a value of at least 0");
  require(settings.sm_target >= 0, "sm_target", settings.sm_target, "a value of at least 0");
  require(settings.average_rows >= -1, "average_rows", settings.average_rows, "a value of at least -1");
  require(settings.average_columns >= -1, "average_columns", settings.average_columns, "a value of at least -1");
  require(settings.average_depth >= -1, "average_depth", settings.average_depth, "a value of at least -1");
  if (settings.library_workspace != nullptr) require_pointer(settings.library_workspace, "library_workspace", 256);
  if (settings.group_arrays != nullptr) require_pointer(settings.group_arrays, "group_arrays", 256);
  if (settings.host_scalars) {
    require(settings.bare, "host_scalars", "1", "0, but for the bare library");
    require(call.alpha == nullptr && call.beta == nullptr, "host_scalars", "1", "0 with alpha or beta on the device");
  }
  if (settings.route == CublasLtRoute::expanded_scales) {
    const bool tiles =
        call.kind == GemmKind::fp8_block && call.layout != GemmLayout::NT && call.weight_block == WeightBlock::b128x128;
    require(tiles, "route", "expanded_scales", "direct, but for 128x128 scales of w");
  }
}

void check_call(const GroupedGemmCall& call, const CublasLtSettings& settings, const CublasLtLibrary& library,
                const Device& device) {
  check_grouped_gemm(call);
  check_settings(call, settings);
  const std::string missing = library.missing(call, device.architecture);
  if (!missing.empty()) throw NotSupported(missing);
  const GemmSides sides = gemm_sides(call);
  if (call.kind == GemmKind::fp8_per_tensor && device.architecture < 100) {
    for (const GemmSide* side : {&sides.rows, &sides.columns}) {
      require(side->k_major, std::string(side->name) + ".columnwise", side->operand->columnwise,
              std::string(side->along_rows ? "columnwise" : "rowwise") + " storage, which FP8 reads in layout " +
                  layout_name(call.layout) + " below SM100");
    }
  }
  if (settings.bare || !has_products(call)) return;
  require_aligned_operands(call);
  require_aligned_output(call);
}

}  // namespace cublaslt
}  // namespace assay::device
