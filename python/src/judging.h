#pragma once
// The judge of the conformance suite, on a Python object as the backend.

#include <nanobind/nanobind.h>

namespace assay::python {

void bind_judging(nanobind::module_& module);

}  // namespace assay::python
