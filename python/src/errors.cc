#include "errors.h"

#include <nanobind/nanobind.h>

#include <exception>

#include "reference/types/error.h"

namespace assay::python {

void translate_errors() {
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const NotSupported& error) {
      PyErr_SetString(PyExc_NotImplementedError, error.what());
    } catch (const InvalidArgument& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });
}

}  // namespace assay::python
