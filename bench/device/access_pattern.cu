#include "bench/device/access_pattern.h"

#include <stdexcept>

#include "bench/device/device_buffer.h"

namespace assay::bench {
namespace {

template <CachePriority kPriority>
__device__ uint4 load(const uint4* from) {
  if constexpr (kPriority == CachePriority::evict_first) return __ldcs(from);
  uint4 v;  // as assembly, since the compiler makes a load of constants of it otherwise
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  return v;
}

template <CachePriority kPriority, class Vector>
__device__ void store(Vector* to, const Vector& v) {
  if constexpr (kPriority == CachePriority::evict_first) {
    __stcs(to, v);
  } else {
    *to = v;
  }
}

// A thread reads 8 rows x 8 columns. Codes are some bits of x: their values do not matter, but they differ.
//
//   rows     kColumns / 8 threads side by side load 16 bytes each, and store 8
//   columns  kRows / 16 threads side by side store 16 bytes each
template <CachePriority kLoads, CachePriority kStores, bool kColumnwise, int kRows, int kColumns>
__global__ void __launch_bounds__(kRows* kColumns / 64) access_tiles(const __grid_constant__ AccessedMemory memory) {
  constexpr int kThreads = kRows * kColumns / 64, kSideBySide = kColumns / 8;
  const std::int64_t tiles = memory.columns / kColumns, row = blockIdx.x / tiles * kRows, column = blockIdx.x % tiles * kColumns;
  const std::int64_t own_row = row + threadIdx.x / kSideBySide * 8, own_column = column + threadIdx.x % kSideBySide * 8;

  uint4 x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    x[i] = load<kLoads>(static_cast<const uint4*>(memory.x) + ((own_row + i) * memory.columns + own_column) / 8);
  }
  std::uint32_t all = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) all |= x[i].x & x[i].y & x[i].z & x[i].w;
  __syncthreads();  // as where maxima of columns are found
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    auto* const to = static_cast<std::uint8_t*>(memory.row_codes) + (own_row + i) * memory.columns + own_column;
    store<kStores>(reinterpret_cast<uint2*>(to), uint2{x[i].x ^ x[i].y, x[i].z ^ all});
  }
  if constexpr (kColumnwise) {
    constexpr int kVectors = kRows / 16, kAtOnce = kThreads / kVectors;
    __syncthreads();  // as where codes are exchanged in shared memory
#pragma unroll
    for (int i = 0; i < kColumns / kAtOnce; ++i) {
      const std::int64_t of_thread = column + i * kAtOnce + threadIdx.x / kVectors;
      auto* const to = static_cast<std::uint8_t*>(memory.column_codes) + of_thread * memory.rows + row;
      store<kStores>(reinterpret_cast<uint4*>(to) + threadIdx.x % kVectors, uint4{x[i].x ^ all, x[i].y, x[i].z, x[i].w});
    }
  }
}

template <CachePriority kLoads, CachePriority kStores, bool kColumnwise, int kRows, int kColumns>
void launch(const AccessedMemory& memory, cudaStream_t stream) {
  const std::int64_t blocks = memory.rows / kRows * (memory.columns / kColumns);
  access_tiles<kLoads, kStores, kColumnwise, kRows, kColumns>
      <<<static_cast<unsigned>(blocks), kRows * kColumns / 64, 0, stream>>>(memory);
  check(cudaGetLastError(), "access_tiles");
}

template <CachePriority kLoads, CachePriority kStores>
void launch_pattern(const AccessPattern& pattern, const AccessedMemory& memory, cudaStream_t stream) {
  const int rows = pattern.tile_rows, columns = pattern.tile_columns;
  if (rows == 128 && columns == 128) {
    if (!pattern.columns) return launch<kLoads, kStores, false, 128, 128>(memory, stream);
    return launch<kLoads, kStores, true, 128, 128>(memory, stream);
  }
  if (rows == 256 && columns == 128 && pattern.columns) return launch<kLoads, kStores, true, 256, 128>(memory, stream);
  if (rows == 256 && columns == 256 && pattern.columns) return launch<kLoads, kStores, true, 256, 256>(memory, stream);
  throw std::invalid_argument("no such tile: 128 x 128, or in both directions 256 x 128 or 256 x 256");
}

__global__ void read_vectors(const uint4* from, std::int64_t count, std::uint32_t* never) {
  std::uint32_t all = 0xFFFFFFFFu;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const uint4 v = load<CachePriority::normal>(from + i);
    all &= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (never != nullptr) *never = all;  // so that the loads stay
}

}  // namespace

void access(const AccessPattern& pattern, const AccessedMemory& memory, cudaStream_t stream) {
  constexpr CachePriority normal = CachePriority::normal, evict_first = CachePriority::evict_first;
  if (pattern.loads == normal) {
    if (pattern.stores == normal) return launch_pattern<normal, normal>(pattern, memory, stream);
    return launch_pattern<normal, evict_first>(pattern, memory, stream);
  }
  if (pattern.stores == normal) return launch_pattern<evict_first, normal>(pattern, memory, stream);
  return launch_pattern<evict_first, evict_first>(pattern, memory, stream);
}

void read_through(const void* memory, std::int64_t bytes, cudaStream_t stream) {
  read_vectors<<<1056, 256, 0, stream>>>(static_cast<const uint4*>(memory), bytes / 16, nullptr);
  check(cudaGetLastError(), "read_vectors");
}

}  // namespace assay::bench
