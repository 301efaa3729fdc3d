#include "conformance/support/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace assay::conformance {
namespace {

std::atomic<int> first_error = 0;  // errno of the first write that failed

void note(bool failed) {
  int none = 0;
  if (failed) first_error.compare_exchange_strong(none, errno != 0 ? errno : EIO);
}

}  // namespace

void print_text(const std::string& text) {
  errno = 0;
  note(std::fwrite(text.data(), 1, text.size(), stdout) != text.size());
}

void flush_standard_output() {
  errno = 0;
  note(std::fflush(stdout) != 0);
}

void open_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    const int opened = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != descriptor) {
      dup2(opened, descriptor);
      close(opened);
    }
  }
}

bool standard_output_lost_its_reader() {
  flush_standard_output();
  return first_error == EPIPE;
}

std::string standard_output_fault() {
  flush_standard_output();
  if (first_error != 0) return std::strerror(first_error);
  return std::ferror(stdout) != 0 ? "an earlier write failed" : "";
}

}  // namespace assay::conformance
