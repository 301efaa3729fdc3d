#pragma once
// Grouped GEMM of FP8 codes with block scales on SM90, by a kernel of our own (kernel.cuh): one launch, which reads the splits on
// the device and takes groups of any number of rows, D in f32, bf16 or f16, alpha, beta and bias. scale_inv is
// 16-byte aligned. Lists, of w or in NT of D, take another launch.
//
//   TN, NN   w scaled 128x128 or 1x128, any number of columns of D, a contraction of a multiple of 16
//   NT       any N and K. The kernel first copies groups into the workspace whose rows are no multiple of 16, or that begin (rows
//            before them times N, or K) at no multiple of 16 bytes; unless rows_multiple or column_alignment rules that out, its
//            blocks wait for one another, and it starts when all its multiprocessors are free
//
// The bits are those of one of two plans (reference/gemm/plan.h), whatever the splits, the number of multiprocessors, the promises and the
// other groups:
//
//   assay.sm90.fp8_block.scales_first   acc = FMA(RN(s_rows * s_cols), t, acc)    the only one with 128x128 scales
//   assay.sm90.fp8_block.rows_first     acc = FMA(RN(t * s_rows), s_cols, acc)    1x128 by 1x128

#include <cstdint>
#include <optional>
#include <string>

#include "device/gemm/grouped_gemm.h"

namespace assay::device {

enum class Fp8BlockOrder : std::uint32_t { scales_first, rows_first };

struct Fp8BlockSettings {
  std::optional<Fp8BlockOrder> order;  // none: scales_first with 128x128 scales and in NT, where it is faster, else rows_first
  int multiprocessors = 0;             // to use at most, 2 at least in clusters; 0: all that the stream has
  int cluster = 0;  // for experiments: 1 or 2 blocks of a cluster, in NT 2, with 1x128 scales of w 1; 0: chosen
};

// Whether the kernel relies on the promise that scales are powers of two.
inline bool relies_on_pow2_scales(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  return call.pow2_scales && call.layout == GemmLayout::NT && settings.order != Fp8BlockOrder::rows_first;
}

// Why the kernel does not take this call on the current device; empty: it does. Reads sizes and types only.
std::string fp8_block_gemm_missing(const GroupedGemmCall& call, const Fp8BlockSettings& settings);

// The name of the plan that it follows.
std::string fp8_block_gemm_plan(const GroupedGemmCall& call, const Fp8BlockSettings& settings);

// On the current device. NT: 512 bytes for each multiprocessor, where the kernel describes groups to the copy engine, 8 for each group,
// and for copies rows.capacity + 16 * groups rows of N and of K bytes, unless rows_multiple is a multiple of 16 or column_alignment is
// 16. TN, NN: 0; with a list of w the same 512 bytes, and 16 for each group. Errors: CudaError without a device.
std::int64_t fp8_block_gemm_workspace_bytes(const GroupedGemmCall& call, const Fp8BlockSettings& settings);

// What fp8_block_grouped_gemm() refuses before it launches anything, but for its workspace. Errors: InvalidArgument
// (check_grouped_gemm(), settings, scales), NotSupported (fp8_block_gemm_missing()).
void check_fp8_block_gemm(const GroupedGemmCall& call, const Fp8BlockSettings& settings);

// Allocates nothing, may be captured: one node, with lists two. Errors: check_fp8_block_gemm(); InvalidArgument for the
// workspace; CudaError. Invalid splits, and groups that break the promise of rows_multiple in NT, are reported in the status word,
// and then nothing is written. A scale that BF16 cannot hold breaks the promise of pow2_scales: it is reported too, but D has been written by
// then, and elements that it scales are wrong.
void fp8_block_grouped_gemm(const GroupedGemmCall& call, const Fp8BlockSettings& settings, Stream stream);

}  // namespace assay::device
