// Memory that the set-up kernel writes: arrays, expanded scales, copies.

#include <string>

#include "device/cublaslt/group_setup.h"
#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_rows.h"
#include "device/layout/scale_layout.cuh"

namespace assay::device {
namespace {

template <class Value>
Value* take(char*& memory, int groups) {
  auto* array = reinterpret_cast<Value*>(memory);
  memory += round_up(static_cast<std::int64_t>(sizeof(Value)) * groups, 256);
  return array;
}

}  // namespace

// The arrays of GroupArrays one after another: eight of addresses, eleven of 4 bytes.
std::int64_t group_arrays_bytes(int groups) { return 8 * round_up(8ll * groups, 256) + 11 * round_up(4ll * groups, 256); }

GroupArrays group_arrays(void* memory, int groups) {
  char* at = static_cast<char*>(memory);
  GroupArrays arrays;
  arrays.a = take<const void*>(at, groups);
  arrays.b = take<const void*>(at, groups);
  arrays.c = take<const void*>(at, groups);
  arrays.d = take<void*>(at, groups);
  arrays.a_scale = take<const void*>(at, groups);
  arrays.b_scale = take<const void*>(at, groups);
  arrays.alpha_of = take<float*>(at, groups);
  arrays.beta_of = take<float*>(at, groups);
  arrays.alpha = take<float>(at, groups);
  arrays.beta = take<float>(at, groups);
  for (std::int32_t** array : {&arrays.a_rows, &arrays.a_columns, &arrays.a_leading, &arrays.b_rows, &arrays.b_columns,
                               &arrays.b_leading, &arrays.d_rows, &arrays.d_columns, &arrays.d_leading}) {
    *array = take<std::int32_t>(at, groups);
  }
  return arrays;
}

std::int64_t expanded_scale_floats(const GroupedGemmCall& call) {
  const GemmSide w = gemm_sides(call).columns;
  return call.rows.groups * ceil_div(w.depth, 128) * round_up(w.extent, 4);
}

std::int64_t aligned_copy_bytes(const GroupedGemmCall& call, const GemmSide& side) {
  const int bits = type_bits(side.operand->type);
  if (call.layout != GemmLayout::NT || !pitch_is_of_group(side) || call.rows_multiple * bits % 128 == 0) return 0;
  if (call.rows.capacity == 0 || call.rows.groups == 0) return 0;
  const std::int64_t pitch = round_up(ceil_div(call.rows.capacity * bits, 8), 16) + 16ll * call.rows.groups;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(pitch, side.columns, &bytes)) {
    throw InvalidArgument("rows.capacity is " + std::to_string(call.rows.capacity) +
                          ": expected copies of its groups to fit in 64 bits");
  }
  return bytes;
}

}  // namespace assay::device
