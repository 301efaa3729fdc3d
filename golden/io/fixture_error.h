#pragma once
// Errors with a fixture file: one line that names the file, the object in it and the reason.

#include <stdexcept>
#include <string>
#include <string_view>

namespace assay::golden {

// `text` for one line of output: bytes that is_printable_utf8 (utf8.h) rejects become \xNN, and a text longer than `limit`
// bytes is cut.
std::string one_line(std::string_view text, std::size_t limit = 400);

// `what()` reads "bad.h5: /a/b/in/x: claims 1099511627776 elements of e4m3: more than the file can hold". `object` is
// empty when the file as a whole is meant. The program ends with exit code 3.
class FixtureError : public std::runtime_error {
 public:
  FixtureError(std::string_view file, std::string_view object, std::string_view reason)
      : std::runtime_error(one_line(file) + ": " + (object.empty() ? "" : one_line(object) + ": ") + one_line(reason)),
        file_(file),
        object_(object),
        reason_(reason) {}
  const std::string& file() const { return file_; }
  const std::string& object() const { return object_; }
  const std::string& reason() const { return reason_; }

 private:
  std::string file_, object_, reason_;
};

// The same, where the reason is that memory was refused. It is a fault of the file if there was as much as a sound file
// needs, and of the machine if not: contained_reader.cc decides.
class LacksMemory : public FixtureError {
 public:
  using FixtureError::FixtureError;
};

// The machine failed, regardless of the file: no memory, no further process. The program ends with exit code 9.
class MachineError : public std::runtime_error {
 public:
  explicit MachineError(std::string_view what) : std::runtime_error(one_line(what, 1000)) {}
};

}  // namespace assay::golden
