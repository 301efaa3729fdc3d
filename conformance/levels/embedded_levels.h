#pragma once
// conformance/levels/*.txt, in the order of their names.

#include "conformance/support/embedded_text.h"

namespace assay::conformance {

extern const std::span<const EmbeddedText> kEmbeddedLevels;

}  // namespace assay::conformance
