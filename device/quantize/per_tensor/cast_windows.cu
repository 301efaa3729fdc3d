// FP8 with one scale for each group, ragged: codes of both directions, column sums, amaxes.
//
//   traffic   both directions: 2 B read + 2 B written per bf16 element, and a quarter of x again from L2
//   ceiling   HBM
//   layout    a block takes 128 rows of the buffer, of any groups, and the 32 above; a thread takes one vector of
//             16 B of 8 rows, loaded before the groups are found. With column sums its rows are a tile of one
//             group instead
//
//                       columns 0 .. 7   8 .. 15   ...   120 .. 127      (f32: 4 columns a thread)
//     held rows 0 .. 3     thread 0         1               15           rows 80 .. 83: the same threads
//               4 .. 7           16        17               31                84 .. 87
//               ...                                                           ...
//              76 .. 79         304       305              319               156 .. 159
//
//             held rows 0 .. 31 are the rows above, the own rows begin at 32
//   sectors   columns of a group of M rows begin M bytes apart, where sectors of 32 bytes do not: the rows above
//             complete the sectors that end in the own rows. Stores are of whole sectors, by 16 B, and of parts only
//             where a group begins or ends. A group that lies within the own rows is one range of bytes
//   occupancy 3 blocks per SM, 10 warps each; blocks go across, then down
//   order     amax is a maximum of magnitudes, so no order can change it; column sums have the order of dbias.h
//   matches   reference/recipes/per_tensor.h

#include <cuda_runtime.h>

#include "device/layout/group_table.cuh"
#include "device/quantize/per_tensor/patches.cuh"
#include "device/support/noop.cuh"
#include "device/support/vectors.h"

namespace assay::device::per_tensor {
namespace {

constexpr int kSectorBytes = 32;
constexpr int kAbove = kSectorBytes;  // rows
constexpr int kHeldRows = kTile + kAbove;
constexpr int kWindowThreads = kHeldRows * 2;
template <Format kX, bool kSums, bool kVectors>
constexpr int kWindowBlocks = 3 - (kSums && (kX == Format::f32 || !kVectors) ? 1 : 0);

// A group that has rows in the window.
struct Segment {
  std::uint32_t group, first_row, rows;
  std::uint32_t tiles_before;  // of 128 rows, of all groups before
};

// The transposed codes of all rows held, one column after another. Reads may begin at any row, also up to 16 before and
// after those held; such codes are not used.
template <Format kX>
struct HeldCodes {
  static constexpr unsigned kPitch = kHeldRows / 4 + 1, kMargin = 4, kSkew = kX == Format::f32 ? 6 : 2;
  std::uint32_t words[kMargin + kTileColumns<kX> * kPitch + 16 * kSkew + 8];
  // Neither the threads of a warp that write (a word of 16 vectors, and the next) nor those that read (4 columns, 8
  // vectors of 16 rows) meet in a bank.
  static __device__ unsigned place(unsigned column) { return kMargin + column * kPitch + column / kSpan<kX> * kSkew; }
  __device__ std::uint8_t code(unsigned column, int row) const {
    return reinterpret_cast<const std::uint8_t*>(words + place(column))[row];
  }
  __device__ uint4 sixteen(unsigned column, int row) const {
    const std::uint32_t* const from = words + place(column) + (row >> 2);
    const unsigned bits = 8 * (static_cast<unsigned>(row) % 4);
    const std::uint32_t a = from[0], b = from[1], c = from[2], d = from[3], e = from[4];
    return make_uint4(__funnelshift_r(a, b, bits), __funnelshift_r(b, c, bits), __funnelshift_r(c, d, bits),
                      __funnelshift_r(d, e, bits));
  }
};

template <Format kX>
struct SharedWindow {
  HeldCodes<kX> codes;
  group_detail::BlockScratch<group_detail::Sums<Blocks<kTile>>> scratch;
  unsigned count;
  Segment segments[kHeldRows];
  alignas(16) float scale[kHeldRows];
  std::uint32_t group[kHeldRows];
};
ASSAY_HOLDS_VECTORS(float4, SharedWindow<Format::bf16>, scale);
ASSAY_HOLDS_VECTORS(float4, SharedWindow<Format::f32>, scale);
template <Format kX>
struct SharedWindowWithSums : SharedWindow<kX> {
  alignas(16) StagedTile staged;
};

// Bytes begin to end of 16 at `to`, by the widest stores that there are; one of the bounds is 0 or 16.
__device__ inline void store_part(std::uint8_t* to, const uint4& vector, unsigned begin, unsigned end) {
  const auto store_8 = [&](unsigned at) {
    *reinterpret_cast<uint2*>(to + at) = at == 0 ? make_uint2(vector.x, vector.y) : make_uint2(vector.z, vector.w);
  };
  const auto word = [&](unsigned at) { return at < 8 ? (at < 4 ? vector.x : vector.y) : (at < 12 ? vector.z : vector.w); };
  const auto store_4 = [&](unsigned at) { *reinterpret_cast<std::uint32_t*>(to + at) = word(at); };
  const auto store_2 = [&](unsigned at) {
    *reinterpret_cast<std::uint16_t*>(to + at) = static_cast<std::uint16_t>(word(at) >> 8 * (at % 4));
  };
  const auto store_1 = [&](unsigned at) { to[at] = static_cast<std::uint8_t>(word(at) >> 8 * (at % 4)); };
  if (begin != 0 && end != 16) {
#pragma unroll 1
    for (; begin < end; ++begin) store_1(begin);
  } else if (begin != 0) {
    if (begin & 1) store_1(begin++);
    if (begin & 2) store_2(begin), begin += 2;
    if (begin & 4) store_4(begin), begin += 4;
    if (begin & 8) store_8(begin);
  } else {
    if (end & 8) store_8(0);
    if (end & 4) store_4(end & 8);
    if (end & 2) store_2(end & 12);
    if (end & 1) store_1(end & 14);
  }
}

// The columns of one group. `window`: buffer row of the block's own first row, which is held as row kAbove; `own`: how
// many.
template <Format kX>
__device__ void store_columns(const HeldCodes<kX>& codes, const CastArguments& a, const Segment& segment, std::uint32_t window,
                              int own, std::int64_t first_column, unsigned columns) {
  const auto offset = static_cast<int>(segment.first_row - window);  // own row of the group's first; wraps where far above
  const auto height = static_cast<int>(segment.rows);
  const int begin_row = max(-offset, 0), end_row = min(height, own - offset);  // of the group
  if (begin_row >= end_row) return;                                            // all above
  std::uint8_t* const first = a.columnwise + segment.first_row * a.columns + first_column * height;
  const int held = offset + kAbove;  // of the group's first row

  if (begin_row == 0 && end_row == height) {  // the columns are one range of bytes
    const unsigned bytes = columns * segment.rows, before = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(first)) % 16;
    const float per_row = 1.0f / static_cast<float>(height);
    for (unsigned i = threadIdx.x; 16 * i < before + bytes; i += blockDim.x) {
      const unsigned from = 16 * i < before ? 0 : 16 * i - before, skipped = before + from - 16 * i;
      const unsigned many = min(bytes - from, 16 - skipped);
      // from / height: half a byte is more than rounding does.
      unsigned column = static_cast<unsigned>(multiply(static_cast<float>(from) + 0.5f, per_row));
      int row = static_cast<int>(from - column * segment.rows);
      if (many == 16 && height >= 16) {
        uint4 vector = codes.sixteen(column, held + row);
        const int left = height - row;
        if (left < 16) {
          const uint4 more = codes.sixteen(column + 1, held - left);
          const auto join = [&](std::uint32_t low, std::uint32_t high, int word) {
            const int bits = 8 * min(max(left - 4 * word, 0), 4);
            const std::uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
            return (low & mask) | (high & ~mask);
          };
          vector = make_uint4(join(vector.x, more.x, 0), join(vector.y, more.y, 1), join(vector.z, more.z, 2),
                              join(vector.w, more.w, 3));
        }
        *reinterpret_cast<uint4*>(first + from) = vector;
        continue;
      }
      std::uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
      for (unsigned e = 0; e < 16; ++e) {
        if (e < skipped || e >= skipped + many) continue;
        words[e / 4] |= std::uint32_t{codes.code(column, held + row)} << 8 * (e % 4);
        if (++row == height) row = 0, ++column;
      }
      const uint4 vector = make_uint4(words[0], words[1], words[2], words[3]);
      if (many == 16) {
        *reinterpret_cast<uint4*>(first + from) = vector;
      } else {
        store_part(first + from - skipped, vector, skipped, skipped + many);
      }
    }
    return;
  }

  // Of each column the sectors that end in the own rows; of the group's last rows all.
  const auto store_vector = [&](unsigned column, int v) {
    std::uint8_t* const top = first + std::int64_t{column} * height;
    const auto phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(top) % 32);
    const auto down_to_sector = [&](int row) { return row - (phase + row) % kSectorBytes; };
    const int from = begin_row == 0 ? 0 : max(down_to_sector(begin_row), 0);
    const int to = end_row == height ? height : down_to_sector(end_row);
    const int row = begin_row - (phase + begin_row) % kSectorBytes + 16 * v;
    if (row + 16 <= from || row >= to) return;
    const uint4 vector = codes.sixteen(column, held + row);
    if (row >= from && row + 16 <= to) {
      *reinterpret_cast<uint4*>(top + row) = vector;
    } else {
      store_part(top + row, vector, max(from - row, 0), min(to - row, 16));
    }
  };
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < columns * 8; i += blockDim.x) store_vector(i / 8, static_cast<int>(i % 8));
  if (end_row == height) {  // more than 128 bytes from the first sector on
    for (unsigned i = threadIdx.x; i < columns * 2; i += blockDim.x) store_vector(i / 2, 8 + static_cast<int>(i % 2));
  }
}

// The steps of the kernel.

// A group to the segments, if it has rows in the window (with column sums: if one of its tiles begins there). `before`: the sums
// over the groups before it.
template <bool kSums, class Shared, class Sums>
__device__ __forceinline__ void take_segment(Shared& shared, std::uint32_t window, int group, const Sums& before,
                                             std::uint32_t rows) {
  const std::uint32_t first_row = before.value[0];
  bool has = rows != 0 && first_row < window + kTile;
  if constexpr (kSums) {  // a tile that begins here
    const std::uint32_t tile = first_row >= window ? 0 : Blocks<kTile>::of(window - first_row);
    has = has && tile * kTile < rows;
  } else {
    has = has && first_row + rows + kAbove > window;
  }
  if (has) {
    const unsigned at = atomicAdd(&shared.count, 1u);
    shared.segments[at] = {static_cast<std::uint32_t>(group), first_row, rows, before.value[1]};
  }
}

// The scale and the group of each held row.
template <class Shared>
__device__ __forceinline__ void find_scales(const CastArguments& a, Shared& shared, std::uint32_t row, unsigned segment_begin,
                                            unsigned segment_end) {
  for (unsigned r = threadIdx.x; r < kHeldRows; r += kWindowThreads) {
    const std::uint32_t held = row - kAbove + r;
    float scale = 0;
    for (unsigned s = segment_begin; s < segment_end; ++s) {
      const Segment& segment = shared.segments[s];
      if (held - segment.first_row < segment.rows) {
        scale = a.scales.scale(a.scales.read(static_cast<int>(segment.group)));
        shared.group[r] = segment.group;
      }
    }
    shared.scale[r] = scale;
  }
}

// The codes of a patch, transposed, to shared memory.
template <Format kX>
__device__ __forceinline__ void hold_transposed(HeldCodes<kX>& codes, const std::uint32_t (&by_row)[kSpan<kX> / 4][4],
                                                unsigned column, unsigned held) {
  constexpr unsigned kFours = kSpan<kX> / 4;
#pragma unroll
  for (unsigned f = 0; f < kFours; ++f) {
    std::uint32_t by_column[4];
    transpose_four(by_row[f], by_column);
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) codes.words[HeldCodes<kX>::place(column + 4 * f + c) + held / 4] = by_column[c];
  }
}

// The patches of a thread: rowwise codes to memory, columnwise codes to shared memory, amaxes to `gathered` where all rows are of
// one group, else to memory.
template <Format kX, Format kOut, bool kSums, bool kVectors, class Shared>
__device__ __forceinline__ void encode_patches(const CastArguments& a, Shared& shared, const uint4 (&x)[kPatches][4],
                                               std::uint32_t row, int own, bool one_group, std::int64_t first_column,
                                               unsigned columns, std::uint32_t& gathered) {
  const unsigned column = patch_column<kX>();
#pragma unroll
  for (unsigned h = 0; h < kPatches; ++h) {
    const unsigned held = patch_row(h);
    const float4 scales = *reinterpret_cast<const float4*>(shared.scale + held);
    constexpr unsigned kFours = kSpan<kX> / 4;
    std::uint32_t by_row[kFours][4];
#pragma unroll
    for (unsigned q = 0; q < 4; ++q) {
      const float scale = q == 0 ? scales.x : q == 1 ? scales.y : q == 2 ? scales.z : scales.w;
      const int own_row = static_cast<int>(held + q) - kAbove;
      std::uint32_t of_row[kFours];
#pragma unroll
      for (unsigned f = 0; f < kFours; ++f) of_row[f] = by_row[f][q] = encode_four<kX, kOut>(x[h][q], 4 * f, scale, a.zero);
      if constexpr (kSums) {
        if (own_row >= 0) shared.staged.at(static_cast<unsigned>(own_row), threadIdx.x % 16) = x[h][q];
      }
      if (a.amax_bits != nullptr && own_row >= 0 && own_row < own) {
        if (one_group) {
          gathered = accumulate_absmax_vector<kX>(gathered, x[h][q]);
        } else {
          const std::uint32_t bits = Element<kX>::amax_bits(accumulate_absmax_vector<kX>(0, x[h][q]));
          std::uint32_t* const to = a.amax_bits + shared.group[held + q];
          if (bits > *static_cast<volatile std::uint32_t*>(to)) atomicMax(to, bits);
        }
      }
      if (a.rowwise != nullptr && own_row >= 0 && own_row < own && column < columns) {
        store_row<kX, kVectors>(a.rowwise + (std::int64_t{row} + own_row) * a.columns + first_column + column, of_row,
                                columns - column);
      }
    }
    if (a.columnwise != nullptr) hold_transposed<kX>(shared.codes, by_row, column, held);
  }
}

template <Format kX, Format kOut, bool kSums, bool kVectors>
__global__ void __launch_bounds__(kWindowThreads, kWindowBlocks<kX, kSums, kVectors>)
    cast_windows(const CastArguments a, const std::uint32_t across) {
  if (is_skipped(a.noop)) return;
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<SharedWindowWithSums<kX>*>(dynamic_shared);
  using Sums = group_detail::Sums<Blocks<kTile>>;

  const std::uint32_t index = a.reversed ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const std::uint32_t down = index / across, strip = index - down * across, window = down * kTile;
  const std::int64_t first_column = std::int64_t{strip} * kTileColumns<kX>;
  const auto columns = static_cast<unsigned>(min(a.columns - first_column, std::int64_t{kTileColumns<kX>}));
  const auto capacity = static_cast<std::uint32_t>(a.rows.capacity);

  uint4 x[kPatches][4];
  const auto load = [&](std::uint32_t row, bool above, int own) {
    const std::int64_t first = (std::int64_t{row} - kAbove) * a.columns + first_column;
    load_patches<kX, kVectors>(a, first, above ? 0 : kAbove, kAbove + own, columns, x);
  };
  if constexpr (!kSums) load(window, window != 0, static_cast<int>(min(capacity - window, std::uint32_t{kTile})));

  // The groups.
  std::uint32_t used = capacity;
  if (threadIdx.x == 0) shared.count = 0;
  {
    if (a.rows.splits == nullptr) {
      __syncthreads();
      if (threadIdx.x == 0) take_segment<kSums>(shared, window, 0, Sums::zero(), capacity);
    } else {
      int first, last;
      Sums running, total;
      if (!group_detail::scan_block(a.rows, shared.scratch, a.status, first, last, running, total)) return;
      unsigned no_faults = 0;
      for (int t = first; t < last; ++t) {
        const std::uint32_t rows = group_detail::read_split(a.rows, t, no_faults);
        take_segment<kSums>(shared, window, t, running, rows);
        running.add(Sums::of(rows), capacity);
      }
      used = total.value[0];
    }
  }
  if (blockIdx.x == 0) write_scales(a.scales, a.rows.groups, a.scale, a.scale_inv);
  __syncthreads();
  const unsigned count = shared.count;
  if (count == 0) return;

  // The rows in `x`, of the segments from segment_begin to segment_end; `row` is the first own row.
  const auto cast = [&](std::uint32_t row, unsigned segment_begin, unsigned segment_end, int own) {
    find_scales(a, shared, row, segment_begin, segment_end);
    __syncthreads();
    const bool one_group = segment_end - segment_begin == 1;
    std::uint32_t gathered = 0;
    encode_patches<kX, kOut, kSums, kVectors>(a, shared, x, row, own, one_group, first_column, columns, gathered);
    __syncthreads();
    if (a.columnwise != nullptr) {
      for (unsigned s = segment_begin; s < segment_end; ++s) {
        store_columns<kX>(shared.codes, a, shared.segments[s], row, own, first_column, columns);
      }
    }
    if (a.amax_bits != nullptr && one_group) {
      accumulate_amax<kX>(a.amax_bits + shared.segments[segment_begin].group, gathered);
    }
  };

  if constexpr (!kSums) {
    if (used > window) cast(window, 0, count, static_cast<int>(min(used - window, std::uint32_t{kTile})));
  } else {
    for (unsigned s = 0; s < count; ++s) {
      const Segment segment = shared.segments[s];
      const std::uint32_t tile = segment.first_row >= window ? 0 : Blocks<kTile>::of(window - segment.first_row);
      const std::uint32_t row = segment.first_row + tile * kTile;
      const int own = static_cast<int>(min(segment.rows - tile * kTile, std::uint32_t{kTile}));
      if (s != 0) __syncthreads();
      load(row, tile != 0, own);
      cast(row, s, s + 1, own);
      if (threadIdx.x < kSumThreads) {
        sum_columns<kX, kVectors>(shared.staged, a, segment.tiles_before + tile, first_column);
      }
    }
  }
}

}  // namespace

void launch_windows(Format x_type, Format output, const CastArguments& a, Stream stream) {
  with_parts(x_type, output, a, [&]<Format kX, Format kOut, bool kSums, bool kVectors>() {
    start_blocks<kX>(cast_windows<kX, kOut, kSums, kVectors>, "per_tensor: cast_windows", a, kWindowThreads,
                     kSums ? sizeof(SharedWindowWithSums<kX>) : sizeof(SharedWindow<kX>), stream);
  });
}

}  // namespace assay::device::per_tensor
