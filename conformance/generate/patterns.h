#pragma once
// Data patterns by name. Each is a function of (seed, tensor, row, column): of nothing else, so that the same element has
// the same value for any groups and any order of generation.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "reference/types/format.h"

namespace assay::conformance {

// The role of a tensor, where its pattern depends on it.
enum class Role {
  value,   // high-precision input of an op that is not a product
  first,   // operand of a product: the one whose pairs are negated, whose rows are one-hot
  second,  // the other operand
};

struct PatternRequest {
  std::string_view pattern = "uniform";
  Format type = Format::bf16;  // f32, bf16, f16, e4m3, e5m2 or e2m1
  std::uint64_t seed = 0;
  std::string tensor;  // names the random streams
  std::int64_t rows = 0, columns = 0;
  Role role = Role::value;

  // Quantization: the target of the values.
  Format target = Format::e4m3;
  std::int64_t block = 128;  // elements that share a scale along a row or column
  bool one_scale = false;    // all blocks depend on one amax (per-tensor recipes, nvfp4)
  float eps = 0;
  int e4m3_max = 448;  // nvfp4: largest block scale

  // Products: which axis is summed over, and how. `position(row)` is k for a row when rows are the contraction.
  bool contract_rows = false;
  std::function<std::int64_t(std::int64_t)> position;  // null: the row itself
  std::int64_t contraction = 0;                        // length of the longest sum
  std::function<std::int64_t(std::int64_t)>
      depth;                    // rows are the contraction: length of the sum that a row belongs to; null: `contraction`
  int fraction_bits = 13;       // of the accumulating step
  int step = 32;                // products of one step
  Format output = Format::f32;  // type of D
  int amplitude = 1;            // integers, wide_sums: largest magnitude
  std::int64_t period = 0;      // wide_sums: an anchor at the start of each so many k; 0: one for the whole sum
  int anchor = 0;               // wide_sums: log2 of the anchor
  bool cancel = false;          // wide_sums: a second anchor cancels the first at the end of the period
  bool ends = false;            // wide_sums: of the first and the last period nothing but the first and the last anchor
};

struct PatternInfo {
  std::string_view name;
  std::string_view help;
};
std::span<const PatternInfo> patterns();

// Bits of every element, row-major, right-aligned, one 32-bit word each. Threaded; the result does not depend on threads.
// Errors: an unknown pattern; `bits` of another size than rows * columns.
void fill_pattern(const PatternRequest& request, std::span<std::uint32_t> bits);

// The same for the rows from `first_row` on that `bits` has room for: whole ones. Runs on the caller's thread.
void fill_pattern_rows(const PatternRequest& request, std::int64_t first_row, std::span<std::uint32_t> bits);

}  // namespace assay::conformance
