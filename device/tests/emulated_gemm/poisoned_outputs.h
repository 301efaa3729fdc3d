#pragma once
// The outputs of a case for a call on the host, poisoned.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "reference/types/tensor.h"

namespace assay::conformance {

inline void poison(Tensor& tensor) { std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0xA5}); }

// Gives the problem the outputs that the line requests, every byte of them poisoned.
inline void give_outputs(const CaseLine& line, Case& problem) {
  const std::vector<std::string> wanted = wanted_outputs(line);
  for (const OutputSpec& spec : outputs_of(Request::of(problem))) {
    if (std::find(wanted.begin(), wanted.end(), spec.name) == wanted.end()) continue;
    poison(problem.out[spec.name] = make_tensor(spec.type, spec.shape));
  }
}

}  // namespace assay::conformance
