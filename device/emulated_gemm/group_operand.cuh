#pragma once
// Where one operand of a span, and its scales, lie: called by the set-up kernel, and by tests on the host. Internal to this folder.

#include <cstdint>

#include "device/emulated_gemm/group_spans.cuh"
#include "device/emulated_gemm/problem.h"

namespace assay::device::emulated {

// Whether the scales of x and dy are those of each group by itself, one group after another. Otherwise one matrix holds those of
// all rows, or of max_m rows for each group.
ASSAY_HD inline bool has_scales_by_group(const SetupCall& call) {
  return call.places.layout == GroupedLayout::splits || call.layout == GemmLayout::NT;
}

// Stored elements of the scales of a matrix, and the elements from one stored row to the next.
struct ScaleExtent {
  std::int64_t count, pitch;
};

ASSAY_HD inline ScaleExtent scale_extent(const OperandSource& source, std::int64_t rows) {
  const bool columnwise = source.columnwise, along_rows = source.along_rows;
  const std::int64_t columns = source.columns;
  switch (source.scales) {
    case Scales::none: return {0, 0};
    case Scales::one: return {1, 0};
    case Scales::f32_1x128: {  // [k block][i]
      const std::int64_t pitch = round_up(columnwise ? columns : rows, 4);
      return {ceil_div(columnwise ? rows : columns, 128) * pitch, pitch};
    }
    case Scales::f32_128x128: {  // [i block][k block]
      const std::int64_t pitch = round_up(ceil_div(columnwise ? rows : columns, 128), 4);
      return {ceil_div(columnwise ? columns : rows, 128) * pitch, pitch};
    }
    case Scales::e8m0: {  // [row][k block], columnwise [row block][k]
      const std::int64_t pitch = columnwise ? round_up(columns, 128) : round_up(ceil_div(columns, 32), 4);
      return {(columnwise ? round_up(ceil_div(rows, 32), 4) : round_up(rows, 128)) * pitch, pitch};
    }
    case Scales::per_line: return {along_rows ? columns : rows, 0};
    case Scales::e4m3: break;
  }
  const std::int64_t pitch = round_up(ceil_div(columnwise ? rows : columns, 16), 4);  // [i][k block]
  return {round_up(columnwise ? columns : rows, 128) * pitch, pitch};
}

ASSAY_HD inline std::int64_t bytes_of_elements(Format type, std::int64_t elements) {
  if (type == Format::e2m1) return elements / 2;
  return type == Format::bf16 || type == Format::f16 ? 2 * elements : elements;
}

// Rows of one operand of a span: where they start, and which scales are theirs.
struct OperandPlace {
  std::int64_t rows, first;
  std::int64_t scale_rows;   // rows of the matrix of scales
  std::int64_t scale_begin;  // its first element
  std::int64_t scale_row;    // row of it where theirs start; not 0: rowwise scales that are not swizzled
};

// `scales_before`: elements of the scales of the groups before, where each group has a matrix of its own rows.
ASSAY_HD inline OperandPlace operand_place(const SetupCall& call, const OperandSource& source, const GroupSpan& span,
                                           std::int64_t scales_before) {
  const auto count = [&](std::int64_t rows) { return scale_extent(source, rows).count; };
  if (source.weight) return {call.N, span.group * call.N, call.N, span.group * count(call.N), 0};
  if (source.scales == Scales::one) return {span.rows, span.first, span.rows, span.group, 0};
  if (has_scales_by_group(call)) return {span.rows, span.first, span.rows, scales_before, 0};
  if (call.places.layout == GroupedLayout::masked) {
    const std::int64_t max_m = call.places.max_m;
    return {span.rows, span.first, max_m, span.group * count(max_m), 0};
  }
  return {span.rows, span.first, call.rows.capacity, 0, span.first};
}

// `place` is not used for listed operands.
ASSAY_HD inline GroupOperand group_operand(const OperandSource& source, const OperandPlace& place, int t,
                                           const void* const* data_list, const void* const* scale_list) {
  GroupOperand operand;
  const bool has_scales = source.scales != Scales::none;
  const int scale_bytes = source.scales == Scales::e8m0 || source.scales == Scales::e4m3 ? 1 : 4;
  const std::int64_t rows = place.rows;
  const std::int64_t extent = source.along_rows ? source.columns : rows, depth = source.along_rows ? rows : source.columns;
  const bool transposed = source.columnwise && source.scales != Scales::e8m0;
  const bool k_major = transposed == source.along_rows;
  operand.row_stride = k_major ? depth : 1;
  operand.k_stride = k_major ? 1 : extent;

  const std::int64_t pitch = scale_extent(source, place.scale_rows).pitch;
  operand.i_shift = operand.k_shift = 63;
  operand.i_stride = operand.block_stride = 0;
  operand.tiles = 0;
  switch (source.scales) {
    case Scales::none:
    case Scales::one: break;
    case Scales::f32_1x128:
      operand.i_shift = 0, operand.k_shift = 7;
      operand.i_stride = 1, operand.block_stride = pitch;
      break;
    case Scales::f32_128x128:
      operand.i_shift = 7, operand.k_shift = 7;
      operand.i_stride = pitch, operand.block_stride = 1;
      break;
    case Scales::e8m0:
      operand.i_shift = 0, operand.k_shift = 5;
      operand.i_stride = source.columnwise ? 1 : pitch;
      operand.block_stride = source.columnwise ? pitch : 1;
      if (source.scale_layout == ScaleLayout::swizzled) operand.tiles = ceil_div(depth, 128);
      break;
    case Scales::per_line:
      operand.i_shift = 0;
      operand.i_stride = 1;
      break;
    case Scales::e4m3:
      operand.i_shift = 0, operand.k_shift = 4;
      operand.i_stride = pitch, operand.block_stride = 1;
      if (source.scale_layout == ScaleLayout::swizzled) operand.tiles = ceil_div(ceil_div(depth, 16), 4);
      break;
  }
  if (source.listed) {
    operand.data = static_cast<const std::uint8_t*>(data_list[t]);
    operand.scale = has_scales ? scale_list[t] : nullptr;
  } else {
    const std::int64_t scale = place.scale_begin + place.scale_row * operand.i_stride;
    operand.data = static_cast<const std::uint8_t*>(source.data) + bytes_of_elements(source.type, place.first * source.columns);
    operand.scale = has_scales ? static_cast<const std::uint8_t*>(source.scale_inv) + scale * scale_bytes : nullptr;
  }
  return operand;
}

}  // namespace assay::device::emulated
