#pragma once
// Bytes beside tensors that no call may change.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace assay::conformance {

// They differ from place to place and repeat after this many bytes, so that a shifted copy of them is detected too.
constexpr std::int64_t kCanaryPeriod = std::int64_t{1} << 16;

// Those of place `at`, at least kCanaryPeriod bytes; `inverted`: every bit is inverted.
const std::byte* canaries(std::int64_t at, bool inverted);

// Calls body(from, count, canaries) for the pieces of canary bytes [begin, end).
template <class Body>
void for_canaries(std::int64_t begin, std::int64_t end, bool inverted, Body body) {
  for (std::int64_t at = begin; at < end; at += kCanaryPeriod)
    body(at, std::min(kCanaryPeriod, end - at), canaries(at, inverted));
}

}  // namespace assay::conformance
