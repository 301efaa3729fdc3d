#pragma once
// Internal to traces.

#include <vector>

#include "conformance/diagnose/trace/trace.h"
#include "conformance/ops/output_map.h"
#include "conformance/ops/request.h"

namespace assay::conformance::tracing {

// The element `at` of the op's product.
void trace_product(const Request& request, std::int64_t at, std::vector<TraceLine>& lines);

// The element at `place` of segment `segment` of an output of op quantize. `want`: the scalar layer's outputs; `given`: the call's.
struct QuantizedElement {
  const Request& request;
  const std::string& output;
  const Segment& segment;
  Coordinates place;
  const std::map<std::string, Tensor>&want, &given;
  const Case& call;
};
void trace_quantized(const QuantizedElement& of, std::vector<TraceLine>& lines);

}  // namespace assay::conformance::tracing
