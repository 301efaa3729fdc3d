#pragma once
// What kernels of emulated_gemm/, layout/ and of quantization use of CUDA, for a compiler of the host alone: run_kernel.h
// runs their threads. Each operation on floats is that of the language, rounded to nearest, so that no result depends on a device.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/support/stream.h"
#include "device/tests/emulated_gemm/dynamic_shared.h"
#include "device/tests/emulated_gemm/host_cuda/approximate_instructions.h"
#include "device/tests/emulated_gemm/host_cuda/matrix_instructions.h"
#include "device/tests/emulated_gemm/run_kernel.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static  // one block runs at a time
#define __align__(bytes) alignas(bytes)

using std::max;
using std::min;

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline const assay::device::host::Index &threadIdx = assay::device::host::thread_index,
                                        &blockIdx = assay::device::host::block_index, &gridDim = assay::device::host::grid_size,
                                        &blockDim = assay::device::host::block_size;
inline void __syncthreads() { assay::device::host::wait_for_block(); }
inline int __syncthreads_or(int value) { return assay::device::host::or_of_block(value != 0) != 0; }

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
// Toward minus infinity: where the nearest value is above the sum, whose rest in f64 is `rest`, the one below it.
inline float __fmaf_rd(float a, float b, float c) {
  const double product = static_cast<double>(a) * b, sum = product + c, high = sum - product;
  const double rest = product - (sum - high) + (c - high);
  const float nearest = std::fma(a, b, c);
  return nearest > sum || (nearest == sum && rest < 0) ? std::nextafter(nearest, -INFINITY) : nearest;
}
inline float __saturatef(float a) { return a >= 0 ? std::fmin(a, 1.0f) : 0.0f; }
// Toward zero. A product of floats is exact in double; below the normal floats it is cut to whole units of the smallest one.
inline float __fmul_rz(float a, float b) {
  const double exact = static_cast<double>(a) * b, size = std::fabs(exact);
  const unsigned sign = std::signbit(exact) ? 0x8000'0000u : 0u;
  if (size < 0x1p-126) return __uint_as_float(sign | static_cast<unsigned>(size * 0x1p149));
  const float nearest = static_cast<float>(exact);
  return std::fabs(static_cast<double>(nearest)) > size ? __uint_as_float(__float_as_uint(nearest) - 1) : nearest;
}
// What double leaves of the sum decides where the float is as large as what it keeps.
inline float __fadd_rz(float a, float b) {
  const double x = a, y = b, sum = x + y, from_y = sum - x, rest = (x - (sum - from_y)) + (y - from_y);
  const float nearest = static_cast<float>(sum);
  const double size = std::fabs(static_cast<double>(nearest));
  const bool beyond = size > std::fabs(sum) || (size == std::fabs(sum) && rest != 0 && std::signbit(rest) != std::signbit(sum));
  return beyond ? __uint_as_float(__float_as_uint(nearest) - 1) : nearest;
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(Wide{a} * b >> 64);
}
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
template <class Value>
Value __ldcs(const Value* at) {
  return *at;
}
template <class Value>
void __stcs(Value* at, const Value& value) {
  *at = value;
}
inline void __stcs(unsigned char* at, unsigned char value) { *at = value; }
inline unsigned atomicAdd(unsigned* at, unsigned value) {
  const unsigned before = *at;
  *at += value;
  return before;
}
inline unsigned atomicMax(unsigned* at, unsigned value) {
  const unsigned before = *at;
  *at = max(before, value);
  return before;
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<unsigned>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xFF) << (8 * i);
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}
inline int __popc(unsigned value) { return std::popcount(value); }
inline int __ffs(int value) { return value == 0 ? 0 : std::countr_zero(static_cast<unsigned>(value)) + 1; }

// Operations of whole warps.
namespace host_warp {
inline unsigned lane() { return threadIdx.x % 32; }
template <class Value>
Value from(Value own, unsigned source) {
  static_assert(sizeof(Value) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &own, sizeof own);
  bits = assay::device::host::exchange(bits)[source];
  std::memcpy(&own, &bits, sizeof own);
  return own;
}
}  // namespace host_warp
template <class Value>
Value __shfl_sync(unsigned, Value own, int source) {
  return host_warp::from(own, static_cast<unsigned>(source) % 32);
}
template <class Value>
Value __shfl_xor_sync(unsigned, Value own, int mask) {
  return host_warp::from(own, host_warp::lane() ^ static_cast<unsigned>(mask));
}
template <class Value>
Value __shfl_up_sync(unsigned, Value own, unsigned distance) {
  return host_warp::from(own, host_warp::lane() < distance ? host_warp::lane() : host_warp::lane() - distance);
}
template <class Value>
Value __shfl_down_sync(unsigned, Value own, unsigned distance) {
  return host_warp::from(own, host_warp::lane() + distance > 31 ? host_warp::lane() : host_warp::lane() + distance);
}
inline unsigned __reduce_or_sync(unsigned, unsigned own) {
  const std::uint64_t* all = assay::device::host::exchange(own);
  for (int i = 0; i < 32; ++i) own |= static_cast<unsigned>(all[i]);
  return own;
}
inline unsigned __reduce_max_sync(unsigned, unsigned own) {
  const std::uint64_t* all = assay::device::host::exchange(own);
  for (int i = 0; i < 32; ++i) own = max(own, static_cast<unsigned>(all[i]));
  return own;
}
inline unsigned __reduce_add_sync(unsigned, unsigned own) {
  const std::uint64_t* all = assay::device::host::exchange(own);
  unsigned sum = 0;
  for (int i = 0; i < 32; ++i) sum += static_cast<unsigned>(all[i]);
  return sum;
}
inline unsigned __ballot_sync(unsigned, bool own) {
  const std::uint64_t* all = assay::device::host::exchange(own);
  unsigned ballot = 0;
  for (int i = 0; i < 32; ++i) ballot |= (all[i] != 0 ? 1u : 0u) << i;
  return ballot;
}
inline int __any_sync(unsigned mask, bool own) { return __ballot_sync(mask, own) != 0; }

// Instructions that kernels have as asm, by name: mutate.py makes calls of them.
namespace assay::device::host {
inline void barrier_cluster_arrive_release_aligned() { arrive_at_cluster(); }
inline void barrier_cluster_wait_acquire_aligned() { wait_for_cluster(); }
inline void griddepcontrol_launch_dependents() {}  // kernels run one after another all the same
inline void griddepcontrol_wait() { wait_for_work_before(); }
inline void prefetch_global_L2(const void* at) { (void)*static_cast<const volatile char*>(at); }  // as a load
inline void mapa_shared_cluster_u32(std::uint32_t& place, std::uint32_t address, unsigned rank) {
  place = address_in_cluster(address, rank);
}
inline void st_shared_cluster_v2_u32(std::uint32_t address, unsigned x, unsigned y) {
  const uint2 value = {x, y};
  store_at_address(address, &value, sizeof value);
}
}  // namespace assay::device::host
inline std::size_t __cvta_generic_to_shared(const void* place) { return assay::device::host::shared_address(place); }

enum cudaError_t { cudaSuccess, cudaErrorUnknown };
using cudaStream_t = assay::device::Stream;
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorName(cudaError_t) { return "error"; }
inline const char* cudaGetErrorString(cudaError_t) { return "error"; }
enum {
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaFuncAttributeMaxDynamicSharedMemorySize,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
  cudaDevAttrMultiProcessorCount
};
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return assay::device::host::compute_capability != 0 ? cudaSuccess : cudaErrorUnknown;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, int which, int) {
  const int capability = assay::device::host::compute_capability;
  if (which == cudaDevAttrMaxSharedMemoryPerBlockOptin && capability == 90) {
    *value = 227 * 1024;
    return cudaSuccess;
  }
  if (which == cudaDevAttrMultiProcessorCount && capability != 0) {
    *value = 4;
    return cudaSuccess;
  }
  *value = which == cudaDevAttrComputeCapabilityMajor ? capability / 10 : capability % 10;
  const bool known = which == cudaDevAttrComputeCapabilityMajor || which == cudaDevAttrComputeCapabilityMinor;
  return known && capability != 0 ? cudaSuccess : cudaErrorUnknown;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, int, int) {  // each kernel may have as much as it asks for
  return cudaSuccess;
}
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice };
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
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

enum cudaLaunchAttributeID {
  cudaLaunchAttributeProgrammaticStreamSerialization,
  cudaLaunchAttributeClusterDimension,
  cudaLaunchAttributeCooperative
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
    int cooperative;
    dim3 clusterDim;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments&&... arguments) {
  const dim3 grid = config->gridDim;
  assay::device::host::Launch launch = {{grid.x, grid.y, 1}, config->blockDim.x, config->dynamicSmemBytes, 1};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& each = config->attrs[i];
    if (each.id == cudaLaunchAttributeClusterDimension) launch.cluster = each.val.clusterDim.x;
    if (each.id == cudaLaunchAttributeCooperative) launch.cooperative = each.val.cooperative != 0;
    if (each.id == cudaLaunchAttributeProgrammaticStreamSerialization)
      launch.early = each.val.programmaticStreamSerializationAllowed != 0;
  }
  assay::device::host::run_kernel(launch, [&] { kernel(arguments...); });
  return cudaSuccess;
}
