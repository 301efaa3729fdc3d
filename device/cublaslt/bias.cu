// D += bias of the group, rounded once more.
//
//   traffic   D read and written once: 4 B per element of bf16, 8 B of f32; the bias comes from L2
//   ceiling   HBM
//   layout    a block has 32 rows of one group and 256 vectors of 16 bytes of columns; a thread keeps its piece of the bias and
//             walks down the rows, 8 loads in flight
//   matches   reference/gemm/epilogue.h

#include "device/cublaslt/bias.h"

#include <cuda_runtime.h>

#include "device/formats/convert.cuh"
#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/support/launch.cuh"

namespace assay::device {
namespace {

constexpr int kThreads = 256, kTileRows = 32, kUnroll = 8;

// A thread's part of a row: 16 bytes, or one element where rows do not begin at multiples of 16 bytes.
template <Format kType, bool kVectors>
struct Piece {
  using E = Element<kType>;
  static constexpr int kElements = kVectors ? 16 / E::kBytes : 1;
  static constexpr int kWords = kVectors ? 4 : 1;
  std::uint32_t words[kWords];

  static __device__ Piece load(const char* at) {
    Piece piece;
    if constexpr (kVectors) {
      const uint4 v = *reinterpret_cast<const uint4*>(at);
      piece.words[0] = v.x, piece.words[1] = v.y, piece.words[2] = v.z, piece.words[3] = v.w;
    } else if constexpr (E::kBytes == 4) {
      piece.words[0] = *reinterpret_cast<const std::uint32_t*>(at);
    } else {
      piece.words[0] = *reinterpret_cast<const std::uint16_t*>(at);
    }
    return piece;
  }
  __device__ void store(char* at) const {
    if constexpr (kVectors) {
      *reinterpret_cast<uint4*>(at) = make_uint4(words[0], words[1], words[2], words[3]);
    } else if constexpr (E::kBytes == 4) {
      *reinterpret_cast<std::uint32_t*>(at) = words[0];
    } else {
      *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(words[0]);
    }
  }
  static __device__ std::uint32_t sum(std::uint32_t a, std::uint32_t b) {  // codes
    const float value = add(E::widen_one(a), E::widen_one(b));
    if constexpr (kType == Format::f32) {
      return bits_of_float(stored_float(value));
    } else if constexpr (kType == Format::bf16) {
      return encode_bf16(value);
    } else {
      return encode_f16(value);
    }
  }
  __device__ void add_to_each(const Piece& bias) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if constexpr (E::kBytes == 4) {
        words[i] = sum(words[i], bias.words[i]);
      } else {
        const std::uint32_t high = kVectors ? sum(words[i] >> 16, bias.words[i] >> 16) << 16 : 0u;
        words[i] = sum(words[i] & 0xFFFFu, bias.words[i] & 0xFFFFu) | high;
      }
    }
  }
};

template <Format kType, bool kVectors>
__global__ void __launch_bounds__(kThreads) add_bias(const Rows rows, std::int64_t columns, const char* bias, char* d) {
  using P = Piece<kType, kVectors>;
  __shared__ LocateTile<kTileRows> scratch;
  GroupTile<0> tile;
  if (!locate_tile<kTileRows>(rows, blockIdx.x, scratch, nullptr, tile)) return;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * P::kElements;
  if (column >= columns) return;
  constexpr std::int64_t kBytes = Element<kType>::kBytes;
  const std::int64_t pitch = columns * kBytes;
  const P own = P::load(bias + (tile.group * columns + column) * kBytes);
  const std::uint32_t first = tile.tile * kTileRows;
  const int count = static_cast<int>(min(tile.rows - first, static_cast<std::uint32_t>(kTileRows)));
  char* at = d + (static_cast<std::int64_t>(tile.first_row) + first) * pitch + column * kBytes;
  int row = 0;
  for (; row + kUnroll <= count; row += kUnroll) {
    P pieces[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) pieces[i] = P::load(at + i * pitch);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      pieces[i].add_to_each(own);
      pieces[i].store(at + i * pitch);
    }
    at += kUnroll * pitch;
  }
  for (; row < count; ++row) {
    P piece = P::load(at);
    piece.add_to_each(own);
    piece.store(at);
    at += pitch;
  }
}

template <Format kType>
void launch(const GroupedGemmCall& call, Stream stream) {
  const std::uintptr_t addresses = reinterpret_cast<std::uintptr_t>(call.d) | reinterpret_cast<std::uintptr_t>(call.bias);
  const bool vectors = addresses % 16 == 0 && call.N * Element<kType>::kBytes % 16 == 0;
  const std::int64_t a_block = kThreads * (vectors ? 16 / Element<kType>::kBytes : 1);
  const dim3 grid(static_cast<unsigned>(max_tiles(call.rows, kTileRows)), static_cast<unsigned>(ceil_div(call.N, a_block)));
  const auto* bias = static_cast<const char*>(call.bias);
  if (vectors) {
    launch_kernel("add_bias", add_bias<kType, true>, grid, kThreads, 0, stream, call.rows, call.N, bias,
                  static_cast<char*>(call.d));
  } else {
    launch_kernel("add_bias", add_bias<kType, false>, grid, kThreads, 0, stream, call.rows, call.N, bias,
                  static_cast<char*>(call.d));
  }
}

}  // namespace

void add_group_bias(const GroupedGemmCall& call, Stream stream) {
  if (call.bias == nullptr || call.rows.groups == 0 || call.rows.capacity == 0 || call.N == 0) return;
  switch (call.d_type) {
    case Format::f32: return launch<Format::f32>(call, stream);
    case Format::bf16: return launch<Format::bf16>(call, stream);
    default: return launch<Format::f16>(call, stream);
  }
}

}  // namespace assay::device
