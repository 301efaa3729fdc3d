// Products that show a wrong accumulator width under every order of summation: every kind, layout and type of D.

#include <string>

#include "conformance/catalogue/catalogue_parts.h"

namespace assay::conformance {
namespace {

struct Variety {
  const char* words;
  const char* sizes[3];  // of TN, NN and NT: a sum of more than two promotion blocks of 128, and one that is shorter than a step
};

// K of TN, N of NN and the rows of NT end with a promotion block, a step and a block of scales that are not full.
constexpr const char* kAny[] = {"splits=5,7,0 N=24 K=273", "splits=5,7,0 N=273 K=24", "splits=261,7,0 N=16 K=24"};
constexpr const char* kShapesOfFp8[] = {"splits=5,7,0 N=32 K=272", "splits=5,7,0 N=272 K=32", "splits=261,7,0 N=16 K=32"};
constexpr const char* kBlock[] = {"splits=5,7,0 N=136 K=272", "splits=5,7,0 N=272 K=136", "splits=261,7,0 N=16 K=32"};
constexpr const char* kMx[] = {"splits=5,7,0 N=32 K=288", "splits=5,7,0 N=288 K=32", "splits=272,32,0 N=32 K=32"};
constexpr const char* kNvfp4[] = {"splits=16,3,0 N=32 K=272", "splits=16,3,0 N=272 K=32", "splits=272,16,0 N=32 K=32"};

constexpr Variety kVarieties[] = {
    {"kind=bf16", {kAny[0], kAny[1], kAny[2]}},
    {"kind=f16", {kAny[0], kAny[1], kAny[2]}},
    {"kind=fp8_per_tensor", {kShapesOfFp8[0], kShapesOfFp8[1], kShapesOfFp8[2]}},
    {"kind=fp8_per_tensor split_accumulator=1", {kShapesOfFp8[0], kShapesOfFp8[1], kShapesOfFp8[2]}},
    {"kind=fp8_block", {kBlock[0], kBlock[1], kBlock[2]}},
    {"kind=fp8_block weight_block=1x128", {kBlock[0], kBlock[1], nullptr}},
    {"kind=mxfp8", {kMx[0], kMx[1], kMx[2]}},
    {"kind=nvfp4", {kNvfp4[0], kNvfp4[1], kNvfp4[2]}},
};

// Other architectures and types of codes, and epilogues.
constexpr const char* kMore[] = {
    "kind=bf16 arch=sm80 d_type=f32 splits=5,7,0 N=24 K=273",
    "kind=fp8_per_tensor arch=sm89 d_type=f32 splits=5,7,0 N=32 K=272",
    "kind=fp8_per_tensor arch=sm100 d_type=f32 splits=5,7,0 N=32 K=272",
    "kind=mxfp8 arch=sm120 d_type=f32 splits=5,7,0 N=32 K=288",
    "kind=nvfp4 arch=sm120 d_type=f32 splits=16,3,0 N=32 K=272",
    "kind=fp8_per_tensor layout=NN dy_type=e5m2 d_type=f32 splits=5,7,0 N=272 K=32",
    "kind=fp8_block layout=NN dy_type=e5m2 d_type=f32 splits=5,7,0 N=272 K=136",
    "kind=mxfp8 x_type=e5m2 d_type=f32 splits=5,7,0 N=32 K=288",
    "kind=bf16 layout=NT d_type=f32 beta=1 splits=261,7,0 N=16 K=24",
    "kind=fp8_per_tensor layout=NT split_accumulator=1 d_type=f32 beta=1 splits=261,7,0 N=16 K=32",
    "kind=fp8_block alpha=0.5 d_type=f32 splits=5,7,0 N=136 K=272",
    "kind=f16 bias=1 splits=5,7,0 N=24 K=273",
};

}  // namespace

std::vector<CaseLine> order_free_lines() {
  constexpr const char* kLayouts[] = {"TN", "NN", "NT"};
  std::vector<CaseLine> lines;
  int seed = 9500;
  const auto add = [&](const std::string& words) {
    lines.push_back(parse_case_line("grouped_gemm " + words + " data=wide_sums seed=" + std::to_string(seed++)));
  };
  for (const Variety& each : kVarieties) {
    for (int layout = 0; layout < 3; ++layout) {
      if (each.sizes[layout] == nullptr) continue;
      for (const char* type : {"f32", "bf16", "f16"}) {
        add(std::string(each.words) + " layout=" + kLayouts[layout] + " d_type=" + type + " " + each.sizes[layout]);
      }
    }
  }
  for (const char* words : kMore) add(words);
  return lines;
}

}  // namespace assay::conformance
