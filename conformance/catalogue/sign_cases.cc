// The part of the catalogue in which scales are negative. No recipe makes such a scale, but scales are inputs of products, of
// dequantization and of delayed scaling, and their arithmetic has signs: kernels that compare magnitudes, take logarithms or read
// exponents alone give wrong results.

#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/covering.h"

namespace assay::conformance {
namespace {

const Axis kData{"data=uniform", "data=every_special", "data=near_underflow", "data=full_exponent"};
const Axis kTypes{"d_type=f32", "d_type=bf16", "d_type=f16"};

}  // namespace

std::vector<CaseLine> negative_scale_lines() {
  SeededLines lines(94000);
  const Axis layout{"scale_layout=compact", "scale_layout=swizzled"};
  for (const char* kind : {"fp8_per_tensor", "fp8_block", "nvfp4", "tensor arch=sm100", "tensor arch=sm89", "nvfp4 arch=sm120"}) {
    const std::string prefix = std::string("grouped_gemm scales=negative kind=") + kind;
    lines.add_each(prefix, {{"splits=17,0,16,5,9 N=32 K=48", "splits=16,17,0 N=16 K=272", "splits=16,32 N=16 K=48",
                             "splits=3x0 N=16 K=32", "splits=9x16 N=16 K=32"},
                            {"layout=TN", "layout=NN", "layout=NT"},
                            kTypes,
                            {"", "beta=1", "alpha=-1.25 beta=0.75", "alpha=0.5"},
                            {"bias=1", ""},
                            {"", "extra_rows=16"},
                            {"", "x_type=e5m2"},
                            {"", "w_type=e5m2"},
                            {"", "dy_type=e5m2"},
                            {"", "weight_block=1x128"},
                            {"", "split_accumulator=1"},
                            layout,
                            kData,
                            {"", "alpha=1,0.5,-2,4 beta=0,1,0.25,0 splits=16,0,16,32 N=16 K=32"}});
    lines.add(prefix + " layout=NN splits=16,0,16 N=144 K=32 d_type=f32");  // blocks of both signs in one sum
    lines.add(prefix + " layout=NT splits=144,0,272 N=16 K=16 d_type=f32");
    lines.add(prefix + " splits=16,0,16 N=16 K=528 d_type=f32");
  }
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "nvfp4"}) {
    const std::string prefix = std::string("dequantize scales=negative recipe=") + recipe;
    lines.add_each(prefix, {{"splits=16,0,48,2 K=144", "R=130 K=272", "splits=16,2,4,6,2,8,2,2 K=34",
                             "splits=16,2,4,6,8,2,2,0 K=48", "splits=3x0 K=64"},
                            kTypes,
                            {"direction=rowwise", "direction=columnwise"},
                            {"", "otype=e5m2"},
                            {"", "extra_rows=2"},
                            layout,
                            {"", "e4m3_max=256"},
                            kData});
  }
  lines.add_each("quantize scales=negative recipe=tensor_delayed",
                 {{"splits=16,0,34,2 K=80", "R=32 K=144", "splits=16,34,0 K=80", "splits=16,34 K=80", "splits=3x0 K=48"},
                  {"direction=both", "direction=rowwise", "direction=columnwise"},
                  {"x_type=f32", "x_type=bf16", "x_type=f16"},
                  {"", "otype=e5m2"},
                  {"", "dbias=1"},
                  {"", "outputs=all"},
                  {"", "noop=0"},
                  {"", "zero_sign=positive", "zero_sign=free"},
                  {"", "extra_rows=2"},
                  kData});
  lines.add("quantize scales=negative recipe=tensor_delayed splits=16,32 K=48 noop=1");
  return lines.take();
}

}  // namespace assay::conformance
