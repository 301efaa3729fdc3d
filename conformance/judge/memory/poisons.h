#pragma once
// Bytes that outputs and workspaces are filled with before a call: those of a NaN, then others.

#include <cstdint>

namespace assay::conformance {

inline constexpr std::uint8_t kPoisons[] = {0xff, 0xa5};

inline std::uint8_t other_poison(std::uint8_t poison) { return poison == kPoisons[0] ? kPoisons[1] : kPoisons[0]; }

}  // namespace assay::conformance
