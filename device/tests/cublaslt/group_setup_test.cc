// Which operand of a call supplies what to cuBLASLt, memory for aligned copies, and the arrays of the groups.

#include "device/cublaslt/group_setup.h"

#include <gtest/gtest.h>

#include <numeric>
#include <ostream>
#include <set>
#include <vector>

#include "device/cublaslt/cublaslt_gemm.h"
#include "device/tests/gemm/sound_call.h"

namespace assay::device {
namespace {

// D [m,n] row-major is op(A) . op(B) column-major with A the columns' operand; k_major where memory runs along the sum.
TEST(Sides, WhichOperandSuppliesWhat) {
  GroupedGemmCall call = sound(GemmKind::fp8_block, GemmLayout::TN);
  GemmSides sides = gemm_sides(call);
  EXPECT_EQ(sides.rows.operand, &call.x);
  EXPECT_EQ(sides.columns.operand, &call.w);
  EXPECT_EQ(sides.rows.extent, GemmSide::kOfGroup);
  EXPECT_EQ(sides.columns.extent, call.N);
  EXPECT_EQ(sides.rows.depth, call.K);
  call = sound(GemmKind::fp8_block, GemmLayout::NN);
  sides = gemm_sides(call);
  EXPECT_EQ(sides.rows.operand, &call.dy);
  EXPECT_EQ(sides.columns.extent, call.K);
  EXPECT_EQ(sides.columns.depth, call.N);
  EXPECT_TRUE(sides.columns.k_major);  // the transposed storage
  call = sound(GemmKind::fp8_block, GemmLayout::NT);
  sides = gemm_sides(call);
  EXPECT_EQ(sides.rows.operand, &call.dy);
  EXPECT_EQ(sides.columns.operand, &call.x);
  EXPECT_EQ(sides.rows.extent, call.N);
  EXPECT_EQ(sides.columns.extent, call.K);
  EXPECT_EQ(sides.columns.depth, GemmSide::kOfGroup);
  EXPECT_TRUE(sides.rows.k_major && sides.columns.k_major);
  call = sound(GemmKind::mxfp8, GemmLayout::NT);  // its columnwise storage is not transposed
  EXPECT_FALSE(gemm_sides(call).rows.k_major);
  call = sound(GemmKind::bf16, GemmLayout::NT);
  call.x.columnwise = call.dy.columnwise = false;
  EXPECT_FALSE(gemm_sides(call).columns.k_major);
}

// Memory suffices for any splits: group t begins at columns * (ru(rows before, 16) + 16 t) and has rows of ru(M_t, 16).
TEST(AlignedCopies, HaveRoomForEveryGroup) {
  GroupedGemmCall call = sound(GemmKind::fp8_per_tensor, GemmLayout::NT);
  for (const std::vector<std::int64_t>& splits :
       {std::vector<std::int64_t>{130, 0, 9}, {1, 1, 1, 1, 1}, {15, 17, 1, 0, 31, 480}, {16, 32}}) {
    call.rows.groups = static_cast<int>(splits.size());
    call.rows.capacity = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
    for (const GemmSide& side : {gemm_sides(call).rows, gemm_sides(call).columns}) {
      const std::int64_t columns = side.operand == &call.x ? call.K : call.N;
      std::int64_t before = 0, end = 0;
      for (std::size_t t = 0; t < splits.size(); ++t) {
        const std::int64_t begin = columns * ((before + 15) / 16 * 16 + 16 * static_cast<std::int64_t>(t));
        EXPECT_GE(begin, end) << side.name << " group " << t;
        end = begin + columns * ((splits[t] + 15) / 16 * 16);
        before += splits[t];
      }
      EXPECT_GE(aligned_copy_bytes(call, side), end) << side.name;
    }
  }
}

struct Copied {
  const char* name;
  GemmKind kind;
  GemmLayout layout;
  std::int64_t rows_multiple;
  std::int64_t x_bytes;  // of 100 rows in 4 groups, K 384
  friend void PrintTo(const Copied& copied, std::ostream* out) { *out << copied.name; }
};
class AlignedCopies : public testing::TestWithParam<Copied> {};

TEST_P(AlignedCopies, TakeMemoryOnlyWhereGroupsCanBeUnaligned) {
  GroupedGemmCall call = sound(GetParam().kind, GetParam().layout);
  call.rows.capacity = 100;
  call.rows_multiple = GetParam().rows_multiple;
  const GemmSides sides = gemm_sides(call);
  EXPECT_EQ(aligned_copy_bytes(call, call.layout == GemmLayout::TN ? sides.rows : sides.columns), GetParam().x_bytes);
}

INSTANTIATE_TEST_SUITE_P(Storages, AlignedCopies,
                         testing::Values(Copied{"fp8", GemmKind::fp8_per_tensor, GemmLayout::NT, 1, 384 * (112 + 64)},
                                         Copied{"fp8_by_eight", GemmKind::fp8_block, GemmLayout::NT, 8, 384 * (112 + 64)},
                                         Copied{"fp8_promised", GemmKind::fp8_block, GemmLayout::NT, 16, 0},
                                         Copied{"fp8_promised_more", GemmKind::fp8_block, GemmLayout::NT, 48, 0},
                                         Copied{"fp8_forward", GemmKind::fp8_block, GemmLayout::TN, 1, 0},
                                         Copied{"fp8_backward", GemmKind::fp8_block, GemmLayout::NN, 1, 0},
                                         Copied{"fp4", GemmKind::nvfp4, GemmLayout::NT, 1, 384 * (64 + 64)},
                                         Copied{"fp4_by_sixteen", GemmKind::nvfp4, GemmLayout::NT, 16, 384 * (64 + 64)},
                                         Copied{"fp4_promised", GemmKind::nvfp4, GemmLayout::NT, 32, 0},
                                         Copied{"mxfp8_lies_row_by_row", GemmKind::mxfp8, GemmLayout::NT, 1, 0},
                                         Copied{"bf16_transposed", GemmKind::bf16, GemmLayout::NT, 1, 384 * (208 + 64)},
                                         Copied{"bf16_promised", GemmKind::bf16, GemmLayout::NT, 8, 0}),
                         [](const auto& info) { return info.param.name; });

TEST(Arrays, LieApartAndFit) {
  for (const int groups : {1, 8, 63, 64, 65, 1024}) {
    char* base = address<char>(1 << 20);
    const GroupArrays a = group_arrays(base, groups);
    std::set<std::uintptr_t> starts;
    const auto place = [&](const void* array, std::int64_t bytes) {
      const auto at = reinterpret_cast<std::uintptr_t>(array);
      EXPECT_EQ(at % 256, 0u);
      EXPECT_TRUE(starts.insert(at).second);
      const auto next = starts.upper_bound(at);
      if (next != starts.end()) {
        EXPECT_LE(at + static_cast<std::uintptr_t>(bytes), *next);
      }
      EXPECT_LE(at + static_cast<std::uintptr_t>(bytes), reinterpret_cast<std::uintptr_t>(base) + group_arrays_bytes(groups));
    };
    for (const void* array :
         {static_cast<const void*>(a.beta_of), static_cast<const void*>(a.alpha_of), static_cast<const void*>(a.b_scale),
          static_cast<const void*>(a.a_scale), static_cast<const void*>(a.d), static_cast<const void*>(a.c),
          static_cast<const void*>(a.b), static_cast<const void*>(a.a)}) {
      place(array, 8 * groups);
    }
    for (const void* array :
         {static_cast<const void*>(a.alpha), static_cast<const void*>(a.beta), static_cast<const void*>(a.a_rows),
          static_cast<const void*>(a.a_columns), static_cast<const void*>(a.a_leading), static_cast<const void*>(a.b_rows),
          static_cast<const void*>(a.b_columns), static_cast<const void*>(a.b_leading), static_cast<const void*>(a.d_rows),
          static_cast<const void*>(a.d_columns), static_cast<const void*>(a.d_leading)}) {
      place(array, 4 * groups);
    }
    EXPECT_EQ(starts.size(), 19u);
  }
}

}  // namespace
}  // namespace assay::device
