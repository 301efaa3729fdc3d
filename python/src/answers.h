#pragma once
// The oracle: the reference's answer to a call, and the inputs of a case line.

#include <nanobind/nanobind.h>

namespace assay::python {

void bind_answers(nanobind::module_& module);

}  // namespace assay::python
