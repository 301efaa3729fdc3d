#include "conformance/diagnose/trace/trace.h"

#include <fmt/format.h>

#include <bit>

#include "conformance/diagnose/trace/trace_parts.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/ops/answer.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/product.h"
#include "reference/gemm/element_scalar.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// Every output of the call as `layer` gives it; `only`, if not empty, alone.
std::map<std::string, Tensor> outputs_by(const Request& call, Layer layer, const std::string& only = "") {
  Request request = call;
  request.out.clear();
  std::map<std::string, Tensor> made;
  for (const OutputSpec& spec : outputs_of(call)) {
    if (!only.empty() && spec.name != only) continue;
    Tensor& tensor = made[spec.name];
    tensor = {spec.type, spec.shape, {}};
    const std::int64_t count = tensor.elements();
    tensor.bytes.resize(static_cast<std::size_t>(spec.type == Format::e2m1 ? count : bytes_of(spec.type, count)));
    request.out[spec.name] = {tensor.type, tensor.shape, tensor.bytes.empty() ? nullptr : tensor.bytes.data(),
                              static_cast<std::int64_t>(tensor.bytes.size())};
  }
  answer(request, layer);
  return made;
}

std::string names_of(const std::vector<OutputSpec>& specs) {
  std::string names;
  for (const OutputSpec& spec : specs) names += (names.empty() ? "" : ", ") + spec.name;
  return names;
}

const Segment& segment_of(const OutputMap& map, const TracedElement& at) {
  for (const Segment& segment : map.segments) {
    if (segment.group != at.group) continue;
    require(at.row >= 0 && at.row < segment.used_rows, "element row", at.row, fmt::format("0 to {}", segment.used_rows - 1));
    require(at.column >= 0 && at.column < segment.used_columns, "element column", at.column,
            fmt::format("0 to {}", segment.used_columns - 1));
    return segment;
  }
  throw InvalidArgument("element group", std::to_string(at.group), fmt::format("0 to {}", map.segments.size() - 1));
}

}  // namespace

std::string shown_f32(float value) { return show_element(Format::f32, std::bit_cast<std::uint32_t>(value)); }

Trace trace_element(const Case& call, const TracedElement& at) {
  Request request = Request::read_only(call);
  request.out.clear();
  const std::vector<OutputSpec> specs = outputs_of(request);
  const std::string product = product_output(call.op);
  std::string output = at.output;
  if (output.empty()) output = product.empty() ? specs.at(0).name : product;
  const OutputSpec* spec = nullptr;
  for (const OutputSpec& each : specs) spec = each.name == output ? &each : spec;
  if (spec == nullptr) throw InvalidArgument("--output", "'" + output + "'", names_of(specs));

  // A whole product by the scalar layer takes long, and its fast layer gives the same bits.
  std::map<std::string, Tensor> want =
      outputs_by(request, output == product ? Layer::fast : Layer::scalar, output == product ? output : "");
  const OutputMap map = map_output(call, output, want.at(output));
  const Segment& segment = segment_of(map, at);
  const std::int64_t element = segment.first + offset_of(segment, {at.row, at.column});
  Trace trace;
  trace.output = fmt::format("{} {}", output, map.grouped ? fmt::format("group {}", at.group) : "");
  if (!map.row_name.empty()) trace.output += fmt::format(" {} {}", map.row_name, at.row);
  if (!map.column_name.empty()) trace.output += fmt::format(" {} {}", map.column_name, at.column);
  if (output == product) {
    tracing::trace_product(request, element, trace.lines);
  } else if (call.op == "quantize" && (output.ends_with("data") || output.ends_with("scale_inv"))) {
    tracing::trace_quantized({request, output, segment, {at.row, at.column}, want, call.out, call}, trace.lines);
  }
  const auto given = call.out.find(output);
  const bool was_given = given != call.out.end() && given->second.bytes.size() == want.at(output).bytes.size();
  trace.lines.push_back({output, show_element(spec->type, Elements(want.at(output))[element]),
                         was_given ? show_element(spec->type, Elements(given->second)[element]) : ""});
  return trace;
}

}  // namespace assay::conformance
