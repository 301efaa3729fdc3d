#include "conformance/program/departure.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "conformance/backends/backend.h"

namespace assay::conformance {
namespace {

Departure* current = nullptr;

std::mutex& busy_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::string& busy_call() {
  static auto* text = new std::string;  // outlives threads that do not end
  return *text;
}

}  // namespace

void note_busy_device(const std::string& call) {
  Backend::give_up_all();
  const std::lock_guard lock(busy_mutex());
  if (busy_call().empty()) busy_call() = call;
}

std::string busy_device() {
  const std::lock_guard lock(busy_mutex());
  return busy_call();
}

Departure::Departure(Report& report, std::function<void()> tell) : report_(report), tell_(std::move(tell)) { current = this; }
Departure::~Departure() { current = nullptr; }

void Departure::tell() {
  report_.close();
  if (const std::string call = busy_device(); !call.empty()) {
    report_.note_unfinished("the device is busy with a call that does not finish, and what timed out after it may be its victim: " + call);
  }
  tell_();
}

ExitCode Departure::finish() {
  tell();
  if (!busy_device().empty()) leave_at_once(report_.exit_code());
  return report_.exit_code();
}

bool Departure::leave() {
  if (current == nullptr) return false;
  try {
    current->tell();
  } catch (const std::exception& error) {  // the file for --json, say
    std::fprintf(stderr, "assay: %s\n", error.what());
    leave_at_once(ExitCode::usage);
  }
  leave_at_once(current->report_.exit_code());
}

void leave_at_once(ExitCode code) {
  std::fflush(stdout);
  std::fflush(stderr);
  std::_Exit(static_cast<int>(code));
}

}  // namespace assay::conformance
