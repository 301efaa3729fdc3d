#include "conformance/suites/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "conformance/support/standard_error.h"

namespace assay::conformance {
namespace {

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

bool colour_allowed(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(descriptor) == 1 && (no_color == nullptr || *no_color == '\0') &&
         !(term != nullptr && std::string(term) == "dumb");
}

Progress::Progress(std::string what, std::int64_t total, bool wanted, std::chrono::milliseconds seldom)
    : what_(std::move(what)),
      total_(total),
      shown_(wanted),
      on_terminal_(isatty(STDERR_FILENO) == 1),
      seldom_(seldom),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::done(const std::string& name, bool failed) {
  const std::lock_guard lock(mutex_);
  ++finished_;
  failed_ += failed ? 1 : 0;
  const auto now = std::chrono::steady_clock::now();
  const bool is_last = finished_ == total_;
  if (!shown_ || (on_terminal_ ? now - last_ < std::chrono::milliseconds(100) && !is_last : now - last_ < seldom_ || is_last))
    return;
  last_ = now;
  draw(name);
}

void Progress::draw(const std::string& name) {
  const double seconds = std::chrono::duration<double>(last_ - start_).count();
  // Cases take unequal time, so the remaining time is an estimate, shown once enough cases are done.
  const double left = seconds * static_cast<double>(total_ - finished_) / static_cast<double>(finished_);
  const std::string remaining = seconds < 2 || finished_ == total_ ? "" : fmt::format(", {:.0f} s left", left);
  const std::string failures = failed_ == 0 ? "" : fmt::format("{} failed  ", failed_);
  if (!on_terminal_) {
    warn("{} {}/{}  {:.0f} s{}  {}\n", what_, finished_, total_, seconds, remaining, failures);
    return;
  }
  std::string line = fmt::format("{} {}/{}  {:.0f} s{}  {}{}", what_, finished_, total_, seconds, remaining, failures, name);
  line.resize(std::min<std::size_t>(line.size(), static_cast<std::size_t>(terminal_width() - 1)));
  warn("\r\033[K{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace assay::conformance
