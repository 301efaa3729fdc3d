#pragma once
// Grouped GEMM of FP8 codes with block scales on SM90, by a kernel of our own (kernel.cuh): one launch, which reads the splits on
// the device and takes groups of any number of rows where they lie, D in f32, bf16 or f16, alpha, beta and bias. scale_inv is
// 16-byte aligned, w and D are in one buffer.
//
//   TN, NN   w scaled 128x128 or 1x128, any number of columns of D, a contraction of a multiple of 16
//   NT       any N and K; groups that do not begin and end at multiples of 16 rows are copied into the workspace
//
// The bits are those of one of two plans (reference/gemm/plan.h), whatever the splits, the number of multiprocessors and the other
// groups:
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
  int multiprocessors = 0;             // to use at most; 0: all that the stream has
  int cluster = 0;  // for experiments: 1 or 2 blocks of a cluster; 2 in NT and with 128x128 scales, else 1; 0: chosen
};

// Why the kernel does not take this call on the current device; empty: it does. Reads sizes and types only.
std::string fp8_block_gemm_missing(const GroupedGemmCall& call, const Fp8BlockSettings& settings);

// The name of the plan that it follows.
std::string fp8_block_gemm_plan(const GroupedGemmCall& call, const Fp8BlockSettings& settings);

// NT: 512 bytes for each multiprocessor, where the kernel describes groups to the copy engine, and R + 16 * G rows of N and of K
// bytes for copies, unless rows_multiple promises multiples of 16 (a broken promise: kStatusUnalignedRows, and nothing is written). TN,
// NN: 0.
std::int64_t fp8_block_gemm_workspace_bytes(const GroupedGemmCall& call, const Fp8BlockSettings& settings);

// Allocates nothing, may be captured: one node. Errors: InvalidArgument (check_grouped_gemm(), settings, workspace);
// NotSupported (fp8_block_gemm_missing()); CudaError. Invalid splits are reported in the status word, and then nothing is written.
void fp8_block_grouped_gemm(const GroupedGemmCall& call, const Fp8BlockSettings& settings, Stream stream);

}  // namespace assay::device
