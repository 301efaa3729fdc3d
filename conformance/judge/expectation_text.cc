// What differs from an expectation, and why, as text and findings.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/diagnose/other_calls/diagnosis.h"
#include "conformance/diagnose/product_hints.h"
#include "conformance/diagnose/unit_behaviour.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/judge/compare/outside_bounds.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/expectation_request.h"

namespace assay::conformance {
namespace {

// Outputs that others depend on come first: the largest values, then the scales that follow from them, then codes.
int rank_of(const OutputSpec& spec) {
  if (spec.name.ends_with("amax") || spec.name.ends_with("amax_history")) return 0;
  return spec.name.ends_with("scale_inv") || spec.name == "scale" ? 1 : 2;
}

// Name of the output with the scales of these codes; empty if there is none.
std::string scales_of(const OutputSpec& spec) {
  if (!spec.name.ends_with("wise_data")) return "";
  return spec.name.substr(0, spec.name.size() - std::string_view("data").size()) + "scale_inv";
}

}  // namespace

std::string Expectation::differences(const Outputs& outputs, std::uint8_t poison, std::vector<std::string>* details,
                                     std::vector<Finding>* findings, const OtherPoison* other) const {
  if (!needs_comparison(outputs, poison)) return "";
  std::string text;
  std::vector<const Output*> ordered;
  for (const Output& output : outputs_) ordered.push_back(&output);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Output* a, const Output* b) { return rank_of(a->spec) < rank_of(b->spec); });
  std::set<std::string> wrong_scales;
  for (const Output* each : ordered) {
    const Output& output = *each;
    const std::vector<std::byte>& bytes = outputs.at(output.spec.name);
    if (!is_bounded(output) && output.is_exact(bytes, poison)) continue;
    const std::vector<std::uint8_t> mask = output.mask();
    const Tensor got{output.spec.type, output.spec.shape, bytes};
    if (is_bounded(output)) {
      const std::string outside = outside_bounds_text(output.spec.name, got, mask, poison, bounds_, findings);
      if (outside.empty()) continue;
      const Request request = request_of(problem_, attributes_);
      text += outside;
      if (!explains_) continue;
      for (const std::string& hint : explanations_within({request, output.spec.name, got, got, mask, earlier_}, bounds_)) {
        text += "  hint    " + hint + "\n";
        if (findings != nullptr) findings->back().hints.push_back(hint);
      }
      text += shown_unit(output, got, findings);
      continue;
    }
    const Tensor before = output.filled(poison), want = output.wanted();
    Tensor other_got, other_before;
    OtherRun run;
    if (other != nullptr) {
      other_got = want;
      if (other->outputs != nullptr) other_got.bytes = other->outputs->at(output.spec.name);
      other_before = output.filled(other->poison);
      run = {&other_got, &other_before};
    }
    const bool scales_are_wrong = wrong_scales.count(scales_of(output.spec)) != 0;
    Difference difference =
        compare(problem_, output.spec.name, want, got, {output.zero_sign_free, &before, mask, run, explains_, scales_are_wrong});
    if (!difference) continue;
    if (rank_of(output.spec) == 1 && difference.in_use > 0) wrong_scales.insert(output.spec.name);
    const Request request = request_of(problem_, attributes_);
    std::vector<std::string> causes;
    bool scales_explain_all = false;
    if (explains_ && problem_.op == "grouped_gemm" && output.spec.name == "d") {
      ScaleFindings findings = scale_findings(request, got, want);
      scales_explain_all = findings.explained == findings.looked_at;
      causes = std::move(findings.hints);
      if (details != nullptr) *details = std::move(findings.details);
    }
    const bool whole = !causes.empty() && scales_explain_all;
    if (explains_ && !whole) {
      const std::vector<std::string> more = explanations({request, output.spec.name, got, want, mask, earlier_});
      causes.insert(causes.begin(), more.begin(), more.end());
    }
    difference.hints.insert(difference.hints.begin(), causes.begin(), causes.end());
    if (difference.hints.size() > 3) difference.hints.resize(3);
    text += difference_text(difference) + shown_unit(output, got, findings);
    if (findings != nullptr) findings->push_back(finding_of(difference));
  }
  return text;
}

// A line that names the unit which the wrong product shows, for data that show one.
std::string Expectation::shown_unit(const Output& output, const Tensor& got, std::vector<Finding>* findings) const {
  if (probed_unit_.empty() || output.spec.name != product_) return "";
  const std::string behaviour = behaviour_of(request_of(problem_, attributes_), got, probed_unit_);
  if (behaviour.empty()) return "";
  if (findings != nullptr) findings->push_back(finding_of("statement", "the backend " + behaviour));
  return "  stated  the backend " + behaviour + "\n";
}

std::string Expectation::disagreement(const std::map<std::string, std::vector<std::byte>>& first,
                                      const std::map<std::string, std::vector<std::byte>>& second) const {
  if (basis_ != CheckBasis::bound) return "";
  std::string text;
  for (const Output& output : outputs_) {
    if (!is_bounded(output)) continue;
    const std::vector<std::byte>&one = first.at(output.spec.name), &other = second.at(output.spec.name);
    std::int64_t apart = 0, at = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (!output.is_judged(i) || one[i] == other[i]) continue;
      if (apart++ == 0) at = static_cast<std::int64_t>(i);
    }
    if (apart > 0) {
      text += fmt::format("  output  {}: {} bytes differ from run to run, the first at byte {}\n", output.spec.name, apart, at);
    }
  }
  return text;
}

}  // namespace assay::conformance
