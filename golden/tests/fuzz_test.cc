// Thousands of damaged files: each must give a fixture or one clear line, within a time limit, and the test itself must
// live. libhdf5 crashes on some of them; this ends only the reading process.
//
// ASSAY_FUZZ_FILES says how many files in all (1,000 without it; 20,000 is the long form).
//
// Damage is drawn from a counter-based generator, so a failure names the kind of file and the number that reproduce it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "golden/io/contained_reader.h"
#include "golden/io/reader.h"
#include "golden/io/writer.h"
#include "golden/tests/random.h"
#include "golden/tests/sample_fixture.h"
#include "golden/tests/strange_file.h"
#include "golden/tests/temporary_folder.h"

#if defined(__SANITIZE_ADDRESS__)
// A damaged size makes libhdf5 request terabytes, which must fail as it does without the sanitizer. Stack frames show modules
// only: looking up source lines takes longer than the time limit of a file.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1:max_allocation_size_mb=1024:symbolize=0"; }
#endif

namespace assay::golden {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int kSlower = 3;
#else
constexpr int kSlower = 1;
#endif
constexpr int kFiles = 1000;
// The time limit for a file of a few kilobytes. On about one file in thirty libhdf5 loops for ever (a heap object of size 0), so
// this limit determines the duration of the test. A file that is only slow on a busy machine does no harm.
constexpr double kSeconds = 0.4 * kSlower;
constexpr double kNeverLonger = 30;  // including the delay on a busy machine

// ---- files to damage

using Bytes = std::vector<std::byte>;

struct Kind {
  const char* name;
  Bytes (*make)();
};
void PrintTo(const Kind& each, std::ostream* to) { *to << each.name; }

Bytes made_by_writer() { return fixture_image(small_fixture()); }

Bytes made_with(void (*change)(StrangeFile&)) {
  const TemporaryFolder folder;
  StrangeFile::make(folder / "a.h5", change);
  return bytes_of_file(folder / "a.h5");
}

// As h5py writes by default: groups are B-trees with local heaps, nothing has a checksum.
Bytes old_style() {
  return made_with([](StrangeFile& file) {
    file.put("/c", "pow2", 1);
    file.put("/c", "eps", 0.5);
    file.put("/c", "recipe", "block_1x128");
    file.add_case("/d");
    file.link("/c/in/x", "/d/in/shared");
  });
}

// Filters, chunk indexes, growing extents, compact storage.
Bytes many_layouts() {
  return made_with([](StrangeFile& file) {
    std::vector<float> values(600, 1.25f);
    const hid_t creation = StrangeFile::chunked({7, 5});
    sure(H5Pset_shuffle(creation));
    sure(H5Pset_deflate(creation, 6));
    sure(H5Pset_fletcher32(creation));
    file.dataset("/c/in/filtered", "f32", H5T_IEEE_F32LE, {20, 30}, values.data(), creation);
    const hsize_t now[2] = {20, 30}, most[2] = {H5S_UNLIMITED, 30};
    file.dataset_in("/c/in/growing", "f32", H5T_IEEE_F32LE, sure(H5Screate_simple(2, now, most)), values.data(),
                    StrangeFile::chunked({8, 8}));
    const hid_t compact = sure(H5Pcreate(H5P_DATASET_CREATE));
    sure(H5Pset_layout(compact, H5D_COMPACT));
    file.dataset("/c/in/compact", "f32", H5T_IEEE_F32LE, {5, 6}, values.data(), compact);
  });
}

// Attributes of every class, enough for an object header of several pieces.
Bytes many_attributes() {
  return made_with([](StrangeFile& file) {
    for (int i = 0; i < 12; ++i) {
      file.put("/c", "integer" + std::to_string(i), i);
      file.put("/c", "text" + std::to_string(i), "some text of some length");
    }
    const hid_t fixed = StrangeFile::fixed_text_type(12, H5T_STR_SPACEPAD);
    file.put_raw("/c", "fixed", fixed, fixed, {}, "fixed text  ");
    const hid_t choice = sure(H5Tenum_create(H5T_STD_I8LE));
    const std::int8_t no = 0, yes = 1;
    sure(H5Tenum_insert(choice, "FALSE", &no));
    sure(H5Tenum_insert(choice, "TRUE", &yes));
    file.put_raw("/c", "choice", choice, choice, {}, &yes);
    file.put_raw("/c", "one", H5T_IEEE_F32BE, H5T_IEEE_F32BE, {1, 1}, "\0\0\0");
  });
}

// The compression filters of HDF5 itself. They have no checksums.
Bytes many_filters() {
  return made_with([](StrangeFile& file) {
    std::vector<std::int32_t> values(256);
    for (int i = 0; i < 256; ++i) values[static_cast<std::size_t>(i)] = 3 * i - 100;
    const auto put = [&](const char* name, herr_t (*add)(hid_t)) {
      const hid_t creation = StrangeFile::chunked({64});
      sure(add(creation));
      file.dataset(name, "i32", H5T_STD_I32LE, {256}, values.data(), creation);
    };
    put("/c/in/scale_offset",
        [](hid_t creation) { return H5Pset_scaleoffset(creation, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT); });
    put("/c/in/nbit", [](hid_t creation) { return H5Pset_nbit(creation); });
    put("/c/in/gzip", [](hid_t creation) { return H5Pset_deflate(creation, 9); });
    if (H5Zfilter_avail(H5Z_FILTER_SZIP) > 0) {
      put("/c/in/szip", [](hid_t creation) { return H5Pset_szip(creation, H5_SZIP_NN_OPTION_MASK, 16); });
    }
  });
}

// The newest format: pages, dense links and attributes, three kinds of index of chunks. Everything has a checksum, so most damage
// is noticed by it.
Bytes newest_format() {
  const TemporaryFolder folder;
  const hid_t creation = sure(H5Pcreate(H5P_FILE_CREATE)), access = sure(H5Pcreate(H5P_FILE_ACCESS));
  sure(H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_FSM_AGGR, true, 1));
  sure(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
  sure(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG));
  {
    const StrangeFile file(sure(H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, creation, access)));
    file.put("/", "assay_schema", 1);
    file.put("/", "provenance", "{}");
    file.add_case("c");
    for (int i = 0; i < 20; ++i) file.put("/c", "a" + std::to_string(i), i);
    for (int i = 0; i < 10; ++i) file.link("/c/in/x", "/c/in/x" + std::to_string(i));
    const std::vector<std::uint8_t> values(400, 5);
    const hsize_t now[2] = {20, 20}, one_grows[2] = {H5S_UNLIMITED, 20}, both_grow[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
    for (const hsize_t* most : {now + 0, one_grows + 0, both_grow + 0}) {
      const std::string name = std::string("/c/in/grows") + (most == now ? "" : most == one_grows ? "_one" : "_both");
      file.dataset_in(name, "e4m3", H5T_STD_U8LE, sure(H5Screate_simple(2, now, most)), values.data(),
                      StrangeFile::chunked({6, 7}));
    }
  }
  return bytes_of_file(folder / "a.h5");
}

// clang-format off
const Kind kKinds[] = {
    {"many_filters", many_filters},
    {"newest_format", newest_format},
    {"written_here", made_by_writer},
    {"old_style", old_style},
    {"many_layouts", many_layouts},
    {"many_attributes", many_attributes},
};
// clang-format on

// ---- damage

// The addresses at which structures of a file begin.
std::vector<std::size_t> signatures(const Bytes& bytes) {
  constexpr const char* kNames[] = {"TREE", "SNOD", "HEAP", "GCOL", "OHDR", "OCHK", "FRHP", "FHDB", "BTHD", "BTLF"};
  std::vector<std::size_t> found{0};
  for (std::size_t at = 0; at + 4 <= bytes.size(); ++at) {
    for (const char* name : kNames) {
      if (std::memcmp(&bytes[at], name, 4) == 0) found.push_back(at);
    }
  }
  return found;
}

// Mostly in or just after bytes that are not zero, as most of a small file is padding.
std::size_t place_in(const Bytes& bytes, const std::vector<std::size_t>& starts, Random& random) {
  if (random.below(3) == 0) return std::min(starts[random.below(starts.size())] + random.below(128), bytes.size() - 1);
  std::size_t at = random.below(bytes.size());
  for (std::size_t i = 0; i < 2000 && bytes[at] == std::byte{0}; ++i) at = (at + 1) % bytes.size();
  return (at + random.below(4)) % bytes.size();
}

void put_number(Bytes& bytes, std::size_t at, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

Bytes damaged(const Bytes& original, const std::vector<std::size_t>& starts, const Bytes& other, std::uint64_t seed) {
  constexpr std::uint64_t kSizes[] = {~0ull,      0,      1,      0x7fffffff, 0x80000000, 0xffffffff,        1ull << 40,
                                      1ull << 63, 0xffff, 0x8000, 255,        4096,       0x7fffffffffffffff};
  constexpr std::size_t kWidths[] = {1, 2, 4, 8};
  Random random(seed);
  Bytes bytes = original;
  for (std::size_t left = 1 + random.below(3); left > 0; --left) {
    const std::size_t at = place_in(bytes, starts, random);
    switch (random.below(9)) {
      case 0: bytes[at] ^= static_cast<std::byte>(1u << random.below(8)); break;
      case 1: bytes[at] = static_cast<std::byte>(random.next()); break;
      case 2: put_number(bytes, at, kSizes[random.below(std::size(kSizes))], kWidths[random.below(4)]); break;
      case 3: put_number(bytes, at, random.below(bytes.size()), 8); break;           // an address elsewhere in the file
      case 4: put_number(bytes, at, starts[random.below(starts.size())], 8); break;  // ... of another structure
      case 5: {                                                                      // a piece of this or of another file
        const Bytes& from = random.below(2) == 0 ? original : other;
        const std::size_t begin = random.below(from.size());
        const std::size_t size = std::min({random.below(256) + 1, from.size() - begin, bytes.size() - at});
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(begin), size, bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      case 6: {  // zeros, as after a hole in the disk
        const std::size_t page = random.below(2) == 0 ? 512 : 64;
        const std::size_t begin = at / page * page;
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), std::min(page, bytes.size() - begin), std::byte{0});
        break;
      }
      case 7:
        for (std::size_t i = at; i < std::min(at + 16, bytes.size()); ++i) bytes[i] = static_cast<std::byte>(random.next());
        break;
      default:  // cut, or padded to where it should have ended
        if (random.below(4) == 0) {
          bytes.resize(std::max<std::size_t>(at, 16));
          if (random.below(2) == 0) bytes.resize(original.size());
        } else {
          put_number(bytes, at, bytes.size() > at + 8 ? random.next() : 0, kWidths[random.below(4)]);
        }
    }
  }
  return bytes;
}

// ---- reports of sanitizers

// Reports whose innermost frame outside the C library is not in libhdf5 or a library that it calls: faults of this code.
std::vector<std::string> own_faults(const std::string& log) {
  std::vector<std::string> faults;
  std::istringstream lines(log);
  std::string report;
  bool searching = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("runtime error:") != std::string::npos) faults.push_back(line);
    if (line.find("ERROR: AddressSanitizer") != std::string::npos) {
      report = line;
      searching = true;
    }
    if (!searching || line.find("    #") != 0) continue;
    const auto holds = [&](const char* word) { return line.find(word) != std::string::npos; };
    if (holds("libasan") || holds("libc.so")) continue;  // memcpy and similar functions: the caller has the fault
    if (!holds("libhdf5") && !holds("libz.so") && !holds("libsz") && !holds("libaec")) faults.push_back(report + line);
    searching = false;
  }
  if (searching) faults.push_back(report + " (no frame)");
  return faults;
}

TEST(OwnFaults, AreToldFromThoseOfTheLibrary) {
  const std::string start = "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\n";
  const std::string copy = "    #0 0x1  (/usr/lib/libasan.so.8+0x3)\n";
  const std::string library = "    #1 0x2  (/usr/lib/libhdf5_serial.so.103+0x1)\n";
  const std::string reader = "    #2 0x3  (/build/bin/golden_test+0x2)\n";
  EXPECT_EQ(own_faults("").size(), 0u);
  EXPECT_EQ(own_faults("free(): invalid pointer\n").size(), 0u);
  EXPECT_EQ(own_faults(start + copy + library + reader).size(), 0u);
  EXPECT_EQ(own_faults(start + copy + reader + library).size(), 1u);
  EXPECT_EQ(own_faults(start + reader + start + copy + library).size(), 1u);
  EXPECT_EQ(own_faults(start + copy).size(), 1u);
  EXPECT_EQ(own_faults("golden/io/reader.cc:1:2: runtime error: shift exponent 64\n").size(), 1u);
}

// ---- the test

int files_of_a_kind() {
  const char* asked = std::getenv("ASSAY_FUZZ_FILES");
  const int files = asked == nullptr || *asked == '\0' ? kFiles : std::atoi(asked);
  constexpr int kParts = static_cast<int>(std::size(kKinds)) * kSlower;
  return std::max(1, (files + kParts - 1) / kParts);
}

class FuzzTest : public ::testing::TestWithParam<Kind> {};

TEST_P(FuzzTest, GivesAFixtureOrOneLine) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "damaged.h5";
  const Bytes original = GetParam().make();
  const Bytes other = old_style();
  const std::vector<std::size_t> starts = signatures(original);

  std::FILE* log = std::tmpfile();
  ASSERT_NE(log, nullptr);
  put_file(path, original);
  ASSERT_NO_THROW(read_fixture_contained(path)) << "the file is to be valid before it is damaged";
  ReadingProcess process({.limits = {.bytes = 64 << 20}, .seconds = kSeconds, .log = fileno(log)});

  const int files = files_of_a_kind();
  int fixtures = 0, refused = 0, crashed = 0, slow = 0, named = 0;
  for (int i = 0; i < files; ++i) {
    const std::string what = std::string(GetParam().name) + " number " + std::to_string(i);
    put_file(path, damaged(original, starts, other, 1'000'003ull * static_cast<std::uint64_t>(i) + 17));
    const auto begin = std::chrono::steady_clock::now();
    try {
      const Fixture fixture = process.read(path);
      ++fixtures;
      ASSERT_NO_THROW(fixture_image(fixture)) << what << ": what was read is no fixture that could be written";
    } catch (const FixtureError& error) {
      const std::string line = error.what();
      ASSERT_EQ(line.rfind(path.string() + ": ", 0), 0u) << what << ": " << line;
      ASSERT_EQ(line, one_line(line, 10'000)) << what << ": not one line that can be printed";
      named += !error.object().empty();
      const bool has_crashed = line.find("libhdf5 crashed") != line.npos || line.find("ended the reading") != line.npos;
      const bool was_slow = line.find("takes longer") != line.npos;
      crashed += has_crashed;
      slow += was_slow;
      refused += !has_crashed && !was_slow;
    } catch (const std::exception& error) {
      FAIL() << what << ": not a FixtureError: " << error.what();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ASSERT_LT(seconds, kNeverLonger) << what;
  }
  process.stop();

  std::string text;
  std::rewind(log);
  for (int c = std::fgetc(log); c != EOF; c = std::fgetc(log)) text += static_cast<char>(c);
  std::fclose(log);
  EXPECT_EQ(own_faults(text), std::vector<std::string>());

  std::cout << GetParam().name << ": " << fixtures << " read, " << refused << " refused, " << crashed << " crashed libhdf5, "
            << slow << " took too long; an object is named for " << named << "\n";
  EXPECT_GT(refused, files / 20) << "the damage does not reach what matters";
}

INSTANTIATE_TEST_SUITE_P(Damaged, FuzzTest, ::testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::golden
