// Causes of ops that have no family of their own: dequantization, offsets, token permutation, amaxes that are outputs.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/ops/words.h"
#include "reference/recipes/element_scalar.h"

namespace assay::conformance::explaining {
namespace {

using diagnosis::OtherCall;

// The outputs of a call that `change` makes of the failed one. False: it does not apply.
void propose_call(const Failure& failure, const std::string& text, int cost, const Propose& propose,
                  const std::function<bool(OtherCall& call)>& change) {
  Candidate candidate{text, cost};
  candidate.all = [&failure, change](Outputs& outputs) {
    OtherCall other(failure.request());
    if (!change(other)) return false;
    for (auto& [name, tensor] : failure.answered(other.request)) outputs[name].bytes = std::move(tensor.bytes);
    return true;
  };
  propose(std::move(candidate));
}

// ---- dequantize ------------------------------------------------------------------------------------------------------

void propose_code_types(const Failure& failure, const Propose& propose) {
  for (const char* type : {"e4m3", "e5m2"}) {
    propose_call(failure, fmt::format("with codes taken for {} (otype={})", type, type), 12, propose, [type](OtherCall& call) {
      Request& request = call.request;
      for (auto& [name, view] : request.in) {
        if (!name.ends_with("wise_data") || bits_of(view.type) != 8 || view.type == format_named(type)) continue;
        request.attributes["otype"] = std::string(type);
        view.type = *format_named(type);
        return true;
      }
      return false;
    });
  }
}

// ---- Offsets ---------------------------------------------------------------------------------------------------------

// A carry between parts of a scan that is lost.
void propose_scans(const FailedOutput& output, const Propose& propose) {
  const Format type = output.want.type;
  if (output.wrong.empty() || (type != Format::i64 && type != Format::i32)) return;
  for (const std::int64_t part : {32, 64, 128, 256, 512, 1024}) {
    Candidate candidate{
        fmt::format("with the sum of {} beginning anew every {} groups: no carry from the part before", output.name, part), 13};
    candidate.all = [&output, type, part](Outputs& outputs) {
      Tensor& tensor = outputs[output.name];
      const Elements want(output.want);
      const auto width = static_cast<std::size_t>(bits_of(type) / 8);
      for (std::int64_t at = 1; at < output.elements; ++at) {
        const std::uint64_t made = want[at] - want[(at - 1) / part * part];
        std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(at) * width, &made, width);
      }
      return output.elements > part + 1;
    };
    propose(std::move(candidate));
  }
}

// ---- Token permutation -------------------------------------------------------------------------------------------------

// Columns of [R, topk] in reverse.
template <class T>
Tensor reversed_choices(const TensorView& view) {
  Tensor made = diagnosis::tensor_of(view);
  const std::int64_t rows = view.shape.at(0), choices = view.shape.at(1);
  for (std::int64_t r = 0; r < rows; ++r) std::reverse(made.as<T>() + r * choices, made.as<T>() + (r + 1) * choices);
  return made;
}

void propose_tokens(const Failure& failure, const Propose& propose) {
  propose_call(failure, "with the choices of each token summed from the last to the first", 12, propose, [](OtherCall& call) {
    const TensorView map = call.request.input("row_map");
    if (map.shape.size() != 2) return false;
    if (const TensorView* weights = call.request.find_input("weights"))
      call.replace("weights", reversed_choices<float>(TensorView(*weights)));
    call.replace("row_map", reversed_choices<std::int32_t>(map));
    return true;
  });
  propose_call(failure, "with a dropped choice reading row 0", 12, propose, [](OtherCall& call) {
    Tensor map = diagnosis::tensor_of(call.request.input("row_map"));
    // The reference refuses a row that is named twice: this holds where row 0 has no token and one choice is dropped.
    for (std::int64_t i = 0; i < map.elements(); ++i) map.as<std::int32_t>()[i] = std::max(map.as<std::int32_t>()[i], 0);
    call.replace("row_map", std::move(map));
    return true;
  });
  for (const int by : {-1, 1}) {
    propose_call(failure,
                 fmt::format("with scale_inv read one row {}, but for the {} row", by < 0 ? "too early" : "further on",
                             by < 0 ? "first" : "last"),
                 13, propose, [by](OtherCall& call) {
                   const TensorView* const scales = call.request.find_input("scale_inv");
                   if (scales == nullptr || scales->shape.size() != 2 || scales->shape[0] == 0) return false;
                   Tensor made = diagnosis::tensor_of(*scales);
                   const std::int64_t rows = scales->shape[0], bytes = scales->bytes / rows;
                   for (std::int64_t r = 0; r < rows; ++r) {
                     const std::int64_t from = std::clamp<std::int64_t>(r + by, 0, rows - 1);
                     std::memcpy(made.bytes.data() + r * bytes, static_cast<const std::byte*>(scales->data) + from * bytes,
                                 static_cast<std::size_t>(bytes));
                   }
                   call.replace("scale_inv", std::move(made));
                   return true;
                 });
  }
}

// ---- amax as an output -------------------------------------------------------------------------------------------------

void propose_given_scales(const Failure& failure, const Propose& propose) {
  const auto amax = std::find_if(failure.outputs().begin(), failure.outputs().end(),
                                 [](const FailedOutput& each) { return each.name == "amax" && !each.wrong.empty(); });
  const TensorView* const scale = failure.request().find_input("scale");
  if (amax == failure.outputs().end() || scale == nullptr || scale->elements() != amax->elements) return;
  for (const bool divided : {false, true}) {
    Candidate candidate{fmt::format("with the amax of x {} the scale", divided ? "divided by" : "times"), 12};
    candidate.all = [&output = *amax, scale, divided](Outputs& outputs) {
      auto* const to = outputs[output.name].as<float>();
      for (std::int64_t t = 0; t < output.elements; ++t) to[t] = divided ? to[t] / floats(scale)[t] : to[t] * floats(scale)[t];
      return true;
    };
    propose(std::move(candidate));
  }
}

}  // namespace

void propose_small_ops(const Failure& failure, const Propose& propose) {
  const std::string& op = failure.call().op;
  if (op == "dequantize") propose_code_types(failure, propose);
  if (op == "permute" || op == "unpermute") propose_tokens(failure, propose);
  if (op == "quantize") propose_given_scales(failure, propose);
  if (op.starts_with("splits_to_offsets"))
    for (const FailedOutput& output : failure.outputs()) propose_scans(output, propose);
}

}  // namespace assay::conformance::explaining
