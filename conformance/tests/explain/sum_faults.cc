// Products that are summed, promoted, cut or finished otherwise than their plan says.

#include "conformance/tests/explain/planted_faults.h"
#include "conformance/tests/explain/product_model.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance::planted_faults {
namespace {

float to_bf16(float value) { return scalar::decode_bf16(scalar::encode_bf16(value)); }

std::uint32_t toward_zero(Format type, float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return type == Format::bf16 ? bits >> 16 : bits;
}

const char* const kTensor = "grouped_gemm kind=fp8_per_tensor d_type=f32 split_accumulator=1 splits=9,0,17 N=24 K=640 seed=64";

}  // namespace

const std::vector<Fault>& sum_faults() {
  static const std::vector<Fault> faults{
      {"promotion every 256", "issue of a per-tensor FP8 product", kTensor, modelled([](Model& m) { m.interval = 256; }), {{"promoted to f32 every 256"}, {"promote=256"}}},
      {"no promotion: the fast accumulator", "table of faults, C11", kTensor, modelled([](Model& m) { m.promotion = 0; m.interval = 0; }), {{"without promotion"}, {"split_accumulator=0"}, {"under the plan"}}},
      {"F = 12", "issue of an FP8 product", kTensor, modelled([](Model& m) { m.unit = [](TensorCoreUnit& unit) { unit.fraction_bits = 12; }; }), {{"F = 12"}}},
      {"the tail of K dropped", "facebookexperimental/triton#2767", "grouped_gemm kind=bf16 d_type=f32 splits=5,4 N=24 K=88 seed=60741", modelled([](Model& m) { m.end = [](const At& at) { return at.of().depth / 16 * 16; }; }), {{"without the last 8"}}},
      {"partial sums of split-K in bf16", "NVIDIA/TransformerEngine#3440", "grouped_gemm kind=bf16 d_type=bf16 splits=9,0,17 N=24 K=320 data=clustered seed=2458",
       modelled([](Model& m) { m.sum = [](const At& at, const Model::Part& part) { return to_bf16(to_bf16(part(0, 160)) + to_bf16(part(160, at.of().depth))); }; }),
       {{"2 slices", "type of D"}}},
      {"the tail of K of the first group for all", "ROCm/composable_kernel#2863", "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=37,39,57 N=16 K=24 seed=75",
       modelled([](Model& m) { m.end = [](const At& at) { return std::min(at.of().depth / 16 * 16 + at.view.groups[0].depth % 16, at.of().depth); }; }),
       {{"tail", "first group"}}},
      {"stream-k adds slices in another order", "ROCm/rocm-libraries#345", "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm90.wgmma.f16,slices=3x96,merge=sequential_f32 splits=9,0,17 N=24 K=288 data=clustered seed=2459",
       modelled([](Model& m) { m.sum = [](const At&, const Model::Part& part) { return part(192, 288) + part(96, 192) + part(0, 96); }; }),
       {{"added from the last on"}}},
      {"another order of scales in groups of few rows", "vllm-project/vllm#37718", "grouped_gemm kind=fp8_block d_type=f32 splits=5,20,33 N=24 K=272 data=block_scales seed=3",
       modelled([](Model& m) { m.promotion = static_cast<int>(Promotion::fma_rows_first); }, [](const At& at) { return at.of().m < 16; }),
       {{"multiplied by the scale of the rows first", "group"}, {"rows_first", "group"}}},
      {"D rounded toward zero", "truncation in an epilogue", "grouped_gemm kind=bf16 d_type=bf16 splits=9,0,17 N=24 K=64 seed=31", modelled([](Model& m) { m.finish = [](const At& at, float acc, float factor) { return toward_zero(at.view.d_type, acc * factor); }; }), {{"D rounded toward zero"}}},
      {"beta * C added to the rounded product", "epilogue in two kernels", "grouped_gemm kind=bf16 d_type=bf16 beta=0.75 splits=9,0,17 N=24 K=64 seed=32",
       modelled([](Model& m) { m.finish = [](const At& at, float acc, float factor) { const float c = at.of().beta * stored(at.view.d_type, at.view.c, at.of().d_offset + at.i * at.of().n + at.j); return narrowed(at.view.d_type, to_bf16(acc * factor) + c); }; }),
       {{"beta * C added to the rounded product"}}},
      {"alpha applied to the rounded product", "epilogue in two kernels", "grouped_gemm kind=bf16 d_type=bf16 alpha=1.3 splits=9,0,17 N=24 K=64 seed=33",
       modelled([](Model& m) { m.finish = [](const At& at, float acc, float) { return narrowed(at.view.d_type, to_bf16(acc) * at.of().alpha); }; }),
       {{"alpha applied to the rounded product"}}},
      {"one block of K skipped", "a stage that is reused early", "grouped_gemm kind=bf16 d_type=f32 splits=9,0,17 N=24 K=320 data=normal seed=35",
       modelled([](Model& m) { m.sum = [](const At& at, const Model::Part&) { std::uint32_t acc = 0; const TensorCoreUnit& unit = *at.view.unit; for (std::int64_t k = 0; k < at.of().depth; k += unit.products_per_step) { if (k / 64 == 2) continue; second_route::Vector v{at.of().rows.type, at.of().columns.type, {}, {}, acc, {}, {}}; for (std::int64_t e = k; e < k + unit.products_per_step; ++e) { v.a.push_back(at.of().rows.element(at.i, e)); v.b.push_back(at.of().columns.element(at.j, e)); } acc = second_route::step(unit, v); } return std::bit_cast<float>(acc); }; }),
       {{"left out in K 128-191"}}},
  };
  return faults;
}

}  // namespace assay::conformance::planted_faults
