// f32 accumulators and 24 or 25 fraction bits: bf16 and f16 of every architecture, FP8 of SM100 and SM120 with and without
// e8m0 scales. Sums need up to 33 bits and are kept in two f32 values.
//
//   bound     f32 instructions: 6 per product and about one for the rest; 4 TMAC/s of an H200
//   matches   reference/gemm/grouped_gemm_scalar.cc

#include "device/emulated_gemm/compute_tile.cuh"

namespace assay::device::emulated {
namespace {

constexpr const char* kName = "emulated GEMM: wide sum";

bool is_fp8(Format type) { return type == Format::e4m3 || type == Format::e5m2; }

bool takes(const GemmCall& call) {
  const Arithmetic& unit = call.arithmetic;
  if (unit.emulated || unit.accumulator != Accumulator::f32_truncated || unit.fraction_bits < 24 || unit.fraction_bits > 25)
    return false;
  if (is_fp8(call.row_type) && is_fp8(call.column_type)) {
    return unit.products == 32 && unit.scaling != StepScaling::e4m3_per_16 && tiles_fit(unit);
  }
  const bool half = call.row_type == call.column_type && (call.row_type == Format::bf16 || call.row_type == Format::f16);
  return half && unit.scaling == StepScaling::none && (unit.products == 16 || unit.products == 8) && tiles_fit(unit);
}

template <Format kFormat>
void launch_half(const GemmCall& call, std::int64_t tiles, Stream stream) {
  if (call.arithmetic.products == 16) {
    launch_tiles<Chain<kFormat, kFormat, 16, true, false>>(call, tiles, stream, kName);
  } else {
    launch_tiles<Chain<kFormat, kFormat, 8, true, false>>(call, tiles, stream, kName);
  }
}

template <Format kRow, Format kColumn>
void launch_fp8(const GemmCall& call, std::int64_t tiles, Stream stream) {
  if (call.arithmetic.scaling == StepScaling::e8m0_per_32) {
    launch_tiles<Chain<kRow, kColumn, 32, true, true>>(call, tiles, stream, kName);
  } else {
    launch_tiles<Chain<kRow, kColumn, 32, true, false>>(call, tiles, stream, kName);
  }
}

void launch(const GemmCall& call, std::int64_t tiles, Stream stream) {
  constexpr Format e4m3 = Format::e4m3, e5m2 = Format::e5m2;
  if (call.row_type == Format::bf16) return launch_half<Format::bf16>(call, tiles, stream);
  if (call.row_type == Format::f16) return launch_half<Format::f16>(call, tiles, stream);
  if (call.row_type == e4m3) {
    return call.column_type == e4m3 ? launch_fp8<e4m3, e4m3>(call, tiles, stream) : launch_fp8<e4m3, e5m2>(call, tiles, stream);
  }
  return call.column_type == e4m3 ? launch_fp8<e5m2, e4m3>(call, tiles, stream) : launch_fp8<e5m2, e5m2>(call, tiles, stream);
}

}  // namespace

const Kernel kWideSumKernel = {"wide_sum", kTileRows, kTileColumns, takes, launch};

}  // namespace assay::device::emulated
