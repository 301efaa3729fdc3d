#include "golden/io/replace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "golden/io/fixture_error.h"
#include "reference/support/error.h"

namespace assay::golden {
namespace {

// A file descriptor and the name of its file, which goes with it unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& beside) : target_(beside.string()) {
    static std::atomic<unsigned> count{0};
    do {
      name_ = target_ + ".partial-" + show(getpid()) + "-" + show(count++);
      descriptor_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) fail("cannot be written");
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!renamed_) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write_all(std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t written = write(descriptor_, &bytes[at], std::min<std::size_t>(bytes.size() - at, 1 << 30));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("cannot be written");
      at += static_cast<std::size_t>(written);
    }
  }

  void become_target() {
    if (fsync(descriptor_) != 0 && errno != EINVAL) fail("cannot be written");
    if (close(std::exchange(descriptor_, -1)) != 0) fail("cannot be written");
    if (rename(name_.c_str(), target_.c_str()) != 0) fail("cannot be replaced");
    renamed_ = true;
  }

 private:
  [[noreturn]] void fail(std::string_view what) {
    const std::string reason = std::string(what) + ": " + std::strerror(errno);
    if (descriptor_ >= 0) {
      close(std::exchange(descriptor_, -1));
      unlink(name_.c_str());
    }
    throw FixtureError(target_, "", reason);
  }

  std::string target_, name_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

}  // namespace

void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw FixtureError(path.string(), "", "cannot be written: it is not a regular file");  // such as /dev/null
  }
  const bool is_link = std::filesystem::is_symlink(std::filesystem::symlink_status(path, error));
  const std::filesystem::path target = is_link ? std::filesystem::weakly_canonical(path, error) : path;
  TemporaryFile file(target.empty() ? path : target);
  file.write_all(bytes);
  file.become_target();
}

}  // namespace assay::golden
