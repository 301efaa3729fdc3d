#pragma once
// How a session makes one call of the table.

#include <cstring>
#include <exception>
#include <string>

#include "conformance/worker/session.h"

namespace assay::conformance::worker {

inline std::string bounded(const char* text) {
  constexpr std::size_t kLongestText = 4096;
  return text == nullptr ? "" : std::string(text, strnlen(text, kLongestText));
}

template <class Body>
void Session::call(Function function, Body body) {
  channel_.calling.store(static_cast<std::uint32_t>(function));
  channel_.progress.fetch_add(1);
  const std::uint64_t before = calls_;
  const volatile std::uint64_t mine = before + 1;
  calls_ = before + 1;
  set_float_mode({});
  try {
    body();
  } catch (const std::exception& error) {
    note(Fault::exception, function, bounded(error.what()));
  } catch (...) {
    note(Fault::exception, function, "of no standard type");
  }
  if (const FloatMode left = current_float_mode(); left != FloatMode{}) {
    set_float_mode({});
    note(Fault::float_mode, function, describe(left));
  }
  if (mine != calls_) {
    fault_ = Fault::none;
    note(Fault::jump, function, "");
    calls_ = mine;
  }
  channel_.calling.store(static_cast<std::uint32_t>(Function::none));
  channel_.progress.fetch_add(1);
}

template <class Body>
void Session::status_of(Function function, Body body) {
  status_ = ASSAY_FAILED;  // what it stays where the call does not return by itself
  call(function, [&] { status_ = body(); });
  if (status_ == ASSAY_OK || fault_ != Fault::none) return;
  call(Function::last_error, [&] { error_ = bounded(table_->last_error(function == Function::open ? nullptr : context_)); });
}

}  // namespace assay::conformance::worker
