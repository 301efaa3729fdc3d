#pragma once
// What kernels of emulated_gemm/ and of the token permutation use of CUDA, for a compiler of the host alone: run_kernel.h runs their threads. Each operation on
// floats is that of the language, rounded to nearest, so that no result depends on a device.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "device/support/stream.h"
#include "device/tests/emulated_gemm/run_kernel.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static  // one block runs at a time

using std::max;
using std::min;

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline const assay::device::host::Index &threadIdx = assay::device::host::thread_index,
                                        &blockIdx = assay::device::host::block_index, &gridDim = assay::device::host::grid_size;
extern const assay::device::host::Index blockDim;
inline void __syncthreads() { assay::device::host::wait_for_block(); }

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline int __clzll(long long value) { return std::countl_zero(static_cast<unsigned long long>(value)); }
inline unsigned atomicOr(unsigned* at, unsigned bits) {
  const unsigned before = *at;
  *at |= bits;
  return before;
}
template <class Value>
Value __ldg(const Value* at) {
  return *at;
}
// Operations of warps, for templates that no kernel here uses.
template <class Value>
Value __shfl_sync(unsigned, Value, unsigned);
template <class Value>
Value __shfl_up_sync(unsigned, Value, unsigned);
unsigned __reduce_or_sync(unsigned, unsigned);
unsigned __ballot_sync(unsigned, bool);
int __ffs(unsigned);

enum cudaError_t { cudaSuccess, cudaErrorUnknown };
using cudaStream_t = assay::device::Stream;
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorName(cudaError_t) { return "error"; }
inline const char* cudaGetErrorString(cudaError_t) { return "error"; }
enum { cudaDevAttrMaxSharedMemoryPerBlockOptin, cudaFuncAttributeMaxDynamicSharedMemorySize };
inline cudaError_t cudaGetDevice(int*) { return cudaErrorUnknown; }
inline cudaError_t cudaDeviceGetAttribute(int*, int, int) { return cudaErrorUnknown; }
inline cudaError_t cudaFuncSetAttribute(const void*, int, int) { return cudaErrorUnknown; }
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  std::fill_n(static_cast<unsigned char*>(to), bytes, static_cast<unsigned char>(value));
  return cudaSuccess;
}
inline cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                     cudaStream_t) {
  for (std::size_t row = 0; row < height; ++row) {
    std::fill_n(static_cast<unsigned char*>(to) + row * pitch, width, static_cast<unsigned char>(value));
  }
  return cudaSuccess;
}

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments&&... arguments) {
  assay::device::host::run_kernel(config->gridDim.x, config->blockDim.x, [&] { kernel(arguments...); });
  return cudaSuccess;
}
