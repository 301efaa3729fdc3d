#include "golden/io/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
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

#include "reference/types/error.h"

namespace assay::golden {
namespace {

// A file descriptor and its file, which is removed with it unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& beside) : target_(beside.string()) {
    static std::atomic<unsigned> count{0};
    do {
      name_ = target_ + ".partial-" + show(getpid()) + "-" + show(count++);
      descriptor_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) fail("cannot be written");
    // The new file has the permissions of the one that it replaces.
    struct stat replaced {};
    if (stat(target_.c_str(), &replaced) == 0 && fchmod(descriptor_, replaced.st_mode & 07777) != 0) fail("cannot be written");
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
  [[noreturn]] void fail(const std::string& what) {
    const int error = errno;
    const std::string reason = what + ": " + std::strerror(error);
    if (descriptor_ >= 0) {
      close(std::exchange(descriptor_, -1));
      unlink(name_.c_str());
    }
    if (OutputError(target_, error).is_machine()) throw MachineError(target_ + ": " + reason);
    throw OutputError(target_, error, reason);
  }

  std::string target_, name_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

}  // namespace

OutputError::OutputError(const std::string& file, int error, const std::string& reason)
    : FixtureError(file, "", reason.empty() ? std::string("cannot be written: ") + std::strerror(error) : reason),
      error_(error) {}

bool OutputError::is_machine() const {
  return error_ == ENOSPC || error_ == EDQUOT || error_ == EIO || error_ == EFBIG || error_ == EMFILE || error_ == ENFILE;
}

std::filesystem::path link_target(const std::filesystem::path& path) {
  std::filesystem::path target = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(std::filesystem::symlink_status(target, error)); ++links) {
    if (links == 40) throw OutputError(path.string(), ELOOP);
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) throw OutputError(path.string(), error.value());
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target;
}

namespace {

// The file to write. Errors: as replace_file.
std::filesystem::path checked_target(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path target =
      std::filesystem::is_symlink(std::filesystem::symlink_status(path, error)) ? link_target(path) : path;
  const std::filesystem::file_status status = std::filesystem::status(target, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw OutputError(path.string(), EINVAL, "cannot be written: it is not a regular file");  // such as /dev/null
  }
  return target;
}

}  // namespace

void check_replaceable(const std::filesystem::path& path) { const TemporaryFile file(checked_target(path)); }

void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  TemporaryFile file(checked_target(path));
  file.write_all(bytes);
  file.become_target();
}

}  // namespace assay::golden
