// Which path is there in which version on which architecture (h200.md section 4, recipes.md 8.1), and what is said where it
// is not. A library that reports any version stands in for the real one.

#include "device/gemm/cublaslt_library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <string>

#include "device/gemm/cublaslt_gemm.h"

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
                                         Row{"tensor", GemmKind::tensor, 130500, 130300}, Row{"block", GemmKind::block, 130400, kNever},
                                         Row{"mxfp8", GemmKind::mxfp8, kNever, 130300}, Row{"nvfp4", GemmKind::nvfp4, kNever, 130400}),
                         [](const auto& info) { return info.param.name; });

TEST(Gates, BlockScalingOnNewerArchitecturesSaysWhatToUse) {
  const std::string missing = library_of(131000).missing(call_of(GemmKind::block), 100);
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
  // A version alone is not believed.
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
      {GemmKind::bf16, Format::f16, 90, false},   {GemmKind::bf16, Format::bf16, 90, true}, {GemmKind::bf16, Format::f32, 100, true},
      {GemmKind::f16, Format::bf16, 90, false},   {GemmKind::f16, Format::f16, 90, true},   {GemmKind::tensor, Format::f16, 90, true},
      {GemmKind::nvfp4, Format::f16, 100, false}, {GemmKind::nvfp4, Format::bf16, 100, true}, {GemmKind::block, Format::f16, 90, true},
  };
  for (const auto& one : cases) {
    const std::string missing = library.missing(call_of(one.kind, one.d_type), one.architecture);
    EXPECT_EQ(missing.empty(), one.there) << static_cast<int>(one.kind) << " to " << static_cast<int>(one.d_type) << ": " << missing;
  }
}

TEST(Gates, ScalarsForEachGroupNeedBlackwell) {
  const CublasLtLibrary library = library_of(131000);
  GroupedGemmCall call = call_of(GemmKind::bf16);
  call.scalars_per_group = true;
  EXPECT_NE(library.missing(call, 90).find("SM100 to SM110"), std::string::npos);
  for (const int architecture : {100, 103, 110}) EXPECT_EQ(library.missing(call, architecture), "");
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

TEST(Loading, AnotherLibraryIsRefusedByName) {
  try {
    const CublasLtLibrary library("libm.so.6");
    FAIL() << "loaded";
  } catch (const NotSupported& error) {
    EXPECT_NE(std::string(error.what()).find("cublasLtGetVersion"), std::string::npos) << error.what();
  }
}

TEST(Route, OnlyWhatTheDefectTouchesGoesAround) {
  for (const GemmKind kind : {GemmKind::bf16, GemmKind::tensor, GemmKind::block}) {
    for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
      for (const WeightBlock block : {WeightBlock::b1x128, WeightBlock::b128x128}) {
        for (const Format d_type : {Format::f32, Format::bf16, Format::f16}) {
          for (const bool bare : {false, true}) {
            GroupedGemmCall call = call_of(kind, d_type);
            call.layout = layout;
            call.weight_block = block;
            CublasLtSettings settings;
            settings.bare = bare;
            const bool around = kind == GemmKind::block && layout != GemmLayout::NT && block == WeightBlock::b128x128 &&
                                d_type == Format::f32 && !bare;
            call.rows.capacity = 16384;
            call.N = 4096, call.K = 7168;
            EXPECT_EQ(cublaslt_route(call, settings), around ? CublasLtRoute::expanded_scales : CublasLtRoute::direct);
            call.rows.capacity = 512;  // few tiles, and short sums: far below the defect's sizes
            call.N = 256, call.K = 384;
            EXPECT_EQ(cublaslt_route(call, settings), CublasLtRoute::direct);
            call.K = 2048;
            EXPECT_EQ(cublaslt_route(call, settings), around ? CublasLtRoute::expanded_scales : CublasLtRoute::direct);
          }
        }
      }
    }
  }
}

TEST(Route, ItsMemoryIsCounted) {
  GroupedGemmCall call = call_of(GemmKind::block);
  call.layout = GemmLayout::TN;
  call.rows.groups = 8;
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
