// The comparison: each rule on hand-made tensors, and the exact text of failures.

#include "conformance/judge/compare/compare.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/elements.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

template <class Word>
Tensor tensor(Format type, std::vector<std::int64_t> shape, const std::vector<Word>& words) {
  Tensor t{type, std::move(shape), {}};
  t.bytes.resize(words.size() * sizeof(Word));
  std::memcpy(t.bytes.data(), words.data(), t.bytes.size());
  return t;
}

Tensor filled(Format type, std::vector<std::int64_t> shape, std::uint8_t byte) {
  Tensor t{type, std::move(shape), {}};
  const std::int64_t width = type == Format::e2m1 ? 1 : bits_of(type) / 8;
  t.bytes.assign(static_cast<std::size_t>(t.elements() * width), static_cast<std::byte>(byte));
  return t;
}

Case case_of(const std::string& line) { return generate(parse_case_line(line)); }

std::vector<float> numbers(std::size_t count) {
  std::vector<float> list(count);
  for (std::size_t i = 0; i < count; ++i) list[i] = 1.0f + static_cast<float>(i) / 1024;
  return list;
}

// ---- what counts as equal

struct Rule {
  const char* name;
  Format type;
  std::uint32_t want, got;
  bool zero_sign_free, equal;
};
void PrintTo(const Rule& r, std::ostream* out) { *out << r.name; }
class Rules : public testing::TestWithParam<Rule> {};
TEST_P(Rules, Decide) {
  const Rule& r = GetParam();
  Case problem;
  problem.op = "anything";
  const auto make = [&](std::uint32_t bits) {
    Tensor t = filled(r.type, {1}, 0);
    std::memcpy(t.bytes.data(), &bits, t.bytes.size());
    return t;
  };
  CompareOptions options;
  options.zero_sign_free = r.zero_sign_free;
  EXPECT_EQ(compare(problem, "d", make(r.want), make(r.got), options).count == 0, r.equal);
}
const Rule kRules[] = {
    {"f32 equal", Format::f32, 0x3F800000, 0x3F800000, false, true},
    {"f32 one ulp", Format::f32, 0x3F800000, 0x3F800001, false, false},
    {"f32 NaN payload and sign", Format::f32, 0x7FC00000, 0xFF800001, false, true},
    {"f32 NaN against infinity", Format::f32, 0x7FC00000, 0x7F800000, false, false},
    {"f32 zero sign", Format::f32, 0, 0x80000000, false, false},
    {"f32 zero sign is not a code's", Format::f32, 0, 0x80000000, true, false},
    {"bf16 NaN", Format::bf16, 0x7FC0, 0x7F81, false, true},
    {"f16 NaN", Format::f16, 0x7E00, 0xFC01, false, true},
    {"f16 infinity", Format::f16, 0x7C00, 0xFC00, false, false},
    {"e4m3 NaN sign", Format::e4m3, 0x7F, 0xFF, false, false},
    {"e4m3 NaN sign, free zeros", Format::e4m3, 0x7F, 0xFF, true, false},
    {"e4m3 zero sign", Format::e4m3, 0x80, 0x00, false, false},
    {"e4m3 zero sign free", Format::e4m3, 0x80, 0x00, true, true},
    {"e5m2 NaN payload", Format::e5m2, 0x7F, 0x7D, false, false},
    {"e5m2 zero sign free", Format::e5m2, 0x00, 0x80, true, true},
    {"e5m2 subnormal is not zero", Format::e5m2, 0x00, 0x81, true, false},
    {"e2m1 zero signs in both nibbles", Format::e2m1, 0x80, 0x08, true, true},
    {"e2m1 other nibble", Format::e2m1, 0x81, 0x08, true, false},
    {"e8m0 zero has no sign", Format::e8m0, 0x00, 0x80, true, false},
    {"i32", Format::i32, 1, 2, true, false},
};
INSTANTIATE_TEST_SUITE_P(All, Rules, testing::ValuesIn(kRules));

TEST(Compare, PaddingOfCompactScalesMustKeepWhatItHeld) {
  const Case problem = case_of("quantize recipe=block_1x128 R=33 K=130");  // rowwise scales [2, 36], 33 in use
  Tensor want = tensor(Format::f32, {2, 36}, numbers(72)), got = want;
  const Tensor before = filled(Format::f32, {2, 36}, 0xA5);
  got.as<float>()[35] = -1;
  want.as<float>()[34] = -2;                                             // whatever the expected tensor holds there
  EXPECT_EQ(compare(problem, "rowwise_scale_inv", want, got).count, 0);  // the contents before are not known
  CompareOptions options;
  options.before = &before;
  for (const int at : {33, 34, 69, 70, 71}) std::memset(got.bytes.data() + at * 4, 0xA5, 4);
  const Difference one = compare(problem, "rowwise_scale_inv", want, got, options);
  EXPECT_EQ(one.count, 1);
  EXPECT_EQ(one.overwritten, 1);
  EXPECT_EQ(one.total, 72);
  EXPECT_EQ(one.first_place, "k-block 0, row 35 (padding)");
  EXPECT_EQ(one.hints.front(), "written where nothing may be: 1 element");
  std::memset(got.bytes.data() + 35 * 4, 0xA5, 4);
  EXPECT_EQ(compare(problem, "rowwise_scale_inv", want, got, options).count, 0);
}

TEST(Compare, PaddingThatMayBeWrittenIsNotCompared) {
  const Case problem = case_of("quantize recipe=block_1x128 R=33 K=100");  // [1, 36], 33 in use
  const Tensor want = tensor(Format::f32, {1, 36}, numbers(36)), before = filled(Format::f32, {1, 36}, 0xA5);
  Tensor got = want;
  got.as<float>()[35] = -1;
  std::vector<std::uint8_t> written(144, 1);
  CompareOptions options;
  options.before = &before;
  options.written = written;
  EXPECT_EQ(compare(problem, "rowwise_scale_inv", want, got, options).count, 0);
  std::fill(written.begin() + 132, written.end(), 0);
  EXPECT_EQ(compare(problem, "rowwise_scale_inv", want, got, options).overwritten, 3);
}

TEST(Compare, PaddingOfSwizzledScalesMustBeZero) {
  const Case problem = case_of("quantize recipe=mxfp8 scale_layout=swizzled R=33 K=96");  // [128, 4], 33 x 3 in use
  Tensor want = filled(Format::e8m0, {128, 4}, 0);
  for (int i = 0; i < 33; ++i) {
    for (int j = 0; j < 3; ++j)
      want.bytes[static_cast<std::size_t>(i % 32 * 16 + i / 32 * 4 + j)] = static_cast<std::byte>(100 + i + j);
  }
  Tensor got = want;
  want.bytes[7] = std::byte{9};  // padding is 0 whatever the expected tensor holds there
  EXPECT_EQ(compare(problem, "rowwise_scale_inv", want, got).count, 0);
  EXPECT_EQ(compare(problem, "rowwise_scale_inv", want, got).total, 512);
  got.bytes[3] = std::byte{1};           // (0, 3): past the last block
  got.bytes[1 * 16 + 4] = std::byte{2};  // (33, 0): past the last row
  const Difference d = compare(problem, "rowwise_scale_inv", want, got);
  EXPECT_EQ(d.count, 2);
  EXPECT_EQ(d.overwritten, 0);
  EXPECT_EQ(d.first_place, "row 0, k-block 3 (padding)");
  EXPECT_EQ(d.where, "rows 0,33; k-blocks 0,3");
}

TEST(Compare, PlacesAreNamedInThePlural) {
  const Tensor offsets = tensor(Format::i64, {4}, std::vector<std::int64_t>{0, 1, 2, 3});
  Tensor got = offsets;
  got.as<std::int64_t>()[1] = got.as<std::int64_t>()[3] = -1;
  EXPECT_EQ(compare(case_of("splits_to_offsets splits=1,1,1"), "offsets", offsets, got).where, "indices 1,3");
  const Tensor scales = tensor(Format::f32, {1, 8}, std::vector<float>(8, 1));
  Tensor wrong = scales;
  wrong.as<float>()[2] = wrong.as<float>()[3] = 2;
  EXPECT_EQ(
      compare(case_of("quantize recipe=block_1x128 direction=columnwise R=8 K=8"), "columnwise_scale_inv", scales, wrong).where,
      "row-block 0; k 2-3");
}

TEST(Compare, RowsBeyondTheSplitsMustKeepWhatTheyHeld) {
  const Case problem = case_of("grouped_gemm kind=bf16 splits=2,0,1 extra_rows=2 N=4 K=8");
  const Tensor want = tensor(Format::bf16, {5, 4}, std::vector<std::uint16_t>(20, 0x3F80));
  Tensor got = want, before = filled(Format::bf16, {5, 4}, 0xFF);
  EXPECT_EQ(compare(problem, "d", want, got).total, 12);
  CompareOptions options;
  options.before = &before;
  const Difference d = compare(problem, "d", want, got, options);
  EXPECT_EQ(d.count, 8);
  EXPECT_EQ(d.overwritten, 8);
  EXPECT_EQ(d.first_place, "element 12, beyond the splits");
  EXPECT_EQ(d.where, "beyond the splits");
  std::memset(got.bytes.data() + 24, 0xFF, 16);
  EXPECT_EQ(compare(problem, "d", want, got, options).count, 0);
}

TEST(Compare, AMaskSaysWhatMayBeWritten) {
  const Case problem = case_of("grouped_gemm kind=bf16 splits=2 N=2 K=8");
  const Tensor want = tensor(Format::bf16, {2, 2}, std::vector<std::uint16_t>{1, 2, 3, 4});
  const Tensor before = filled(Format::bf16, {2, 2}, 0xA5);
  std::vector<std::uint8_t> written(8, 1);
  written[4] = written[5] = 0;
  CompareOptions options;
  options.before = &before;
  options.written = written;
  const Difference d = compare(problem, "d", want, want, options);
  EXPECT_EQ(d.count, 1);
  EXPECT_EQ(d.first_place, "group 0, row 1, column 0");
  EXPECT_EQ(d.want, 0xA5A5u);
}

TEST(Compare, NothingWrittenMeansEveryBit) {
  const Case problem = case_of("quantize recipe=block_1x128 noop=1 R=2 K=4");
  const Tensor before = filled(Format::f32, {1, 4}, 0xFF);
  Tensor after = before;
  EXPECT_FALSE(compare_untouched(problem, "rowwise_scale_inv", before, after));
  after.as<std::uint32_t>()[0] = 0x7FC00000;  // another NaN is a write
  EXPECT_EQ(compare_untouched(problem, "rowwise_scale_inv", before, after).overwritten, 1);
}

TEST(Compare, RefusesTensorsThatAreNotAlike) {
  const Case problem = case_of("grouped_gemm kind=bf16 splits=2 N=2 K=8");
  const Tensor want = filled(Format::bf16, {2, 2}, 0);
  EXPECT_THROW(compare(problem, "d", want, filled(Format::f16, {2, 2}, 0)), InvalidArgument);
  EXPECT_THROW(compare(problem, "d", want, filled(Format::bf16, {4}, 0)), InvalidArgument);
  CompareOptions options;
  const std::vector<std::uint8_t> written(8, 1);
  options.written = written;
  EXPECT_THROW(compare(problem, "d", want, want, options), InvalidArgument);  // a mask without the contents before
}

// ---- coordinates

struct Where {
  const char* line;
  const char* output;
  Format type;
  std::vector<std::int64_t> shape;
  std::int64_t element;  // the one that is wrong
  const char* place;
};
void PrintTo(const Where& w, std::ostream* out) { *out << w.line << " " << w.output << "[" << w.element << "]"; }
class Places : public testing::TestWithParam<Where> {};
TEST_P(Places, AreToldInTheGroup) {
  const Where& w = GetParam();
  const Case problem = case_of(w.line);
  Tensor want = filled(w.type, w.shape, 0), got = want;
  const std::int64_t width = w.type == Format::e2m1 ? 0 : bits_of(w.type) / 8;
  if (width == 0) {
    got.bytes[static_cast<std::size_t>(w.element / 2)] ^= w.element % 2 ? std::byte{0x20} : std::byte{0x02};
  } else {
    got.bytes[static_cast<std::size_t>(w.element * width)] ^= std::byte{0x02};
  }
  const Difference d = compare(problem, w.output, want, got);
  EXPECT_EQ(d.count, 1);
  EXPECT_EQ(d.first_element, w.element);
  EXPECT_EQ(d.first_place, w.place);
}
// clang-format off
const Where kWhere[] = {
    {"quantize recipe=block_1x128 splits=3,0,2 K=4", "rowwise_data", Format::e4m3, {5, 4}, 14, "group 2, row 0, column 2"},
    {"quantize recipe=block_1x128 splits=3,0,2 K=4", "columnwise_data", Format::e4m3, {20}, 15, "group 2, k 1, row 1"},
    {"quantize recipe=block_1x128 R=3 K=4", "columnwise_data", Format::e4m3, {4, 3}, 5, "k 1, row 2"},
    {"quantize recipe=mxfp8 splits=3,2 K=4", "columnwise_data", Format::e4m3, {5, 4}, 13, "group 1, row 0, column 1"},
    {"quantize recipe=block_1x128 splits=3,2 K=130", "rowwise_scale_inv", Format::f32, {16}, 13, "group 1, k-block 1, row 1"},
    {"quantize recipe=block_1x128 splits=3,130 K=4", "columnwise_scale_inv", Format::f32, {12}, 9, "group 1, row-block 1, k 1"},
    {"quantize recipe=block_128x128 splits=3,130 K=130", "rowwise_scale_inv", Format::f32, {12}, 9, "group 1, row-block 1, k-block 1"},
    {"quantize recipe=block_128x128 splits=3,130 K=130", "columnwise_scale_inv", Format::f32, {16}, 12, "group 1, k-block 1, row-block 0"},
    {"quantize recipe=mxfp8 R=33 K=64", "columnwise_scale_inv", Format::e8m0, {4, 128}, 130, "row-block 1, k 2"},
    {"quantize recipe=mxfp8 scale_layout=swizzled R=33 K=64", "columnwise_scale_inv", Format::e8m0, {4, 128}, 33, "row-block 1, k 2"},
    {"quantize recipe=nvfp4 R=16 K=8", "rowwise_data", Format::e2m1, {16, 4}, 9, "row 1, column 1"},
    {"quantize recipe=nvfp4 splits=16,32 K=16", "columnwise_scale_inv", Format::e4m3, {1024}, 517, "group 1, k 1, row-block 1"},
    {"quantize recipe=tensor_current splits=3,2 K=4", "rowwise_scale_inv", Format::f32, {2}, 1, "group 1"},
    {"quantize recipe=tensor_current R=3 K=4", "amax", Format::f32, {1}, 0, "the only element"},
    {"quantize recipe=block_1x128 dbias=1 splits=3,2 K=4", "dbias", Format::bf16, {2, 4}, 6, "group 1, column 2"},
    {"grouped_gemm kind=bf16 layout=TN splits=3,2 N=4 K=8", "d", Format::bf16, {5, 4}, 18, "group 1, row 1, column 2"},
    {"grouped_gemm kind=bf16 layout=NN splits=3,2 N=4 K=8", "d", Format::bf16, {5, 8}, 33, "group 1, row 1, column 1"},
    {"grouped_gemm kind=bf16 layout=NT splits=3,2 N=4 K=8", "d", Format::bf16, {8, 8}, 41, "group 1, row 1, column 1"},
    {"splits_to_offsets splits=3,2", "offsets", Format::i64, {3}, 2, "index 2"},
    {"delayed_update tensors=4 length=3", "amax_history", Format::f32, {3, 4}, 6, "row 1, tensor 2"},
    {"delayed_update tensors=4 length=3", "scale", Format::f32, {4}, 3, "tensor 3"},
    {"dequantize recipe=mxfp8 splits=3,2 K=4", "x", Format::bf16, {5, 4}, 13, "group 1, row 0, column 1"},
    {"swizzle recipe=mxfp8 splits=3,2 K=4", "swizzled", Format::e8m0, {1024}, 512 + 16, "group 1, row 1, k-block 0"},
    {"grouped_dbias splits=3,2 K=4", "dbias", Format::f32, {2, 4}, 5, "group 1, column 1"},
    {"linear_forward recipe=none splits=3,2 N=4 K=8", "y", Format::bf16, {5, 4}, 13, "group 1, row 0, column 1"},
    {"linear_wgrad recipe=none splits=3,2 N=4 K=8", "dw", Format::f32, {8, 8}, 33, "group 1, row 0, column 1"},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(All, Places, testing::ValuesIn(kWhere));

// Every element of every segment is visited once, swizzled or not.
TEST(OutputMap, CoordinatesAndOffsetsAreInverse) {
  for (const char* line :
       {"quantize recipe=mxfp8 scale_layout=swizzled splits=130,0,33 K=272",
        "quantize recipe=nvfp4 scale_layout=swizzled splits=16,144 K=80", "quantize recipe=block_1x128 splits=130,0,33 K=272"}) {
    for (const char* output : {"rowwise_scale_inv", "columnwise_scale_inv"}) {
      const Case problem = case_of(line);
      const Tensor big = filled(Format::e8m0, {std::int64_t{1} << 20}, 0);
      for (const Segment& s : map_output(problem, output, big).segments) {
        for (std::int64_t offset = 0; offset < s.elements(); ++offset) {
          const Coordinates at = coordinates_of(s, offset);
          ASSERT_TRUE(at.row >= 0 && at.row < s.rows && at.column >= 0 && at.column < s.columns);
          ASSERT_EQ(offset_of(s, at), offset);
        }
      }
    }
  }
}

TEST(OutputMap, FallsBackToAPlainMatrix) {
  const Case problem = case_of("grouped_gemm kind=bf16 splits=300,2 N=4 K=8");
  const OutputMap map = map_output(problem, "d", filled(Format::bf16, {5, 4}, 0));  // too small for the splits
  ASSERT_EQ(map.segments.size(), 1u);
  EXPECT_EQ(map.segments[0].rows, 5);
  EXPECT_FALSE(map.grouped);
}

// ---- the text

TEST(FailureText, OfAQuantizedTensor) {
  const std::string line = "quantize recipe=block_1x128 pow2=1 splits=0,128,127,130 K=512 data=specials seed=7";
  const Case problem = case_of(line);
  Tensor want = filled(Format::e4m3, {385, 512}, 0x38), got = want;
  for (const int row : {0, 1, 2, 127}) {
    for (int c = 128; c < 256; ++c)
      got.bytes[static_cast<std::size_t>(row * 512 + c)] = row == 127 ? std::byte{0x7F} : std::byte{0x3A};
  }
  got.bytes[255 * 512 + 129 * 512 + 511] = std::byte{0x7F};
  EXPECT_EQ(failure_text(line, compare(problem, "rowwise_data", want, got), "assay repro '" + line + "'"),
            "FAILED  quantize recipe=block_1x128 pow2=1 splits=0,128,127,130 K=512 data=specials seed=7\n"
            "  output  rowwise_data e4m3 [385,512]: 513 of 197120 differ\n"
            "  first   group 1, row 0, column 128: got 0x3A (1.25), want 0x38 (1)\n"
            "  where   groups 1,3; rows 0-2,127,129; columns 128-255,511; tiles 128x128 (0,1) (1,3)\n"
            "  ulp     2: 384  NaN or infinity: 129\n"
            "  hint    NaN where a number is expected: 129 of 513\n"
            "  repro   assay repro 'quantize recipe=block_1x128 pow2=1 splits=0,128,127,130 K=512 data=specials seed=7'\n");
}

TEST(FailureText, OfAProduct) {
  const std::string line = "grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=128,0 N=4 K=8 data=clustered seed=1";
  const Case problem = case_of(line);
  const Tensor want = tensor(Format::f32, {8, 8}, numbers(64));
  Tensor got = want;
  for (const int at : {33, 34, 35, 50, 51}) got.as<std::uint32_t>()[at] -= at == 51 ? 100 : 1;
  got.as<std::uint32_t>()[52] -= 1 << 20;
  EXPECT_EQ(failure_text(line, compare(problem, "d", want, got), ""),
            "FAILED  grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=128,0 N=4 K=8 data=clustered seed=1\n"
            "  output  d f32 [8,8]: 6 of 64 differ\n"
            "  first   group 1, row 0, column 1: got 0x3F841FFF (1.0322264), want 0x3F842000 (1.0322266)\n"
            "  where   group 1; rows 0,2; columns 1-4\n"
            "  ulp     1: 4  65-128: 1  >65536: 1\n");
}

TEST(FailureText, WrapsLongCasesAndKeepsTheCommandWhole) {
  std::string line = "splits_to_offsets splits=1,2 stride=7";
  for (int i = 0; i < 12; ++i) line += " word" + std::to_string(i) + "=abcdef";
  const Case problem = case_of("splits_to_offsets splits=1,2 stride=7");
  const Tensor want = tensor(Format::i64, {3}, std::vector<std::int64_t>{0, 7, 21}),
               got = tensor(Format::i64, {3}, std::vector<std::int64_t>{0, 7, -21});
  const std::string text = failure_text(line, compare(problem, "offsets", want, got), "assay repro '" + line + "'");
  std::istringstream lines(text);
  std::string each;
  int wrapped = 0;
  while (std::getline(lines, each)) {
    if (each.starts_with("  repro")) {
      EXPECT_NE(each.find(line), std::string::npos);
    } else {
      EXPECT_LE(each.size(), 100u);
      wrapped += each.starts_with("        word");
    }
  }
  EXPECT_EQ(wrapped, 2);
  EXPECT_NE(text.find("  first   index 2: got -21, want 21\n"), std::string::npos) << text;
}

TEST(FailureText, CutsLongLists) {
  const Case problem = case_of("grouped_gemm kind=bf16 d_type=f32 splits=2000 N=2 K=8");
  const Tensor want = tensor(Format::f32, {2000, 2}, numbers(4000));
  Tensor got = want;
  for (int row = 0; row < 2000; row += 50) got.as<float>()[row * 2] = -1;
  EXPECT_EQ(compare(problem, "d", want, got).where,
            "group 0; rows 0,50,100,150,200,250 and 34 more; column 0; tiles 128x128 (0,0) (1,0) (2,0) (3,0) (4,0) (5,0) (6,0) "
            "(7,0) and 8 more");
}

TEST(ShowElement, GivesHexAndValue) {
  EXPECT_EQ(show_element(Format::e4m3, 0x81), "0x81 (-0.001953125)");
  EXPECT_EQ(show_element(Format::e4m3, 0x7F), "0x7F (NaN)");
  EXPECT_EQ(show_element(Format::e5m2, 0xFC), "0xFC (-inf)");
  EXPECT_EQ(show_element(Format::e2m1, 0xB), "0xB (-1.5)");
  EXPECT_EQ(show_element(Format::e8m0, 0x7E), "0x7E (0.5)");
  EXPECT_EQ(show_element(Format::bf16, 0x3F80), "0x3F80 (1)");
  EXPECT_EQ(show_element(Format::f16, 0x8000), "0x8000 (-0)");
  EXPECT_EQ(show_element(Format::f32, 0x3DCCCCCD), "0x3DCCCCCD (0.1)");
  EXPECT_EQ(show_element(Format::e4m3_fnuz, 0x80), "0x80 (NaN)");
  EXPECT_EQ(show_element(Format::e4m3_fnuz, 0x40), "0x40 (1)");
}

}  // namespace
}  // namespace assay::conformance
