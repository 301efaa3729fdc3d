#pragma once
// FP8 block scaling, columns of codes that begin at any byte: from shared to global memory. The codes of a column lie in a ring of 256
// rows, those of a pass in one half of it, those of the pass above in the other:
//
//   ring      |     pass k - 1      |       pass k        |
//   memory         |      line       |      line       |       lines of 128 B: pass k stores those that it completes
//
// A column is stored by whole aligned lines, at its begin and its end by whole sectors of 32 B. The sector that a column ends in has
// the first codes of the next column as well. Where a stack has a whole group, these wait in `heads` for the end of the column
// before, so that only the first and the last column of a tile have sectors that two blocks write. In a longer group all columns
// have. Such bytes stay in the L2 cache (evict_last): a sector that leaves it half written costs as much time as some whole ones.

#include <cstdint>

#include "device/quantize/fp8_block/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

constexpr int kLine = 128;   // bytes
constexpr int kSector = 32;  // bytes
constexpr int kVector = 16;  // bytes of a store

// Columns lie so that the stores of a warp (columns 8 apart) do not meet in a bank.
struct CodeRing {
  static constexpr int kRows = 2 * kBlock;
  static constexpr int kChunks = kRows / 8 + 1;
  static constexpr int kBytes = (kBlock * kChunks + kBlock / 8) * 8;
  static constexpr int kHeadBytes = kBlock * kSector;
  static __device__ __forceinline__ int of(int column) { return column * kChunks + (column >> 3); }  // in chunks of 8 rows
};

// See TileCodes. A thread has one chunk of each of its columns.
struct RingCodes {
  uint2* chunks;
  int chunk;

  __device__ __forceinline__ void put(int column, int, const uint2& codes) const { chunks[CodeRing::of(column) + chunk] = codes; }
};

// One byte of a sector that another block writes too.
__device__ __forceinline__ void store_shared(std::uint8_t* at, std::uint8_t code) {
#ifdef __CUDA_ARCH__
  asm volatile(
      "{ .reg .b64 policy;\n"
      "  createpolicy.fractional.L2::evict_last.b64 policy, 1.0;\n"
      "  st.global.L2::cache_hint.u8 [%0], %1, policy; }"
      :
      : "l"(at), "r"(std::uint32_t{code})
      : "memory");
#else
  *at = code;
#endif
}

// The codes of a tile.
struct RingStores {
  const unsigned char* codes;
  unsigned char* heads;  // of each column, as they lie in their sector
  int ring_row;          // of the tile's row 0
  std::uint8_t* to;      // column 0, row 0
  std::uint32_t pitch;   // bytes from column to column: the rows of the group, or with aligned columns up to 15 more
  int rows, columns;     // of the tile, rows up to the pitch

  __device__ __forceinline__ std::uint8_t code(int column, int row) const {
    return codes[CodeRing::of(column) * 8 + ((ring_row + row) & (CodeRing::kRows - 1))];
  }
  // 16 rows from any row.
  __device__ __forceinline__ uint4 vector(int column, int row) const {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(codes + CodeRing::of(column) * 8);
    const int at = ring_row + row, shift = 8 * (at & 3);
    std::uint32_t w[5];
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = words[((at >> 2) + i) & (CodeRing::kRows / 4 - 1)];
    return {__funnelshift_r(w[0], w[1], shift), __funnelshift_r(w[1], w[2], shift), __funnelshift_r(w[2], w[3], shift),
            __funnelshift_r(w[3], w[4], shift)};
  }
  __device__ __forceinline__ std::uint8_t* column_at(int column) const { return to + std::int64_t{pitch} * column; }
  static __device__ __forceinline__ int past(const std::uint8_t* pointer, int unit) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(pointer) & static_cast<unsigned>(unit - 1));
  }
  // Bytes from a pointer to the next multiple of a unit.
  static __device__ __forceinline__ int up_to(const std::uint8_t* pointer, int unit) { return -past(pointer, unit) & (unit - 1); }
  // The first `own` bytes of one vector, then those of the other.
  static __device__ __forceinline__ uint4 join(const uint4& first, const uint4& second, int own) {
    const auto word = [&](std::uint32_t low, std::uint32_t high, int i) {
      const int bits = 8 * min(max(own - 4 * i, 0), 4);
      const std::uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
      return (low & mask) | (high & ~mask);
    };
    return {word(first.x, second.x, 0), word(first.y, second.y, 1), word(first.z, second.z, 2), word(first.w, second.w, 3)};
  }
  static __device__ __forceinline__ void store(std::uint8_t* at, const uint4& v) { *reinterpret_cast<uint4*>(at) = v; }

  // A group of one tile: its columns follow one another without a gap, so that 16 bytes have codes of one or more of them.
  __device__ __forceinline__ void store_group(int thread) const {
    const int head = up_to(to, kVector), bytes = columns * rows;  // rows is pitch
    const std::uint32_t inverse = (1u << 21) / pitch + 1;         // exact for the dividends here: below 2^14
    for (int begin = head + thread * kVector; begin + kVector <= bytes; begin += kThreads * kVector) {
      int column = static_cast<int>(static_cast<std::uint32_t>(begin) * inverse >> 21);
      const int row = begin - column * rows;
      uint4 v = vector(column, row);
      for (int own = rows - row; own < kVector; own += rows) v = join(v, vector(++column, -own), own);
      store(to + begin, v);
    }
    if (thread < 32) {  // both ends
      const int end = bytes < head ? 0 : (bytes - head) % kVector;
      const int k = thread % 16, at = thread < 16 ? k : bytes - end + k;
      if (at < (thread < 16 ? min(head, bytes) : bytes)) {
        const int column = at / rows;
        to[at] = code(column, at - column * rows);
      }
    }
  }

  // A tile of a longer group: the first, one below another, or the last. `joined`: the stack has the whole group.
  __device__ __forceinline__ void store_tile(int thread, bool first, bool last, bool joined) const {
    const int unit = joined ? kSector : kVector;  // of the ends of a column, which follow
    const auto store_lines = [&](int pass, int first_row) {
      const int column = pass * 32 + thread / 8;
      std::uint8_t* const at = column_at(column);
      const int row = first_row + thread % 8 * kVector - past(at, kLine);
      const int begin = first ? up_to(at, unit) : -kLine, end = last ? rows - past(at + rows, unit) : kLine;
      if (column < columns && row >= begin && row + kVector <= end) store(at + row, vector(column, row));
    };
#pragma unroll
    for (int pass = 0; pass < 4; ++pass) store_lines(pass, 0);
    if (last) {
#pragma unroll 1
      for (int pass = 0; pass < 4; ++pass) store_lines(pass, kLine);
    }
    if (first) store_begin(thread, joined, unit);
    if (last) store_end(thread, joined, unit);
  }

 private:
  // Codes up to the first whole unit of each column, or of column 0 alone where those of others wait.
  __device__ __forceinline__ void store_begin(int thread, bool joined, int unit) const {
    if (joined) {
      const int column = thread / 2;
      reinterpret_cast<uint4*>(heads)[thread] = vector(column, thread % 2 * kVector - past(column_at(column), kSector));
    }
    const int end = joined ? 1 : columns;
#pragma unroll 4
    for (int column = thread / 16; column < end; column += kThreads / 16) {
      std::uint8_t* const at = column_at(column);
      for (int row = thread % 16; row < up_to(at, unit); row += 16) store_shared(at + row, code(column, row));
    }
  }

  // Codes behind the last whole unit of each column, with those that wait of the next one.
  __device__ __forceinline__ void store_end(int thread, bool joined, int unit) const {
    if (joined && thread / 2 < columns - 1) {
      const int column = thread / 2;
      std::uint8_t* const at = column_at(column);
      const int codes_there = past(at + rows, kSector), own = codes_there - thread % 2 * kVector, row = rows - own;
      const uint4 next = reinterpret_cast<const uint4*>(heads)[thread + 2];
      if (codes_there != 0) store(at + row, join(vector(column, row), next, own));
    }
#pragma unroll 4
    for (int column = (joined ? columns - 1 : 0) + thread / 16; column < columns; column += kThreads / 16) {
      std::uint8_t* const at = column_at(column);
      for (int row = rows - past(at + rows, unit) + thread % 16; row < rows; row += 16) store_shared(at + row, code(column, row));
    }
  }
};

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
