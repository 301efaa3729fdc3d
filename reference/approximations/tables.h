#pragma once
// The measured tables (spec approximations-1.3), each expanded at its first use.

#include <cstdint>
#include <span>

namespace assay {

std::span<const std::uint32_t> rcp_table();           // rcp(1 + i / 2^23)
std::span<const std::uint32_t> rsqrt_table();         // rsqrt(1 + i / 2^23), then rsqrt(2 (1 + i / 2^23))
std::span<const std::uint32_t> ex2_table();           // ex2(i / 2^23)
std::span<const std::uint32_t> negative_ex2_table();  // ex2(-i / 2^23)
std::span<const std::uint32_t> tanh_table();          // octaves from 2^-8 to 8, see kTanhBits

// Mantissa bits of its operand that tanh uses, for each octave from [2^-8, 2^-7) to [4, 8).
inline constexpr int kTanhBits[] = {17, 17, 17, 18, 18, 19, 19, 19, 20, 21, 20};

}  // namespace assay
