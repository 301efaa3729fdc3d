#pragma once
// A block's tile of D, found in the arrays that the set-up kernel left in the workspace, and its shared memory.

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

// The number of the group that has this tile; first_tile[number] <= tile < first_tile[number + 1].
__device__ inline int group_of_tile(const GemmCall& call, std::int64_t tile) {
  const auto* first_tile = reinterpret_cast<const std::int64_t*>(call.workspace + WorkspaceLayout(call.groups).first_tile);
  int low = 0, high = call.groups;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first_tile[middle] <= tile)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// The tile of this block. False: none, for all of its threads.
__device__ inline bool find_tile(const GemmCall& call, std::int64_t tile_rows, std::int64_t tile_columns, Tile& found) {
  const WorkspaceLayout layout(call.groups);
  const std::int64_t tile = blockIdx.x;
  if (tile >= reinterpret_cast<const Header*>(call.workspace)->tiles) return false;
  const auto* first_tile = reinterpret_cast<const std::int64_t*>(call.workspace + layout.first_tile);
  const int low = group_of_tile(call, tile);
  found.group = reinterpret_cast<const Group*>(call.workspace + layout.groups)[low];
  const std::int64_t own = tile - first_tile[low];
  found.i = own / found.group.column_tiles * tile_rows;
  found.j = own % found.group.column_tiles * tile_columns;
  return true;
}

// The same in shared memory, which leaves the registers to the arithmetic. For the whole block.
__device__ inline bool find_shared_tile(const GemmCall& call, std::int64_t tile_rows, std::int64_t tile_columns, Tile& shared) {
  Tile own;
  if (!find_tile(call, tile_rows, tile_columns, own)) return false;
  if (threadIdx.x == 0) shared = own;
  __syncthreads();
  return true;
}

// The most dynamic shared memory of a block on the current device: consumer devices have 99 KiB.
inline int max_dynamic_shared() {
  constexpr int kStatic = 1024;
  int device = 0, limit = 0;
  check_cuda(cudaGetDevice(&device), "emulated GEMM: cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "emulated GEMM: shared memory of a block");
  return limit - kStatic;
}
inline bool fits_block(int bytes) { return bytes <= max_dynamic_shared(); }

// Sets the limit of a kernel to that maximum. The limit belongs to the kernel, not to the launch: another thread could
// lower a limit set for this launch before the launch happens.
template <class Kernel>
void allow_dynamic_shared(Kernel* kernel, const char* name) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, max_dynamic_shared()), name);
}

}  // namespace assay::device::emulated
