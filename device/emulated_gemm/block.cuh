#pragma once
// What a block is given: its tile of D, found in what the set-up kernel left in the workspace, and its shared memory.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/emulated_gemm/problem.h"
#include "device/support/launch_check.h"

namespace assay::device::emulated {

// A tile of D: its group and where it begins.
struct Tile {
  Group group;
  std::int64_t i, j;
};

// The tile of this block. False: none, for all of its threads.
__device__ inline bool find_tile(const GemmCall& call, std::int64_t tile_rows, std::int64_t tile_columns,
                                 Tile& found) {
  const WorkspaceLayout layout(call.groups);
  const std::int64_t tile = blockIdx.x;
  if (tile >= reinterpret_cast<const Header*>(call.workspace)->tiles) return false;
  const auto* first_tile = reinterpret_cast<const std::int64_t*>(call.workspace + layout.first_tile);
  int low = 0, high = call.groups;  // first_tile[low] <= tile < first_tile[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first_tile[middle] <= tile) low = middle;
    else high = middle;
  }
  found.group = reinterpret_cast<const Group*>(call.workspace + layout.groups)[low];
  const std::int64_t own = tile - first_tile[low];
  found.i = own / found.group.column_tiles * tile_rows;
  found.j = own % found.group.column_tiles * tile_columns;
  return true;
}

// The same in shared memory, which leaves the registers to the arithmetic. For the whole block.
__device__ inline bool find_shared_tile(const GemmCall& call, std::int64_t tile_rows, std::int64_t tile_columns,
                                        Tile& shared) {
  Tile own;
  if (!find_tile(call, tile_rows, tile_columns, own)) return false;
  if (threadIdx.x == 0) shared = own;
  __syncthreads();
  return true;
}

// Dynamic shared memory that a block of the current device can have: consumer devices have 99 KiB.
inline int most_dynamic_shared() {
  constexpr int kStatic = 1024;
  int device = 0, most = 0;
  check_cuda(cudaGetDevice(&device), "emulated GEMM: cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "emulated GEMM: shared memory of a block");
  return most - kStatic;
}
inline bool fits_block(int bytes) { return bytes <= most_dynamic_shared(); }

// Allows a kernel all that a block of this device can have. The limit belongs to the kernel, not to the launch: one
// made for this launch could be lowered by another thread's before it takes place.
template <class Kernel>
void allow_dynamic_shared(Kernel* kernel, const char* name) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_dynamic_shared()), name);
}

}  // namespace assay::device::emulated
