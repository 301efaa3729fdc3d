#pragma once
// A Python process as a worker of the program: `assay run --backend python:MODULE:NAME` starts it.

#include <nanobind/nanobind.h>

namespace assay::python {

void bind_worker(nanobind::module_& module);

}  // namespace assay::python
