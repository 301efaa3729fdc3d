// The set-up kernel and the generic kernel of the emulated GEMM.

#include "device/tests/emulated_gemm/host_gemm.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/room.h"
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
    nullptr};

// Few fraction bits show the exponents at which terms are cut, which those of the units of the table seldom do.
const bool kUnits = [] {
  add_tensor_core_units(
      "name=narrow.f16 instruction=none operands=f16 products=8 fraction_bits=2 evidence=none\n"
      "name=narrow.bf16 instruction=none operands=bf16 products=8 fraction_bits=2 evidence=none\n"
      "name=narrow.fp8 instruction=none operands=e4m3,e5m2 products=8 fraction_bits=2 evidence=none\n"
      "name=narrow.fp4 instruction=none operands=e2m1 products=64 fraction_bits=4 scaling=e4m3_per_16 group=16 zero_floor=-139 "
      "evidence=none\n",
      "emulated_gemm_room.cc");
  return true;
}();

bool takes(const conformance::CaseLine& line) { return line.op == "grouped_gemm" && line.splits().size() <= 1100; }

// The second call of a trial has its weights, or D of layout NT, in lists.
std::uint32_t run(Case& problem) { return conformance::gemm_on_host(problem, device::host::reversed).status; }

}  // namespace assay::mutants
