#pragma once
// What the FP8 block GEMM uses of the driver, for a compiler of the host alone: maps of the model of the copy engine.

#include <cstddef>
#include <cstdint>

#include "device/tests/emulated_gemm/host_cuda/cuda_runtime.h"
#include "device/tests/mutants/rooms/sm90/instructions.h"

using cuuint32_t = std::uint32_t;
using cuuint64_t = std::uint64_t;
enum CUresult { CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE };
enum CUtensorMapDataType { CU_TENSOR_MAP_DATA_TYPE_UINT8 };
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_128B };
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_L2_256B };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };

inline CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address,
                                       const cuuint64_t* extents, const cuuint64_t* pitch, const cuuint32_t* box,
                                       const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                       CUtensorMapFloatOOBfill) {
  const bool taken = rank == 2 && steps[0] == 1 && steps[1] == 1 &&
                     assay::device::host::encode_map(*map, address, {extents[0], extents[1]}, pitch[0], {box[0], box[1]});
  return taken ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
enum { cudaEnableDefault };
inline cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** found, unsigned, int,
                                                    cudaDriverEntryPointQueryResult* result) {
  *found = reinterpret_cast<void*>(&cuTensorMapEncodeTiled);
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

// Each kernel is one for 90a: fp8_block_gemm.cu tells by the threads of a block.
struct cudaFuncAttributes {
  int maxThreadsPerBlock;
};
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel*) {
  attributes->maxThreadsPerBlock = 32;
  return cudaSuccess;
}
