#pragma once
// One call on a backend, and everything it did to memory.

#include <map>
#include <string>
#include <vector>

#include "conformance/backends/backend.h"
#include "conformance/ops/answer.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// A backend call in the making: owns the text and arrays that assay_call points to. Tensor data are filled in later.
class Call {
 public:
  Call(const golden::Case& problem, const std::vector<OutputSpec>& outputs);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  assay_call call{};
  std::vector<assay_tensor> inputs, outputs;

 private:
  std::vector<assay_parameter> parameters_;
};

struct Attempt {
  assay_status status = ASSAY_FAILED;
  std::string error;                                     // what the backend said when status is not ASSAY_OK
  std::map<std::string, std::vector<std::byte>> outputs;  // by name, whatever the status
  std::vector<std::string> damage;                       // canaries written, inputs changed: one line each
};

struct AttemptOptions {
  std::uint8_t poison = 0xff;       // fills outputs and workspace
  std::int64_t timeout_ms = 60'000;
  std::int64_t algorithm = -1;
};

// Allocates, copies the inputs, poisons, calls once, waits, reads everything back. A call that does not finish in time has
// status ASSAY_TIMEOUT, and its memory is not looked at. Throws BackendError when the backend's own memory, copies or
// streams fail.
Attempt attempt(Backend& backend, const golden::Case& problem, const std::vector<OutputSpec>& outputs, const AttemptOptions& options);

}  // namespace assay::conformance
