// FP8 with a grid of 13 fraction bits and an FP22 accumulator: wgmma of SM90 (32 products per step), mma.sync of SM89 (16).
//
//   bound     f32 instructions: 3 per product and about half of one for the rest; 8 TMAC/s of an H200
//   matches   reference/gemm/grouped_gemm_scalar.cc

#include "device/emulated_gemm/compute_tile.cuh"

namespace assay::device::emulated {
namespace {

constexpr const char* kName = "emulated GEMM: fp8";

bool is_fp8(Format type) { return type == Format::e4m3 || type == Format::e5m2; }

bool takes(const GemmCall& call) {
  const Arithmetic& unit = call.arithmetic;
  return is_fp8(call.row_type) && is_fp8(call.column_type) && unit.scaling == StepScaling::none && !unit.emulated &&
         unit.accumulator == Accumulator::e8m13_truncated && unit.fraction_bits == 13 &&
         (unit.products == 32 || unit.products == 16) && tiles_fit(unit);
}

template <Format kRow, Format kColumn>
void launch_formats(const GemmCall& call, std::int64_t tiles, Stream stream) {
  if (call.arithmetic.products == 32) {
    launch_tiles<Chain<kRow, kColumn, 32, false, false>>(call, tiles, stream, kName);
  } else {
    launch_tiles<Chain<kRow, kColumn, 16, false, false>>(call, tiles, stream, kName);
  }
}

void launch(const GemmCall& call, std::int64_t tiles, Stream stream) {
  constexpr Format e4m3 = Format::e4m3, e5m2 = Format::e5m2;
  if (call.row_type == e4m3) {
    return call.column_type == e4m3 ? launch_formats<e4m3, e4m3>(call, tiles, stream)
                                    : launch_formats<e4m3, e5m2>(call, tiles, stream);
  }
  return call.column_type == e4m3 ? launch_formats<e5m2, e4m3>(call, tiles, stream)
                                  : launch_formats<e5m2, e5m2>(call, tiles, stream);
}

}  // namespace

const Kernel kFp8Kernel = {"fp8", kTileRows, kTileColumns, takes, launch};

}  // namespace assay::device::emulated
