// Quantization to NVFP4.

#include <cstddef>

#include "conformance/backends/device/quantize_call.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/in_workspace.h"
#include "device/tests/mutants/rooms/room.h"

namespace assay::mutants {

const char* const kRoom = "nvfp4";

// What the catalogue has with other sizes only, or not together.
const char* const kLines[] = {
    // Rows alone: more than 256 and than 1024 columns, an end of x within 16 rows, groups that end there, padding, one that is skipped.
    "quantize recipe=nvfp4 direction=rowwise R=24 K=272 seed=71005",
    "quantize recipe=nvfp4 direction=rowwise stochastic=1 R=24 K=256 seed=71006",
    "quantize recipe=nvfp4 direction=rowwise noop=1 R=32 K=48 seed=71007",
    "quantize recipe=nvfp4 direction=rowwise scale_layout=swizzled splits=16,0,34,46 K=272 seed=71002",
    "quantize recipe=nvfp4 direction=rowwise scale_layout=swizzled stochastic=1 splits=16,0,34,46 K=1296 seed=71001",
    "quantize recipe=nvfp4 x_type=f16 direction=rowwise scale_layout=swizzled R=24 K=272 data=subnormals seed=71003",
    // As many tiles and segments of rows as end a list at the end of the workspace.
    "quantize recipe=nvfp4 splits=512,368 K=16 seed=71013",
    // Random bytes that end at a multiple of 16, columns that are no multiple of 8, and of 16 with tiles of 16 x 16.
    "quantize recipe=nvfp4 direction=rowwise two_dimensional=1 stochastic=1 R=16 K=16 seed=71027",
    "quantize recipe=nvfp4 direction=rowwise stochastic=1 R=16 K=30 seed=71039",
    "quantize recipe=nvfp4 stochastic=1 R=34 K=30 seed=71024",
    "quantize recipe=nvfp4 x_type=f32 stochastic=1 R=48 K=40 seed=71026",
    "quantize recipe=nvfp4 direction=columnwise stochastic=1 R=16 K=16 seed=71028",
    "quantize recipe=nvfp4 direction=columnwise stochastic=1 splits=18,14 K=20 seed=71029",
    "quantize recipe=nvfp4 direction=columnwise scale_layout=swizzled two_dimensional=1 R=32 K=40 seed=71012",
    // Blocks of which 4over6 takes the scale for 4.
    "quantize recipe=nvfp4 four_over_six=mse R=64 K=64 data=normal seed=71030",
    // Draws of more than one tile of 128 x 128, also of the number of columns whose tiles are counted wrongly with one place more or
    // less, and of so many columns or rows that a quotient by 127 is another one.
    "quantize recipe=nvfp4 stochastic=1 draws=te_vector_blockwise R=144 K=256 seed=71010",
    "quantize recipe=nvfp4 stochastic=1 draws=te_vector_blockwise R=144 K=130 seed=71011",
    "quantize recipe=nvfp4 direction=columnwise stochastic=1 draws=te_vector_blockwise R=144 K=129 seed=71040",
    "quantize recipe=nvfp4 direction=rowwise stochastic=1 draws=te_vector_blockwise R=16 K=2048 seed=71008",
    "quantize recipe=nvfp4 direction=columnwise stochastic=1 draws=te_vector_blockwise R=2048 K=16 seed=71009",
    // The transform: whole tiles, 10 and 12 rows of a block, the least subnormals, infinities alone, sums that overflow, ties and what
    // is cut.
    "quantize recipe=nvfp4 hadamard=1 R=128 K=64 seed=71014", "quantize recipe=nvfp4 hadamard=1 splits=26,44 K=64 seed=71036",
    "quantize recipe=nvfp4 hadamard=1 R=48 K=16 data=every_code seed=71016",
    "quantize recipe=nvfp4 hadamard=1 amax=given R=128 K=64 data=adversarial_infinities seed=71022",
    "quantize recipe=nvfp4 hadamard=1 sign_mask=51 R=6 K=64 data=adversarial_infinities seed=71041",
    "quantize recipe=nvfp4 hadamard=1 R=32 K=64 data=adversarial_transform seed=71034",
    // -0 among numbers, with and without rows; amaxes beyond those of codes that are cut.
    "quantize recipe=nvfp4 x_type=f16 direction=columnwise zero_sign=positive R=256 K=512 data=full_exponent seed=71052",
    "quantize recipe=nvfp4 x_type=f16 zero_sign=positive R=256 K=512 data=full_exponent seed=71050",
    "quantize recipe=nvfp4 R=64 K=1024 data=full_exponent seed=71051",
    // Blocks with the least scale, and values of 7 to 7.5 under it.
    "quantize recipe=nvfp4 x_type=f16 amax=given R=128 K=1024 data=full_exponent seed=71065", nullptr};

bool takes(const conformance::CaseLine& line) { return line.op == "quantize" && line.text("recipe") == "nvfp4"; }

// x lies at a multiple of 16, and all else where its elements may.
std::size_t begins_past(const std::string& name, const Tensor& tensor) {
  return name == "x" ? 0 : static_cast<std::size_t>(stored_bytes(tensor.type));
}

std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;  // of a device where kernels are launched early
  return run_in_workspace(conformance::quantize_call(conformance::Request::of(problem), 1));
}

}  // namespace assay::mutants
