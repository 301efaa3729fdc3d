#pragma once
// D of a group without products: the library's result for alpha times a sum of +0 (plan.h, GemmEpilogue).

#include <cstdint>

#include "device/cublaslt/group_arrays.cuh"
#include "device/cublaslt/group_work.h"
#include "device/formats/convert.cuh"

namespace assay::device::group_setup {

// D = RN(product + RN(beta * C)) of one element; codes are as stored.
template <Format type>
__device__ std::uint32_t scaled(std::uint32_t code, float product, float beta) {
  const float value = beta == 0 ? add(product, 0.0f) : add(product, multiply(beta, Element<type>::widen_one(code)));
  if constexpr (type == Format::f32) {
    return bits_of_float(stored_float(value));
  } else if constexpr (type == Format::bf16) {
    return encode_bf16(value);
  } else {
    return encode_f16(value);
  }
}

// `count` elements of D, divided among `threads` threads.
template <Format type>
__device__ void fill_elements(char* d, const char* c, std::int64_t count, float alpha, float beta, std::int64_t thread,
                              std::int64_t threads) {
  constexpr int kBytes = Element<type>::kBytes, kPerWord = Element<type>::kPerWord, kPerVector = 16 / kBytes;
  const float product = multiply(0.0f, alpha);  // exact: +0, -0 or NaN, so that adding C is what FMA(+0, alpha, C) gives
  const std::uint32_t alone = scaled<type>(0, product, 0) * (kPerWord == 1 ? 1u : 0x10001u);
  const bool vectors = (reinterpret_cast<std::uintptr_t>(d) | reinterpret_cast<std::uintptr_t>(c)) % 16 == 0;
  const std::int64_t in_vectors = vectors ? count / kPerVector : 0;
  for (std::int64_t v = thread; v < in_vectors; v += threads) {
    uint4 words = make_uint4(alone, alone, alone, alone);
    if (beta != 0) {
      words = reinterpret_cast<const uint4*>(c)[v];
      const auto each = [&](std::uint32_t word) {
        if constexpr (kPerWord == 1) {
          return scaled<type>(word, product, beta);
        } else {
          return scaled<type>(word & 0xFFFFu, product, beta) | scaled<type>(word >> 16, product, beta) << 16;
        }
      };
      words = make_uint4(each(words.x), each(words.y), each(words.z), each(words.w));
    }
    reinterpret_cast<uint4*>(d)[v] = words;
  }
  for (std::int64_t i = in_vectors * kPerVector + thread; i < count; i += threads) {
    if constexpr (kBytes == 4) {
      const std::uint32_t code = beta != 0 ? scaled<type>(reinterpret_cast<const std::uint32_t*>(c)[i], product, beta) : alone;
      reinterpret_cast<std::uint32_t*>(d)[i] = code;
    } else {
      const std::uint32_t code = beta != 0 ? scaled<type>(reinterpret_cast<const std::uint16_t*>(c)[i], product, beta) : alone;
      reinterpret_cast<std::uint16_t*>(d)[i] = static_cast<std::uint16_t>(code);
    }
  }
}

}  // namespace assay::device::group_setup
