#include "device/gemm/grouped_gemm.h"

#include <string>

#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_columns.h"
#include "device/support/call_checks.h"

namespace assay::device {
namespace {

std::int64_t product(std::int64_t a, std::int64_t b, const std::string& name) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw InvalidArgument(name + " is " + std::to_string(a) + ": expected a size whose product with " + std::to_string(b) +
                          " fits in 64 bits");
  }
  return result;
}

void require_known_enums(const GroupedGemmCall& call) {
  require(call.kind <= GemmKind::nvfp4, "kind", static_cast<std::int64_t>(call.kind), "a GemmKind (0 to 5)");
  require(call.layout <= GemmLayout::NT, "layout", static_cast<std::int64_t>(call.layout), "a GemmLayout (0 to 2)");
  require(call.weight_block <= WeightBlock::b128x128, "weight_block", static_cast<std::int64_t>(call.weight_block),
          "a WeightBlock (0 or 1)");
  require(call.scale_layout <= ScaleLayout::swizzled, "scale_layout", static_cast<std::int64_t>(call.scale_layout),
          "a ScaleLayout (0 or 1)");
  require(is_wide(call.d_type) || is_fp8(call.d_type), "d_type", static_cast<std::int64_t>(call.d_type),
          "f32, bf16, f16, e4m3 or e5m2");
}

// spec grouped-gemm-2.7
void check_d_scale(const GroupedGemmCall& call, std::int64_t d_elements) {
  if (!is_fp8(call.d_type)) return require(call.d_scale == nullptr, "d_scale", "given", "null, but for a D in FP8");
  if (d_elements != 0) require_pointer(call.d_scale, "d_scale", alignof(float));
  require(call.bias == nullptr, "bias", "given", "null with a D in FP8");
}

// spec grouped-gemm-1.5
bool is_fp4_weight(const GroupedGemmCall& call, Format type, bool weight) {
  return weight && type == Format::e2m1 && call.kind == GemmKind::mxfp8 && call.layout == GemmLayout::TN;
}

void require_type(GemmKind kind, Format type, const std::string& name) {
  const auto code = static_cast<std::int64_t>(type);
  switch (kind) {
    case GemmKind::bf16: return require(type == Format::bf16, name, code, "bf16 for kind bf16");
    case GemmKind::f16: return require(type == Format::f16, name, code, "f16 for kind f16");
    case GemmKind::nvfp4: return require(type == Format::e2m1, name, code, "e2m1 for kind nvfp4");
    default: return require(type == Format::e4m3 || type == Format::e5m2, name, code, "e4m3 or e5m2 for an FP8 kind");
  }
}

// spec grouped-gemm-1.2: which storage a contraction along the rows of the matrix, or along its columns, reads.
void require_storage(const GroupedGemmCall& call, const GemmOperand& operand, bool along_rows, const std::string& name) {
  const bool either = call.kind == GemmKind::bf16 || call.kind == GemmKind::f16 || call.kind == GemmKind::fp8_per_tensor;
  if (either) return;
  require(operand.columnwise == along_rows, name + ".columnwise", static_cast<std::int64_t>(operand.columnwise),
          std::string(along_rows ? "columnwise" : "rowwise") + " storage, which kind " + kind_name(call.kind) +
              " reads in layout " + layout_name(call.layout));
}

void require_list(const void* const* list, int groups, std::uintptr_t alignment, const std::string& name) {
  for (int t = 0; t < groups; ++t) require_pointer(list[t], name + "[" + std::to_string(t) + "]", alignment);
}

// x, w or dy: a matrix of `rows` rows (all groups) and `columns` columns.
void check_operand(const GroupedGemmCall& call, const GemmOperand& operand, const std::string& name, bool weight, bool along_rows,
                   std::int64_t rows, std::int64_t columns) {
  if (!is_fp4_weight(call, operand.type, weight)) require_type(call.kind, operand.type, name + ".type");
  require_storage(call, operand, along_rows, name);
  const std::int64_t elements = product(rows, columns, name + " rows");
  product(elements, 4, name + " elements");  // bytes, of elements and of scales
  const bool scaled = call.kind != GemmKind::bf16 && call.kind != GemmKind::f16;
  const std::uintptr_t scale_alignment = call.kind == GemmKind::mxfp8 || call.kind == GemmKind::nvfp4 ? 1 : alignof(float);

  if (operand.type == Format::e2m1) {
    const std::int64_t packed = !along_rows ? columns : weight ? call.N : 0;  // rows of x and dy: known on the device only
    require(elements == 0 || packed % 2 == 0, (along_rows ? "rows of " : "columns of ") + name, packed,
            call.kind == GemmKind::nvfp4 ? "an even number for nvfp4" : "an even number for e2m1");
  }
  if (call.kind == GemmKind::nvfp4 && elements != 0) require_pointer(operand.amax, name + ".amax", alignof(float));
  if (operand.data_list == nullptr) {
    require(operand.scale_inv_list == nullptr, name + ".scale_inv_list", "given", "null without data_list");
    if (elements != 0) require_pointer(operand.data, name + ".data", 16);
    if (elements != 0 && scaled) require_pointer(operand.scale_inv, name + ".scale_inv", scale_alignment);
    return;
  }
  require(weight, name + ".data_list", "given", "null, but for w");
  require(operand.data == nullptr, name + ".data", "given", "null with data_list");
  require(operand.scale_inv == nullptr, name + ".scale_inv", "given", "null with data_list (scale_inv_list takes its place)");
  if (elements != 0) require_list(operand.data_list, call.rows.groups, 16, name + ".data_list");
  if (!scaled || elements == 0) return;
  require(operand.scale_inv_list != nullptr, name + ".scale_inv_list", "null", "a pointer for each group, as data_list has them");
  require_list(operand.scale_inv_list, call.rows.groups, scale_alignment, name + ".scale_inv_list");
}

void check_index(const GroupedGemmCall& call) {
  const GroupPlaces& places = call.places;
  const std::string what = places.layout == GroupedLayout::psum ? "psum" : "m_indices";
  require(call.rows.splits == nullptr, "rows.splits", "given", "null with " + what);
  require(call.rows.groups >= 0, "rows.groups", call.rows.groups, "a value of at least 0");
  require(call.rows.groups <= kMaxGroups, "rows.groups", call.rows.groups, "at most " + std::to_string(kMaxGroups));
  require(places.alignment >= 1, "places.alignment", places.alignment, "a value of at least 1");
  require(places.alignment <= kMaxRows, "places.alignment", places.alignment, "at most " + std::to_string(kMaxRows));
  require(places.max_m == 0, "places.max_m", places.max_m, "0, but for masked");
  const std::int64_t entries = places.layout == GroupedLayout::psum ? call.rows.groups : call.rows.capacity;
  if (entries > 0) require_pointer(places.index, "places.index", alignof(std::int32_t));
  const bool swizzled =
      call.scale_layout == ScaleLayout::swizzled && (call.kind == GemmKind::mxfp8 || call.kind == GemmKind::nvfp4);
  const GemmOperand& rows = call.layout == GemmLayout::TN ? call.x : call.dy;
  if (swizzled && call.layout != GemmLayout::NT && call.rows.capacity > 0)  // read 16 bytes at a time
    require(is_aligned(rows.scale_inv, 16), call.layout == GemmLayout::TN ? "x.scale_inv" : "dy.scale_inv", "misaligned",
            "a multiple of 16 bytes with " + what);
}

// `rows` and `places`, which say where groups lie.
void check_places(const GroupedGemmCall& call) {
  const GroupPlaces& places = call.places;
  require(places.layout <= GroupedLayout::masked, "places.layout", static_cast<std::int64_t>(places.layout),
          "a GroupedLayout (0 to 3)");
  if (places.layout == GroupedLayout::splits || places.layout == GroupedLayout::masked) {
    check_rows(call.rows);
    require(places.index == nullptr, "places.index", "given", "null, but for m_indices and psum");
    require(places.alignment == 1, "places.alignment", places.alignment, "1, but for m_indices and psum");
  } else {
    Rows one_matrix = call.rows;
    one_matrix.splits = nullptr, one_matrix.groups = 1;
    check_rows(one_matrix);
    check_index(call);
  }
  if (places.layout == GroupedLayout::splits)
    return require(places.max_m == 0, "places.max_m", places.max_m, "0, but for masked");
  if (places.layout == GroupedLayout::masked) {
    require(call.rows.splits != nullptr, "rows.splits", "null", "the rows of each group for masked");
    require(places.max_m >= 0, "places.max_m", places.max_m, "a value of at least 0");
    const std::int64_t rows = product(places.max_m, call.rows.groups, "places.max_m");
    require(rows == call.rows.capacity, "rows.capacity", call.rows.capacity, "groups * max_m, " + std::to_string(rows));
  }
  if (call.layout == GemmLayout::NT)
    require(places.layout == GroupedLayout::psum, "places.layout", static_cast<std::int64_t>(places.layout),
            "psum (2) in layout NT");
  if (call.kind == GemmKind::mxfp8) return;  // its columnwise storage is not transposed
  if (call.layout != GemmLayout::NN)
    require(!call.x.columnwise, "x.columnwise", "1", "rowwise storage, whose rows `places` divides");
  if (call.layout != GemmLayout::TN)
    require(!call.dy.columnwise, "dy.columnwise", "1", "rowwise storage, whose rows `places` divides");
}

}  // namespace

void check_grouped_gemm(const GroupedGemmCall& call) {
  require_known_enums(call);
  require(!call.row_and_column_scales || call.kind == GemmKind::fp8_per_tensor, "row_and_column_scales", "1",
          "0, but for kind fp8_per_tensor");
  check_places(call);
  require(call.rows_multiple >= 1, "rows_multiple", call.rows_multiple, "a value of at least 1");
  require(call.rows_multiple <= kMaxRows, "rows_multiple", call.rows_multiple, "at most " + std::to_string(kMaxRows));
  check_column_alignment(call.column_alignment, call.kind == GemmKind::fp8_block && call.layout == GemmLayout::NT,
                         "kind fp8_block in layout NT");
  require(call.N >= 0, "N", call.N, "a value of at least 0");
  require(call.K >= 0, "K", call.K, "a value of at least 0");
  require(call.N <= kMaxRows, "N", call.N, "at most " + std::to_string(kMaxRows));
  require(call.K <= kMaxRows, "K", call.K, "at most " + std::to_string(kMaxRows));
  const std::int64_t groups = call.rows.groups, all_n = product(groups, call.N, "N");

  switch (call.layout) {
    case GemmLayout::TN:
      check_operand(call, call.x, "x", false, false, call.rows.capacity, call.K);
      check_operand(call, call.w, "w", true, false, all_n, call.K);
      break;
    case GemmLayout::NN:
      check_operand(call, call.dy, "dy", false, false, call.rows.capacity, call.N);
      check_operand(call, call.w, "w", true, true, all_n, call.K);
      break;
    case GemmLayout::NT:
      check_operand(call, call.dy, "dy", false, true, call.rows.capacity, call.N);
      check_operand(call, call.x, "x", false, true, call.rows.capacity, call.K);
      break;
  }

  const bool wgrad = call.layout == GemmLayout::NT;
  const std::int64_t d_rows = wgrad ? all_n : call.rows.capacity, d_columns = call.layout == GemmLayout::TN ? call.N : call.K;
  const std::int64_t d_elements = product(d_rows, d_columns, "rows of D");
  product(d_elements, 4, "elements of D");
  const auto unit = static_cast<std::uintptr_t>(type_bits(call.d_type) / 8);
  check_d_scale(call, d_elements);
  if (call.d_list == nullptr) {
    if (d_elements != 0) require_pointer(call.d, "d", unit);
  } else {
    require(wgrad, "d_list", "given", "null, but for layout NT");
    require(call.d == nullptr, "d", "given", "null with d_list");
    require(call.c == nullptr, "c", "given", "null with d_list (D is C)");
    if (d_elements != 0) require_list(call.d_list, call.rows.groups, unit, "d_list");
  }
  if (call.c != nullptr) require_pointer(call.c, "c", unit);
  if (call.alpha != nullptr) require_pointer(call.alpha, "alpha", alignof(float));
  if (call.beta != nullptr) require_pointer(call.beta, "beta", alignof(float));
  if (call.bias != nullptr) {
    require(call.layout == GemmLayout::TN, "bias", "given", "null, but for layout TN");
    require_pointer(call.bias, "bias", unit);
  }
  require(call.workspace_bytes >= 0, "workspace_bytes", call.workspace_bytes, "a value of at least 0");
  if (call.workspace != nullptr) require_pointer(call.workspace, "workspace", 256);
  if (call.status != nullptr) require_pointer(call.status, "status", alignof(std::uint32_t));
}

}  // namespace assay::device
