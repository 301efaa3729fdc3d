#pragma once
// The stage of the kernels of compute_tile.cuh: 32 k of a block's rows and columns in shared memory, as values and as
// powers of B, and how they are loaded. Codes are loaded into registers first and decoded from there.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/emulated_gemm/tile_formats.cuh"
#include "device/support/vectors.h"

namespace assay::device::emulated {

constexpr int kTileRows = 128, kTileColumns = 64, kTileThreads = 256;
constexpr int kChunk = 32;                   // k of a stage
constexpr int kValuePitch = kChunk + 4;      // floats: 16-byte loads of 8 rows meet no bank twice
constexpr int kPowerPitch = kChunk / 2 + 4;  // words of two
constexpr int kRows = 4, kColumns = 8;       // of a thread
constexpr int kUnits = 3;                    // that a thread loads a stage: 2 of rows, 1 of columns
constexpr int kNoTerm = -20000;              // "exponent" where there is no product

struct TileStage {
  alignas(16) float values[kTileRows + kTileColumns][kValuePitch];          // rows first, then columns
  alignas(16) std::uint32_t powers[kTileRows + kTileColumns][kPowerPitch];  // bf16 pairs
  std::int32_t tops[kChunk / 8][kTileRows + kTileColumns];                  // bf16: exponent that B^0 stands for in each step
};
ASSAY_HOLDS_VECTORS(float4, TileStage, values);
ASSAY_HOLDS_VECTORS(uint4, TileStage, powers);
static_assert(kValuePitch % 4 == 0 && kPowerPitch % 4 == 0);  // each row of them too

// One operand's part of a block: where its elements are.
template <class Code>
struct Lines {
  const Code* data;  // of the tile's first line
  std::int64_t row_stride, k_stride;
  int lines;  // that exist, at most those of the tile
  bool k_major;

  // Unit `unit` of 0, 1, ... (each thread one of 256): 8 elements along k of one line, or of one k in 8 lines.
  __device__ Codes<Code> load(int unit, int k, int k_end) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int line = k_major ? unit * 64 + thread / 4 : unit * 64 + thread / 32 * 8;
    const int at = k + (k_major ? thread % 4 * 8 : thread % 32);
    const int present = k_major ? (line < lines ? k_end - at : 0) : (at < k_end ? lines - line : 0);
    const Code* from = data + line * row_stride + at * k_stride;
    Codes<Code> codes;
    if (present >= kUnit && reinterpret_cast<std::uintptr_t>(from) % sizeof codes == 0) {
      if constexpr (sizeof(Code) == 1) {
        const uint2 words = __ldg(reinterpret_cast<const uint2*>(from));
        codes.word[0] = words.x, codes.word[1] = words.y;
      } else {
        const uint4 words = __ldg(reinterpret_cast<const uint4*>(from));
        codes.word[0] = words.x, codes.word[1] = words.y, codes.word[2] = words.z, codes.word[3] = words.w;
      }
      return codes;
    }
    constexpr int kEach = 4 / static_cast<int>(sizeof(Code)), kBits = 8 * static_cast<int>(sizeof(Code));
#pragma unroll
    for (std::uint32_t& word : codes.word) word = 0;
#pragma unroll
    for (int e = 0; e < kUnit; ++e) {  // the stride of a unit's elements is 1 either way
      if (e < present) codes.word[e / kEach] |= static_cast<std::uint32_t>(__ldg(from + e)) << (e % kEach * kBits);
    }
    return codes;
  }
};

// Decodes a unit into the stage. `first_line`: 0 for rows, kTileRows for columns.
template <Format kFormat, int kBase, int kProducts>
__device__ void decode(TileStage& stage, const Codes<typename FastFormat<kFormat>::Code>& codes, int unit, int first_line,
                       bool k_major, float place) {
  const int thread = static_cast<int>(threadIdx.x);
  if (k_major) {
    const int line = first_line + unit * 64 + thread / 4, part = thread % 4;
    int top = 0;
    if constexpr (kFormat == Format::bf16) {
      top = kNoTerm;
#pragma unroll
      for (int e = 0; e < kUnit; ++e) {
        if ((codes.code(e) & 0x7FFF) != 0) top = max(top, exponent_of<kFormat>(codes.code(e)));
      }
#pragma unroll
      for (int step = 8; step < kProducts; step *= 2) top = max(top, __shfl_xor_sync(0xFFFFFFFFu, top, step / 8));
      if (part % (kProducts / 8) == 0) stage.tops[part * 8 / kProducts][line] = top;
    }
    float* values = &stage.values[line][part * kUnit];
    std::uint32_t* powers = &stage.powers[line][part * kUnit / 2];
    std::uint32_t word[kUnit / 2];
#pragma unroll
    for (int e = 0; e < kUnit; e += 4) {
      const auto value = [&](int at) { return prescaled_value<kFormat>(codes.code(at), place); };
      *reinterpret_cast<float4*>(values + e) = make_float4(value(e), value(e + 1), value(e + 2), value(e + 3));
    }
#pragma unroll
    for (int e = 0; e < kUnit; e += 2) {
      const auto power = [&](int at) { return power_of<kFormat, kBase>(codes.code(at), top); };
      word[e / 2] = power(e) | power(e + 1) << 16;
    }
    *reinterpret_cast<uint4*>(powers) = make_uint4(word[0], word[1], word[2], word[3]);
    return;
  }
  const int line = first_line + unit * 64 + thread / 32 * 8, k = thread % 32;
#pragma unroll
  for (int e = 0; e < kUnit; ++e) {
    const std::uint32_t code = codes.code(e);
    int top = 0;
    if constexpr (kFormat == Format::bf16) {
      top = (code & 0x7FFF) != 0 ? exponent_of<kFormat>(code) : kNoTerm;
#pragma unroll
      for (int step = 1; step < kProducts; step *= 2) top = max(top, __shfl_xor_sync(0xFFFFFFFFu, top, step));
      if (k % kProducts == 0) stage.tops[k / kProducts][line + e] = top;
    }
    stage.values[line + e][k] = prescaled_value<kFormat>(code, place);
    const std::uint32_t power = power_of<kFormat, kBase>(code, top);
    reinterpret_cast<std::uint16_t*>(stage.powers[line + e])[k] = static_cast<std::uint16_t>(power);
  }
}

}  // namespace assay::device::emulated
