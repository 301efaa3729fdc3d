// Bounds of the reading of a file made to harm its reader: no code is loaded, a file that changes is an error, and memory and
// time are limited. What such files contain: hostile_file_test.cc.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "golden/io/reading_child.h"
#include "golden/io/writer.h"
#include "golden/tests/read_outcome.h"
#include "golden/tests/sample_fixture.h"
#include "golden/tests/strange_file.h"
#include "golden/tests/temporary_folder.h"
#include "reference/support/sanitized.h"

namespace assay::golden {
namespace {

// ---- code

// A group may keep its links through a filter. libhdf5 would look for it among the files of a folder and load them. Here a pipe
// takes the place of such a library: a process that opens it waits for ever.
TEST(PlugIns, AreNotLookedFor) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.h5";
  const pid_t maker = ::fork();  // the filter is known to no other process
  if (maker == 0) {
    constexpr H5Z_filter_t kForeign = 305;
    const auto pass_on = [](unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void**) { return bytes; };
    const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, kForeign, 1, 1, "foreign", nullptr, nullptr, pass_on};
    try {
      sure(H5Zregister(&filter));
      StrangeFile::make(path, [](StrangeFile& f) {
        const hid_t creation = sure(H5Pcreate(H5P_GROUP_CREATE));
        sure(H5Pset_link_phase_change(creation, 0, 0));
        sure(H5Pset_filter(creation, kForeign, H5Z_FLAG_MANDATORY, 0, nullptr));
        sure(H5Gcreate2(f.id, "/g", H5P_DEFAULT, creation, H5P_DEFAULT));
        f.group("/g/h");
      });
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(maker, &status, 0), maker);
  ASSERT_EQ(status, 0);
  const std::filesystem::path plug_ins = folder / "plug-ins";
  std::filesystem::create_directory(plug_ins);
  ASSERT_EQ(::mkfifo((plug_ins / "libforeign.so").c_str(), 0600), 0);
  sure(H5PLprepend(plug_ins.c_str()));  // as HDF5_PLUGIN_PATH would before the library starts
  const std::string outcome = outcome_of(path, {.limits = {}, .seconds = 5, .log = -1});
  sure(H5PLremove(0));
  EXPECT_EQ(outcome.rfind("/g: ", 0), 0u) << outcome;  // libhdf5 1.10.8 crashes there for want of the filter
  EXPECT_EQ(outcome.find("takes longer"), outcome.npos) << outcome;
}

// ---- files that change

// After all checks and before the values are read.
std::string outcome_when_changed(void (*change)(const std::filesystem::path&)) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.h5";
  StrangeFile::make(path, [](StrangeFile& f) {
    const std::vector<std::uint8_t> ones(1 << 20, 1);
    f.dataset("/c/in/large", "e4m3", H5T_STD_U8LE, {1 << 20}, ones.data());
  });
  const timespec then[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};  // the clock of a file system may stand for a while
  ::utimensat(AT_FDCWD, path.c_str(), then, 0);
  try {
    read_fixture(path, {}, [&](std::int64_t) { change(path); });
    return kRead;
  } catch (const FixtureError& error) {
    return error.reason();
  }
}

TEST(Changes, DuringTheReadingAreErrors) {
  EXPECT_EQ(outcome_when_changed([](const std::filesystem::path&) {}), kRead);
  EXPECT_EQ(outcome_when_changed([](const std::filesystem::path& path) { std::filesystem::resize_file(path, 1 << 19); }),
            "changed while it was read");
  EXPECT_EQ(outcome_when_changed([](const std::filesystem::path& path) {
              std::vector<std::byte> bytes = bytes_of_file(path);
              bytes.back() ^= std::byte{1};
              put_file(path, bytes);
            }),
            "changed while it was read");
  EXPECT_EQ(outcome_when_changed([](const std::filesystem::path& path) { std::filesystem::remove(path); }), kRead)
      << "the file is still open";
}

// ---- bounds

// 700 MB of zeros in 700 KB, against a limit of 64 MiB: neither process takes memory for them.
TEST(Bounds, OfMemoryAreKept) {
  if (kHasShadowMemory) GTEST_SKIP() << "compiled with a sanitizer, whose own memory would be measured";
  const TemporaryFolder folder;
  StrangeFile::make(folder / "bomb.h5", [](StrangeFile& f) {
    const hid_t creation = StrangeFile::chunked({32 << 20});
    sure(H5Pset_deflate(creation, 9));
    const std::vector<std::uint8_t> zeros(32 << 20);
    for (int i = 0; i < 21; ++i)
      f.dataset("/c/in/x" + std::to_string(i), "e4m3", H5T_STD_U8LE, {32 << 20}, i == 0 ? zeros.data() : nullptr, creation);
  });
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t reader = ::fork();  // so that the largest memory of its reading process can be asked for
  if (reader == 0) {
    const std::string outcome = outcome_of(folder / "bomb.h5", {.limits = {.bytes = 64 << 20}, .seconds = 10, .log = -1});
    rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    const bool good = outcome.find("more than the limit of 67108864 bytes") != outcome.npos;
    const long kilobytes = good ? used.ru_maxrss : -1;
    ::_exit(::write(ends[1], &kilobytes, sizeof kilobytes) == sizeof kilobytes ? 0 : 1);
  }
  long kilobytes = -1;
  EXPECT_EQ(::read(ends[0], &kilobytes, sizeof kilobytes), static_cast<ssize_t>(sizeof kilobytes));
  int status = 0;
  ::waitpid(reader, &status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_GT(kilobytes, 0);
  EXPECT_LT(kilobytes, 200 * 1024);
}

// A hole in a file is free for its maker, and gives the reader no additional time.
TEST(Bounds, OfTimeDoNotGrowWithHoles) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "hole.h5";
  put_file(path, std::as_bytes(std::span("no HDF5")));
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  EXPECT_LT(stored_size(path.c_str()), 1 << 20);
  EXPECT_EQ(outcome_of(path), "is not an HDF5 file: it has no HDF5 signature");
}

// The object on which libhdf5 hangs or crashes is named: a heap whose free list is a circle, on which it hangs.
TEST(Bounds, AreReportedWithTheObject) {
  const TemporaryFolder folder;
  StrangeFile::make(folder / "a.h5", [](StrangeFile& f) { f.add_case("/d"); });
  std::vector<std::byte> bytes = bytes_of_file(folder / "a.h5");
  // Version 0, then 3 reserved bytes; size 8; offset of the first free block 8. That block points to itself.
  int spoiled = 0;
  for (std::size_t at = 0; at + 32 <= bytes.size(); ++at) {
    if (std::memcmp(&bytes[at], "HEAP", 4) != 0) continue;
    std::uint64_t size = 0, free = 0, address = 0;
    std::memcpy(&size, &bytes[at + 8], 8);
    std::memcpy(&free, &bytes[at + 16], 8);
    std::memcpy(&address, &bytes[at + 24], 8);
    if (free + 16 > size || address + size > bytes.size()) continue;
    std::memcpy(&bytes[address + free], &free, 8);
    ++spoiled;
  }
  ASSERT_GT(spoiled, 0);
  put_file(folder / "a.h5", bytes);
  const std::string outcome = outcome_of(folder / "a.h5", {.limits = {}, .seconds = 1, .log = -1});
  EXPECT_EQ(outcome.rfind("/", 0), 0u) << outcome;
}

}  // namespace
}  // namespace assay::golden
