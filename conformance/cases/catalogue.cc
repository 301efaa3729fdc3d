#include "conformance/cases/catalogue.h"

#include <algorithm>
#include <set>

#include "conformance/cases/catalogue_lines.h"
#include "conformance/cases/case_schema.h"
#include "conformance/cases/covering.h"
#include "reference/support/error.h"

namespace assay::conformance {
namespace {

const Axis kInput{"itype=bf16", "itype=f16", "itype=f32"};
const Axis kFp8{"otype=e4m3", "otype=e5m2"};
const Axis kDirection{"", "direction=rowwise", "direction=columnwise"};

// Rows and columns: what fits a block, what does not, and groups that are empty, odd or alone. Every list begins with the
// values that standard takes.
const Axis kAnyShape{"R=33 K=272",  "R=130 K=144",  "R=1 K=16",  "R=128 K=256",  "R=65 K=96",
                     "splits=128,0,256 K=272",       "splits=0,128,0,256 K=128",   "splits=1,127,128,129,0 K=160",
                     "splits=one(8,130,3) K=136",    "splits=zipf(16,600,1) K=72", "splits=5,0,0,7 extra_rows=140 K=130",
                     "R=1 K=1",  "R=160 K=416",  "R=303 K=300",  "R=257 K=40",  "R=0 K=64",
                     "splits=64,96,128 K=64",        "splits=256x1 K=48",          "splits=33,65,97,100 K=17"};
// NVFP4 packs two codes in a byte.
const Axis kEvenShape{"R=16 K=16",  "R=32 K=272",  "R=144 K=80",  "R=128 K=128",
                      "splits=128,0,64 K=96",        "splits=16,0,48,16 K=144",    "splits=one(8,128,3) K=64",
                      "splits=0,2,30,34 K=48",       "splits=16,32 extra_rows=48 K=80",
                      "R=2 K=2",  "R=48 K=400",  "R=300 K=34",  "splits=64x16 K=32"};

const Axis kValueData{"data=uniform", "data=full_exponent", "data=near_underflow", "data=specials", "data=ties", "data=clustered",
                      "data=block_scales", "data=adversarial_midpoints", "data=adversarial_amax", "data=sparse",
                      "data=normal", "data=nans", "data=one_hot", "data=every_code", "data=integers", "data=zeros",
                      "data=adversarial_dbias"};
const Axis kOperandData{"data=uniform", "data=full_exponent", "data=near_underflow", "data=specials", "data=one_hot",
                        "data=clustered", "data=every_code", "data=block_scales", "data=adversarial_alignment",
                        "data=normal", "data=sparse", "data=adversarial_output_ties", "data=adversarial_promotion"};

const Axis kGemmShape{"splits=17,0,33,7 N=40 K=72",   "splits=1,31,32,33 N=24 K=130",  "splits=64,0,5 N=16 K=264",
                      "splits=one(8,40,3) N=48 K=64", "splits=20 N=136 K=144",         "splits=3,0,18 extra_rows=30 N=17 K=100",
                      "splits=zipf(16,96,1) N=32 K=48", "splits=8x4 N=8 K=16",         "splits=0,0,130 N=24 K=33"};
const Axis kGemmShape16{"splits=16,0,32,16 N=48 K=80", "splits=17,0,33,7 N=32 K=144", "splits=64,0,16 N=16 K=272",
                        "splits=one(8,48,3) N=48 K=64", "splits=32,0,16 extra_rows=48 N=32 K=48",
                        "splits=32 N=144 K=112",        "splits=8x16 N=16 K=32"};
const Axis kFactors{"", "alpha=0.5", "beta=1", "alpha=-1.25 beta=0.75"};
const Axis kOutput{"dtype_d=f32", "dtype_d=bf16", "dtype_d=f16"};
const Axis kLayout{"layout=TN", "layout=NN", "layout=NT"};

void append(std::vector<CaseLine>& lines, std::vector<CaseLine> more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<CaseLine> written(std::string_view text) {
  std::vector<CaseLine> lines;
  for (const std::string_view line : words_of(text, '\n')) {
    if (line[0] != '#') lines.push_back(parse_case_line(line));
  }
  return lines;
}

// The first `count` values.
Axis first(const Axis& axis, std::size_t count) {
  return Axis(axis.begin(), axis.begin() + static_cast<std::ptrdiff_t>(std::min(count, axis.size())));
}

// `round` 0 belongs to standard; further rounds draw other combinations and other data.
std::vector<CaseLine> covered(int round) {
  std::vector<CaseLine> lines;
  const int seed = 10000 * (round + 1);
  const Axis shapes = round == 0 ? first(kAnyShape, 11) : kAnyShape, even_shapes = round == 0 ? first(kEvenShape, 9) : kEvenShape;
  const Axis data = round == 0 ? first(kValueData, 10) : kValueData, operands = round == 0 ? first(kOperandData, 9) : kOperandData;
  const Axis gemm_shapes = round == 0 ? first(kGemmShape, 6) : kGemmShape;
  const Axis gemm_shapes16 = round == 0 ? first(kGemmShape16, 5) : kGemmShape16;
  const CoveringLimits limits{.most_macs = round == 0 ? 1'000'000 : 4'000'000, .most_elements = 150'000};
  for (const char* recipe : {"block_1x128", "block_128x128", "tensor_current"}) {
    append(lines, covering_lines(std::string("quantize recipe=") + recipe,
                                 {shapes, data, kInput, kFp8, {"", "pow2=1"}, {"", "eps=0.01"}, kDirection, {"", "dbias=1"}},
                                 seed + 1000, limits));
  }
  append(lines, covering_lines("quantize recipe=tensor_delayed",
                               {shapes, {"data=uniform", "data=specials", "data=ties", "data=full_exponent", "data=near_underflow"},
                                kInput, kFp8, {"scales=plain", "scales=pow2", "scales=edge"}, kDirection},
                               seed + 2000, limits));
  append(lines, covering_lines("quantize recipe=mxfp8",
                               {shapes, data, kInput, kFp8, {"", "scale_layout=swizzled"}, {"", "two_dimensional=1"},
                                kDirection, {"", "dbias=1"}},
                               seed + 3000, limits));
  append(lines, covering_lines("quantize recipe=nvfp4",
                               {even_shapes, data, kInput,
                                {"", "two_dimensional=1", "hadamard=1", "hadamard=1 sign_mask=45576", "stochastic=1",
                                 "four_over_six=mae e4m3_max=256", "four_over_six=mse", "hadamard=1 stochastic=1"},
                                {"", "amax=given"}, {"", "scale_layout=swizzled"}, kDirection, {"", "dbias=1"}},
                               seed + 4000, limits));
  const Axis recipes{"recipe=tensor_current", "recipe=tensor_delayed", "recipe=block_1x128", "recipe=block_128x128", "recipe=mxfp8"};
  append(lines, covering_lines("dequantize",
                               {recipes, {"R=33 K=272", "R=130 K=144", "splits=1,127,0,129 K=72", "splits=128,0,5 extra_rows=9 K=136"},
                                kFp8, kOutput, {"", "direction=columnwise"}, {"scales=plain", "scales=pow2", "scales=edge"},
                                {"data=uniform", "data=every_code", "data=specials", "data=full_exponent"}, {"", "scale_layout=swizzled"}},
                               seed + 5000, limits));
  append(lines, covering_lines("dequantize recipe=nvfp4",
                               {{"R=32 K=272", "splits=16,0,48 K=80", "splits=128,2 extra_rows=14 K=34"}, kOutput,
                                {"", "direction=columnwise"}, {"scales=plain", "scales=edge"}, {"", "scale_layout=swizzled"}, {"", "e4m3_max=256"}},
                               seed + 5500, limits));
  for (const char* op : {"swizzle", "unswizzle"}) {
    append(lines, covering_lines(op, {{"recipe=mxfp8", "recipe=nvfp4"}, {"", "direction=columnwise"},
                                      {"R=1 K=1", "R=128 K=128", "R=130 K=272", "R=300 K=40", "splits=33,0,128 K=272", "splits=256x1 K=64"}},
                                 seed + 6000, limits));
  }
  const auto gemm = [&](const std::string& prefix, const Axis& shape, std::vector<Axis> more, int first_seed) {
    std::vector<Axis> axes{shape, operands, kLayout, kOutput, kFactors};
    axes.insert(axes.end(), more.begin(), more.end());
    append(lines, covering_lines("grouped_gemm " + prefix, axes, seed + first_seed, limits));
  };
  gemm("kind=bf16", gemm_shapes, {{"", "bias=1"}}, 7000);
  gemm("kind=f16", gemm_shapes, {{"", "bias=1"}}, 7200);
  gemm("kind=tensor", gemm_shapes,
       {{"", "x_type=e5m2"}, {"", "w_type=e5m2"}, {"", "dy_type=e5m2"}, {"", "split_accumulator=1"}, {"", "bias=1"}}, 7400);
  gemm("kind=block", gemm_shapes,
       {{"", "x_type=e5m2"}, {"", "dy_type=e5m2"}, {"", "weight_block=1x128"}, {"scales=plain", "scales=pow2"}}, 7600);
  gemm("kind=mxfp8", gemm_shapes16, {{"", "x_type=e5m2"}, {"", "w_type=e5m2"}, {"", "scale_layout=compact"}}, 7800);
  gemm("kind=nvfp4", gemm_shapes16, {{"", "scale_layout=compact"}}, 8000);

  const Axis linear_shape{"splits=17,0,33 N=24 K=40", "splits=128,5 N=40 K=24", "splits=one(4,40,2) extra_rows=9 N=16 K=136"};
  const Axis linear_shape16{"splits=16,0,32 N=48 K=64", "splits=32,32 N=32 K=112", "splits=one(4,48,2) N=16 K=64"};
  const Axis linear_data{"data=uniform", "data=normal", "data=sparse", "data=clustered", "data=block_scales"};
  const Axis fp8_recipes{"recipe=none", "recipe=tensor_current", "recipe=tensor_delayed", "recipe=block"};
  const Axis mx_recipes{"recipe=mxfp8", "recipe=nvfp4"};
  for (const auto& [recipe, shape] : {std::pair(fp8_recipes, linear_shape), std::pair(mx_recipes, linear_shape16)}) {
    const Axis type{"itype=bf16", "itype=f16"}, bias{"", "bias=1"}, codes{"", "grad_otype=e5m2"};
    append(lines, covering_lines("linear_forward", {recipe, shape, linear_data, type, bias}, seed + 8500, limits));
    append(lines, covering_lines("linear_dgrad", {recipe, shape, linear_data, type, bias, codes}, seed + 8600, limits));
    append(lines, covering_lines("linear_wgrad", {recipe, shape, linear_data, type, bias, codes, {"", "accumulate=1"}, {"", "deferred=1"},
                                                  {"dtype_d=f32", "dtype_d=bf16"}}, seed + 8700, limits));
  }
  return lines;
}

// `pattern` with * and ? against the whole of `text`.
bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++, resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool matches(std::string_view word, std::string_view text, std::string_view name) {
  if (word.find_first_of("*?") == std::string_view::npos) {
    return text.find(word) != std::string_view::npos || name.find(word) != std::string_view::npos;
  }
  if (glob(word, name)) return true;
  for (const std::string_view each : words_of(text)) {
    if (glob(word, each)) return true;
  }
  return false;
}

std::optional<Profile> profile_named(std::string_view name) {
  for (const Profile each : {Profile::smoke, Profile::standard, Profile::full}) {
    if (name == name_of(each)) return each;
  }
  return std::nullopt;
}

std::string_view name_of(Profile profile) {
  return profile == Profile::smoke ? "smoke" : profile == Profile::standard ? "standard" : "full";
}

std::vector<CaseLine> catalogue(Profile profile) {
  std::vector<CaseLine> lines = written(kSmokeLines);
  if (profile != Profile::smoke) {
    append(lines, written(kStandardLines));
    append(lines, order_free_lines());
    append(lines, covered(0));
  }
  if (profile == Profile::full) {
    append(lines, written(kFullLines));
    append(lines, covered(1));
    append(lines, covered(2));
  }
  std::set<std::string> seen;
  std::vector<CaseLine> unique;
  for (CaseLine& line : lines) {
    if (seen.insert(to_text(line)).second) unique.push_back(std::move(line));
  }
  return unique;
}

Selection select(const std::vector<CaseLine>& cases, const std::vector<std::string>& words) {
  Selection selection;
  std::vector<bool> found(words.size(), false);
  for (const CaseLine& line : cases) {
    const std::string text = to_text(line), name = name_of(line);
    bool all = true;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool match = matches(words[i], text, name);
      found[i] = found[i] || match;
      all = all && match;
    }
    if (all) selection.cases.push_back(line);
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!found[i]) selection.unmatched.push_back(words[i]);
  }
  return selection;
}

}  // namespace assay::conformance
