#include "reference/recipes/hadamard.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "reference/formats/fast_codes.h"
#include "reference/support/simd.h"

namespace assay {
namespace {

constexpr int kTerms = 16;
constexpr int kLanes = 64;

// A bf16 term cut to 25 fraction bits below exponent e_max, in units of 2^(e_max - 25): its significand of 8 bits has 7
// fraction bits, so it is moved up 18 and down by what its exponent lacks. Cutting the magnitude does not depend on the
// sign with which the term enters a sum: all 16 sums share the cut terms, and a fast Walsh-Hadamard transform over the
// integers is exact. 16 terms below 2^26 stay below 2^30.
constexpr int kShift = 25 - 7;

struct Lanes {
  alignas(64) std::uint16_t x[kTerms][kLanes];
  alignas(64) std::uint16_t y[kTerms][kLanes];
  alignas(64) std::int32_t sums[kTerms][kLanes];
  alignas(64) std::uint32_t exponent[kLanes];  // largest biased exponent of x; 1 for subnormals
  alignas(64) std::uint32_t below[kLanes];     // bits of a sum that f32 does not have
  alignas(64) float unit[kLanes];              // of a sum without those
};

ASSAY_INLINE std::uint32_t biased_exponent(std::uint32_t x) { return std::max((x >> 7) & 0xFFu, 1u); }

ASSAY_INLINE void cut_terms(std::uint32_t sign_mask, Lanes& lanes) {
  for (int l = 0; l < kLanes; ++l) lanes.exponent[l] = 1;
  for (int i = 0; i < kTerms; ++i) {
    for (int l = 0; l < kLanes; ++l) lanes.exponent[l] = std::max(lanes.exponent[l], biased_exponent(lanes.x[i][l]));
  }
  for (int i = 0; i < kTerms; ++i) {
    const std::uint32_t flip = sign_mask >> i & 1;
    for (int l = 0; l < kLanes; ++l) {
      const std::uint32_t x = lanes.x[i][l];
      const std::uint32_t significand = (x & 0x7F) | ((x & 0x7F80) != 0 ? 0x80u : 0u);
      const std::uint32_t lower = std::min(lanes.exponent[l] - biased_exponent(x), 31u);
      const auto cut = static_cast<std::int32_t>(significand << kShift >> lower);
      lanes.sums[i][l] = ((x >> 15) ^ flip) != 0 ? -cut : cut;
    }
  }
}

ASSAY_INLINE void walsh_hadamard(Lanes& lanes) {
  for (int distance = 1; distance < kTerms; distance *= 2) {
    for (int i = 0; i < kTerms; ++i) {
      if ((i & distance) != 0) continue;
      std::int32_t* __restrict low = lanes.sums[i];
      std::int32_t* __restrict high = lanes.sums[i + distance];
      for (int l = 0; l < kLanes; ++l) {
        const std::int32_t a = low[l], b = high[l];
        low[l] = a + b;
        high[l] = a - b;
      }
    }
  }
}

// A sum counts units of 2^(e_max - 25), e_max = exponent - 127 - 2. f32 has no bit below 2^-149; nor has a sum, as every
// term is a multiple of 2^-135, so that those bits can go.
ASSAY_INLINE void find_units(Lanes& lanes) {
  for (int l = 0; l < kLanes; ++l) {
    const std::uint32_t below = 5 - std::min(lanes.exponent[l], 5u);
    const auto unit = static_cast<std::int32_t>(lanes.exponent[l] + below) - 154;  // -149 to 101
    const std::uint32_t subnormal = 1u << std::clamp(unit + 149, 0, 22), normal = static_cast<std::uint32_t>(unit + 127) << 23;
    lanes.below[l] = below;
    lanes.unit[l] = std::bit_cast<float>(unit < -126 ? subnormal : normal);
  }
}

// Truncates a sum to f32, and rounds that to bf16.
ASSAY_INLINE std::uint16_t finish(std::int32_t sum, std::uint32_t below, float unit) {
  const auto magnitude = static_cast<std::uint32_t>(sum < 0 ? -sum : sum);
  const auto kept = static_cast<std::int32_t>(magnitude >> below);
  // Conversion rounds to nearest; where it rounded up, the truncated value is the previous float.
  const float nearest = static_cast<float>(kept);
  const std::uint32_t up = static_cast<std::int32_t>(nearest) > kept ? 1 : 0;
  const float truncated = std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - up);
  const float value = truncated * unit;  // exact: 24 bits, or infinite from 2^128 upward
  const std::uint32_t sign = static_cast<std::uint32_t>(sum) & 0x8000'0000u;
  return fast::encode_bf16(std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value)));
}

// Column `l` holds an infinity or a NaN.
void special_lane(std::uint32_t sign_mask, Lanes& lanes, int l) {
  bool nan = false;
  for (int i = 0; i < kTerms; ++i) nan |= (lanes.x[i][l] & 0x7FFF) > 0x7F80;
  for (unsigned j = 0; j < kTerms; ++j) {
    bool plus = false, minus = false;
    for (unsigned i = 0; i < kTerms; ++i) {
      const std::uint32_t x = lanes.x[i][l];
      if ((x & 0x7FFF) != 0x7F80) continue;
      const bool negative = ((x >> 15) + (sign_mask >> i) + static_cast<unsigned>(std::popcount(i & j))) % 2 == 1;
      (negative ? minus : plus) = true;
    }
    const bool invalid = nan || (plus && minus);
    lanes.y[j][l] = invalid ? 0x7FFF : plus ? 0x7F80 : 0xFF80;
  }
}

ASSAY_CLONES void transform(std::uint32_t sign_mask, Lanes& lanes) {
  cut_terms(sign_mask, lanes);
  walsh_hadamard(lanes);
  find_units(lanes);
  for (int j = 0; j < kTerms; ++j) {
    const std::int32_t* __restrict sums = lanes.sums[j];
    std::uint16_t* __restrict y = lanes.y[j];
    for (int l = 0; l < kLanes; ++l) y[l] = finish(sums[l], lanes.below[l], lanes.unit[l]);
  }
  std::uint32_t largest = 0;
  for (int l = 0; l < kLanes; ++l) largest = std::max(largest, lanes.exponent[l]);
  if (largest < 255) return;
  for (int l = 0; l < kLanes; ++l) {
    if (lanes.exponent[l] == 255) special_lane(sign_mask, lanes, l);
  }
}

}  // namespace

void hadamard_transform(std::uint16_t sign_mask, const std::uint16_t* x, std::int64_t x_stride, std::int64_t terms,
                        std::int64_t columns, std::uint16_t* y, std::int64_t y_stride) {
  Lanes lanes;
  for (std::int64_t first = 0; first < columns; first += kLanes) {
    const auto used = static_cast<std::size_t>(std::min<std::int64_t>(kLanes, columns - first));
    for (int i = 0; i < kTerms; ++i) {
      const std::size_t present = i < terms ? used : 0;
      if (present != 0) std::memcpy(lanes.x[i], x + i * x_stride + first, present * sizeof(std::uint16_t));
      std::memset(lanes.x[i] + present, 0, (kLanes - present) * sizeof(std::uint16_t));
    }
    transform(sign_mask, lanes);
    for (int j = 0; j < kTerms; ++j) std::memcpy(y + j * y_stride + first, lanes.y[j], used * sizeof(std::uint16_t));
  }
}

}  // namespace assay
