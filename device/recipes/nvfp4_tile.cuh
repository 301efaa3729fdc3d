#pragma once
// NVFP4, one tile of 128 x 64 elements a block of threads: x is read once, and everything that is wanted of it comes
// from that one reading, once the amax of the group is known. It does every call; rows of 16-bit elements alone,
// without 2-D tiles, 4over6 and odd addresses, have a faster kernel (nvfp4_rows.cuh).
//
//   traffic   16-bit x: 2 B read, 1/2 B written per element and direction, 1 B of scale per 16:  2.56 B/element for
//             one direction, 3.13 for both; and 2 B more where the amax has to be found first
//   bound     the issue of instructions. SM90 has no conversion to E2M1: a code is found by some eight instructions
//             (nvfp4_code.cuh), and with amax, scale and transposition about 21 are issued for an element columnwise,
//             34 for both directions, which is 1.2 and 1.6 times what HBM would take. One tensor reaches nine tenths
//             of that bound (with the Hadamard transform eight). Ragged groups have less: columns that begin at any
//             byte take more instructions to store, and the last tile of a group takes as many as a full one
//   layout    8 warps, each a square of 16 rows x 64 columns, of which a lane holds rows 4q ... 4q + 3 and columns 8g
//             ... 8g + 7 (q = lane % 4, g = lane / 4): a row's block lies in 2 lanes, a column's in 4. These are also
//             the elements that the lane holds of an operand and of the result of mma.m16n8k16, if the 16 rows of the
//             operand are numbered to suit: so the Hadamard transform is 8 instructions on registers, in place.
//   codes     eight a word; words of rows and halves of words of columns go through shared memory and leave it as 32 B
//             of a row, 64 B of a (transposed) column. A column of a ragged group begins at any byte: whole words are
//             then put together from two, and only the ends are stored by bytes.
//   multipliers  c of nvfp4.h from the scale's code and the group's 1/S, by the lanes that made the scale
//   order     amax is a maximum of magnitudes: no order can change it. Errors of 4over6 are summed as four_over_six.h
//             says, from lane to lane.
//   matches   reference/recipes/nvfp4.h
//
// A tile is never shared between groups. Which group a tile has is noted before (nvfp4.cu). Rows and columns past the
// end of a group or of the matrix are held as +0, which changes no amax, and whose scale is 0, the padding of swizzled
// scales.

#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/formats/raise.cuh"
#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/recipes/nvfp4_code.cuh"
#include "device/support/launch_check.h"
#include "device/support/noop.cuh"

namespace assay::device {

// A group of rows, and the sums over the groups before it.
struct Nvfp4Group {
  std::uint32_t first_row;       // in the buffer
  std::uint32_t rows;
  std::uint32_t tiles_before;    // of 128 rows
  std::uint32_t columns_before;  // blocks of 16 rows, rounded up to 4 in each group
};

// What follows from the G of a group, nvfp4.h.
struct alignas(16) Nvfp4Scaling {
  float amax, scale, inverse, sixth;  // G, S, 1/S, S/6
};

// Which kernel: that of rows has its file.
enum class Nvfp4Way { tiles, rows };

inline constexpr std::uint32_t kNvfp4NoGroup = 0xFFFF'FFFFu;
inline constexpr int kNvfp4SegmentRows = 16;

struct Nvfp4Tiles {
  const void* x;  // [rows.capacity, columns]
  Rows rows;
  std::int64_t columns;
  std::uint32_t column_tiles;  // at least 1, also where there are no columns
  std::uint32_t blocks;        // of the launch
  Nvfp4Way way;
  // Where there are splits: the groups, then the group of each tile of 128 rows and of the first of each 16 rows of
  // the buffer, or kNvfp4NoGroup.
  const Nvfp4Group* groups;
  const std::uint32_t* group_of_tile;
  const std::uint32_t* group_of_rows;
  const Nvfp4Scaling* row_scaling;  // [groups]
  const Nvfp4Scaling* column_scaling;
  float zero;                  // see multiply_with_zero()
  float e4m3_max;
  std::uint32_t sign_mask;  // of the Hadamard transform
  bool swizzled;
  bool two_dimensional;
  bool hadamard;
  bool stochastic;
  bool four_over_six;
  bool squared;   // 4over6 by the squares of errors
  bool backward;  // last tiles first: what an earlier pass read last may still be in L2
  bool aligned;   // x allows vectors of 8 elements in every row
  const float* skip;
  std::uint32_t* row_amax_bits;     // [groups], raised by find_amaxes
  std::uint32_t* column_amax_bits;
  std::uint8_t* row_data;
  std::uint8_t* column_data;
  std::uint8_t* row_scale;
  std::uint8_t* column_scale;
  const std::uint8_t* row_random;
  const std::uint8_t* column_random;
  std::uint32_t* status;
};

// nvfp4_bf16.cu, nvfp4_f16.cu, nvfp4_f32.cu and nvfp4_hadamard.cu.
void launch_nvfp4_bf16(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_f16(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_f32(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_hadamard(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_hadamard_amax(const Nvfp4Tiles& tiles, cudaStream_t stream);

#if defined(__CUDACC__)

namespace nvfp4 {

constexpr int kTile = 128;
constexpr int kBlock = 16;
constexpr int kThreads = 256;
constexpr int kTileColumns = 64;
constexpr int kBlocksAnSm = 5;  // of 16-bit elements: 48 registers a thread; with 40, for 6 blocks, rows spill
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// ---- Elements of a lane --------------------------------------------------------------------------------------------

// Rows 4q ... 4q + 3 and columns 8g ... 8g + 7 of a square.
template <Format X>
struct Patch {
  static constexpr int kWords = 8 / Element<X>::kPerWord;
  std::uint32_t word[4][kWords];

  __device__ __forceinline__ float value(int row, int column) const {
    return Element<X>::widen(word[row][column / Element<X>::kPerWord], column % Element<X>::kPerWord);
  }
};

struct Lane {
  int lane, q, g;
  __device__ Lane() : lane(static_cast<int>(threadIdx.x) % 32), q(lane % 4), g(lane / 4) {}
};

// `x` is the patch's first element, `columns` the distance between rows; rows and columns of the patch that lie
// inside.
template <Format X, bool kAligned>
__device__ __forceinline__ void load_patch(Patch<X>& patch, const void* x, std::int64_t columns, int rows_inside,
                                           int columns_inside) {
  constexpr int kBytes = Element<X>::kBytes, kWords = Patch<X>::kWords;
  const auto* row = static_cast<const unsigned char*>(x);
#pragma unroll
  for (int i = 0; i < 4; ++i, row += columns * kBytes) {
    const bool inside = i < rows_inside;
    if constexpr (kAligned) {  // the columns are a multiple of 8: all inside or none
      const bool wanted = inside && columns_inside > 0;
#pragma unroll
      for (int v = 0; v < kWords / 4; ++v) {
        const uint4 vector = wanted ? __ldcs(reinterpret_cast<const uint4*>(row) + v) : uint4{0, 0, 0, 0};
        patch.word[i][4 * v] = vector.x;
        patch.word[i][4 * v + 1] = vector.y;
        patch.word[i][4 * v + 2] = vector.z;
        patch.word[i][4 * v + 3] = vector.w;
      }
    } else {
#pragma unroll
      for (int w = 0; w < kWords; ++w) patch.word[i][w] = 0;
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        if (!inside || c >= columns_inside) continue;
        if constexpr (kBytes == 4) {
          patch.word[i][c] = __ldcs(reinterpret_cast<const unsigned int*>(row) + c);
        } else {
          const std::uint32_t code = __ldcs(reinterpret_cast<const unsigned short*>(row) + c);
          patch.word[i][c / 2] |= code << (16 * (c % 2));
        }
      }
    }
  }
}

// Adds a zero: which of the two zeros decides what an exact -0 becomes (multiply_with_zero). A NaN becomes the
// positive one of arithmetic: so the sign of every element is that of its code.
template <Format X>
__device__ __forceinline__ void settle_signs(Patch<X>& patch, float zero) {
  const std::uint32_t sign = bits_of_float(zero), signs = sign | sign >> 16;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int w = 0; w < Patch<X>::kWords; ++w) {
      std::uint32_t& word = patch.word[i][w];
      if constexpr (X == Format::bf16) {
        asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(word) : "r"(0x3F80'3F80u), "r"(signs));
      } else if constexpr (X == Format::f16) {
        asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(word) : "r"(0x3C00'3C00u), "r"(signs));
      } else {
        word = bits_of_float(add(float_of_bits(word), zero));
      }
    }
  }
}

template <Format X>
__device__ __forceinline__ std::uint32_t settled(std::uint32_t word, float zero) {
  Patch<X> patch{};
  patch.word[0][0] = word;
  settle_signs(patch, zero);
  return patch.word[0][0];
}

// Signs of 8 neighbours of a row as the top bits of 8 nibbles, the first lowest.
template <Format X>
__device__ __forceinline__ std::uint32_t row_signs(const std::uint32_t (&word)[Patch<X>::kWords]) {
  if constexpr (Element<X>::kPerWord == 2) {  // bytes 1 and 3 of words have them: elements 0 2 1 3 and 4 6 5 7
    const std::uint32_t low = __byte_perm(word[0], word[1], 0x7351), high = __byte_perm(word[2], word[3], 0x7351);
    const std::uint32_t even = __byte_perm(low, high, 0x5410), odd = __byte_perm(low, high, 0x7632);
    return (even >> 4 & 0x0808'0808u) | (odd & 0x8080'8080u);
  } else {
    std::uint32_t signs = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) signs |= (word[i] >> 31) << (4 * i + 3);
    return signs;
  }
}

// Signs of 4 rows of columns 2k and 2k + 1, likewise: the rows of the first column lowest.
template <Format X>
__device__ __forceinline__ std::uint32_t column_signs(const Patch<X>& patch, int k) {
  if constexpr (Element<X>::kPerWord == 2) {
    constexpr std::uint32_t kSigns = 0x8000'8000u;
    std::uint32_t signs = patch.word[0][k];
#pragma unroll
    for (int i = 1; i < 4; ++i) signs = (patch.word[i][k] & kSigns) | (signs >> 4 & ~kSigns);
    return signs & 0x8888'8888u;
  } else {
    std::uint32_t signs = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      signs |= (patch.word[i][2 * k] >> 31) << (4 * i + 3) | (patch.word[i][2 * k + 1] >> 31) << (4 * i + 19);
    }
    return signs;
  }
}

// ---- Amaxes --------------------------------------------------------------------------------------------------------

// Amax bits of rows 2h and 2h + 1 of the lane's 4, h = g % 2, over the block that the lane shares with another.
template <Format X>
__device__ __forceinline__ uint2 row_amaxes(const Patch<X>& patch, const Lane& lane) {
  using E = Element<X>;
  std::uint32_t maximum[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    maximum[i] = 0;
#pragma unroll
    for (int w = 0; w < Patch<X>::kWords; ++w) maximum[i] = raise<X>(maximum[i], patch.word[i][w]);
  }
  const bool upper = lane.g % 2;
  if constexpr (E::kPerWord == 2) {
    std::uint32_t pair[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      pair[i] = raise<X>(__byte_perm(maximum[2 * i], maximum[2 * i + 1], 0x5410),
                         __byte_perm(maximum[2 * i], maximum[2 * i + 1], 0x7632));
    }
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper ? pair[0] : pair[1], 4);
    const std::uint32_t own = without_sign<X>(raise<X>(upper ? pair[1] : pair[0], other));
    return {E::amax_bits(own & 0xFFFFu), E::amax_bits(own >> 16)};
  } else {
    const std::uint32_t first = __shfl_xor_sync(kAllLanes, upper ? maximum[0] : maximum[2], 4);
    const std::uint32_t second = __shfl_xor_sync(kAllLanes, upper ? maximum[1] : maximum[3], 4);
    return {E::amax_bits(raise<X>(upper ? maximum[2] : maximum[0], first)),
            E::amax_bits(raise<X>(upper ? maximum[3] : maximum[1], second))};
  }
}

// Amax bits of columns 2q and 2q + 1 of the lane's 8 over the 16 rows.
template <Format X>
__device__ __forceinline__ uint2 column_amaxes(const Patch<X>& patch, const Lane& lane) {
  using E = Element<X>;
  constexpr int kWords = Patch<X>::kWords;
  std::uint32_t maximum[kWords];
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    maximum[w] = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) maximum[w] = raise<X>(maximum[w], patch.word[i][w]);
  }
  // Each exchange halves the columns that a lane still looks after.
  const bool upper2 = lane.q & 2, upper1 = lane.q & 1;
#pragma unroll
  for (int w = 0; w < kWords / 2; ++w) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper2 ? maximum[w] : maximum[w + kWords / 2], 2);
    maximum[w] = raise<X>(upper2 ? maximum[w + kWords / 2] : maximum[w], other);
  }
#pragma unroll
  for (int w = 0; w < kWords / 4; ++w) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper1 ? maximum[w] : maximum[w + kWords / 4], 1);
    maximum[w] = without_sign<X>(raise<X>(upper1 ? maximum[w + kWords / 4] : maximum[w], other));
  }
  if constexpr (E::kPerWord == 2) {
    return {E::amax_bits(maximum[0] & 0xFFFFu), E::amax_bits(maximum[0] >> 16)};
  } else {
    return {E::amax_bits(maximum[0]), E::amax_bits(maximum[1])};
  }
}

// Amax bits of the lane's own elements.
template <Format X>
__device__ __forceinline__ std::uint32_t own_amax(const Patch<X>& patch) {
  using E = Element<X>;
  std::uint32_t maximum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int w = 0; w < Patch<X>::kWords; ++w) maximum = raise<X>(maximum, patch.word[i][w]);
  }
  maximum = without_sign<X>(maximum);
  return E::amax_bits(E::kPerWord == 2 ? max(maximum & 0xFFFFu, maximum >> 16) : maximum);
}

// Amax bits of the tile of 16 x 16 that the lane belongs to.
template <Format X>
__device__ __forceinline__ std::uint32_t tile_amax(const Patch<X>& patch) {
  std::uint32_t maximum = own_amax(patch);
#pragma unroll
  for (int step = 1; step < 8; step *= 2) maximum = max(maximum, __shfl_xor_sync(kAllLanes, maximum, step));
  return maximum;
}

// ---- The Hadamard transform ----------------------------------------------------------------------------------------

// Matrix instructions whose one step is 16 products cut at 25 fraction bits (tensor-core.md): Hopper and the Blackwell
// of SM100. Elsewhere integers do the same.
#if __CUDA_ARCH__ == 900 || (__CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1100)
#define ASSAY_NVFP4_MMA 1
#else
#define ASSAY_NVFP4_MMA 0
#endif

#if ASSAY_NVFP4_MMA

// The operand of factors: of outputs j = 4 (g / 2) + g % 2 and 2 more, rows 4q ... 4q + 3.
struct Factors {
  std::uint32_t first[2], second[2];

  __device__ Factors(std::uint32_t sign_mask, const Lane& lane) {
    const auto factor = [&](int i, int j) {
      const bool negative = (__popc(i & j) + (sign_mask >> i & 1)) % 2 != 0;
      return negative ? 0xBE80u : 0x3E80u;  // -1/4, 1/4
    };
    const int j = 4 * (lane.g / 2) + lane.g % 2;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int i = 4 * lane.q + 2 * k;
      first[k] = factor(i, j) | factor(i + 1, j) << 16;
      second[k] = factor(i, j + 2) | factor(i + 1, j + 2) << 16;
    }
  }
};

__device__ __forceinline__ void multiply_step(float (&d)[4], const std::uint32_t (&a)[4],
                                              const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}
__device__ __forceinline__ std::uint32_t round_pair(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// y in the place of x: the same rows and columns of it. Operand A is x transposed: its row g is column 2k of lane
// group g, its row g + 8 is column 2k + 1; its columns, over which the step sums, are rows of x in the order 0 1 4 5 8
// 9 12 13 2 3 6 7 ..., the same as of the factors.
__device__ __forceinline__ void transform(Patch<Format::bf16>& patch, const Factors& factors) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::uint32_t a[4] = {__byte_perm(patch.word[0][k], patch.word[1][k], 0x5410),
                                __byte_perm(patch.word[0][k], patch.word[1][k], 0x7632),
                                __byte_perm(patch.word[2][k], patch.word[3][k], 0x5410),
                                __byte_perm(patch.word[2][k], patch.word[3][k], 0x7632)};
    float first[4], second[4];
    multiply_step(first, a, factors.first);
    multiply_step(second, a, factors.second);
    patch.word[0][k] = round_pair(first[0], first[2]);
    patch.word[1][k] = round_pair(first[1], first[3]);
    patch.word[2][k] = round_pair(second[0], second[2]);
    patch.word[3][k] = round_pair(second[1], second[3]);
  }
}

#else

struct Factors {
  std::uint32_t signs;  // of the lane's 4 rows
  int q;
  __device__ Factors(std::uint32_t sign_mask, const Lane& lane) : signs(sign_mask >> (4 * lane.q) & 0xF), q(lane.q) {}
};

__device__ __forceinline__ void transform(Patch<Format::bf16>& patch, const Factors& factors) {
#pragma unroll
  for (int column = 0; column < 8; ++column) {
    const int half = 16 * (column % 2);
    std::uint32_t x[4], largest = 0, flags = 0;  // flags: how many infinities, and from bit 16 on how many NaNs
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[i] = patch.word[i][column / 2] >> half & 0xFFFFu;
      largest = max(largest, term_exponent(x[i]));
      flags += is_nan_term(x[i]) ? 1u << 16 : is_special(x[i]) ? 1u : 0u;
    }
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
      largest = max(largest, __shfl_xor_sync(kAllLanes, largest, step));
      flags += __shfl_xor_sync(kAllLanes, flags, step);
    }
    std::int32_t t[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      t[i] = flags != 0 ? special_term(x[i]) : term(x[i], largest);
      if (factors.signs >> i & 1) t[i] = -t[i];
    }
    const auto butterfly = [&](int a, int b) {
      const std::int32_t sum = t[a] + t[b], difference = t[a] - t[b];
      t[a] = sum, t[b] = difference;
    };
    butterfly(0, 1), butterfly(2, 3), butterfly(0, 2), butterfly(1, 3);
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::int32_t other = __shfl_xor_sync(kAllLanes, t[i], step);
        t[i] = factors.q & step ? other - t[i] : other + t[i];
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t y =
          flags != 0 ? finish_special_sum(t[i], static_cast<std::int32_t>(flags & 0xFFFFu), flags >> 16 != 0)
                     : finish_sum(t[i], largest);
      patch.word[i][column / 2] = (patch.word[i][column / 2] & ~(0xFFFFu << half)) | y << half;
    }
  }
}

#endif

// Sums that have no row count for nothing and go nowhere.
__device__ __forceinline__ void drop_rows(Patch<Format::bf16>& patch, int rows_inside) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int w = 0; w < 4; ++w) patch.word[i][w] = i < rows_inside ? patch.word[i][w] : 0;
  }
}

// ---- Scales --------------------------------------------------------------------------------------------------------

using Scaling = Nvfp4Scaling;

// c of a scale.
__device__ __forceinline__ float multiplier_of(std::uint32_t scale, const Scaling& scaling) {
  return fminf(reciprocal(multiply(decode_fp8<Format::e4m3>(scale), scaling.inverse)), FLT_MAX);
}

// Of two scales.
__device__ __forceinline__ void multipliers_of(std::uint32_t scales, const Scaling& scaling, float& first,
                                               float& second) {
#if __CUDA_ARCH__ >= 890
  std::uint32_t values;  // f16 holds them all
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(values) : "h"(static_cast<std::uint16_t>(scales)));
  const float low = widen_f16(values & 0xFFFFu), high = widen_f16(values >> 16);
  first = fminf(reciprocal(multiply(low, scaling.inverse)), FLT_MAX);
  second = fminf(reciprocal(multiply(high, scaling.inverse)), FLT_MAX);
#else
  first = multiplier_of(scales & 0xFFu, scaling);
  second = multiplier_of(scales >> 8, scaling);
#endif
}

// For the block of threads, with 4over6: c of every scale, and the value of every code under every scale.
struct Tables {
  float multiplier[kTile];
  float value[8 * kTile];

  // By 128 threads.
  __device__ void fill(const Scaling& scaling, float e4m3_max, int thread) {
    const float scale = decode_fp8<Format::e4m3>(static_cast<std::uint32_t>(thread));
    multiplier[thread] = multiplier_of(static_cast<std::uint32_t>(thread), scaling);
    const float denominator = multiply(6.0f, e4m3_max);
#pragma unroll 1
    for (std::uint32_t code = 0; code < 8; ++code) {
      value[thread * 8 + code] = divide(multiply(multiply(decode_e2m1(code), scale), scaling.amax), denominator);
    }
  }
};

// Scales of two blocks, the first in the low byte. Without 4over6. An amax that was given is 0 or more; where it is
// not, no scale has a sign even so, and all stay inside the tables.
constexpr std::uint32_t kTwoMagnitudes = 0x7F7F;
__device__ __forceinline__ std::uint32_t scales_of(uint2 amax_bits, const Scaling& scaling) {
  return kTwoMagnitudes & encode_fp8x2<Format::e4m3>(multiply(float_of_bits(amax_bits.x), scaling.sixth),
                                                     multiply(float_of_bits(amax_bits.y), scaling.sixth));
}

// 4over6: the scales for a largest code of 6 (low byte) and of 4.
__device__ __forceinline__ std::uint32_t candidates_of(std::uint32_t amax_bits, const Scaling& scaling) {
  const float base = multiply(divide(float_of_bits(amax_bits), 6.0f), scaling.scale);
  return kTwoMagnitudes & encode_fp8x2<Format::e4m3>(base, multiply(base, 1.5f));
}

// The error of one element under a scale; 0 for one that is not there.
__device__ __forceinline__ float error_of(float x, bool inside, std::uint32_t scale, const Tables& tables,
                                          bool squared) {
  const std::uint32_t code = count_nearest(multiply(x, tables.multiplier[scale])) - kBitsOfCodeZero;
  const float difference = add(tables.value[scale * 8 + code], -magnitude(x));  // signs agree: that of x makes no odds
  return !inside ? 0.0f : squared ? multiply(difference, difference) : magnitude(difference);
}

// The error of a row's block, the same in both of its lanes.
template <Format X>
__device__ __forceinline__ float row_error(const Patch<X>& patch, int row, int columns_inside, std::uint32_t scale,
                                           const Tables& tables, bool squared, const Lane& lane) {
  float error[8], sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    error[i] = error_of(patch.value(row, i), i < columns_inside, scale, tables, squared);
    sum = add(sum, error[i]);
  }
  sum = __shfl_sync(kAllLanes, sum, lane.lane & ~4);  // of the first 8 columns; the others follow
#pragma unroll
  for (int i = 0; i < 8; ++i) sum = add(sum, error[i]);
  return __shfl_sync(kAllLanes, sum, lane.lane | 4);
}

// The error of a column's block, the same in all of its lanes.
template <Format X>
__device__ __forceinline__ float column_error(const Patch<X>& patch, int column, int rows_inside, std::uint32_t scale,
                                              const Tables& tables, bool squared, const Lane& lane) {
  float error[4], sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) error[i] = error_of(patch.value(i, column), i < rows_inside, scale, tables, squared);
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    float own = sum;
#pragma unroll
    for (int i = 0; i < 4; ++i) own = add(own, error[i]);
    sum = __shfl_sync(kAllLanes, own, (lane.lane & ~3) | q);
  }
  return sum;
}

// The error of a tile of 16 x 16, the same in all of its lanes.
template <Format X>
__device__ __forceinline__ float tile_error(const Patch<X>& patch, int rows_inside, int columns_inside,
                                            std::uint32_t scale, const Tables& tables, bool squared,
                                            const Lane& lane) {
  float error[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float of_row = row_error(patch, i, columns_inside, scale, tables, squared, lane);
    error[i] = i < rows_inside ? of_row : 0.0f;
    error[i] = add(error[i], __shfl_xor_sync(kAllLanes, error[i], 2));  // 8 rows away
    error[i] = add(error[i], __shfl_xor_sync(kAllLanes, error[i], 1));  // 4 rows away
  }
  return add(add(error[0], error[2]), add(error[1], error[3]));
}

__device__ __forceinline__ std::uint32_t choose(float error_six, float error_four, std::uint32_t candidates) {
  return error_four < error_six ? candidates >> 8 : candidates & 0xFFu;
}

// Scales of a tile of 16 x 16.
template <Format X, bool kFourOverSix>
__device__ __forceinline__ std::uint32_t tile_scale(const Patch<X>& patch, int rows_inside, int columns_inside,
                                                    const Scaling& scaling, const Tables* tables, bool squared,
                                                    const Lane& lane) {
  const std::uint32_t amax = tile_amax(patch);
  if constexpr (kFourOverSix) {
    const std::uint32_t candidates = candidates_of(amax, scaling);
    return choose(tile_error(patch, rows_inside, columns_inside, candidates & 0xFFu, *tables, squared, lane),
                  tile_error(patch, rows_inside, columns_inside, candidates >> 8, *tables, squared, lane), candidates);
  } else {
    return scales_of(uint2{amax, 0}, scaling) & 0xFFu;
  }
}

// ---- A square of 16 x 64 -------------------------------------------------------------------------------------------

// Codes and scales of a tile on their way out. Rows and columns are kept so that lanes which store together meet in no
// bank.
struct Stage {
  uint4 row_codes[kTile * 2];                 // [slot of row][2 units of 16 B]
  std::uint32_t column_codes[kTileColumns * 16];  // [column][16 words]
  std::uint32_t row_scales[kTile];            // [row][4 blocks]
  uint2 column_scales[kTileColumns];          // [column][8 blocks]

  // Of 16 rows, those that are 4 apart are neighbours. Its own inverse.
  static __device__ __forceinline__ int row_slot(int row) { return (row & ~15) | (row & 3) << 2 | (row >> 2 & 3); }
  static __device__ __forceinline__ int column_word(int column, int word) {
    return column * 16 + ((word >> 1 ^ (column >> 3 & 7)) << 1 | (word & 1));
  }
};

// Where a square lies, and what of the lane's patch lies inside.
struct Place {
  int row, column;  // the patch's first, in the tile
  int rows_inside, columns_inside;
};

template <Format X, bool kStochastic, bool kFourOverSix, bool kAligned>
__device__ __forceinline__ void quantize_rows(const Nvfp4Tiles& a, const Patch<X>& patch, const Place& place,
                                              std::int64_t begin, const Scaling& scaling, const Tables* tables,
                                              Stage& stage, const Lane& lane) {
  const bool upper = lane.g % 2;
  std::uint32_t scales;  // of the 4 rows, a byte each
  float multipliers[4];
  if (a.two_dimensional) {
    const std::uint32_t scale =
        tile_scale<X, kFourOverSix>(patch, place.rows_inside, place.columns_inside, scaling, tables, a.squared, lane);
    scales = 0x0101'0101u * scale;
    multipliers[0] = multipliers[1] = multipliers[2] = multipliers[3] = multiplier_of(scale, scaling);
  } else {
    const uint2 amax = row_amaxes(patch, lane);
    if constexpr (kFourOverSix) {
      scales = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t of_row =
            __shfl_sync(kAllLanes, i % 2 == 0 ? amax.x : amax.y, (lane.lane & ~4) | (i / 2) * 4);
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
      const float other_first = __shfl_xor_sync(kAllLanes, first, 4),
                  other_second = __shfl_xor_sync(kAllLanes, second, 4);
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
    if constexpr (kStochastic) {
      const std::uint8_t* const random = a.row_random + begin + i * a.columns;
      std::uint32_t bytes[2] = {0, 0};
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
template <Format X, bool kStochastic, bool kFourOverSix>
__device__ __forceinline__ void quantize_columns(const Nvfp4Tiles& a, const Patch<X>& patch, const Place& place,
                                                 std::int64_t begin, std::int64_t pitch, const Scaling& scaling,
                                                 const Tables* tables, Stage& stage, const Lane& lane) {
  std::uint32_t own;  // scales of columns 2q and 2q + 1
  float multipliers[8];
  if (a.two_dimensional) {
    const std::uint32_t scale =
        tile_scale<X, kFourOverSix>(patch, place.rows_inside, place.columns_inside, scaling, tables, a.squared, lane);
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
                     column_error(patch, 2 * k + c, place.rows_inside, candidates >> 8, *tables, a.squared, lane),
                     candidates);
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
      if constexpr (kStochastic) {
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
        count[4 * c + i] = kStochastic ? count_stochastic(v, bytes >> (8 * i) & 0xFFu) : count_nearest(v);
      }
    }
    const std::uint32_t codes = pack_counts(count) | column_signs(patch, k);  // 4 rows of two columns
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = place.column + 2 * k + c;
      halves[Stage::column_word(column, place.row / 8) * 2 + place.row / 4 % 2] =
          static_cast<std::uint16_t>(codes >> (16 * c));
    }
  }
}

// ---- Out of the stage ----------------------------------------------------------------------------------------------

// The first `count` bytes of 16.
__device__ __forceinline__ void store_unit(std::uint8_t* to, const uint4& unit, int count) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if (count >= 16 && address % 16 == 0) {
    __stcs(reinterpret_cast<uint4*>(to), unit);
    return;
  }
  const std::uint32_t words[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if (count >= 4 * w + 4 && address % 4 == 0) {
      __stcs(reinterpret_cast<std::uint32_t*>(to) + w, words[w]);
      continue;
    }
#pragma unroll
    for (int i = 4 * w; i < 4 * w + 4; ++i) {
      if (i < count) __stcs(to + i, static_cast<std::uint8_t>(words[w] >> (8 * (i % 4))));
    }
  }
}

// A column of codes of `bytes` bytes to where only bytes are known to be aligned, by 16 lanes: whole words, each put
// together from two of the stage; and by the first 8 of the lanes the bytes at both ends.
__device__ __forceinline__ void store_column(const Stage& stage, int column, std::uint8_t* to, int bytes, int lane) {
  const int past = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) & 3);
  const int first = 4 * lane - past;  // byte of the column where the lane's word begins
  const std::uint32_t own = stage.column_codes[Stage::column_word(column, lane)];
  const std::uint32_t before = stage.column_codes[Stage::column_word(column, max(lane - 1, 0))];
  if (first >= 0 && first + 4 <= bytes) {
    __stcs(reinterpret_cast<std::uint32_t*>(to + first), __funnelshift_l(before, own, 8 * past));
  }
  if (lane >= 8) return;
  const int end = (past + bytes & ~3) - past;  // of whole words; below 0: the first bytes are all
  const int byte = lane < 4 ? lane : end + lane - 4;
  const bool wanted = lane < 4 ? past != 0 && byte < 4 - past : end >= 0;
  if (wanted && byte < bytes) {
    __stcs(to + byte,
           static_cast<std::uint8_t>(stage.column_codes[Stage::column_word(column, byte / 4)] >> (8 * (byte % 4))));
  }
}

// Scales of block numbers first ... first + 3 of line i of a group's stored matrix, `blocks` of which are used.
__device__ __forceinline__ void store_scales(std::uint8_t* group, std::int64_t i, std::int64_t first,
                                             std::int64_t blocks, std::int64_t pitch, bool inside, bool swizzled,
                                             std::uint32_t scales) {
  if (first >= pitch || (!swizzled && !inside)) return;
  std::uint8_t* const to = group + (swizzled ? swizzled_scale_index(i, first, pitch / 4) : i * pitch + first);
  const std::int64_t left = blocks - first;
  if ((swizzled || left >= 4) && reinterpret_cast<std::uintptr_t>(to) % 4 == 0) {
    __stcs(reinterpret_cast<std::uint32_t*>(to), scales);
    return;
  }
#pragma unroll
  for (int b = 0; b < 4; ++b) {
    if (swizzled || b < left) __stcs(to + b, static_cast<std::uint8_t>(scales >> (8 * b)));
  }
}

// ---- Kernels -------------------------------------------------------------------------------------------------------

enum Parts : unsigned { kRowPart = 1, kColumnPart = 2 };

// A tile of 128 rows x 64 columns.
struct Tile {
  // `number`: of 128 rows, those of all groups counted through; `tile`: in the group.
  std::uint32_t group, number, tile;
  Nvfp4Group of_group;
  std::int64_t group_first;              // the group's first element
  std::int64_t first_row, first_column;  // in the group
  int rows, columns;                     // inside

  // False: there is no such tile. Where there are splits and all is skipped, nothing has been noted.
  __device__ __forceinline__ bool find(const Nvfp4Tiles& a, std::uint32_t block, bool skipped) {
    number = block / a.column_tiles;
    const std::uint32_t column_tile = block - number * a.column_tiles;
    if (a.rows.splits == nullptr) {
      group = 0;
      of_group = {0, static_cast<std::uint32_t>(a.rows.capacity), 0, 0};
    } else {
      group = __ldg(a.group_of_tile + number);
      if (skipped || group == kNvfp4NoGroup) return false;
      const uint4 words = __ldg(reinterpret_cast<const uint4*>(a.groups + group));
      of_group = {words.x, words.y, words.z, words.w};
    }
    tile = number - of_group.tiles_before;
    group_first = std::int64_t{of_group.first_row} * a.columns;
    first_row = std::int64_t{tile} * kTile;
    first_column = std::int64_t{column_tile} * kTileColumns;
    rows = static_cast<int>(min(of_group.rows - tile * kTile, std::uint32_t{kTile}));
    columns = static_cast<int>(min(a.columns - first_column, std::int64_t{kTileColumns}));
    return true;
  }

  // The lane's part of the warp's square.
  __device__ __forceinline__ Place square(const Lane& lane) const {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    Place place;
    place.row = warp * kBlock + 4 * lane.q;
    place.column = 8 * lane.g;
    place.rows_inside = rows - place.row;
    place.columns_inside = columns - place.column;
    return place;
  }
  __device__ __forceinline__ std::int64_t begin(const Place& place, std::int64_t all_columns) const {
    return group_first + (first_row + place.row) * all_columns + first_column + place.column;
  }
  __device__ __forceinline__ std::int64_t column_begin(const Place& place) const {
    return group_first + (first_column + place.column) * of_group.rows + first_row + place.row;
  }
};

__device__ __forceinline__ Scaling load_scaling(const Scaling* scalings, std::uint32_t group) {
  const float4 all = __ldg(reinterpret_cast<const float4*>(scalings + group));
  return {all.x, all.y, all.z, all.w};
}

// By all threads of a block.
template <unsigned kParts>
__device__ __forceinline__ void store_stage(const Nvfp4Tiles& a, const Tile& at, const Stage& stage, bool with_rows,
                                            bool with_columns) {
  using RowLayout = ScaleLayoutOf<Recipe::nvfp4, Direction::rowwise>;
  using ColumnLayout = ScaleLayoutOf<Recipe::nvfp4, Direction::columnwise>;
  const int thread = static_cast<int>(threadIdx.x);
  if ((kParts & kRowPart) && with_rows && a.row_data != nullptr) {
    const int slot = thread / 2, unit = thread % 2, row = Stage::row_slot(slot);
    if (row < at.rows) {
      std::uint8_t* const to =
          a.row_data + (at.group_first + (at.first_row + row) * a.columns + at.first_column) / 2 + 16 * unit;
      store_unit(to, stage.row_codes[thread], at.columns / 2 - 16 * unit);
    }
  }
  if (with_columns && a.column_data != nullptr) {
    std::uint8_t* const to = a.column_data + (at.group_first + at.first_column * at.of_group.rows + at.first_row) / 2;
    const std::uint32_t pitch = at.of_group.rows / 2;
    if ((reinterpret_cast<std::uintptr_t>(to) | pitch) % 16 == 0 && at.rows % 32 == 0) {
      const int column = thread / 4, unit = thread % 4;
      const auto* const pairs = reinterpret_cast<const uint2*>(stage.column_codes);
      const uint2 low = pairs[Stage::column_word(column, 4 * unit) / 2],
                  high = pairs[Stage::column_word(column, 4 * unit + 2) / 2];
      if (column < at.columns && 32 * unit < at.rows) {
        __stcs(reinterpret_cast<uint4*>(to + std::int64_t{pitch} * column) + unit,
               uint4{low.x, low.y, high.x, high.y});
      }
    } else {
#pragma unroll
      for (int part = 0; part < kTileColumns * 16 / kThreads; ++part) {
        const int column = part * (kThreads / 16) + thread / 16;
        if (column < at.columns)
          store_column(stage, column, to + std::int64_t{pitch} * column, at.rows / 2, thread % 16);
      }
    }
  }
  if (thread < kTile) {
    if ((kParts & kRowPart) && with_rows && a.row_scale != nullptr) {
      const std::int64_t pitch = RowLayout::pitch(at.of_group.rows, a.columns);
      std::uint8_t* const group = a.row_scale + std::int64_t{at.of_group.tiles_before} * kTile * pitch;
      store_scales(group, at.first_row + thread, at.first_column / kBlock, ceil_div(a.columns, kBlock), pitch,
                   thread < at.rows, a.swizzled, stage.row_scales[thread]);
    }
  } else if (with_columns && a.column_scale != nullptr) {
    const int column = (thread - kTile) / 2, half = thread % 2;
    const std::int64_t pitch = ColumnLayout::pitch(at.of_group.rows, a.columns);
    std::uint8_t* const group =
        a.column_scale + std::int64_t{at.of_group.columns_before} * ColumnLayout::factor(a.columns);
    const uint2 scales = stage.column_scales[column];
    store_scales(group, at.first_column + column, at.first_row / kBlock + 4 * half, ceil_div(at.of_group.rows, kBlock),
                 pitch, column < at.columns, a.swizzled, half == 0 ? scales.x : scales.y);
    // Swizzled scales go in tiles of 128 columns; this one may be the last of 64.
    if (a.swizzled && at.first_column % kTile == 0 && at.first_column + kTileColumns >= a.columns) {
      store_scales(group, at.first_column + kTileColumns + column, at.first_row / kBlock + 4 * half, 0, pitch, false,
                   true, 0);
    }
  }
}

template <bool kFourOverSix>
struct Shared {
  Stage stage;
};
template <>
struct Shared<true> {
  Stage stage;
  Tables row_tables, column_tables;
};

template <Format X, bool kHadamard, bool kStochastic, bool kFourOverSix, bool kAligned, unsigned kParts>
__global__ void __launch_bounds__(kThreads, kFourOverSix || Element<X>::kBytes == 4                        ? 2
                                            : kHadamard && !ASSAY_NVFP4_MMA ? 2
                                            : kHadamard && kStochastic      ? 3
                                            : kHadamard || kStochastic      ? 4
                                                                            : kBlocksAnSm)
    quantize_tiles(const __grid_constant__ Nvfp4Tiles a) {
  const bool skipped = is_skipped(a.skip);
  __shared__ Shared<kFourOverSix> shared;
  Tile at;
  if (!at.find(a, a.backward ? a.blocks - 1 - blockIdx.x : blockIdx.x, skipped)) return;
  const Lane lane;
  const bool with_rows = (kParts & kRowPart) && (a.row_data != nullptr || a.row_scale != nullptr);
  const bool with_columns = a.column_data != nullptr || a.column_scale != nullptr;
  const Place place = at.square(lane);
  Patch<X> patch;
  load_patch<X, kAligned>(patch,
                          static_cast<const unsigned char*>(a.x) + at.begin(place, a.columns) * Element<X>::kBytes,
                          a.columns, place.rows_inside, place.columns_inside);
  if (skipped) return;  // asked only now, so that x is on its way meanwhile
  static_assert(!kFourOverSix || kThreads == 2 * kTile);
  const Tables *row_tables = nullptr, *column_tables = nullptr;
  if constexpr (kFourOverSix) {
    const int thread = static_cast<int>(threadIdx.x);
    row_tables = &shared.row_tables, column_tables = &shared.column_tables;
    if (thread < kTile) {
      if (with_rows) shared.row_tables.fill(load_scaling(a.row_scaling, at.group), a.e4m3_max, thread);
    } else {
      if (with_columns)
        shared.column_tables.fill(load_scaling(a.column_scaling, at.group), a.e4m3_max, thread - kTile);
    }
    __syncthreads();
  }
  if (with_rows) {
    settle_signs(patch, a.zero);
    quantize_rows<X, kStochastic, kFourOverSix, kAligned>(a, patch, place, at.begin(place, a.columns),
                                                          load_scaling(a.row_scaling, at.group), row_tables,
                                                          shared.stage, lane);
  }
  if (with_columns) {
    if constexpr (kHadamard) {
      transform(patch, Factors(a.sign_mask, lane));
      drop_rows(patch, place.rows_inside);
    }
    if (kHadamard || !with_rows) settle_signs(patch, a.zero);
    quantize_columns<X, kStochastic, kFourOverSix>(a, patch, place, at.column_begin(place), at.of_group.rows,
                                                   load_scaling(a.column_scaling, at.group), column_tables,
                                                   shared.stage, lane);
  }
  __syncthreads();
  store_stage<kParts>(a, at, shared.stage, with_rows, with_columns);
}

// max |x| and max |y| of each group, y being the transform.
template <bool kAligned>
__global__ void __launch_bounds__(kThreads, ASSAY_NVFP4_MMA ? 5 : 3)
    find_amaxes(const __grid_constant__ Nvfp4Tiles a) {
  constexpr Format X = Format::bf16;
  const bool skipped = is_skipped(a.skip);
  __shared__ std::uint32_t of_warp[2][kThreads / 32];
  Tile at;
  if (!at.find(a, blockIdx.x, skipped)) return;
  const Lane lane;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Place place = at.square(lane);
  Patch<X> patch;
  load_patch<X, kAligned>(patch, static_cast<const std::uint16_t*>(a.x) + at.begin(place, a.columns), a.columns,
                          place.rows_inside, place.columns_inside);
  if (skipped) return;
  std::uint32_t row_amax = 0, column_amax = 0;
  if (a.row_amax_bits != nullptr) row_amax = own_amax(patch);
  if (a.column_amax_bits != nullptr) {
    transform(patch, Factors(a.sign_mask, lane));
    drop_rows(patch, place.rows_inside);
    column_amax = own_amax(patch);
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

// nvfp4_rows.cuh.
template <Format X, bool kStochastic>
void launch_rows(const Nvfp4Tiles& tiles, cudaStream_t stream);

template <Format X, bool kHadamard, bool kStochastic, bool kFourOverSix>
void launch_kind(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  if constexpr (Element<X>::kBytes == 2 && !kHadamard && !kFourOverSix) {
    if (tiles.way == Nvfp4Way::rows) return launch_rows<X, kStochastic>(tiles, stream);
  }
  const bool rows = tiles.row_data != nullptr || tiles.row_scale != nullptr;
  void (*kernel)(Nvfp4Tiles) = quantize_tiles<X, kHadamard, kStochastic, kFourOverSix, false, kRowPart | kColumnPart>;
  if (tiles.aligned) {
    kernel = rows ? quantize_tiles<X, kHadamard, kStochastic, kFourOverSix, true, kRowPart | kColumnPart>
                  : quantize_tiles<X, kHadamard, kStochastic, kFourOverSix, true, kColumnPart>;
  }
  kernel<<<tiles.blocks, kThreads, 0, stream>>>(tiles);
  check_launch("nvfp4: quantize_tiles");
}

template <Format X>
void launch_plain(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  tiles.four_over_six ? launch_kind<X, false, false, true>(tiles, stream)
  : tiles.stochastic  ? launch_kind<X, false, true, false>(tiles, stream)
                      : launch_kind<X, false, false, false>(tiles, stream);
}

}  // namespace nvfp4

#endif  // __CUDACC__

}  // namespace assay::device
