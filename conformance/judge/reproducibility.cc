#include "conformance/judge/reproducibility.h"

#include <fmt/format.h>

#include <cstring>

#include "conformance/judge/calls/group_alone.h"
#include "conformance/judge/memory/poisons.h"

namespace assay::conformance {
namespace {

constexpr int kRepeats = 4;

std::string trouble(const Attempt& tried, const std::string& when) {
  if (tried.status != ASSAY_OK)
    return fmt::format("  when    {}\n  call    returned '{}': {}\n", when, name_of(tried.status), tried.error);
  return tried.damage.empty() ? "" : fmt::format("  when    {}\n  memory  {}\n", when, tried.damage.front());
}

std::string determinism_fault(const CheckedCall& call, const assay_numerics& stated, const Expectation& expectation) {
  const std::string apart = expectation.disagreement(call.first, call.second);
  if (stated.deterministic == 0) return "";
  if (stated.deterministic == 1 && !apart.empty())
    return "  when    the same call over two poisons; the backend states deterministic = 1\n" + apart;
  if (stated.deterministic == -1 && apart.empty()) return "";
  std::map<std::string, std::vector<std::byte>> memory;
  for (int i = 0; i < kRepeats; ++i) {
    // Nothing is stated: check whether results vary over one poison too.
    const std::uint8_t poison = stated.deterministic == 1 ? kPoisons[i % 2] : kPoisons[0];
    const std::string when = fmt::format("the same call for the {}th time", i + 3);
    Attempt again = call.runner.attempt(poison, std::move(memory));
    if (const std::string text = trouble(again, when); !text.empty()) return text;
    const std::string differs = expectation.disagreement(call.first, again.outputs);
    if (!differs.empty())
      return stated.deterministic == 1 ? fmt::format("  when    {}; the backend states deterministic = 1\n{}", when, differs)
                                       : "";
    memory = std::move(again.outputs);
  }
  return apart.empty() ? "" : "  when    the same call over two poisons: the result depends on what memory held\n" + apart;
}

std::string batch_invariance_fault(const CheckedCall& call, const assay_numerics& stated, const JudgeOptions& options) {
  if (stated.batch_invariant != 1) return "";
  const std::optional<GroupAlone> alone = largest_group_alone(call.problem);
  const std::string product = product_output(call.problem.op);
  if (!alone || call.first.count(product) == 0) return "";
  std::vector<OutputSpec> specs;
  for (const OutputSpec& spec : outputs_of(Request::read_only(alone->problem))) {
    for (const OutputSpec& asked : call.specs) {
      if (asked.name == spec.name) specs.push_back(spec);
    }
  }
  CallRunner runner(call.backend, alone->problem, specs, options.algorithm, options.timeout_ms);
  if (!runner.questions().supports.is_ok() || !runner.workspace_fault().empty()) return "";
  const Attempt made = runner.attempt(kPoisons[0]);
  const std::string when =
      fmt::format("the group of {} rows without the others; the backend states batch_invariant = 1", alone->rows);
  if (const std::string text = trouble(made, when); !text.empty()) return text;
  for (const OutputSpec& spec : specs) {
    if (spec.name != product) continue;
    const std::int64_t row = spec.shape[0] == 0 ? 0 : static_cast<std::int64_t>(made.outputs.at(product).size()) / spec.shape[0];
    const std::byte* there = call.first.at(product).data() + alone->first * row;
    const std::byte* here = made.outputs.at(product).data() + alone->first_alone * row;
    std::int64_t apart = 0, at = -1;
    for (std::int64_t i = 0; i < alone->rows * row; ++i) {
      if (there[i] == here[i]) continue;
      if (apart++ == 0) at = i;
    }
    if (apart > 0) {
      return fmt::format("  when    {}\n  output  {}: {} bytes of the group differ, the first in its row {}\n", when, product,
                         apart, at / row);
    }
  }
  return "";
}

}  // namespace

std::string reproducibility_fault(const CheckedCall& call, const assay_numerics& stated, const Expectation& expectation,
                                  const JudgeOptions& options) {
  if (expectation.basis() != CheckBasis::bound) return "";
  const std::string varied = determinism_fault(call, stated, expectation);
  return varied.empty() ? batch_invariance_fault(call, stated, options) : varied;
}

}  // namespace assay::conformance
