#include "device/tests/mutants/trial.h"

#include <algorithm>
#include <exception>

#include "conformance/generate/generator.h"
#include "conformance/judge/calls/content_faults.h"
#include "conformance/ops/answer.h"
#include "device/tests/emulated_gemm/poisoned_outputs.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/guards.h"
#include "device/tests/mutants/rooms/offsets_faults.h"
#include "device/tests/mutants/rooms/product_faults.h"
#include "device/tests/mutants/rooms/room.h"
#include "device/tests/mutants/rooms/rule_faults.h"
#include "device/tests/mutants/shared_memory.h"
#include "reference/types/error.h"

namespace assay::mutants {
namespace {

using conformance::CaseLine;
using conformance::give_outputs;
using conformance::poison;

// Calls `visit` with the name and the storage of every tensor of the case.
template <class Visit>
void for_each_tensor(Case& problem, Visit visit) {
  for (auto* tensors : {&problem.in, &problem.out}) {
    for (auto& [name, tensor] : *tensors) visit(name, tensor);
  }
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

std::map<std::string, Tensor> expected_of(Case problem) {
  answer(conformance::Request::of(problem), conformance::Layer::scalar);
  return std::move(problem.out);
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
  if (conformance::fault_word(line).empty()) {
    std::map<std::string, Tensor> expected = expected_of(right);
    made.push_back({to_text(line), std::move(right), std::move(expected), false, 0, {}});
    return made;
  }
  for (conformance::ContentFault& fault : conformance::content_faults(line, right)) {
    if (is_accepted(fault.problem)) continue;
    made.push_back({to_text(line) + " with " + fault.what, std::move(fault.problem), poisoned, true, 0, {}});
  }
  for (const auto faults : {product_faults, rule_faults, offsets_faults}) {
    for (conformance::ContentFault& each : faults(line, right)) {
      const bool accepted = is_accepted(each.problem);
      std::map<std::string, Tensor> expected = accepted ? expected_of(each.problem) : poisoned;
      made.push_back({to_text(line) + " with " + each.what, std::move(each.problem), std::move(expected), !accepted, 0, {}});
    }
  }
  return made;
}

namespace {

Outcome attempt_in_order(const Trial& trial, bool reversed) {
  Case problem = trial.problem;
  device::host::in_use_before.clear();  // a call may have been refused
  for (auto& [name, tensor] : problem.out) poison(tensor);
  for_each_tensor(problem, [&](const std::string& name, Tensor& tensor) {
    std::vector<std::byte>& bytes = tensor.bytes;
    bytes = fenced_copy(bytes, reversed ? Fence::before : Fence::behind, reversed ? begins_past(name, tensor) : 0);
    renew_guards(bytes.data(), bytes.size());
    device::host::in_use_before.push_back({bytes.data(), bytes.size()});
  });
  device::host::reversed = reversed;
  try {
    if ((run(problem) != 0) != trial.is_fault) return Outcome::status;
  } catch (const std::exception&) {
    return Outcome::error;
  }
  for (const auto& [name, tensor] : trial.expected) {
    if (problem.out.at(name).bytes != tensor.bytes) return Outcome::bits;
  }
  bool kept = shared_guards_hold();
  for_each_tensor(problem, [&](const std::string&, const Tensor& tensor) {
    kept = kept && guards_hold(tensor.bytes.data(), tensor.bytes.size());
  });
  for (const auto& [name, tensor] : trial.problem.in) kept = kept && problem.in.at(name).bytes == tensor.bytes;
  return kept ? Outcome::same : Outcome::memory;
}

}  // namespace

Outcome attempt(const Trial& trial) {
  const Outcome outcome = attempt_in_order(trial, false);
  return outcome == Outcome::same ? attempt_in_order(trial, true) : outcome;
}

}  // namespace assay::mutants
