#pragma once
// NVFP4, a warp's square of 16 x 64 to scales and codes in shared memory, by rows and by columns: scales of blocks of
// 16 or of tiles of 16 x 16, with 4over6 or without; codes to nearest or stochastic, by random bytes that are given or drawn.

#include <cstdint>
#include <type_traits>

#include "device/quantize/nvfp4/amax.cuh"
#include "device/quantize/nvfp4/cut_codes.cuh"
#include "device/quantize/nvfp4/e2m1_codes.cuh"
#include "device/quantize/nvfp4/four_over_six.cuh"
#include "device/quantize/nvfp4/load_patch.cuh"
#include "device/quantize/nvfp4/random_draws.cuh"
#include "device/quantize/nvfp4/scales.cuh"
#include "device/quantize/nvfp4/stores.cuh"
#include "device/quantize/nvfp4/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

// With 4over6, the scale of a tile of 16 x 16: rows and columns choose separately.
enum class Lines { rows, columns };
template <Format X, Lines kLines>
__device__ __forceinline__ std::uint32_t four_over_six_tile_scale(const Patch<X>& patch, int rows_inside, int columns_inside,
                                                                  const Scaling& scaling, const Tables& tables, bool squared,
                                                                  const Lane& lane) {
  const auto error = [&](std::uint32_t scale) {
    return kLines == Lines::rows ? tile_error_of_rows(patch, rows_inside, columns_inside, scale, tables, squared, lane)
                                 : tile_error_of_columns(patch, rows_inside, columns_inside, scale, tables, squared, lane);
  };
  const std::uint32_t candidates = candidates_of(tile_amax<X>(patch), scaling);
  return choose(error(candidates & 0xFFu), error(candidates >> 8), candidates);
}

enum class Rounding { nearest, stochastic, drawn };  // stochastic: by random bytes that are given

// Two blocks of a lane: their scales, the first in the low byte, and c of each.
struct TwoBlocks {
  std::uint32_t scales;
  float first, second;
};
__device__ __forceinline__ TwoBlocks two_blocks(uint2 amax_bits, const Scaling& scaling) {
  TwoBlocks blocks;
  blocks.scales = scales_of(amax_bits, scaling);
  multipliers_of(blocks.scales, scaling, blocks.first, blocks.second);
  return blocks;
}

// The lane's two blocks of a warp, and whether all codes of the warp may be cut (cut_codes.cuh); c is then to be multiplied by
// kCutScale. `amaxes`(kNans) gives the amax bits of the two blocks, with or without NaNs.
template <bool kMay, class Amaxes>
__device__ __forceinline__ TwoBlocks two_blocks_of_warp(const Scaling& scaling, bool& cuts, const Amaxes& amaxes) {
  cuts = false;
  if constexpr (kMay) {
    if (scaling.cuts != 0) {
      const uint2 amax_bits = amaxes(std::integral_constant<Nans, Nans::kept>{});
      TwoBlocks blocks = two_blocks(amax_bits, scaling);
      const bool own = multiply(float_of_bits(amax_bits.x), blocks.first) < kCutBelow &&
                       multiply(float_of_bits(amax_bits.y), blocks.second) < kCutBelow;  // false for a NaN
      cuts = __any_sync(kAllLanes, !own) == 0;
      if (cuts) {
        blocks.first = multiply(blocks.first, kCutScale), blocks.second = multiply(blocks.second, kCutScale);
        return blocks;
      }
    }
  }
  return two_blocks(amaxes(std::integral_constant<Nans, Nans::passed_over>{}), scaling);
}

template <Format X, Rounding kRounding, bool kFourOverSix>
constexpr bool kMayCut = Element<X>::kBytes == 2 && kRounding == Rounding::nearest && !kFourOverSix;

// `drawn`: the random words of the block's tile, where they are drawn.
template <Format X, Rounding kRounding, bool kFourOverSix, bool kAligned>
__device__ __forceinline__ void quantize_rows(const Nvfp4Tiles& a, Patch<X>& patch, const Place& place, std::int64_t begin,
                                              const Scaling& scaling, const Tables* tables, const DrawnWords* drawn, Stage& stage,
                                              const Lane& lane) {
  constexpr bool kMay = kMayCut<X, kRounding, kFourOverSix>;
  if constexpr (!kMay) settle_signs(patch, a.zero);
  const bool upper = lane.g % 2;
  std::uint32_t scales;  // of the 4 rows, a byte each
  float multipliers[4];
  bool cuts = false;
  if constexpr (!kFourOverSix) {
    const TwoBlocks own = two_blocks_of_warp<kMay>(scaling, cuts, [&](auto nans) {
      if (!a.two_dimensional) return row_amaxes<X, decltype(nans)::value>(patch, lane);
      const std::uint32_t amax = tile_amax<X, decltype(nans)::value>(patch);
      return uint2{amax, amax};
    });
    scales = upper ? own.scales << 16 : own.scales;  // only these are stored by this lane
    const float other_first = __shfl_xor_sync(kAllLanes, own.first, 4), other_second = __shfl_xor_sync(kAllLanes, own.second, 4);
    multipliers[0] = upper ? other_first : own.first, multipliers[1] = upper ? other_second : own.second;
    multipliers[2] = upper ? own.first : other_first, multipliers[3] = upper ? own.second : other_second;
  } else if (a.two_dimensional) {
    const std::uint32_t scale = four_over_six_tile_scale<X, Lines::rows>(patch, place.rows_inside, place.columns_inside, scaling,
                                                                         *tables, a.squared, lane);
    scales = 0x0101'0101u * scale;
    multipliers[0] = multipliers[1] = multipliers[2] = multipliers[3] = multiplier_of(scale, scaling);
  } else {
    const uint2 amax = row_amaxes<X>(patch, lane);
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
  }
  if (kMay && (!cuts || bits_of_float(a.zero) == 0)) settle_signs(patch, a.zero);  // what may be cut has no NaN
  {  // of the two lanes of a block each stores two rows' scales
    auto* const bytes = reinterpret_cast<std::uint8_t*>(stage.row_scales);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 2 * upper + i;
      const std::uint32_t scale = row < place.rows_inside ? scales >> (8 * row) & 0xFFu : 0;
      bytes[(place.row + row) * 8 + place.column / kBlock] = static_cast<std::uint8_t>(scale);
    }
  }
  if (a.row_data == nullptr) return;
  // Slots of rows that follow one another are 4 apart.
  auto* const words = reinterpret_cast<std::uint32_t*>(stage.row_codes[place.square]) + Stage::row_slot(place.row) * 8 + lane.g;
  if (cuts) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float v[8];
#pragma unroll
      for (int c = 0; c < 8; ++c) v[c] = multiply(patch.value(i, c), multipliers[i]);
      words[i * 32] = cut_codes(v);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float multiplier = multipliers[i];
    std::uint32_t count[8];
    if constexpr (kRounding != Rounding::nearest) {
      std::uint32_t bytes[2] = {0, 0};
      if constexpr (kRounding == Rounding::drawn) {
        bytes[0] = drawn->of_row(place.row + i, 8 * lane.g);
        bytes[1] = drawn->of_row(place.row + i, 8 * lane.g + 4);
      } else {
        const std::uint8_t* const random = a.row_random + begin + i * a.columns;
        if (i < place.rows_inside) {
          if (kAligned && reinterpret_cast<std::uintptr_t>(random) % 8 == 0) {
            if (place.columns_inside > 0) {
              const uint2 both = *reinterpret_cast<const uint2*>(random);
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
    words[i * 32] = pack_counts(count) | row_signs<X>(patch.word[i]);
  }
}

// `begin` is the place of the patch's first element in the stored matrix, whose rows are `pitch` = the group's rows
// long.
template <Format X, Rounding kRounding, bool kFourOverSix>
__device__ __forceinline__ void quantize_columns(const Nvfp4Tiles& a, Patch<X>& patch, const Place& place, std::int64_t begin,
                                                 std::int64_t pitch, const Scaling& scaling, const Tables* tables,
                                                 const DrawnWords* drawn, Stage& stage, const Lane& lane) {
  constexpr bool kMay = kMayCut<X, kRounding, kFourOverSix>;
  if constexpr (!kMay) settle_signs(patch, a.zero);
  std::uint32_t own;  // scales of columns 2q and 2q + 1
  float multipliers[8];
  bool cuts = false;
  if constexpr (!kFourOverSix) {
    const TwoBlocks blocks = two_blocks_of_warp<kMay>(scaling, cuts, [&](auto nans) {
      if (!a.two_dimensional) return column_amaxes<X, decltype(nans)::value>(patch, lane);
      const std::uint32_t amax = tile_amax<X, decltype(nans)::value>(patch);
      return uint2{amax, amax};
    });
    own = blocks.scales;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      multipliers[2 * k] = __shfl_sync(kAllLanes, blocks.first, (lane.lane & ~3) | k);
      multipliers[2 * k + 1] = __shfl_sync(kAllLanes, blocks.second, (lane.lane & ~3) | k);
    }
  } else if (a.two_dimensional) {
    const std::uint32_t scale = four_over_six_tile_scale<X, Lines::columns>(patch, place.rows_inside, place.columns_inside,
                                                                            scaling, *tables, a.squared, lane);
    own = 0x0101u * scale;
    multipliers[0] = multiplier_of(scale, scaling);
#pragma unroll
    for (int c = 1; c < 8; ++c) multipliers[c] = multipliers[0];
  } else {
    const uint2 amax = column_amaxes<X>(patch, lane);
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
  }
  if (kMay && (!cuts || bits_of_float(a.zero) == 0)) settle_signs(patch, a.zero);
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
  auto* const halves = reinterpret_cast<std::uint16_t*>(stage.column_codes) +
                       Stage::column_word(place.column, place.row / 8) * 2 + lane.q % 2;  // of the lane's first column
  const auto put = [&](int k, std::uint32_t codes) {                                      // 4 rows of columns 2k and 2k + 1
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      halves[(2 * k + c) * 32] = static_cast<std::uint16_t>(codes >> (16 * c));
    }
  };
  if (cuts) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float v[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] = multiply(patch.value(i % 4, 2 * k + i / 4), multipliers[2 * k + i / 4]);
      put(k, cut_codes(v));
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    std::uint32_t count[8];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float multiplier = multipliers[2 * k + c];
      std::uint32_t bytes = 0;
      if constexpr (kRounding == Rounding::drawn) bytes = drawn->of_column(8 * lane.g + 2 * k + c, place.row);
      if constexpr (kRounding == Rounding::stochastic) {
        if (2 * k + c < place.columns_inside) {
          const std::uint8_t* const random = a.column_random + begin + (2 * k + c) * pitch;
          if (place.rows_inside >= 4 && reinterpret_cast<std::uintptr_t>(random) % 4 == 0) {
            bytes = *reinterpret_cast<const unsigned int*>(random);
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
    put(k, pack_counts(count) | column_signs(patch, k));
  }
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
