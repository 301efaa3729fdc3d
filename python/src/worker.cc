#include "worker.h"

namespace assay::python {

void bind_worker(nanobind::module_&) {}

}  // namespace assay::python
