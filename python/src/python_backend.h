#pragma once
// A Python object as a backend (conformance/backend.h): what the functions of the table do is a method of the object, under the same
// name. assay/_backend.py has the object; its memory may be host memory, which is then copied and filled here.

#include <nanobind/nanobind.h>

#include <exception>
#include <functional>
#include <string>

#include "conformance/backend.h"

namespace assay::python {

namespace nb = nanobind;

class PythonBackend {
 public:
  // Runs a body where Python may be called, with the GIL.
  using InPython = std::function<void(const std::function<void()>&)>;

  // `object` has the attributes name, description, is_host and can_capture. `interrupted` receives a KeyboardInterrupt or SystemExit of
  // the object: from then on every call fails at once. The caller holds the GIL.
  PythonBackend(nb::object object, InPython in_python, std::function<void(std::exception_ptr)> interrupted);
  ~PythonBackend();
  PythonBackend(const PythonBackend&) = delete;
  PythonBackend& operator=(const PythonBackend&) = delete;

  // The table: its `open`, called next on this thread, opens this object. Valid as long as this.
  const assay_backend& table();

  // For the functions of the table.
  assay_status call(const char* method, const std::function<void(nb::object)>& take, const std::function<nb::tuple()>& arguments);
  const char* last_error() const { return error_.c_str(); }
  bool is_host() const { return is_host_; }

 private:
  assay_status status_of(nb::python_error& error);

  nb::object object_;
  InPython in_python_;
  std::function<void(std::exception_ptr)> interrupted_;
  bool over_ = false;  // interrupted
  bool is_host_ = false;
  std::string name_, description_, error_;
  assay_backend table_{};
};

}  // namespace assay::python
