#pragma once
// conformance/cases/*.txt, in the order of their names.

#include "conformance/support/embedded_text.h"

namespace assay::conformance {

extern const std::span<const EmbeddedText> kEmbeddedCases;

}  // namespace assay::conformance
