// The reader returns what the writer wrote, and the same fixture always gives the same bytes.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "golden/io/contained_reader.h"
#include "golden/io/manifest.h"
#include "golden/io/reader.h"
#include "golden/io/writer.h"
#include "golden/tests/sample_fixture.h"
#include "golden/tests/strange_file.h"
#include "golden/tests/temporary_folder.h"
#include "reference/types/error.h"

namespace assay::golden {
namespace {

std::size_t files_in(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(RoundTrip, KeepsEveryBit) {
  const TemporaryFolder folder;
  write_fixture(folder / "a.h5", sample_fixture());
  EXPECT_TRUE(same_fixture(read_fixture(folder / "a.h5"), sample_fixture()));
  EXPECT_EQ(files_in(folder), 1u) << "a temporary file was left behind";
}

TEST(RoundTrip, KeepsEveryBitThroughTheReadingProcess) {
  const TemporaryFolder folder;
  write_fixture(folder / "a.h5", sample_fixture());
  EXPECT_TRUE(same_fixture(read_fixture_contained(folder / "a.h5"), sample_fixture()));
}

TEST(RoundTrip, ACaseMayBeTheRoot) {
  const TemporaryFolder folder;
  Fixture fixture = small_fixture();
  fixture.cases.resize(1);
  fixture.cases[0].name = "/";
  write_fixture(folder / "a.h5", fixture);
  EXPECT_TRUE(same_fixture(read_fixture(folder / "a.h5"), fixture));
}

TEST(RoundTrip, InputsNeedNoProvenance) {
  const TemporaryFolder folder;
  Fixture fixture = small_fixture();
  for (Case& each : fixture.cases) each.out.clear();
  fixture.provenance.clear();
  write_fixture(folder / "a.h5", fixture);
  EXPECT_TRUE(same_fixture(read_fixture(folder / "a.h5"), fixture));
}

TEST(RoundTrip, ManyCasesAndAttributes) {
  const TemporaryFolder folder;
  Fixture fixture = small_fixture();
  const Case model = fixture.cases[0];
  fixture.cases.clear();
  for (int i = 0; i < 300; ++i) {  // past the sizes at which HDF5 changes to indexed storage
    fixture.cases.push_back(model);
    fixture.cases.back().name = std::to_string(1000 + i);
    for (int j = 0; j < i; ++j) fixture.cases.back().attributes[std::to_string(j)] = std::int64_t{i} * j;
  }
  write_fixture(folder / "a.h5", fixture);
  EXPECT_TRUE(same_fixture(read_fixture(folder / "a.h5"), fixture));
}

TEST(Bytes, AreTheSameEachTime) {
  const std::vector<std::byte> first = fixture_image(sample_fixture());
  EXPECT_EQ(first, fixture_image(sample_fixture()));
  const TemporaryFolder folder;
  write_fixture(folder / "a.h5", sample_fixture());
  EXPECT_EQ(first, bytes_of_file(folder / "a.h5"));
}

TEST(Bytes, DoNotDependOnTheTime) {
  const std::vector<std::byte> first = fixture_image(small_fixture());
  ::sleep(2);  // HDF5 would store whole seconds
  EXPECT_EQ(first, fixture_image(small_fixture()));
}

TEST(Bytes, DoNotDependOnTheOrderOfCases) {
  Fixture reversed = sample_fixture();
  std::reverse(reversed.cases.begin(), reversed.cases.end());
  EXPECT_EQ(fixture_image(reversed), fixture_image(sample_fixture()));
  EXPECT_EQ(contents_digest(reversed), contents_digest(sample_fixture()));
}

TEST(Bytes, DoNotDependOnWhatWasInMemory) {
  const std::vector<std::byte> first = fixture_image(sample_fixture());
  for (const int filler : {0x00, 0xA5, 0xFF}) {
    std::vector<std::vector<char>> used;
    for (const std::size_t size : {100, 1000, 5000, 70'000, 900'000, 1'200'000}) used.emplace_back(size, filler);
    used.clear();
    EXPECT_EQ(first, fixture_image(sample_fixture()));
  }
}

TEST(Bytes, StayAsTheyAreWhenReadAndWrittenAgain) {
  const TemporaryFolder folder;
  write_fixture(folder / "a.h5", sample_fixture());
  write_fixture(folder / "b.h5", read_fixture(folder / "a.h5"));
  EXPECT_EQ(bytes_of_file(folder / "a.h5"), bytes_of_file(folder / "b.h5"));
}

TEST(SharedTensors, AreStoredOnce) {
  const TemporaryFolder folder;
  Fixture fixture = small_fixture();
  Tensor noise = make_tensor(Format::e4m3, {100'000});
  std::uint32_t state = 1;
  for (std::byte& each : noise.bytes) each = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  for (Case& each : fixture.cases) each.in["noise"] = noise;
  write_fixture(folder / "a.h5", fixture);
  EXPECT_LT(std::filesystem::file_size(folder / "a.h5"), 150'000u);

  const hid_t file = sure(H5Fopen((folder / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  H5O_info_t one, other;
  sure(H5Oget_info_by_name2(file, "group/case/in/noise", &one, H5O_INFO_BASIC, H5P_DEFAULT));
  sure(H5Oget_info_by_name2(file, "other/in/noise", &other, H5O_INFO_BASIC, H5P_DEFAULT));
  EXPECT_EQ(one.addr, other.addr);
  EXPECT_EQ(one.rc, 2u);
  H5Fclose(file);
}

TEST(SharedTensors, DifferInTypeOrShape) {
  const TemporaryFolder folder;
  Fixture fixture = small_fixture();
  fixture.cases[0].in = {{"a", patterned(Format::e4m3, {2, 3})},
                         {"b", patterned(Format::e5m2, {2, 3})},
                         {"c", patterned(Format::e4m3, {3, 2})},
                         {"d", patterned(Format::bf16, {3})}};
  write_fixture(folder / "a.h5", fixture);
  EXPECT_TRUE(same_fixture(read_fixture(folder / "a.h5"), fixture));
}

// ---- what the writer refuses

struct Refused {
  const char* name;
  void (*change)(Fixture&);
  const char* message;
};
void PrintTo(const Refused& each, std::ostream* to) { *to << each.name; }

// clang-format off
const Refused kRefused[] = {
    {"no_case", [](Fixture& f) { f.cases.clear(); }, "cases is empty: expected at least one case"},
    {"schema", [](Fixture& f) { f.schema = 99; }, "assay_schema is 99: expected 1 to 2"},
    {"provenance_missing", [](Fixture& f) { f.provenance.clear(); },
     "provenance is empty: expected JSON text: case group/case has expected values"},
    {"provenance_not_text", [](Fixture& f) { f.provenance = "\xff"; },
     "provenance is not text: expected UTF-8 without NUL"},
    {"twice", [](Fixture& f) { f.cases[1].name = "group/case"; },
     "case group/case is named twice: expected names that differ"},
    {"no_name", [](Fixture& f) { f.cases[1].name = ""; },
     "case  is no name for a group: expected parts between '/' of UTF-8 without control characters"},
    {"empty_part", [](Fixture& f) { f.cases[1].name = "a//b"; },
     "case a//b is no name for a group: expected parts between '/' of UTF-8 without control characters"},
    {"leading_slash", [](Fixture& f) { f.cases[1].name = "/a"; },
     "case /a is no name for a group: expected parts between '/' of UTF-8 without control characters"},
    {"dot", [](Fixture& f) { f.cases[1].name = "a/."; },
     "case a/. is no name for a group: expected parts between '/' of UTF-8 without control characters"},
    {"newline", [](Fixture& f) { f.cases[1].name = "a\nb"; },
     "case a\\x0ab is no name for a group: expected parts between '/' of UTF-8 without control characters"},
    {"in_of_another", [](Fixture& f) { f.cases[1].name = "group/case/in"; },
     "case group/case/in is in a case: expected a group that is no case, or a case directly in another"},
    {"below_in_of_another", [](Fixture& f) { f.cases[1].name = "group/case/in/x"; },
     "case group/case/in/x is in a case: expected a group that is no case, or a case directly in another"},
    {"below_a_case", [](Fixture& f) { f.cases[1].name = "group/case/more/x"; },
     "case group/case/more/x is in a case: expected a group that is no case, or a case directly in another"},
    {"no_op", [](Fixture& f) { f.cases[0].op = ""; }, "case group/case, op is '': expected the name of an op"},
    {"attribute_op", [](Fixture& f) { f.cases[0].attributes["op"] = std::string("x"); },
     "case group/case, attribute op is reserved or no name: expected UTF-8 other than op, without '/'"},
    {"attribute_text", [](Fixture& f) { f.cases[0].attributes["a"] = std::string("x\0y", 3); },
     "case group/case, attribute a is not text: expected UTF-8 without NUL"},
    {"dataset_name", [](Fixture& f) { f.cases[0].in["a/b"] = f.cases[0].in["x"]; },
     "case group/case/in/a/b is no name for a dataset: expected UTF-8 without '/' and control characters"},
    {"dtype", [](Fixture& f) { f.cases[0].in["x"].type = Format::e4m3_fnuz; },
     "case group/case/in/x is e4m3_fnuz: expected one of f32, i32, i64, bf16, f16, e4m3, e5m2, e8m0, e2m1, e3m2, e2m3"},
    {"bytes", [](Fixture& f) { f.cases[0].in["x"].bytes.pop_back(); },
     "case group/case/in/x is 47 bytes: expected as many as the shape [4,6] needs"},
    {"rank", [](Fixture& f) { f.cases[0].in["x"] = make_tensor(Format::f32, {1, 1, 1, 1, 1, 1, 1, 1, 1}); },
     "case group/case/in/x is [1,1,1,1,1,1,1,1,1]: expected at most 8 extents"},
};
// clang-format on

class WriterRefusesTest : public ::testing::TestWithParam<Refused> {};

TEST_P(WriterRefusesTest, AndWritesNothing) {
  const TemporaryFolder folder;
  Fixture fixture = small_fixture();
  GetParam().change(fixture);
  try {
    write_fixture(folder / "a.h5", fixture);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
  EXPECT_EQ(files_in(folder), 0u);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, WriterRefusesTest, ::testing::ValuesIn(kRefused),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- what the disk refuses

std::string write_error(const std::filesystem::path& path) {
  try {
    write_fixture(path, small_fixture());
    return "nothing was thrown";
  } catch (const FixtureError& error) {
    return error.what();
  }
}

TEST(Disk, NamesTheFileAndTheReason) {
  const TemporaryFolder folder;
  const std::string missing = folder / "none/a.h5";
  EXPECT_EQ(write_error(missing), missing + ": cannot be written: No such file or directory");
  const std::string name = folder.path();
  EXPECT_EQ(write_error(name), name + ": cannot be written: it is not a regular file");
  EXPECT_EQ(write_error("/dev/null"), "/dev/null: cannot be written: it is not a regular file");
}

// A limit on the size of files takes the place of a full disk: write fails half way in the same manner.
TEST(Disk, ThatIsFullLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_fixture(folder / "a.h5", small_fixture());
  const std::vector<std::byte> before = bytes_of_file(folder / "a.h5");

  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{4096, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::string message;
  try {
    write_fixture(folder / "a.h5", sample_fixture());
  } catch (const MachineError& error) {  // the fault is not in a fixture
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(message, (folder / "a.h5").string() + ": cannot be written: File too large");
  EXPECT_EQ(bytes_of_file(folder / "a.h5"), before);
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(Disk, KeepsThePermissionsOfAFile) {
  const TemporaryFolder folder;
  write_fixture(folder / "a.h5", small_fixture());
  ASSERT_EQ(chmod((folder / "a.h5").c_str(), 0600), 0);
  write_fixture(folder / "a.h5", sample_fixture());
  struct stat facts {};
  ASSERT_EQ(stat((folder / "a.h5").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST(Disk, KeepsASymbolicLink) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "kept");
  write_fixture(folder / "kept/a.h5", sample_fixture());
  std::filesystem::create_symlink("kept/a.h5", folder / "link.h5");
  write_fixture(folder / "link.h5", small_fixture());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.h5"));
  EXPECT_TRUE(same_fixture(read_fixture(folder / "kept/a.h5"), small_fixture()));
}

TEST(Disk, GivesTheFileTheUsualPermissions) {
  const TemporaryFolder folder;
  const mode_t mask = umask(022);
  write_fixture(folder / "a.h5", small_fixture());
  umask(mask);
  struct stat facts {};
  ASSERT_EQ(stat((folder / "a.h5").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0644u);
}

}  // namespace
}  // namespace assay::golden
