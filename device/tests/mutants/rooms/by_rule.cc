// Quantization by a scale rule.

#include <cstddef>

#include "conformance/backends/device/rule_call.h"
#include "device/support/call_device.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/in_workspace.h"
#include "device/tests/mutants/rooms/room.h"

namespace assay::device {
CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;
}  // namespace assay::device

namespace assay::mutants {

const char* const kRoom = "by_rule";

// What the catalogue's standard profile has with other sizes only, or not at all.
const char* const kLines[] = {
    // More than 64 groups, 1024 of them with too many rows, rows that end within a byte or a tile, and more groups than rows.
    "quantize_by_rule preset=deepgemm block=128x128 splits=70x3 K=16 seed=64001",
    "quantize_by_rule preset=te splits=1024x1 K=16 seed=64002 fault=excess_rows",
    "quantize_by_rule preset=torchao.mx_floor otype=e2m1 transposed=1 splits=2,0,6 K=33 seed=64020",
    "quantize_by_rule preset=torchao.mx_floor otype=e2m1 transposed=1 splits=2,0,6 K=33 seed=64041 fault=negative_split",
    "quantize_by_rule preset=torchao.mx_floor otype=e2m3 transposed=1 splits=4,0,8 K=33 seed=64042 fault=negative_split",
    "quantize_by_rule preset=te transposed=1 splits=0,0,0,1,1 K=16 seed=64043",
    "quantize_by_rule preset=te transposed=1 splits=130,0,128 K=40 seed=64044",
    // Wrong splits: scales that are cleared, amaxes of rows and of groups, joined values, transposed codes.
    "quantize_by_rule preset=te.mx storage=swizzled_128x4 splits=5,0,17,9 K=144 seed=64045 fault=negative_split",
    "quantize_by_rule preset=te.mx storage=swizzled_128x4 splits=5,0,17,9 K=144 seed=64046 fault=excess_rows",
    "quantize_by_rule preset=nvfp4.te_row_scaled splits=5,0,17,9 K=144 seed=64047 fault=negative_split",
    "quantize_by_rule preset=nvfp4.te_row_scaled splits=5,0,17,9 K=144 seed=64048 fault=excess_rows",
    "quantize_by_rule preset=nvfp4.torchao splits=5,0,17,9 K=144 seed=64049 fault=negative_split",
    "quantize_by_rule preset=nvfp4.torchao splits=5,0,17,9 K=144 seed=64050 fault=excess_rows",
    "quantize_by_rule preset=language.sum splits=5,0,17,9 K=144 seed=64051 fault=negative_split",
    "quantize_by_rule preset=te transposed=1 splits=5,0,17,9 K=144 seed=64004 fault=excess_rows",
    "quantize_by_rule preset=nvfp4.te_row_scaled splits=8,60x0 K=16 seed=64075 fault=excess_rows",
    // Blocks of three, five and ten columns, columns that end within a block or within four, and one row that is transposed.
    "quantize_by_rule preset=te block=1x3 splits=5,0,33 K=135 seed=64052",
    "quantize_by_rule preset=te block=1x5 R=9 K=40 seed=64003",
    "quantize_by_rule preset=te block=1x10 x_type=f16 splits=5,0,33 K=45 seed=64053",
    "quantize_by_rule preset=te block=1x1 R=64 K=1 seed=64054", "quantize_by_rule preset=te block=1x1 R=64 K=5 seed=64055",
    "quantize_by_rule preset=te transposed=1 R=1 K=2048 seed=64021",
    "quantize_by_rule preset=vllm.swiglu transposed=1 R=9 K=40 seed=64056",
    "quantize_by_rule preset=language.sum R=5 K=37 seed=64057", "quantize_by_rule preset=language.sum R=5 K=39 seed=64058",
    // Parts of the workspace that end where it ends: instructions, largest values, and fewer of these than rows.
    "quantize_by_rule preset=torchao.mx_floor R=0 K=64 seed=64059", "quantize_by_rule preset=language.sum R=4 K=256 seed=64060",
    "quantize_by_rule preset=language.sum R=1000 K=16 seed=64061",
    "quantize_by_rule preset=language.itself.even block=allx1 R=5 K=64 seed=64065",
    "quantize_by_rule preset=te block=128x1 splits=64x1 K=1 seed=64067",
    // Several tiles of swizzled scales, whose columns are full.
    "quantize_by_rule preset=torchao.mx_floor storage=swizzled_128x4 R=300 K=256 seed=64068",
    "quantize_by_rule preset=torchao.mx_floor storage=swizzled_8x4 R=20 K=128 seed=64069",
    // Zeros of both signs, each as a block, and a sum of such.
    "quantize_by_rule preset=language.sum R=64 K=1 data=zeros seed=64062",
    "quantize_by_rule preset=language.max R=64 K=1 data=zeros seed=64063",
    "quantize_by_rule preset=language.max R=64 K=16 data=zeros seed=64070",
    // Largest values beside powers of two: of every exponent, and subnormal.
    "quantize_by_rule preset=vllm.group.ue8m0.log2 x_type=f32 R=128 K=1024 data=adversarial_amax seed=64033",
    "quantize_by_rule preset=microxcaling R=9 K=160 data=full_exponent seed=64031",
    "quantize_by_rule preset=torchao.mx_rceil x_type=f32 R=65 K=160 data=near_underflow seed=64032",
    "quantize_by_rule preset=language.log2 R=33 K=72 data=every_special seed=64005",
    "quantize_by_rule preset=language.log2 x_type=f32 R=33 K=72 data=every_special seed=64064",
    "quantize_by_rule preset=language.log2 x_type=f32 R=33 K=72 data=near_underflow seed=64080",
    "quantize_by_rule preset=language.log2 R=9 K=144 data=subnormals seed=64014",
    // Values of columns behind the matrix that are not 0, a sum that is -0, and amaxes that are given where codes use no value of the
    // block, whose ranks fill their part of the workspace.
    "quantize_by_rule preset=language.sum.shifted R=5 K=37 seed=64201",
    "quantize_by_rule preset=language.sum.negative R=5 K=32 data=zeros seed=64202",
    "quantize_by_rule preset=language.outer amax=given R=64 K=16 seed=64203",
    // Activations of one instruction, of 0 that give more than others, and with the least magnitude of f32.
    "quantize_by_rule preset=language.gated.up transposed=1 R=9 K=40 seed=64204",
    "quantize_by_rule preset=language.gated.shifted R=5 K=39 seed=64205",
    "quantize_by_rule preset=language.gated.least R=5 K=40 seed=64206",
    // A function of three values, an exponential, and more instructions than one launch takes.
    "quantize_by_rule preset=language.fma x_type=f32 R=5 K=40 seed=64207",
    "quantize_by_rule preset=language.exp x_type=f32 R=33 K=72 seed=64208",
    "quantize_by_rule preset=language.long R=5 K=40 seed=64209", nullptr};

bool takes(const conformance::CaseLine& line) { return line.op == "quantize_by_rule"; }

// Every tensor may lie wherever its elements may.
std::size_t begins_past(const std::string&, const Tensor& tensor) { return static_cast<std::size_t>(stored_bytes(tensor.type)); }

// A wrong call is made once more without a status word.
std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;  // approximate instructions are predicted for it
  const conformance::DeviceCall call = conformance::rule_call(conformance::Request::of(problem));
  const std::uint32_t status = run_in_workspace(call);
  if (status == 0) return 0;
  const auto untold = [&](device::Stream stream, void* workspace, std::uint32_t*) { call.enqueue(stream, workspace, nullptr); };
  run_in_workspace({call.workspace_bytes, untold});
  return status;
}

}  // namespace assay::mutants
