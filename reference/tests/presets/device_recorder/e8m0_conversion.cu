// CUDA's conversion of f32 to E8M0 (rounded up, satfinite) on the GPU of this machine against the same function on the host: all 2^32 floats.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 e8m0_conversion.cu -o e8m0_conversion && ./e8m0_conversion
//
// Prints {"floats": N, "differ": N}. On an SM90 the function is code; from SM100 on it is an instruction.

#include <cuda_fp8.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::uint32_t kChunk = 1u << 28;
constexpr unsigned kThreads = 256, kWorkers = 16;

__global__ void convert(std::uint32_t first, std::uint8_t* out) {
  const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  out[at] = __nv_cvt_float_to_e8m0(__uint_as_float(first + at), __NV_SATFINITE, cudaRoundPosInf);
}

std::uint8_t on_host(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf);
}

}  // namespace

int main() {
  std::uint8_t* out = nullptr;
  std::vector<std::uint8_t> got(kChunk);
  unsigned long long differ = 0;
  bool right = cudaMalloc(&out, kChunk) == cudaSuccess;
  for (std::uint64_t first = 0; right && first < 1ull << 32; first += kChunk) {
    convert<<<kChunk / kThreads, kThreads>>>(static_cast<std::uint32_t>(first), out);
    right = cudaMemcpy(got.data(), out, kChunk, cudaMemcpyDeviceToHost) == cudaSuccess;
    std::vector<unsigned long long> wrong(kWorkers);
    std::vector<std::thread> workers;
    for (unsigned w = 0; w < kWorkers; ++w) {
      workers.emplace_back([&, w] {
        for (std::uint32_t i = w * (kChunk / kWorkers); i < (w + 1) * (kChunk / kWorkers); ++i)
          wrong[w] += got[i] != on_host(static_cast<std::uint32_t>(first) + i);
      });
    }
    for (std::thread& worker : workers) worker.join();
    for (const unsigned long long count : wrong) differ += count;
  }
  if (!right) {
    std::fprintf(stderr, "e8m0_conversion: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 2;
  }
  std::printf("{\"floats\": %llu, \"differ\": %llu}\n", 1ull << 32, differ);
  return differ != 0;
}
