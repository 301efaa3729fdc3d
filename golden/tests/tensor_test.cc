#include "reference/types/tensor.h"

#include <gtest/gtest.h>

#include "golden/tests/sample_fixture.h"
#include "reference/types/error.h"

namespace assay::golden {
namespace {

constexpr std::int64_t kHalf = std::int64_t{1} << 32;

TEST(MakeTensor, IsZeroAndAsLargeAsItsShape) {
  const Tensor tensor = make_tensor(Format::bf16, {3, 5});
  EXPECT_EQ(tensor.bytes, std::vector<std::byte>(30));
  EXPECT_EQ(tensor.elements(), 15);
  EXPECT_EQ(make_tensor(Format::e2m1, {3, 5}).bytes.size(), 15u);  // bytes of two codes
  EXPECT_EQ(make_tensor(Format::f32, {}).bytes.size(), 4u);
  EXPECT_EQ(make_tensor(Format::i64, {0, 7}).bytes.size(), 0u);
}

struct Refused {
  Format type;
  std::vector<std::int64_t> shape;
  const char* message;
};
void PrintTo(const Refused& each, std::ostream* to) { *to << name_of(each.type) << shape_text(each.shape); }

const Refused kRefused[] = {
    {Format::f32, {3, -1}, "shape[1] is -1: expected an extent of at least 0"},
    {Format::e4m3, {kHalf, kHalf}, "shape is [4294967296,4294967296]: expected fewer than 2^63 elements"},
    {Format::e4m3, {kHalf, kHalf, 0}, "shape is [4294967296,4294967296,0]: expected fewer than 2^63 elements"},
    {Format::f32, {kHalf, kHalf / 8}, "shape is [4294967296,536870912]: expected fewer than 2^63 bytes"},
};

class MakeTensorTest : public ::testing::TestWithParam<Refused> {};

TEST_P(MakeTensorTest, RefusesBeforeMemoryIsTaken) {
  try {
    make_tensor(GetParam().type, GetParam().shape);
    FAIL() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MakeTensorTest, ::testing::ValuesIn(kRefused));

// The tests of round trips use same_fixture: it must detect every single difference.
TEST(SameFixture, SeesEachDifference) {
  const Fixture original = sample_fixture();
  EXPECT_TRUE(same_fixture(original, sample_fixture()));
  const auto differs = [&](auto change) {
    Fixture changed = original;
    change(changed);
    return !same_fixture(original, changed);
  };
  EXPECT_TRUE(differs([](Fixture& f) { f.schema = 2; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.provenance += " "; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases.pop_back(); }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].name = "x"; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].op = "x"; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].attributes["minus_zero"] = 0.0; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].attributes["integer"] = -5.0; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].attributes.erase("text"); }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].in.erase("f32"); }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].in["f32"].shape = {5, 3}; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].in["e4m3"].type = Format::e5m2; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].out["f32"].bytes.back() ^= std::byte{1}; }));
}

}  // namespace
}  // namespace assay::golden
