// Files that are not HDF5, are cut or damaged, or exceed a limit of the reader, and the line each gives. Valid HDF5 with a
// fault: reader_error_test.cc.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "golden/io/reader.h"
#include "golden/io/writer.h"
#include "golden/tests/sample_fixture.h"
#include "golden/tests/temporary_folder.h"

namespace assay::golden {
namespace {

// ---- what is no HDF5 file at all

std::string error_of(const std::filesystem::path& path, const ReadLimits& limits = {}) {
  try {
    read_fixture(path, limits);
    return "nothing was thrown";
  } catch (const FixtureError& error) {
    return error.what();
  }
}

class DamagedFileTest : public ::testing::Test {
 protected:
  DamagedFileTest() : valid_(fixture_image(small_fixture())) {}
  std::string error_with(std::span<const std::byte> bytes) const {
    put_file(path_, bytes);
    const std::string line = error_of(path_);
    const std::string start = path_.string() + ": ";
    EXPECT_EQ(line.substr(0, start.size()), start);
    return line.size() > start.size() ? line.substr(start.size()) : line;
  }
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "bad.h5";
  const std::vector<std::byte> valid_;
};

TEST_F(DamagedFileTest, IsNamedByKind) {
  EXPECT_EQ(error_of(folder_ / "none.h5"), (folder_ / "none.h5").string() + ": no such file");
  EXPECT_EQ(error_of(folder_.path()), folder_.path().string() + ": is a directory: expected an HDF5 file");
  EXPECT_EQ(error_of("/dev/zero"), "/dev/zero: is not a regular file: expected an HDF5 file");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(folder_ / "pipe"), (folder_ / "pipe").string() + ": is not a regular file: expected an HDF5 file");
  EXPECT_EQ(error_of(path_ / "below"), (path_ / "below").string() + ": no such file");
  EXPECT_EQ(error_with({}), "is empty: expected an HDF5 file");
  EXPECT_EQ(error_with(std::vector<std::byte>(5000)), "is not an HDF5 file: it has no HDF5 signature");
  EXPECT_EQ(error_with(std::as_bytes(std::span(std::string_view("col1,col2\n1,2\n")))),
            "is not an HDF5 file: it has no HDF5 signature");
}

TEST_F(DamagedFileTest, CutAnywhereIsAnError) {
  EXPECT_EQ(error_with(std::span(valid_).first(7)), "is not an HDF5 file: it has no HDF5 signature");
  const std::string truncated = error_with(std::span(valid_).first(valid_.size() - 1));
  EXPECT_EQ(truncated.rfind("HDF5 cannot open it: truncated file: eof = ", 0), 0u) << truncated;
  for (std::size_t size = 8; size < valid_.size(); size += 97) {
    const std::string line = error_with(std::span(valid_).first(size));
    EXPECT_EQ(line.rfind("HDF5 cannot open it: ", 0), 0u) << size << ": " << line;
  }
}

TEST_F(DamagedFileTest, NamesTheDatasetWhoseValuesAreDamaged) {
  // A zlib stream begins with 78 5e at level 6 in HDF5's chunks (78 9c from zlib's default); damage the bytes after it.
  std::vector<std::byte> bytes = valid_;
  std::size_t at = 0;
  const auto starts = [&](std::size_t i) {
    return bytes[i] == std::byte{0x78} && (bytes[i + 1] == std::byte{0x5e} || bytes[i + 1] == std::byte{0x9c});
  };
  while (at + 1 < bytes.size() && !starts(at)) ++at;
  ASSERT_LT(at + 1, bytes.size());
  for (std::size_t i = 2; i < 12; ++i) bytes[at + i] = std::byte{0xff};
  const std::string line = error_with(bytes);
  EXPECT_EQ(line.rfind("/group/case/out/rowwise_data: its values cannot be read: ", 0), 0u) << line;
}

TEST_F(DamagedFileTest, HasOneLineHoweverItIsNamed) {
  const std::string line = error_of(folder_ / "a\nb\x1b[31m.h5");
  EXPECT_EQ(line, folder_.path().string() + "/a\\x0ab\\x1b[31m.h5: no such file");
}

// ---- limits

struct Limited {
  const char* name;
  ReadLimits limits;
  const char* message;
};
void PrintTo(const Limited& each, std::ostream* to) { *to << each.name; }

const Limited kLimited[] = {
    {"bytes", {.bytes = 1400}, "/other/in/x: brings the tensors of this file to more than the limit of 1400 bytes"},
    {"objects", {.objects = 10}, "/other/in: brings the file to more than the limit of 10 objects"},
    {"attributes", {.attributes = 3}, "/group/case: has more than 3 attributes"},
    {"text", {.text = 10}, "/: attribute provenance is longer than the limit of 10 bytes"},
    {"depth", {.depth = 1}, "/group/case: lies deeper than 1 groups"},
};

class LimitTest : public ::testing::TestWithParam<Limited> {};

TEST_P(LimitTest, IsKept) {
  const TemporaryFolder folder;
  write_fixture(folder / "a.h5", small_fixture());
  EXPECT_EQ(error_of(folder / "a.h5", GetParam().limits), (folder / "a.h5").string() + ": " + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Limits, LimitTest, ::testing::ValuesIn(kLimited),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Limits, AllowWhatJustFits) {
  const TemporaryFolder folder;
  write_fixture(folder / "a.h5", small_fixture());
  EXPECT_EQ(error_of(folder / "a.h5", {.bytes = 1424, .objects = 12, .attributes = 4, .text = 22, .depth = 2}),
            "nothing was thrown");
}

// The hook runs after all checks and before anything is read, and can still stop the reading.
TEST(Admitted, ComesBeforeTheTensors) {
  const TemporaryFolder folder;
  write_fixture(folder / "a.h5", small_fixture());
  std::int64_t announced = 0;
  EXPECT_THROW(read_fixture(folder / "a.h5", {},
                            [&](std::int64_t bytes) {
                              announced = bytes;
                              throw std::runtime_error("no");
                            }),
               std::runtime_error);
  EXPECT_EQ(announced, 1424);
}

}  // namespace
}  // namespace assay::golden
