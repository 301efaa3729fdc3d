#include "judging.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "conformance/report/judgement_json.h"
#include "conformance/suites/judge_line.h"
#include "handover.h"
#include "python_backend.h"

namespace assay::python {
namespace {

using namespace conformance;

// A Python object that is judged, open. One call at a time.
class Session {
 public:
  // `repeat`: how a failure says that it can be seen again; "{line}" stands for the case line.
  Session(nb::object object, std::int64_t timeout_s, bool explains, std::string repeat)
      : python_(
            std::move(object), [this](const std::function<void()>& body) { in_python(body); },
            [this](std::exception_ptr why) { handover_->cancel(std::move(why)); }) {
    choice_.name = "python";
    choice_.timeout_s = timeout_s;
    choice_.explains = explains;
    choice_.reproduce = [repeat = std::move(repeat)](const std::string& line) {
      std::string text = repeat;
      if (const std::size_t at = text.find("{line}"); at != std::string::npos) text.replace(at, 6, line);
      return text;
    };
    backend_.emplace(python_.table());
  }

  // The verdict on one case, as JSON.
  std::string judge(const std::string& text) {
    Handover handover;
    handover_ = &handover;
    struct Reset {
      Handover*& of;
      ~Reset() { of = nullptr; }
    } reset{handover_};
    std::string made;
    handover.run([&] {
      const CaseLine line = parse_case_line(text);
      made = line_of(to_json(judge_line(line, {*backend_}, choice_).judgement));
    });
    return made;
  }

 private:
  // Before and after a call of judge() nothing but releases is left, and the caller is in Python.
  void in_python(const std::function<void()>& body) {
    if (handover_ != nullptr) return handover_->in_python(body);
    const nb::gil_scoped_acquire acquired;
    body();
  }

  Handover* handover_ = nullptr;
  BackendChoice choice_;
  PythonBackend python_;
  std::optional<Backend> backend_;
};

}  // namespace

void bind_judging(nb::module_& module) {
  nb::class_<Session>(module, "Session", "A backend in Python that is judged case by case.")
      .def(nb::init<nb::object, std::int64_t, bool, std::string>(), nb::arg("backend"), nb::arg("timeout_s"), nb::arg("explains"),
           nb::arg("repeat"))
      .def("judge", &Session::judge, nb::arg("line"), "The verdict on a case line, as JSON.");
}

}  // namespace assay::python
