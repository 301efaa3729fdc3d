// Products whose operands, scales, groups or epilogue are wrong.

#include "conformance/tests/explain/planted_faults.h"
#include "conformance/tests/explain/product_model.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance::planted_faults {
namespace {

std::function<void(Case&, const Case*)> by_call(std::function<void(Case&)> change) {
  return [change](Case& call, const Case*) { call.out["d"] = redone(call, "d", change); };
}

std::int64_t tile(const At& at, std::int64_t height, std::int64_t width) {
  std::int64_t number = 0;
  for (std::size_t g = 0; g < at.group; ++g) {
    const GroupView& group = at.view.groups[g];
    number += (group.m + height - 1) / height * ((group.n + width - 1) / width);
  }
  return number + at.i / height * ((at.of().n + width - 1) / width) + at.j / width;
}

const char* const kBlock = "grouped_gemm kind=fp8_block d_type=f32 splits=5,0,33 N=136 K=272 data=block_scales seed=45";
const char* const kTiles = "grouped_gemm kind=fp8_block d_type=f32 splits=70,0,40 N=160 K=272 data=block_scales seed=46";

}  // namespace

const std::vector<Fault>& product_faults() {
  static const std::vector<Fault> faults{
      {"the scale of A applied twice from the second wave of tiles on", "NVIDIA/cutlass#3596", kTiles,
       modelled([](Model& m) { m.row_scale = [](const At& at, std::int64_t k) { const float s = at.of().rows.scale.value(at.i, k); return s * s; }; }, [](const At& at) { return tile(at, 64, 64) >= 4; }),
       {{"D's rows applied twice", "from tile 4 on"}, {"D's rows applied twice", "from row"}, {"D's rows applied twice", "group"}}},
      {"scales of the previous 128 of K from tile 8 on", "issue of an FP8 block product", kTiles,
       modelled([](Model& m) { m.row_scale = [](const At& at, std::int64_t k) { return at.of().rows.scale.value(at.i, std::max<std::int64_t>(k - 128, 0)); }; }, [](const At& at) { return tile(at, 32, 32) >= 8; }),
       {{"D's rows of the previous 128 of K", "from tile 8 on"}}},
      {"split-K slices have the scales of the first", "NVIDIA/cutlass#3615", "grouped_gemm kind=fp8_block d_type=f32 plan=unit=sm90.wgmma.fp8,promote=128,association=rows_first,slices=2x256,merge=sequential_f32 splits=9,0,17 N=24 K=512 data=block_scales seed=48",
       modelled([](Model& m) {
         m.row_scale = [](const At& at, std::int64_t k) { return at.of().rows.scale.value(at.i, k % 256); };
         m.column_scale = [](const At& at, std::int64_t k) { return at.of().columns.scale.value(at.j, k % 256); };
         m.sum = [](const At& at, const Model::Part& part) { return part(0, 256) + part(256, at.of().depth); };
       }),
       {{"both operands", "first slice of 2 blocks"}}},
      {"tiles in swizzled order take the scales of others", "NVIDIA/cutlass#3394", kTiles,
       modelled([](Model& m) { m.row_scale = [](const At& at, std::int64_t k) { return at.of().rows.scale.value(std::min(at.i ^ 16, at.of().m - 1), k); }; }),
       {{"D's rows of rows exchanged in blocks of 16"}}},
      {"each group has the factor of the first", "NVIDIA/cutlass#3392", "grouped_gemm kind=mxfp8 layout=NT d_type=f32 alpha=1.5,2.5,0.75 splits=64,32,64 N=32 K=32 seed=51",
       by_call([](Case& call) { auto* alpha = call.in.at("alpha").as<float>(); alpha[1] = alpha[2] = alpha[0]; }),
       {{"alpha of the first group for all"}}},
      {"the pointer to the scales of B stands still", "sgl-project/sglang#20819", kBlock,
       modelled([](Model& m) { m.column_scale = [](const At& at, std::int64_t) { return at.of().columns.scale.value(at.j, 0); }; }),
       {{"D's columns of the first 128 of K"}, {"first scale of the operand of D's columns"}}},
      {"the scale of the first expert for all", "vllm-project/vllm#57092", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=9,6,11 N=24 K=64 seed=227",
       modelled([](Model& m) { m.column_scale = [](const At& at, std::int64_t) { return at.view.groups[0].columns.scale.value(0, 0); }; }),
       {{"w_rowwise_scale_inv of the first group"}, {"scales", "D's columns", "first group"}}},
      {"E5M2 read as E4M3", "NVIDIA/TransformerEngine#3342", "grouped_gemm kind=fp8_block layout=NN dy_type=e5m2 d_type=f32 splits=17,0,5 N=144 K=136 seed=46",
       by_call([](Case& call) { call.in.at("dy_rowwise_data").type = Format::e4m3; }),
       {{"taken for e4m3"}, {"e4m3 in place of e5m2"}}},
      {"the weight gradient of an empty group is not written", "pytorch/pytorch#172439", "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=14,0,8 N=16 K=24 seed=56",
       [](Case& call, const Case*) { auto& bytes = call.out.at("d").bytes; std::fill_n(bytes.begin() + 16 * 24 * 4, 16 * 24 * 4, kPoison); },
       {{"d not written", "group 1"}}},
      {"the last rows are not written", "pytorch/pytorch#154557", "grouped_gemm kind=bf16 d_type=f32 splits=5,0,17 N=24 K=40 seed=1029",
       [](Case& call, const Case*) { auto& bytes = call.out.at("d").bytes; std::fill(bytes.end() - 4 * 24 * 4, bytes.end(), kPoison); },
       {{"d not written", "row"}}},
      {"one group's weight gradient sums the rows behind it", "NVIDIA/TransformerEngine#3484", "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=29,41,23 N=16 K=24 seed=2561",
       [](Case& call, const Case*) {
         // The first group sums 32 rows.
         Tensor other = redone(call, "d", [](Case& of) { auto* splits = of.in.at("splits").as<std::int64_t>(); splits[0] = 32, splits[1] = 38; });
         take(call.out.at("d"), other, [](std::int64_t row, std::int64_t) { return row < 16; });
       },
       {{"K rounded up to a multiple of", "group 0"}}},
      {"dgrad reads the weights as forward does", "table of faults, A11", "grouped_gemm kind=bf16 layout=NN d_type=f32 splits=9,0,20 N=32 K=48 seed=67",
       by_call([](Case& call) {
         // Each [N,K] read as if it were stored [K,N].
         for (auto& [name, tensor] : call.in) {
           if (name[0] != 'w') continue;
           const Tensor right = tensor;
           for (std::int64_t g = 0; g < 3; ++g)
             for (std::int64_t n = 0; n < 32; ++n)
               for (std::int64_t k = 0; k < 48; ++k) tensor.as<std::uint16_t>()[g * 32 * 48 + n * 48 + k] = right.as<std::uint16_t>()[g * 32 * 48 + k * 32 + n];
         }
       }),
       {{"transposed"}, {"columnwise"}}},
      {"the bias of one group for all", "table of faults, A12", "grouped_gemm kind=f16 d_type=f16 bias=1 splits=5,3,17 N=32 K=64 data=normal seed=58",
       by_call([](Case& call) { auto* bias = call.in.at("bias").as<std::uint16_t>(); for (int n = 0; n < 32; ++n) bias[32 + n] = bias[64 + n] = bias[n]; }),
       {{"bias of the first group for all"}}},
      {"the bias left out in the last group", "table of faults, A12", "grouped_gemm kind=f16 d_type=f16 bias=1 splits=5,3,17 N=32 K=64 data=normal seed=59",
       by_call([](Case& call) { auto* bias = call.in.at("bias").as<std::uint16_t>(); std::fill_n(bias + 64, 32, std::uint16_t{0}); }),
       {{"bias left out", "group 2"}, {"bias taken as zeros", "group 2"}, {"without bias", "group 2"}}},
      {"the weight gradient transposed", "table of faults, A17", "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=14,0,8 N=24 K=24 seed=61",
       [](Case& call, const Case*) {
         const Tensor right = call.out.at("d");
         for (std::int64_t g = 0; g < 3; ++g)
           for (std::int64_t n = 0; n < 24; ++n)
             for (std::int64_t k = 0; k < 24; ++k) call.out.at("d").as<float>()[(g * 24 + n) * 24 + k] = right.as<float>()[(g * 24 + k) * 24 + n];
       },
       {{"transposed"}}},
      {"accumulation ignored", "table of faults, A21", "grouped_gemm kind=bf16 layout=NT d_type=f32 beta=1 splits=14,3,8 N=24 K=16 seed=62",
       by_call([](Case& call) { auto& c = call.in.at("c").bytes; std::fill(c.begin(), c.end(), std::byte{0}); }),
       {{"beta * C left out"}, {"beta=0"}, {"c taken as zeros"}, {"without c"}}},
      {"accumulated twice", "table of faults, A21", "grouped_gemm kind=bf16 layout=NT d_type=f32 beta=1 splits=14,3,8 N=24 K=16 seed=63",
       by_call([](Case& call) { call.in.at("c").bytes = call.out.at("d").bytes; }),
       {{"c holding the result already"}}},
      {"a tile with the weight of another group", "table of faults, E2", "grouped_gemm kind=bf16 d_type=f32 splits=40,24,33 N=32 K=64 seed=2510",
       [](Case& call, const Case*) {
         // Rows 32 on of the first group with the weight of the second.
         Tensor other = redone(call, "d", [](Case& of) { for (auto& [name, tensor] : of.in) { if (name[0] == 'w') std::copy_n(tensor.bytes.begin() + 32 * 64 * 2, 32 * 64 * 2, tensor.bytes.begin()); } });
         take(call.out.at("d"), other, [](std::int64_t row, std::int64_t) { return row >= 32 && row < 40; });
       },
       {{"with w", "of the group after", "row"}}},
      {"the last row of a group lost", "table of faults, E3", "grouped_gemm kind=bf16 d_type=f32 splits=5,6,9 N=24 K=40 seed=2511",
       [](Case& call, const Case*) { auto& bytes = call.out.at("d").bytes; for (const std::int64_t row : {4, 10, 19}) std::fill_n(bytes.begin() + row * 24 * 4, 24 * 4, kPoison); },
       {{"d not written", "last row"}}},
      {"a replay with the splits before", "deepseek-ai/DeepGEMM#444", "grouped_gemm kind=bf16 d_type=f32 splits=5,2,17,9 N=24 K=40 seed=2563 replay=4:splits",
       [](Case& call, const Case* before) { call.out["d"] = redone(call, "d", [&](Case& of) { of.in["splits"] = before->in.at("splits"); }); },
       {{"splits of the call before"}}},
      {"scales kept from the call before", "table of faults, A24", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=5,2,17,9 N=24 K=64 seed=2564 replay=4:data,scales",
       [](Case& call, const Case* before) { call.out["d"] = redone(call, "d", [&](Case& of) { of.in["w_rowwise_scale_inv"] = before->in.at("w_rowwise_scale_inv"); }); },
       {{"w_rowwise_scale_inv of the call before"}}},
  };
  return faults;
}

}  // namespace assay::conformance::planted_faults
