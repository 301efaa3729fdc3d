#pragma once
// Internal to the generator: tensors of an input, filled with patterns, numbers and poison.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/generate/patterns.h"
#include "golden/io/fixture.h"

namespace assay::conformance::inputs {

Tensor make(Format type, std::vector<std::int64_t> shape);

std::int64_t sum_of(const std::vector<std::int64_t>& values);

std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& splits);

Format format_of(const std::string& name);

std::uint32_t nan_code(Format type);
// The largest finite value; the NaN of e2m1, which has none, is its largest value already.
std::uint32_t largest_code(Format type);

// Row-major codes into storage of their type.
void store(std::span<const std::uint32_t> codes, Tensor& tensor, std::int64_t first = 0);

std::vector<std::uint32_t> pattern_bits(const PatternRequest& request);

// Rows from `active` on become NaN.
void poison_tail(std::vector<std::uint32_t>& bits, std::int64_t active, std::int64_t columns, Format type);

// Groups of rows that are stored transposed, each at its own place; null: row after row.
using Transposed = const std::vector<std::int64_t>*;

// The pattern in storage, rows from `active` on as NaN, piece by piece on all processors.
void store_pattern(const PatternRequest& request, std::int64_t active, Tensor& tensor, Transposed splits = nullptr);

Tensor matrix(const PatternRequest& request, std::int64_t active_rows);

// Each group [M,K] of row-major codes becomes [K,M] at its own place; what is past the groups stays.
std::vector<std::uint32_t> transpose_groups(const std::vector<std::uint32_t>& bits, const std::vector<std::int64_t>& splits,
                                            std::int64_t columns);

Tensor integers_tensor(const std::vector<std::int64_t>& values, Format type, std::string_view name);

Tensor floats_tensor(const std::vector<double>& values);

// Rows of a matrix and how they are grouped.
struct Rows {
  bool grouped = false;
  std::vector<std::int64_t> splits;  // one entry, all rows, when not grouped
  std::int64_t active = 0, total = 0;
};
Rows rows_of(const CaseLine& line);

}  // namespace assay::conformance::inputs
