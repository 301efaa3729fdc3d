// Column sums of each group.
//
//   traffic   2 B read per bf16 element, 4 B written and read again per 128
//   ceiling   HBM
//   layout    first every tile of 128 rows: a thread adds 64 rows of 16 B of columns, 8 loads in flight; then the
//             tiles of a few groups: a block brings 256 of them to shared memory at a time, a thread per column adds
//   order     rows one after the other in halves of 64, half + half, tiles one after the other, as in the reference; only the
//             thread that owns a sum adds to it
//   matches   reference/recipes/dbias.h

#include "device/dbias/dbias.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "device/dbias/dbias_tiles.h"
#include "device/formats/convert.cuh"
#include "device/layout/group_table.cuh"
#include "device/support/call_checks.h"
#include "device/support/call_device.h"
#include "device/support/launch.cuh"
#include "device/support/noop.cuh"

namespace assay::device {
namespace {

constexpr int kTileRows = 128, kHalfRows = 64;
constexpr int kTileThreads = 128;  // 64 a half
constexpr int kColumnThreads = kTileThreads / 2;

// A thread's part of a row: 16 bytes, or one element where rows do not begin at multiples of 16 bytes.
template <Format kX, bool kVectors>
struct RowPart {
  static constexpr int kColumns = kVectors ? 16 / Element<kX>::kBytes : 1;
  std::uint32_t words[kVectors ? 4 : 1];

  __device__ void load(const void* x, std::int64_t at) {
    if constexpr (kVectors) {
      const uint4 v = __ldcs(reinterpret_cast<const uint4*>(static_cast<const char*>(x) + at * Element<kX>::kBytes));
      words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    } else if constexpr (kX == Format::f32) {
      words[0] = static_cast<const std::uint32_t*>(x)[at];
    } else {
      words[0] = static_cast<const std::uint16_t*>(x)[at];
    }
  }
  __device__ float column(int i) const { return Element<kX>::widen(words[i / Element<kX>::kPerWord], i % Element<kX>::kPerWord); }
};

// Tile `blockIdx.x / strips` of all groups, a strip of columns of it.
template <Format kX, bool kVectors>
__global__ void __launch_bounds__(kTileThreads) add_rows(const void* x, const Rows rows, std::int64_t columns, unsigned strips,
                                                         const float* noop, float* tile_sums, std::uint32_t* status) {
  if (is_skipped(noop)) return;
  using Part = RowPart<kX, kVectors>;
  __shared__ LocateTile<kTileRows> scratch;
  __shared__ float second_half[kColumnThreads][Part::kColumns + 1];
  const std::uint32_t tile = blockIdx.x / strips;
  GroupTile<0> found;
  if (!locate_tile<kTileRows>(rows, tile, scratch, status, found)) return;

  const int half = static_cast<int>(threadIdx.x) / kColumnThreads, lane = static_cast<int>(threadIdx.x) % kColumnThreads;
  const std::int64_t column = (std::int64_t{blockIdx.x - tile * strips} * kColumnThreads + lane) * Part::kColumns;
  const std::uint32_t row = found.tile * kTileRows + half * kHalfRows;
  const int count = column < columns && row < found.rows ? static_cast<int>(min(found.rows - row, std::uint32_t{kHalfRows})) : 0;
  const std::int64_t first = (std::int64_t{found.first_row} + row) * columns + column;

  float sums[Part::kColumns] = {};
  constexpr int kInFlight = 8;
  const auto add_part = [&](const Part& part) {
#pragma unroll
    for (int c = 0; c < Part::kColumns; ++c) sums[c] = add(sums[c], part.column(c));
  };
  int r = 0;
  if (count >= kInFlight) {  // each register is loaded again as soon as it has been added
    Part parts[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) parts[i].load(x, first + i * columns);
    for (r = kInFlight; r + kInFlight <= count; r += kInFlight) {
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        add_part(parts[i]);
        parts[i].load(x, first + (r + i) * columns);
      }
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) add_part(parts[i]);
  }
  for (; r < count; ++r) {
    Part part;
    part.load(x, first + r * columns);
    add_part(part);
  }
  if (half == 1) {
#pragma unroll
    for (int c = 0; c < Part::kColumns; ++c) second_half[lane][c] = sums[c];
  }
  __syncthreads();
  if (half == 0 && column < columns) {
#pragma unroll
    for (int c = 0; c < Part::kColumns; ++c) sums[c] = add(sums[c], second_half[lane][c]);
    float* const to = tile_sums + tile * columns + column;
    if constexpr (kVectors) {
#pragma unroll
      for (int c = 0; c < Part::kColumns; c += 4) {
        __stcs(reinterpret_cast<uint4*>(to + c), make_uint4(bits_of_float(sums[c]), bits_of_float(sums[c + 1]),
                                                            bits_of_float(sums[c + 2]), bits_of_float(sums[c + 3])));
      }
    } else {
      __stcs(to, sums[0]);
    }
  }
}

constexpr int kFinishThreads = 256, kFinishWarps = kFinishThreads / 32;
constexpr int kFinishColumns = 32;  // of a block
constexpr int kShares = 2;          // the groups are shared among this many blocks by their tiles
constexpr int kTilesAtATime = 256;

__device__ inline void store_sum(const DbiasCall& call, std::int64_t at, float sum) {
  switch (call.output_type) {
    case Format::bf16: static_cast<std::uint16_t*>(call.dbias)[at] = encode_bf16(sum); break;
    case Format::f16: static_cast<std::uint16_t*>(call.dbias)[at] = encode_f16(sum); break;
    default: static_cast<float*>(call.dbias)[at] = stored_float(call.added_to == nullptr ? sum : add(call.added_to[at], sum));
  }
}

__global__ void __launch_bounds__(kFinishThreads)
    add_tiles(const DbiasCall call, const float* tile_sums, const float* noop, const std::uint32_t rows_multiple) {
  if (is_skipped(noop)) return;
  __shared__ GroupTable<Blocks<kTileRows>> table;
  __shared__ float sums_of[kTilesAtATime][kFinishColumns];
  if (!table.build(call.rows, call.status)) return;
  if (rows_multiple != 1) {  // the kernels that rely on a promise report that it is broken
    bool broken = false;
    for (int t = static_cast<int>(threadIdx.x); t < call.rows.groups; t += kFinishThreads) {
      broken |= table.rows(t) % rows_multiple != 0;
    }
    if (__syncthreads_or(broken)) return;
  }
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t column = std::int64_t{blockIdx.x} * kFinishColumns + lane;
  const bool present = column < call.columns;

  // The groups whose first tile lies in this block's share of the tiles; the last share also has those after the last tile.
  const int groups = call.rows.groups;
  const std::uint32_t tiles = table.total(0, groups);
  const auto first_group = [&](std::uint32_t tile) {  // the first that begins at or after a tile
    int low = 0, high = groups;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (table.before(0, middle) < tile) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const auto share = [&](unsigned i) { return static_cast<std::uint32_t>(std::uint64_t{tiles} * i / gridDim.y); };
  int t = first_group(share(blockIdx.y));
  const int end = blockIdx.y + 1 == gridDim.y ? groups : first_group(share(blockIdx.y + 1));
  if (t >= end) return;

  const std::uint32_t last = table.before(0, end);
  std::uint32_t group_end = table.before(0, t + 1);
  float sum = 0;
  const auto finish_group = [&] {
    if (present) store_sum(call, t * call.columns + column, sum);
    sum = 0;
    ++t;
    group_end = t < end ? table.before(0, t + 1) : last;
  };
  for (std::uint32_t tile = table.before(0, t); tile < last; tile += kTilesAtATime) {
    float values[kTilesAtATime / kFinishWarps];
#pragma unroll
    for (int i = 0; i < kTilesAtATime / kFinishWarps; ++i) {
      const std::uint32_t from = tile + i * kFinishWarps + warp;
      values[i] = present && from < last ? __ldcs(tile_sums + from * call.columns + column) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kTilesAtATime / kFinishWarps; ++i) sums_of[i * kFinishWarps + warp][lane] = values[i];
    __syncthreads();
    if (warp == 0) {
      const auto count = static_cast<int>(min(last - tile, static_cast<std::uint32_t>(kTilesAtATime)));
      for (int i = 0; i < count;) {
        while (group_end == tile + i) finish_group();
        const int to = static_cast<int>(min(group_end - tile, static_cast<std::uint32_t>(count)));
#pragma unroll 16
        for (; i < to; ++i) sum = add(sum, sums_of[i][lane]);
      }
    }
    __syncthreads();
  }
  if (warp != 0) return;
  while (t < end) finish_group();
}

std::int64_t tile_sums_bytes(const DbiasCall& call) {
  const std::int64_t tiles = max_tiles(call.rows, kTileRows);
  std::int64_t bytes;
  if (__builtin_mul_overflow(tiles, call.columns, &bytes) || __builtin_mul_overflow(bytes, 4, &bytes)) {
    require(false, "columns", call.columns, "tile sums that fit int64");
  }
  return (bytes + 255) / 256 * 256;
}

void check_sizes(const DbiasCall& call) {
  check_wide(call.x_type, "x_type");
  check_wide(call.output_type, "output_type");
  check_matrix(call.rows, call.columns);
}

// Checks the requested output. False: nothing to do.
bool check_outputs(const DbiasCall& call) {
  check_sizes(call);
  std::int64_t bytes;
  if (__builtin_mul_overflow(std::int64_t{call.rows.groups} * 8, call.columns, &bytes)) {
    require(false, "columns", call.columns, "a number of sums that fits int64");
  }
  if (call.added_to != nullptr && call.output_type != Format::f32) {
    require(false, "output_type", format_name(call.output_type), "f32 with added_to");
  }
  check_alignment(call.added_to, "added_to", 4);
  check_alignment(call.status, "status", 4);
  if (call.rows.groups == 0 || call.columns == 0) return false;
  require_pointer(call.dbias, "dbias", static_cast<std::uintptr_t>(wide_bytes(call.output_type)));
  return true;
}

template <Format kX>
void launch_add_rows(const DbiasCall& call, float* tile_sums, const float* noop, Stream stream) {
  constexpr int kSpan = 16 / Element<kX>::kBytes;
  const bool vectors = is_aligned(call.x, 16) && call.columns % kSpan == 0;
  const std::int64_t strip = std::int64_t{kColumnThreads} * (vectors ? kSpan : 1);
  const std::int64_t strips = (call.columns + strip - 1) / strip, blocks = strips * max_tiles(call.rows, kTileRows);
  if (blocks >= std::int64_t{1} << 31) throw NotSupported("rows and columns make more than 2^31 strips of tiles");
  const auto kernel = vectors ? add_rows<kX, true> : add_rows<kX, false>;
  launch_kernel("dbias: add_rows", kernel, static_cast<unsigned>(blocks), kTileThreads, 0, stream, call.x, call.rows,
                call.columns, static_cast<unsigned>(strips), noop, tile_sums, call.status);
}

}  // namespace

std::int64_t dbias_workspace_bytes(const DbiasCall& call) {
  check_sizes(call);
  return tile_sums_bytes(call);
}

void sum_tiles(const DbiasCall& call, float* tile_sums, const float* noop, Stream stream) {
  if (call.columns == 0 || max_tiles(call.rows, kTileRows) == 0) return;
  switch (call.x_type) {
    case Format::bf16: return launch_add_rows<Format::bf16>(call, tile_sums, noop, stream);
    case Format::f16: return launch_add_rows<Format::f16>(call, tile_sums, noop, stream);
    default: return launch_add_rows<Format::f32>(call, tile_sums, noop, stream);
  }
}

void finish_dbias(const DbiasCall& call, const float* tile_sums, const float* noop, Stream stream, std::uint32_t rows_multiple) {
  if (!check_outputs(call)) return;
  const dim3 blocks(static_cast<unsigned>((call.columns + kFinishColumns - 1) / kFinishColumns),
                    static_cast<unsigned>(std::min(call.rows.groups, kShares)));
  launch_kernel("dbias: add_tiles", add_tiles, blocks, kFinishThreads, 0, stream, call, tile_sums, noop, rows_multiple);
}

void grouped_dbias(const DbiasCall& call, Stream stream) {
  const bool requested = check_outputs(call);
  if (call.rows.capacity != 0 && call.columns != 0) {
    require_pointer(call.x, "x", static_cast<std::uintptr_t>(wide_bytes(call.x_type)));
  }
  check_workspace(call.workspace, call.workspace_bytes, tile_sums_bytes(call));
  if (!requested) return;
  const CallDevice device(stream,
                          {{"x", call.x}, {"dbias", call.dbias}, {"rows.splits", call.rows.splits}, {"status", call.status}});
  auto* const tile_sums = static_cast<float*>(call.workspace);
  sum_tiles(call, tile_sums, nullptr, stream);
  finish_dbias(call, tile_sums, nullptr, stream);
}

}  // namespace assay::device
