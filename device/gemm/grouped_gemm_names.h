#pragma once
// Names in messages about a grouped GEMM, also for values out of range, and widths of elements.

#include <cstdint>
#include <iterator>

#include "device/support/format_name.h"
#include "reference/gemm/plan.h"
#include "reference/types/format.h"

namespace assay::device {

inline const char* kind_name(GemmKind kind) {
  constexpr const char* kNames[] = {"bf16", "f16", "tensor", "block", "mxfp8", "nvfp4"};
  const auto index = static_cast<std::uint32_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "an unknown kind";
}
inline const char* layout_name(GemmLayout layout) {
  constexpr const char* kNames[] = {"TN", "NN", "NT"};
  const auto index = static_cast<std::uint32_t>(layout);
  return index < std::size(kNames) ? kNames[index] : "an unknown layout";
}
// Bits of an element of an operand or of D.
inline std::int64_t type_bits(Format type) {
  switch (type) {
    case Format::f32: return 32;
    case Format::bf16:
    case Format::f16: return 16;
    case Format::e2m1: return 4;
    default: return 8;
  }
}

}  // namespace assay::device
