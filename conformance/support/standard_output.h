#pragma once
// Results go to standard output. A failure to write there must not stop a run from writing its files: it is reported at
// the end, and is exit code 9.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace assay::conformance {

void print_text(const std::string& text);

// As fmt::print, but throws nothing.
template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// As std::fflush(stdout), but keeps the reason of a failure.
void flush_standard_output();

// Opens descriptors 0 to 2 if the program was started without them: another file would get their numbers, and messages with
// them. What is written to such a standard output fails.
void open_standard_descriptors();

// True if standard output is a pipe without a reader.
bool standard_output_lost_its_reader();

// Empty if all output was written, else the reason: "No space left on device".
std::string standard_output_fault();

}  // namespace assay::conformance
