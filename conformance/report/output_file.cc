#include "conformance/report/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>

#include <nlohmann/json.hpp>

#include "conformance/support/interrupt.h"
#include "golden/io/replace_file.h"

namespace assay::conformance {
namespace {

constexpr int kWaitMs = 50;

}  // namespace

bool is_special(const std::string& path) {
  std::error_code none;
  const std::filesystem::file_status status = std::filesystem::status(path, none);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) && !std::filesystem::is_directory(status);
}

int open_special(const std::string& path) {
  int descriptor = -1;
  while ((descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK)) < 0) {
    if (errno != ENXIO || interrupted()) throw golden::OutputError(path, errno);
    poll(nullptr, 0, kWaitMs);
  }
  return descriptor;
}

void write_all(int descriptor, const std::string& path, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(descriptor, text.data() + at, text.size() - at);
    if (written >= 0) {
      at += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN && !interrupted()) {
      pollfd room{descriptor, POLLOUT, 0};
      poll(&room, 1, kWaitMs);
    } else if (errno != EINTR) {
      throw golden::OutputError(path, errno);
    }
  }
}

void check_output(const std::string& path) {
  if (!is_special(path)) {
    golden::check_replaceable(path);
  } else if (access(path.c_str(), W_OK) != 0) {
    throw golden::OutputError(path, errno);
  }
}

void write_output(const std::string& path, std::string_view text) {
  if (!is_special(path)) {
    golden::replace_file(path, std::as_bytes(std::span(text)));
    return;
  }
  const int descriptor = open_special(path);
  try {
    write_all(descriptor, path, text);
  } catch (const golden::OutputError&) {
    close(descriptor);
    throw;
  }
  if (close(descriptor) != 0) throw golden::OutputError(path, errno);
}

void write_json(const std::string& path, const nlohmann::json& contents) {
  write_output(path, contents.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace assay::conformance
