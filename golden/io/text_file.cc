#include "golden/io/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "golden/io/fixture_error.h"
#include "reference/types/error.h"

namespace assay::golden {
namespace {

struct Descriptor {
  int id;
  ~Descriptor() {
    if (id >= 0) ::close(id);
  }
};

}  // namespace

std::string read_text_file(const std::filesystem::path& path, std::int64_t limit) {
  const auto fail = [&](const std::string& reason) { throw FixtureError(path.string(), "", reason); };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a pipe without a writer opens at once
  if (file.id < 0) fail(errno == ENOENT ? std::string("no such file") : std::string("cannot be read: ") + std::strerror(errno));
  struct stat found {};
  if (::fstat(file.id, &found) != 0) fail(std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(found.st_mode)) fail(S_ISDIR(found.st_mode) ? "is a directory: expected a file" : "is not a regular file");
  std::string text;
  char piece[1 << 16];
  while (true) {
    const ssize_t size = ::read(file.id, piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail(std::string("cannot be read: ") + std::strerror(errno));
    if (size == 0) return text;
    if (static_cast<std::int64_t>(text.size()) + size > limit) fail("is larger than " + show(limit) + " bytes");
    text.append(piece, static_cast<std::size_t>(size));
  }
}

}  // namespace assay::golden
