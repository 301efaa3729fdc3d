// The calls that check_grouped_gemm() refuses, and its messages. Addresses are invented: only the lists are read.

#include "device/gemm/grouped_gemm.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "device/cublaslt/cublaslt_gemm.h"
#include "device/gemm/grouped_gemm_names.h"
#include "device/tests/gemm/sound_call.h"

namespace assay::device {
namespace {

std::string refusal(const GroupedGemmCall& call) {
  try {
    check_grouped_gemm(call);
    return "";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(Check, TakesEveryKindAndLayout) {
  for (int kind = 0; kind < 6; ++kind) {
    for (int layout = 0; layout < 3; ++layout) {
      EXPECT_EQ(refusal(sound(static_cast<GemmKind>(kind), static_cast<GemmLayout>(layout))), "") << kind << " " << layout;
    }
  }
}

// Products that only the emulated GEMM has.
TEST(Check, TakesOtherOutputsScalesAndWeights) {
  for (const Format type : {Format::e4m3, Format::e5m2}) {
    GroupedGemmCall call = sound(GemmKind::fp8_block, GemmLayout::NT);
    call.d_type = type;
    call.d_scale = address<const float>(0x104);
    call.d = address(0x80001);
    EXPECT_EQ(refusal(call), "");
  }
  GroupedGemmCall call = sound(GemmKind::fp8_per_tensor, GemmLayout::NN);
  call.row_and_column_scales = true;
  EXPECT_EQ(refusal(call), "");
  call = sound(GemmKind::mxfp8, GemmLayout::TN);
  call.w.type = Format::e2m1;
  call.w.amax = nullptr;
  EXPECT_EQ(refusal(call), "");
}

TEST(Check, TakesNothingWhereThereIsNothing) {
  GroupedGemmCall call = sound(GemmKind::fp8_per_tensor, GemmLayout::TN);
  call.rows.capacity = 0;
  call.x.data = call.x.scale_inv = nullptr;
  call.d = nullptr;
  EXPECT_EQ(refusal(call), "");
  call = sound(GemmKind::bf16, GemmLayout::NT);
  call.rows.groups = 0;
  call.d = nullptr;
  EXPECT_EQ(refusal(call), "");
  call = sound(GemmKind::bf16, GemmLayout::TN);  // operands that the layout does not name are not read
  call.dy = GemmOperand{};
  call.dy.type = Format::i64;
  EXPECT_EQ(refusal(call), "");
}

// The library reads block scales 16 bytes at a time, in an array or in a list, f32 or bytes. A scale per tensor is copied, and
// needs only the alignment of a float.
TEST(AlignedOperands, ScalesByBlocks) {
  const auto refused = [](const GroupedGemmCall& call) -> std::string {
    try {
      require_aligned_operands(call);
      return "";
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  };
  for (int number = 0; number < 6; ++number) {
    const auto kind = static_cast<GemmKind>(number);
    const bool by_blocks = kind == GemmKind::fp8_block || kind == GemmKind::mxfp8 || kind == GemmKind::nvfp4;
    for (const std::uintptr_t offset : {1, 4, 8}) {
      GroupedGemmCall call = sound(kind, GemmLayout::TN);
      EXPECT_EQ(refused(call), "") << number;
      call.x.scale_inv = address(0x2000 + offset);
      EXPECT_EQ(refused(call).rfind("x.scale_inv is ", 0), by_blocks ? 0u : std::string::npos) << number << " " << refused(call);

      call = sound(kind, GemmLayout::TN);
      const void* const codes[] = {address(0x1000), address(0x2000), address(0x3000), address(0x4000)};
      const void* const scales[] = {address(0x5000), address(0x6000), address(0x7000 + offset), address(0x8000)};
      call.w.data = call.w.scale_inv = nullptr;
      call.w.data_list = codes;
      call.w.scale_inv_list = scales;
      EXPECT_EQ(refused(call).rfind("w.scale_inv_list[2] is ", 0), by_blocks ? 0u : std::string::npos)
          << number << " " << refused(call);
    }
  }
}

TEST(Check, SixteenBitOperandsAndTensorScalingReadEitherStorage) {
  for (const GemmKind kind : {GemmKind::bf16, GemmKind::f16, GemmKind::fp8_per_tensor}) {
    GroupedGemmCall call = sound(kind, GemmLayout::NN);
    call.w.columnwise = false;
    EXPECT_EQ(refusal(call), "");
  }
}

struct Refused {
  const char* name;
  GemmKind kind;
  GemmLayout layout;
  std::function<void(GroupedGemmCall&)> spoil;
  const char* says;  // how the sentence begins
};
void PrintTo(const Refused& one, std::ostream* out) { *out << one.name; }

const void* const kTwoGoodTwoBad[] = {address(0x1000), address(0x2000), nullptr, address(0x4000)};
const void* const kGood[] = {address(0x1000), address(0x2000), address(0x3000), address(0x4000)};
void* const kOdd[] = {address(0x1000), address(0x2002), address(0x3000), address(0x4000)};

// Groups that do not follow one another, of the 512 rows and 4 groups of a sound call.
void place(GroupedGemmCall& call, GroupedLayout layout) {
  call.places.layout = layout;
  if (layout == GroupedLayout::masked) {
    call.places.max_m = 128;
    return;
  }
  call.rows.splits = nullptr;
  call.places.index = address<const std::int32_t>(0x1004);
  call.places.alignment = 128;
  if (call.layout == GemmLayout::NT && call.kind != GemmKind::mxfp8) call.x.columnwise = call.dy.columnwise = false;
}
constexpr GroupedLayout kIndices = GroupedLayout::m_indices, kPsum = GroupedLayout::psum, kMasked = GroupedLayout::masked;

TEST(Check, TakesGroupsInOtherPlaces) {
  for (int kind = 0; kind < 6; ++kind) {
    for (int layout = 0; layout < 3; ++layout) {
      for (const GroupedLayout places : {kIndices, kPsum, kMasked}) {
        GroupedGemmCall call = sound(static_cast<GemmKind>(kind), static_cast<GemmLayout>(layout));
        call.scale_layout = ScaleLayout::swizzled;
        if (call.layout != GemmLayout::NT) call.x.columnwise = call.dy.columnwise = false;
        place(call, places);
        const std::string said = refusal(call);
        if (call.layout == GemmLayout::NT && places != kPsum) {
          EXPECT_EQ(said.rfind("places.layout is ", 0), 0u) << kind << said;
        } else if (call.layout == GemmLayout::NT && (call.kind == GemmKind::fp8_block || call.kind == GemmKind::nvfp4)) {
          EXPECT_EQ(said.rfind("dy.columnwise is 0", 0), 0u) << said;  // they read transposed storage alone
        } else {
          EXPECT_EQ(said, "") << kind << " " << layout;
        }
      }
    }
  }
}

class Check : public testing::TestWithParam<Refused> {};
TEST_P(Check, RefusesAndNamesTheMember) {
  GroupedGemmCall call = sound(GetParam().kind, GetParam().layout);
  GetParam().spoil(call);
  const std::string said = refusal(call);
  EXPECT_EQ(said.rfind(GetParam().says, 0), 0u) << said;
  EXPECT_NE(said.find("expected"), std::string::npos) << said;
}

using enum GemmLayout;
INSTANTIATE_TEST_SUITE_P(
    Members, Check,
    // clang-format off
    testing::Values(
        Refused{"kind", GemmKind::bf16, TN, [](auto& c) { c.kind = static_cast<GemmKind>(6); }, "kind is 6"},
        Refused{"layout", GemmKind::bf16, TN, [](auto& c) { c.layout = static_cast<GemmLayout>(3); }, "layout is 3"},
        Refused{"d_type", GemmKind::bf16, TN, [](auto& c) { c.d_type = Format::e8m0; }, "d_type is 7"},
        Refused{"no_d_scale", GemmKind::bf16, TN, [](auto& c) { c.d_type = Format::e4m3; }, "d_scale is null"},
        Refused{"odd_d_scale", GemmKind::bf16, TN, [](auto& c) { c.d_type = Format::e5m2, c.d_scale = address<const float>(0x102); }, "d_scale is misaligned"},
        Refused{"d_scale", GemmKind::bf16, TN, [](auto& c) { c.d_scale = address<const float>(0x100); }, "d_scale is given"},
        Refused{"bias_of_fp8", GemmKind::bf16, TN, [](auto& c) { c.d_type = Format::e4m3, c.d_scale = address<const float>(0x100), c.bias = address(0x100); }, "bias is given"},
        Refused{"line_scales", GemmKind::fp8_block, TN, [](auto& c) { c.row_and_column_scales = true; }, "row_and_column_scales is 1"},
        Refused{"fp4_x", GemmKind::mxfp8, TN, [](auto& c) { c.x.type = Format::e2m1; }, "x.type is 8"},
        Refused{"fp4_weights_of_dgrad", GemmKind::mxfp8, NN, [](auto& c) { c.w.type = Format::e2m1; }, "w.type is 8"},
        Refused{"fp4_weights_of_block", GemmKind::fp8_block, TN, [](auto& c) { c.w.type = Format::e2m1; }, "w.type is 8"},
        Refused{"odd_fp4_weights", GemmKind::mxfp8, TN, [](auto& c) { c.w.type = Format::e2m1, c.K = 33; }, "columns of w is 33"},
        Refused{"negative_n", GemmKind::bf16, TN, [](auto& c) { c.N = -1; }, "N is -1"},
        Refused{"large_k", GemmKind::bf16, TN, [](auto& c) { c.K = std::int64_t{1} << 33; }, "K is 8589934592"},
        Refused{"capacity", GemmKind::bf16, TN, [](auto& c) { c.rows.capacity = -5; }, "rows.capacity is -5"},
        Refused{"groups", GemmKind::bf16, TN, [](auto& c) { c.rows.groups = 1025; }, "rows.groups is 1025"},
        Refused{"type", GemmKind::bf16, TN, [](auto& c) { c.x.type = Format::f16; }, "x.type is 2"},
        Refused{"fp8_type", GemmKind::fp8_block, NT, [](auto& c) { c.dy.type = Format::bf16; }, "dy.type is 1"},
        Refused{"storage", GemmKind::fp8_block, NN, [](auto& c) { c.w.columnwise = false; }, "w.columnwise is 0"},
        Refused{"mxfp8_storage", GemmKind::mxfp8, TN, [](auto& c) { c.x.columnwise = true; }, "x.columnwise is 1"},
        Refused{"null_data", GemmKind::bf16, TN, [](auto& c) { c.x.data = nullptr; }, "x.data is null"},
        Refused{"odd_data", GemmKind::bf16, NN, [](auto& c) { c.dy.data = address(0x10008); }, "dy.data is misaligned"},
        Refused{"null_scales", GemmKind::fp8_per_tensor, NT, [](auto& c) { c.x.scale_inv = nullptr; }, "x.scale_inv is null"},
        Refused{"odd_scales", GemmKind::fp8_block, TN, [](auto& c) { c.w.scale_inv = address(0x10002); }, "w.scale_inv is misaligned"},
        Refused{"amax", GemmKind::nvfp4, TN, [](auto& c) { c.w.amax = nullptr; }, "w.amax is null"},
        Refused{"odd_k", GemmKind::nvfp4, TN, [](auto& c) { c.K = 33; }, "columns of x is 33"},
        Refused{"odd_n", GemmKind::nvfp4, NN, [](auto& c) { c.N = 33; }, "columns of dy is 33"},
        Refused{"list_of_x", GemmKind::bf16, TN, [](auto& c) { c.x.data_list = kGood; }, "x.data_list is given"},
        Refused{"list_and_data", GemmKind::bf16, TN, [](auto& c) { c.w.data_list = kGood; }, "w.data is given"},
        Refused{"list_entry", GemmKind::bf16, TN, [](auto& c) { c.w.data = c.w.scale_inv = nullptr, c.w.data_list = kTwoGoodTwoBad; },
                "w.data_list[2] is null"},
        Refused{"list_without_scales", GemmKind::fp8_block, TN, [](auto& c) { c.w.data = c.w.scale_inv = nullptr, c.w.data_list = kGood; },
                "w.scale_inv_list is null"},
        Refused{"scales_without_list", GemmKind::fp8_block, TN, [](auto& c) { c.w.scale_inv_list = kGood; }, "w.scale_inv_list is given"},
        Refused{"null_d", GemmKind::bf16, NT, [](auto& c) { c.d = nullptr; }, "d is null"},
        Refused{"d_list_of_fprop", GemmKind::bf16, TN, [](auto& c) { c.d = nullptr, c.d_list = kOdd; }, "d_list is given"},
        Refused{"d_and_list", GemmKind::bf16, NT, [](auto& c) { c.d_list = kOdd; }, "d is given"},
        Refused{"d_list_entry", GemmKind::bf16, NT, [](auto& c) { c.d = nullptr, c.d_list = kOdd; }, "d_list[1] is misaligned"},
        Refused{"c_with_list", GemmKind::bf16, NT, [](auto& c) { c.d = nullptr, c.d_list = kOdd, c.c = address(0x100); }, "c is given"},
        Refused{"odd_c", GemmKind::bf16, TN, [](auto& c) { c.c = address(0x101); }, "c is misaligned"},
        Refused{"odd_alpha", GemmKind::bf16, TN, [](auto& c) { c.alpha = address<const float>(0x102); }, "alpha is misaligned"},
        Refused{"odd_beta", GemmKind::bf16, TN, [](auto& c) { c.beta = address<const float>(0x102); }, "beta is misaligned"},
        Refused{"bias_of_wgrad", GemmKind::bf16, NT, [](auto& c) { c.bias = address(0x100); }, "bias is given"},
        Refused{"workspace", GemmKind::bf16, TN, [](auto& c) { c.workspace = address(0x1080); }, "workspace is misaligned"},
        Refused{"rows_multiple", GemmKind::fp8_per_tensor, NT, [](auto& c) { c.rows_multiple = 0; }, "rows_multiple is 0: expected a value of at least 1"},
        Refused{"columns_of_8", GemmKind::fp8_block, NT, [](auto& c) { c.column_alignment = 8; }, "column_alignment is 8: expected 1 or 16"},
        Refused{"columns_of_0", GemmKind::fp8_block, NT, [](auto& c) { c.column_alignment = 0; }, "column_alignment is 0: expected 1 or 16"},
        Refused{"columns_in_TN", GemmKind::fp8_block, TN, [](auto& c) { c.column_alignment = 16; }, "column_alignment is 16: expected 1, but for"},
        Refused{"columns_of_tensor", GemmKind::fp8_per_tensor, NT, [](auto& c) { c.column_alignment = 16; }, "column_alignment is 16: expected 1, but for"},
        Refused{"places", GemmKind::bf16, TN, [](auto& c) { c.places.layout = static_cast<GroupedLayout>(4); }, "places.layout is 4"},
        Refused{"places_of_splits", GemmKind::bf16, TN, [](auto& c) { c.places.alignment = 8; }, "places.alignment is 8"},
        Refused{"index_of_splits", GemmKind::bf16, TN, [](auto& c) { c.places.index = address<const std::int32_t>(4); }, "places.index is given"},
        Refused{"max_m_of_splits", GemmKind::bf16, TN, [](auto& c) { c.places.max_m = 8; }, "places.max_m is 8"},
        Refused{"null_indices", GemmKind::bf16, TN, [](auto& c) { place(c, kIndices), c.places.index = nullptr; }, "places.index is null"},
        Refused{"odd_psum", GemmKind::bf16, NN, [](auto& c) { place(c, kPsum), c.places.index = address<const std::int32_t>(6); },
                "places.index is misaligned"},
        Refused{"splits_with_psum", GemmKind::bf16, TN, [](auto& c) { place(c, kPsum), c.rows.splits = address<const std::int64_t>(8); },
                "rows.splits is given"},
        Refused{"no_alignment", GemmKind::bf16, TN, [](auto& c) { place(c, kIndices), c.places.alignment = 0; }, "places.alignment is 0"},
        Refused{"groups_of_indices", GemmKind::bf16, TN, [](auto& c) { place(c, kIndices), c.rows.groups = 1025; }, "rows.groups is 1025"},
        Refused{"room_of_masked", GemmKind::bf16, TN, [](auto& c) { place(c, kMasked), c.places.max_m = 127; }, "rows.capacity is 512"},
        Refused{"masked_without_counts", GemmKind::bf16, TN,
                [](auto& c) { c.rows = {512, nullptr, 1}, c.places = {kMasked, nullptr, 1, 512}; }, "rows.splits is null"},
        Refused{"masked_wgrad", GemmKind::bf16, NT, [](auto& c) { place(c, kMasked); }, "places.layout is 3"},
        Refused{"transposed_wgrad", GemmKind::fp8_per_tensor, NT, [](auto& c) { place(c, kPsum), c.dy.columnwise = true; },
                "dy.columnwise is 1"},
        Refused{"transposed_x", GemmKind::fp8_per_tensor, TN, [](auto& c) { place(c, kIndices), c.x.columnwise = true; }, "x.columnwise is 1"},
        Refused{"odd_swizzled_scales", GemmKind::nvfp4, TN,
                [](auto& c) { place(c, kPsum), c.scale_layout = ScaleLayout::swizzled, c.x.scale_inv = address(0x1008); },
                "x.scale_inv is misaligned"},
        Refused{"status", GemmKind::bf16, TN, [](auto& c) { c.status = address<std::uint32_t>(0x1002); }, "status is misaligned"}),
    [](const auto& info) { return info.param.name; });
// clang-format on

// Messages name the value that the caller passed, also if it is not an enumerator.
TEST(Names, SayThatAValueIsUnknown) {
  EXPECT_EQ(kind_name(GemmKind::nvfp4), "nvfp4");
  EXPECT_EQ(kind_name(GemmKind{6}), "an unknown kind");
  EXPECT_EQ(layout_name(GemmLayout::NT), "NT");
  EXPECT_EQ(layout_name(GemmLayout{3}), "an unknown layout");
  EXPECT_EQ(format_name(Format::e2m3), "e2m3");
  EXPECT_EQ(format_name(static_cast<Format>(99)), "an unknown format");
}

}  // namespace
}  // namespace assay::device
