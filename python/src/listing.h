#pragma once
// What there is: case lines, scale rules, tensor-core units, accumulation plans.

#include <nanobind/nanobind.h>

namespace assay::python {

void bind_listing(nanobind::module_& module);

}  // namespace assay::python
