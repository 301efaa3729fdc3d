// The set-up kernel and the generic kernel of the emulated GEMM.

#include "device/tests/emulated_gemm/host_gemm.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/room.h"
#include "reference/arithmetic/unit_table.h"

namespace assay::mutants {

const char* const kRoom = "emulated_gemm";

// What the catalogue has with other sizes only, or not together.
const char* const kLines[] = {
    // More spans than the set-up kernel has threads, the last round with fewer; groups of several blocks.
    "grouped_gemm kind=bf16 grouped_layout=m_indices alignment=1 splits=1500,0,3 N=8 K=16 beta=1 seed=1",
    "grouped_gemm kind=bf16 grouped_layout=m_indices alignment=4 splits=4096,4 N=8 K=8 seed=2",
    // Trees: slices past the end of k, promotion inside, another order of terms.
    "grouped_gemm kind=bf16 plan=unit=sm90.wgmma.f16,slices=13x16,merge=tree_f32 splits=5,0 N=24 K=72 data=clustered seed=3",
    "grouped_gemm kind=fp8_block plan=unit=sm90.wgmma.fp8,promote=64,association=cols_first,slices=5x64,merge=(4+(3+(2+(1+0)))) "
    "d_type=f32 splits=9,0,7 N=24 K=304 data=clustered seed=4",
    // Rescaled chains whose last interval is short.
    "grouped_gemm kind=fp8_block weight_block=1x128 plan=unit=sm90.mma.fp8,promote=128,association=rescale_in_turn d_type=f32 "
    "splits=9,7 N=24 K=304 data=clustered seed=5",
    "grouped_gemm kind=fp8_block layout=NN plan=unit=sm100.mma.fp8,promote=128,association=rescale_by_ratio splits=9 N=272 K=24 "
    "scales=specials seed=6",
    // Rows of groups in other places, contents that no call may have, betas, and as many groups as the set-up kernel has threads.
    "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=5,0,9,3 N=16 K=32 grouped_layout=m_indices alignment=4 seed=160",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=5,0,9,3 N=16 K=32 grouped_layout=psum alignment=4 seed=161",
    "grouped_gemm kind=bf16 layout=NT splits=3,0,9 N=3 K=2 grouped_layout=psum alignment=8 seed=163 fault=negative_split",
    "grouped_gemm kind=bf16 splits=3,0,9 N=3 K=2 grouped_layout=m_indices alignment=1 seed=169 fault=wrong_group",
    "grouped_gemm kind=bf16 splits=1500,0,3 N=1 K=1 grouped_layout=m_indices alignment=1 seed=172 fault=wrong_group",
    "grouped_gemm kind=bf16 splits=1024x1 N=1 K=2 seed=176 fault=excess_rows",
    "grouped_gemm kind=bf16 splits=5,0,9,3 N=16 K=32 seed=179 fault=excess_rows",
    "grouped_gemm kind=bf16 layout=NT splits=5,0,9,3 N=16 K=32 seed=181 fault=excess_rows",
    "grouped_gemm kind=bf16 layout=NT d_type=e4m3 arch=sm100 splits=5,0,7 N=24 K=40 seed=187 fault=negative_split",
    "grouped_gemm kind=bf16 layout=NN d_type=e4m3 arch=sm100 splits=1,0,1 N=1 K=1 seed=189 fault=negative_split",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 beta=1 plan=unit=sm90.mma.f16,epilogue=reduce_add splits=1,0,1 N=1 K=1 seed=193 "
    "fault=negative_split",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 plan=unit=sm90.mma.f16,slices=2x5,merge=sequential_f32 splits=10,0,7 N=4 K=4 "
    "seed=196",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 plan=unit=sm90.mma.f16,slices=2x5,merge=sequential_f32 splits=5,0,7 N=1 K=1 "
    "seed=197 fault=negative_split",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 plan=unit=sm90.mma.f16,slices=2x1,merge=sequential_f32 splits=3x1 N=1 K=1 "
    "seed=198 fault=negative_split",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=3,0,2,1,0,0,4,1,1,2,3 N=3 K=5 seed=420",
    "grouped_gemm kind=bf16 layout=NN d_type=e4m3 arch=sm100 splits=5,0,7 N=0 K=3 seed=424 fault=negative_split",
    "grouped_gemm kind=nvfp4 layout=NT d_type=f32 splits=16,0 N=16 K=16 seed=425 fault=unaligned_rows",
    "grouped_gemm kind=mxfp8 scale_layout=compact splits=120,8 N=16 K=32 grouped_layout=psum alignment=8 seed=426",
    // Factors and addends: groups of no row or one under special scales, alpha of 0, 1 and 2, f32 values that are ties of a D in FP8.
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 alpha=0.3 splits=1,3,0,0,2,0,0 N=3 K=5 scales=specials seed=102",
    "grouped_gemm kind=nvfp4 d_type=f32 alpha=0.3 splits=5,3,9 N=32 K=48 seed=105",
    "grouped_gemm kind=bf16 d_type=f32 alpha=0,1,2,-1 beta=1 arch=sm100 plan=unit=sm100.tcgen05.f16,epilogue=reduce_add "
    "splits=5,3,9,2 N=16 K=16 seed=112",
    "grouped_gemm kind=bf16 d_type=f32 alpha=0,1,2,nan beta=1 arch=sm100 plan=unit=sm100.tcgen05.f16,epilogue=reduce_add_ftz "
    "splits=5,3,9,2 N=16 K=16 data=sparse addends=negative_zeros seed=113",
    "grouped_gemm kind=bf16 d_type=f32 alpha=0,1,2,nan arch=sm100 splits=5,3,9,2 N=16 K=16 data=sparse seed=114",
    "grouped_gemm kind=bf16 d_type=f32 alpha=0,1,2,nan arch=sm100 splits=5,3,9,2 N=16 K=1 seed=115",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 alpha=0.3 beta=1 plan=unit=sm90.wgmma.f16,epilogue=reduce_add splits=3,0,1 N=13 "
    "K=12 addends=every_special seed=119",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 beta=0.3 splits=3,0,1 N=13 K=12 seed=120",
    "grouped_gemm kind=bf16 d_type=e4m3 alpha=2.388723134994507 arch=sm100 splits=40 N=8 K=8 data=integers seed=303",
    // Sizes at which one block of scales more or less begins, and tensors that end with a tile of them.
    "grouped_gemm kind=fp8_block d_type=f32 splits=2,3 N=16 K=129 seed=131",
    "grouped_gemm kind=fp8_block d_type=f32 splits=2,3 N=129 K=16 seed=132",
    "grouped_gemm kind=fp8_block d_type=f32 splits=2,3 N=130 K=516 seed=133",
    "grouped_gemm kind=mxfp8 layout=NT d_type=f32 splits=129,5,33,1,130 N=144 K=16 seed=138",
    "grouped_gemm kind=mxfp8 layout=NN d_type=f32 scale_layout=compact splits=2,3 N=130 K=33 seed=143",
    "grouped_gemm kind=mxfp8 d_type=f32 scale_layout=compact splits=128 N=16 K=128 seed=145",
    "grouped_gemm kind=nvfp4 d_type=f32 splits=3 N=144 K=80 seed=149",
    "grouped_gemm kind=nvfp4 d_type=f32 splits=130 N=16 K=64 seed=151",
    "grouped_gemm kind=nvfp4 d_type=f32 splits=130 N=16 K=1040 seed=152",
    "grouped_gemm kind=fp8_block d_type=f32 splits=2,3 N=128 K=16 seed=429",
    "grouped_gemm kind=fp8_block d_type=f32 splits=2,3 N=16 K=128 seed=430",
    "grouped_gemm kind=fp8_block layout=NN d_type=f32 splits=2,3 N=512 K=130 seed=431",
    "grouped_gemm kind=mxfp8 layout=NT d_type=f32 scale_layout=compact splits=128,5 N=16 K=16 seed=433",
    "grouped_gemm kind=mxfp8 d_type=f32 splits=130 N=16 K=128 seed=435",
    // Terms of plans: slices, trees, flushed subnormals, rescaled chains under negative scales, a sum in memory.
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm90.wgmma.f16,slices=2x16,merge=tree_f32 splits=5,3 N=24 K=32 seed=202",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm90.wgmma.f16,slices=2x16,merge=sequential_f32 splits=5,3 N=24 K=32 seed=203",
    "grouped_gemm kind=bf16 d_type=f16 plan=unit=sm90.wgmma.f16,slices=2x16,merge=sequential_output splits=5,3 N=24 K=32 "
    "seed=206",
    "grouped_gemm kind=fp8_block d_type=f32 plan=unit=sm90.wgmma.fp8,promote=128,association=scales_first,subnormals=flushed "
    "splits=9,0,17 N=136 K=304 scales=edge seed=209",
    "grouped_gemm kind=fp8_block d_type=f32 plan=unit=sm90.wgmma.fp8,promote=128,association=rows_first,subnormals=flushed "
    "splits=9,0,17 N=136 K=304 scales=edge seed=210",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column d_type=f32 "
    "plan=unit=sm90.wgmma.fp8,promote=128,scale_vectors=scales_first,subnormals=flushed splits=9,0,17 N=48 K=160 scales=edge "
    "seed=214",
    "grouped_gemm kind=fp8_per_tensor layout=NT scaling=per_row_column d_type=e4m3 "
    "plan=unit=sm90.wgmma.fp8,scale_vectors=scales_first splits=9,0,17,1,0,0 N=48 K=40 scales=specials seed=218",
    "grouped_gemm kind=fp8_per_tensor layout=NT scaling=per_row_column d_type=f32 beta=1 "
    "plan=unit=sm90.wgmma.fp8,scale_vectors=scales_first,epilogue=reduce_add splits=9,0,17,1,0,0 N=48 K=40 scales=specials "
    "seed=219",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm90.wgmma.f16,promote=16,subnormals=flushed splits=9,3 N=24 K=72 "
    "data=clustered seed=221",
    "grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 plan=unit=sm90.mma.fp8,promote=128,association=rescale_in_turn "
    "splits=9,7 N=24 K=304 data=clustered seed=223",
    "grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 plan=unit=sm90.mma.fp8,promote=128,association=rescale_by_ratio "
    "splits=9,7 N=24 K=304 data=clustered seed=224",
    "grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 plan=unit=sm90.wgmma.fp8,promote=128,association=rescale_in_turn "
    "splits=9,7 N=24 K=304 scales=negative data=sparse seed=225",
    "grouped_gemm kind=fp8_block d_type=f32 "
    "plan=unit=sm90.wgmma.fp8,promote=128,association=rescale_in_turn,slices=2x128,merge=sequential_f32 splits=5 N=16 K=256 "
    "scales=negative data=zeros seed=413",
    // Units of other accumulators, and of few fraction bits, beside small, special and no values.
    "grouped_gemm kind=fp8_per_tensor x_type=e5m2 d_type=f32 plan=unit=narrow.f16,widen=f16 splits=17 N=24 K=64 data=subnormals "
    "seed=402",
    "grouped_gemm kind=fp8_per_tensor x_type=e5m2 w_type=e5m2 d_type=f32 plan=unit=narrow.f16,widen=f16 splits=17 N=24 K=64 "
    "data=subnormals seed=403",
    "grouped_gemm kind=fp8_per_tensor x_type=e5m2 d_type=f32 plan=unit=narrow.bf16,widen=bf16 splits=17 N=24 K=64 "
    "data=subnormals seed=404",
    "grouped_gemm kind=fp8_per_tensor x_type=e5m2 w_type=e5m2 d_type=f32 plan=unit=narrow.fp8 splits=17 N=24 K=64 "
    "data=subnormals seed=408",
    "grouped_gemm kind=nvfp4 d_type=f32 plan=unit=narrow.fp4 splits=17 N=32 K=128 data=sparse seed=409",
    "grouped_gemm kind=nvfp4 d_type=f32 plan=unit=narrow.fp4 splits=200 N=32 K=128 scales=edge data=step_edges seed=411",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=narrow.bf16 splits=9 N=8 K=64 data=clustered seed=441",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 plan=unit=narrow.fp8 splits=64 N=32 K=32 data=one_hot seed=460",
    "grouped_gemm kind=f16 d_type=f32 plan=unit=sm90.wgmma.f16.to_f16 splits=8,3 N=16 K=72 data=near_underflow seed=1204",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm90.wgmma.f16 splits=8,3 N=16 K=72 data=subnormals seed=1259",
    "grouped_gemm kind=f16 d_type=f32 plan=unit=sm90.wgmma.f16.to_f16 splits=8,3 N=16 K=72 data=subnormals seed=1267",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 plan=unit=sm90.wgmma.f16,widen=bf16 splits=8,3 N=16 K=72 data=subnormals "
    "seed=1307",
    "grouped_gemm kind=f16 d_type=f32 plan=unit=sm90.wgmma.f16.to_f16 splits=8,3 N=16 K=72 data=full_exponent seed=1330",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 plan=unit=sm90.mma.fp8 splits=8,3 N=16 K=72 data=full_exponent seed=1337",
    "grouped_gemm kind=fp8_per_tensor x_type=e5m2 w_type=e5m2 d_type=f32 plan=unit=sm90.mma.fp8 splits=8,3 N=16 K=72 "
    "data=full_exponent seed=1338",
    "grouped_gemm kind=fp8_per_tensor w_type=e5m2 d_type=f32 plan=unit=sm90.mma.fp8.to_f16 splits=8,3 N=16 K=72 "
    "data=full_exponent seed=1351",
    "grouped_gemm kind=fp8_per_tensor x_type=e5m2 w_type=e5m2 d_type=f32 plan=unit=sm90.wgmma.f16,widen=bf16 splits=8,3 N=16 "
    "K=72 data=full_exponent seed=1371",
    "grouped_gemm kind=f16 d_type=f32 plan=unit=sm90.wgmma.f16.to_f16 splits=8,3 N=16 K=72 data=every_special seed=1393",
    "grouped_gemm kind=fp8_per_tensor x_type=e5m2 w_type=e5m2 d_type=f32 plan=unit=sm90.wgmma.fp8 splits=72 N=8 K=48 "
    "data=step_edges seed=3017",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 plan=unit=sm90.mma.fp8 splits=72 N=8 K=48 data=step_edges seed=3019",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 plan=unit=sm89.mma.fp8.to_f16 splits=72 N=8 K=48 data=step_edges seed=3025",
    "grouped_gemm kind=fp8_per_tensor x_type=e5m2 d_type=f32 plan=unit=sm90.mma.fp8.to_f16 splits=72 N=8 K=48 data=step_edges "
    "seed=3033",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm90.wgmma.f16 splits=136 N=8 K=48 data=step_edges seed=3044",
    "grouped_gemm kind=f16 d_type=f32 plan=unit=sm90.wgmma.f16.to_f16 splits=136 N=8 K=48 data=step_edges seed=3054",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=narrow.bf16 splits=9 N=8 K=20 data=clustered seed=471",
    // As many groups as threads, of a row each.
    "grouped_gemm kind=bf16 d_type=f32 splits=1024x1 N=1 K=2 seed=473", nullptr};

// Few fraction bits show the exponents at which terms are cut, which those of the units of the table seldom do.
const bool kUnits = [] {
  add_tensor_core_units(
      "name=narrow.f16 instruction=none operands=f16 products=8 fraction_bits=2 evidence=none\n"
      "name=narrow.bf16 instruction=none operands=bf16 products=8 fraction_bits=2 evidence=none\n"
      "name=narrow.fp8 instruction=none operands=e4m3,e5m2 products=8 fraction_bits=2 evidence=none\n"
      "name=narrow.fp4 instruction=none operands=e2m1 products=64 fraction_bits=4 scaling=e4m3_per_16 group=16 zero_floor=-139 "
      "evidence=none\n",
      "rooms/emulated_gemm.cc");
  return true;
}();

bool takes(const conformance::CaseLine& line) { return line.op == "grouped_gemm" && line.splits().size() <= 1100; }

// The second call of a trial has its weights, or D of layout NT, in lists.
std::size_t begins_past(const std::string&, const Tensor&) { return 0; }

std::uint32_t run(Case& problem) { return conformance::gemm_on_host(problem, device::host::reversed).status; }

}  // namespace assay::mutants
