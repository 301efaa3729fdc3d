// Digests of outputs: what they say is what compare() says.

#include "conformance/judge/compare/output_digest.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/ops/answer.h"

namespace assay::conformance {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> made;
  for (const int each : values) made.push_back(static_cast<std::byte>(each));
  return made;
}

// hashlib.sha256(b"e4m3" + hashlib.sha256(b"abc").digest()).hexdigest(), and of two pieces: b"a" * 2**20, b"b".
TEST(OutputDigest, IsSha256OfTypeAndPieces) {
  EXPECT_EQ(output_digest(bytes_of({'a', 'b', 'c'}), {Format::e4m3}),
            "84b311dd4cf17a6f1512cb8255e0fc5b65ab684ed4da541a6f34ec28ca58043c");
  std::vector<std::byte> large(std::size_t{1} << 20, std::byte{'a'});
  large.push_back(std::byte{'b'});
  EXPECT_EQ(output_digest(large, {Format::e8m0}), "04798e9a2409c64cbb2c1c60c1afa64dafd45cb7239f52b9de1db0a213a34360");
  EXPECT_EQ(output_digest({}, {Format::f32}), "16b59eeb3ff6109bfc15a71791956009181e029bf5a40931ec39298d695d9d4b");
}

TEST(OutputDigest, NaNsAreOneButPoisonStays) {
  const auto bf16 = [](int low, int high) { return output_digest(bytes_of({low, high}), {Format::bf16}); };
  EXPECT_EQ(bf16(0xC1, 0x7F), bf16(0x81, 0xFF));  // two NaNs
  EXPECT_NE(bf16(0xC1, 0x7F), bf16(0x80, 0x7F));  // infinity
  EXPECT_NE(bf16(0xC1, 0x7F), bf16(0xFF, 0xFF));  // poison
  EXPECT_NE(bf16(0x80, 0x7F), bf16(0x80, 0xFF));  // two infinities
  const auto f32 = [](int low, int top) { return output_digest(bytes_of({low, 0, top, 0x7F}), {Format::f32}); };
  EXPECT_EQ(f32(1, 0x80), f32(0, 0xC0));
  EXPECT_NE(f32(1, 0x80), f32(0, 0x80));
  EXPECT_NE(output_digest(bytes_of({0x7F}), {Format::e4m3}), output_digest(bytes_of({0xFF}), {Format::e4m3}));
}

TEST(OutputDigest, SignsOfZerosAndRowsThatAreFree) {
  const auto codes = [](std::initializer_list<int> values, Format type, bool free) {
    return output_digest(bytes_of(values), {type, free});
  };
  EXPECT_EQ(codes({0x80, 1}, Format::e5m2, true), codes({0x00, 1}, Format::e5m2, true));
  EXPECT_NE(codes({0x80, 1}, Format::e5m2, false), codes({0x00, 1}, Format::e5m2, false));
  EXPECT_NE(codes({0x81}, Format::e5m2, true), codes({0x01}, Format::e5m2, true));
  EXPECT_EQ(codes({0x38, 0x83}, Format::e2m1, true), codes({0x30, 0x03}, Format::e2m1, true));
  EXPECT_NE(codes({0x88}, Format::e2m1, true), codes({0x98}, Format::e2m1, true));
  const auto rows = [](std::initializer_list<int> values) {
    return output_digest(bytes_of(values), {Format::e4m3, false, {false, true, false}, 2});
  };
  EXPECT_EQ(rows({1, 2, 3, 4, 5, 6, 7, 8}), rows({1, 2, 9, 9, 5, 6, 7, 8}));
  EXPECT_NE(rows({1, 2, 3, 4, 5, 6, 7, 8}), rows({1, 2, 3, 4, 9, 6, 7, 8}));
  EXPECT_NE(rows({1, 2, 3, 4, 5, 6, 7, 8}), rows({1, 2, 3, 4, 5, 6, 7, 9}));  // beyond the rows that are named
}

// Every byte of each output of a case changed to other values: one digest is never two outputs that compare() tells apart.
void expect_agreement(const char* text, bool zero_sign_free) {
  Case problem = generate(parse_case_line(text));
  const std::vector<OutputSpec> specs = outputs_of(Request::of(problem));
  for (const OutputSpec& spec : specs) problem.out[spec.name] = make_tensor(spec.type, spec.shape);
  answer(Request::of(problem), Layer::scalar);
  std::int64_t same = 0, other = 0;
  for (const OutputSpec& spec : specs) {
    const Tensor& want = problem.out.at(spec.name);
    const std::string digest = output_digest(want.bytes, {spec.type, zero_sign_free});
    EXPECT_FALSE(compare(problem, spec.name, want, want, {.zero_sign_free = zero_sign_free}));
    for (std::size_t i = 0; i < want.bytes.size(); i += 1 + want.bytes.size() / 23) {
      for (const int mask : {0x80, 0x01, 0x40, 0xFF, 0x08}) {
        Tensor got = want;
        got.bytes[i] ^= static_cast<std::byte>(mask);
        const bool differs = static_cast<bool>(compare(problem, spec.name, want, got, {.zero_sign_free = zero_sign_free}));
        const bool equal = output_digest(got.bytes, {spec.type, zero_sign_free}) == digest;
        EXPECT_FALSE(equal && differs) << text << ": " << spec.name << ", byte " << i << ", mask " << mask;
        ++(equal ? same : other);
      }
    }
  }
  EXPECT_GT(other, 100) << text;
  if (zero_sign_free) EXPECT_GT(same, 0) << text;
}

TEST(OutputDigest, AgreesWithTheComparison) {
  expect_agreement("quantize recipe=block_1x128 splits=8,0,20 K=272 data=specials seed=5", true);
  expect_agreement("quantize recipe=mxfp8 scale_layout=swizzled splits=8,0,20 K=96 data=specials seed=6", true);
  expect_agreement("grouped_gemm kind=bf16 splits=17,0,33,7 N=24 K=72 data=specials seed=37", false);
}

}  // namespace
}  // namespace assay::conformance
