// The part of the catalogue that is about inputs themselves: those that may be left out, and those of which a few bytes change.

#include <set>

#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/covering.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

bool makes_sense(const std::string& text) {
  try {
    parse_case_line(text);
  } catch (const InvalidArgument&) {
    return false;
  }
  return true;
}

// Few lines in which every value of every axis occurs once, cycling through `shapes`. Disallowed values are left out.
void add_each_value(const std::string& prefix, const Axis& shapes, const std::vector<Axis>& axes, int seed,
                    std::vector<CaseLine>& lines) {
  std::vector<Axis> open = axes;
  std::size_t left = shapes.size(), turn = 0;
  for (const Axis& axis : axes) left += axis.size();
  std::set<std::string> met;
  for (; met.size() < left && turn < 2 * left; ++turn) {
    std::string text = prefix + " " + shapes[turn % shapes.size()];
    met.insert(shapes[turn % shapes.size()]);
    for (std::size_t i = 0; i < open.size(); ++i) {
      Axis& axis = open[(i + turn) % open.size()];
      for (auto value = axis.begin(); value != axis.end(); ++value) {
        if (!makes_sense(text + " " + *value)) continue;
        text += " " + *value;
        met.insert(*value);
        axis.erase(value);
        break;
      }
    }
    lines.push_back(parse_case_line(text + " seed=" + show(seed + static_cast<int>(turn))));
  }
}

// NVFP4 with an amax of its own for the columns, which is an input as that of the rows is.
void amax_lines(std::vector<CaseLine>& lines) {
  const Axis shapes{"splits=16,0,34,2 K=80", "R=32 K=144", "splits=16,34,0 K=80", "splits=16,34 K=80", "splits=4x0 K=48"};
  Axis data;
  for (const char* each : {"uniform", "full_exponent", "near_underflow", "every_special", "ties", "clustered", "block_scales",
                           "sparse", "subnormals", "nans", "adversarial_midpoints", "adversarial_amax", "adversarial_infinities",
                           "normal", "one_hot", "every_code", "integers", "zeros", "adversarial_dbias"}) {
    data.push_back(std::string("data=") + each);
  }
  add_each_value("quantize recipe=nvfp4 amax=apart", shapes,
                 {{"four_over_six=mae e4m3_max=256 data=adversarial_four_over_six", "four_over_six=mse"},
                  {"x_type=f16", "x_type=f32"},
                  {"two_dimensional=1"},
                  {"hadamard=1", "hadamard=1 sign_mask=45576"},
                  {"stochastic=1"},
                  {"outputs=all"},
                  {"scale_layout=swizzled"},
                  {"direction=rowwise", "direction=columnwise"},
                  {"dbias=1"},
                  {"noop=0", "noop=1"},
                  {"extra_rows=2"},
                  {"zero_sign=positive", "zero_sign=free"},
                  data},
                 61000, lines);
  lines.push_back(parse_case_line("quantize recipe=nvfp4 stochastic=1 R=32 K=48 data=integers seed=61800"));
  for (const char* each : {"R=32 K=48", "splits=16,0,34,2 K=80 outputs=all", "splits=16,32 K=48 hadamard=1 noop=1",
                           "splits=16,32 K=48 hadamard=1", "splits=32,16 K=48 two_dimensional=1 x_type=f32"}) {
    const std::string seed = " seed=" + show(61900 + lines.size());
    lines.push_back(parse_case_line(std::string("quantize recipe=nvfp4 amax=single ") + each + seed));
  }
}

// Replays between which at most 16 bytes of each input change: finds a cache that is checked by a part of the contents only.
void piece_lines(std::vector<CaseLine>& lines) {
  int seed = 62000;
  const auto add = [&](const std::string& text) {
    lines.push_back(parse_case_line(text + " seed=" + show(seed++) + " replay=4:data,scales,pieces"));
  };
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    add(std::string("quantize recipe=") + recipe + " splits=6,0,10 K=80");
  }
  for (const char* recipe : {"tensor_current", "block_1x128", "mxfp8", "nvfp4"}) {
    for (const char* direction : {"rowwise", "columnwise"}) {
      add(std::string("dequantize recipe=") + recipe + " direction=" + direction + " splits=6,0,10 K=80");
    }
  }
  add("quantize recipe=nvfp4 hadamard=1 stochastic=1 amax=apart splits=16,0,4,12,2,6,0,8,16,2,4,2,16 K=16");
  for (const char* words : {"swizzle recipe=mxfp8", "swizzle recipe=nvfp4 direction=columnwise",
                            "unswizzle recipe=mxfp8 direction=columnwise", "unswizzle recipe=nvfp4"}) {
    add(std::string(words) + " splits=32,0,96 K=128");
  }
  add("delayed_update tensors=33 length=6");
  add("delayed_update reduced=1 tensors=33 length=6");
  add("grouped_dbias accumulate=1 splits=3,0,5 K=40");
  for (const char* words : {"kind=bf16 bias=1", "kind=f16 layout=NN", "kind=bf16 layout=NT", "kind=fp8_per_tensor bias=1",
                            "kind=fp8_per_tensor layout=NN", "kind=fp8_per_tensor layout=NT", "kind=fp8_block bias=1",
                            "kind=fp8_block layout=NN", "kind=fp8_block layout=NT", "kind=mxfp8 layout=NN", "kind=nvfp4 bias=1",
                            "kind=nvfp4 layout=NN", "kind=nvfp4 layout=NT"}) {
    add(std::string("grouped_gemm ") + words + " beta=1 splits=16,0,16 N=16 K=32");
  }
  add("grouped_gemm kind=bf16 arch=sm100 alpha=2,0.5,1,3,4,5 beta=0.5,1,2,4,1,3 splits=5,0,17,3,4,1 N=24 K=40");
  add("grouped_gemm kind=bf16 d_type=e4m3 splits=5,0,17,3,4,1 N=24 K=40");
  for (const char* recipe : {"none", "tensor_delayed", "fp8_block", "nvfp4"}) {
    const std::string words = std::string(" recipe=") + recipe + " bias=1 splits=16,0,16 N=16 K=32";
    add("linear_forward" + words);
    if (recipe != std::string("none")) add("linear_forward noop=1" + words);
    add("linear_dgrad" + words);
    add("linear_wgrad accumulate=1" + words);
  }
  add("permute token_scales=f32 R=40 topk=3 K=260");
  add("unpermute weights=1 R=40 topk=3 dropped=5 K=40");
  add("quantize_by_rule preset=deepgemm splits=6,0,10 K=80");
  add("quantize_by_rule preset=nvfp4.te_row_scaled amax=given splits=16,0,4,12,2,6,0,8,16 K=48");
  add("quantize recipe=nvfp4 stochastic=1 draws=te_vector_blockwise splits=16,0,4,12,2,6,0,8,16,2,4,2,16 K=16");
}

}  // namespace

std::vector<CaseLine> input_lines() {
  std::vector<CaseLine> lines;
  amax_lines(lines);
  piece_lines(lines);
  return lines;
}

}  // namespace assay::conformance
