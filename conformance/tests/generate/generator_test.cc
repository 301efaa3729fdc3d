// Generated inputs: shapes, poison, the effect of each word of a line, and digests that are the same on every machine.

#include "conformance/generate/generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "conformance/generate/work_limit.h"
#include "conformance/support/counter_random.h"
#include "reference/formats/encode.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

Case case_of(const std::string& line) { return generate(parse_case_line(line)); }

// FNV over op, attributes and tensors: any changed bit changes it.
std::uint64_t digest_of(const Case& c) {
  std::string all = c.op;
  for (const auto& [key, value] : c.attributes) {
    all += ";" + key + "=";
    std::visit(
        [&](const auto& v) {
          if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>)
            all += v;
          else
            all += show(v);
        },
        value);
  }
  for (const auto& [name, tensor] : c.in) {
    all += ";" + name + ":" + std::string(name_of(tensor.type));
    for (const std::int64_t extent : tensor.shape) all += "," + show(extent);
    all += "=" + std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  return fnv1a(all);
}

struct Pinned {
  const char* line;
  std::uint64_t digest;
};
void PrintTo(const Pinned& p, std::ostream* out) { *out << p.line; }
class Digests : public testing::TestWithParam<Pinned> {};
TEST_P(Digests, AreTheSameEverywhere) {
  EXPECT_EQ(digest_of(case_of(GetParam().line)), GetParam().digest) << std::hex << "0x" << digest_of(case_of(GetParam().line));
}
const Pinned kPinned[] = {
    {"quantize recipe=block_1x128 splits=0,128,127 K=512 seed=7", 0x7d3b69a57d2c464d},
    {"quantize recipe=mxfp8 x_type=f32 R=33 K=272 data=full_exponent", 0x5c1d0cce59b46dc9},
    {"quantize recipe=block_128x128 x_type=f16 splits=zipf(8,300,2) K=130 data=specials seed=3", 0xc3d3594d671deb2},
    {"quantize recipe=nvfp4 stochastic=1 amax=given R=16 K=32 data=ties seed=4", 0x842734a3fa9119f4},
    {"quantize recipe=tensor_delayed R=40 K=40 data=adversarial_amax seed=5", 0x48d3c7672de5fc38},
    {"grouped_gemm kind=fp8_block splits=5,0,130 N=136 K=272 data=clustered beta=0.5 seed=6", 0x18928fe6a6cdb458},
    {"grouped_gemm kind=mxfp8 layout=NT splits=64,32 N=32 K=96 scales=edge seed=7", 0xbecb0608e047634e},
    {"grouped_gemm kind=nvfp4 layout=NN splits=16,3 N=32 K=48 data=every_code seed=8", 0x14b8b025fb965cb6},
    {"dequantize recipe=block_1x128 direction=columnwise splits=3,5 K=136 seed=9", 0xc9ca377a3d2822be},
    {"delayed_update tensors=5 length=7 data=sparse seed=10", 0xc34e8d365dcfac92},
    {"linear_forward recipe=fp8_block noop=1 splits=17,3 N=24 K=40 data=normal seed=11", 0xd4ee67e89c9fbb81},
};
INSTANTIATE_TEST_SUITE_P(All, Digests, testing::ValuesIn(kPinned));

struct Shapes {
  const char* line;
  const char* tensors;  // name:type[shape] ...
};
void PrintTo(const Shapes& s, std::ostream* out) { *out << s.line; }
class Inputs : public testing::TestWithParam<Shapes> {};
TEST_P(Inputs, HaveTheseNamesTypesAndShapes) {
  std::string text;
  for (const auto& [name, tensor] : case_of(GetParam().line).in) {
    text += (text.empty() ? "" : " ") + name + ":" + std::string(name_of(tensor.type)) + "[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) text += (i ? "," : "") + show(tensor.shape[i]);
    text += "]";
    const std::int64_t width = tensor.type == Format::e2m1 ? 1 : bits_of(tensor.type) / 8;
    EXPECT_EQ(static_cast<std::int64_t>(tensor.bytes.size()), tensor.elements() * width) << name;
  }
  EXPECT_EQ(text, GetParam().tensors);
}
// clang-format off
const Shapes kShapes[] = {
    {"quantize recipe=block_1x128 R=33 K=272", "x:bf16[33,272]"},
    {"quantize recipe=mxfp8 x_type=f32 splits=33,0,5 extra_rows=4 noop=1 K=8", "noop:f32[1] splits:i64[3] x:f32[42,8]"},
    {"quantize recipe=tensor_delayed splits=3,4 K=8", "scale:f32[2] splits:i64[2] x:bf16[7,8]"},
    {"quantize recipe=nvfp4 stochastic=1 amax=given splits=32,16 K=16",
     "amax:f32[2] columnwise_random:e8m0[768] rowwise_random:e8m0[768] splits:i64[2] x:bf16[48,16]"},
    {"quantize recipe=nvfp4 stochastic=1 direction=rowwise R=3 K=16", "rowwise_random:e8m0[48] x:bf16[3,16]"},
    {"grouped_gemm kind=bf16 splits=3,0,5 extra_rows=2 N=6 K=8 beta=1", "c:bf16[10,6] splits:i64[3] w:bf16[18,8] x:bf16[10,8]"},
    {"grouped_gemm kind=f16 layout=NN splits=3,5 N=6 K=8 d_type=f32", "dy:f16[8,6] splits:i64[2] w:f16[12,8]"},
    {"grouped_gemm kind=bf16 layout=NT splits=3,5 N=6 K=8 beta=0.5 d_type=f32", "c:f32[12,8] dy:bf16[8,6] splits:i64[2] x:bf16[8,8]"},
    {"grouped_gemm kind=bf16 bias=1 splits=3,5 N=6 K=8", "bias:bf16[2,6] splits:i64[2] w:bf16[12,8] x:bf16[8,8]"},
    // FP8: the storage that Hopper reads
    {"grouped_gemm kind=fp8_per_tensor x_type=e5m2 splits=3,5 N=6 K=8",
     "splits:i64[2] w_rowwise_data:e4m3[12,8] w_rowwise_scale_inv:f32[2] x_rowwise_data:e5m2[8,8] x_rowwise_scale_inv:f32[2]"},
    {"grouped_gemm kind=fp8_per_tensor layout=NN splits=3,5 N=6 K=8",
     "dy_rowwise_data:e4m3[8,6] dy_rowwise_scale_inv:f32[2] splits:i64[2] w_columnwise_data:e4m3[96] w_columnwise_scale_inv:f32[2]"},
    {"grouped_gemm kind=fp8_per_tensor layout=NN arch=sm100 splits=3,5 N=6 K=8",
     "dy_rowwise_data:e4m3[8,6] dy_rowwise_scale_inv:f32[2] splits:i64[2] w_rowwise_data:e4m3[12,8] w_rowwise_scale_inv:f32[2]"},
    {"grouped_gemm kind=fp8_block splits=128,0,256,128 N=256 K=384",
     "splits:i64[4] w_rowwise_data:e4m3[1024,384] w_rowwise_scale_inv:f32[32] x_rowwise_data:e4m3[512,384] x_rowwise_scale_inv:f32[1536]"},
    {"grouped_gemm kind=fp8_block layout=NN splits=128,0,256,128 N=256 K=384",
     "dy_rowwise_data:e4m3[512,256] dy_rowwise_scale_inv:f32[1024] splits:i64[4] w_columnwise_data:e4m3[393216] w_columnwise_scale_inv:f32[48]"},
    {"grouped_gemm kind=fp8_block layout=NT splits=128,0,256,128 N=256 K=384",
     "dy_columnwise_data:e4m3[131072] dy_columnwise_scale_inv:f32[1024] splits:i64[4] x_columnwise_data:e4m3[196608] x_columnwise_scale_inv:f32[1536]"},
    {"grouped_gemm kind=mxfp8 layout=NT splits=64,32 N=32 K=96",
     "dy_columnwise_data:e4m3[96,32] dy_columnwise_scale_inv:e8m0[1024] splits:i64[2] x_columnwise_data:e4m3[96,96] x_columnwise_scale_inv:e8m0[1024]"},
    {"grouped_gemm kind=nvfp4 splits=3,5 N=16 K=32 alpha=1,2",
     "alpha:f32[2] splits:i64[2] w_rowwise_amax:f32[2] w_rowwise_data:e2m1[32,16] w_rowwise_scale_inv:e4m3[1024] x_rowwise_amax:f32[2] "
     "x_rowwise_data:e2m1[8,16] x_rowwise_scale_inv:e4m3[1024]"},
    {"splits_to_offsets_multi x_type=i32 splits=1,2 outputs=1:i64", "splits:i32[2]"},
    {"splits_to_offsets_2d first=1,2 last=3,4", "first:i64[2] last:i64[2]"},
    {"delayed_update tensors=3 length=5 reduced=1", "amax_history:f32[5,3] reduced:f32[3] scale:f32[3]"},
    {"dequantize recipe=nvfp4 direction=columnwise splits=16,32 K=16",
     "amax:f32[2] columnwise_data:e2m1[384] columnwise_scale_inv:e4m3[1024] splits:i64[2]"},
    {"dequantize recipe=block_1x128 direction=columnwise R=5 K=8", "columnwise_data:e4m3[8,5] columnwise_scale_inv:f32[1,8]"},
    {"swizzle recipe=mxfp8 R=33 K=64", "compact:e8m0[128,4]"},
    {"unswizzle recipe=mxfp8 direction=columnwise splits=33,5 K=64", "splits:i64[2] swizzled:e8m0[1024]"},
    {"grouped_dbias accumulate=1 splits=3,5 K=4", "dbias:f32[2,4] dy:bf16[8,4] splits:i64[2]"},
    {"linear_forward recipe=fp8_block bias=1 noop=1 splits=3,5 N=6 K=8",
     "bias:bf16[2,6] noop:f32[1] splits:i64[2] w:bf16[12,8] w_rowwise_data:e4m3[12,8] w_rowwise_scale_inv:f32[8] x:bf16[8,8]"},
    {"linear_dgrad recipe=tensor_delayed splits=3,5 N=6 K=8", "dy:bf16[8,6] dy_scale:f32[2] splits:i64[2] w:bf16[12,8] w_scale:f32[2]"},
    {"linear_wgrad recipe=none accumulate=1 splits=3,5 N=6 K=8", "dy:bf16[8,6] main_grad:f32[12,8] splits:i64[2] x:bf16[8,8]"},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(All, Inputs, testing::ValuesIn(kShapes));

TEST(Generate, FillsRowsBeyondTheSplitsWithNaN) {
  const Case plain = case_of("quantize recipe=block_1x128 splits=3,2 extra_rows=4 K=8");
  for (int i = 0; i < 9 * 8; ++i) EXPECT_EQ(plain.in.at("x").as<std::uint16_t>()[i] == 0x7FC0, i >= 40) << i;
  const Case transposed = case_of("grouped_gemm kind=fp8_block layout=NT splits=3,2 extra_rows=4 N=8 K=16");
  for (int i = 0; i < 9 * 8; ++i) EXPECT_EQ(transposed.in.at("dy_columnwise_data").as<std::uint8_t>()[i] == 0x7F, i >= 40) << i;
}

TEST(Generate, PoisonsThePaddingOfCompactScales) {
  const Case block = case_of("grouped_gemm kind=fp8_block splits=3,5 N=6 K=136");  // x: [2, 4] then [2, 8]
  const auto* scales = block.in.at("x_rowwise_scale_inv").as<std::uint32_t>();
  for (int i = 0; i < 24; ++i) {
    const bool used = i < 8 ? i % 4 < 3 : (i - 8) % 8 < 5;
    EXPECT_EQ(scales[i] == 0x7FC0DEAD, !used) << i;
  }
  const Case mx = case_of("grouped_gemm kind=mxfp8 scale_layout=compact splits=3 N=32 K=96");
  const auto* bytes = mx.in.at("x_rowwise_scale_inv").as<std::uint8_t>();
  for (int i = 0; i < 512; ++i) EXPECT_EQ(bytes[i] == 0xFF, !(i / 4 < 3 && i % 4 < 3)) << i;
  const Case swizzled = case_of("grouped_gemm kind=mxfp8 splits=3 N=32 K=96");
  const auto* tiles = swizzled.in.at("x_rowwise_scale_inv").as<std::uint8_t>();
  for (int i = 0; i < 512; ++i) EXPECT_EQ(tiles[i] == 0, !(i % 16 < 3 && i / 16 < 3)) << i;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT_EQ(tiles[16 * i + j], bytes[4 * i + j]);
  }
}

// Reading the scale of another block must change the result: neighbours along every axis, and in the next group, have other
// exponents.
TEST(Generate, GivesNeighbouringBlocksDifferentScales) {
  for (const char* scales : {"plain", "pow2"}) {
    const Case c = case_of(std::string("grouped_gemm kind=fp8_block splits=2x8 N=256 K=640 scales=") + scales);
    const auto exponent = [&](int g, int row, int block) {
      return c.in.at("x_rowwise_scale_inv").as<std::uint32_t>()[g * 40 + block * 8 + row] >> 23;
    };
    for (int row = 0; row < 8; ++row) {
      for (int block = 0; block < 5; ++block) {
        EXPECT_NE(exponent(0, row, block), exponent(1, row, block));
        EXPECT_NE(exponent(0, row, block), row > 0 ? exponent(0, row - 1, block) : 0);
        EXPECT_NE(exponent(0, row, block), block > 0 ? exponent(0, row, block - 1) : 0);
      }
    }
  }
}

TEST(Generate, GivesBothStoragesTheSameElements) {
  const Case rowwise = case_of("grouped_gemm kind=fp8_per_tensor layout=NN arch=sm100 splits=3,5 N=6 K=8 seed=4");
  const Case columnwise = case_of("grouped_gemm kind=fp8_per_tensor layout=NN arch=sm90 splits=3,5 N=6 K=8 seed=4");
  const auto* rows = rowwise.in.at("w_rowwise_data").as<std::uint8_t>();
  const auto* columns = columnwise.in.at("w_columnwise_data").as<std::uint8_t>();
  for (int g = 0; g < 2; ++g) {
    for (int n = 0; n < 6; ++n) {
      for (int k = 0; k < 8; ++k) EXPECT_EQ(columns[g * 48 + k * 6 + n], rows[g * 48 + n * 8 + k]);
    }
  }
}

// Where rows are summed over, k counts from the first row of the group, so that each group has the large term of its sum.
TEST(Generate, StartsTheContractionOfEachGroupAtItsFirstRow) {
  const Case c = case_of("grouped_gemm kind=bf16 layout=NT splits=40,0,24 N=8 K=8 data=adversarial_output_ties");
  const auto* dy = c.in.at("dy").as<std::uint16_t>();
  for (int row = 0; row < 64; ++row) {
    for (int n = 0; n < 8; ++n) EXPECT_EQ(dy[row * 8 + n] == 0x4180, row == 0 || row == 40) << row;  // 16
  }
}

TEST(Generate, KeepsElementsWhenOnlySplitsChange) {
  const Case one = case_of("quantize recipe=block_1x128 splits=10,20,2 K=72 data=clustered seed=5");
  const Case other = case_of("quantize recipe=block_1x128 splits=0,1,31 K=72 data=clustered seed=5");
  EXPECT_EQ(one.in.at("x").bytes, other.in.at("x").bytes);
  EXPECT_NE(one.in.at("splits").bytes, other.in.at("splits").bytes);
}

TEST(Generate, GivesTwiceTheLargestValueAsAmax) {
  const Case c = case_of("quantize recipe=nvfp4 x_type=f16 amax=given splits=16,0,32 K=16 data=specials seed=3");
  const auto* x = c.in.at("x").as<std::uint16_t>();
  std::vector<float> values(48 * 16);
  decode(Format::f16, std::span(x, values.size()), values);
  float first = 0;
  for (int i = 0; i < 16 * 16; ++i)
    first =
        std::isnan(values[static_cast<std::size_t>(i)]) ? first : std::max(first, std::fabs(values[static_cast<std::size_t>(i)]));
  EXPECT_EQ(c.in.at("amax").as<float>()[0], 2 * first);
  EXPECT_EQ(c.in.at("amax").as<float>()[1], 0);
}

// The property of data=integers: with its scale every product is a multiple of one unit, and magnitudes sum to 2^13 units at
// most.
TEST(Generate, IntegersLeaveNoRoomForOrder) {
  for (const char* words : {"kind=fp8_per_tensor splits=5,0,9 N=6 K=2000", "kind=fp8_block splits=5,0,9 N=136 K=400",
                            "kind=fp8_block splits=5,0,9 N=6 K=5000", "kind=fp8_block splits=5,9 N=6 K=400 weight_block=1x128"}) {
    const Case c = case_of("grouped_gemm data=integers seed=3 " + std::string(words));
    const CaseLine line = parse_case_line("grouped_gemm data=integers seed=3 " + std::string(words));
    const std::int64_t N = line.integer("N"), K = line.integer("K");
    const std::vector<std::int64_t> splits = line.splits();
    const bool block = line.text("kind") == "fp8_block", tile = line.text("weight_block") == "128x128";
    const auto values = [&](const std::string& name) {
      const Tensor& t = c.in.at(name);
      std::vector<float> list(static_cast<std::size_t>(t.elements()));
      decode(t.type, std::span(t.as<std::uint8_t>(), list.size()), list);
      return list;
    };
    const std::vector<float> x = values("x_rowwise_data"), w = values("w_rowwise_data");
    const float* xs = c.in.at("x_rowwise_scale_inv").as<float>();
    const float* ws = c.in.at("w_rowwise_scale_inv").as<float>();
    const std::int64_t blocks = (K + 127) / 128, padded = (blocks + 3) / 4 * 4;
    std::int64_t row_base = 0, xs_base = 0, ws_base = 0;
    for (std::size_t g = 0; g < splits.size(); ++g) {
      const std::int64_t rows = splits[g], stride = (rows + 3) / 4 * 4, w_stride = (N + 3) / 4 * 4;
      double unit = 1e30;
      std::vector<double> sums;
      for (std::int64_t m = 0; m < rows; ++m) {
        for (std::int64_t n = 0; n < N; ++n) {
          double sum = 0;
          for (std::int64_t k = 0; k < K; ++k) {
            const double sx = block ? xs[xs_base + k / 128 * stride + m] : 1;
            const double sw = !block ? 1 : tile ? ws[ws_base + n / 128 * padded + k / 128] : ws[ws_base + k / 128 * w_stride + n];
            const double product =
                std::fabs(static_cast<double>(x[static_cast<std::size_t>((row_base + m) * K + k)]) * sx *
                          w[(g * static_cast<std::size_t>(N) + static_cast<std::size_t>(n)) * static_cast<std::size_t>(K) +
                            static_cast<std::size_t>(k)] *
                          sw);
            int exponent;
            double mantissa = std::frexp(product, &exponent);
            while (mantissa != std::floor(mantissa)) mantissa *= 2, --exponent;
            unit = std::min(unit, std::ldexp(1.0, exponent));
            sum += product;
          }
          sums.push_back(sum);
        }
      }
      for (const double sum : sums) ASSERT_LE(sum / unit, 8192) << words;
      row_base += rows;
      xs_base += block ? blocks * stride : 1;
      ws_base += !block ? 1 : tile ? (N + 127) / 128 * padded : blocks * w_stride;
    }
  }
}

TEST(Generate, RefusesWhatCannotBe) {
  EXPECT_THROW(case_of("quantize recipe=block_1x128 R=99999999999 K=99999999999"), InvalidArgument);
  EXPECT_THROW(case_of("quantize recipe=block_1x128 splits=99999999999 K=64"), InvalidArgument);
  EXPECT_THROW(case_of("splits_to_offsets_multi x_type=i32 splits=3000000000 outputs=1:i64"), InvalidArgument);
  EXPECT_NO_THROW(case_of("splits_to_offsets splits=9000000000000000000"));
}

TEST(Generate, WantsTheOutputsOfTheDirection) {
  const auto outputs = [](const std::string& line) {
    std::string text;
    for (const std::string& each : wanted_outputs(parse_case_line(line))) text += (text.empty() ? "" : " ") + each;
    return text;
  };
  EXPECT_EQ(outputs("quantize recipe=block_1x128 R=1 K=1"),
            "rowwise_data rowwise_scale_inv columnwise_data columnwise_scale_inv");
  EXPECT_EQ(outputs("quantize recipe=mxfp8 direction=columnwise dbias=1 R=1 K=1"), "columnwise_data columnwise_scale_inv dbias");
  EXPECT_EQ(outputs("quantize recipe=tensor_current R=1 K=1"), "rowwise_data rowwise_scale_inv columnwise_data amax scale");
  EXPECT_EQ(outputs("quantize recipe=nvfp4 direction=rowwise R=1 K=2"), "rowwise_data rowwise_scale_inv amax");
  EXPECT_EQ(outputs("splits_to_offsets_multi splits=1 outputs=1:i64,2:i32"), "offsets_0 offsets_1");
  EXPECT_EQ(outputs("linear_wgrad recipe=none bias=1 splits=1 N=1 K=1"), "dw dbias");
}

// Experts without a row take no memory.
TEST(Generator, ExpertsWithoutTokensCostNothing) {
  const Case made = generate(parse_case_line("permute R=3 topk=1 experts=13407016800 K=8"));
  EXPECT_EQ(made.in.at("row_map").shape, (std::vector<std::int64_t>{3, 1}));
}

// Sizes past int64 count as the largest cost: sums over cases stay within int64, and a case of them is never taken for a cheap one.
TEST(Cost, OfSizesThatNoMachineHoldsIsTheLargest) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 50;
  EXPECT_EQ(cost_of(parse_case_line("unpermute R=808614715435150916 experts=5 topk=2 K=40")).elements, kLargest);
  EXPECT_EQ(cost_of(parse_case_line("delayed_update tensors=9223372036854775807 length=3")).elements, kLargest);
  const CaseCost product =
      cost_of(parse_case_line("grouped_gemm kind=bf16 splits=5 N=9223372036854775807 K=9223372036854775807"));
  EXPECT_EQ(product.macs, kLargest);
  EXPECT_EQ(product.elements, kLargest);
  EXPECT_EQ(cost_of(parse_case_line("grouped_gemm kind=bf16 splits=0 N=9223372036854775807 K=3")).macs, 0);
  EXPECT_EQ(cost_of(parse_case_line("grouped_gemm kind=bf16 splits=5,3 N=7 K=11")).macs, 8 * 7 * 11);
}

// A group begins at a multiple of the alignment: rows up to there are made too.
TEST(Cost, CountsTheRowsThatAPlaceOfGroupsAdds) {
  const auto elements = [](const std::string& line) { return cost_of(parse_case_line(line)).elements; };
  EXPECT_EQ(elements("grouped_gemm kind=bf16 splits=5,0,7 N=3 K=4"), 12 * 7 + 3 * 3 * 4);
  EXPECT_EQ(elements("grouped_gemm kind=bf16 splits=5,0,7 N=3 K=4 extra_rows=10"), 22 * 7 + 3 * 3 * 4);
  EXPECT_EQ(elements("grouped_gemm kind=bf16 grouped_layout=psum alignment=100 splits=5,0,107 N=3 K=4"), 300 * 7 + 3 * 3 * 4);
  EXPECT_EQ(elements("grouped_gemm kind=bf16 grouped_layout=masked max_m=50 splits=5,0,7 N=3 K=4"), 150 * 7 + 3 * 3 * 4);
  EXPECT_EQ(elements("permute R=6 topk=2 experts=3 alignment=101 K=4"), (12 + 3 * 100) * 4);
  EXPECT_EQ(elements("quantize recipe=mxfp8 splits=5,7 extra_rows=20 K=4"), 32 * 4);
  EXPECT_GT(elements("grouped_gemm kind=bf16 grouped_layout=m_indices alignment=27066557392404 splits=5,0,7 N=8 K=16"),
            std::int64_t{1} << 48);
}

// A limit is held before anything of the size is made, and is gone with its object.
TEST(Work, IsRefusedAboveTheLimit) {
  const CaseLine line = parse_case_line("quantize recipe=mxfp8 R=1000 K=32");
  {
    const WorkLimit limit(1000);
    EXPECT_THROW(generate(line), InvalidArgument);
  }
  {
    const WorkLimit limit(1'000'000);
    generate(line);
    EXPECT_GE(limit.counted(), 32'000);
    EXPECT_THROW(
        generate(parse_case_line("grouped_gemm kind=bf16 grouped_layout=m_indices alignment=27066557392 splits=5,7 N=8 K=16")),
        InvalidArgument);
    EXPECT_THROW(generate(parse_case_line("permute R=4 topk=1 experts=4 alignment=68719476736 K=0")), InvalidArgument);
    EXPECT_THROW(generate(parse_case_line("swizzle recipe=mxfp8 R=68719476736 K=0")), InvalidArgument);  // rows of no length
  }
  EXPECT_NO_THROW(generate(line));
}

TEST(Generate, RefusesExtentsThatNoTensorHas) {
  EXPECT_THROW(case_of("grouped_gemm kind=bf16 splits=0,0 N=9223372036854775807 K=0"), InvalidArgument);
  EXPECT_THROW(case_of("linear_forward recipe=none splits=0 N=0 K=68719476737"), InvalidArgument);
  EXPECT_THROW(case_of("quantize recipe=mxfp8 splits=1 extra_rows=9223372036854775807 K=0"), InvalidArgument);
}

// No group has rows, and so no row of the tensor is asked for its group.
TEST(Generate, GroupsThatEndAtRowZero) {
  const Case made = case_of("grouped_gemm kind=fp8_per_tensor N=16 K=16 grouped_layout=psum alignment=16 splits=0");
  EXPECT_EQ(made.in.at("x_rowwise_data").elements(), 0);
}

}  // namespace
}  // namespace assay::conformance
