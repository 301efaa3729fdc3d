// The extension module assay._assay: what the package assay is made of.

#include <nanobind/nanobind.h>

#include "answers.h"
#include "errors.h"
#include "judging.h"
#include "listing.h"
#include "worker.h"

NB_MODULE(_assay, module) {
  module.attr("__version__") = ASSAY_VERSION;
  nanobind::set_leak_warnings(false);  // objects of a module that a test framework keeps alive are no leak of ours
  assay::python::translate_errors();
  assay::python::bind_listing(module);
  assay::python::bind_answers(module);
  assay::python::bind_judging(module);
  assay::python::bind_worker(module);
}
