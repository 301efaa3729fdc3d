#pragma once
// Ways to compute a product wrongly, one row each.

#include <functional>
#include <string>
#include <vector>

#include "conformance/diagnose/other_calls/product_element.h"
#include "reference/gemm/grouped_gemm.h"

namespace assay::conformance::diagnosis {

struct NamedWay {
  std::string text;                            // "with K rounded down to a multiple of 16: its tail is left out"
  std::function<bool(ProductWay& way)> apply;  // false: not applicable, or changes nothing
};

// The most plausible first. `way` is the right one.
std::vector<NamedWay> ways_to_sum(const ProductWay& way);     // product_sums.cc: plans, units, widths, order
std::vector<NamedWay> ways_to_read(const ProductWay& way);    // product_reads.cc: K, groups, scales
std::vector<NamedWay> ways_to_finish(const ProductWay& way);  // product_finishes.cc: alpha, beta, C, bias, the last rounding

}  // namespace assay::conformance::diagnosis
