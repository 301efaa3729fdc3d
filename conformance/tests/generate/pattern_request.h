#pragma once
// Bits of a pattern, for the tests of patterns.

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/generate/patterns.h"

namespace assay::conformance {

inline std::vector<std::uint32_t> fill(const PatternRequest& request) {
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(request.rows * request.columns));
  fill_pattern(request, bits);
  return bits;
}

inline PatternRequest request_of(std::string_view pattern, Format type, std::int64_t rows, std::int64_t columns) {
  PatternRequest request;
  request.pattern = pattern;
  request.type = type;
  request.seed = 11;
  request.tensor = "x";
  request.rows = rows;
  request.columns = columns;
  request.eps = 0.0078125f;
  request.contraction = columns;
  return request;
}

}  // namespace assay::conformance
