#pragma once
// NVFP4, a warp's square of 16 x 64 to scales and codes in shared memory, by rows and by columns: scales of blocks of
// 16 or of tiles of 16 x 16, with 4over6 or without; codes to nearest or stochastic, by random bytes that are given or drawn.

#include <cstdint>

#include "device/quantize/nvfp4/amax.cuh"
#include "device/quantize/nvfp4/e2m1_codes.cuh"
#include "device/quantize/nvfp4/four_over_six.cuh"
#include "device/quantize/nvfp4/load_patch.cuh"
#include "device/quantize/nvfp4/random_draws.cuh"
#include "device/quantize/nvfp4/scales.cuh"
#include "device/quantize/nvfp4/stores.cuh"
#include "device/quantize/nvfp4/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

// The scale of a tile of 16 x 16. With 4over6 rows and columns choose separately.
enum class Lines { rows, columns };
template <Format X, bool kFourOverSix, Lines kLines>
__device__ __forceinline__ std::uint32_t tile_scale(const Patch<X>& patch, int rows_inside, int columns_inside,
                                                    const Scaling& scaling, const Tables* tables, bool squared,
                                                    const Lane& lane) {
  const std::uint32_t amax = tile_amax(patch);
  if constexpr (kFourOverSix) {
    const auto error = [&](std::uint32_t scale) {
      return kLines == Lines::rows ? tile_error_of_rows(patch, rows_inside, columns_inside, scale, *tables, squared, lane)
                                   : tile_error_of_columns(patch, rows_inside, columns_inside, scale, *tables, squared, lane);
    };
    const std::uint32_t candidates = candidates_of(amax, scaling);
    return choose(error(candidates & 0xFFu), error(candidates >> 8), candidates);
  } else {
    return scales_of(uint2{amax, 0}, scaling) & 0xFFu;
  }
}

enum class Rounding { nearest, stochastic, drawn };  // stochastic: by random bytes that are given

// `drawn`: the random words of the block's tile, where they are drawn.
template <Format X, Rounding kRounding, bool kFourOverSix, bool kAligned>
__device__ __forceinline__ void quantize_rows(const Nvfp4Tiles& a, const Patch<X>& patch, const Place& place, std::int64_t begin,
                                              const Scaling& scaling, const Tables* tables, const DrawnWords* drawn, Stage& stage,
                                              const Lane& lane) {
  const bool upper = lane.g % 2;
  std::uint32_t scales;  // of the 4 rows, a byte each
  float multipliers[4];
  if (a.two_dimensional) {
    const std::uint32_t scale = tile_scale<X, kFourOverSix, Lines::rows>(patch, place.rows_inside, place.columns_inside, scaling,
                                                                         tables, a.squared, lane);
    scales = 0x0101'0101u * scale;
    multipliers[0] = multipliers[1] = multipliers[2] = multipliers[3] = multiplier_of(scale, scaling);
  } else {
    const uint2 amax = row_amaxes(patch, lane);
    if constexpr (kFourOverSix) {
      scales = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t of_row = __shfl_sync(kAllLanes, i % 2 == 0 ? amax.x : amax.y, (lane.lane & ~4) | (i / 2) * 4);
        const std::uint32_t candidates = candidates_of(of_row, scaling);
        const std::uint32_t scale =
            choose(row_error(patch, i, place.columns_inside, candidates & 0xFFu, *tables, a.squared, lane),
                   row_error(patch, i, place.columns_inside, candidates >> 8, *tables, a.squared, lane), candidates);
        scales |= scale << (8 * i);
        multipliers[i] = tables->multiplier[scale];
      }
    } else {
      const std::uint32_t own = scales_of(amax, scaling);
      scales = upper ? own << 16 : own;  // only these are stored by this lane
      float first, second;
      multipliers_of(own, scaling, first, second);
      const float other_first = __shfl_xor_sync(kAllLanes, first, 4), other_second = __shfl_xor_sync(kAllLanes, second, 4);
      multipliers[0] = upper ? other_first : first, multipliers[1] = upper ? other_second : second;
      multipliers[2] = upper ? first : other_first, multipliers[3] = upper ? second : other_second;
    }
  }
  {  // of the two lanes of a block each stores two rows' scales
    auto* const bytes = reinterpret_cast<std::uint8_t*>(stage.row_scales);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 2 * upper + i;
      const std::uint32_t scale = row < place.rows_inside ? scales >> (8 * row) & 0xFFu : 0;
      bytes[(place.row + row) * 4 + place.column / kBlock] = static_cast<std::uint8_t>(scale);
    }
  }
  if (a.row_data == nullptr) return;
  auto* const words = reinterpret_cast<std::uint32_t*>(stage.row_codes);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float multiplier = multipliers[i];
    std::uint32_t count[8];
    if constexpr (kRounding != Rounding::nearest) {
      std::uint32_t bytes[2] = {0, 0};
      if constexpr (kRounding == Rounding::drawn) {
        bytes[0] = drawn->of_row(place.row + i, place.column);
        bytes[1] = drawn->of_row(place.row + i, place.column + 4);
      } else {
        const std::uint8_t* const random = a.row_random + begin + i * a.columns;
        if (i < place.rows_inside) {
          if (kAligned && reinterpret_cast<std::uintptr_t>(random) % 8 == 0) {
            if (place.columns_inside > 0) {
              const uint2 both = __ldcs(reinterpret_cast<const uint2*>(random));
              bytes[0] = both.x, bytes[1] = both.y;
            }
          } else {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              if (c < place.columns_inside) bytes[c / 4] |= static_cast<std::uint32_t>(random[c]) << (8 * (c % 4));
            }
          }
        }
      }
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        count[c] = count_stochastic(multiply(patch.value(i, c), multiplier), bytes[c / 4] >> (8 * (c % 4)) & 0xFFu);
      }
    } else {
#pragma unroll
      for (int c = 0; c < 8; ++c) count[c] = count_nearest(multiply(patch.value(i, c), multiplier));
    }
    const int row = place.row + i;
    words[Stage::row_slot(row) * 8 + place.column / 8] = pack_counts(count) | row_signs<X>(patch.word[i]);
  }
}

// `begin` is the place of the patch's first element in the stored matrix, whose rows are `pitch` = the group's rows
// long.
template <Format X, Rounding kRounding, bool kFourOverSix>
__device__ __forceinline__ void quantize_columns(const Nvfp4Tiles& a, const Patch<X>& patch, const Place& place,
                                                 std::int64_t begin, std::int64_t pitch, const Scaling& scaling,
                                                 const Tables* tables, const DrawnWords* drawn, Stage& stage, const Lane& lane) {
  std::uint32_t own;  // scales of columns 2q and 2q + 1
  float multipliers[8];
  if (a.two_dimensional) {
    const std::uint32_t scale = tile_scale<X, kFourOverSix, Lines::columns>(patch, place.rows_inside, place.columns_inside,
                                                                            scaling, tables, a.squared, lane);
    own = 0x0101u * scale;
    multipliers[0] = multiplier_of(scale, scaling);
#pragma unroll
    for (int c = 1; c < 8; ++c) multipliers[c] = multipliers[0];
  } else {
    const uint2 amax = column_amaxes(patch, lane);
    if constexpr (kFourOverSix) {
      own = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        std::uint32_t scales = 0;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const std::uint32_t of_column = __shfl_sync(kAllLanes, c == 0 ? amax.x : amax.y, (lane.lane & ~3) | k);
          const std::uint32_t candidates = candidates_of(of_column, scaling);
          const std::uint32_t scale =
              choose(column_error(patch, 2 * k + c, place.rows_inside, candidates & 0xFFu, *tables, a.squared, lane),
                     column_error(patch, 2 * k + c, place.rows_inside, candidates >> 8, *tables, a.squared, lane), candidates);
          scales |= scale << (8 * c);
          multipliers[2 * k + c] = tables->multiplier[scale];
        }
        if (k == lane.q) own = scales;
      }
    } else {
      own = scales_of(amax, scaling);
      float first, second;
      multipliers_of(own, scaling, first, second);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        multipliers[2 * k] = __shfl_sync(kAllLanes, first, (lane.lane & ~3) | k);
        multipliers[2 * k + 1] = __shfl_sync(kAllLanes, second, (lane.lane & ~3) | k);
      }
    }
  }
  {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(stage.column_scales);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = 2 * lane.q + c;
      const std::uint32_t scale = column < place.columns_inside ? own >> (8 * c) & 0xFFu : 0;
      bytes[(place.column + column) * 8 + place.row / kBlock] = static_cast<std::uint8_t>(scale);
    }
  }
  if (a.column_data == nullptr) return;
  auto* const halves = reinterpret_cast<std::uint16_t*>(stage.column_codes);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    std::uint32_t count[8];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float multiplier = multipliers[2 * k + c];
      std::uint32_t bytes = 0;
      if constexpr (kRounding == Rounding::drawn) bytes = drawn->of_column(place.column + 2 * k + c, place.row);
      if constexpr (kRounding == Rounding::stochastic) {
        if (2 * k + c < place.columns_inside) {
          const std::uint8_t* const random = a.column_random + begin + (2 * k + c) * pitch;
          if (place.rows_inside >= 4 && reinterpret_cast<std::uintptr_t>(random) % 4 == 0) {
            bytes = __ldcs(reinterpret_cast<const unsigned int*>(random));
          } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              if (i < place.rows_inside) bytes |= static_cast<std::uint32_t>(random[i]) << (8 * i);
            }
          }
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float v = multiply(patch.value(i, 2 * k + c), multiplier);
        count[4 * c + i] = kRounding == Rounding::nearest ? count_nearest(v) : count_stochastic(v, bytes >> (8 * i) & 0xFFu);
      }
    }
    const std::uint32_t codes = pack_counts(count) | column_signs(patch, k);  // 4 rows of two columns
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = place.column + 2 * k + c;
      halves[Stage::column_word(column, place.row / 8) * 2 + place.row / 4 % 2] = static_cast<std::uint16_t>(codes >> (16 * c));
    }
  }
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
