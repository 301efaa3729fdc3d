#include "device/cublaslt/group_arguments.h"

#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/scale_layout.cuh"

namespace assay::device::group_setup {
namespace {

GroupRows group_rows(const GroupedGemmCall& call, const GroupSetupOptions& options) {
  GroupRows rows{};
  rows.rows = call.rows;
  rows.set_row_unit(static_cast<std::uint32_t>(options.row_unit));
  rows.odd_rows_refused = call.kind == GemmKind::nvfp4 && call.layout == GemmLayout::NT;
  rows.status = call.status;
  return rows;
}

// Expanded scales of a group.
std::int64_t expanded_bytes(const GemmSide& w) { return 4 * ceil_div(w.depth, 128) * round_up(w.extent, 4); }

// The scales of an operand.
struct Scales {
  const char* data = nullptr;  // null: none
  bool by_group = true;
  std::int64_t bytes = 0;  // of a group, or of what is measured
  ScaleMeasure measure;
};

Scales scales_of(const GroupedGemmCall& call, const GemmSide& from) {
  const bool columnwise = from.operand->columnwise;
  const std::int64_t rows = call.N;  // of w
  Scales scales;
  if (call.kind == GemmKind::bf16 || call.kind == GemmKind::f16) return scales;
  scales.data = static_cast<const char*>(from.operand->scale_inv);
  const auto set = [&](ScaleMeasure measure, std::int64_t unit_bytes) {
    const std::int64_t units_of_weight = round_up(ceil_div(rows, std::int64_t{1} << measure.block_bits), measure.unit);
    scales.by_group = from.weight;
    scales.bytes = from.weight ? unit_bytes * units_of_weight : unit_bytes;
    scales.measure = measure;
  };
  const std::int64_t columns = from.columns;
  switch (call.kind) {
    case GemmKind::fp8_per_tensor: scales.bytes = 4; break;
    case GemmKind::fp8_block:
      if (from.weight && call.weight_block == WeightBlock::b128x128) {
        scales.bytes = columnwise ? 4 * ceil_div(columns, 128) * round_up(ceil_div(rows, 128), 4)
                                  : 4 * round_up(ceil_div(columns, 128), 4) * ceil_div(rows, 128);
      } else if (columnwise) {
        set({7, 1}, 4 * round_up(columns, 4));
      } else {
        set({0, 4}, 4 * ceil_div(columns, 128));
      }
      break;
    case GemmKind::mxfp8:
      columnwise ? set({5, 4}, round_up(columns, 128)) : set({0, 128}, round_up(ceil_div(columns, 32), 4));
      break;
    default: columnwise ? set({4, 4}, round_up(columns, 128)) : set({0, 128}, round_up(ceil_div(columns, 16), 4)); break;
  }
  return scales;
}

void set_dimension(GroupMatrix& matrix, Dimension dimension, std::int64_t size) {
  if (size == GemmSide::kOfGroup) {
    matrix.of_rows |= 1u << dimension;
  } else {
    matrix.number[dimension] = static_cast<std::int32_t>(size);
  }
}

// A or B. Its extent is passed to the library as it is, or as 0 in groups without products (`hidden`).
GroupMatrix operand_matrix(const GroupedGemmCall& call, const GemmSide& from, std::int64_t extent, bool hidden, void* aligned) {
  GroupMatrix matrix{};
  const Dimension of_extent = from.k_major ? kWidth : kHeight;
  set_dimension(matrix, of_extent, extent);
  set_dimension(matrix, from.k_major ? kHeight : kWidth, from.depth);
  set_dimension(matrix, kLeading, from.k_major ? from.depth : from.extent);
  if (hidden) matrix.hidden = 1u << of_extent;
  matrix.half_bytes = type_bits(from.operand->type) / 4;
  matrix.of_16_bytes = 32 / matrix.half_bytes;
  matrix.aligned = static_cast<char*>(aligned);
  matrix.columns = static_cast<std::int32_t>(from.columns);
  const std::int64_t row = from.columns * matrix.half_bytes;
  GroupAddresses &data = matrix.address[0], &scale = matrix.address[1];
  data.base = static_cast<const char*>(from.operand->data);
  data.half_bytes = static_cast<std::uint64_t>(from.weight ? call.N * row : row);
  matrix.counted[0] = from.weight ? Counted::groups : Counted::rows;
  const Scales scales = scales_of(call, from);
  scale.base = scales.data;
  scale.half_bytes = static_cast<std::uint64_t>(scales.data == nullptr ? 0 : 2 * scales.bytes);
  matrix.counted[1] = scales.by_group ? Counted::groups : Counted::scales;
  matrix.measure = scales.measure;
  return matrix;
}

// D and, with the same shapes, C.
GroupMatrix output_matrix(const GroupedGemmCall& call, const GemmSides& sides, std::int64_t rows, bool hidden) {
  GroupMatrix matrix{};
  const std::int64_t n = sides.columns.extent, all_rows = sides.rows.extent, row = n * (type_bits(call.d_type) / 4);
  set_dimension(matrix, kHeight, n);
  set_dimension(matrix, kWidth, rows);
  set_dimension(matrix, kLeading, n);
  if (hidden) matrix.hidden = 1u << kWidth;
  const bool by_rows = all_rows == GemmSide::kOfGroup;
  const void* const c = call.c == nullptr ? call.d : call.c;
  for (int i = 0; i < 2; ++i) {
    matrix.address[i].base = static_cast<const char*>(i == 0 ? call.d : c);
    matrix.address[i].half_bytes = static_cast<std::uint64_t>(by_rows ? row : all_rows * row);
    matrix.counted[i] = by_rows ? Counted::rows : Counted::groups;
  }
  return matrix;
}

// There may be groups without products, or only such groups; the library does not handle them.
bool fills(const GemmSides& sides, const GroupSetupOptions& options) {
  const std::int64_t depth = sides.columns.depth;
  return !options.keep_empty && (depth == GemmSide::kOfGroup || depth == 0);
}
// 128x128 scales are written out.
bool expands(const GemmSides& sides, const GroupSetupOptions& options) {
  return options.expanded_scales != nullptr && !fills(sides, options);
}

Side side_arguments(const GemmSide& from, void* aligned) {
  Side side{};
  side.data = static_cast<const char*>(from.operand->data);
  side.scale = static_cast<const char*>(from.operand->scale_inv);
  side.columns = static_cast<std::int32_t>(from.columns);
  side.extent = from.extent;
  side.depth = from.depth;
  side.half_bytes = type_bits(from.operand->type) / 4;
  side.aligned = static_cast<char*>(aligned);
  return side;
}

}  // namespace

ArrayArguments array_arguments(const GroupedGemmCall& call, const GroupArrays& to, const GroupSetupOptions& options) {
  const GemmSides sides = gemm_sides(call);
  ArrayArguments arguments{};
  static_cast<GroupRows&>(arguments) = group_rows(call, options);
  arguments.keep_empty = options.keep_empty;
  arguments.list_is_d = call.d_list != nullptr;
  const bool hidden = sides.rows.depth == GemmSide::kOfGroup;
  const std::int64_t m = !options.keep_empty && sides.rows.depth == 0 ? 0 : sides.rows.extent;
  GroupMatrix &a = arguments.matrix[kA], &b = arguments.matrix[kB], &d = arguments.matrix[kD];
  a = operand_matrix(call, sides.columns, sides.columns.extent, false, options.aligned_a);
  b = operand_matrix(call, sides.rows, m, hidden, options.aligned_b);
  d = output_matrix(call, sides, m, hidden);
  if (expands(sides, options)) {
    arguments.expanded = true;
    a.address[1].base = reinterpret_cast<const char*>(options.expanded_scales);
    a.address[1].half_bytes = static_cast<std::uint64_t>(2 * expanded_bytes(sides.columns));
    a.counted[1] = Counted::groups;
  }
  const auto write_to = [](GroupMatrix& matrix, auto first, auto second, std::int32_t* rows, std::int32_t* columns,
                           std::int32_t* leading) {
    matrix.address[0].to = const_cast<const void**>(first);
    matrix.address[1].to = const_cast<const void**>(second);
    matrix.to[kHeight] = rows, matrix.to[kWidth] = columns, matrix.to[kLeading] = leading;
  };
  write_to(a, to.a, to.a_scale, to.a_rows, to.a_columns, to.a_leading);
  write_to(b, to.b, to.b_scale, to.b_rows, to.b_columns, to.b_leading);
  write_to(d, to.d, to.c, to.d_rows, to.d_columns, to.d_leading);

  GroupScalars& scalars = arguments.scalars;
  scalars.alpha = call.alpha;
  scalars.beta = call.beta;
  scalars.per_group = call.scalars_per_group;
  const float *amax_a = sides.columns.operand->amax, *amax_b = sides.rows.operand->amax;
  if (call.kind == GemmKind::nvfp4 && amax_a != nullptr && amax_b != nullptr) scalars.amax_a = amax_a, scalars.amax_b = amax_b;
  scalars.to_alpha = to.alpha;
  scalars.to_beta = to.beta;
  scalars.to_alpha_of = to.alpha_of;
  scalars.to_beta_of = to.beta_of;
  return arguments;
}

Arguments work_arguments(const GroupedGemmCall& call, const GroupSetupOptions& options) {
  const GemmSides sides = gemm_sides(call);
  Arguments arguments{};
  static_cast<GroupRows&>(arguments) = group_rows(call, options);
  arguments.a = side_arguments(sides.columns, options.aligned_a);
  arguments.b = side_arguments(sides.rows, options.aligned_b);
  arguments.d = static_cast<char*>(call.d);
  arguments.c = call.c == nullptr ? arguments.d : static_cast<const char*>(call.c);
  arguments.alpha = call.alpha;
  arguments.beta = call.beta;
  arguments.scalars_per_group = call.scalars_per_group;
  arguments.d_type = call.d_type;
  arguments.d_half_bytes = type_bits(call.d_type) / 4;
  arguments.list_is_d = call.d_list != nullptr;
  arguments.fill = fills(sides, options);
  if (expands(sides, options)) {
    const GemmSide& w = sides.columns;
    const std::int64_t blocks = ceil_div(w.depth, 128);
    arguments.scale_bytes = scales_of(call, w).bytes;
    arguments.expanded = options.expanded_scales;
    arguments.depth_blocks = static_cast<std::int32_t>(blocks);
    arguments.extent_tiles = static_cast<std::int32_t>(ceil_div(w.extent, 128));
    arguments.scale_pitch = static_cast<std::int32_t>(round_up(blocks, 4));
    arguments.expanded_bytes = expanded_bytes(w);
  }
  return arguments;
}

}  // namespace assay::device::group_setup
