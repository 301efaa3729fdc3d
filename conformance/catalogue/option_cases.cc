// The part of the catalogue in which every option of an op meets every length that is large: an option often selects a kernel of
// its own, and each kernel has thresholds of its own. Combinations that earlier lines have are not repeated.

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/covering.h"
#include "reference/types/error.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

constexpr std::int64_t kLarge = 1024, kManyGroups = 64;

// A length, and the words of a line in which only this length is large; all fit every recipe.
struct Length {
  const char *name, *words;
};
const std::vector<Length> kMatrix{{"rows", "splits=1040,0,16 K=16"}, {"K", "splits=16 K=1040"}, {"groups", "splits=66x16 K=16"}};
const std::vector<Length> kProduct{{"rows", "splits=1040,0,16 N=16 K=16"}, {"N", "splits=16 N=1040 K=16"}, {"K", "splits=16 N=16 K=1040"},
                                   {"groups", "splits=66x16 N=16 K=16"}};
const std::vector<Length> kUpdate{{"tensors", "tensors=1040 length=3"}, {"length", "tensors=3 length=1040"}};

struct Op {
  std::string prefix;  // the op, and keys that always select kernels of their own
  const std::vector<Length>& lengths;
  std::vector<Axis> options;
};

std::vector<Op> ops() {
  std::vector<Op> all;
  const Axis layout{"scale_layout=swizzled"}, beyond{"extra_rows=16"};
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    const std::string of = std::string(" recipe=") + recipe;
    all.push_back({"quantize" + of, kMatrix,
                   {{"x_type=bf16", "x_type=f16", "x_type=f32"}, {"otype=e5m2"}, {"pow2=1"}, {"eps=0.01"}, {"direction=rowwise", "direction=columnwise"},
                    {"outputs=all"}, layout, {"two_dimensional=1", "hadamard=1 sign_mask=45576"}, {"stochastic=1", "four_over_six=mae", "four_over_six=mse e4m3_max=256"},
                    {"amax=given", "amax=apart"}, {"dbias=1"}, {"noop=0", "noop=1"}, {"zero_sign=positive", "zero_sign=free"}, beyond}});
    all.push_back({"dequantize" + of, kMatrix,
                   {{"otype=e5m2"}, {"d_type=f32", "d_type=bf16", "d_type=f16"}, {"direction=rowwise", "direction=columnwise"}, layout, {"e4m3_max=256"}, beyond}});
  }
  for (const char* op : {"swizzle", "unswizzle"}) {
    for (const char* recipe : {"mxfp8", "nvfp4"}) all.push_back({std::string(op) + " recipe=" + recipe, kMatrix, {{"direction=rowwise", "direction=columnwise"}}});
  }
  all.push_back({"grouped_dbias", kMatrix, {{"x_type=bf16", "x_type=f16", "x_type=f32"}, {"accumulate=1"}, beyond}});
  all.push_back({"delayed_update", kUpdate, {{"algorithm=max", "algorithm=most_recent"}, {"bulk=0", "reduced=1"}, {"otype=e5m2"}, {"margin=3"}}});
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    all.push_back({std::string("grouped_gemm kind=") + kind, kProduct,
                   {{"layout=TN", "layout=NN", "layout=NT"}, {"d_type=f32", "d_type=bf16", "d_type=f16"}, {"bias=1"}, {"beta=0.5"}, {"alpha=0.5"},
                    {"split_accumulator=1"}, {"weight_block=1x128"}, {"x_type=e5m2"}, {"w_type=e5m2"}, {"dy_type=e5m2"}, layout, beyond}});
  }
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    for (const char* recipe : {"none", "tensor_current", "tensor_delayed", "fp8_block", "mxfp8", "nvfp4"}) {
      all.push_back({std::string(op) + " recipe=" + recipe, kProduct,
                     {{"x_type=bf16", "x_type=f16"}, {"bias=1"}, {"noop=0", "noop=1"}, {"accumulate=1"}, {"deferred=1"}, {"d_type=bf16", "d_type=f16"},
                      {"otype=e5m2"}, {"grad_otype=e4m3"}, {"pow2=0", "pow2=1"}, {"eps=0.01"}, {"sign_mask=45576"}, beyond}});
    }
  }
  return all;
}

bool knows(const CaseLine& line, std::string_view key) { return find_key(*find_op(line.op), key) != nullptr; }

// Factors of each group, where there are many of them: the words of `key`, neighbours apart.
std::string factors(const char* key, std::int64_t groups, int turn) {
  constexpr const char* kFactors[] = {"1", "-2", "0.5", "3", "-0.75", "1.5", "4"};
  std::string text = std::string(" ") + key + "=";
  for (std::int64_t group = 0; group < groups; ++group) text += std::string(group == 0 ? "" : ",") + kFactors[static_cast<std::size_t>(group + turn) % std::size(kFactors)];
  return text;
}

// Whether the line has the option, with this value or, if its values are arbitrary numbers, with any value.
bool has_word(const CaseLine& line, std::string_view word) {
  const std::string key(word.substr(0, word.find('='))), value(word.substr(word.find('=') + 1, word.find(' ') - word.find('=') - 1));
  if (!knows(line, key)) return false;
  const bool any = key == "eps" || key == "alpha" || key == "beta" || key == "extra_rows" || key == "margin" || key == "sign_mask";
  if (!any) return line.has(key) && line.text(key) == value;
  return line.has(key) && line.text(key) != (key == "alpha" ? "1" : "0");
}

std::set<std::string> large_lengths(const CaseLine& line) {
  std::set<std::string> names;
  for (const char* name : {"N", "K", "tensors", "length"}) {
    if (knows(line, name) && line.has(name) && line.integer(name) > kLarge) names.insert(name);
  }
  if (knows(line, "R") && line.has("R") && line.integer("R") > kLarge) names.insert("rows");
  if (knows(line, "splits") && line.has("splits")) {
    const std::vector<std::int64_t> splits = line.splits();
    if (!splits.empty() && *std::max_element(splits.begin(), splits.end()) > kLarge) names.insert("rows");
    if (splits.size() - static_cast<std::size_t>(std::count(splits.begin(), splits.end(), 0)) > kManyGroups) names.insert("groups");
  }
  return names;
}

bool begins_as(const CaseLine& line, const Op& op) {
  const std::size_t space = op.prefix.find(' ');
  if (line.op != op.prefix.substr(0, space)) return false;
  return space == op.prefix.npos || has_word(line, std::string_view(op.prefix).substr(space + 1));
}

// Options of the op beside a large length, as "K pow2=1", that the line has.
void look(const CaseLine& line, const Op& op, std::set<std::string>& met) {
  for (const std::string& length : large_lengths(line)) {
    for (const Axis& axis : op.options) {
      for (const std::string& word : axis) {
        if (has_word(line, word)) met.insert(length + " " + word);
      }
    }
  }
}

bool is_line(const std::string& text) {
  try {
    parse_case_line(text);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

}  // namespace

std::vector<CaseLine> option_lines(const std::vector<CaseLine>& before) {
  std::vector<CaseLine> lines;
  for (const Op& op : ops()) {
    std::set<std::string> met;
    for (const CaseLine& line : before) {
      if (begins_as(line, op) && !line.has("replay")) look(line, op, met);
    }
    for (const Length& length : op.lengths) {
      for (;;) {  // as many of the remaining options as are allowed together
        std::string text = op.prefix + " " + length.words;
        const std::size_t bare = text.size();
        for (const Axis& axis : op.options) {
          for (const std::string& word : axis) {
            if (met.count(std::string(length.name) + " " + word) != 0 || !is_line(text + " " + word)) continue;
            text += " " + word;
            break;
          }
        }
        if (text.size() == bare) break;  // the remaining options are not allowed in any line
        lines.push_back(parse_case_line(text + " seed=" + show(80000 + lines.size())));
        const std::size_t so_far = met.size();
        look(lines.back(), op, met);
        if (met.size() == so_far) throw InvalidArgument("line", text, "options that are then met");
      }
    }
  }
  for (const char* words : {"kind=bf16 arch=sm100", "kind=f16 arch=sm100 layout=NN", "kind=fp8_per_tensor arch=sm100 layout=NT", "kind=mxfp8", "kind=nvfp4 layout=NN"}) {
    const std::string text = std::string("grouped_gemm ") + words + " splits=66x16 N=16 K=16" + factors("alpha", 66, 0) + factors("beta", 66, 3);
    lines.push_back(parse_case_line(text + " seed=" + show(80000 + lines.size())));
  }
  return lines;
}

}  // namespace assay::conformance
