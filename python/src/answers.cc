#include "answers.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "handover.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::python {
namespace {

using conformance::OutputSpec;
using conformance::Request;

using Wanted = std::optional<std::vector<std::string>>;

Request request_of(const std::string& op, const nb::dict& attributes, const nb::dict& inputs) {
  Request request(op);
  request.attributes = attributes_of(attributes);
  request.in = views_of(inputs);
  return request;
}

// Of all outputs those wanted, in the order of the op. The names stand in the request meanwhile, since an output may be one that
// the op has only where it is asked for.
std::vector<OutputSpec> wanted_specs(Request request, const Wanted& wanted) {
  if (wanted) {
    for (const std::string& name : *wanted) request.out[name] = {};
  }
  std::vector<OutputSpec> specs = conformance::outputs_of(request);
  if (!wanted) return specs;
  std::string names;
  for (const OutputSpec& each : specs) names += (names.empty() ? "" : ", ") + each.name;
  for (const std::string& name : *wanted) {
    const bool known = std::any_of(specs.begin(), specs.end(), [&](const OutputSpec& each) { return each.name == name; });
    require(known, "output", name, "one of " + names);
  }
  std::erase_if(specs,
                [&](const OutputSpec& each) { return std::find(wanted->begin(), wanted->end(), each.name) == wanted->end(); });
  return specs;
}

struct Outputs {
  std::vector<OutputSpec> specs;
  std::vector<std::vector<std::byte>> bytes;

  // Zeros for every output, which then stand in the request.
  Outputs(std::vector<OutputSpec> all, Request& request) : specs(std::move(all)) {
    for (const OutputSpec& each : specs) {
      const auto size = static_cast<std::size_t>(element_count(each.shape) * stored_bytes(each.type));
      bytes.emplace_back(size);
      request.out[each.name] = {each.type, each.shape, size == 0 ? nullptr : bytes.back().data(),
                                static_cast<std::int64_t>(size)};
    }
  }
  nb::dict to_python() {
    nb::dict made;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      made[specs[i].name.c_str()] = python::to_python(specs[i].type, specs[i].shape, std::move(bytes[i]));
    }
    return made;
  }
};

nb::dict answer(const std::string& op, const nb::dict& attributes, const nb::dict& inputs, const Wanted& wanted, bool scalar) {
  Request request = request_of(op, attributes, inputs);
  std::optional<Outputs> outputs;
  Handover handover;
  handover.run([&] {
    outputs.emplace(wanted_specs(request, wanted), request);
    conformance::answer(request, scalar ? conformance::Layer::scalar : conformance::Layer::fast);
  });
  return outputs->to_python();
}

nb::dict output_specs(const std::string& op, const nb::dict& attributes, const nb::dict& inputs, const Wanted& wanted) {
  nb::dict made;
  for (const OutputSpec& each : wanted_specs(request_of(op, attributes, inputs), wanted))
    made[each.name.c_str()] = nb::make_tuple(std::string(name_of(each.type)), each.shape);
  return made;
}

nb::dict written(const std::string& op, const nb::dict& attributes, const nb::dict& inputs,
                 const std::vector<std::string>& wanted) {
  Request request = request_of(op, attributes, inputs);
  std::map<std::string, std::vector<std::uint8_t>> masks;
  Handover handover;
  handover.run([&] {
    const Outputs outputs(wanted_specs(request, wanted), request);
    masks = conformance::written_bytes(request);
  });
  nb::dict made;
  for (auto& [name, mask] : masks) {
    const auto* first = reinterpret_cast<const std::byte*>(mask.data());
    made[name.c_str()] = to_python(Format::e8m0, {static_cast<std::int64_t>(mask.size())}, {first, first + mask.size()});
  }
  return made;
}

nb::tuple case_of(const std::string& text) {
  Case made;
  std::vector<std::string> wanted;
  Handover handover;
  handover.run([&] {
    const conformance::CaseLine line = conformance::parse_case_line(text);
    made = conformance::generate(line);
    wanted = conformance::wanted_outputs(line);
  });
  nb::dict inputs;
  for (auto& [name, tensor] : made.in) inputs[name.c_str()] = to_python(tensor.type, tensor.shape, std::move(tensor.bytes));
  return nb::make_tuple(made.op, to_python(made.attributes), inputs, wanted);
}

}  // namespace

void bind_answers(nb::module_& module) {
  module.def("answer", answer, nb::arg("op"), nb::arg("attributes"), nb::arg("inputs"), nb::arg("outputs") = nb::none(),
             nb::arg("scalar") = false, "The expected outputs of a call: {name: (format, shape, bytes)}.");
  module.def("output_specs", output_specs, nb::arg("op"), nb::arg("attributes"), nb::arg("inputs"),
             nb::arg("outputs") = nb::none(), "The outputs of a call: {name: (format, shape)}.");
  module.def("written", written, nb::arg("op"), nb::arg("attributes"), nb::arg("inputs"), nb::arg("outputs"),
             "Which bytes of each output the op writes: 1, and which it leaves alone: 0.");
  module.def("case_of", case_of, nb::arg("line"), "(op, attributes, inputs, wanted outputs) of a case line.");
}

}  // namespace assay::python
