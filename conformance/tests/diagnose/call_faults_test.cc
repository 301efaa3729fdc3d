// The hint names an option or input that a backend confuses with another. Each fault is planted through the scalar layer.

#include <algorithm>
#include <bit>
#include <cmath>

#include "conformance/tests/diagnose/planted.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

using planted::hints_of;

struct OptionFault {
  const char* name;
  const char* line;
  const char* output;
  const char* option;
  Attribute value;  // that the backend uses
  const char* hint;
  const char* without = nullptr;  // an input that belongs to the option
};
void PrintTo(const OptionFault& fault, std::ostream* out) { *out << fault.name; }

class OptionsTakenForOthers : public testing::TestWithParam<OptionFault> {};

TEST_P(OptionsTakenForOthers, AreNamed) {
  const OptionFault& fault = GetParam();
  const std::string text = planted::failure(fault.line, [&](const assay_call& call) {
    planted::spoil(call, fault.output, [&](Request& request) { 
      request.attributes[fault.option] = fault.value;
      if (fault.without != nullptr) request.in.erase(fault.without);
    });
  });
  EXPECT_TRUE(contains(hints_of(text), fault.hint)) << text;
}

const std::int64_t kNo = 0, kYes = 1;
const OptionFault kOptionFaults[] = {
    {"pow2_ignored", "quantize recipe=block_1x128 pow2=1 splits=130,60 K=300 seed=1", "rowwise_scale_inv", "pow2", kNo, "with pow2=0 in place of 1"},
    {"pow2_codes", "quantize recipe=block_1x128 pow2=1 splits=130,60 K=300 seed=2", "rowwise_data", "pow2", kNo, "with pow2=0 in place of 1"},
    {"pow2_added", "quantize recipe=block_128x128 splits=130,60 K=300 seed=3", "columnwise_data", "pow2", kYes, "with pow2=1 in place of 0"},
    {"pow2_tensor", "quantize recipe=tensor_current pow2=1 splits=16x20 K=96 data=clustered seed=4", "scale", "pow2", kNo, "with pow2=0 in place of 1"},
    {"eps_ignored", "quantize recipe=block_1x128 eps=0.5 data=near_underflow splits=130,60 K=300 seed=5", "rowwise_scale_inv", "eps", 0.0, "with eps=0 in place of 0.5"},
    {"eps_codes", "quantize recipe=block_1x128 eps=0.5 data=clustered splits=130,60 K=300 seed=6", "columnwise_data", "eps", 0.0, "with eps=0 in place of 0.5"},
    {"two_dimensional_ignored", "quantize recipe=mxfp8 two_dimensional=1 splits=128,64 K=256 seed=7", "rowwise_scale_inv", "two_dimensional", kNo, "with two_dimensional=0 in place of 1"},
    {"two_dimensional_codes", "quantize recipe=nvfp4 two_dimensional=1 splits=128,64 K=256 seed=8", "rowwise_data", "two_dimensional", kNo, "with two_dimensional=0 in place of 1"},
    {"hadamard_ignored", "quantize recipe=nvfp4 hadamard=1 sign_mask=77 splits=128,64 K=256 seed=9", "columnwise_data", "hadamard", kNo, "with hadamard=0 in place of 1"},
    {"sign_mask_ignored", "quantize recipe=nvfp4 hadamard=1 sign_mask=77 splits=128,64 K=256 seed=10", "columnwise_data", "sign_mask", kNo, "with sign_mask=0 in place of 77"},
    {"sign_mask_reversed", "quantize recipe=nvfp4 hadamard=1 sign_mask=77 splits=128,64 K=256 seed=11", "columnwise_data", "sign_mask", std::int64_t{0xb200}, "with sign_mask=45568 in place of 77"},
    {"stochastic_ignored", "quantize recipe=nvfp4 stochastic=1 splits=128,64 K=256 seed=12", "rowwise_data", "stochastic", kNo, "with stochastic=0 in place of 1"},
    {"four_over_six_off", "quantize recipe=nvfp4 four_over_six=mse splits=128,64 K=256 seed=13", "rowwise_data", "four_over_six", std::string("off"), "with four_over_six=off in place of mse"},
    {"four_over_six_mae", "quantize recipe=nvfp4 four_over_six=mse data=clustered splits=128,64 K=512 seed=14", "rowwise_data", "four_over_six", std::string("mae"), "with four_over_six=mae in place of mse"},
    {"e4m3_max_ignored", "quantize recipe=nvfp4 four_over_six=mse e4m3_max=256 splits=128,64 K=256 seed=15", "rowwise_scale_inv", "e4m3_max", std::int64_t{448}, "with e4m3_max=448 in place of 256"},
    {"layout_compact", "quantize recipe=mxfp8 scale_layout=swizzled splits=128,256 K=256 seed=16", "rowwise_scale_inv", "scale_layout", std::string("compact"), "with scale_layout=compact in place of swizzled"},
    {"layout_swizzled", "quantize recipe=nvfp4 splits=128,256 K=256 seed=17", "rowwise_scale_inv", "scale_layout", std::string("swizzled"), "with scale_layout=swizzled in place of compact"},
    {"zero_sign", "quantize recipe=block_1x128 data=specials zero_sign=kept splits=130,60 K=300 seed=18", "rowwise_data", "zero_sign", std::string("positive"), "with zero_sign=positive"},
    {"margin_ignored", "delayed_update margin=3 tensors=40 length=5 seed=19", "scale", "margin", kNo, "with margin=0 in place of 3"},
    {"margin_upward", "delayed_update margin=3 tensors=40 length=5 seed=20", "scale", "margin", std::int64_t{-3}, "with margin=-3 in place of 3"},
    {"algorithm", "delayed_update algorithm=most_recent tensors=40 length=5 seed=21", "scale", "algorithm", std::string("max"), "with algorithm=max in place of most_recent"},
    {"aim_of_the_other_type", "delayed_update otype=e5m2 tensors=40 length=5 seed=22", "scale", "otype", std::string("e4m3"), "with otype=e4m3 in place of e5m2"},
    {"bulk_ignored", "delayed_update bulk=1 tensors=60 length=5 data=sparse seed=23", "amax_history", "bulk", kNo, "with bulk=0 in place of 1"},
    {"stride_ignored", "splits_to_offsets stride=384 splits=5,0,7,300,2,9,33,41", "offsets", "stride", kYes, "with stride=1 in place of 384"},
    {"alpha_ignored", "grouped_gemm kind=bf16 alpha=0.3 d_type=f32 splits=33,0,40 N=48 K=96 seed=24", "d", "alpha", 1.0, "with alpha=1 in place of 0.3"},
    {"beta_ignored", "grouped_gemm kind=bf16 beta=-0.7 splits=33,0,40 N=48 K=96 seed=25", "d", "beta", 0.0, "with beta=0 in place of -0.7"},
    {"beta_is_one", "grouped_gemm kind=fp8_per_tensor beta=-0.7 splits=33,0,40 N=48 K=96 seed=26", "d", "beta", 1.0, "with beta=1 in place of -0.7"},
    {"fast_sums", "grouped_gemm kind=fp8_per_tensor split_accumulator=1 d_type=f32 splits=33,40 N=48 K=400 seed=27", "d", "split_accumulator", kNo, "with split_accumulator=0 in place of 1"},
    {"linear_pow2", "linear_forward recipe=fp8_block splits=33,40 N=48 K=160 seed=28", "y", "pow2", kNo, "with pow2=0 in place of 1"},
    {"linear_eps", "linear_dgrad recipe=fp8_block pow2=0 eps=3 splits=33,40 N=48 K=160 seed=29", "dx", "eps", 0.0, "with eps=0 in place of 3"},
    {"linear_sign_mask", "linear_wgrad recipe=nvfp4 sign_mask=77 splits=32,48 N=48 K=160 seed=30", "dw", "sign_mask", kNo, "with sign_mask=0 in place of 77"},
    {"linear_accumulate", "linear_wgrad recipe=none accumulate=1 splits=32,48 N=48 K=160 seed=31", "dw", "accumulate", kNo, "with accumulate=0 in place of 1", "main_grad"},
    {"dbias_accumulate", "grouped_dbias accumulate=1 splits=33,40 K=160 seed=32", "dbias", "accumulate", kNo, "with accumulate=0 in place of 1", "dbias"},
    {"dequantize_e4m3_max", "dequantize recipe=nvfp4 e4m3_max=256 splits=32,64 K=160 seed=33", "x", "e4m3_max", std::int64_t{448}, "with e4m3_max=448 in place of 256"},
};
INSTANTIATE_TEST_SUITE_P(Diagnosis, OptionsTakenForOthers, testing::ValuesIn(kOptionFaults), [](const auto& info) { return std::string(info.param.name); });

// ---- Inputs ---------------------------------------------------------------------------------------------------------

struct InputFault {
  const char* name;
  const char* line;
  const char* output;
  const char* input;
  void (*change)(Tensor&, std::int64_t groups);
  const char* hint;
};
void PrintTo(const InputFault& fault, std::ostream* out) { *out << fault.name; }

class InputsTakenForOthers : public testing::TestWithParam<InputFault> {};

TEST_P(InputsTakenForOthers, AreNamed) {
  const InputFault& fault = GetParam();
  const std::string text = planted::failure(fault.line, [&](const assay_call& call) {
    Tensor changed;
    planted::spoil(call, fault.output, [&](Request& request) {
      TensorView& view = request.in.at(fault.input);
      const auto* from = static_cast<const std::byte*>(view.data);
      changed = {view.type, view.shape, {from, from + view.bytes}};
      fault.change(changed, request.in.count("splits") == 0 ? 1 : request.in.at("splits").elements());
      view = {changed.type, changed.shape, changed.bytes.data(), static_cast<std::int64_t>(changed.bytes.size())};
    });
  });
  EXPECT_TRUE(contains(hints_of(text), fault.hint)) << text;
}

// Group t has the contents of group from(t, groups).
template <std::int64_t (*from)(std::int64_t, std::int64_t)>
void groups_of(Tensor& tensor, std::int64_t groups) {
  const std::vector<std::byte> before = tensor.bytes;
  const auto size = static_cast<std::ptrdiff_t>(before.size()) / groups;
  for (std::int64_t t = 0; t < groups; ++t) {
    std::copy_n(before.begin() + from(t, groups) * size, size, tensor.bytes.begin() + t * size);
  }
}
std::int64_t previous(std::int64_t t, std::int64_t groups) { return (t + groups - 1) % groups; }
std::int64_t next(std::int64_t t, std::int64_t groups) { return (t + 1) % groups; }
std::int64_t first(std::int64_t, std::int64_t) { return 0; }
std::int64_t no_earlier(std::int64_t t, std::int64_t) { return std::max<std::int64_t>(t - 1, 0); }

template <float (*change)(float)>
void floats(Tensor& tensor, std::int64_t) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.as<float>()[i] = change(tensor.as<float>()[i]);
}
float reciprocal(float x) { return 1 / x; }
float one(float) { return 1; }
float nothing(float) { return 0; }
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? 0 : x; }
float truncated(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000u); }
float nan_to_zero(float x) { return std::isnan(x) ? 0 : x; }

void flushed_halves(Tensor& tensor, std::int64_t) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    std::uint16_t& code = tensor.as<std::uint16_t>()[i];
    if ((code & 0x7f80) == 0) code &= 0x8000;
  }
}
void flushed_f16(Tensor& tensor, std::int64_t) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    std::uint16_t& code = tensor.as<std::uint16_t>()[i];
    if ((code & 0x7c00) == 0) code &= 0x8000;
  }
}
void lowest_code_raised(Tensor& tensor, std::int64_t) { std::replace(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0}, std::byte{1}); }
void next_scale(Tensor& tensor, std::int64_t) { std::rotate(tensor.as<float>(), tensor.as<float>() + 1, tensor.as<float>() + tensor.elements()); }
void swapped(Tensor& tensor, std::int64_t) {
  for (std::byte& each : tensor.bytes) each = each << 4 | each >> 4;
}
void next_row(Tensor& tensor, std::int64_t) {
  std::rotate(tensor.bytes.begin(), tensor.bytes.begin() + static_cast<std::ptrdiff_t>(tensor.bytes.size()) / tensor.shape[0], tensor.bytes.end());
}

const InputFault kInputFaults[] = {
    {"alpha_of_the_group_before", "grouped_gemm kind=mxfp8 alpha=0.3,1.7,-2,0.9 splits=32,64,32,32 N=48 K=96 seed=1", "d", "alpha", groups_of<previous>, "with alpha of the group before"},
    {"alpha_of_the_first_group", "grouped_gemm kind=mxfp8 alpha=0.3,1.7,-2,0.9 splits=32,64,32,32 N=48 K=96 seed=2", "d", "alpha", groups_of<first>, "with alpha of the first group for all"},
    {"beta_of_the_group_after", "grouped_gemm kind=mxfp8 beta=0.3,1.7,-2,0.9 splits=32,64,32,32 N=48 K=96 seed=3", "d", "beta", groups_of<next>, "with beta of the group after"},
    {"bias_of_the_group_before", "grouped_gemm kind=bf16 bias=1 splits=33,40,7,16 N=48 K=96 seed=4", "d", "bias", groups_of<previous>, "with bias of the group before"},
    {"bias_of_the_first_group", "grouped_gemm kind=bf16 bias=1 splits=33,40,7,16 N=48 K=96 seed=5", "d", "bias", groups_of<first>, "with bias of the first group for all"},
    {"weights_of_the_group_before", "grouped_gemm kind=bf16 splits=33,40,7,16 N=48 K=96 seed=6", "d", "w", groups_of<previous>, "with w of the group before"},
    {"weights_of_the_first_group", "grouped_gemm kind=f16 layout=NN splits=33,40,7,16 N=48 K=96 seed=7", "d", "w", groups_of<first>, "with w of the first group for all"},
    {"weights_off_by_one_but_for_the_first", "grouped_gemm kind=f16 splits=33,40,7,16 N=48 K=96 seed=8", "d", "w", groups_of<no_earlier>, "with w of the group before, but for the first group"},
    {"c_ignored", "grouped_gemm kind=bf16 beta=0.5 splits=33,40,7,16 N=48 K=96 seed=9", "d", "c", [](Tensor& c, std::int64_t) { std::fill(c.bytes.begin(), c.bytes.end(), std::byte{0}); }, "with beta=0 in place of 0.5"},
    {"c_a_row_on", "grouped_gemm kind=bf16 beta=0.5 splits=33,40,7,16 N=48 K=96 seed=10", "d", "c", next_row, "with c read one row further on"},
    {"x_a_row_on", "grouped_gemm kind=bf16 splits=33,40,7,16 N=48 K=96 seed=11", "d", "x", next_row, "with x read one row further on"},
    {"scales_inverted", "grouped_gemm kind=fp8_per_tensor splits=33,40,7,16 N=48 K=96 seed=12", "d", "x_rowwise_scale_inv", floats<reciprocal>, "with x_rowwise_scale_inv inverted"},
    {"scales_left_out", "grouped_gemm kind=fp8_block splits=33,40,7,16 N=48 K=196 seed=13", "d", "w_rowwise_scale_inv", floats<one>, "with w_rowwise_scale_inv taken as ones"},
    {"scale_of_the_first_group", "quantize recipe=tensor_delayed splits=33,40,7,16 K=96 seed=14", "rowwise_data", "scale", groups_of<first>, "with scale of the first group for all"},
    {"scale_of_the_group_after", "quantize recipe=tensor_delayed splits=33,40,7,16 K=96 seed=15", "columnwise_data", "scale", groups_of<next>, "with scale of the group after"},
    {"scale_inverted", "quantize recipe=tensor_delayed splits=33,40,7,16 K=96 seed=16", "rowwise_data", "scale", floats<reciprocal>, "with x multiplied by scale_inv in place of the scale"},
    {"amax_of_the_group_before", "quantize recipe=nvfp4 amax=given splits=32,48,16,64 K=96 data=normal seed=17", "rowwise_scale_inv", "amax", groups_of<previous>, "with amax of the group before"},
    {"subnormals_flushed", "quantize recipe=mxfp8 x_type=f32 data=near_underflow splits=32,48 K=96 seed=18", "rowwise_data", "x", floats<flushed>, "with x having +0 for its subnormals"},
    {"subnormals_flushed_bf16", "quantize recipe=block_1x128 data=near_underflow splits=32,48 K=96 seed=19", "rowwise_data", "x", flushed_halves, "with x having 0 for its subnormals"},
    {"operand_flushed", "grouped_gemm kind=f16 d_type=f32 data=full_exponent splits=17,9 N=24 K=40 seed=47", "d", "x", flushed_f16, "with x having 0 for its subnormals (FTZ)"},
    {"operand_of_subnormals_flushed", "grouped_gemm kind=f16 d_type=f32 beta=1 data=subnormals splits=17,9 N=24 K=40 seed=48", "d", "w", flushed_f16, "with w having 0 for its subnormals (FTZ)"},
    {"lowest_scale_doubled", "dequantize recipe=mxfp8 d_type=f32 R=96 K=96 scales=specials seed=49", "x", "rowwise_scale_inv", lowest_code_raised, "with rowwise_scale_inv having 2^-126 for 2^-127, the code 0"},
    {"x_cut_to_bf16", "quantize recipe=block_1x128 x_type=f32 splits=32,48 K=96 seed=20", "rowwise_data", "x", floats<truncated>, "with x cut to bf16 first"},
    {"nan_as_zero", "quantize recipe=block_1x128 x_type=f32 data=nans splits=64,48 K=256 seed=21", "rowwise_data", "x", floats<nan_to_zero>, "with NaN stored as 0"},
    {"dequantize_scales_of_the_next_block", "dequantize recipe=block_1x128 splits=32,48 K=400 seed=22", "x", "rowwise_scale_inv", next_scale, "with rowwise_scale_inv read one element further on"},
    {"dequantize_scales_inverted", "dequantize recipe=tensor_current splits=32,48,9 K=96 seed=23", "x", "rowwise_scale_inv", floats<reciprocal>, "with rowwise_scale_inv inverted"},
    {"dequantize_nibbles", "dequantize recipe=nvfp4 splits=32,48 K=96 seed=24", "x", "rowwise_data", swapped, "with rowwise_data with its nibbles swapped"},
    {"dequantize_amax", "dequantize recipe=nvfp4 splits=32,48,64 K=96 seed=25", "x", "amax", groups_of<first>, "with amax of the first group for all"},
    {"reduced_ignored", "delayed_update reduced=1 bulk=1 tensors=40 length=5 seed=26", "scale", "reduced", floats<nothing>, "reduced"},
    {"history_nan", "delayed_update tensors=60 length=5 data=every_special seed=27", "scale", "amax_history", floats<nan_to_zero>, "with amax_history having 0 for NaN"},
    {"dy_a_row_on", "grouped_dbias splits=33,40,7,16 K=96 seed=28", "dbias", "dy", next_row, "with dy read one row further on"},
    {"linear_bias", "linear_forward recipe=tensor_current bias=1 splits=33,40,7,16 N=48 K=96 seed=29", "y", "bias", groups_of<previous>, "with bias of the group before"},
    {"linear_scale", "linear_dgrad recipe=tensor_delayed splits=33,40,7,16 N=48 K=96 seed=30", "dx", "dy_scale", groups_of<first>, "with dy_scale of the first group for all"},
    {"linear_weights", "linear_dgrad recipe=fp8_block splits=33,40,7,16 N=48 K=160 seed=31", "dx", "w", groups_of<next>, "with w of the group after"},
};
INSTANTIATE_TEST_SUITE_P(Diagnosis, InputsTakenForOthers, testing::ValuesIn(kInputFaults), [](const auto& info) { return std::string(info.param.name); });

// An option must not be named where a simpler explanation gives the same elements, as in all of these.
TEST(InputsTakenForOthers, SubnormalsFlushedAreNoFactorOfZero) {
  const std::string text = planted::failure("grouped_gemm kind=f16 d_type=f32 beta=1 data=subnormals splits=17,9 N=24 K=40 seed=50", [&](const assay_call& call) {
    Tensor changed;
    planted::spoil(call, "d", [&](Request& request) {
      TensorView& view = request.in.at("x");
      changed = {view.type, view.shape, std::vector<std::byte>(static_cast<const std::byte*>(view.data), static_cast<const std::byte*>(view.data) + view.bytes)};
      flushed_f16(changed, 0);
      view = {changed.type, changed.shape, changed.bytes.data(), static_cast<std::int64_t>(changed.bytes.size())};
    });
  });
  EXPECT_TRUE(contains(hints_of(text), "with x having 0 for its subnormals (FTZ)")) << text;
  EXPECT_FALSE(contains(hints_of(text), "alpha")) << text;
}

// One tensor, [row][block of 32] with blocks padded to 4: an element whose scale has code 0 is a zero with the sign of its code.
TEST(InputsTakenForOthers, ScalesOfCodeZeroTakenForZeroAreNamed) {
  const std::string text = planted::failure("dequantize recipe=mxfp8 d_type=f32 R=96 K=96 scales=specials seed=51", [&](const assay_call& call) {
    const assay_tensor& x = tensor(call, "x");
    const auto* scales = reinterpret_cast<const std::uint8_t*>(bytes(call, "rowwise_scale_inv"));
    auto* values = static_cast<std::uint32_t*>(x.data);
    for (std::int64_t r = 0; r < 96; ++r) {
      for (std::int64_t c = 0; c < 96; ++c) {
        std::uint32_t& value = values[r * 96 + c];
        if (scales[r * 4 + c / 32] == 0 && (value & 0x7fffffff) <= 0x7f800000) value &= 0x80000000;
      }
    }
  });
  EXPECT_TRUE(contains(hints_of(text), "with rowwise_scale_inv having 0 for 2^-127, the code 0")) << text;
}

}  // namespace
}  // namespace assay::conformance
