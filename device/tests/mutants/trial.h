#pragma once
// One call that a mutant can be found by: a case and what has to come of it, from the reference's scalar layer.

#include <map>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "golden/io/fixture.h"
#include "reference/types/tensor.h"

namespace assay::mutants {

struct Trial {
  std::string name;  // the line, and the content fault if there is one
  Case problem;      // with its outputs
  std::map<std::string, Tensor> expected;
  bool is_fault = false;     // the call has to report its contents, and write nothing
  double seconds = 0;        // without a mutant
  std::vector<int> reaches;  // numbers of mutants whose point the call evaluates
};

// bits: of an output; memory: beside a tensor, or in an input; ended: the process; late: the call did not end.
enum class Outcome : char { same = '.', bits = 'b', memory = 'm', status = 's', error = 'e', ended = 'k', late = 't' };

// The calls of a line: one, or one for each content fault that the reference refuses, and those of product_faults() and
// offsets_faults(). None where
// its inputs have more than `most_bytes`.
std::vector<Trial> trials_of(const conformance::CaseLine& line, std::size_t most_bytes);

// Makes the call into poisoned outputs, with the blocks and threads in their order, and pages behind the tensors that nothing may
// touch; then from the last to the first, with such pages before the tensors, which begin at other addresses (begins_past()).
Outcome attempt(const Trial& trial);

}  // namespace assay::mutants
