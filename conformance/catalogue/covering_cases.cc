// The part of the catalogue that covering makes: shapes, data and options against one another, for each op and recipe.

#include <algorithm>
#include <iterator>
#include <utility>

#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/covering.h"
#include "conformance/catalogue/size_lines.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

const Axis kInput{"x_type=bf16", "x_type=f16", "x_type=f32"};
const Axis kFp8{"otype=e4m3", "otype=e5m2"};
// Rows that belong to no group; a whole tile of them.
const Axis kExtra{"", "extra_rows=140"};
const Axis kDirection{"", "direction=rowwise", "direction=columnwise"};
const Axis kRecipes{"recipe=tensor_current", "recipe=tensor_delayed", "recipe=block_1x128", "recipe=block_128x128", "recipe=mxfp8"};

// Rows and columns: what fits a block, what does not, and groups that are empty, odd or alone, the last and neighbours.
// Every list begins with the values that standard takes; longer matrices stand in size_cases.cc.
const Axis kAnyShape{"R=33 K=272", "R=130 K=127", "splits=1,127,128,129,0 K=160", "splits=5,0,0,7 K=129",
                     "splits=one(8,130,3) K=240",
                     "R=130 K=144",  "R=1 K=16",  "R=128 K=256",  "R=65 K=96", "splits=128,0,256 K=272", "splits=0,128,0,256 K=128",
                     "splits=zipf(16,600,1) K=72", "splits=5,0,0,7 extra_rows=140 K=130",
                     "R=1 K=1",  "R=160 K=416",  "R=303 K=300",  "R=257 K=40",  "R=0 K=64",
                     "splits=64,96,128 K=64", "splits=256x1 K=48", "splits=33,65,97,100 K=17"};
// NVFP4 packs two codes in a byte.
const Axis kEvenShape{"R=32 K=272", "R=144 K=80", "splits=16,0,48,16 K=144", "splits=16,32 K=80", "splits=16,2,0 K=64",
                      "splits=one(8,128,3) K=64",
                      "R=16 K=16", "R=128 K=128", "splits=128,0,64 K=96", "splits=0,2,30,34 K=48",
                      "R=2 K=2",  "R=48 K=400",  "R=300 K=34",  "splits=64x16 K=32"};

const Axis kValueData{"data=uniform", "data=full_exponent", "data=near_underflow", "data=every_special", "data=ties", "data=clustered",
                      "data=block_scales", "data=adversarial_midpoints", "data=adversarial_amax", "data=sparse", "data=subnormals",
                      "data=adversarial_infinities",
                      "data=normal", "data=nans", "data=one_hot", "data=every_code", "data=integers", "data=zeros",
                      "data=adversarial_dbias"};
constexpr std::size_t kStandardValueData = 12;
const Axis kOperandData{"data=uniform", "data=full_exponent", "data=near_underflow", "data=every_special", "data=one_hot",
                        "data=clustered", "data=every_code", "data=block_scales", "data=adversarial_alignment",
                        "data=adversarial_cancelling", "data=subnormals",
                        "data=normal", "data=sparse", "data=adversarial_output_ties", "data=adversarial_promotion",
                        "data=integers scales=pow2", "data=zeros"};
constexpr std::size_t kStandardOperandData = 11;

const Axis kGemmShape{"splits=17,0,9,7 N=24 K=72", "splits=one(8,20,3) N=40 K=48", "splits=17,5,0 N=24 K=136", "splits=3,13,18 N=17 K=100",
                      "splits=3x0 N=16 K=24",
                      "splits=1,31,32,33 N=24 K=130", "splits=64,0,5 N=16 K=264", "splits=20 N=136 K=144",
                      "splits=zipf(16,96,1) N=32 K=48", "splits=8x4 N=8 K=16", "splits=0,0,130 N=24 K=33"};
const Axis kGemmShape16{"splits=16,0,17,15 N=32 K=48", "splits=one(8,32,3) N=32 K=64", "splits=33,16,0 N=16 K=144", "splits=16,5,16 N=32 K=32",
                        "splits=17,0,33,7 N=32 K=144", "splits=64,0,16 N=16 K=272", "splits=32 N=144 K=112", "splits=8x16 N=16 K=32"};
const Axis kFactors{"", "alpha=0.5", "beta=1", "alpha=-1.25 beta=0.75"};
const Axis kRareFactors{"beta=1 addends=every_special", "alpha=-1 beta=1 addends=negative_zeros", "alpha=inf", "alpha=nan beta=0.5",
                        "alpha=1e-40 beta=-1",
                        "alpha=1e-30"};
const Axis kOutput{"d_type=f32", "d_type=bf16", "d_type=f16"};
const Axis kLayout{"layout=TN", "layout=NN", "layout=NT"};
const Axis kBias{"", "bias=1", "bias=1 addends=every_special"};

// The first `count` values where the round is standard's, else all.
Axis some(const Axis& axis, std::size_t count, int round) {
  return Axis(axis.begin(), axis.begin() + static_cast<std::ptrdiff_t>(round == 0 ? std::min(count, axis.size()) : axis.size()));
}
Axis rest(const Axis& axis, std::size_t from) { return Axis(axis.begin() + static_cast<std::ptrdiff_t>(from), axis.end()); }

void quantize_lines(int round, int seed, const CoveringLimits& limits, std::vector<CaseLine>& lines) {
  const Axis shapes = some(kAnyShape, 5, round), even_shapes = some(kEvenShape, 5, round);
  Axis data = some(kValueData, kStandardValueData, round);
  std::erase(data, "data=nans");  // small matrices may hold none
  const Axis noop{"", "noop=0"};
  for (const char* recipe : {"block_1x128", "block_128x128", "tensor_current"}) {
    std::vector<Axis> axes{shapes, data, kInput, kFp8, {"", "pow2=1"}, {"", "eps=0.01"}, kDirection, {"", "dbias=1"}, noop, kExtra};
    if (recipe == std::string("tensor_current")) axes.push_back({"", "outputs=all"});
    append(lines, covering_lines(std::string("quantize recipe=") + recipe, axes, seed + 1000, limits));
  }
  append(lines, covering_lines("quantize recipe=tensor_delayed",
                               {shapes, {"data=uniform", "data=every_special", "data=full_exponent", "data=near_underflow", "data=integers",
                                         "data=subnormals"},
                                kInput, kFp8, {"scales=plain", "scales=pow2", "scales=edge", "scales=specials", "scales=two_roundings",
                                               "scales=ones"},
                                kDirection, {"", "dbias=1"}, {"", "outputs=all"}, noop, kExtra},
                               seed + 2000, limits));
  append(lines, covering_lines("quantize recipe=mxfp8",
                               {shapes, data, kInput, kFp8, {"", "scale_layout=swizzled"}, {"", "two_dimensional=1"},
                                kDirection, {"", "dbias=1"}, noop, kExtra},
                               seed + 3000, limits));
  append(lines, covering_lines("quantize recipe=nvfp4",
                               {even_shapes, data, kInput, {"", "two_dimensional=1"}, {"", "hadamard=1", "hadamard=1 sign_mask=45576"},
                                {"", "stochastic=1"}, {"", "four_over_six=mae", "four_over_six=mse"}, {"", "e4m3_max=256"},
                                {"", "amax=given", "amax=misfit", "amax=misfit outputs=all", "amax=given outputs=all"},
                                    {"", "scale_layout=swizzled"}, kDirection,
                                {"", "dbias=1"}, noop, kExtra},
                               seed + 4000, limits));
  if (round == 0) {  // random bytes that are drawn, beside every option that decides what is read or written
    append(lines, covering_lines("quantize recipe=nvfp4 stochastic=1",
                                 {{"draws=te_vector_blockwise", "draws=te_tuned_1d", "draws=te_2d two_dimensional=1", "draws=te_vector_blockwise two_dimensional=1"},
                                  {"", "rng_state=carries", "rng_state=last"}, {"R=160 K=144", "splits=32,0,130,2 K=80", "splits=16,34,0 K=144", "splits=16,34 K=80", "splits=4x0 K=48"},
                                  {"data=uniform", "data=every_special", "data=ties"}, kInput, {"", "amax=given", "amax=misfit", "amax=apart", "amax=given outputs=all",
                                    "outputs=codes", "outputs=scale_inv", "outputs=amax", "outputs=dbias dbias=1"},
                                  {"", "scale_layout=swizzled"}, kDirection, {"", "dbias=1"}, {"", "noop=0", "noop=1"}, kExtra, {"", "zero_sign=positive", "zero_sign=free"}},
                                 seed + 4400, limits));
  }
  append(lines, covering_lines("quantize recipe=nvfp4",
                               {{"R=64 K=64", "splits=32,0,48 K=64"}, {"", "extra_rows=16"}, {"data=adversarial_four_over_six"}, kInput,
                                {"", "two_dimensional=1"}, {"", "amax=given", "amax=misfit outputs=all"},
                                {"four_over_six=mae", "four_over_six=mse"}, {"", "e4m3_max=256"}, kDirection, {"", "dbias=1"},
                                {"", "scale_layout=swizzled"}, noop},
                               seed + 4500, limits));
  if (round > 0) return;
  // Data that standard does not combine with every shape; the sign of zero, where there are zeros of both; groups that are all empty.
  const std::vector<Axis> fp8{{"recipe=tensor_current", "recipe=block_1x128", "recipe=block_128x128"}, kInput, kFp8, {"", "pow2=1"}, {"", "eps=0.01"},
                              kDirection, {"", "dbias=1"}, noop, {"", "outputs=all"}};
  const std::vector<Axis> delayed{{"recipe=tensor_delayed"}, kInput, kFp8, {"scales=plain", "scales=pow2", "scales=edge", "scales=specials",
      "scales=two_roundings", "scales=ones"},
                                  kDirection, {"", "dbias=1"}, noop, {"", "outputs=all"}};
  const std::vector<Axis> mx{{"recipe=mxfp8"}, kInput, kFp8, {"", "scale_layout=swizzled"}, {"", "two_dimensional=1"}, kDirection, {"", "dbias=1"},
                             noop};
  const std::vector<Axis> nv{{"recipe=nvfp4"}, kInput, {"", "two_dimensional=1"}, {"", "hadamard=1", "hadamard=1 sign_mask=45576"},
                             {"", "stochastic=1"},
                             {"", "four_over_six=mae", "four_over_six=mse"}, {"", "e4m3_max=256"},
                                 {"", "amax=given", "amax=misfit", "amax=misfit outputs=all"},
                             {"", "scale_layout=swizzled"}, kDirection, {"", "dbias=1"}, noop};
  const Axis zeros{"data=every_special", "data=every_code"};
  for (const std::vector<Axis>& axes : {fp8, delayed, mx, nv}) {
    const auto with = [&](std::vector<Axis> more) {
      more.insert(more.end(), axes.begin(), axes.end());
      return more;
    };
    const Axis shape{"R=32 K=144", "splits=16,0,34,2 K=80", "splits=16,34,0 K=80", "splits=16,34 K=80"}, extra{"", "extra_rows=2"};
    if (axes != delayed) append(lines, covering_lines("quantize", with({rest(kValueData, kStandardValueData), shape, extra}), seed + 4600, limits));
    append(lines, covering_lines("quantize", with({zeros, {"zero_sign=positive", "zero_sign=free"}, shape, extra}), seed + 4700, limits));
    append(lines, covering_lines("quantize splits=4x0 K=48", with({extra}), seed + 4800, limits));
    // Nothing is written, regardless of all other options, inputs and outputs.
    append(lines, covering_lines("quantize noop=1 splits=16,32 K=48", axes, seed + 4850, limits));
  }
  append(lines, covering_lines("quantize data=adversarial_eps eps=0.0078125",
                               {{"recipe=tensor_current", "recipe=block_1x128", "recipe=block_128x128"},
                                {"R=130 K=272", "splits=5,0,130 K=272", "splits=5,130 K=272", "splits=130,0 K=272"}, kInput, kFp8,
                                {"", "pow2=1"}, kDirection, {"", "dbias=1"}, noop, {"", "extra_rows=3"}, {"", "outputs=all"}}, seed + 4900, limits));
  // x computed from gate and up, beside every option that decides what is read or written.
  append(lines, covering_lines("quantize activation=swiglu",
                               {{"recipe=block_1x128", "recipe=block_128x128"}, {"R=130 K=144", "splits=1,127,128,129,0 K=160", "splits=5,0,0,7 K=129", "splits=130,33 K=72", "splits=4x0 K=48"},
                                {"data=uniform", "data=every_special", "data=adversarial_gates"}, {"x_type=bf16", "x_type=f16"}, kFp8, {"", "pow2=1"}, {"", "eps=0.01"}, kDirection,
                                {"", "outputs=codes", "outputs=scale_inv"}, {"", "noop=0", "noop=1"}, kExtra, {"", "zero_sign=positive", "zero_sign=free"}}, seed + 4950, limits));
}

void layout_lines(int seed, const CoveringLimits& limits, std::vector<CaseLine>& lines) {
  const Axis data{"data=uniform", "data=every_code", "data=every_special", "data=full_exponent", "data=near_underflow"};
  append(lines, covering_lines("dequantize",
                               {kRecipes, {"R=33 K=272", "R=130 K=127", "splits=1,127,129 K=72", "splits=128,0,5 K=136", "splits=129,5,0 K=40"},
                                {"", "extra_rows=10"},
                                kFp8, kOutput, {"", "direction=columnwise"},
                                {"scales=plain", "scales=pow2", "scales=edge", "scales=specials", "scales=two_roundings", "scales=ones"},
                                data, {"", "scale_layout=swizzled"}},
                               seed + 5000, limits));
  append(lines, covering_lines("dequantize recipe=nvfp4",
                               {{"R=32 K=272", "splits=16,0,48 K=80", "splits=128,2 K=34", "splits=16,2,0 K=48"}, {"", "extra_rows=10"}, kOutput,
                                {"", "direction=columnwise"},
                                {"scales=plain", "scales=edge", "scales=specials", "scales=pow2", "scales=ones"}, data,
                                    {"", "scale_layout=swizzled"}, {"", "e4m3_max=256"}},
                               seed + 5500, limits));
  Axis recipes = kRecipes;
  recipes.push_back("recipe=nvfp4");
  append(lines, covering_lines("dequantize splits=3x0 K=64", {recipes, {"", "extra_rows=10"}, kOutput, {"", "direction=columnwise"},
                                                              {"", "scale_layout=swizzled"}, {"", "otype=e5m2"},
                                                              {"", "e4m3_max=256"}}, seed + 5700, limits));
  for (const char* op : {"swizzle", "unswizzle"}) {
    append(lines, covering_lines(op, {{"recipe=mxfp8", "recipe=nvfp4"}, {"", "direction=columnwise"},
                                      {"R=1 K=1", "R=128 K=128", "R=130 K=272", "R=300 K=40", "splits=33,0,128 K=272", "splits=256x1 K=64",
                                       "splits=5,33,0 K=48", "splits=3x0 K=64"}},
                                 seed + 6000, limits));
  }
  append(lines, covering_lines("delayed_update",
                               {{"data=uniform", "data=every_special", "data=sparse", "data=full_exponent", "data=near_underflow",
                                 "data=adversarial_amax"},
                                {"", "algorithm=most_recent"}, {"", "bulk=0"}, {"", "otype=e5m2"},
                                    {"", "margin=3", "margin=-2", "margin=-113", "margin=-119", "margin=-126", "margin=126"},
                                {"", "reduced=1"}, {"scales=plain", "scales=edge", "scales=specials"},
                                    {"tensors=17 length=16", "tensors=33 length=3", "tensors=65 length=4"}},
                               seed + 6500, limits));
  append(lines, covering_lines("grouped_dbias",
                               {{"data=uniform", "data=every_special", "data=adversarial_infinities", "data=subnormals", "data=adversarial_dbias",
                                 "data=full_exponent",
                                 "data=normal", "data=sparse", "data=clustered", "data=integers"},
                                kInput, {"", "accumulate=1"}, {"splits=17,0,65,129 K=72", "splits=33,70,0 K=40", "splits=33,7 K=40"},
                                    {"", "extra_rows=60"}},
                               seed + 6700, limits));
  append(lines, covering_lines("grouped_dbias splits=3x0 K=40", {kInput, {"", "accumulate=1"}, {"", "extra_rows=60"}}, seed + 6900, limits));
}

void token_lines(int seed, const CoveringLimits& limits, std::vector<CaseLine>& lines) {
  const Axis routes{"R=17 topk=2 experts=5 K=40", "R=33 topk=3 experts=40 dropped=30 K=129", "R=20 topk=4 experts=3 dropped=5 alignment=16 K=24"};
  append(lines, covering_lines("permute", {routes, {"x_type=bf16", "x_type=f16", "x_type=f32", "x_type=e4m3", "x_type=e5m2"},
                                           {"", "token_scales=f32", "token_scales=e8m0"}, {"", "outputs=permuted", "outputs=permuted_scale_inv"},
                                           {"data=uniform", "data=full_exponent", "data=every_special"}}, seed + 9500, limits));
  append(lines, covering_lines("unpermute", {routes, kInput, {"", "weights=1"}, {"sums=fma_f32", "sums=f32", "sums=in_type", "sums=fma_in_type"},
                                             {"data=uniform", "data=full_exponent", "data=every_special", "data=near_underflow", "data=integers"}},
                               seed + 9600, limits));
  for (const char* op : {"permute", "unpermute"}) {  // thresholds in every length
    Lines sizes(seed + 9700);
    const std::vector<Axis> options{{"topk=1", "topk=2", "topk=3"}, {"", "dropped=1"}};
    for (std::int64_t power = 256; power <= 4096; power *= 2) {
      for (const std::int64_t length : {power, power + 1}) {
        sizes.add(op + words("R", length, "K", length % 7 + 1), options);
        sizes.add(op + words("K", length, "R", length % 5 + 1), options);
      }
    }
    small_sizes(op, "R", options, sizes);
    sizes.add(std::string(op) + " R=1040 K=1040", {{"topk=1"}});
    append(lines, sizes.take());
  }
}

void gemm_lines(int round, int seed, const CoveringLimits& limits, std::vector<CaseLine>& lines) {
  const Axis data = some(kOperandData, kStandardOperandData, round), shapes = some(kGemmShape, 4, round), shapes16 = some(kGemmShape16, 4, round);
  const Axis f32_scales{"scales=plain", "scales=pow2", "scales=edge", "scales=specials", "scales=opposed", "scales=two_roundings"};
  const Axis block_scales{"scales=plain", "scales=pow2", "scales=edge", "scales=specials", "scales=opposed"};
  const auto gemm = [&](const std::string& prefix, const Axis& shape, std::vector<Axis> more, int first_seed) {
    std::vector<Axis> axes{shape, data, kLayout, kOutput, kFactors, kBias, kExtra};
    axes.insert(axes.end(), more.begin(), more.end());
    append(lines, covering_lines("grouped_gemm " + prefix, axes, seed + first_seed, limits));
  };
  const Axis x{"", "x_type=e5m2"}, w{"", "w_type=e5m2"}, dy{"", "dy_type=e5m2"}, compact{"", "scale_layout=compact"};
  gemm("kind=bf16", shapes, {}, 7000);
  gemm("kind=f16", shapes, {}, 7200);
  gemm("kind=fp8_per_tensor", shapes, {x, w, dy, {"", "split_accumulator=1"}, f32_scales}, 7400);
  if (round == 0) {
    append(lines, covering_lines("grouped_gemm kind=fp8_per_tensor scaling=per_row_column",
                                 {shapes, {"data=uniform", "data=every_special", "data=clustered"}, kLayout, kOutput,
                                  kFactors, kBias, kExtra, x, w, dy, {"", "split_accumulator=1"},
                                  {"scales=plain", "scales=specials", "scales=edge", "scales=two_roundings"}}, seed + 7500, limits));
  }
  if (round == 0) {  // where the rows of groups lie, beside every option that decides which bytes are read or written
    const Axis few{"splits=17,0,9,7 N=32 K=48", "splits=17,5,0 N=16 K=144", "splits=3,13,18 N=32 K=32"};
    const Axis places{"grouped_layout=m_indices alignment=16", "grouped_layout=psum alignment=8", "grouped_layout=masked max_m=20"};
    append(lines, covering_lines("grouped_gemm", {places, {"kind=bf16", "kind=f16", "kind=fp8_per_tensor", "kind=fp8_per_tensor scaling=per_row_column",
                                                           "kind=fp8_block", "kind=mxfp8", "kind=nvfp4", "kind=fp8_per_tensor arch=sm100", "kind=bf16 arch=sm100"},
                                                  few, kLayout, kOutput, kFactors, {"", "bias=1"}, {"", "extra_rows=20"}, x, w, dy, compact,
                                                  {"", "weight_block=1x128"}, {"", "split_accumulator=1"},
                                                  {"", "alpha=1,0.5,-2 beta=0,1,0.25", "alpha=2 beta=0,1,0.25"}}, seed + 7550, limits));
  }
  gemm("kind=fp8_block", shapes, {x, dy, {"", "weight_block=1x128"}, f32_scales}, 7600);
  gemm("kind=mxfp8", shapes16, {x, w, dy, compact, block_scales}, 7800);
  gemm("kind=nvfp4", shapes16, {compact, block_scales}, 8000);
  if (round == 0) {  // D in FP8, beside every option that decides what is read, written or multiplied
    append(lines, covering_lines("grouped_gemm",
                                 {{"splits=17,0,9,7 N=32 K=48", "splits=32,5 N=16 K=144"}, {"d_type=e4m3", "d_type=e5m2"},
                                  {"kind=bf16", "kind=f16", "kind=fp8_per_tensor", "kind=fp8_per_tensor scaling=per_row_column", "kind=fp8_block", "kind=mxfp8", "kind=nvfp4"},
                                  kLayout, {"", "alpha=0.5"}, {"", "d_scales=edge", "d_scales=specials", "d_scales=negative"}, {"", "extra_rows=20"}, x, w, dy, compact,
                                  {"", "weight_block=1x128"}, {"", "split_accumulator=1"},
                                  {"", "grouped_layout=m_indices alignment=16", "grouped_layout=psum alignment=8", "grouped_layout=masked max_m=64"}}, seed + 8250, limits));
    append(lines, covering_lines("grouped_gemm kind=mxfp8 w_type=e2m1 splits=17,0,9 N=32 K=48", {{"d_type=e4m3", "d_type=e5m2"}, {"", "d_scales=edge"},
                                 {"d_scales=specials", "d_scales=negative"}}, seed + 8290, limits));
  }
  if (round == 0) {  // weights of E2M1 beside FP8
    append(lines, covering_lines("grouped_gemm kind=mxfp8 w_type=e2m1",
                                 {shapes16, {"data=uniform", "data=every_special", "data=clustered", "data=every_code"}, kOutput, kFactors, {"", "bias=1"}, kExtra, x, compact,
                                  {"", "scales=edge", "scales=specials"}, {"", "arch=sm120"}, {"", "split_accumulator=1"}},
                                 seed + 8050, limits));
    append(lines, covering_lines("grouped_gemm kind=mxfp8 w_type=e2m1",
                                 {{"splits=16,0,17,15 N=32 K=48", "splits=32 N=144 K=112"}, {"grouped_layout=m_indices alignment=16", "grouped_layout=psum alignment=8",
                                   "grouped_layout=masked max_m=64"}, x, compact}, seed + 8150, limits));
  }
  if (round > 0) return;
  const Axis shape{"splits=17,0,16 N=32 K=48", "splits=16,17,0 N=32 K=80", "splits=16,32 N=16 K=48"}, extra{"", "extra_rows=16"};
  const Axis kinds{"kind=bf16", "kind=f16", "kind=fp8_per_tensor", "kind=fp8_block", "kind=mxfp8", "kind=nvfp4"};
  const std::vector<Axis> types{x, w, dy, compact, {"", "weight_block=1x128"}, {"", "split_accumulator=1"}};
  const auto with = [&](std::vector<Axis> more) {
    more.insert(more.end(), types.begin(), types.end());
    return more;
  };
  append(lines, covering_lines("grouped_gemm", with({rest(kOperandData, kStandardOperandData), kinds, shape, extra, kLayout, kOutput, kFactors, kBias,
                                                     {"", "scales=edge", "scales=specials", "scales=opposed", "scales=two_roundings",
                                                      "scales=pow2"}}), seed + 8200, limits));
  append(lines, covering_lines("grouped_gemm", with({kRareFactors, kinds, shape, extra, kLayout, kOutput,
                                                     {"data=uniform", "data=one_hot", "data=near_underflow", "data=clustered"},
                                                     {"", "bias=1"}, {"", "scales=edge", "scales=specials", "scales=ones", "scales=pow2",
                                                                      "scales=opposed", "scales=two_roundings"}}), seed + 8300, limits));
  append(lines, covering_lines("grouped_gemm splits=4x0 N=16 K=32", with({kinds, extra, kLayout, kOutput,
      {"", "alpha=2", "beta=1", "beta=0.5", "beta=1 addends=negative_zeros", "beta=1 addends=every_special"}, {"", "bias=1"}}), seed + 8400, limits));
  // Other architectures: data with cut bits show their arithmetic; the options are combined with each of them.
  append(lines, covering_lines("grouped_gemm", {{"kind=bf16 arch=sm80", "kind=f16 arch=sm80", "kind=bf16 arch=sm89", "kind=f16 arch=sm89",
                                                 "kind=fp8_per_tensor arch=sm89",
                                                 "kind=bf16 arch=sm100", "kind=f16 arch=sm100", "kind=fp8_per_tensor arch=sm100", "kind=bf16 arch=sm120",
                                                     "kind=f16 arch=sm120",
                                                 "kind=fp8_per_tensor arch=sm120", "kind=mxfp8 arch=sm120", "kind=nvfp4 arch=sm120"},
                                                {"data=clustered", "data=adversarial_alignment", "data=every_special", "data=full_exponent"},
                                                shape, extra, kLayout, kOutput, kFactors, {"", "bias=1"}, x, w, dy, compact,
                                                    {"", "split_accumulator=1"}},
                               seed + 8500, limits));
  append(lines, covering_lines("grouped_gemm arch=sm100",
                               {{"kind=bf16", "kind=f16", "kind=fp8_per_tensor", "kind=mxfp8", "kind=nvfp4"},
                                {"splits=16,0,32,16 N=32 K=48", "splits=16,32,16,0 N=32 K=32", "splits=16,3,16,16 N=16 K=32", "splits=4x0 N=16 K=32"},
                                kLayout, kOutput, {"alpha=1,0.5,-2,nan beta=0,1,0.25,0", "alpha=1,0.5,-2,nan", "beta=0,1,0.25,0",
                                                   "alpha=-2 beta=0,1,0.25,0", "alpha=1,0.5,-2,nan beta=1", "alpha=1,0.5,-2,inf beta=0.5"},
                                {"", "addends=every_special", "addends=negative_zeros"}, {"", "bias=1"}, extra, x, w, dy, compact}, seed + 8600,
                                    limits));
}

void linear_lines(int seed, const CoveringLimits& limits, std::vector<CaseLine>& lines) {
  const Axis shape{"splits=17,0,33 N=24 K=40", "splits=65,5,0 N=40 K=24", "splits=3,17 N=16 K=136"};
  const Axis shape16{"splits=16,0,32 N=32 K=48", "splits=32,16,0 N=16 K=112"};
  const Axis data{"data=uniform", "data=normal", "data=sparse", "data=clustered", "data=block_scales", "data=every_special", "data=near_underflow"};
  const Axis more_data{"data=full_exponent", "data=one_hot", "data=integers"};
  const Axis fp8{"recipe=none", "recipe=tensor_current", "recipe=tensor_delayed", "recipe=fp8_block"};
  const Axis mx{"recipe=mxfp8", "recipe=nvfp4", "recipe=nvfp4 sign_mask=45576"};
  Axis all = fp8;
  all.insert(all.end(), mx.begin(), mx.end());
  const Axis type{"x_type=bf16", "x_type=f16"}, bias{"", "bias=1"}, codes{"", "grad_otype=e5m2"}, forward_codes{"", "otype=e5m2"};
  const Axis noop{"", "noop=0", "noop=1"};
  struct Part {
    Axis recipes, shapes, data;
  };
  for (const Part& part : {Part{fp8, shape, data}, Part{mx, shape16, data}, Part{all, {"splits=16,0,32 N=32 K=48", "splits=16,32,0 N=16 K=32",
      "splits=16,16 N=32 K=16"}, more_data}, Part{all, {"splits=3x0 N=32 K=16"}, {"data=uniform"}}}) {
    const std::vector<Axis> axes{part.recipes, part.shapes, part.data, {"", "extra_rows=16"}, type, bias, forward_codes};
    const auto with = [&](std::vector<Axis> more) {
      more.insert(more.begin(), axes.begin(), axes.end());
      return more;
    };
    append(lines, covering_lines("linear_forward", with({noop}), seed + 8700, limits));
    append(lines, covering_lines("linear_dgrad", with({codes}), seed + 8800, limits));
    append(lines, covering_lines("linear_wgrad", with({codes, {"", "accumulate=1"}, {"", "deferred=1"}, kOutput}), seed + 8900, limits));
  }
  Axis any_data = data;
  any_data.insert(any_data.end(), more_data.begin(), more_data.end());
  const std::vector<Axis> scaled{any_data, {"recipe=tensor_current", "recipe=fp8_block"}, {"splits=9,0,17 N=24 K=40", "splits=17,5,0 N=16 K=24",
      "splits=4,9 N=16 K=136"}, {"", "extra_rows=16"}, type, bias, forward_codes, {"", "eps=0.5"}, {"pow2=0", "pow2=1"}};
  for (const auto& [op, more] : {std::pair<const char*, std::vector<Axis>>{"linear_forward", {noop}}, {"linear_dgrad", {codes}},
                                 {"linear_wgrad", {codes, {"", "accumulate=1"}, {"", "deferred=1"}, kOutput}}}) {
    std::vector<Axis> axes = scaled;
    axes.insert(axes.end(), more.begin(), more.end());
    append(lines, covering_lines(op, axes, seed + 9100, limits));
  }
}

}  // namespace

std::vector<CaseLine> covered_lines(int round) {
  std::vector<CaseLine> lines;
  const int seed = 10000 * (round + 1);
  const CoveringLimits limits{.most_macs = round == 0 ? 1'000'000 : 4'000'000, .most_elements = 150'000};
  quantize_lines(round, seed, limits, lines);
  layout_lines(seed, limits, lines);
  if (round == 0) token_lines(seed, limits, lines);
  gemm_lines(round, seed, limits, lines);
  linear_lines(seed, limits, lines);
  return lines;
}

}  // namespace assay::conformance
