#pragma once
// The check that is left when no accumulation plan was stated: every element within its certified bound.

#include <cstdint>
#include <span>
#include <string>

#include "conformance/judge/finding.h"
#include "golden/io/fixture.h"
#include "reference/gemm/error_bound.h"

namespace assay::conformance {

// What is wrong with a product that was written over `poison`: elements outside their bound or not written at all, and
// bytes written where `written` (one a byte) says that nothing may be. Empty when nothing is; else lines as compare.h has them.
// A NaN of every bit, where a NaN is right, is one: over another poison it is not what was there before.
// `findings`, if given, receives the same as an entry.
std::string outside_bounds_text(const std::string& output, const golden::Tensor& got, std::span<const std::uint8_t> written,
                                std::uint8_t poison, std::span<const CertifiedBound> bounds, std::vector<Finding>* findings = nullptr);

}  // namespace assay::conformance
