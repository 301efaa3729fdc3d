// Files made to harm their reader. Each gives a fixture or one line that names the object, in bounded time and memory, and no
// code from the file runs. Bounds of the reading: reading_bounds_test.cc. Files that are merely wrong: reader_error_test.cc.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "golden/io/writer.h"
#include "golden/tests/read_outcome.h"
#include "golden/tests/sample_fixture.h"
#include "golden/tests/strange_file.h"
#include "golden/tests/temporary_folder.h"

namespace assay::golden {
namespace {

constexpr std::uint8_t kBytes[6] = {1, 2, 3, 4, 5, 6};
constexpr auto kOwnLink = static_cast<H5L_type_t>(200);  // external links are 64

void put_x(StrangeFile& file, const char* dtype, hid_t type, const std::vector<hsize_t>& shape, const void* values,
           hid_t creation) {
  file.unlink("/c/in/x");
  file.dataset("/c/in/x", dtype, type, shape, values, creation);
}

hid_t compact() {
  const hid_t creation = sure(H5Pcreate(H5P_DATASET_CREATE));
  sure(H5Pset_layout(creation, H5D_COMPACT));
  return creation;
}

// ---- one file each

struct Hostile {
  const char* name;
  void (*make)(StrangeFile&);
  const char* outcome;  // kRead, or the beginning of the line after the file's name
};
void PrintTo(const Hostile& each, std::ostream* to) { *to << each.name; }

// clang-format off
const Hostile kHostile[] = {
    // harmless features of HDF5 that the schema does not use
    {"comments", [](StrangeFile& f) { sure(H5Oset_comment_by_name(f.id, "/c", "\x1b[2J", H5P_DEFAULT)); }, kRead},
    {"committed_type_of_a_dataset",
     [](StrangeFile& f) {
       const hid_t type = sure(H5Tcopy(H5T_STD_U8LE));
       sure(H5Tcommit2(f.id, "/type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
       put_x(f, "e4m3", type, {6}, kBytes, H5P_DEFAULT);
     },
     kRead},
    {"committed_type_of_an_attribute",
     [](StrangeFile& f) {
       const hid_t type = sure(H5Tcopy(H5T_STD_I64LE));
       sure(H5Tcommit2(f.id, "/type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
       const std::int64_t value = 3;
       f.put_raw("/c", "a", type, H5T_NATIVE_INT64, {}, &value);
     },
     kRead},
    {"numbers_in_fewer_bits",
     [](StrangeFile& f) {
       const hid_t creation = StrangeFile::chunked({6});
       sure(H5Pset_nbit(creation));
       put_x(f, "e4m3", H5T_STD_U8LE, {6}, kBytes, creation);
     },
     kRead},
    {"numbers_less_their_least",
     [](StrangeFile& f) {
       const hid_t creation = StrangeFile::chunked({6});
       sure(H5Pset_scaleoffset(creation, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT));
       put_x(f, "e4m3", H5T_STD_U8LE, {6}, kBytes, creation);
     },
     kRead},
    {"a_name_that_goes_up",
     [](StrangeFile& f) {
       f.group("/..");
       f.add_case("/../..");
     },
     kRead},

    // links
    {"link_of_a_kind_of_its_own",
     [](StrangeFile& f) {
       const H5L_class_t kind = {H5L_LINK_CLASS_T_VERS, kOwnLink, "own", nullptr, nullptr, nullptr,
                                 [](const char*, hid_t, const void*, std::size_t, hid_t, hid_t) -> hid_t { return -1; }, nullptr, nullptr};
       sure(H5Lregister(&kind));
       sure(H5Lcreate_ud(f.id, "/c/in/u", kOwnLink, "x", 1, H5P_DEFAULT, H5P_DEFAULT));
       sure(H5Lunregister(kOwnLink));
     },
     "/c/in/u: is a link of a user-defined kind: expected a hard link"},
    {"soft_links_in_a_circle",
     [](StrangeFile& f) {
       sure(H5Lcreate_soft("/b", f.id, "/a", H5P_DEFAULT, H5P_DEFAULT));
       sure(H5Lcreate_soft("/a", f.id, "/b", H5P_DEFAULT, H5P_DEFAULT));
     },
     "/a: is a soft link: expected a hard link"},
    {"one_dataset_linked_many_times",  // 16 MiB in 18 KB of file, 4000 times
     [](StrangeFile& f) {
       const hid_t creation = StrangeFile::chunked({1 << 20});
       sure(H5Pset_deflate(creation, 9));
       const std::vector<std::uint8_t> zeros(16 << 20);
       put_x(f, "e4m3", H5T_STD_U8LE, {16 << 20}, zeros.data(), creation);
       for (int i = 0; i < 4000; ++i) f.link("/c/in/x", "/c/in/again" + std::to_string(i));
     },
     "/c/in/again"},

    // names
    {"name_of_control_characters_of_eight_bits", [](StrangeFile& f) { f.group("/a\xc2\x9b" "2J"); },
     "/: holds a link named 'a\\xc2\\x9b2J': expected UTF-8 without control characters"},
    {"name_that_reorders", [](StrangeFile& f) { f.group("/a\xe2\x80\xae" "DEVIATION 0"); },
     "/: holds a link named 'a\\xe2\\x80\\xaeDEVIATION 0': expected UTF-8 without control characters"},
    {"name_of_two_lines", [](StrangeFile& f) { f.group("/a\xe2\x80\xa8PASS"); },
     "/: holds a link named 'a\\xe2\\x80\\xa8PASS': expected UTF-8 without control characters"},

    // types
    {"bits", [](StrangeFile& f) { put_x(f, "e4m3", H5T_STD_B8LE, {6}, nullptr, H5P_DEFAULT); },
     "/c/in/x: is stored as a bit field: dtype e4m3 needs uint8 (raw bits)"},
    {"arrays",
     [](StrangeFile& f) {
       const hsize_t extents[1] = {1 << 20};
       put_x(f, "e4m3", sure(H5Tarray_create2(H5T_STD_U8LE, 1, extents)), {1 << 20}, nullptr, H5P_DEFAULT);
     },
     "/c/in/x: is stored as an array: dtype e4m3 needs uint8 (raw bits)"},
    {"sequences", [](StrangeFile& f) { put_x(f, "e4m3", sure(H5Tvlen_create(H5T_STD_U8LE)), {6}, nullptr, H5P_DEFAULT); },
     "/c/in/x: is stored as of variable length: dtype e4m3 needs uint8 (raw bits)"},
    {"regions", [](StrangeFile& f) { put_x(f, "e4m3", H5T_STD_REF_DSETREG, {6}, nullptr, H5P_DEFAULT); },
     "/c/in/x: is stored as a reference: dtype e4m3 needs uint8 (raw bits)"},
    {"times", [](StrangeFile& f) { put_x(f, "i32", H5T_UNIX_D32LE, {6}, nullptr, H5P_DEFAULT); },
     "/c/in/x: is stored as of a time or unknown class: dtype i32 needs int32"},
    {"choices",
     [](StrangeFile& f) {
       const hid_t type = sure(H5Tenum_create(H5T_STD_U8LE));
       const std::uint8_t zero = 0;
       sure(H5Tenum_insert(type, "ZERO", &zero));
       put_x(f, "e4m3", type, {6}, nullptr, H5P_DEFAULT);
     },
     "/c/in/x: is stored as an enumeration: dtype e4m3 needs uint8 (raw bits)"},
    {"attribute_of_a_huge_array",
     [](StrangeFile& f) {
       const hsize_t extents[1] = {8000};
       const hid_t type = sure(H5Tarray_create2(H5T_STD_I64LE, 1, extents));
       f.put_raw("/c", "a", type, type, {}, nullptr);
     },
     "/c: attribute a is an array: expected int64, float64 or a string"},
    {"attributes_in_number",
     [](StrangeFile& f) {
       for (int i = 0; i < 1200; ++i) f.put("/c", "a" + std::to_string(i), i);
     },
     "/c: has more than 1000 attributes"},
    {"one_text_behind_many_attributes", nullptr, "/"},  // made below: 1 MiB that 600 attributes share

    // shapes and storage
    {"extents_of_2_62",
     [](StrangeFile& f) {
       put_x(f, "e4m3", H5T_STD_U8LE, {hsize_t{1} << 62, 2}, nullptr, StrangeFile::chunked({1, 1}));
     },
     "/c/in/x: claims the shape [4611686018427387904,2]: more than the file can hold"},
    {"two_to_the_40_of_a_fill_value",
     [](StrangeFile& f) {
       const hid_t creation = StrangeFile::chunked({1 << 16});
       const std::uint8_t fill = 7;
       sure(H5Pset_fill_value(creation, H5T_NATIVE_UINT8, &fill));
       put_x(f, "e4m3", H5T_STD_U8LE, {hsize_t{1} << 40}, nullptr, creation);
     },
     "/c/in/x: claims 1099511627776 elements of e4m3: more than the file can hold"},
    {"chunks_of_one_element",  // 60 million entries to look up, none there
     [](StrangeFile& f) { put_x(f, "e4m3", H5T_STD_U8LE, {60'000'000}, nullptr, StrangeFile::chunked({1})); }, kRead},
    {"compact_of_another_size", [](StrangeFile& f) { put_x(f, "e4m3", H5T_STD_U8LE, {6}, kBytes, compact()); }, kRead},
    {"a_cascade_of_gzip",  // each stage a thousandfold: no more memory is used than the shape needs
     [](StrangeFile& f) {
       const hid_t creation = StrangeFile::chunked({32 << 20});
       for (int i = 0; i < 3; ++i) sure(H5Pset_deflate(creation, 9));
       const std::vector<std::uint8_t> zeros(32 << 20);
       put_x(f, "e4m3", H5T_STD_U8LE, {32 << 20}, zeros.data(), creation);
     },
     kRead},
};
// clang-format on

// The attributes of a group share one string: the descriptor of a string is an address, which may occur many times.
void share_one_text(StrangeFile& file) {
  const std::string text(1 << 20, 'x');
  for (int i = 0; i < 600; ++i) file.put("/c", "a" + std::to_string(i), i == 0 ? text.c_str() : "y");
}
// Replaces each descriptor of the text "y" by that of the long one, in the bytes of the file.
void share_in_bytes(std::vector<std::byte>& bytes) {
  // A descriptor: length (4 bytes), address of a collection (8), index in it (4).
  const auto descriptor = [&](std::uint32_t length, std::size_t from) {
    for (std::size_t at = from; at + 16 <= bytes.size(); ++at) {
      std::uint32_t found = 0;
      std::uint64_t address = 0;
      std::memcpy(&found, &bytes[at], 4);
      std::memcpy(&address, &bytes[at + 4], 8);
      if (found == length && address + 4 < bytes.size() && std::memcmp(&bytes[address], "GCOL", 4) == 0) return at;
    }
    return bytes.size();
  };
  const std::size_t whole = descriptor(1 << 20, 0);
  ASSERT_LT(whole, bytes.size());
  int replaced = 0;
  for (std::size_t at = descriptor(1, 0); at < bytes.size(); at = descriptor(1, at + 1), ++replaced) {
    std::memcpy(&bytes[at], &bytes[whole], 16);
  }
  ASSERT_GT(replaced, 500);
}

class HostileFileTest : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileFileTest, GivesAFixtureOrItsLine) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "hostile.h5";
  StrangeFile::make(path, GetParam().make == nullptr ? share_one_text : GetParam().make);
  if (GetParam().make == nullptr) {
    std::vector<std::byte> bytes = bytes_of_file(path);
    share_in_bytes(bytes);
    put_file(path, bytes);
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string outcome = outcome_of(path);
  EXPECT_EQ(outcome.substr(0, std::strlen(GetParam().outcome)), GetParam().outcome) << outcome;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
}

INSTANTIATE_TEST_SUITE_P(Files, HostileFileTest, ::testing::ValuesIn(kHostile),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- other files of HDF5's drivers, and of its newer formats

// Makes a fixture file with the properties `access` and `creation`, and then reads the object `name`.
void make_through(const std::filesystem::path& path, hid_t creation, hid_t access) {
  const hid_t file = sure(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access));
  sure(H5Gcreate2(file, "c", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  sure(H5Fclose(file));
}

TEST(Drivers, FilesOfPiecesAreRefused) {
  const TemporaryFolder folder;
  const hid_t family = sure(H5Pcreate(H5P_FILE_ACCESS));
  sure(H5Pset_fapl_family(family, 4096, H5P_DEFAULT));
  make_through(folder / "family%d.h5", H5P_DEFAULT, family);
  EXPECT_EQ(outcome_of(folder / "family0.h5").rfind("HDF5 cannot open it: ", 0), 0u);
  const hid_t split = sure(H5Pcreate(H5P_FILE_ACCESS));
  sure(H5Pset_fapl_split(split, "-meta.h5", H5P_DEFAULT, "-raw.h5", H5P_DEFAULT));
  make_through(folder / "split", H5P_DEFAULT, split);
  EXPECT_NE(outcome_of(folder / "split-meta.h5"), kRead);
}

// Pages, free space that is kept, an image of the metadata cache, dense storage, the newest indexes of chunks.
TEST(Formats, NewerOnesAreRead) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "new.h5";
  const hid_t creation = sure(H5Pcreate(H5P_FILE_CREATE)), access = sure(H5Pcreate(H5P_FILE_ACCESS));
  sure(H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_PAGE, true, 1));
  sure(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
  H5AC_cache_image_config_t image = {H5AC__CURR_CACHE_IMAGE_CONFIG_VERSION, true, false, H5AC__CACHE_IMAGE__ENTRY_AGEOUT__NONE};
  sure(H5Pset_mdc_image_config(access, &image));
  sure(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG));
  {
    const StrangeFile file(sure(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access)));
    file.put("/", "assay_schema", 1);
    file.put("/", "provenance", "{}");
    file.add_case("c");
    for (int i = 0; i < 40; ++i) file.put("/c", "a" + std::to_string(i), i);
    const std::vector<std::uint8_t> values(100, 5);
    file.dataset("/c/in/chunked", "e4m3", H5T_STD_U8LE, {100}, values.data(), StrangeFile::chunked({7}));
  }
  const Fixture fixture = read_fixture_contained(path);
  EXPECT_EQ(fixture.cases.at(0).attributes.size(), 40u);
  EXPECT_EQ(fixture.cases.at(0).in.at("chunked").bytes, std::vector<std::byte>(100, std::byte{5}));
}

// The superblock says that a program is writing to the file.
TEST(Formats, FilesThatAreBeingWrittenAreRefused) {
  const TemporaryFolder folder;
  const hid_t access = sure(H5Pcreate(H5P_FILE_ACCESS));
  sure(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
  const hid_t file = sure(H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC | H5F_ACC_SWMR_WRITE, H5P_DEFAULT, access));
  sure(H5Fflush(file, H5F_SCOPE_GLOBAL));
  put_file(folder / "b.h5", bytes_of_file(folder / "a.h5"));
  sure(H5Fclose(file));
  EXPECT_EQ(outcome_of(folder / "b.h5").rfind("HDF5 cannot open it: ", 0), 0u);
}

}  // namespace
}  // namespace assay::golden
