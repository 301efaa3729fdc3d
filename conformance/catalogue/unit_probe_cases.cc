// Products whose D shows the unit that computes it. 138 sums hold every probe. Those of no more products than a step show the unit
// where no plan is stated too.

#include <string>

#include "conformance/catalogue/catalogue_parts.h"

namespace assay::conformance {
namespace {

constexpr const char* kProducts[] = {
    "kind=bf16 splits=72,0,72 N=16 K=64",
    "kind=bf16 splits=72,0,72 N=16 K=16",
    "kind=bf16 splits=72,0,72 N=16 K=8",
    "kind=bf16 layout=NN splits=72,0,72 N=64 K=16",
    "kind=bf16 layout=NT splits=64 N=144 K=16",
    "kind=bf16 arch=sm80 splits=72,0,72 N=16 K=64",
    "kind=f16 splits=72,0,72 N=16 K=64",
    "kind=f16 splits=72,0,72 N=16 K=16",
    "kind=f16 layout=NN splits=72,0,72 N=64 K=16",
    "kind=f16 layout=NT splits=64 N=144 K=16",
    "kind=fp8_per_tensor splits=80,0,64 N=16 K=64",
    "kind=fp8_per_tensor splits=80,0,64 N=16 K=32",
    "kind=fp8_per_tensor splits=80,0,64 N=16 K=16",
    "kind=fp8_per_tensor split_accumulator=1 splits=80,0,64 N=16 K=64",
    "kind=fp8_per_tensor layout=NN split_accumulator=1 dy_type=e5m2 splits=80,0,64 N=64 K=16",
    "kind=fp8_per_tensor layout=NT split_accumulator=1 dy_type=e5m2 splits=64 N=144 K=16",
    "kind=fp8_per_tensor arch=sm89 splits=80,0,64 N=16 K=64",
    "kind=fp8_per_tensor arch=sm100 splits=80,0,64 N=16 K=64",
    "kind=fp8_block splits=80,0,64 N=16 K=64",
    "kind=fp8_block splits=80,0,64 N=16 K=32",
    "kind=fp8_block layout=NN dy_type=e5m2 splits=80,0,64 N=64 K=16",
    "kind=fp8_block layout=NT splits=64 N=144 K=16",
    "kind=mxfp8 splits=80,0,64 N=32 K=64",
    "kind=mxfp8 splits=80,0,64 N=32 K=32",
    "kind=mxfp8 layout=NT splits=64 N=144 K=32",
};

}  // namespace

std::vector<CaseLine> unit_probe_lines() {
  std::vector<CaseLine> lines;
  for (const char* words : kProducts)
    lines.push_back(parse_case_line(std::string("grouped_gemm d_type=f32 data=unit_probes ") + words));
  return lines;
}

}  // namespace assay::conformance
