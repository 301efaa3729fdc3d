#pragma once
// Quantization on the device: the call of reference/recipes/quantize.h over device memory, with the same bits. It shares enums
// and the configuration with the reference, but no rounding rule.
//
// One call quantizes one tensor or all groups of a ragged one, rowwise, columnwise or both in one pass over x. It reads the
// splits on the device only, allocates nothing, does not synchronise and may be captured in a CUDA graph: data, splits,
// scales, states of generators and the skip flag may change between replays.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/support/error.h"
#include "device/support/stream.h"
#include "reference/recipes/quantize.h"

namespace assay::device {

struct QuantizeCall {
  QuantizeConfig config;
  Format x_type = Format::bf16;  // bf16, f16 or f32
  const void* x =
      nullptr;  // device, [rows.capacity, columns], 16-byte aligned; with an activation [rows.capacity, 2 columns], gate
                // then up
  Rows rows;
  std::int64_t rows_multiple = 1;  // promised: every group's rows are a multiple of this. Columnwise codes of FP8 blocks rely
                                   // on a multiple of 16: groups are then as fast as one tensor, and quantize() checks the
                                   // promise (kStatusUnalignedRows, and nothing is written). Others ignore it
  // Of columnwise codes of FP8 blocks: 1, or 16 (device/layout/column_layout.h), as fp8_block_grouped_gemm() reads groups of any rows without
  // copies. output.columnwise_data then has column_bytes().
  std::int64_t column_alignment = 1;
  std::int64_t columns = 0;
  const float* scale = nullptr;                  // device [G]: tensor_delayed
  const float* amax = nullptr;                   // device [G]: nvfp4; null: max |x| of the group
  const float* columnwise_amax = nullptr;        // device [G]: nvfp4
  const float* noop = nullptr;                   // device [1]: exactly 1.0 and nothing is written
  const std::uint8_t* rowwise_random = nullptr;  // device: nvfp4 stochastic rounding
  const std::uint8_t* columnwise_random = nullptr;
  QuantizeDraws draws;        // in place of these bytes; draws.state: device, [G, 2], read by the kernels
  QuantizeOutput output;      // device pointers; null: not requested
  void* workspace = nullptr;  // device, 256-byte aligned, quantize_workspace_bytes(); contents undefined
  std::int64_t workspace_bytes = 0;
  std::uint32_t* status = nullptr;  // device [1], or null
};

// Device memory that a call needs besides its tensors. Depends on sizes and configuration only, not on splits.
std::int64_t quantize_workspace_bytes(const QuantizeCall& call);

// The checks that quantize() makes before it launches anything.
void check_quantize(const QuantizeCall& call);

// Errors: InvalidArgument and NotSupported before anything is launched; invalid device-side values in the status word.
void quantize(const QuantizeCall& call, Stream stream);

// The recipes, called by quantize() after its checks. Each serves both directions, all input and output types.
void quantize_per_tensor(const QuantizeCall& call, Stream stream);  // tensor_current, tensor_delayed: per_tensor.cu
void quantize_fp8_block(const QuantizeCall& call, Stream stream);   // block_1x128, block_128x128: fp8_block.cu
void quantize_mxfp8(const QuantizeCall& call, Stream stream);       // mxfp8.cu
void quantize_nvfp4(const QuantizeCall& call, Stream stream);       // nvfp4.cu
std::int64_t per_tensor_workspace_bytes(const QuantizeCall& call);
std::int64_t fp8_block_workspace_bytes(const QuantizeCall& call);
std::int64_t mxfp8_workspace_bytes(const QuantizeCall& call);
std::int64_t nvfp4_workspace_bytes(const QuantizeCall& call);

}  // namespace assay::device
