#include "golden/io/opened_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace assay::golden {
namespace {

// Errors: FixtureError unless the file at the path may be opened. Returns its size in bytes.
std::int64_t check_signature(const ReadContext& context) {
  namespace fs = std::filesystem;
  const std::string& path = context.path();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) context.fail("", "no such file");
  if (error) context.fail("", error.message());
  if (status.type() == fs::file_type::directory) context.fail("", "is a directory: expected an HDF5 file");
  if (status.type() != fs::file_type::regular) context.fail("", "is not a regular file: expected an HDF5 file");
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) context.fail("", error.message());
  if (bytes == 0) context.fail("", "is empty: expected an HDF5 file");
  const auto size = static_cast<std::int64_t>(std::min<std::uintmax_t>(bytes, std::uintmax_t{1} << 50));

  // It stands at byte 0, or at 512, 1024, 2048, ... after a user block (HDF5 file format, section II.A).
  constexpr std::array<char, 8> kSignature = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  std::ifstream stream(path, std::ios::binary);
  if (!stream) context.fail("", std::string("cannot be read: ") + std::strerror(errno));
  for (std::int64_t at = 0; at + 8 <= size; at = at == 0 ? 512 : 2 * at) {
    std::array<char, 8> found{};
    stream.seekg(at);
    if (stream.read(found.data(), found.size()) && found == kSignature) return size;
    stream.clear();
  }
  context.fail("", "is not an HDF5 file: it has no HDF5 signature");
}

}  // namespace

OpenedFile::OpenedFile(ReadContext& context) : context_(context) {
  context.set_file_size(check_signature(context));
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_sec2(access.get());  // regardless of HDF5_DRIVER
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access.get(), false, true);  // reading must work where locks do not
#endif
  file_ = Handle(H5Fopen(context.path().c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (!file_) context.fail_hdf5("", "HDF5 cannot open it");
  opened_ = state();
  if (!S_ISREG(opened_.st_mode) || opened_.st_size < context.file_size()) context.fail("", "changed while it was read");
}

struct stat OpenedFile::state() const {
  void* descriptor = nullptr;  // an int's, for the driver that was chosen above
  struct stat found {};
  if (H5Fget_vfd_handle(file_.get(), H5P_DEFAULT, &descriptor) < 0) context_.fail_hdf5("", "HDF5 does not give its descriptor");
  if (::fstat(*static_cast<int*>(descriptor), &found) != 0)
    context_.fail("", std::string("cannot be read: ") + std::strerror(errno));
  return found;
}

void OpenedFile::check_unchanged() const {
  const struct stat now = state();
  const bool same = now.st_size == opened_.st_size && now.st_mtim.tv_sec == opened_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec;
  if (!same) context_.fail("", "changed while it was read");
}

}  // namespace assay::golden
