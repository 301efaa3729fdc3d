// Quantization: amax, scales, codes and where they go.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/tests/explain/planted_faults.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance::planted_faults {
namespace {

// Rowwise blocks of a row, each with its amax, scale and codes: a plain model of block_1x128 and of mxfp8 (32).
struct RowBlock {
  const Case& call;
  std::int64_t group, row, first, last;  // row of the tensor
  std::vector<float> x;
  float amax = 0;
};
struct RowModel {
  std::function<float(const RowBlock&)> multiplier;          // for codes
  std::function<std::uint32_t(const RowBlock&)> scale_inv;   // stored; empty: of the multiplier
  std::function<std::uint8_t(float product)> code = [](float product) { return scalar::encode_e4m3(product); };
  std::function<float(float x, float multiplier)> product = [](float x, float multiplier) { return x * multiplier; };
};

float element(const Tensor& x, std::int64_t at) {
  return x.type == Format::f32 ? x.as<float>()[at] : scalar::decode_bf16(x.as<std::uint16_t>()[at]);
}
float amax_of(const std::vector<float>& x) {
  float amax = 0;
  for (const float each : x) amax = std::fabs(each) > amax ? std::fabs(each) : amax;
  return amax;
}
float cut(float scale) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & 0xff800000u); }
float plain(float amax) {
  if (amax == 0 || !std::isfinite(amax)) return 1;
  const float scale = 448 / amax;
  return std::isinf(scale) ? 0x1.fep127f : scale;  // the largest of bf16
}
std::vector<std::int64_t> rows_of(const Case& call) {
  return call.in.count("splits") != 0 ? splits_of(call) : std::vector<std::int64_t>{call.in.at("x").shape[0]};
}

// Rewrites rowwise_data and rowwise_scale_inv of block_1x128: scales [k-block][row], rows padded to 4.
void write_rows(Case& call, const RowModel& model) {
  const Tensor& x = call.in.at("x");
  const std::int64_t columns = x.shape[1], blocks = (columns + 127) / 128;
  std::int64_t first_row = 0, first_scale = 0;
  const std::vector<std::int64_t> groups = rows_of(call);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::int64_t padded = (groups[g] + 3) / 4 * 4;
    for (std::int64_t r = 0; r < groups[g]; ++r) {
      for (std::int64_t b = 0; b < blocks; ++b) {
        RowBlock block{call, static_cast<std::int64_t>(g), first_row + r, b * 128, std::min((b + 1) * 128, columns), {}};
        for (std::int64_t c = block.first; c < block.last; ++c) block.x.push_back(element(x, block.row * columns + c));
        block.amax = amax_of(block.x);
        const float multiplier = model.multiplier(block);
        call.out.at("rowwise_scale_inv").as<std::uint32_t>()[first_scale + b * padded + r] = model.scale_inv ? model.scale_inv(block) : std::bit_cast<std::uint32_t>(1 / multiplier);
        for (std::int64_t c = block.first; c < block.last; ++c)
          call.out.at("rowwise_data").as<std::uint8_t>()[block.row * columns + c] = model.code(model.product(block.x[static_cast<std::size_t>(c - block.first)], multiplier));
      }
    }
    first_row += groups[g];
    first_scale += padded * blocks;
  }
}

std::function<void(Case&, const Case*)> row_modelled(std::function<void(RowModel&)> change) {
  return [change](Case& call, const Case*) {
    RowModel model;
    model.multiplier = [](const RowBlock& block) { return plain(block.amax); };
    change(model);
    write_rows(call, model);
  };
}
std::function<void(Case&, const Case*)> by_quantizing(std::function<void(Case&)> change) {
  return [change](Case& call, const Case*) {
    Case right = call;
    for (auto& [name, tensor] : call.out) tensor = redone(right, name, change);
  };
}


const char* const kRagged = "quantize recipe=block_1x128 direction=rowwise splits=5,0,20 K=272 seed=5";

}  // namespace

const std::vector<Fault>& quantize_faults() {
  static const std::vector<Fault> faults{
      {"a product with a reciprocal where the rule divides", "sgl-project/sglang#4362", "quantize recipe=block_1x128 direction=rowwise x_type=f32 R=64 K=512 seed=102", row_modelled([](RowModel& m) { m.multiplier = [](const RowBlock& b) { const float inverse = 1 / b.amax; return b.amax == 0 ? 1 : inverse * 448; }; }), {{"MAX times 1 / amax"}}},
      {"the multiplier one ulp too large for the codes", "sgl-project/sglang#33533", "quantize recipe=block_1x128 direction=rowwise x_type=f32 R=64 K=512 data=adversarial_midpoints seed=103",
       row_modelled([](RowModel& m) { m.multiplier = [](const RowBlock& b) { return std::nextafter(plain(b.amax), 1e38f); }; m.scale_inv = [](const RowBlock& b) { return std::bit_cast<std::uint32_t>(1 / plain(b.amax)); }; }),
       {{"codes by scales one unit in the last place larger"}}},
      {"another floor of amax", "vllm-project/vllm#53346", "quantize recipe=block_1x128 direction=rowwise eps=2 splits=5,0,20 K=272 seed=6", by_quantizing([](Case& of) { of.attributes["eps"] = 0.0; }), {{"eps=0 in place of 2"}}},
      {"E4M3 rounded twice, by way of BF16", "flashinfer-ai/flashinfer#5128", "quantize recipe=block_1x128 direction=rowwise x_type=f32 R=64 K=512 data=adversarial_midpoints seed=104", row_modelled([](RowModel& m) { m.product = [](float x, float s) { return scalar::decode_bf16(scalar::encode_bf16(x * s)); }; }), {{"scaled x rounded to bf16"}}},
      {"amax rounded to BF16 first", "pytorch/ao#4725", "quantize recipe=block_1x128 direction=rowwise x_type=f32 splits=5,0,20 K=272 seed=7", row_modelled([](RowModel& m) { m.multiplier = [](const RowBlock& b) { return plain(scalar::decode_bf16(scalar::encode_bf16(b.amax))); }; }), {{"amax rounded to bf16"}}},
      {"NaN kept by amax", "NVIDIA/TransformerEngine#3550", "quantize recipe=block_1x128 direction=rowwise splits=5,0,20 K=272 data=every_special seed=8",
       row_modelled([](RowModel& m) { m.multiplier = [](const RowBlock& b) { return std::any_of(b.x.begin(), b.x.end(), [](float x) { return std::isnan(x); }) ? 1 : plain(b.amax); }; }), {{"NaN kept by amax"}}},
      {"a block of zeros divides 0 by 0", "huggingface/kernels-community#680", "quantize recipe=block_1x128 direction=rowwise R=12 K=256 data=zeros seed=135",
       row_modelled([](RowModel& m) { m.multiplier = [](const RowBlock& b) { return b.amax == 0 ? std::numeric_limits<float>::quiet_NaN() : plain(b.amax); }; m.scale_inv = [](const RowBlock& b) { return b.amax == 0 ? 0x7fc00000u : std::bit_cast<std::uint32_t>(1 / plain(b.amax)); }; }),
       {{"NaN scales where amax is 0"}}},
      {"224 for the largest value", "sgl-project/sglang#30900", kRagged, row_modelled([](RowModel& m) { m.multiplier = [](const RowBlock& b) { return b.amax == 0 ? 1 : 224 / b.amax; }; }), {{"half as large"}, {"aim at 224"}}},
      {"the scale is rounded to a power of two after the codes were made", "sgl-project/sglang#28418", "quantize recipe=block_1x128 direction=rowwise pow2=1 splits=5,0,20 K=272 seed=9", row_modelled([](RowModel& m) { m.scale_inv = [](const RowBlock& b) { return std::bit_cast<std::uint32_t>(1 / cut(plain(b.amax))); }; }), {{"codes by scales that are not cut to powers of two"}}},
      {"packing cuts scales that are no powers of two", "sgl-project/sglang#25733", kRagged, row_modelled([](RowModel& m) { m.scale_inv = [](const RowBlock& b) { return std::bit_cast<std::uint32_t>(cut(1 / plain(b.amax))); }; }), {{"cut to powers of two", "scale_inv"}}},
      {"scales rounded up to powers of two", "table of faults, C3", "quantize recipe=block_1x128 direction=rowwise pow2=1 splits=5,0,20 K=272 seed=10", row_modelled([](RowModel& m) { m.multiplier = [](const RowBlock& b) { const float s = plain(b.amax); return cut(s) == s ? s : cut(s) * 2; }; }), {{"rounded up to powers of two"}}},
      {"eps added to amax", "table of faults, C4", "quantize recipe=block_1x128 direction=rowwise eps=0.25 splits=5,0,20 K=272 seed=11", row_modelled([](RowModel& m) { m.multiplier = [](const RowBlock& b) { return plain(b.amax + 0.25f); }; }), {{"eps added to amax"}}},
      {"scale_inv of the block before", "an index off by one", kRagged,
       row_modelled([](RowModel& m) { m.scale_inv = [](const RowBlock& b) { const Tensor& x = b.call.in.at("x"); std::vector<float> other; const std::int64_t first = std::max<std::int64_t>(b.first - 128, 0); for (std::int64_t c = first; c < std::min(first + 128, x.shape[1]); ++c) other.push_back(element(x, b.row * x.shape[1] + c)); return std::bit_cast<std::uint32_t>(1 / plain(amax_of(other))); }; }),
       {{"scale_inv of the block before"}, {"rowwise_scale_inv of the k-block 1 before"}}},
      {"the largest code stored one lower", "one code of 256", kRagged, [](Case& call, const Case*) { for (std::byte& each : call.out.at("rowwise_data").bytes) { if ((each & std::byte{0x7f}) == std::byte{0x7e}) each = static_cast<std::byte>(static_cast<unsigned>(each) - 1); } }, {{"1 lower", "0x7E"}, {"rounded toward zero", "0x7E"}}},
      {"columnwise blocks straddle groups", "table of faults, A10", "quantize recipe=block_1x128 direction=columnwise splits=40,100,60 K=24 seed=13",
       [](Case& call, const Case*) {
         // Blocks of 128 rows of the tensor, whatever group they belong to.
         const Tensor& x = call.in.at("x");
         const std::vector<std::int64_t> groups = splits_of(call), first = first_rows(call);
         std::int64_t first_scale = 0;
         for (std::size_t g = 0; g < groups.size(); ++g) {
           const std::int64_t blocks = (groups[g] + 127) / 128;
           for (std::int64_t b = 0; b < blocks; ++b) {
             for (std::int64_t c = 0; c < 24; ++c) {
               const std::int64_t start = (first[g] + b * 128) / 128 * 128;
               float amax = 0;
               for (std::int64_t r = start; r < std::min<std::int64_t>(start + 128, 200); ++r) amax = std::max(amax, std::fabs(element(x, r * 24 + c)));
               call.out.at("columnwise_scale_inv").as<float>()[first_scale + b * 24 + c] = 1 / plain(amax);
               for (std::int64_t r = b * 128; r < std::min((b + 1) * 128, groups[g]); ++r)
                 call.out.at("columnwise_data").as<std::uint8_t>()[first[g] * 24 + c * groups[g] + r] = scalar::encode_e4m3(element(x, (first[g] + r) * 24 + c) * plain(amax));
             }
           }
           first_scale += blocks * 24;
         }
       },
       {{"across groups"}}},
      {"rows behind a group mix into its last block", "table of faults, C9", "quantize recipe=block_1x128 direction=columnwise splits=40,100,60 K=24 seed=14",
       [](Case& call, const Case*) {
         const Tensor& x = call.in.at("x");
         const std::vector<std::int64_t> groups = splits_of(call), first = first_rows(call);
         std::int64_t first_scale = 0;
         for (std::size_t g = 0; g < groups.size(); ++g) {
           for (std::int64_t c = 0; c < 24; ++c) {
             float amax = 0;
             for (std::int64_t r = first[g]; r < std::min<std::int64_t>(first[g] + 128, 200); ++r) amax = std::max(amax, std::fabs(element(x, r * 24 + c)));
             call.out.at("columnwise_scale_inv").as<float>()[first_scale + c] = 1 / plain(amax);
             for (std::int64_t r = 0; r < groups[g]; ++r)
               call.out.at("columnwise_data").as<std::uint8_t>()[first[g] * 24 + c * groups[g] + r] = scalar::encode_e4m3(element(x, (first[g] + r) * 24 + c) * plain(amax));
           }
           first_scale += 24;
         }
       },
       {{"rows of the next group"}}},
      {"one amax for all groups", "table of faults, B10", "quantize recipe=tensor_current direction=rowwise splits=40,30,60 K=24 data=normal seed=15",
       [](Case& call, const Case*) {
         const Tensor& x = call.in.at("x");
         float amax = 0;
         for (std::int64_t at = 0; at < x.elements(); ++at) amax = std::max(amax, std::fabs(element(x, at)));
         for (std::int64_t at = 0; at < x.elements(); ++at) call.out.at("rowwise_data").as<std::uint8_t>()[at] = scalar::encode_e4m3(element(x, at) * plain(amax));
         for (auto& [name, tensor] : call.out) { if (name.ends_with("scale_inv")) std::fill_n(tensor.as<float>(), tensor.elements(), 1 / plain(amax)); }
       },
       {{"of the whole tensor"}}},
      {"columnwise storage transposed as a whole", "table of faults, C8", "quantize recipe=block_1x128 direction=columnwise splits=40,100,60 K=24 seed=16",
       [](Case& call, const Case*) {
         const Tensor right = call.out.at("columnwise_data");
         const std::vector<std::int64_t> groups = splits_of(call), first = first_rows(call);
         for (std::size_t g = 0; g < groups.size(); ++g)
           for (std::int64_t r = 0; r < groups[g]; ++r)
             for (std::int64_t c = 0; c < 24; ++c) call.out.at("columnwise_data").as<std::uint8_t>()[c * 200 + first[g] + r] = right.as<std::uint8_t>()[first[g] * 24 + c * groups[g] + r];
       },
       {{"transposed as a whole"}, {"without splits"}}},
      {"the skip flag is dropped on the way", "NVIDIA/TransformerEngine#3051", "quantize recipe=mxfp8 direction=rowwise noop=1 R=33 K=64 seed=21", by_quantizing([](Case& of) { of.in.at("noop").as<float>()[0] = 0; }), {{"noop"}}},
      {"scales rounded down where the rule rounds up", "a rule of another library for MXFP8", "quantize recipe=mxfp8 direction=rowwise R=33 K=64 seed=22",
       [](Case& call, const Case*) {
         const Tensor& x = call.in.at("x");
         const std::int64_t padded = call.out.at("rowwise_scale_inv").shape.back();
         for (std::int64_t r = 0; r < 33; ++r) {
           for (std::int64_t b = 0; b < 2; ++b) {
             float amax = 0;
             for (std::int64_t c = b * 32; c < b * 32 + 32; ++c) amax = std::max(amax, std::fabs(element(x, r * 64 + c)));
             const int exponent = std::ilogb(amax / 448);
             call.out.at("rowwise_scale_inv").as<std::uint8_t>()[r * padded + b] = static_cast<std::uint8_t>(exponent + 127);
             for (std::int64_t c = b * 32; c < b * 32 + 32; ++c) call.out.at("rowwise_data").as<std::uint8_t>()[r * 64 + c] = scalar::encode_e4m3(std::ldexp(element(x, r * 64 + c), -exponent));
           }
         }
       },
       {{"scales rounded down"}}},
      {"another preset", "vllm-project/vllm#43557", "quantize_by_rule preset=torchao.mx_floor x_type=f32 R=36 K=128 seed=17", by_quantizing([](Case& of) { of.attributes.erase("rule"); of.attributes["preset"] = std::string("torchao.mx_rceil"); }), {{"preset", "rceil"}, {"preset"}}},
  };
  return faults;
}

}  // namespace assay::conformance::planted_faults
