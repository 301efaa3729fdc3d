// Uses most of the library, so that the linker takes most of its objects.

#include <reference/gemm/error_bound.h>
#include <reference/linear/grouped_linear.h>
#include <reference/recipes/dequantize.h>
#include <reference/types/error.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int plugin_entry(const assay::LinearForward* forward, const assay::GroupedGemmProblem* problem,
                        const assay::DequantizeProblem* codes, void* out) {
  try {
    assay::linear_forward({}, {}, *forward, out);
    assay::dequantize(*codes, out);
    return static_cast<int>(assay::error_bounds(*problem).size());
  } catch (const assay::InvalidArgument&) {
    return -1;
  }
}
