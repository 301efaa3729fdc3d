// Rules of NVFP4 that a backend has otherwise are named by the hint. Each fault is planted by loops of the test: codes and scales
// are looked up among the values of all codes.

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "conformance/cases/generator.h"
#include "conformance/diagnosis/nvfp4_rules.h"
#include "conformance/suites/arithmetic/second_route.h"
#include "conformance/suites/diagnosis/planted.h"

namespace assay::conformance {
namespace {

using planted::hints_of;

float f32(double x) { return static_cast<float>(x); }
double value(Format type, int code) { return second_route::value_of(type, static_cast<std::uint32_t>(code)); }

// The largest code of a positive value that is no larger than x.
int code_below(Format type, double x) {
  const int last = type == Format::e2m1 ? 7 : 0x7e;
  int code = 0;
  while (code < last && value(type, code + 1) <= x) ++code;
  return code;
}
int nearest(Format type, double x) {
  const int last = type == Format::e2m1 ? 7 : 0x7e, low = code_below(type, x);
  if (low == last) return low;
  const double down = x - value(type, low), up = value(type, low + 1) - x;
  return up < down || (up == down && low % 2 == 1) ? low + 1 : low;
}
int below(Format type, double x) { return code_below(type, x); }
int above(Format type, double x) {
  const int low = code_below(type, x);
  return value(type, low) < x && low < (type == Format::e2m1 ? 7 : 0x7e) ? low + 1 : low;
}
int ties_up(Format type, double x) {
  const int low = code_below(type, x);
  return low < 7 && x - value(type, low) >= value(type, low + 1) - x ? low + 1 : low;
}

// The scale of a block from its amax and the scale of the tensor; the value that is coded, from x, the block's scale and the
// tensor's.
double right_ratio(float amax, float tensor) { return f32(double{amax} * f32(double{tensor} * std::bit_cast<float>(0x3e2aaaabu))); }
double no_tensor_scale(float amax, float) { return f32(amax / 6.0); }
float right_product(float x, float block, float tensor) { return f32(double{x} * f32(1.0 / f32(double{block} * f32(1.0 / tensor)))); }
float divided(float x, float block, float tensor) { return f32(double{x} / f32(double{block} * f32(1.0 / tensor))); }
float tensor_first(float x, float block, float tensor) { return f32(double{f32(double{x} * tensor)} / block); }

struct Rule {
  const char* name;
  double (*ratio)(float amax, float tensor) = right_ratio;
  int (*scale)(Format type, double ratio) = nearest;
  float (*product)(float x, float block, float tensor) = right_product;
  int (*code)(Format type, double product) = nearest;
  const char* hint = nullptr;  // null: nothing is wrong
  const char* data = "normal";
};
void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

class Nvfp4MadeWrongly : public testing::TestWithParam<Rule> {};

// One tensor of f32, rowwise: scales [row][block] padded to 4 blocks, the code of an even column in the low nibble.
TEST_P(Nvfp4MadeWrongly, AreNamed) {
  const Rule& rule = GetParam();
  constexpr std::int64_t kRows = 96, kColumns = 112, kBlocks = kColumns / 16, kPadded = 8;
  const std::string line = std::string("quantize recipe=nvfp4 itype=f32 direction=rowwise R=96 K=112 seed=61 data=") + rule.data;
  const std::string text = planted::failure(line, [&](const assay_call& call) {
    const auto* x = reinterpret_cast<const float*>(bytes(call, "x"));
    auto* codes = reinterpret_cast<std::uint8_t*>(bytes(call, "rowwise_data"));
    auto* scales = reinterpret_cast<std::uint8_t*>(bytes(call, "rowwise_scale_inv"));
    float largest = 0;
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float tensor = f32(6.0 * 448 / largest);
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t b = 0; b < kBlocks; ++b) {
        const float* block = x + r * kColumns + b * 16;
        float amax = 0;
        for (int i = 0; i < 16; ++i) amax = std::max(amax, std::fabs(block[i]));
        const int scale = rule.scale(Format::e4m3, rule.ratio(amax, tensor));
        scales[r * kPadded + b] = static_cast<std::uint8_t>(scale);
        for (int i = 0; i < 16; ++i) {
          const float product = rule.product(block[i], f32(value(Format::e4m3, scale)), tensor);
          const int code = rule.code(Format::e2m1, std::fabs(product)) | (std::signbit(product) ? 8 : 0);
          std::uint8_t& byte = codes[(r * kColumns + b * 16 + i) / 2];
          byte = static_cast<std::uint8_t>(i % 2 == 0 ? (byte & 0xf0) | code : (byte & 0x0f) | code << 4);
        }
      }
    }
  });
  if (rule.hint == nullptr) {
    EXPECT_EQ(text, "");  // the loops make right words right
  } else {
    EXPECT_TRUE(contains(hints_of(text), rule.hint)) << text;
  }
}

const Rule kFaults[] = {
    {.name = "right"},
    {.name = "codes_toward_zero", .code = below, .hint = "with codes rounded toward zero"},
    {.name = "ties_away", .code = ties_up, .hint = "with ties of codes rounded away from zero", .data = "ties"},
    {.name = "scales_down", .scale = below, .hint = "with block scales rounded toward zero"},
    {.name = "scales_up", .scale = above, .hint = "with block scales rounded up"},
    {.name = "no_tensor_scale", .ratio = no_tensor_scale, .hint = "with block scales without the tensor's scale"},
    {.name = "divided", .product = divided, .hint = "with x divided by the block's scale over the tensor's, not multiplied", .data = "full_exponent"},
    {.name = "tensor_first", .product = tensor_first, .hint = "with x multiplied by the tensor's scale first, then divided by the block's", .data = "near_underflow"},
};
INSTANTIATE_TEST_SUITE_P(Diagnosis, Nvfp4MadeWrongly, testing::ValuesIn(kFaults), [](const auto& info) { return std::string(info.param.name); });

// With no rule changed the loops of the diagnosis give what the reference gives, whatever the options.
TEST(Nvfp4Rules, ThatAreRightChangeNothing) {
  for (const char* words : {"", "itype=f32 stochastic=1", "two_dimensional=1 four_over_six=mse", "four_over_six=mae e4m3_max=256 scale_layout=swizzled",
                            "hadamard=1 sign_mask=45576 stochastic=1", "hadamard=1", "amax=apart two_dimensional=1", "amax=single",
                            "zero_sign=positive data=every_special"}) {
    const CaseLine line = parse_case_line(std::string("quantize recipe=nvfp4 splits=18,0,34,16 K=48 seed=3 ") + words);
    golden::Case problem = generate(line);
    Request request = Request::of(problem);
    std::map<std::string, golden::Tensor> right;
    for (const OutputSpec& spec : outputs_of(request)) right.emplace(spec.name, golden::make_tensor(spec.type, spec.shape));
    for (auto& [name, tensor] : right) request.out[name] = {tensor.type, tensor.shape, tensor.bytes.data(), static_cast<std::int64_t>(tensor.bytes.size())};
    answer(request, Layer::scalar);
    const auto written = written_bytes(request);
    for (const char* output : {"rowwise_data", "rowwise_scale_inv", "columnwise_data", "columnwise_scale_inv"}) {
      golden::Tensor other = right.at(output);  // of which every word in use must be made anew
      std::fill(other.bytes.begin(), other.bytes.end(), std::byte{0x5a});
      const auto made = diagnosis::quantized_nvfp4_by({}, {request, output, other, other});
      ASSERT_TRUE(made.has_value());
      int wrong = 0;
      for (std::size_t i = 0; i < other.bytes.size(); ++i) {
        const bool padding = std::string(output).ends_with("scale_inv") && right.at(output).bytes[i] == std::byte{0} && made->bytes[i] == std::byte{0x5a};
        wrong += written.at(output)[i] != 0 && !padding && made->bytes[i] != right.at(output).bytes[i];
      }
      EXPECT_EQ(wrong, 0) << words << " " << output;
    }
  }
}

}  // namespace
}  // namespace assay::conformance
