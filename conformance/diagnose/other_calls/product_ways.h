#pragma once
// Ways to compute a product wrongly, one row each.

#include <functional>
#include <string>
#include <vector>

#include "conformance/diagnose/other_calls/product_element.h"
#include "reference/gemm/grouped_gemm.h"

namespace assay::conformance::diagnosis {

struct NamedVariant {
  std::string text;                                    // "with K rounded down to a multiple of 16: its tail is left out"
  std::function<bool(ProductVariant& variant)> apply;  // false: not applicable, or changes nothing
};

// The most plausible first. `way` is the right one.
std::vector<NamedVariant> sum_variants(const ProductVariant& variant);   // product_sums.cc: plans, units, widths, order
std::vector<NamedVariant> read_variants(const ProductVariant& variant);  // product_reads.cc: K, groups, scales
std::vector<NamedVariant> finish_variants(
    const ProductVariant& variant);  // product_finishes.cc: alpha, beta, C, bias, the last rounding

}  // namespace assay::conformance::diagnosis
