#pragma once
// Everything that the steps of a grouped linear layer launch or call in the library, as a table of functions. Another table can
// run the same steps elsewhere.

#include <cstdint>
#include <string>
#include <vector>

#include "device/cublaslt/cublaslt_gemm.h"
#include "device/dbias/dbias.h"
#include "device/emulated_gemm/emulated_gemm.h"
#include "device/fp8_block_gemm/fp8_block_gemm.h"
#include "device/quantize/quantize.h"

namespace assay::device {

struct LinearKernels {
  decltype(&quantize_workspace_bytes) quantize_bytes;
  decltype(&quantize) quantize_with;
  decltype(&dbias_workspace_bytes) dbias_bytes;
  decltype(&grouped_dbias) sum_with;

  decltype(&check_grouped_gemm) check_product;
  decltype(&check_emulated_gemm) check_emulated;
  decltype(&cublaslt_prepare) prepare;
  decltype(&cublaslt_gemm_workspace_bytes) cublaslt_bytes;
  decltype(&cublaslt_algorithms) algorithms;
  decltype(&cublaslt_route) route;
  decltype(&cublaslt_grouped_gemm) multiply_by_cublaslt;
  decltype(&emulated_gemm_workspace_bytes) emulated_bytes;
  decltype(&emulated_grouped_gemm) multiply_by_emulated;
  decltype(&fp8_block_gemm_missing) assay_missing;
  decltype(&fp8_block_gemm_plan) assay_plan;
  decltype(&check_fp8_block_gemm) check_assay;
  decltype(&fp8_block_gemm_workspace_bytes) assay_bytes;
  decltype(&fp8_block_grouped_gemm) multiply_by_assay;

  // Why the library lacks this product on `architecture` (90, 100, ...), also if there is no library; empty: it has it.
  std::string (*missing)(const GroupedGemmCall& call, int architecture);
  std::string (*missing_code)();  // why this build's kernels cannot run on the current device; empty: they can
  int (*architecture)();          // of the current device
  int (*library_version)();       // cublasLtGetVersion

  // splits [groups], each `rows`, and one [1], 1.0; either may be null. Device memory.
  void (*make_constants)(std::int64_t* splits, int groups, std::int64_t rows, float* one, Stream stream);
  void (*copy)(void* to, const void* from, std::int64_t bytes, Stream stream);
  // `count` pieces of `bytes` each (even), between one buffer and many. The host array of pointers is read during the call.
  void (*gather)(const void* const* from, int count, std::int64_t bytes, void* to, Stream stream);
  void (*scatter)(const void* from, void* const* to, int count, std::int64_t bytes, Stream stream);
};

// The kernels of this library.
const LinearKernels& device_kernels();

}  // namespace assay::device
