// FP8 with one scale for each group, straight through memory: rowwise codes, or the amaxes alone, or both.
//
//   traffic   2 B read + 1 B written per bf16 element; the amax alone reads
//   ceiling   HBM
//   layout    a block takes 8 vectors of 16 B per thread (4 where one tensor is cast), all loads in flight at once: a warp
//             reads 512 B of x and writes 256 B of codes at a time
//   ragged    where a block's part lies does not depend on the groups: its group is found while its elements are loaded
//   order     amax is a maximum of magnitudes, so no order can change it; a block of one group accumulates once
//   matches   reference/recipes/per_tensor.h

#include <cuda_runtime.h>

#include <algorithm>

#include "device/layout/group_table.cuh"
#include "device/quantize/per_tensor/cast.cuh"
#include "device/support/early_launch.cuh"
#include "device/support/noop.cuh"

namespace assay::device::per_tensor {
namespace {

constexpr int kThreads = 256;

// Of each thread: a block that finds its group first has more to do.
template <bool kRagged, bool kCast>
constexpr int kVectorsInFlight = kRagged || !kCast ? 8 : 4;
template <Format kX, bool kRagged, bool kCast>
constexpr std::int64_t kChunk = std::int64_t{kThreads} * kVectorsInFlight<kRagged, kCast>* kSpan<kX>;  // elements

// The group that holds element `i`, by the first elements of the groups.
__device__ inline int group_of_element(const GroupTable<>& table, int groups, std::int64_t columns, std::int64_t i) {
  int low = 0, high = groups;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.first_row(middle) * columns <= i) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// A block takes a chunk of the buffer, which is whole groups or parts of groups. Where a chunk lies does not depend on
// the groups: its loads start first, and its group is found meanwhile.
template <Format kX, bool kRagged, bool kCast, bool kAmax>
constexpr int kChunkBlocks = kVectorsInFlight<kRagged, kCast> != 4 || kAmax ? 4
                             : kX == Format::f32                            ? 5
                                                                            : 6;

template <Format kX, Format kOut, bool kRagged, bool kCast, bool kAmax>
__global__ void __launch_bounds__(kThreads, kChunkBlocks<kX, kRagged, kCast, kAmax>) run_through(const CastArguments a) {
  wait_for_earlier_kernels();
  if (is_skipped(a.noop)) return;
  constexpr int kCount = kVectorsInFlight<kRagged, kCast>;
  constexpr std::int64_t kElements = kChunk<kX, kRagged, kCast>;
  const std::int64_t capacity = a.rows.capacity * a.columns;
  const std::int64_t first = (a.reversed ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * kElements;
  const std::int64_t first_vector = first / kSpan<kX> + threadIdx.x;
  const bool whole = a.vectors && first + kElements <= capacity;

  uint4 vectors[kCount];
  if (whole) {
    const uint4* const from = static_cast<const uint4*>(a.x) + first_vector;
#pragma unroll
    for (int i = 0; i < kCount; ++i) vectors[i] = from[i * kThreads];
  }
  int t = 0;
  std::int64_t used = capacity, group_end = capacity;
  __shared__ GroupTable<> table;
  if constexpr (kRagged) {
    if (!table.build(a.rows, a.status)) return;
    used = table.first_row(a.rows.groups) * a.columns;
  }
  if (kCast && blockIdx.x == 0) write_scales(a.scales, a.rows.groups, a.scale, a.scale_inv);
  if (first >= used) return;
  if constexpr (kRagged) {
    t = group_of_element(table, a.rows.groups, a.columns, first);
    group_end = table.first_row(t + 1) * a.columns;
  }

  const auto cast_vector = [&](std::int64_t at, const uint4& vector, float scale) {  // `at` counts vectors
    if constexpr (kX == Format::f32) {
      reinterpret_cast<std::uint32_t*>(a.rowwise)[at] = encode_four<kX, kOut>(vector, 0, scale, a.zero);
    } else {
      reinterpret_cast<uint2*>(a.rowwise)[at] =
          make_uint2(encode_four<kX, kOut>(vector, 0, scale, a.zero), encode_four<kX, kOut>(vector, 4, scale, a.zero));
    }
  };
  const auto accumulate = [&](int group, std::uint32_t bits) {  // most find it already large enough
    if (bits > *static_cast<volatile std::uint32_t*>(a.amax_bits + group)) atomicMax(a.amax_bits + group, bits);
  };

  if (whole && first + kElements <= group_end) {  // one group, the usual case
    const float scale = kCast ? a.scales.scale(a.scales.read(t)) : 0;
    std::uint32_t gathered = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (kAmax) gathered = accumulate_absmax_vector<kX>(gathered, vectors[i]);
      if (kCast) cast_vector(first_vector + i * kThreads, vectors[i], scale);
    }
    if constexpr (kAmax) {
      __shared__ std::uint32_t of_warp[kThreads / 32];
      const std::uint32_t bits = __reduce_max_sync(0xFFFFFFFFu, Element<kX>::amax_bits(gathered));
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = bits;
      __syncthreads();
      if (threadIdx.x < 32) {
        const std::uint32_t of_block = __reduce_max_sync(0xFFFFFFFFu, threadIdx.x < kThreads / 32 ? of_warp[threadIdx.x] : 0);
        if (threadIdx.x == 0) accumulate(t, of_block);
      }
    }
    return;
  }

  // The last chunk, or one of several groups, vector by vector.
  const std::int64_t end = min(first + kElements, used);
  const auto element = [&](std::int64_t i) {
    while (group_end <= i) group_end = table.first_row(++t + 1) * a.columns;
    const std::uint32_t bits = load_element<kX>(a.x, i);
    if (kAmax) accumulate(t, Element<kX>::amax_bits(Element<kX>::accumulate_absmax(0, bits)));
    if (kCast) {
      const float scale = a.scales.scale(a.scales.read(t));
      a.rowwise[i] = encode_fp8<kOut>(multiply_with_zero(Element<kX>::widen_one(bits), scale, a.zero));
    }
  };
#pragma unroll
  for (int v = 0; v < kCount; ++v) {
    const std::int64_t begin = (first_vector + v * kThreads) * kSpan<kX>;
    if (begin >= end) break;
    while (group_end <= begin) group_end = table.first_row(++t + 1) * a.columns;
    if (whole && begin + kSpan<kX> <= group_end) {
      if (kAmax) accumulate(t, Element<kX>::amax_bits(accumulate_absmax_vector<kX>(0, vectors[v])));
      if (kCast) cast_vector(first_vector + v * kThreads, vectors[v], a.scales.scale(a.scales.read(t)));
    } else {
      const std::int64_t next = min(begin + kSpan<kX>, end);
#pragma unroll 1
      for (std::int64_t i = begin; i < next; ++i) element(i);
    }
  }
}

template <Format kX, Format kOut, bool kRagged, bool kCast, bool kAmax>
void launch_parts(const CastArguments& a, Stream stream) {
  constexpr std::int64_t kElements = kChunk<kX, kRagged, kCast>;
  const std::int64_t chunks = std::max<std::int64_t>(1, (a.rows.capacity * a.columns + kElements - 1) / kElements);
  if (chunks >= std::int64_t{1} << 31) throw NotSupported("rows and columns make more than 2^31 chunks");
  launch_kernel_early("per_tensor: run_through", run_through<kX, kOut, kRagged, kCast, kAmax>, static_cast<unsigned>(chunks),
                      kThreads, 0, stream, a);
}

template <Format kX, Format kOut, bool kCast, bool kAmax>
void launch_parts(const CastArguments& a, Stream stream) {
  a.rows.splits != nullptr ? launch_parts<kX, kOut, true, kCast, kAmax>(a, stream)
                           : launch_parts<kX, kOut, false, kCast, kAmax>(a, stream);
}

}  // namespace

void launch_run_through(Format x_type, Format output, const CastArguments& a, Stream stream) {
  with_types(x_type, output, [&]<Format kX, Format kOut>() {
    a.amax_bits != nullptr ? launch_parts<kX, kOut, true, true>(a, stream) : launch_parts<kX, kOut, true, false>(a, stream);
  });
}

void launch_amax(Format x_type, const CastArguments& a, Stream stream) {
  with_types(x_type, Format::e4m3, [&]<Format kX, Format kOut>() {
    if constexpr (kOut == Format::e4m3) launch_parts<kX, kOut, false, true>(a, stream);  // it has no codes
  });
}

}  // namespace assay::device::per_tensor
