// The hint names a rule of quantization or of delayed scaling that a backend replaces with another. Each fault is planted by
// loops of the test: codes are looked up among the values of all 256, and scales are computed again.

#include <algorithm>
#include <bit>
#include <cmath>

#include "conformance/tests/diagnose/planted.h"
#include "reference/tests/arithmetic/second_route.h"

namespace assay::conformance {
namespace {

using planted::hints_of;

// The magnitudes of the codes of an FP8 format, by code.
double magnitude(Format type, int code) { return second_route::value_of(type, static_cast<std::uint32_t>(code)); }
int largest_code(Format type) { return type == Format::e4m3 ? 0x7e : 0x7b; }
// The code with the largest magnitude that is not above |x|.
int code_below(Format type, double x) {
  int code = 0;
  while (code < largest_code(type) && magnitude(type, code + 1) <= std::fabs(x)) ++code;
  return code;
}
std::uint8_t toward_zero(Format type, double x) {
  return static_cast<std::uint8_t>(code_below(type, x) | (std::signbit(x) ? 0x80 : 0));
}
std::uint8_t ties_away(Format type, double x) {
  const int low = code_below(type, x);
  const bool up = low < largest_code(type) && std::fabs(x) - magnitude(type, low) >= magnitude(type, low + 1) - std::fabs(x);
  return static_cast<std::uint8_t>((low + (up ? 1 : 0)) | (std::signbit(x) ? 0x80 : 0));
}
std::uint8_t nearest(Format type, double x) {
  const int low = code_below(type, x);
  const double down = std::fabs(x) - magnitude(type, low),
               rest = low < largest_code(type) ? magnitude(type, low + 1) - std::fabs(x) : INFINITY;
  const bool up = rest < down || (rest == down && low % 2 == 1);
  return static_cast<std::uint8_t>((low + (up ? 1 : 0)) | (std::signbit(x) ? 0x80 : 0));
}
std::uint8_t without_subnormals(Format type, double x) {
  const std::uint8_t code = nearest(type, x);
  return (code & 0x7f) < (type == Format::e4m3 ? 8 : 4) ? code & 0x80 : code;
}
double as_bf16(double x) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}
std::uint8_t bf16_first(Format type, double x) { return nearest(type, as_bf16(x)); }

double x_at(const assay_tensor& x, std::int64_t at) {
  const auto type = static_cast<Format>(x.dtype);
  if (type == Format::f32) return static_cast<const float*>(x.data)[at];
  return second_route::value_of(type, static_cast<const std::uint16_t*>(x.data)[at]);
}

struct CodeFault {
  const char* name;
  const char* line;
  std::uint8_t (*code)(Format type, double scaled);
  const char* hint;
};
void PrintTo(const CodeFault& fault, std::ostream* out) { *out << fault.name; }

class CodesMadeWrongly : public testing::TestWithParam<CodeFault> {};

// One tensor under delayed scaling: the given scale alone decides.
TEST_P(CodesMadeWrongly, AreNamed) {
  const CodeFault& fault = GetParam();
  const std::string text = planted::failure(fault.line, [&](const assay_call& call) {
    const assay_tensor &x = tensor(call, "x"), &data = tensor(call, "rowwise_data");
    const float scale = *reinterpret_cast<const float*>(bytes(call, "scale"));
    for (std::int64_t at = 0; at < data.bytes; ++at) {
      static_cast<std::uint8_t*>(data.data)[at] =
          fault.code(static_cast<Format>(data.dtype), static_cast<float>(x_at(x, at) * scale));
    }
  });
  EXPECT_TRUE(contains(hints_of(text), fault.hint)) << text;
}

// clang-format off
const CodeFault kCodeFaults[] = {
    {"toward_zero", "quantize recipe=tensor_delayed R=33 K=96 direction=rowwise seed=1", toward_zero, "with codes rounded toward zero"},
    {"toward_zero_e5m2", "quantize recipe=tensor_delayed otype=e5m2 R=33 K=96 direction=rowwise seed=2", toward_zero, "with codes rounded toward zero"},
    {"ties_away", "quantize recipe=tensor_delayed scales=ones data=ties R=33 K=96 direction=rowwise seed=3", ties_away, "with ties of codes rounded away from zero"},
    {"subnormals", "quantize recipe=tensor_delayed scales=ones R=133 K=96 direction=rowwise seed=4", without_subnormals, "with subnormal codes stored as 0"},
    {"bf16_first", "quantize recipe=tensor_delayed x_type=f32 R=133 K=96 direction=rowwise seed=5", bf16_first, "with the scaled x rounded to bf16 before its code"},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Diagnosis, CodesMadeWrongly, testing::ValuesIn(kCodeFaults),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- Scales ---------------------------------------------------------------------------------------------------------

struct ScaleFault {
  const char* name;
  const char* line;
  std::int64_t block;  // elements of a row that share a scale
  double (*amax)(const double* x, std::int64_t count);
  std::uint32_t (*scale_inv)(double amax);  // bits, or the e8m0 code
  const char* hint;
};
void PrintTo(const ScaleFault& fault, std::ostream* out) { *out << fault.name; }

double plain(const double* x, std::int64_t count) {
  double amax = 0;
  for (std::int64_t i = 0; i < count; ++i) amax = std::max(amax, std::fabs(x[i]));
  return amax;
}
double positive(const double* x, std::int64_t count) { return std::max(0.0, *std::max_element(x, x + count)); }
double but_last(const double* x, std::int64_t count) { return plain(x, count - 1); }
double first_64(const double* x, std::int64_t count) { return plain(x, std::min<std::int64_t>(count, 64)); }
double rounded_amax(const double* x, std::int64_t count) { return as_bf16(plain(x, count)); }

float f32(double x) { return static_cast<float>(x); }
std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint32_t right(double amax) { return bits(1 / f32(448 / amax)); }
std::uint32_t by_reciprocal(double amax) { return bits(1 / f32(448.0 * f32(1 / amax))); }
std::uint32_t from_amax(double amax) { return bits(f32(amax / 448)); }
std::uint32_t not_inverted(double amax) { return bits(f32(448 / amax)); }
std::uint32_t of_240(double amax) { return bits(1 / f32(240 / amax)); }
std::uint32_t power_above(double amax) {
  const int exponent = std::ilogb(448 / amax);
  return bits(1 / f32(std::ldexp(1.0, std::ldexp(1.0, exponent) == 448 / amax ? exponent : exponent + 1)));
}
std::uint32_t code_right(double amax) {
  const double ratio = f32(amax * std::bit_cast<float>(0x3b124925u));
  const int exponent = std::ilogb(ratio);
  return static_cast<std::uint32_t>(127 + (std::ldexp(1.0, exponent) == ratio ? exponent : exponent + 1));
}
std::uint32_t code_below(double amax) { return static_cast<std::uint32_t>(std::max(0, 127 + std::ilogb(amax / 448))); }
std::uint32_t code_of_ocp(double amax) { return static_cast<std::uint32_t>(127 + std::ilogb(amax) - 8); }

class ScalesMadeWrongly : public testing::TestWithParam<ScaleFault> {};

// Rows of one tensor, each cut into blocks. block_1x128 keeps its scales [block][row], padded to 4 rows; mxfp8 [row][block], padded.
TEST_P(ScalesMadeWrongly, AreNamed) {
  const ScaleFault& fault = GetParam();
  const std::string text = planted::failure(fault.line, [&](const assay_call& call) {
    const assay_tensor &x = tensor(call, "x"), &scales = tensor(call, "rowwise_scale_inv");
    const bool codes = static_cast<Format>(scales.dtype) == Format::e8m0;
    const std::int64_t rows = x.shape[0], columns = x.shape[1], blocks = (columns + fault.block - 1) / fault.block;
    const std::int64_t padded = (rows + 3) / 4 * 4, padded_blocks = (blocks + 3) / 4 * 4;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t b = 0; b < blocks; ++b) {
        std::vector<double> block;
        for (std::int64_t c = b * fault.block; c < std::min(columns, (b + 1) * fault.block); ++c)
          block.push_back(x_at(x, r * columns + c));
        const std::uint32_t made = fault.scale_inv(fault.amax(block.data(), static_cast<std::int64_t>(block.size())));
        if (codes) {
          static_cast<std::uint8_t*>(scales.data)[r * padded_blocks + b] = static_cast<std::uint8_t>(made);
        } else {
          static_cast<std::uint32_t*>(scales.data)[b * padded + r] = made;
        }
      }
    }
  });
  if (fault.hint == nullptr) {
    EXPECT_EQ(text, "");  // without a fault, the loops give the right scales
  } else {
    EXPECT_TRUE(contains(hints_of(text), fault.hint)) << text;
  }
}

constexpr const char* kBlockLine = "quantize recipe=block_1x128 R=61 K=300 data=normal direction=rowwise seed=6";
constexpr const char* kWideLine = "quantize recipe=block_1x128 x_type=f32 R=61 K=300 data=normal direction=rowwise seed=7";
constexpr const char* kPow2Line = "quantize recipe=block_1x128 pow2=1 R=61 K=300 data=clustered direction=rowwise seed=8";
constexpr const char* kShortLine = "quantize recipe=block_1x128 R=401 K=134 data=normal direction=rowwise seed=11";
constexpr const char* kManyLine = "quantize recipe=mxfp8 R=61 K=300 data=full_exponent x_type=f32 direction=rowwise seed=12";
constexpr const char* kMxLine = "quantize recipe=mxfp8 R=61 K=300 data=clustered direction=rowwise seed=9";
const ScaleFault kScaleFaults[] = {
    {"right", kBlockLine, 128, plain, right, nullptr},
    {"right_codes", kMxLine, 32, plain, code_right, nullptr},
    {"by_reciprocal", kWideLine, 128, plain, by_reciprocal, "with the scale as MAX times 1 / amax, not MAX / amax"},
    {"from_amax", kWideLine, 128, plain, from_amax, "with scale_inv as amax / MAX, not 1 / scale"},
    {"not_inverted", kBlockLine, 128, plain, not_inverted, "with the scale stored in place of scale_inv"},
    {"aim_of_240", kBlockLine, 128, plain, of_240, "with scales that aim at 240"},
    {"power_above", kPow2Line, 128, plain, power_above, "with scales rounded up to powers of two"},
    {"positive_alone", kBlockLine, 128, positive, right, "with amax of positive values alone"},
    {"last_passed_over", kShortLine, 128, but_last, right, "with the last element of every block passed over by amax"},
    {"half_a_block", kBlockLine, 128, first_64, right, "with amax of the first 64 elements of every block"},
    {"amax_in_bf16", kWideLine, 128, rounded_amax, right, "bf16"},
    {"codes_rounded_down", kManyLine, 32, plain, code_below, "with scales rounded down, not up"},
    {"codes_of_ocp", kMxLine, 32, plain, code_of_ocp, "with scales by floor(log2(amax)) - emax, as OCP has them"},
    {"codes_of_positive_alone", kMxLine, 32, positive, code_right, "with amax of positive values alone"},
};
INSTANTIATE_TEST_SUITE_P(Diagnosis, ScalesMadeWrongly, testing::ValuesIn(kScaleFaults),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- Delayed scaling ------------------------------------------------------------------------------------------------

struct UpdateFault {
  const char* name;
  const char* line;
  const char* output;
  // The new value from a tensor's history (newest first), its scale and the requested step of the history.
  float (*value)(const std::vector<float>& history, float scale, std::size_t step);
  const char* hint;
};
void PrintTo(const UpdateFault& fault, std::ostream* out) { *out << fault.name; }

class UpdatesMadeWrongly : public testing::TestWithParam<UpdateFault> {};

TEST_P(UpdatesMadeWrongly, AreNamed) {
  const UpdateFault& fault = GetParam();
  const std::string text = planted::failure(fault.line, [&](const assay_call& call) {
    const Request request = Request::of(call);
    const TensorView &history = request.in.at("amax_history"), &scale = request.in.at("scale");
    const auto length = static_cast<std::size_t>(history.shape[0]), count = static_cast<std::size_t>(history.shape[1]);
    auto* to = reinterpret_cast<float*>(bytes(call, fault.output));
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<float> steps;
      for (std::size_t s = 0; s < length; ++s) steps.push_back(static_cast<const float*>(history.data)[s * count + i]);
      const float old = static_cast<const float*>(scale.data)[i];
      const bool of_scales = std::string(fault.output) == "scale";
      for (std::size_t s = 0; s < (of_scales ? 1 : length); ++s) to[s * count + i] = fault.value(steps, old, s);
    }
  });
  EXPECT_TRUE(contains(hints_of(text), fault.hint)) << text;
}

constexpr const char* kUpdateLine = "delayed_update bulk=0 tensors=60 length=6 seed=10";
// clang-format off
const UpdateFault kUpdateFaults[] = {
    {"without_the_newest", kUpdateLine, "scale", [](const std::vector<float>& h, float, std::size_t) { return 448 / *std::max_element(h.begin() + 1, h.end()); }, "with amax of this step left out of the window"},
    {"without_the_oldest", kUpdateLine, "scale", [](const std::vector<float>& h, float, std::size_t) { return 448 / *std::max_element(h.begin(), h.end() - 1); }, "with the oldest amax left out of the window"},
    {"inverted", kUpdateLine, "scale", [](const std::vector<float>& h, float, std::size_t) { return *std::max_element(h.begin(), h.end()) / 448; }, "with amax / MAX for the scale"},
    {"by_reciprocal", kUpdateLine, "scale", [](const std::vector<float>& h, float, std::size_t) { return f32(448.0 * f32(1.0 / *std::max_element(h.begin(), h.end()))); }, "with the scale as MAX times 1 / amax, not MAX / amax"},
    {"left_alone", kUpdateLine, "scale", [](const std::vector<float>&, float scale, std::size_t) { return scale; }, "with scales left as they were"},
    {"not_rolled", kUpdateLine, "amax_history", [](const std::vector<float>& h, float, std::size_t s) { return h[s]; }, "with the history not rolled"},
    {"rolled_the_other_way", kUpdateLine, "amax_history", [](const std::vector<float>& h, float, std::size_t s) { return s == 0 ? 0 : h[s - 1]; }, "with the history rolled the other way"},
    {"not_cleared", kUpdateLine, "amax_history", [](const std::vector<float>& h, float, std::size_t s) { return s == 0 || s + 1 == h.size() ? h[0] : h[s + 1]; }, "with the first row of the history not cleared"},
    {"newest_lost", kUpdateLine, "amax_history", [](const std::vector<float>& h, float, std::size_t s) { return s == 0 || s + 1 == h.size() ? 0 : h[s + 1]; }, "with 0 in place of this step's amax in the history"},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Diagnosis, UpdatesMadeWrongly, testing::ValuesIn(kUpdateFaults),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::conformance
