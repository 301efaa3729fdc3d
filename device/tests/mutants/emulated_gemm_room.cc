// The set-up kernel and the generic kernel of the emulated GEMM.

#include "device/tests/emulated_gemm/host_gemm.h"
#include "device/tests/mutants/room.h"

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

bool takes(const conformance::CaseLine& line) { return line.op == "grouped_gemm" && line.splits().size() <= 1100; }

std::uint32_t run(Case& problem) { return conformance::gemm_on_host(problem).status; }

}  // namespace assay::mutants
