// Quantization to MXFP8.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "conformance/backends/device/quantize_call.h"
#include "device/tests/mutants/rooms/in_workspace.h"
#include "device/tests/mutants/rooms/room.h"

namespace assay::mutants {

const char* const kRoom = "mxfp8";

// What the catalogue has with other sizes only, or not together.
const char* const kLines[] = {
    // Every code, and magnitudes of all sizes: rows, columns and scales that are exchanged are seen.
    "quantize recipe=mxfp8 R=1024 K=32 data=every_code seed=81001",
    "quantize recipe=mxfp8 x_type=f32 direction=rowwise R=1024 K=32 data=every_code seed=81002",
    "quantize recipe=mxfp8 direction=rowwise dbias=1 R=1024 K=32 data=every_code seed=81003",
    "quantize recipe=mxfp8 x_type=f16 R=34 K=40 data=zeros seed=81004",
    "quantize recipe=mxfp8 R=33 K=512 data=full_exponent seed=81005",
    // Swizzled scales of more than one tile each way, whose padding is written.
    "quantize recipe=mxfp8 scale_layout=swizzled R=131 K=264 seed=81006",
    "quantize recipe=mxfp8 direction=columnwise outputs=scale_inv scale_layout=swizzled R=256 K=128 data=full_exponent "
    "seed=81009",
    "quantize recipe=mxfp8 scale_layout=swizzled splits=127,0,1,128,33 K=136 data=full_exponent seed=81101",
    "quantize recipe=mxfp8 x_type=f32 scale_layout=swizzled splits=127,0,1,128,33 K=132 data=full_exponent seed=81102",
    "quantize recipe=mxfp8 scale_layout=swizzled two_dimensional=1 splits=33,0,130 K=132 data=full_exponent seed=81103",
    "quantize recipe=mxfp8 scale_layout=swizzled R=32 K=64 data=full_exponent seed=81110",
    "quantize recipe=mxfp8 scale_layout=swizzled direction=columnwise R=33 K=1032 data=full_exponent seed=81111",
    "quantize recipe=mxfp8 outputs=scale_inv R=33 K=64 data=full_exponent seed=81121",
    "quantize recipe=mxfp8 x_type=f32 scale_layout=swizzled R=131 K=264 data=full_exponent seed=81116",
    "quantize recipe=mxfp8 x_type=f16 scale_layout=swizzled R=34 K=36 data=zeros seed=81118",
    // Codes that begin at other addresses than vectors do, see begins_past().
    "quantize recipe=mxfp8 R=39 K=72 data=full_exponent seed=81124",
    "quantize recipe=mxfp8 R=38 K=72 data=full_exponent seed=81125",
    "quantize recipe=mxfp8 direction=rowwise splits=20,0,19 K=72 data=full_exponent seed=81126",
    // One column, and none.
    "quantize recipe=mxfp8 x_type=f32 R=33 K=1 data=full_exponent seed=81127",
    "quantize recipe=mxfp8 scale_layout=swizzled R=34 K=0 seed=81128",
    "quantize recipe=mxfp8 x_type=f32 scale_layout=swizzled R=34 K=0 seed=81119",
    "quantize recipe=mxfp8 dbias=1 scale_layout=swizzled splits=33,1 K=0 seed=81129",
    "quantize recipe=mxfp8 direction=rowwise scale_layout=swizzled splits=33,1 K=0 seed=81130",
    // Rows alone: more than 1024 columns, an end of x within a load of 256 columns, groups that end there.
    "quantize recipe=mxfp8 direction=rowwise splits=33,0,31 K=1024 data=full_exponent seed=81010",
    "quantize recipe=mxfp8 direction=rowwise R=5 K=264 data=full_exponent seed=81011",
    "quantize recipe=mxfp8 x_type=f16 direction=rowwise scale_layout=swizzled R=33 K=40 seed=81012",
    "quantize recipe=mxfp8 direction=rowwise scale_layout=swizzled splits=127,0,1,128,33 K=40 seed=81013",
    "quantize recipe=mxfp8 direction=rowwise outputs=codes R=33 K=64 seed=81014",
    "quantize recipe=mxfp8 direction=rowwise R=34 K=1032 data=full_exponent seed=81021",
    "quantize recipe=mxfp8 direction=rowwise splits=33,1 K=1032 data=full_exponent seed=81022",
    "quantize recipe=mxfp8 otype=e5m2 direction=rowwise splits=33,1 K=1032 data=full_exponent seed=81024",
    "quantize recipe=mxfp8 x_type=f16 otype=e5m2 direction=rowwise R=34 K=1032 data=full_exponent seed=81027",
    "quantize recipe=mxfp8 direction=rowwise scale_layout=swizzled R=131 K=264 data=full_exponent seed=81112",
    "quantize recipe=mxfp8 direction=rowwise scale_layout=swizzled splits=131,34 K=264 data=full_exponent seed=81113",
    "quantize recipe=mxfp8 direction=rowwise scale_layout=swizzled R=1 K=40 data=full_exponent seed=81123",
    "quantize recipe=mxfp8 direction=rowwise scale_layout=swizzled R=128 K=40 data=full_exponent seed=81115",
    "quantize recipe=mxfp8 direction=rowwise noop=1 R=33 K=64 seed=81117",
    "quantize recipe=mxfp8 direction=rowwise noop=1 splits=33,0,31 K=64 seed=81122",
    // As many groups as a segment of rows can have, and more that are empty.
    "quantize recipe=mxfp8 direction=rowwise splits=64x1 K=8 data=full_exponent seed=81131",
    "quantize recipe=mxfp8 direction=rowwise splits=1,40x0,33 K=8 data=full_exponent seed=81132",
    // Tiles with vectors and without, of which the last has few rows and columns.
    "quantize recipe=mxfp8 otype=e5m2 R=161 K=132 data=full_exponent seed=81029",
    "quantize recipe=mxfp8 direction=rowwise R=161 K=132 data=full_exponent seed=81030",
    "quantize recipe=mxfp8 otype=e5m2 direction=columnwise R=161 K=132 data=full_exponent seed=81031",
    "quantize recipe=mxfp8 dbias=1 R=161 K=132 data=full_exponent seed=81032",
    "quantize recipe=mxfp8 otype=e5m2 R=161 K=131 data=full_exponent seed=81033",
    "quantize recipe=mxfp8 x_type=f16 R=161 K=132 data=full_exponent seed=81034",
    "quantize recipe=mxfp8 x_type=f32 otype=e5m2 R=161 K=132 data=full_exponent seed=81039",
    "quantize recipe=mxfp8 x_type=f32 direction=rowwise R=161 K=132 data=full_exponent seed=81040",
    "quantize recipe=mxfp8 x_type=f32 dbias=1 R=161 K=132 data=full_exponent seed=81042",
    "quantize recipe=mxfp8 x_type=f32 otype=e5m2 R=161 K=131 data=full_exponent seed=81043", nullptr};

bool takes(const conformance::CaseLine& line) { return line.op == "quantize" && line.text("recipe") == "mxfp8"; }

// x lies at a multiple of 16. Codes of some tensors may be stored by vectors of 8 or of 4, others one by one; scales of some by 4.
std::size_t begins_past(const std::string& name, const Tensor& tensor) {
  if (name == "x") return 0;
  if (name == "rowwise_data" || name == "columnwise_data") {
    const std::int64_t rows = tensor.shape.front() % 8;
    return rows == 7 ? 1 : rows == 6 ? 4 : 8;
  }
  if (name == "rowwise_scale_inv" || name == "columnwise_scale_inv") return tensor.bytes.size() / 512 % 2 == 0 ? 1 : 4;
  return static_cast<std::size_t>(stored_bytes(tensor.type));
}

std::uint32_t run(Case& problem) {
  constexpr std::byte kGuard{0xC3};
  // An output without bytes has an address too, and nothing may be stored there.
  std::vector<std::byte> nothing(1 << 14, kGuard);
  conformance::Request request = conformance::Request::of(problem);
  for (auto& [name, output] : request.out) {
    if (output.bytes == 0) output.data = nothing.data();
  }
  const std::uint32_t status = run_in_workspace(conformance::quantize_call(request, 1));
  if (!std::all_of(nothing.begin(), nothing.end(), [](std::byte each) { return each == kGuard; })) std::abort();
  return status;
}

}  // namespace assay::mutants
