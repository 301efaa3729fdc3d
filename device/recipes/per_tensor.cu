// FP8 with one scale for each group, given (delayed scaling) or from the group's amax (current scaling).
//
//   traffic   rowwise: 2 B read + 1 B written per bf16 element; both directions: 2 + 2; current scaling reads x twice
//   ceiling   HBM
//   launches  current scaling: clear the amaxes, raise them, cast. Delayed: the cast alone; its amax output adds the clearing.
//   layout    rowwise alone: straight through memory, a warp takes 512 B of x and writes 256 B of codes at a time
//             with columnwise codes or dbias: tiles of 128 x 128. A thread holds 8 columns of 8 rows: the rowwise codes
//             leave from registers, the transposed ones through 16 KiB of shared memory, 128 B of a column at a time
//   order     amax is a maximum of magnitudes, so no order can change it; column sums have the order of dbias.h
//   L2        current scaling reads x upward for the amax and downward for the cast: what was read last is still there
//   matches   reference/recipes/per_tensor.h

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/layout/group_table.cuh"
#include "device/recipes/dbias.h"
#include "device/recipes/group_amax.h"
#include "device/recipes/quantize.h"
#include "device/support/launch_check.h"
#include "device/support/noop.cuh"

namespace assay::device {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;
constexpr std::uint32_t kBandTiles = 8;

// The scale of each group: as given, or from its amax. Told in two steps, so that a kernel can ask for its elements in
// between: what is in memory, and what that means.
struct TensorScales {
  const std::uint32_t* in_memory = nullptr;  // [groups] bits of f32
  bool given = false;
  float max = 448;
  float epsilon = 0;
  bool pow2 = false;

  __device__ std::uint32_t read(int group) const { return __ldg(in_memory + group); }
  __device__ float scale(std::uint32_t read) const {
    return given ? float_of_bits(read) : scale_from_amax(read, max, pow2, epsilon, 0x7F7F'FFFFu);  // FLT_MAX
  }
};

struct CastArguments {
  const void* x;
  Rows rows;
  std::int64_t columns;
  const float* noop;
  std::uint32_t* status;
  TensorScales scales;
  float zero;                 // addend of the product: the sign of zeros
  std::uint8_t* rowwise;      // any output may be null
  std::uint8_t* columnwise;
  std::uint32_t* amax_bits;   // raised
  float* scale_inv;
  float* scale;
  float* tile_sums;           // of dbias
  bool vectors;               // rows of x and of rowwise codes begin at whole vectors
  bool backward;              // the last part first
};

// scale_inv and scale of all groups, by one block.
__device__ void write_scales(const TensorScales& scales, int groups, float* scale, float* scale_inv) {
  for (int t = static_cast<int>(threadIdx.x); t < groups; t += static_cast<int>(blockDim.x)) {
    const float value = scales.scale(scales.read(t));
    if (scale != nullptr) scale[t] = value;
    if (scale_inv != nullptr) scale_inv[t] = stored_float(reciprocal(value));
  }
}

// Raises *amax_bits to the largest of a warp's gathered maxima. Most warps find that it is there already.
template <Format kX>
__device__ void raise_amax(std::uint32_t* amax_bits, std::uint32_t gathered) {
  const std::uint32_t bits = __reduce_max_sync(0xFFFFFFFFu, Element<kX>::amax_bits(gathered));
  if (threadIdx.x % 32 == 0 && bits > *static_cast<volatile std::uint32_t*>(amax_bits)) atomicMax(amax_bits, bits);
}

template <Format kX>
__device__ std::uint32_t load_element(const void* x, std::int64_t i) {
  if constexpr (kX == Format::f32) {
    return static_cast<const std::uint32_t*>(x)[i];
  } else {
    return static_cast<const std::uint16_t*>(x)[i];
  }
}

// 16 bytes of x: 8 elements, or 4 of f32.
template <Format kX>
constexpr unsigned kSpan = 16 / Element<kX>::kBytes;

__device__ inline std::uint32_t word_of(const uint4& vector, int i) {
  return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
}

// Element i of a vector; i is known after unrolling.
template <Format kX>
__device__ float element_of(const uint4& vector, int i) {
  constexpr int kPerWord = Element<kX>::kPerWord;
  return Element<kX>::widen(word_of(vector, i / kPerWord), i % kPerWord);
}

template <Format kX>
__device__ std::uint32_t raise_vector(std::uint32_t gathered, const uint4& vector) {
  using E = Element<kX>;
  return E::raise(E::raise(E::raise(E::raise(gathered, vector.x), vector.y), vector.z), vector.w);
}

// Codes of elements first, ..., first + 3 of a vector, the first in the lowest byte.
template <Format kX, Format kOut>
__device__ std::uint32_t encode_four(const uint4& vector, int first, float scale, float zero) {
  const auto product = [&](int i) { return multiply_with_zero(element_of<kX>(vector, first + i), scale, zero); };
  return encode_fp8x4<kOut>(product(0), product(1), product(2), product(3));
}

// ---------------------------------------------------------------------------------------------------------------------
// Straight through memory: rowwise codes, or the amax alone, or both.

template <bool kCast>
constexpr int kVectorsInFlight = kCast ? 4 : 8;  // of each thread
template <Format kX, bool kCast>
constexpr std::int64_t kChunk = std::int64_t{kThreads} * kVectorsInFlight<kCast> * kSpan<kX>;  // elements

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

// One block takes chunks of equal length, each of which is whole groups or parts of groups.
template <Format kX, Format kOut, bool kCast, bool kAmax>
__global__ void __launch_bounds__(kThreads, kCast && !kAmax ? 6 : 4) run_through(const CastArguments a) {
  if (is_skipped(a.noop)) return;
  __shared__ GroupTable<> table;
  const bool ragged = a.rows.splits != nullptr;
  if (ragged && !table.build(a.rows, a.status)) return;
  if (kCast && blockIdx.x == 0) write_scales(a.scales, a.rows.groups, a.scale, a.scale_inv);

  constexpr int kCount = kVectorsInFlight<kCast>;
  constexpr std::int64_t kElements = kChunk<kX, kCast>;
  const std::int64_t used = (ragged ? table.first_row(a.rows.groups) : a.rows.capacity) * a.columns;
  const std::int64_t chunks = (used + kElements - 1) / kElements;
  std::uint32_t gathered = 0;
  int raised_group = 0;

  const auto cast_vector = [&](std::int64_t at, const uint4& vector, float scale) {  // `at` counts vectors
    if constexpr (kX == Format::f32) {
      __stcs(reinterpret_cast<std::uint32_t*>(a.rowwise) + at, encode_four<kX, kOut>(vector, 0, scale, a.zero));
    } else {
      __stcs(reinterpret_cast<uint2*>(a.rowwise) + at, make_uint2(encode_four<kX, kOut>(vector, 0, scale, a.zero),
                                                                  encode_four<kX, kOut>(vector, 4, scale, a.zero)));
    }
  };

  for (std::int64_t turn = blockIdx.x; turn < chunks; turn += gridDim.x) {
    const std::int64_t chunk = a.backward ? chunks - 1 - turn : turn;
    const std::int64_t first = chunk * kElements, end = min(first + kElements, used);
    int t = 0;
    std::int64_t group_end = used;
    if (ragged) {
      t = group_of_element(table, a.rows.groups, a.columns, first);
      group_end = table.first_row(t + 1) * a.columns;
    }

    if (first + kElements <= group_end && a.vectors) {  // one group, as nearly always
      const uint4* const from = static_cast<const uint4*>(a.x) + first / kSpan<kX> + threadIdx.x;
      const std::uint32_t scale_read = kCast ? a.scales.read(t) : 0;
      uint4 vectors[kCount];
#pragma unroll
      for (int i = 0; i < kCount; ++i) vectors[i] = kCast ? __ldcs(from + i * kThreads) : __ldg(from + i * kThreads);
      const float scale = kCast ? a.scales.scale(scale_read) : 0;
      if (kAmax && t != raised_group) {
        raise_amax<kX>(a.amax_bits + raised_group, gathered);
        gathered = 0;
        raised_group = t;
      }
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (kAmax) gathered = raise_vector<kX>(gathered, vectors[i]);
        if (kCast) cast_vector(first / kSpan<kX> + i * kThreads + threadIdx.x, vectors[i], scale);
      }
      continue;
    }

    for (std::int64_t from = first; from < end;) {  // group by group; vectors that two share element by element
      const std::int64_t to = min(end, group_end);
      const float scale = kCast ? a.scales.scale(a.scales.read(t)) : 0;
      if (kAmax && t != raised_group) {
        raise_amax<kX>(a.amax_bits + raised_group, gathered);
        gathered = 0;
        raised_group = t;
      }
      for (std::int64_t v = from / kSpan<kX> + threadIdx.x; v * kSpan<kX> < to; v += kThreads) {
        const std::int64_t begin = v * kSpan<kX>;
        if (begin >= from && begin + kSpan<kX> <= to && a.vectors) {
          const uint4 vector = static_cast<const uint4*>(a.x)[v];
          if (kAmax) gathered = raise_vector<kX>(gathered, vector);
          if (kCast) cast_vector(v, vector, scale);
          continue;
        }
        for (std::int64_t i = max(begin, from); i < min(begin + kSpan<kX>, to); ++i) {
          const std::uint32_t bits = load_element<kX>(a.x, i);
          if (kAmax) gathered = Element<kX>::raise(gathered, bits);
          if (kCast) {
            a.rowwise[i] = encode_fp8<kOut>(multiply_with_zero(Element<kX>::widen_one(bits), scale, a.zero));
          }
        }
      }
      from = to;
      while (from < end && group_end <= from) {
        ++t;
        group_end = table.first_row(t + 1) * a.columns;
      }
    }
  }
  if (kAmax) raise_amax<kX>(a.amax_bits + raised_group, gathered);
}

// ---------------------------------------------------------------------------------------------------------------------
// Tiles of 128 x 128: transposed codes, column sums.

// Four rows of four codes, a row a word, to four columns, a column a word.
__device__ inline void transpose_four(const std::uint32_t (&row)[4], std::uint32_t (&column)[4]) {
  const std::uint32_t a = __byte_perm(row[0], row[1], 0x5140), b = __byte_perm(row[0], row[1], 0x7362);
  const std::uint32_t c = __byte_perm(row[2], row[3], 0x5140), d = __byte_perm(row[2], row[3], 0x7362);
  column[0] = __byte_perm(a, c, 0x5410);
  column[1] = __byte_perm(a, c, 0x7632);
  column[2] = __byte_perm(b, d, 0x5410);
  column[3] = __byte_perm(b, d, 0x7632);
}

// The codes of a tile, transposed: 32 words of 4 rows for each of 128 columns. Word w of column k lies at w ^ twist(k), so
// that the 32 threads of a warp that write words w and w + 1 of 16 columns, as well as those that read one column, find 32
// banks.
template <Format kX>
struct TransposedCodes {
  std::uint32_t word[kTile][kTile / 4];
  static __device__ unsigned twist(unsigned column) { return 2 * (column / kSpan<kX> % 16); }
};

// dst: element (first column, first row) of the tile in the transposed codes of the group, whose columns are `pitch` apart.
template <Format kX>
__device__ void store_transposed(const TransposedCodes<kX>& codes, std::uint8_t* dst, std::int64_t pitch, unsigned rows,
                                 unsigned columns) {
  const unsigned thread = threadIdx.x;
  if ((reinterpret_cast<std::uintptr_t>(dst) % 16 | pitch % 16 | rows % 16) == 0) {
    const unsigned v = thread % 8;  // 16 rows each
    std::uint8_t* to = dst + thread / 8 * pitch + 16 * v;
#pragma unroll
    for (unsigned i = 0; i < kTile * 8 / kThreads; ++i) {
      const unsigned column = thread / 8 + i * (kThreads / 8), twist = codes.twist(column);
      uint4 vector = reinterpret_cast<const uint4*>(codes.word[column])[v ^ twist / 4];
      if (twist % 4 != 0) vector = make_uint4(vector.z, vector.w, vector.x, vector.y);
      if (column < columns && 16 * v < rows) __stcs(reinterpret_cast<uint4*>(to + i * (kThreads / 8) * pitch), vector);
    }
    return;
  }

  // Columns begin anywhere: a warp writes the whole words of one, shifted into place, ...
  const unsigned warp = thread / 32, lane = thread % 32;
  constexpr unsigned kColumnsOfWarp = kTile / (kThreads / 32);
#pragma unroll 4
  for (unsigned i = 0; i < kColumnsOfWarp; ++i) {
    const unsigned column = warp * kColumnsOfWarp + i;
    std::uint8_t* const to = dst + column * pitch;
    const auto before = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(to) % 4);  // bytes of the first word not ours
    const std::uint32_t upper = codes.word[column][lane ^ codes.twist(column)];
    const std::uint32_t lower = __shfl_up_sync(0xFFFFFFFFu, upper, 1);
    const unsigned end = 4 * lane + 4 - before;  // row after the word's last
    if (column < columns && end >= 4 && end <= rows) {
      reinterpret_cast<std::uint32_t*>(to + end)[-1] = __funnelshift_l(lower, upper, 8 * before);
    }
  }
  // ... then the bytes of its first and last word that share theirs with others: 8 threads a column, up to 3 for each end.
  for (unsigned i = 0; i < kColumnsOfWarp; i += 4) {
    const unsigned column = warp * kColumnsOfWarp + i + lane / 8, byte = lane % 8;
    std::uint8_t* const to = dst + column * pitch;
    const auto before = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(to) % 4);
    const unsigned head = min((4 - before) % 4, rows), tail = (rows - head) % 4;
    const unsigned row = byte < 4 ? byte : rows - tail + byte - 4;
    if (column < columns && (byte < 4 ? byte < head : byte - 4 < tail)) {
      to[row] = static_cast<std::uint8_t>(codes.word[column][row / 4 ^ codes.twist(column)] >> row % 4 * 8);
    }
  }
}

// The shared memory of cast_tiles beside its table.
template <Format kX>
struct SharedTile {
  TransposedCodes<kX> codes;
};
template <Format kX>
struct SharedTileWithSums : SharedTile<kX> {
  uint4 x[kTile][kTile / kSpan<kX>];
  float second_half[kTile];
};

// kVectors: a row of a tile begins at a whole vector of x and, if there are any, of rowwise codes.
template <Format kX, Format kOut, bool kSums, bool kVectors>
__global__ void __launch_bounds__(kThreads, kX == Format::f32 && kSums ? 2 : 4) cast_tiles(const CastArguments a) {
  if (is_skipped(a.noop)) return;
  extern __shared__ uint4 dynamic_shared[];
  using Shared = SharedTileWithSums<kX>;
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
  __shared__ GroupTable<Blocks<kTile>> table;
  const bool ragged = a.rows.splits != nullptr;
  if (ragged && !table.build(a.rows, a.status)) return;
  if (blockIdx.x == 0) write_scales(a.scales, a.rows.groups, a.scale, a.scale_inv);

  constexpr unsigned kParts = 8 / kSpan<kX>;        // vectors of a thread in a row: 16 threads read 256 B side by side
  constexpr unsigned kHalves = kParts == 1 ? 2 : 1;  // halves of the tile that are read before the first is used
  const unsigned thread = threadIdx.x;
  const unsigned tx = thread % 16, ty = thread / 16;  // the thread's columns and rows
  const auto tiles_across = static_cast<std::uint32_t>((a.columns + kTile - 1) / kTile);
  const std::uint32_t tiles_down = ragged ? table.total(0, a.rows.groups) : Blocks<kTile>::of(static_cast<std::uint32_t>(a.rows.capacity));
  const std::uint32_t tiles = tiles_across * tiles_down;

  for (std::uint32_t turn = blockIdx.x; turn < tiles; turn += gridDim.x) {
    // Bands of kBandTiles tiles down, each walked downward first: blocks that run together write 1 KiB of a column, and
    // what neighbours share of a sector meets in L2.
    const std::uint32_t tile = a.backward ? tiles - 1 - turn : turn;
    const std::uint32_t band_tiles = kBandTiles * tiles_across, band = tile / band_tiles, in_band = tile - band * band_tiles;
    const std::uint32_t band_height = min(tiles_down - band * kBandTiles, kBandTiles);
    const std::uint32_t across = band_height == kBandTiles ? in_band / kBandTiles : in_band / band_height;
    const std::uint32_t down = band * kBandTiles + in_band - across * band_height;
    int group = 0;
    std::uint32_t first_row = 0, group_rows = static_cast<std::uint32_t>(a.rows.capacity), first_tile = 0;
    if (ragged) {
      group = table.find(0, down, a.rows.groups);
      first_row = table.first_row(group);
      group_rows = table.rows(group);
      first_tile = table.before(0, group);
    }
    const std::uint32_t row_in_group = (down - first_tile) * kTile;
    const std::int64_t first_column = std::int64_t{across} * kTile;
    const unsigned rows = min(group_rows - row_in_group, static_cast<std::uint32_t>(kTile));
    const auto columns = static_cast<unsigned>(min(a.columns - first_column, std::int64_t{kTile}));
    const std::int64_t first = (std::int64_t{first_row} + row_in_group) * a.columns + first_column;  // element of the tile
    const std::uint32_t scale_read = a.scales.read(group);
    std::uint32_t gathered = 0;

    // Row 64 * h + 4 * ty + q, columns 64 * p + kSpan * tx and on; `corner` is the first of them.
    const std::int64_t corner = first + std::int64_t{4 * ty} * a.columns + kSpan<kX> * tx;
    const char* const x_corner = static_cast<const char*>(a.x) + corner * Element<kX>::kBytes;
#pragma unroll
    for (unsigned half = 0; half < 2; half += kHalves) {
      uint4 x[kHalves][4][kParts];
      if constexpr (kVectors) {
#pragma unroll
        for (unsigned i = 0; i < kHalves * 4 * kParts; ++i) {
          const unsigned h = i / (4 * kParts), q = i / kParts % 4, p = i % kParts;
          const unsigned row = 64 * (half + h) + 4 * ty + q, column = 64 * p + kSpan<kX> * tx;
          x[h][q][p] = make_uint4(0, 0, 0, 0);
          if (row < rows && column < columns) {
            const std::int64_t step = std::int64_t{64 * (half + h) + q} * a.columns + 64 * p;  // the same for all threads
            x[h][q][p] = __ldcs(reinterpret_cast<const uint4*>(x_corner + step * Element<kX>::kBytes));
          }
        }
      } else {
#pragma unroll
        for (unsigned i = 0; i < kHalves * 4 * kParts; ++i) {
          const unsigned h = i / (4 * kParts), q = i / kParts % 4, p = i % kParts;
          const unsigned row = 64 * (half + h) + 4 * ty + q, column = 64 * p + kSpan<kX> * tx;
          std::uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
          for (unsigned e = 0; e < kSpan<kX>; ++e) {
            if (row < rows && column + e < columns) {
              const std::uint32_t bits = load_element<kX>(a.x, first + row * a.columns + column + e);
              words[e / Element<kX>::kPerWord] |= bits << e % Element<kX>::kPerWord * 16;
            }
          }
          x[h][q][p] = make_uint4(words[0], words[1], words[2], words[3]);
        }
      }

      const float scale = a.scales.scale(scale_read);
      if (a.amax_bits != nullptr) {
#pragma unroll
        for (unsigned i = 0; i < kHalves * 4 * kParts; ++i) {
          gathered = raise_vector<kX>(gathered, x[i / (4 * kParts)][i / kParts % 4][i % kParts]);
        }
      }

#pragma unroll
      for (unsigned h = 0; h < kHalves; ++h) {
#pragma unroll
        for (unsigned p = 0; p < kParts; ++p) {
          const unsigned row = 64 * (half + h) + 4 * ty, column = 64 * p + kSpan<kX> * tx;
          std::uint32_t codes[kSpan<kX> / 4][4];  // [four columns][row]
#pragma unroll
          for (unsigned q = 0; q < 4; ++q) {
#pragma unroll
            for (unsigned f = 0; f < kSpan<kX> / 4; ++f) codes[f][q] = encode_four<kX, kOut>(x[h][q][p], 4 * f, scale, a.zero);
            if (kSums) shared.x[row + q][16 * p + tx] = x[h][q][p];
          }
          if (a.rowwise != nullptr) {
#pragma unroll
            for (unsigned q = 0; q < 4; ++q) {
              if (row + q >= rows) continue;
              std::uint8_t* const to = a.rowwise + corner + (std::int64_t{64 * (half + h) + q} * a.columns + 64 * p);
              if constexpr (kVectors) {
                if (column < columns) {
                  if constexpr (kX == Format::f32) {
                    __stcs(reinterpret_cast<std::uint32_t*>(to), codes[0][q]);
                  } else {
                    __stcs(reinterpret_cast<uint2*>(to), make_uint2(codes[0][q], codes[1][q]));
                  }
                }
              } else {
#pragma unroll
                for (unsigned e = 0; e < kSpan<kX>; ++e) {
                  if (column + e < columns) to[e] = static_cast<std::uint8_t>(codes[e / 4][q] >> e % 4 * 8);
                }
              }
            }
          }
          if (a.columnwise != nullptr) {
#pragma unroll
            for (unsigned f = 0; f < kSpan<kX> / 4; ++f) {
              std::uint32_t by_column[4];
              transpose_four(codes[f], by_column);
#pragma unroll
              for (unsigned c = 0; c < 4; ++c) {
                shared.codes.word[column + 4 * f + c][row / 4 ^ TransposedCodes<kX>::twist(column)] = by_column[c];
              }
            }
          }
        }
      }
    }
    __syncthreads();

    // Column sums: a thread adds 64 rows of one word's columns, one row after the other. Rows past the end are +0, which
    // changes no sum: it begins with +0 and so is never -0.
    constexpr unsigned kWords = kTile / Element<kX>::kPerWord;  // of a row
    [[maybe_unused]] const unsigned sum_half = thread / kWords, sum_word = thread % kWords;
    [[maybe_unused]] float sums[2] = {0, 0};
    if constexpr (kSums) {
      if (sum_half < 2) {
        const auto* const words = reinterpret_cast<const std::uint32_t*>(shared.x[64 * sum_half]) + sum_word;
#pragma unroll 16
        for (unsigned r = 0; r < 64; ++r) {
          const std::uint32_t word = words[r * kWords];
#pragma unroll
          for (unsigned e = 0; e < Element<kX>::kPerWord; ++e) sums[e] = add(sums[e], Element<kX>::widen(word, e));
        }
        if (sum_half == 1) {
#pragma unroll
          for (unsigned e = 0; e < Element<kX>::kPerWord; ++e) shared.second_half[Element<kX>::kPerWord * sum_word + e] = sums[e];
        }
      }
    }
    if (a.columnwise != nullptr) {
      const std::int64_t base = std::int64_t{first_row} * a.columns + first_column * group_rows + row_in_group;
      store_transposed(shared.codes, a.columnwise + base, group_rows, rows, columns);
    }
    if (a.amax_bits != nullptr) raise_amax<kX>(a.amax_bits + group, gathered);
    __syncthreads();
    if constexpr (kSums) {
      if (sum_half == 0) {
#pragma unroll
        for (unsigned e = 0; e < Element<kX>::kPerWord; ++e) {
          const unsigned column = Element<kX>::kPerWord * sum_word + e;
          if (column < columns) {
            a.tile_sums[down * a.columns + first_column + column] = add(sums[e], shared.second_half[column]);
          }
        }
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// One block: the start of a call whose amaxes are raised, and a call without elements.

__global__ void __launch_bounds__(1024) clear_amaxes(const Rows rows, const float* noop, std::uint32_t* status,
                                                     std::uint32_t* amax_bits) {
  if (is_skipped(noop)) return;
  __shared__ GroupTable<> table;
  if (rows.splits != nullptr && !table.build(rows, status)) return;
  for (int t = static_cast<int>(threadIdx.x); t < rows.groups; t += 1024) amax_bits[t] = 0;
}

__global__ void __launch_bounds__(1024) scales_alone(const Rows rows, const float* noop, std::uint32_t* status,
                                                     const TensorScales scales, float* scale, float* scale_inv) {
  if (is_skipped(noop)) return;
  __shared__ GroupTable<> table;
  if (rows.splits != nullptr && !table.build(rows, status)) return;
  write_scales(scales, rows.groups, scale, scale_inv);
}

// ---------------------------------------------------------------------------------------------------------------------

int multiprocessors() {
  int device = 0, count = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  return count;
}

// Blocks for `pieces` of equal work: one each, but where a block first has to read the splits it stays and takes several.
unsigned blocks_for(std::int64_t pieces, const Rows& rows, int resident) {
  const std::int64_t most = rows.splits == nullptr ? std::int64_t{1} << 30 : std::int64_t{multiprocessors()} * resident;
  return static_cast<unsigned>(std::clamp<std::int64_t>(pieces, 1, most));
}

template <Format kX, Format kOut, bool kCast, bool kAmax>
void launch_run_through(const CastArguments& a, Stream stream) {
  const std::int64_t chunks = (a.rows.capacity * a.columns + kChunk<kX, kCast> - 1) / kChunk<kX, kCast>;
  // The amax alone gathers over chunks before it asks memory for the maximum so far.
  const std::int64_t staying = std::int64_t{multiprocessors()} * 4;
  unsigned blocks = blocks_for(chunks, a.rows, kCast && !kAmax ? 6 : 4);
  if (!kCast) blocks = static_cast<unsigned>(std::clamp<std::int64_t>(chunks, 1, staying));
  run_through<kX, kOut, kCast, kAmax><<<blocks, kThreads, 0, stream>>>(a);
  check_launch("per_tensor: run_through");
}

template <Format kX, Format kOut, bool kSums, bool kVectors>
void launch_tiles(const CastArguments& a, Stream stream) {
  constexpr int kBytes = kSums ? sizeof(SharedTileWithSums<kX>) : sizeof(SharedTile<kX>);
  if constexpr (kSums) {
    check_cuda(cudaFuncSetAttribute(cast_tiles<kX, kOut, kSums, kVectors>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
               "cudaFuncSetAttribute");
  }
  const std::int64_t tiles = max_tiles(a.rows, kTile) * ((a.columns + kTile - 1) / kTile);
  if (tiles >= std::int64_t{1} << 31) throw NotSupported("rows and columns make more tiles of 128 x 128 than 2^31");
  const unsigned blocks = blocks_for(tiles, a.rows, kX == Format::f32 && kSums ? 2 : 4);
  cast_tiles<kX, kOut, kSums, kVectors><<<blocks, kThreads, kBytes, stream>>>(a);
  check_launch("per_tensor: cast_tiles");
}

template <Format kX, Format kOut>
void launch_cast(const CastArguments& a, Stream stream) {
  if (a.tile_sums != nullptr) {
    return a.vectors ? launch_tiles<kX, kOut, true, true>(a, stream) : launch_tiles<kX, kOut, true, false>(a, stream);
  }
  if (a.columnwise != nullptr) {
    return a.vectors ? launch_tiles<kX, kOut, false, true>(a, stream) : launch_tiles<kX, kOut, false, false>(a, stream);
  }
  return a.amax_bits != nullptr ? launch_run_through<kX, kOut, true, true>(a, stream)
                                : launch_run_through<kX, kOut, true, false>(a, stream);
}

template <Format kX>
void launch_amax(const CastArguments& a, Stream stream) {
  launch_run_through<kX, Format::e4m3, false, true>(a, stream);
}

bool is_aligned(const void* pointer, std::uintptr_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

constexpr std::int64_t kAmaxBytes = std::int64_t{kMaxGroups} * 4;

DbiasCall dbias_call(const QuantizeCall& call) {
  DbiasCall dbias;
  dbias.x_type = dbias.output_type = call.x_type;
  dbias.x = call.x;
  dbias.rows = call.rows;
  dbias.columns = call.columns;
  dbias.dbias = call.output.dbias;
  dbias.status = call.status;
  return dbias;
}

}  // namespace

void launch_group_amax(Format x_type, const void* x, const Rows& rows, std::int64_t columns, const float* noop,
                       std::uint32_t* amax_bits, std::uint32_t* status, Stream stream) {
  if (rows.groups == 0) return;
  clear_amaxes<<<1, 1024, 0, stream>>>(rows, noop, status, amax_bits);
  check_launch("per_tensor: clear_amaxes");
  if (rows.capacity == 0 || columns == 0) return;
  CastArguments a{};
  a.x = x;
  a.rows = rows;
  a.columns = columns;
  a.noop = noop;
  a.status = status;
  a.amax_bits = amax_bits;
  a.vectors = is_aligned(x, 16);
  switch (x_type) {
    case Format::bf16:
      return launch_amax<Format::bf16>(a, stream);
    case Format::f16:
      return launch_amax<Format::f16>(a, stream);
    default:
      return launch_amax<Format::f32>(a, stream);
  }
}

std::int64_t per_tensor_workspace_bytes(const QuantizeCall& call) {
  const std::int64_t amax = call.config.recipe == Recipe::tensor_current ? kAmaxBytes : 0;
  return amax + (call.config.dbias ? dbias_workspace_bytes(dbias_call(call)) : 0);
}

void quantize_per_tensor(const QuantizeCall& call, Stream stream) {
  const QuantizeConfig& config = call.config;
  const QuantizeOutput& output = call.output;
  const bool current = config.recipe == Recipe::tensor_current;
  if (call.rows.groups == 0) return;

  CastArguments a{};
  a.x = call.x;
  a.rows = call.rows;
  a.columns = call.columns;
  a.noop = call.noop;
  a.status = call.status;
  a.zero = zero_addend(config.zero_sign == ZeroSign::kept);
  a.rowwise = config.rowwise ? static_cast<std::uint8_t*>(output.rowwise_data) : nullptr;
  a.columnwise = config.columnwise ? static_cast<std::uint8_t*>(output.columnwise_data) : nullptr;
  a.scale_inv = static_cast<float*>(output.rowwise_scale_inv);
  a.scale = current ? output.scale : nullptr;
  a.scales.max = config.output == Format::e4m3 ? Fp8<Format::e4m3>::kMax : Fp8<Format::e5m2>::kMax;
  a.scales.epsilon = config.amax_epsilon;
  a.scales.pow2 = config.force_pow_2_scales;
  a.backward = current;

  auto* workspace = static_cast<std::uint8_t*>(call.workspace);
  auto* amax_bits = reinterpret_cast<std::uint32_t*>(output.amax);
  if (current) {
    if (amax_bits == nullptr) amax_bits = reinterpret_cast<std::uint32_t*>(workspace);
    workspace += kAmaxBytes;
    a.scales.in_memory = amax_bits;
  } else {
    a.scales.in_memory = reinterpret_cast<const std::uint32_t*>(call.scale);
    a.scales.given = true;
  }
  const bool sums = config.dbias && output.dbias != nullptr;
  if (sums) a.tile_sums = reinterpret_cast<float*>(workspace);

  const bool elements = call.rows.capacity != 0 && call.columns != 0;
  const bool casts = elements && (a.rowwise != nullptr || a.columnwise != nullptr || sums);
  if (current || (amax_bits != nullptr && !casts)) {
    launch_group_amax(call.x_type, call.x, call.rows, call.columns, call.noop, amax_bits, call.status, stream);
  } else if (amax_bits != nullptr) {  // raised by the cast
    clear_amaxes<<<1, 1024, 0, stream>>>(call.rows, call.noop, call.status, amax_bits);
    check_launch("per_tensor: clear_amaxes");
    a.amax_bits = amax_bits;
  }

  if (casts) {
    const int span = call.x_type == Format::f32 ? 4 : 8;
    const bool tiles = a.columnwise != nullptr || sums;
    a.vectors = is_aligned(a.x, 16) && is_aligned(a.rowwise, static_cast<std::uintptr_t>(span)) && (!tiles || call.columns % span == 0);
    const auto launch = [&]<Format kOut>() {
      switch (call.x_type) {
        case Format::bf16:
          return launch_cast<Format::bf16, kOut>(a, stream);
        case Format::f16:
          return launch_cast<Format::f16, kOut>(a, stream);
        default:
          return launch_cast<Format::f32, kOut>(a, stream);
      }
    };
    config.output == Format::e4m3 ? launch.template operator()<Format::e4m3>() : launch.template operator()<Format::e5m2>();
  } else if (a.scale != nullptr || a.scale_inv != nullptr) {
    scales_alone<<<1, 1024, 0, stream>>>(a.rows, a.noop, a.status, a.scales, a.scale, a.scale_inv);
    check_launch("per_tensor: scales_alone");
  }
  if (sums) finish_dbias(dbias_call(call), a.tile_sums, call.noop, stream);
}

}  // namespace assay::device
