#include "device/tests/mutants/trial.h"

#include <algorithm>
#include <exception>

#include "conformance/generate/generator.h"
#include "conformance/judge/calls/content_faults.h"
#include "conformance/ops/answer.h"
#include "device/tests/emulated_gemm/poisoned_outputs.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/guards.h"
#include "device/tests/mutants/room.h"
#include "reference/types/error.h"

namespace assay::mutants {
namespace {

using conformance::CaseLine;
using conformance::give_outputs;
using conformance::poison;

// Calls `visit` with the storage of every tensor of the case.
template <class Visit>
bool for_each_tensor(const Case& problem, Visit visit) {
  bool all = true;
  for (const auto* tensors : {&problem.in, &problem.out}) {
    for (const auto& [name, tensor] : *tensors) all = visit(tensor.bytes) && all;
  }
  return all;
}

// Whether the reference takes these contents.
bool is_accepted(Case problem) {
  try {
    answer(conformance::Request::of(problem), conformance::Layer::scalar);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

std::vector<Trial> trials_of(const CaseLine& line, std::size_t most_bytes) {
  std::vector<Trial> made;
  Case right = conformance::generate(line);
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : right.in) bytes += tensor.bytes.size();
  if (bytes > most_bytes) return made;
  give_outputs(line, right);
  const std::map<std::string, Tensor> poisoned = right.out;
  if (!conformance::fault_word(line).empty()) {
    for (conformance::ContentFault& fault : conformance::content_faults(line, right)) {
      if (is_accepted(fault.problem)) continue;
      made.push_back({to_text(line) + " with " + fault.what, std::move(fault.problem), poisoned, true, 0, {}});
    }
    return made;
  }
  Case expected = right;
  answer(conformance::Request::of(expected), conformance::Layer::scalar);
  made.push_back({to_text(line), std::move(right), std::move(expected.out), false, 0, {}});
  return made;
}

namespace {

Outcome attempt_in_order(Trial& trial, bool reversed) {
  for (auto& [name, tensor] : trial.problem.out) poison(tensor);
  for_each_tensor(trial.problem, [](const auto& bytes) {
    renew_guards(bytes.data(), bytes.capacity());
    return true;
  });
  const std::map<std::string, Tensor> inputs = trial.problem.in;
  device::host::reversed = reversed;
  try {
    if ((run(trial.problem) != 0) != trial.is_fault) return Outcome::status;
  } catch (const std::exception&) {
    return Outcome::error;
  }
  for (const auto& [name, tensor] : trial.expected) {
    if (trial.problem.out.at(name).bytes != tensor.bytes) return Outcome::bits;
  }
  const bool kept = for_each_tensor(trial.problem, [](const auto& bytes) { return guards_hold(bytes.data(), bytes.capacity()); });
  for (const auto& [name, tensor] : inputs) {
    if (trial.problem.in.at(name).bytes != tensor.bytes) return Outcome::memory;
  }
  return kept ? Outcome::same : Outcome::memory;
}

}  // namespace

Outcome attempt(Trial& trial) {
  const Outcome outcome = attempt_in_order(trial, false);
  return outcome == Outcome::same ? attempt_in_order(trial, true) : outcome;
}

}  // namespace assay::mutants
