// The fast kernels of the emulated GEMM.

#include "device/tests/emulated_gemm/host_gemm.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/room.h"
#include "reference/arithmetic/unit_table.h"

namespace assay::mutants {

const char* const kRoom = "emulated_tiles";

// Contents that show where f32 steps end, tiles that are full, steps and slices that are not, and depths that are no multiple of 16.
const char* const kLines[] = {
    "grouped_gemm kind=f16 d_type=f32 splits=96 N=24 K=1024 data=specials seed=502",
    "grouped_gemm kind=bf16 d_type=f32 splits=128 N=64 K=64 seed=504",
    "grouped_gemm kind=bf16 d_type=f32 splits=100x1 N=1 K=1 data=full_exponent seed=506",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm80.mma.f16 splits=70 N=24 K=50 data=clustered seed=512",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 plan=unit=sm80.mma.f16 splits=50 N=70 K=24 data=clustered seed=513",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm80.mma.f16,slices=2x32,merge=sequential_f32 splits=128 N=64 K=64 seed=514",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm90.wgmma.f16,slices=3x32,merge=sequential_f32 splits=9 N=16 K=24 seed=516",
    "grouped_gemm kind=bf16 d_type=f32 plan=unit=sm90.wgmma.f16,promote=16,slices=3x48,merge=sequential_f32 splits=9 N=16 K=140 "
    "seed=517",
    "grouped_gemm kind=nvfp4 d_type=f32 plan=unit=narrow.fp4 splits=200 N=64 K=128 scales=edge data=step_edges seed=527",
    "grouped_gemm kind=nvfp4 d_type=f32 plan=unit=narrow.fp4 splits=16 N=16 K=128 scales=extremes data=sparse seed=530",
    "grouped_gemm kind=nvfp4 d_type=f32 plan=unit=sm100.tcgen05.mxf4nvf4,slices=2x64,merge=sequential_f32 splits=128 N=64 K=128 "
    "seed=531",
    "grouped_gemm kind=nvfp4 d_type=f32 plan=unit=sm100.tcgen05.mxf4nvf4,promote=64,slices=2x128,merge=sequential_f32 splits=129 "
    "N=80 K=256 seed=532",
    "grouped_gemm kind=mxfp8 d_type=f32 splits=128 N=16 K=128 data=sparse seed=536",
    "grouped_gemm kind=mxfp8 layout=NT d_type=f32 splits=64,0,33 N=32 K=70 scales=specials data=specials seed=540",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=70 N=70 K=100 data=full_exponent seed=541",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=200 N=64 K=2 data=full_exponent seed=542",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 plan=unit=sm89.mma.fp8 splits=70 N=70 K=100 data=full_exponent seed=546",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=33 N=16 K=5 data=subnormals seed=547",
    "grouped_gemm kind=fp8_block d_type=f32 splits=8 N=24 K=128 seed=549",
    "grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 splits=8,120 N=40 K=300 seed=551",
    "grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=8,130,0 N=40 K=70 seed=552",
    "grouped_gemm kind=f16 d_type=f32 splits=70 N=40 K=5 data=full_exponent seed=554",
    "grouped_gemm kind=bf16 d_type=f32 splits=70 N=40 K=5 data=step_edges seed=555",
    "grouped_gemm kind=bf16 d_type=f32 splits=1,128,0 N=8 K=0 seed=564",
    "grouped_gemm kind=nvfp4 layout=NT d_type=f32 splits=16,48 N=16 K=16 seed=567 fault=unaligned_rows",
    "grouped_gemm kind=mxfp8 d_type=f32 splits=128,9 N=64 K=128 data=sparse seed=570 fault=negative_split",
    "grouped_gemm kind=mxfp8 d_type=f32 splits=128,9 N=64 K=96 data=full_exponent seed=571 fault=negative_split",
    "grouped_gemm kind=mxfp8 x_type=e5m2 layout=NN d_type=f32 splits=40,9 N=96 K=64 data=sparse seed=581 fault=negative_split",
    "grouped_gemm kind=bf16 d_type=f32 splits=128,0 N=64 K=32 seed=572 fault=negative_split",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=40,0 N=64 K=72 seed=573 fault=negative_split",
    "grouped_gemm kind=f16 d_type=f32 splits=2048 N=256 K=16 seed=574",
    "grouped_gemm kind=fp8_per_tensor x_type=e5m2 d_type=f32 splits=1024 N=256 K=32 seed=575",
    "grouped_gemm kind=bf16 d_type=f32 splits=96 N=64 K=1024 data=specials seed=576",
    "grouped_gemm kind=bf16 d_type=f32 splits=512 N=128 K=17 seed=589",
    "grouped_gemm kind=bf16 d_type=f32 splits=70 N=50 K=33 data=uniform seed=578",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=1024 N=64 K=2 data=full_exponent seed=579",
    "grouped_gemm kind=fp8_per_tensor d_type=f32 plan=cublaslt.sm90.fp8_tensor.fast splits=128 N=64 K=2 data=full_exponent "
    "seed=1",
    "grouped_gemm kind=mxfp8 d_type=f32 scale_layout=compact grouped_layout=m_indices alignment=64 splits=64,64 N=16 K=128 "
    "seed=582",
    "grouped_gemm kind=f16 d_type=f16 plan=unit=sm90.wgmma.f16,slices=2x1,merge=sequential_output splits=9 N=16 K=2 "
    "data=subnormals seed=1",
    nullptr};

// Few fraction bits show the exponents at which terms are cut, which those of the units of the table seldom do.
const bool kUnits = [] {
  add_tensor_core_units(
      "name=narrow.fp4 instruction=none operands=e2m1 products=64 fraction_bits=4 scaling=e4m3_per_16 group=16 zero_floor=-139 "
      "evidence=none\n",
      "rooms/emulated_tiles.cc");
  device::host::compute_capability = 90;
  return true;
}();

bool takes(const conformance::CaseLine& line) { return line.op == "grouped_gemm" && line.splits().size() <= 1100; }

// The second call of a trial has its weights, or D of layout NT, in lists.
std::size_t begins_past(const std::string&, const Tensor&) { return 0; }

std::uint32_t run(Case& problem) {
  return conformance::gemm_on_host(problem, device::host::reversed, device::emulated::Route::fastest).status;
}

}  // namespace assay::mutants
