#pragma once
// Grouped GEMMs drawn at random: kinds, layouts, types, scalars, data, and shapes that a vendor's library takes (rows of
// every matrix are multiples of 16 bytes) and that no tile divides. Each is an ordinary case line.

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// The case number `index` of the sequence for `seed`; the same on every machine. `architecture`: "sm90" and older: the
// kinds that it has, with its arithmetic; "sm100" and newer likewise; another text: all kinds with their usual arithmetic.
//
// 1 to 64 groups, some of them empty; N and K to 8192; 1 to 32768 rows; at most 1.3e10 products and 1.4e9 on average.
CaseLine random_gemm(std::uint64_t seed, std::int64_t index, std::string_view architecture = {});

}  // namespace assay::conformance
