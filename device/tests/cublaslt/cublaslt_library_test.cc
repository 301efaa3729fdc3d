// Which path exists in which version on which architecture (spec measured-2.1), and the message where it does not. A library that
// can report any version takes the place of the real one.

#include "device/cublaslt/cublaslt_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "device/cublaslt/cublaslt_gemm.h"

namespace assay::device {
namespace {

CublasLtLibrary library_of(int version, const char* path = FAKE_CUBLASLT) {
  setenv("FAKE_CUBLASLT_VERSION", std::to_string(version).c_str(), 1);
  return CublasLtLibrary(path);
}

GroupedGemmCall call_of(GemmKind kind, Format d_type = Format::f32) {
  GroupedGemmCall call;
  call.kind = kind;
  call.d_type = d_type;
  call.scale_layout = kind == GemmKind::mxfp8 || kind == GemmKind::nvfp4 ? ScaleLayout::swizzled : ScaleLayout::compact;
  return call;
}

constexpr int kNever = 999999;

// The first version that has the kind, for SM90 and for SM100 to SM110.
struct Row {
  const char* name;
  GemmKind kind;
  int on_sm90, on_sm100;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Gates : public testing::TestWithParam<Row> {};

TEST_P(Gates, EveryVersionOnEveryArchitecture) {
  const Row& row = GetParam();
  for (const int version : {130200, 130300, 130302, 130400, 130500, 130600, 130800, 131000, 140000}) {
    const CublasLtLibrary library = library_of(version);
    for (const int architecture : {75, 80, 86, 89, 90, 100, 103, 110, 111, 120, 121}) {
      const bool blackwell = architecture == 100 || architecture == 103 || architecture == 110;
      const int first = architecture == 90 ? row.on_sm90 : blackwell ? row.on_sm100 : kNever;
      const std::string missing = library.missing(call_of(row.kind), architecture);
      EXPECT_EQ(missing.empty(), version >= first) << version << " on SM" << architecture << ": " << missing;
      if (version >= first) continue;
      if (first == kNever) {  // no version helps: the architecture is named, and what is needed
        EXPECT_NE(missing.find("SM" + std::to_string(architecture)), std::string::npos) << missing;
        EXPECT_NE(missing.find(row.on_sm100 == kNever ? "SM90" : "SM100"), std::string::npos) << missing;
      } else {  // a newer one does: both versions and the file are named
        EXPECT_NE(missing.find(library.version_text()), std::string::npos) << missing;
        EXPECT_NE(missing.find("13." + std::to_string(first / 100 % 100) + ".0 or newer"), std::string::npos) << missing;
        EXPECT_NE(missing.find(library.path()), std::string::npos) << missing;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Gates,
                         testing::Values(Row{"bf16", GemmKind::bf16, 130400, 130300}, Row{"f16", GemmKind::f16, 130400, 130300},
                                         Row{"tensor", GemmKind::fp8_per_tensor, 130500, 130300},
                                         Row{"block", GemmKind::fp8_block, 130400, kNever},
                                         Row{"mxfp8", GemmKind::mxfp8, kNever, 130300},
                                         Row{"nvfp4", GemmKind::nvfp4, kNever, 130400}),
                         [](const auto& info) { return info.param.name; });

TEST(Gates, BlockScalingOnNewerArchitecturesSaysWhatToUse) {
  const std::string missing = library_of(131000).missing(call_of(GemmKind::fp8_block), 100);
  EXPECT_NE(missing.find("SM90 only"), std::string::npos) << missing;
  EXPECT_NE(missing.find("mxfp8"), std::string::npos) << missing;
}

TEST(Gates, AnOldLibraryIsNotAskedForWhatItLacks) {
  const CublasLtLibrary library = library_of(130100, FAKE_CUBLASLT_WITHOUT_GROUPS);
  EXPECT_FALSE(library.has_grouped_layouts());
  const std::string missing = library.missing(call_of(GemmKind::bf16), 90);
  EXPECT_NE(missing.find("13.4.0 or newer"), std::string::npos) << missing;
  EXPECT_NE(missing.find("13.1.0"), std::string::npos) << missing;
  EXPECT_NE(missing.find("no grouped layouts"), std::string::npos) << missing;
  // The version alone is not trusted.
  EXPECT_FALSE(library_of(131000, FAKE_CUBLASLT_WITHOUT_GROUPS).missing(call_of(GemmKind::bf16), 90).empty());
  EXPECT_TRUE(library_of(131000).has_grouped_layouts());
}

TEST(Gates, OutputsThatNoKernelHas) {
  const CublasLtLibrary library = library_of(131000);
  const struct {
    GemmKind kind;
    Format d_type;
    int architecture;
    bool there;
  } cases[] = {
      {GemmKind::bf16, Format::f16, 90, false},     {GemmKind::bf16, Format::bf16, 90, true},
      {GemmKind::bf16, Format::f32, 100, true},     {GemmKind::f16, Format::bf16, 90, false},
      {GemmKind::f16, Format::f16, 90, true},       {GemmKind::fp8_per_tensor, Format::f16, 90, true},
      {GemmKind::nvfp4, Format::f16, 100, false},   {GemmKind::nvfp4, Format::bf16, 100, true},
      {GemmKind::fp8_block, Format::f16, 90, true},
  };
  for (const auto& one : cases) {
    const std::string missing = library.missing(call_of(one.kind, one.d_type), one.architecture);
    EXPECT_EQ(missing.empty(), one.there) << static_cast<int>(one.kind) << " to " << static_cast<int>(one.d_type) << ": "
                                          << missing;
  }
}

// Products of the emulated GEMM alone.
TEST(Gates, ProductsThatAreNotCalled) {
  const CublasLtLibrary library = library_of(131000);
  EXPECT_NE(library.missing(call_of(GemmKind::fp8_per_tensor, Format::e4m3), 90).find("into e4m3"), std::string::npos);
  EXPECT_NE(library.missing(call_of(GemmKind::bf16, Format::e5m2), 100).find("into e5m2"), std::string::npos);
  GroupedGemmCall call = call_of(GemmKind::fp8_per_tensor);
  EXPECT_EQ(library.missing(call, 90), "");
  call.row_and_column_scales = true;
  EXPECT_NE(library.missing(call, 90).find("one for each row and column"), std::string::npos);
  call = call_of(GemmKind::mxfp8);
  EXPECT_EQ(library.missing(call, 100), "");
  call.w.type = Format::e2m1;
  EXPECT_NE(library.missing(call, 100).find("w is e2m1"), std::string::npos);
}

TEST(Gates, ScalarsForEachGroupNeedBlackwell) {
  const CublasLtLibrary library = library_of(131000);
  GroupedGemmCall call = call_of(GemmKind::bf16);
  call.scalars_per_group = true;
  EXPECT_NE(library.missing(call, 90).find("SM100 to SM110"), std::string::npos);
  for (const int architecture : {100, 103, 110}) EXPECT_EQ(library.missing(call, architecture), "");
}

TEST(Gates, GroupsFollowOneAnother) {
  const CublasLtLibrary library = library_of(131000);
  GroupedGemmCall call = call_of(GemmKind::bf16);
  EXPECT_EQ(library.missing(call, 90), "");
  for (const GroupedLayout layout : {GroupedLayout::m_indices, GroupedLayout::psum, GroupedLayout::masked}) {
    call.places.layout = layout;
    EXPECT_NE(library.missing(call, 90).find("follow one another"), std::string::npos);
  }
}

TEST(Gates, ColumnsFollowOneAnother) {
  const CublasLtLibrary library = library_of(131000);
  GroupedGemmCall call = call_of(GemmKind::fp8_block);
  EXPECT_EQ(library.missing(call, 90), "");
  call.column_alignment = 16;
  EXPECT_NE(library.missing(call, 90).find("columns that follow one another; those of the call begin at multiples of 16 bytes"),
            std::string::npos);
}

TEST(Gates, BlockScalesMustBeSwizzled) {
  const CublasLtLibrary library = library_of(131000);
  for (const GemmKind kind : {GemmKind::mxfp8, GemmKind::nvfp4}) {
    GroupedGemmCall call = call_of(kind);
    call.scale_layout = ScaleLayout::compact;
    EXPECT_NE(library.missing(call, 100).find("swizzled"), std::string::npos);
  }
}

TEST(Loading, SaysWhichFileAndWhy) {
  try {
    const CublasLtLibrary library("/nowhere/libcublasLt.so.13");
    FAIL() << "loaded";
  } catch (const NotSupported& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("/nowhere/libcublasLt.so.13"), std::string::npos) << said;
    EXPECT_NE(said.find("No such file"), std::string::npos) << said;
    EXPECT_NE(said.find("ASSAY_CUBLASLT"), std::string::npos) << said;
  }
}

// The library of the process: a refusal is not cached, the first library that loads stays, and another one is refused by name.
// One test, because there is one library per process.
TEST(Loading, TheLibraryOfTheProcess) {
  setenv("FAKE_CUBLASLT_VERSION", "131000", 1);
  setenv("ASSAY_CUBLASLT", "/nowhere/libcublasLt.so.13", 1);
  EXPECT_THROW(CublasLtLibrary::get(), NotSupported);
  EXPECT_THROW(CublasLtLibrary::use("/nowhere/either.so"), NotSupported);
  EXPECT_THROW(CublasLtLibrary::use(""), InvalidArgument);
  EXPECT_THROW(CublasLtLibrary::use(nullptr, "a name"), InvalidArgument);
  void* const handle = dlopen(FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  CublasLtLibrary::use(handle, FAKE_CUBLASLT);
  EXPECT_EQ(CublasLtLibrary::get().path(), FAKE_CUBLASLT) << "what the environment names comes after use()";
  EXPECT_EQ(CublasLtLibrary::get().version(), 131000);
  CublasLtLibrary::use(FAKE_CUBLASLT);
  try {
    CublasLtLibrary::use(FAKE_CUBLASLT_WITHOUT_GROUPS);
    FAIL() << "a second library was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(FAKE_CUBLASLT_WITHOUT_GROUPS), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("which is in use already"), std::string::npos) << error.what();
  }
  unsetenv("ASSAY_CUBLASLT");
}

TEST(Loading, AnotherLibraryIsRefusedByName) {
  try {
    const CublasLtLibrary library("libm.so.6");
    FAIL() << "loaded";
  } catch (const NotSupported& error) {
    EXPECT_NE(std::string(error.what()).find("cublasLtGetVersion"), std::string::npos) << error.what();
  }
}

TEST(Route, OnlyWhatTheDefectTouchesGoesAround) {
  for (const GemmKind kind : {GemmKind::bf16, GemmKind::fp8_per_tensor, GemmKind::fp8_block}) {
    for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
      for (const WeightBlock block : {WeightBlock::b1x128, WeightBlock::b128x128}) {
        for (const Format d_type : {Format::f32, Format::bf16, Format::f16}) {
          for (const bool bare : {false, true}) {
            GroupedGemmCall call = call_of(kind, d_type);
            call.layout = layout;
            call.weight_block = block;
            CublasLtSettings settings;
            settings.bare = bare;
            const bool around = kind == GemmKind::fp8_block && layout != GemmLayout::NT && block == WeightBlock::b128x128 &&
                                d_type == Format::f32 && !bare;
            call.rows.capacity = 16384;
            call.N = 4096, call.K = 7168;
            EXPECT_EQ(cublaslt_route(call, settings), around ? CublasLtRoute::expanded_scales : CublasLtRoute::direct);
            call.N = call.K = 3968;  // 31 blocks
            EXPECT_EQ(cublaslt_route(call, settings), CublasLtRoute::direct);
          }
        }
      }
    }
  }
}

// A row is a call with FP8 blocks, 128x128 scales of w and f32 output unless it says otherwise.
struct Sums {
  const char* name;
  bool wrong;  // for some splits
  std::int64_t capacity = 0;
  int groups = 1;
  std::int64_t columns = 0, depth = 0;
  int multiprocessors = 132;
};
void PrintTo(const Sums& row, std::ostream* out) { *out << row.name; }

class WrongScales : public testing::TestWithParam<Sums> {};

// Columns of D and depth of its sums are N and K in TN, K and N in NN.
GroupedGemmCall call_of(const Sums& row, GemmLayout layout) {
  GroupedGemmCall call = call_of(GemmKind::fp8_block);
  call.layout = layout;
  call.rows.capacity = row.capacity;
  call.rows.groups = row.groups;
  call.N = layout == GemmLayout::TN ? row.columns : row.depth;
  call.K = layout == GemmLayout::TN ? row.depth : row.columns;
  return call;
}

TEST_P(WrongScales, WhereTheSecondWaveReadsThem) {
  const Sums& row = GetParam();
  for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN}) {
    GroupedGemmCall call = call_of(row, layout);
    EXPECT_EQ(reads_wrong_scales(call, row.multiprocessors), row.wrong) << static_cast<int>(layout);
    for (const Format d_type : {Format::bf16, Format::f16}) {
      call.d_type = d_type;
      EXPECT_FALSE(reads_wrong_scales(call, row.multiprocessors));
    }
    call.d_type = Format::f32;
    call.weight_block = WeightBlock::b1x128;
    EXPECT_FALSE(reads_wrong_scales(call, row.multiprocessors));
    call.weight_block = WeightBlock::b128x128;
    call.kind = GemmKind::fp8_per_tensor;
    EXPECT_FALSE(reads_wrong_scales(call, row.multiprocessors));
  }
  EXPECT_FALSE(reads_wrong_scales(call_of(row, GemmLayout::NT), row.multiprocessors));
}

INSTANTIATE_TEST_SUITE_P(
    Rule, WrongScales,
    // clang-format off
    testing::Values(
        // Blocks of 128 in the sums: 7, 8 from the first element on, 8, 9, 15, 16, 17.
        Sums{"depth_896", false, 16384, 8, 4096, 896}, Sums{"depth_897", true, 16384, 8, 4096, 897},
        Sums{"depth_976", true, 16384, 8, 4096, 976}, Sums{"depth_1024", true, 16384, 8, 4096, 1024},
        Sums{"depth_1025", false, 16384, 8, 4096, 1025}, Sums{"depth_1152", false, 16384, 8, 4096, 1152},
        Sums{"depth_1920", false, 16384, 8, 4096, 1920}, Sums{"depth_2048", true, 16384, 8, 4096, 2048},
        Sums{"depth_2064", false, 16384, 8, 4096, 2064}, Sums{"depth_7168", true, 16384, 8, 4096, 7168},
        // 66 clusters run at a time: rows and columns of one group, varied in turn.
        Sums{"66_clusters_of_columns", false, 128, 1, 66 * 128, 2048}, Sums{"67_clusters_of_columns", true, 128, 1, 66 * 128 + 1, 2048},
        Sums{"66_clusters_of_rows", false, 66 * 128, 1, 128, 2048}, Sums{"67_clusters_of_rows", true, 66 * 128 + 1, 1, 128, 2048},
        Sums{"66_clusters_6_by_11", false, 6 * 128, 1, 11 * 128, 2048}, Sums{"72_clusters_6_by_12", true, 6 * 128, 1, 11 * 128 + 1, 2048},
        // Each group may end in a short tile: 7560 rows may be 7 groups of 1 and one of 7553, which has 60 tiles.
        Sums{"66_clusters_of_8_groups", false, 7559, 8, 128, 1024}, Sums{"67_clusters_of_8_groups", true, 7560, 8, 128, 1024},
        Sums{"66_groups_of_a_row", false, 66, 66, 128, 1024}, Sums{"67_groups_of_a_row", true, 67, 67, 128, 1024},
        Sums{"66_rows_of_1024_groups", false, 66, 1024, 128, 1024}, Sums{"67_rows_of_1024_groups", true, 67, 1024, 128, 1024},
        // Other devices: as many clusters as they run at a time, but no more than were measured.
        Sums{"39_clusters_on_78", false, 39 * 128, 1, 128, 1024, 78}, Sums{"40_clusters_on_78", true, 40 * 128, 1, 128, 1024, 78},
        Sums{"40_clusters_on_81", false, 40 * 128, 1, 128, 1024, 81}, Sums{"41_clusters_on_81", true, 41 * 128, 1, 128, 1024, 81},
        Sums{"66_clusters_on_144", false, 66 * 128, 1, 128, 1024, 144}, Sums{"67_clusters_on_144", true, 67 * 128, 1, 128, 1024, 144},
        Sums{"a_cluster_nowhere", true, 1, 1, 1, 1024, 0}, Sums{"nothing", false, 0, 8, 4096, 1000},
        Sums{"no_columns", false, 16384, 8, 0, 1024}, Sums{"no_rows", false, 0, 1, 66 * 128, 1024},
        Sums{"sizes_that_overflow_products", true, std::int64_t{1} << 40, 8, std::int64_t{1} << 40, std::int64_t{1} << 40}),
    [](const auto& info) { return std::string("of_") + info.param.name; });
// clang-format on

// most[c] of g groups: the largest number of 128-row tiles that c rows can have, over all ways to split them.
TEST(WrongScalesOfSplits, HoldForSomeSplitsAndForNoOthers) {
  constexpr std::int64_t kRows = 700;
  std::vector<std::int64_t> most(kRows + 1, 0);
  for (int groups = 1; groups <= 4; ++groups) {
    for (std::int64_t capacity = kRows; capacity >= 0; --capacity) {
      for (std::int64_t last = 0; last <= capacity; ++last) {
        most[capacity] = std::max(most[capacity], (last + 127) / 128 + (groups == 1 ? 0 : most[capacity - last]));
      }
      const GroupedGemmCall call = call_of({"", true, capacity, groups, 128, 1024}, GemmLayout::TN);
      for (int clusters = 0; clusters <= 10; ++clusters) {
        EXPECT_EQ(reads_wrong_scales(call, 2 * clusters), most[capacity] > clusters)
            << capacity << " rows of " << groups << " groups";
      }
    }
  }
}

TEST(Route, WithClustersOfItsOwnAnyNumberGoesAround) {
  GroupedGemmCall call = call_of({"", true, 128, 1, 128, 1024}, GemmLayout::TN);
  for (const bool tile : {false, true}) {
    CublasLtSettings settings;
    (tile ? settings.tile : settings.sm_target) = 20;
    call.K = 1024;
    EXPECT_EQ(cublaslt_route(call, settings), CublasLtRoute::expanded_scales);
    call.K = 1152;
    EXPECT_EQ(cublaslt_route(call, settings), CublasLtRoute::direct);
    call.K = 1024;
    settings.route = CublasLtRoute::direct;
    EXPECT_EQ(cublaslt_route(call, settings), CublasLtRoute::direct);
  }
}

// A green context gives a stream a part of the device, on which the second wave comes earlier.
TEST(Route, CountsTheMultiprocessorsOfTheCall) {
  const GroupedGemmCall call = call_of({"", true, 40 * 128, 1, 128, 1024}, GemmLayout::TN);
  CublasLtSettings settings;
  settings.multiprocessors = 132;
  EXPECT_EQ(cublaslt_route(call, settings), CublasLtRoute::direct);
  settings.multiprocessors = 80;
  EXPECT_EQ(cublaslt_route(call, settings), CublasLtRoute::direct);
  settings.multiprocessors = 78;
  EXPECT_EQ(cublaslt_route(call, settings), CublasLtRoute::expanded_scales);
}

TEST(Route, ItsMemoryIsCounted) {
  GroupedGemmCall call = call_of(GemmKind::fp8_block);
  call.layout = GemmLayout::TN;
  call.rows.groups = 8;
  call.rows.capacity = 16384;
  call.N = 4096;
  call.K = 7168;
  CublasLtSettings settings;
  const std::int64_t around = cublaslt_gemm_workspace_bytes(call, settings);
  settings.bare = true;
  const std::int64_t bare = cublaslt_gemm_workspace_bytes(call, settings);
  EXPECT_EQ(around - bare, 8 * 56 * 4096 * 4);  // [K / 128][N] floats a group
  settings.library_workspace = reinterpret_cast<void*>(std::uintptr_t{256});
  EXPECT_EQ(bare - cublaslt_gemm_workspace_bytes(call, settings), settings.workspace_bytes);
}

}  // namespace
}  // namespace assay::device
