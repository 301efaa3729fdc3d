#pragma once
// From an output that is wrong to the text a person reads.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conformance/ops/answer.h"
#include "golden/io/fixture.h"
#include "reference/gemm/error_bound.h"

namespace assay::conformance {

struct DescribeRequest {
  const golden::Case& problem;
  const OutputSpec& spec;
  std::span<const std::byte> want, got;    // whole buffers
  std::span<const std::uint8_t> written;   // by byte: 1 where the op writes
  std::uint8_t poison;                     // what the buffer held before the call, and still must where nothing is written
  bool zero_sign_free;
};

std::string describe_difference(const DescribeRequest& request);

// Elements outside their bounds, or still holding the poison; empty when there are none.
std::string describe_outside_bounds(const DescribeRequest& request, std::span<const CertifiedBound> bounds);

}  // namespace assay::conformance
