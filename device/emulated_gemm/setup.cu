// Groups of a call from the splits, one thread per group: where each operand, its scales and D lie, how many tiles D_t has.
// One block; every value is an integer sum, so no order matters. With invalid splits there are no tiles, and nothing is
// written.

#include <cuda_runtime.h>

#include "device/emulated_gemm/problem.h"
#include "device/layout/scale_layout.cuh"
#include "device/support/launch.cuh"

namespace assay::device::emulated {
namespace {

constexpr int kThreads = kMaxGroups;

// A part of an array of the host, as an argument: a captured launch keeps it.
template <class Value>
struct Chunk {
  static constexpr int kCount = 2048 / sizeof(Value);
  Value values[kCount];
};
using PointerChunk = Chunk<const void*>;
using StepChunk = Chunk<std::int16_t>;

__global__ void store_pointers(PointerChunk chunk, const void** out, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) out[i] = chunk.values[i];
}
__global__ void store_steps(StepChunk chunk, std::int16_t* out, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) out[i] = chunk.values[i];
}

// Stored elements of the scales of a matrix, and the elements from one stored row to the next.
struct ScaleExtent {
  std::int64_t count, pitch;
};

__device__ ScaleExtent scale_extent(const OperandSource& source, std::int64_t rows) {
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

__device__ std::int64_t bytes_of_elements(Format type, std::int64_t elements) {
  if (type == Format::e2m1) return elements / 2;
  return type == Format::bf16 || type == Format::f16 ? 2 * elements : elements;
}

// `rows_before` and `scales_before`: of the groups before, in rows and in scales; not used for listed operands.
__device__ GroupOperand group_operand(const OperandSource& source, ScaleLayout layout, int t, std::int64_t rows,
                                      std::int64_t rows_before, std::int64_t scales_before, const void* const* data_list,
                                      const void* const* scale_list) {
  GroupOperand operand;
  const bool has_scales = source.scales != Scales::none;
  const int scale_bytes = source.scales == Scales::e8m0 || source.scales == Scales::e4m3 ? 1 : 4;
  if (source.listed) {
    operand.data = static_cast<const std::uint8_t*>(data_list[t]);
    operand.scale = has_scales ? scale_list[t] : nullptr;
  } else {
    operand.data = static_cast<const std::uint8_t*>(source.data) + bytes_of_elements(source.type, rows_before * source.columns);
    operand.scale = has_scales ? static_cast<const std::uint8_t*>(source.scale_inv) + scales_before * scale_bytes : nullptr;
  }

  const std::int64_t extent = source.along_rows ? source.columns : rows, depth = source.along_rows ? rows : source.columns;
  const bool transposed = source.columnwise && source.scales != Scales::e8m0;
  const bool k_major = transposed == source.along_rows;
  operand.row_stride = k_major ? depth : 1;
  operand.k_stride = k_major ? 1 : extent;

  const std::int64_t pitch = scale_extent(source, rows).pitch;
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
      if (layout == ScaleLayout::swizzled) operand.tiles = ceil_div(depth, 128);
      break;
    case Scales::per_line:
      operand.i_shift = 0;
      operand.i_stride = 1;
      break;
    case Scales::e4m3:
      operand.i_shift = 0, operand.k_shift = 4;
      operand.i_stride = pitch, operand.block_stride = 1;
      if (layout == ScaleLayout::swizzled) operand.tiles = ceil_div(ceil_div(depth, 16), 4);
      break;
  }
  return operand;
}

// The sum of `value` over the threads before this one; `total` is over all. All threads of the block.
__device__ std::int64_t sum_before(std::int64_t value, std::int64_t* scratch, std::int64_t& total) {
  const int thread = static_cast<int>(threadIdx.x);
  scratch[thread] = value;
  __syncthreads();
  for (int step = 1; step < kThreads; step *= 2) {
    const std::int64_t lower = thread >= step ? scratch[thread - step] : 0;
    __syncthreads();
    scratch[thread] += lower;
    __syncthreads();
  }
  total = scratch[kThreads - 1];
  const std::int64_t before = scratch[thread] - value;
  __syncthreads();
  return before;
}

// alpha times the scales of the whole sum (plan.h, GemmEpilogue). Without products alpha alone: scales and amax may not exist.
__device__ float sum_factor(const SetupCall& call, const Group& group, int t, float alpha) {
  if (group.depth == 0) return alpha;
  if (call.row_operand.scales == Scales::one) {
    const auto scale = [](const GroupOperand& operand) { return *static_cast<const float*>(operand.scale); };
    return __fmul_rn(__fmul_rn(alpha, scale(group.columns)), scale(group.rows));
  }
  if (call.kind == GemmKind::nvfp4) {
    const float both = __fmul_rn(__fmul_rn(alpha, call.column_operand.amax[t]), call.row_operand.amax[t]);
    return __fmul_rn(both, 1.0f / 7225344.0f);  // (6 * 448)^2
  }
  return alpha;
}

// A beta that D cannot take. Groups without an element of D are not checked.
__device__ bool has_wrong_beta(const SetupCall& call, int t, std::int64_t split) {
  const bool wgrad = call.layout == GemmLayout::NT;
  const std::int64_t m = wgrad ? call.N : split, n = call.layout == GemmLayout::TN ? call.N : call.K;
  if (call.beta_rule == BetaRule::any || m <= 0 || n <= 0) return false;
  const float beta = call.beta == nullptr ? 0.0f : call.beta[call.scalars_per_group ? t : 0];
  return beta != (call.beta_rule == BetaRule::one ? 1.0f : 0.0f);
}

__global__ void __launch_bounds__(kThreads) set_up(const __grid_constant__ SetupCall call) {
  __shared__ std::int64_t scratch[kThreads];
  __shared__ unsigned faults;
  const int t = static_cast<int>(threadIdx.x), groups = call.rows.groups;
  const bool present = t < groups;
  if (t == 0) faults = 0;
  __syncthreads();

  std::int64_t split = 0;
  if (present) {
    split = call.rows.splits == nullptr ? call.rows.capacity : load_split(call.rows, t);
    unsigned own = 0;
    if (split < 0) own |= kStatusNegativeSplit;
    if (split > call.rows.capacity) own |= kStatusSplitsExceedRows;
    if (own != 0) split = 0;
    const bool wgrad = call.layout == GemmLayout::NT, work = split > 0 && call.N > 0 && call.K > 0;
    if (wgrad && work && call.kind == GemmKind::nvfp4 && split % 2 != 0) own |= kStatusOddPackedExtent;
    if (wgrad && work && split > call.max_depth) own |= kStatusOverflow;
    if (has_wrong_beta(call, t, split)) own |= kStatusWrongBeta;
    if (own != 0) atomicOr(&faults, own);
  }
  std::int64_t all_rows, all_tiles, ignored;
  const std::int64_t rows_before = sum_before(split, scratch, all_rows);
  if (t == 0 && all_rows > call.rows.capacity) atomicOr(&faults, kStatusSplitsExceedRows);
  __syncthreads();

  auto* header = reinterpret_cast<Header*>(call.workspace);
  if (faults != 0) {
    if (t == 0) {
      header->tiles = 0;
      header->groups = groups;
      if (call.status != nullptr) atomicOr(call.status, faults);
    }
    return;
  }

  // Number of scales of each group: the same for all weights; for x and dy it depends on the splits.
  const WorkspaceLayout layout(groups);
  const auto counted = [&](const OperandSource& source) {
    const std::int64_t rows = source.weight ? call.N : split;
    return present ? scale_extent(source, rows).count : 0;
  };
  const std::int64_t row_scales = sum_before(counted(call.row_operand), scratch, ignored);
  const std::int64_t column_scales = sum_before(counted(call.column_operand), scratch, ignored);

  const bool wgrad = call.layout == GemmLayout::NT;
  const std::int64_t m = wgrad ? call.N : split;
  const std::int64_t n = call.layout == GemmLayout::TN ? call.N : call.K;
  const std::int64_t column_tiles = ceil_div(n, call.tile_columns);
  const std::int64_t tiles = present ? ceil_div(m, call.tile_rows) * column_tiles : 0;
  const std::int64_t first_tile = sum_before(tiles, scratch, all_tiles);
  auto* first_tiles = reinterpret_cast<std::int64_t*>(call.workspace + layout.first_tile);
  if (t == 0) {
    header->tiles = all_tiles;
    header->groups = groups;
    first_tiles[groups] = all_tiles;
  }
  if (!present) return;
  first_tiles[t] = first_tile;
  if (tiles == 0) return;

  const auto* data_list = reinterpret_cast<const void* const*>(call.workspace + layout.data_list);
  const auto* scale_list = reinterpret_cast<const void* const*>(call.workspace + layout.scale_list);
  const auto* d_list = reinterpret_cast<void* const*>(call.workspace + layout.d_list);
  const auto rows_of = [&](const OperandSource& source) { return source.weight ? call.N : split; };
  const auto before_of = [&](const OperandSource& source) { return source.weight ? t * call.N : rows_before; };

  Group group;
  group.rows = group_operand(call.row_operand, call.scale_layout, t, rows_of(call.row_operand), before_of(call.row_operand),
                             row_scales, data_list, scale_list);
  group.columns = group_operand(call.column_operand, call.scale_layout, t, rows_of(call.column_operand),
                                before_of(call.column_operand), column_scales, data_list, scale_list);
  group.m = m;
  group.n = n;
  group.depth = wgrad ? split : call.layout == GemmLayout::TN ? call.K : call.N;
  group.column_tiles = column_tiles;
  const bool fp8 = call.d_type == Format::e4m3 || call.d_type == Format::e5m2;
  const int d_bytes = call.d_type == Format::f32 ? 4 : fp8 ? 1 : 2;
  const std::int64_t d_offset = (wgrad ? t * call.N : rows_before) * n * d_bytes;
  group.d = call.d_listed ? d_list[t] : static_cast<std::uint8_t*>(call.d) + d_offset;
  group.c = call.c == nullptr ? group.d : static_cast<const std::uint8_t*>(call.c) + d_offset;
  group.bias = call.bias == nullptr ? nullptr : static_cast<const std::uint8_t*>(call.bias) + t * call.N * d_bytes;
  const int scalar = call.scalars_per_group ? t : 0;
  const float alpha = call.alpha == nullptr ? 1.0f : call.alpha[scalar];
  group.beta = call.beta == nullptr ? 0.0f : call.beta[scalar];
  group.factor = sum_factor(call, group, t, alpha);
  reinterpret_cast<Group*>(call.workspace + layout.groups)[t] = group;
  if (call.d_scale != nullptr) reinterpret_cast<float*>(call.workspace + layout.d_scales)[t] = call.d_scale[t];
}

void store_list(const void* const* list, int groups, void* out, Stream stream) {
  for (int first = 0; first < groups; first += PointerChunk::kCount) {
    PointerChunk chunk{};
    const int count = groups - first < PointerChunk::kCount ? groups - first : PointerChunk::kCount;
    for (int i = 0; i < count; ++i) chunk.values[i] = list[first + i];
    launch_kernel("emulated GEMM: store_pointers", store_pointers, 1, PointerChunk::kCount, 0, stream, chunk,
                  static_cast<const void**>(out) + first, count);
  }
}

}  // namespace

void launch_store(const std::vector<std::int16_t>& steps, std::uint8_t* out, Stream stream) {
  const int all = static_cast<int>(steps.size());
  for (int first = 0; first < all; first += StepChunk::kCount) {
    StepChunk chunk{};
    const int count = all - first < StepChunk::kCount ? all - first : StepChunk::kCount;
    for (int i = 0; i < count; ++i) chunk.values[i] = steps[static_cast<std::size_t>(first + i)];
    launch_kernel("emulated GEMM: store_steps", store_steps, 1, StepChunk::kCount, 0, stream, chunk,
                  reinterpret_cast<std::int16_t*>(out) + first, count);
  }
}

std::int64_t max_tiles_of(const SetupCall& setup) {
  const bool wgrad = setup.layout == GemmLayout::NT;
  const std::int64_t groups = setup.rows.groups, n = setup.layout == GemmLayout::TN ? setup.N : setup.K;
  const std::int64_t across = ceil_div(n, setup.tile_columns);
  std::int64_t down = groups * ceil_div(setup.N, setup.tile_rows);
  if (!wgrad) {  // every group may end in a tile that is not full
    const std::int64_t occupied = groups < setup.rows.capacity ? groups : setup.rows.capacity;
    down = setup.rows.capacity / setup.tile_rows + occupied;
  }
  constexpr std::int64_t kMaxTiles = (std::int64_t{1} << 31) - 1;
  std::int64_t tiles = 0;
  if (__builtin_mul_overflow(down, across, &tiles) || tiles > kMaxTiles) {
    throw InvalidArgument("D is " + std::to_string(down) + " by " + std::to_string(across) + " tiles of " +
                          std::to_string(setup.tile_rows) + " by " + std::to_string(setup.tile_columns) +
                          ": expected at most 2147483647 tiles");
  }
  return tiles;
}

void launch_setup(const SetupCall& setup, const GroupedGemmCall& call, Stream stream) {
  const WorkspaceLayout layout(setup.rows.groups);
  if (call.w.data_list != nullptr && call.layout != GemmLayout::NT) {
    store_list(call.w.data_list, setup.rows.groups, setup.workspace + layout.data_list, stream);
    if (call.w.scale_inv_list != nullptr) {
      store_list(call.w.scale_inv_list, setup.rows.groups, setup.workspace + layout.scale_list, stream);
    }
  }
  if (call.d_list != nullptr) {
    store_list(const_cast<const void* const*>(call.d_list), setup.rows.groups, setup.workspace + layout.d_list, stream);
  }
  launch_kernel("emulated GEMM: set_up", set_up, 1, kThreads, 0, stream, setup);
}

}  // namespace assay::device::emulated
