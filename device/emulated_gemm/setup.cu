// Groups of a call from the splits, or from what takes their place (spec grouped-gemm-1.4), one thread per span of rows: where each
// operand, its scales and D lie, how many tiles of D it has. One block, which takes 1024 spans at a time: only m_indices has more.
// Every value is an integer sum, so no order matters. With invalid splits there are no tiles, and nothing is written.

#include <cuda_runtime.h>

#include "device/emulated_gemm/group_operand.cuh"
#include "device/emulated_gemm/group_spans.cuh"
#include "device/emulated_gemm/problem.h"
#include "device/layout/scale_layout.cuh"
#include "device/layout/swizzle.h"
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

// Shared memory of the set-up kernel.
struct Scratch {
  std::int64_t sums[kThreads];
  unsigned bits;
};

// The bits that any thread of the block has. All threads of the block.
__device__ unsigned or_of_all(unsigned own, Scratch& scratch) {
  if (threadIdx.x == 0) scratch.bits = 0;
  __syncthreads();
  if (own != 0) atomicOr(&scratch.bits, own);
  __syncthreads();
  const unsigned result = scratch.bits;
  __syncthreads();
  return result;
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

// A beta that D cannot take. Spans without an element of D are not checked.
__device__ bool has_wrong_beta(const SetupCall& call, const GroupSpan& span) {
  const bool wgrad = call.layout == GemmLayout::NT;
  const std::int64_t m = wgrad ? call.N : span.rows, n = call.layout == GemmLayout::TN ? call.N : call.K;
  if (call.beta_rule == BetaRule::any || m <= 0 || n <= 0) return false;
  const float beta = call.beta == nullptr ? 0.0f : call.beta[call.scalars_per_group ? span.group : 0];
  return beta != (call.beta_rule == BetaRule::one ? 1.0f : 0.0f);
}

// Span number `at` of this thread, or no rows where it has none; `faults` is what is wrong with any, in every thread. All threads
// of the block.
__device__ GroupSpan read_span(const SetupCall& call, std::int64_t at, Scratch& scratch, unsigned& faults) {
  const bool present = at < call.spans;
  const int t = present ? static_cast<int>(at) : 0;
  GroupSpan span{t, 0, 0};
  unsigned own = 0;
  if (call.places.layout == GroupedLayout::splits) {
    if (present) span.rows = call.rows.splits == nullptr ? call.rows.capacity : load_split(call.rows, t);
    if (span.rows < 0) own |= kStatusNegativeSplit;
    if (span.rows > call.rows.capacity) own |= kStatusSplitsExceedRows;
    if (own != 0) span.rows = 0;
    std::int64_t all_rows;
    span.first = sum_before(span.rows, scratch.sums, all_rows);
    if (all_rows > call.rows.capacity) own |= kStatusSplitsExceedRows;
  } else if (present) {
    const GroupPlaces& places = call.places;
    switch (places.layout) {
      case GroupedLayout::m_indices: span = span_of_indices(places.index, call.rows, places.alignment, at, own); break;
      case GroupedLayout::psum: span = span_of_psum(places.index, call.rows, places.alignment, t, own); break;
      default: span = span_of_masked(load_split(call.rows, t), places.max_m, t, own);
    }
  }
  if (call.layout == GemmLayout::NT && span.rows > 0 && call.N > 0 && call.K > 0) {
    if (call.kind == GemmKind::nvfp4 && span.rows % 2 != 0) own |= kStatusOddPackedExtent;
    if (span.rows > call.max_depth) own |= kStatusOverflow;
  }
  if (present && own == 0 && has_wrong_beta(call, span)) own |= kStatusWrongBeta;
  faults = or_of_all(own, scratch);
  return span;
}

// The group of a span, whose scales in `row_place` and `column_place` are known.
__device__ Group group_of(const SetupCall& call, const GroupSpan& span, const OperandPlace& row_place,
                          const OperandPlace& column_place) {
  const WorkspaceLayout layout(call.spans, call.rows.groups);
  const auto* data_list = reinterpret_cast<const void* const*>(call.workspace + layout.data_list);
  const auto* scale_list = reinterpret_cast<const void* const*>(call.workspace + layout.scale_list);
  const auto* d_list = reinterpret_cast<void* const*>(call.workspace + layout.d_list);
  const bool wgrad = call.layout == GemmLayout::NT;
  const int t = span.group;

  Group group;
  group.rows = group_operand(call.row_operand, row_place, t, data_list, scale_list);
  group.columns = group_operand(call.column_operand, column_place, t, data_list, scale_list);
  group.m = wgrad ? call.N : span.rows;
  group.n = call.layout == GemmLayout::TN ? call.N : call.K;
  group.depth = wgrad ? span.rows : call.layout == GemmLayout::TN ? call.K : call.N;
  group.column_tiles = ceil_div(group.n, call.tile_columns);
  const bool fp8 = call.d_type == Format::e4m3 || call.d_type == Format::e5m2;
  const int d_bytes = call.d_type == Format::f32 ? 4 : fp8 ? 1 : 2;
  const std::int64_t d_offset = (wgrad ? t * call.N : span.first) * group.n * d_bytes;
  group.d = call.d_listed ? d_list[t] : static_cast<std::uint8_t*>(call.d) + d_offset;
  group.c = call.c == nullptr ? group.d : static_cast<const std::uint8_t*>(call.c) + d_offset;
  group.bias = call.bias == nullptr ? nullptr : static_cast<const std::uint8_t*>(call.bias) + t * call.N * d_bytes;
  const int scalar = call.scalars_per_group ? t : 0;
  const float alpha = call.alpha == nullptr ? 1.0f : call.alpha[scalar];
  group.beta = call.beta == nullptr ? 0.0f : call.beta[scalar];
  group.factor = sum_factor(call, group, t, alpha);
  return group;
}

__global__ void __launch_bounds__(kThreads) set_up(const __grid_constant__ SetupCall call) {
  __shared__ Scratch scratch;
  const int thread = static_cast<int>(threadIdx.x);
  const WorkspaceLayout layout(call.spans, call.rows.groups);
  auto* first_tiles = reinterpret_cast<std::int64_t*>(call.workspace + layout.first_tile);
  auto* groups = reinterpret_cast<Group*>(call.workspace + layout.groups);
  std::int64_t all_tiles = 0;
  unsigned faults = 0;

  for (std::int64_t begin = 0; begin < call.spans; begin += kThreads) {
    const std::int64_t at = begin + thread;
    const bool present = at < call.spans;
    const GroupSpan span = read_span(call, at, scratch, faults);
    if (faults != 0) break;  // in every thread

    const auto scales_before = [&](const OperandSource& source) {  // used where there is one span a group
      std::int64_t ignored;
      const bool counts = present && !source.weight && has_scales_by_group(call);
      return sum_before(counts ? scale_extent(source, span.rows).count : 0, scratch.sums, ignored);
    };
    const OperandPlace row_place = operand_place(call, call.row_operand, span, scales_before(call.row_operand));
    const OperandPlace column_place = operand_place(call, call.column_operand, span, scales_before(call.column_operand));

    const std::int64_t m = call.layout == GemmLayout::NT ? call.N : span.rows;
    const std::int64_t n = call.layout == GemmLayout::TN ? call.N : call.K;
    const std::int64_t tiles = present ? ceil_div(m, call.tile_rows) * ceil_div(n, call.tile_columns) : 0;
    std::int64_t these;
    const std::int64_t first_tile = all_tiles + sum_before(tiles, scratch.sums, these);
    all_tiles += these;
    if (present) first_tiles[at] = first_tile;
    if (tiles == 0) continue;  // no barrier follows in this round
    groups[at] = group_of(call, span, row_place, column_place);
    if (call.d_scale != nullptr) reinterpret_cast<float*>(call.workspace + layout.d_scales)[at] = call.d_scale[span.group];
  }

  if (thread != 0) return;
  auto* header = reinterpret_cast<Header*>(call.workspace);
  header->tiles = faults == 0 ? all_tiles : 0;
  header->spans = static_cast<std::int32_t>(call.spans);
  first_tiles[call.spans] = all_tiles;
  if (faults != 0 && call.status != nullptr) atomicOr(call.status, faults);
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
  if (!wgrad) {  // every span may end in a tile that is not full
    const std::int64_t occupied = setup.spans < setup.rows.capacity ? setup.spans : setup.rows.capacity;
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
  const WorkspaceLayout layout(setup.spans, setup.rows.groups);
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
