#include "worker.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "conformance/worker/server.h"
#include "conformance/worker/wire.h"
#include "python_backend.h"
#include "reference/types/error.h"

namespace assay::python {
namespace {

PyObject* loads = nullptr;  // the function of Python that gives the object of a name

void in_python(const std::function<void()>& body) {
  const nb::gil_scoped_acquire acquired;
  body();
}

// An interrupt of the function's own ends the process, as it would end a program.
[[noreturn]] void end_process(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (nb::python_error& error) {
    error.restore();
    PyErr_Print();  // exits by itself for SystemExit
  }
  std::_Exit(130);
}

const assay_backend* load(const std::string& name, std::string& refusal) {
  static PythonBackend* backend = nullptr;
  in_python([&] {
    try {
      backend = new PythonBackend(nb::borrow(loads)(name), in_python, end_process);
    } catch (const nb::python_error& error) {
      const std::string text = nb::cast<std::string>(nb::str(error.value()));
      refusal = "does not load: " + nb::cast<std::string>(error.type().attr("__name__")) + ": " + text;
    } catch (const std::exception& error) {
      refusal = std::string("does not load: ") + error.what();
    }
  });
  return backend == nullptr ? nullptr : &backend->table();
}

int serve(std::vector<std::string> words, const nb::object& load_object) {
  loads = load_object.inc_ref().ptr();
  conformance::worker::load_backends_with(load);
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  const nb::gil_scoped_release released;
  const std::optional<int> served = conformance::worker::serve_as_worker(static_cast<int>(arguments.size()), arguments.data());
  require(served.has_value(), "the words of a worker", words.size() < 2 ? "" : words[1], "what the program assay gives");
  return *served;
}

}  // namespace

void bind_worker(nb::module_& module) {
  module.def("serve", serve, nb::arg("words"), nb::arg("load"),
             "Serves the program `assay` as a worker, until it ends; `load` gives the backend of a name.");
  module.def("protocol", conformance::worker::protocol, "What the program and the worker must have in common.");
}

}  // namespace assay::python
