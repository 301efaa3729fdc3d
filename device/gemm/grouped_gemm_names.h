#pragma once
// Names in messages about a grouped GEMM, also for values out of range, and widths of elements.

#include <cstdint>
#include <string>

#include "device/support/format_name.h"
#include "reference/types/format.h"
#include "reference/types/gemm.h"

namespace assay::device {

inline std::string kind_name(GemmKind kind) {
  return kind <= GemmKind::nvfp4 ? std::string(name_of(kind)) : std::string("an unknown kind");
}
inline std::string layout_name(GemmLayout layout) {
  return layout <= GemmLayout::NT ? std::string(name_of(layout)) : std::string("an unknown layout");
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
