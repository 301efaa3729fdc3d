#pragma once
// What outputs and workspaces are filled with before a call: the words of a NaN, then other bytes.

#include <cstdint>

namespace assay::conformance {

inline constexpr std::uint8_t kPoisons[] = {0xff, 0xa5};

inline std::uint8_t other_poison(std::uint8_t poison) { return poison == kPoisons[0] ? kPoisons[1] : kPoisons[0]; }

}  // namespace assay::conformance
