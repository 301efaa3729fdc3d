#pragma once
// ASSAY_VERSION comes from the project() line of the build.

namespace assay::conformance {
inline constexpr const char* kVersion = ASSAY_VERSION;
}
