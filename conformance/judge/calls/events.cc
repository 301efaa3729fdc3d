#include "conformance/judge/calls/events.h"

#include <fmt/format.h>

#include <cmath>

namespace assay::conformance {
namespace {

constexpr std::size_t kEvents = 3;
constexpr double kResolution =
    1;  // milliseconds: how coarse a clock of the backend may be; a wrong unit gives a much larger difference

}  // namespace

Events::Events(Backend& backend) : backend_(backend) {
  for (std::size_t i = 0; i <= kEvents && fault_.empty(); ++i) {
    assay_event* made = nullptr;
    const assay_status status = backend.table().event_create(backend.context(), &made);
    if (status == ASSAY_OK) {
      i < kEvents ? events_.push_back(made) : static_cast<void>(unrecorded_ = made);
    } else {
      fault_ = fmt::format("event_create() returned '{}': {}", name_of(status), backend.last_error());
    }
  }
}

Events::~Events() {
  if (backend_.is_given_up()) return;
  for (assay_event* each : events_) backend_.table().event_destroy(backend_.context(), each);
  if (unrecorded_ != nullptr) backend_.table().event_destroy(backend_.context(), unrecorded_);
}

void Events::record(assay_stream* stream) {
  if (!fault_.empty()) return;
  if (recorded_ == kEvents) recorded_ = 0;
  if (recorded_ == 0) begun_ = Clock::now();
  const assay_status status = backend_.table().event_record(backend_.context(), events_[recorded_++], stream);
  if (status != ASSAY_OK) fault_ = fmt::format("event_record() returned '{}': {}", name_of(status), backend_.last_error());
}

// False: it is a fault.
bool Events::elapsed(std::size_t from, std::size_t to, double& milliseconds) {
  milliseconds = std::nan("");
  const assay_status status = backend_.table().event_elapsed(backend_.context(), events_[from], events_[to], &milliseconds);
  if (status != ASSAY_OK) {
    fault_ = fmt::format("event_elapsed() returned '{}' for two events that were recorded and waited for: {}", name_of(status),
                         backend_.last_error());
  } else if (!std::isfinite(milliseconds) || milliseconds < 0) {
    fault_ = fmt::format("event_elapsed() says {} milliseconds: expected a finite number of at least 0", milliseconds);
  }
  return fault_.empty();
}

std::string Events::fault() {
  const double passed = std::chrono::duration<double, std::milli>(Clock::now() - begun_).count();
  double first = 0, whole = 0;
  if (!fault_.empty() || !elapsed(0, 1, first) || !elapsed(0, 2, whole)) return fault_;
  if (whole < first) {
    fault_ = fmt::format("event_elapsed() says {} milliseconds up to an event, and {} up to one that was recorded before it",
                         whole, first);
  } else if (whole > passed + kResolution) {
    fault_ = fmt::format("event_elapsed() says {} milliseconds, but no more than {:.3f} have passed: expected milliseconds",
                         whole, passed);
  }
  return fault_;
}

std::string Events::misuse(assay_event* from, assay_event* to, const char* what) {
  double milliseconds = 0;
  const assay_status status = backend_.table().event_elapsed(backend_.context(), from, to, &milliseconds);
  if (static_cast<unsigned>(status) > ASSAY_FAILED) {
    return fmt::format("event_elapsed() of {} returned the status {}: expected one of assay_status", what,
                       static_cast<int>(status));
  }
  if (status == ASSAY_OK)
    return std::isfinite(milliseconds) ? "" : fmt::format("event_elapsed() of {} says {} milliseconds", what, milliseconds);
  const std::string why = backend_.last_error();
  if (!why.empty() && why.find('\n') == std::string::npos) return "";
  return fmt::format("event_elapsed() of {} returned '{}', and last_error() is not one line", what, name_of(status));
}

std::string Events::fault_of_misuse() {
  if (!fault_.empty()) return fault_;
  fault_ = misuse(events_[2], events_[0], "two events in the wrong order");
  if (fault_.empty()) fault_ = misuse(events_[0], unrecorded_, "an event that was not recorded");
  return fault_;
}

}  // namespace assay::conformance
