#include <algorithm>
#include <cstring>
#include <string>

#include "device/linear/linear_moves.h"
#include "device/support/error.h"
#include "device/support/launch.cuh"

namespace assay::device {
namespace {

constexpr int kThreads = 256;
constexpr int kPiecesPerLaunch = 128;  // their addresses are kernel arguments, which may have 4 KiB

__global__ void __launch_bounds__(kThreads) make_constants(std::int64_t* splits, int groups, std::int64_t rows, float* one) {
  const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (splits != nullptr && t < groups) splits[t] = rows;
  if (one != nullptr && t == 0) *one = 1.0f;
}

struct Pieces {
  std::uint16_t* address[kPiecesPerLaunch];
};

// blockIdx.y is the piece. Biases are short: 2 bytes per thread is enough.
template <bool kGather>
__global__ void __launch_bounds__(kThreads) move_pieces(Pieces pieces, std::uint16_t* all, std::int64_t length) {
  std::uint16_t* const piece = pieces.address[blockIdx.y];
  std::uint16_t* const own = all + blockIdx.y * length;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < length;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    if (kGather) {
      own[i] = piece[i];
    } else {
      piece[i] = own[i];
    }
  }
}

template <bool kGather>
void move(void* const* pieces, int count, std::int64_t bytes, void* all, Stream stream) {
  if (bytes % 2 != 0) throw InvalidArgument("bytes is " + std::to_string(bytes) + ": expected an even number");
  const std::int64_t length = bytes / 2;
  if (length == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((length + kThreads - 1) / kThreads, 64));
  for (int first = 0; first < count; first += kPiecesPerLaunch) {
    const int here = std::min(count - first, kPiecesPerLaunch);
    Pieces table{};
    for (int i = 0; i < here; ++i) table.address[i] = static_cast<std::uint16_t*>(pieces[first + i]);
    const dim3 grid(blocks, static_cast<unsigned>(here));
    launch_kernel(kGather ? "gather_pieces" : "scatter_pieces", move_pieces<kGather>, grid, kThreads, 0, stream, table,
                  static_cast<std::uint16_t*>(all) + first * length, length);
  }
}

}  // namespace

void make_linear_constants(std::int64_t* splits, int groups, std::int64_t rows, float* one, Stream stream) {
  if (splits == nullptr && one == nullptr) return;
  const int threads = splits == nullptr ? 1 : std::max(groups, 1);
  launch_kernel("make_constants", make_constants, static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream,
                splits, groups, rows, one);
}

void gather_pieces(const void* const* from, int count, std::int64_t bytes, void* to, Stream stream) {
  move<true>(const_cast<void* const*>(from), count, bytes, to, stream);  // only read
}

void scatter_pieces(const void* from, void* const* to, int count, std::int64_t bytes, Stream stream) {
  move<false>(to, count, bytes, const_cast<void*>(from), stream);  // only read
}

}  // namespace assay::device
