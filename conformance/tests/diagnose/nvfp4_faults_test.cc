// The hint names a rule of NVFP4 that a backend replaces with another. Each fault is planted by loops of the test: codes and
// scales are looked up among the values of all codes.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "conformance/diagnose/other_calls/nvfp4_rules.h"
#include "conformance/generate/generator.h"
#include "conformance/tests/diagnose/planted.h"
#include "reference/tests/arithmetic/second_route.h"

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

// The scale of a block from its amax and the scale of the tensor; the value to be encoded, from x and the scales of block and
// tensor.
double right_ratio(float amax, float tensor) {
  return f32(double{amax} * f32(double{tensor} * std::bit_cast<float>(0x3e2aaaabu)));
}
double no_tensor_scale(float amax, float) { return f32(amax / 6.0); }
float right_product(float x, float block, float tensor) {
  const double multiplier = std::min(f32(1.0 / f32(double{block} * f32(1.0 / tensor))), std::numeric_limits<float>::max());
  return f32(double{x} * multiplier);
}
float divided(float x, float block, float tensor) { return f32(double{x} / f32(double{block} * f32(1.0 / tensor))); }
float tensor_first(float x, float block, float tensor) { return f32(double{f32(double{x} * tensor)} / block); }

float kept(float scale) { return scale; }
float power_below(float scale) { return f32(std::ldexp(1.0, std::ilogb(scale))); }
float always_one(float) { return 1; }

struct Rule {
  const char* name;
  float (*tensor)(float scale) = kept;
  double (*ratio)(float amax, float tensor) = right_ratio;
  int (*scale)(Format type, double ratio) = nearest;
  float (*product)(float x, float block, float tensor) = right_product;
  int (*code)(Format type, double product) = nearest;
  int nan = 7;                 // the code of NaN
  const char* hint = nullptr;  // null: nothing is wrong
  const char* data = "normal";
};
void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

class Nvfp4MadeWrongly : public testing::TestWithParam<Rule> {};

// One tensor of f32, rowwise: scales [row][block] padded to 4 blocks, the code of an even column in the low nibble.
TEST_P(Nvfp4MadeWrongly, AreNamed) {
  const Rule& rule = GetParam();
  constexpr std::int64_t kRows = 96, kColumns = 112, kBlocks = kColumns / 16, kPadded = 8;
  const std::string line = std::string("quantize recipe=nvfp4 x_type=f32 direction=rowwise R=96 K=112 seed=61 data=") + rule.data;
  const std::string text = planted::failure(line, [&](const assay_call& call) {
    const auto* x = reinterpret_cast<const float*>(bytes(call, "x"));
    auto* codes = reinterpret_cast<std::uint8_t*>(bytes(call, "rowwise_data"));
    auto* scales = reinterpret_cast<std::uint8_t*>(bytes(call, "rowwise_scale_inv"));
    float largest = 0;
    for (std::int64_t i = 0; i < kRows * kColumns; ++i)
      if (std::fabs(x[i]) > largest) largest = std::fabs(x[i]);
    const float tensor = rule.tensor(f32(6.0 * 448 / largest));
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t b = 0; b < kBlocks; ++b) {
        const float* block = x + r * kColumns + b * 16;
        float amax = 0;
        for (int i = 0; i < 16; ++i)
          if (std::fabs(block[i]) > amax) amax = std::fabs(block[i]);
        const int scale = rule.scale(Format::e4m3, rule.ratio(amax, tensor));
        scales[r * kPadded + b] = static_cast<std::uint8_t>(scale);
        for (int i = 0; i < 16; ++i) {
          const float product = rule.product(block[i], f32(value(Format::e4m3, scale)), tensor);
          const int code =
              std::isnan(product) ? rule.nan : rule.code(Format::e2m1, std::fabs(product)) | (std::signbit(product) ? 8 : 0);
          std::uint8_t& byte = codes[(r * kColumns + b * 16 + i) / 2];
          byte = static_cast<std::uint8_t>(i % 2 == 0 ? (byte & 0xf0) | code : (byte & 0x0f) | code << 4);
        }
      }
    }
  });
  if (rule.hint == nullptr) {
    EXPECT_EQ(text, "");  // without a fault, the loops give the right output
  } else {
    EXPECT_TRUE(contains(hints_of(text), rule.hint)) << text;
  }
}

// clang-format off
const Rule kFaults[] = {
    {.name = "right"},
    {.name = "codes_toward_zero", .code = below, .hint = "with codes rounded toward zero"},
    {.name = "ties_away", .code = ties_up, .hint = "with ties of codes rounded away from zero", .data = "ties"},
    {.name = "scales_down", .scale = below, .hint = "with block scales rounded toward zero"},
    {.name = "scales_up", .scale = above, .hint = "with block scales rounded up"},
    {.name = "no_tensor_scale", .ratio = no_tensor_scale, .hint = "with block scales without the tensor's scale"},
    {.name = "divided", .product = divided, .hint = "with x divided by the block's scale over the tensor's, not multiplied", .data = "full_exponent"},
    {.name = "tensor_first", .product = tensor_first, .hint = "with x multiplied by the tensor's scale first, then divided by the block's", .data = "near_underflow"},
    {.name = "right_with_nan", .data = "nans"},
    {.name = "nan_as_zero", .nan = 0, .hint = "with NaN stored as 0", .data = "nans"},
    {.name = "tensor_scale_cut", .tensor = power_below, .hint = "with the tensor's scale cut to a power of two"},
    {.name = "tensor_scale_one", .tensor = always_one, .hint = "with the tensor's scale taken as 1"},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Diagnosis, Nvfp4MadeWrongly, testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- Four over six ----------------------------------------------------------------------------------------------------

enum class Choice { by_error, four, six, four_where_equal };
struct ChoiceFault {
  const char* name;
  const char* words;
  Choice choice;
  const char* hint;  // null: nothing is wrong
};
void PrintTo(const ChoiceFault& fault, std::ostream* out) { *out << fault.name; }

class FourOverSixMadeWrongly : public testing::TestWithParam<ChoiceFault> {};

// One block of 16 under a scale: its codes, and the sum of its errors (nvfp4-5.1), each step rounded to f32.
struct Coded {
  int codes[16];
  float error;
};
constexpr double kMax = 256;  // e4m3_max of these calls: scales for 4 are not cut at 448
Coded coded(const float* block, int scale, float tensor, float largest, bool squared) {
  Coded made{{}, 0};
  for (int i = 0; i < 16; ++i) {
    const float product = right_product(block[i], f32(value(Format::e4m3, scale)), tensor);
    const int code = nearest(Format::e2m1, std::fabs(product));
    made.codes[i] = code | (std::signbit(product) ? 8 : 0);
    const double size = value(Format::e2m1, code) * (std::signbit(product) ? -1 : 1);
    const float back = f32(double{f32(f32(size * value(Format::e4m3, scale)) * double{largest})} / (6 * kMax));
    const float off = f32(double{back} - block[i]);
    made.error = f32(double{made.error} + (squared ? f32(double{off} * off) : std::fabs(off)));
  }
  return made;
}

TEST_P(FourOverSixMadeWrongly, AreNamed) {
  const ChoiceFault& fault = GetParam();
  constexpr std::int64_t kRows = 96, kColumns = 112, kBlocks = kColumns / 16, kPadded = 8;
  const std::string line =
      std::string("quantize recipe=nvfp4 x_type=f32 direction=rowwise e4m3_max=256 R=96 K=112 ") + fault.words;
  const std::string text = planted::failure(line, [&](const assay_call& call) {
    const auto* x = reinterpret_cast<const float*>(bytes(call, "x"));
    auto* codes = reinterpret_cast<std::uint8_t*>(bytes(call, "rowwise_data"));
    auto* scales = reinterpret_cast<std::uint8_t*>(bytes(call, "rowwise_scale_inv"));
    float largest = 0;
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float tensor = f32(6 * kMax / largest);
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t b = 0; b < kBlocks; ++b) {
        const float* block = x + r * kColumns + b * 16;
        float amax = 0;
        for (int i = 0; i < 16; ++i) amax = std::max(amax, std::fabs(block[i]));
        const float base = f32(double{f32(amax / 6.0)} * tensor);
        const int of_four = nearest(Format::e4m3, std::min(448.0, double{f32(base * 1.5)})),
                  of_six = nearest(Format::e4m3, std::min(448.0f, base));
        const bool squared = line.find("=mse") != line.npos;
        const Coded four = coded(block, of_four, tensor, largest, squared), six = coded(block, of_six, tensor, largest, squared);
        const bool takes_four = fault.choice == Choice::four || (fault.choice != Choice::six && four.error < six.error) ||
                                (fault.choice == Choice::four_where_equal && four.error == six.error);
        scales[r * kPadded + b] = static_cast<std::uint8_t>(takes_four ? of_four : of_six);
        for (int i = 0; i < 16; ++i) {
          const int code = (takes_four ? four : six).codes[i];
          std::uint8_t& byte = codes[(r * kColumns + b * 16 + i) / 2];
          byte = static_cast<std::uint8_t>(i % 2 == 0 ? (byte & 0xf0) | code : (byte & 0x0f) | code << 4);
        }
      }
    }
  });
  if (fault.hint == nullptr) {
    EXPECT_EQ(text, "");
  } else {
    EXPECT_TRUE(contains(hints_of(text), fault.hint)) << text;
  }
}

// clang-format off
const ChoiceFault kChoiceFaults[] = {
    {"right_by_mae", "four_over_six=mae data=normal seed=62", Choice::by_error, nullptr},
    {"right_by_mse", "four_over_six=mse data=normal seed=62", Choice::by_error, nullptr},
    {"right_where_equal", "four_over_six=mae data=adversarial_four_over_six seed=63", Choice::by_error, nullptr},
    {"four_always", "four_over_six=mae data=normal seed=62", Choice::four, "with the scale for 4 always"},
    {"six_always", "four_over_six=mse data=normal seed=62", Choice::six, "with the scale for 6 always"},
    {"four_where_equal", "four_over_six=mae data=adversarial_four_over_six seed=63", Choice::four_where_equal, "with the scale for 4 where both errors are equal"},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Diagnosis, FourOverSixMadeWrongly, testing::ValuesIn(kChoiceFaults),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- The transformed columns ------------------------------------------------------------------------------------------

constexpr std::int64_t kTall = 96, kWide = 64;  // of the calls below: one tensor of bf16

std::vector<float> values_of_x(const assay_call& call) {
  const auto* x = reinterpret_cast<const std::uint16_t*>(bytes(call, "x"));
  std::vector<float> values;
  for (std::int64_t i = 0; i < kTall * kWide; ++i) values.push_back(f32(value(Format::bf16, x[i])));
  return values;
}

TEST(Nvfp4Columns, WithTheAmaxOfXAreNamed) {
  const std::string text = planted::failure("quantize recipe=nvfp4 hadamard=1 R=96 K=64 seed=64", [](const assay_call& call) {
    float amax = 0;
    for (const float each : values_of_x(call)) amax = std::max(amax, std::fabs(each));
    const auto give = [&](Request& request) { request.in["columnwise_amax"] = {Format::f32, {1}, &amax, 4}; };
    planted::spoil(call, "columnwise_scale_inv", give);
    planted::spoil(call, "columnwise_data", give);
  });
  EXPECT_TRUE(contains(hints_of(text), "with the amax of x for that of the transformed columns")) << text;
}

// Small whole numbers: a sum of 16 is exact in any order, and a quarter of it is a bf16.
TEST(Nvfp4Columns, TransformedAlongTheRowsAreNamed) {
  const std::string text = planted::failure(
      "quantize recipe=nvfp4 hadamard=1 sign_mask=77 R=96 K=64 data=integers seed=65", [](const assay_call& call) {
        const std::vector<float> x = values_of_x(call);
        std::vector<std::uint16_t> y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          double sum = 0;
          for (int k = 0; k < 16; ++k) {
            const bool minus = (77 >> k & 1) != (std::popcount(i % 16 & static_cast<unsigned>(k)) & 1);
            sum += (minus ? -0.25 : 0.25) * x[i / 16 * 16 + static_cast<std::size_t>(k)];
          }
          y[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(f32(sum)) >> 16);
          ASSERT_EQ(value(Format::bf16, y[i]), sum);
        }
        const auto give = [&](Request& request) {
          request.attributes["hadamard"] = std::int64_t{0};
          request.attributes.erase("sign_mask");
          request.in["x"].data = y.data();
        };
        for (const char* output : {"columnwise_amax", "columnwise_scale_inv", "columnwise_data"})
          planted::spoil(call, output, give);
      });
  EXPECT_TRUE(contains(hints_of(text), "with the transform along the rows, not down the columns")) << text;
}

TEST(Nvfp4Columns, WithRandomBytesInTheOrderOfXAreNamed) {
  const std::string text = planted::failure("quantize recipe=nvfp4 stochastic=1 R=96 K=64 seed=66", [](const assay_call& call) {
    planted::spoil(call, "columnwise_data", [&](Request& request) {
      TensorView& random = request.in.at("columnwise_random");
      static std::vector<std::uint8_t> moved;
      moved.assign(static_cast<std::size_t>(random.bytes), 0);
      const auto* given = static_cast<const std::uint8_t*>(random.data);
      for (std::int64_t k = 0; k < kWide; ++k) {
        for (std::int64_t m = 0; m < kTall; ++m) moved[static_cast<std::size_t>(k * kTall + m)] = given[m * kWide + k];
      }
      random.data = moved.data();
    });
  });
  EXPECT_TRUE(contains(hints_of(text), "with random bytes in the order of x, not of the codes")) << text;
}

// With no rule changed, the loops of the diagnosis give the reference's output under all options.
TEST(Nvfp4Rules, ThatAreRightChangeNothing) {
  for (const char* words :
       {"", "x_type=f32 stochastic=1", "two_dimensional=1 four_over_six=mse",
        "four_over_six=mae e4m3_max=256 scale_layout=swizzled", "hadamard=1 sign_mask=45576 stochastic=1", "hadamard=1",
        "amax=apart two_dimensional=1", "amax=single", "zero_sign=positive data=every_special"}) {
    const CaseLine line = parse_case_line(std::string("quantize recipe=nvfp4 splits=18,0,34,16 K=48 seed=3 ") + words);
    Case problem = generate(line);
    Request request = Request::of(problem);
    std::map<std::string, Tensor> right;
    for (const OutputSpec& spec : outputs_of(request)) right.emplace(spec.name, make_tensor(spec.type, spec.shape));
    for (auto& [name, tensor] : right)
      request.out[name] = {tensor.type, tensor.shape, tensor.bytes.data(), static_cast<std::int64_t>(tensor.bytes.size())};
    answer(request, Layer::scalar);
    const auto written = written_bytes(request);
    for (const char* output : {"rowwise_data", "rowwise_scale_inv", "columnwise_data", "columnwise_scale_inv"}) {
      Tensor other = right.at(output);  // every element in use must be computed again
      std::fill(other.bytes.begin(), other.bytes.end(), std::byte{0x5a});
      const auto made = diagnosis::quantized_nvfp4_by({}, {request, output, other, other});
      ASSERT_TRUE(made.has_value());
      int wrong = 0;
      for (std::size_t i = 0; i < other.bytes.size(); ++i) {
        const bool padding = std::string(output).ends_with("scale_inv") && right.at(output).bytes[i] == std::byte{0} &&
                             made->bytes[i] == std::byte{0x5a};
        wrong += written.at(output)[i] != 0 && !padding && made->bytes[i] != right.at(output).bytes[i];
      }
      EXPECT_EQ(wrong, 0) << words << " " << output;
    }
  }
}

}  // namespace
}  // namespace assay::conformance
