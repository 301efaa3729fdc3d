#pragma once
// Exceptions of the libraries as Python's: InvalidArgument is a ValueError, NotSupported a NotImplementedError, a fault of a
// backend a RuntimeError, memory that is missing a MemoryError.

namespace assay::python {

void translate_errors();

}  // namespace assay::python
