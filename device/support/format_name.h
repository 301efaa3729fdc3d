#pragma once
// The name of a format in messages.

#include <cstdint>
#include <string>

#include "reference/types/format.h"

namespace assay::device {

// Also for a value that is not a format, which a caller may pass.
inline std::string format_name(Format format) {
  return format <= Format::e2m3 ? std::string(name_of(format)) : std::string("an unknown format");
}

}  // namespace assay::device
