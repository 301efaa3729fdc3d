#pragma once
// The check for a product without a stated accumulation plan: every element within its certified bound.

#include <cstdint>
#include <span>
#include <string>

#include "conformance/judge/finding.h"
#include "golden/io/fixture.h"
#include "reference/gemm/error_bound.h"

namespace assay::conformance {

// What is wrong with a product that was written over `poison`: elements outside their bound or not written at all, and
// bytes written where `written` (one per byte) says that nothing may be. Empty when all is right; else lines as in compare.h.
// A NaN with all bits set is accepted where a NaN is right: the run over the other poison shows that it was written.
// `findings`, if given, receives the same as an entry.
std::string outside_bounds_text(const std::string& output, const Tensor& got, std::span<const std::uint8_t> written,
                                std::uint8_t poison, std::span<const CertifiedBound> bounds,
                                std::vector<Finding>* findings = nullptr);

}  // namespace assay::conformance
