// NVFP4 of bf16 whose columns are transformed first, and the amaxes of x and of its transform.

#include <cstdint>

#include "device/quantize/nvfp4/amax.cuh"
#include "device/quantize/nvfp4/hadamard.cuh"
#include "device/quantize/nvfp4/launch.cuh"
#include "device/quantize/nvfp4/load_patch.cuh"
#include "device/quantize/nvfp4/thread_layout.cuh"
#include "device/support/launch.cuh"
#include "device/support/noop.cuh"

namespace assay::device {
namespace nvfp4 {

// max |x| and max |y| of each group, y being the transform.
template <bool kAligned>
__global__ void __launch_bounds__(kThreads, ASSAY_NVFP4_MMA ? 5 : 3) find_amaxes(const __grid_constant__ Nvfp4Tiles a) {
  constexpr Format X = Format::bf16;
  const bool skipped = is_skipped(a.skip);
  __shared__ std::uint32_t of_warp[2][kThreads / 32];
  Tile at;
  if (!at.find(a, blockIdx.x, skipped)) return;
  const Lane lane;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  std::uint32_t row_amax = 0, column_amax = 0;
#pragma unroll 1
  for (int square = 0; square < kSquares; ++square) {
    const Place place = at.square(lane, square);
    Patch<X> patch;
    load_patch<X, kAligned>(patch, static_cast<const std::uint16_t*>(a.x) + at.begin(place, a.columns), a.columns,
                            place.rows_inside, place.columns_inside);
    if (skipped) return;
    if (a.row_amax_bits != nullptr) row_amax = max(row_amax, own_amax(patch));
    if (a.column_amax_bits != nullptr) {
      transform(patch, Factors(a.sign_mask, lane));
      drop_rows(patch, place.rows_inside);
      column_amax = max(column_amax, own_amax(patch));
    }
  }
  row_amax = __reduce_max_sync(kAllLanes, row_amax);
  column_amax = __reduce_max_sync(kAllLanes, column_amax);
  if (lane.lane == 0) of_warp[0][warp] = row_amax, of_warp[1][warp] = column_amax;
  __syncthreads();
  if (threadIdx.x < 2) {
    std::uint32_t* const amax_bits = threadIdx.x == 0 ? a.row_amax_bits : a.column_amax_bits;
    std::uint32_t largest = 0;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) largest = max(largest, of_warp[threadIdx.x][w]);
    if (amax_bits != nullptr) atomicMax(amax_bits + at.group, largest);  // of magnitudes: the order does not matter
  }
}

}  // namespace nvfp4

void launch_nvfp4_hadamard(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  tiles.stochastic ? nvfp4::launch_kind<Format::bf16, true, true, false>(tiles, stream)
                   : nvfp4::launch_kind<Format::bf16, true, false, false>(tiles, stream);
}

void launch_nvfp4_hadamard_amax(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  const auto kernel = tiles.aligned ? nvfp4::find_amaxes<true> : nvfp4::find_amaxes<false>;
  launch_kernel("nvfp4: find_amaxes", kernel, tiles.blocks, nvfp4::kThreads, 0, stream, tiles);
}

}  // namespace assay::device
