// The arrays of groups that the library reads in device memory, from the splits.
//
//   bound     latency: launch, one read of the splits, one scan, 19 values per group; the other blocks, where there are any,
//             write memory at its speed
//   layout    blocks 0 to 3 write the arrays, a thread per group (group_arrays.cuh). The others, where there are any, do one of
//             two things that do not wait for it. Groups that need more than addresses (each such block scans the splits by
//             itself): those without products get +0 * alpha + beta * C, those with a pitch that is not a multiple of 16 bytes
//             are copied, 16 bytes per thread and step; or 128x128 scales are written out, a warp per tile: one scale read, up to
//             512 bytes written. From SM90 on it is launched while the kernel before it ends
//   matches   reference/gemm/problem.h (which memory belongs to which group), epilogue.h (without products)

#include "device/cublaslt/group_setup.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "device/cublaslt/expanded_scales.cuh"
#include "device/cublaslt/group_arguments.h"
#include "device/cublaslt/group_arrays.cuh"
#include "device/cublaslt/group_work.cuh"
#include "device/layout/check_rows.h"
#include "device/support/early_launch.cuh"
#include "device/support/launch_check.h"

namespace assay::device {
namespace {

using namespace group_setup;

constexpr int kFewThreads = 256;
constexpr int kFillBlocks = 132, kExpandBlocks = 1056;

// Only the arrays.
template <int kCapacity>
__global__ void __launch_bounds__(kMaxGroups)
    set_up_arrays(const __grid_constant__ ArrayArguments arrays, const __grid_constant__ Lists<kCapacity> lists) {
  __shared__ GroupScratch scratch;
  write_arrays<false>(arrays, lists, scratch);
}

template <int kCapacity>
__global__ void __launch_bounds__(kMaxGroups)
    set_up(const __grid_constant__ ArrayArguments arrays, const __grid_constant__ Arguments arguments,
           const __grid_constant__ Lists<kCapacity> lists) {
  __shared__ GroupScratch scratch;
  __shared__ GroupsWithWork work;
  if (blockIdx.x < kArrayBlocks) return write_arrays<true>(arrays, lists, scratch);
  wait_for_work_before();
  if (arguments.fill) {
    prepare_groups(arguments, lists, scratch, work);
  } else {
    expand_scales(arguments, lists);
  }
}

// Blocks besides those that write the arrays.
int helpers_of(const Arguments& arguments) {
  if (arguments.fill) return kFillBlocks;
  const std::int64_t tiles = static_cast<std::int64_t>(arguments.depth_blocks) * arguments.extent_tiles * arguments.rows.groups;
  return static_cast<int>(std::min<std::int64_t>(ceil_div(tiles, kFewThreads / 32), kExpandBlocks));
}

// `arguments` null: only the blocks that write the arrays.
template <int kCapacity>
void launch(const GroupedGemmCall& call, const ArrayArguments& arrays, const Arguments* arguments, int helpers, Stream stream) {
  Lists<kCapacity> lists;
  if constexpr (kCapacity != 0) {
    std::memset(&lists, 0, sizeof lists);
    const void* const* data = arrays.list_is_d ? call.d_list : call.w.data_list;
    for (int t = 0; t < call.rows.groups; ++t) {
      lists.data[t] = data[t];
      if (!arrays.list_is_d && call.w.scale_inv_list != nullptr) lists.scale[t] = call.w.scale_inv_list[t];
    }
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  const int threads = static_cast<int>(round_up(call.rows.groups, 32));
  config.gridDim = dim3(static_cast<unsigned>(kArrayBlocks + helpers));
  config.blockDim = dim3(static_cast<unsigned>(arguments == nullptr ? threads : std::max(kFewThreads, threads)));
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = device_launches_early() ? 1 : 0;
  check_cuda(arguments == nullptr ? cudaLaunchKernelEx(&config, set_up_arrays<kCapacity>, arrays, lists)
                                  : cudaLaunchKernelEx(&config, set_up<kCapacity>, arrays, *arguments, lists),
             "set_up_groups");
}

}  // namespace

void set_up_groups(const GroupedGemmCall& call, const GroupArrays& to, const GroupSetupOptions& options, Stream stream) {
  const ArrayArguments arrays = array_arguments(call, to, options);
  const Arguments arguments = work_arguments(call, options);
  const int helpers = helpers_of(arguments);
  const Arguments* others = helpers == 0 ? nullptr : &arguments;
  const bool listed = call.d_list != nullptr || (call.layout != GemmLayout::NT && call.w.data_list != nullptr);
  if (!listed) {
    launch<0>(call, arrays, others, helpers, stream);
  } else if (call.rows.groups <= 64) {
    launch<64>(call, arrays, others, helpers, stream);
  } else {
    launch<kMaxGroups>(call, arrays, others, helpers, stream);
  }
}

}  // namespace assay::device
