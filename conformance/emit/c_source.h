#pragma once
// A case as one self-contained C file, for simulators, RTL and emulators that can load neither a plug-in nor a fixture.

#include <string>

#include "conformance/emit/exact_case.h"

namespace assay::conformance {

// C99, and C++11 too: the inputs and the expected words as arrays, a table of tensors, a function that compares, and main().
// `case_line`: canonical, for the comment. The text is the same on every machine.
std::string c_source(const ExactCase& each, const std::string& case_line);

}  // namespace assay::conformance
