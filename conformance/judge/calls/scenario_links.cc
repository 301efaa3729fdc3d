#include "conformance/judge/calls/scenario_links.h"

#include <algorithm>
#include <span>

#include "conformance/generate/generator.h"
#include "conformance/judge/compare/output_digest.h"
#include "golden/io/sha256.h"

namespace assay::conformance {

std::vector<OutputSpec> specs_of_call(const ScenarioCall& call, const Case& problem) {
  std::vector<std::string> wanted = wanted_outputs(call.line);
  const bool caches = std::find(wanted.begin(), wanted.end(), "w_rowwise_data") != wanted.end();
  if (caches && call.line.text("recipe") == "nvfp4") wanted.push_back("w_rowwise_amax");
  std::vector<OutputSpec> specs;
  for (const OutputSpec& spec : outputs_of(Request::read_only(problem))) {
    if (std::find(wanted.begin(), wanted.end(), spec.name) != wanted.end()) specs.push_back(spec);
  }
  return specs;
}

void put_links(const std::vector<ScenarioLink>& links, const std::vector<Outputs>& outputs, Case& problem) {
  for (const ScenarioLink& link : links) problem.in.at(link.input).bytes = outputs[link.call].at(link.output);
}

std::string digest_of_links(const ScenarioCall& call, const Case& problem) {
  std::string text;
  for (const std::vector<ScenarioLink>* links : {&call.chained, &call.carried}) {
    for (const ScenarioLink& link : *links) {
      const Tensor& tensor = problem.in.at(link.input);
      text += link.input + " " + output_digest(tensor.bytes, {tensor.type, false}) + "\n";
    }
  }
  return text.empty() ? "" : golden::sha256_hex(std::as_bytes(std::span(text)));
}

}  // namespace assay::conformance
