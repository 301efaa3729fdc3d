// Every conversion of device/formats/convert.cuh that rounds, on the device, for all 2^32 floats, against the reference's
// encoders. Prints a line a conversion; exit 1 if any code differs, 9 without a device.
//
//   device_conversions [FIRST COUNT]     inputs by their bits; default: all

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include "device/formats/convert.cuh"
#include "reference/formats/encode.h"
#include "reference/support/parallel.h"

namespace {

using assay::Format;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(9);
}

// Four consecutive inputs at a time, as in the kernels. The code of each is right-aligned in `codes`.
struct E4m3 {
  static constexpr const char* kName = "e4m3";
  static constexpr Format kFormat = Format::e4m3;
  using Code = std::uint8_t;
  static __device__ void encode(const float (&x)[4], Code (&codes)[4]) {
    const std::uint32_t four = assay::device::encode_fp8x4<kFormat>(x[0], x[1], x[2], x[3]);
    for (int i = 0; i < 4; ++i) codes[i] = static_cast<Code>(four >> 8 * i);
  }
};
struct E5m2 {
  static constexpr const char* kName = "e5m2";
  static constexpr Format kFormat = Format::e5m2;
  using Code = std::uint8_t;
  static __device__ void encode(const float (&x)[4], Code (&codes)[4]) {
    const std::uint32_t four = assay::device::encode_fp8x4<kFormat>(x[0], x[1], x[2], x[3]);
    for (int i = 0; i < 4; ++i) codes[i] = static_cast<Code>(four >> 8 * i);
  }
};
template <Format kTo>
struct OneByOne {
  static constexpr const char* kName = kTo == Format::e4m3 ? "e4m3, one" : "e5m2, one";
  static constexpr Format kFormat = kTo;
  using Code = std::uint8_t;
  static __device__ void encode(const float (&x)[4], Code (&codes)[4]) {
    for (int i = 0; i < 4; ++i) codes[i] = assay::device::encode_fp8<kTo>(x[i]);
  }
};
template <Format kTo>
struct WithoutInstruction {
  static constexpr const char* kName = kTo == Format::e4m3 ? "e4m3, plain" : "e5m2, plain";
  static constexpr Format kFormat = kTo;
  using Code = std::uint8_t;
  static __device__ void encode(const float (&x)[4], Code (&codes)[4]) {
    for (int i = 0; i < 4; ++i) codes[i] = static_cast<Code>(assay::device::encode_fp8_without_instruction<kTo>(x[i]));
  }
};
struct E8m0 {
  static constexpr const char* kName = "e8m0";
  static constexpr Format kFormat = Format::e8m0;
  using Code = std::uint8_t;
  static __device__ void encode(const float (&x)[4], Code (&codes)[4]) {
    for (int i = 0; i < 4; ++i) codes[i] = static_cast<Code>(assay::device::encode_e8m0(x[i]));
  }
};
struct E2m1 {
  static constexpr const char* kName = "e2m1";
  static constexpr Format kFormat = Format::e2m1;
  using Code = std::uint8_t;
  static __device__ void encode(const float (&x)[4], Code (&codes)[4]) {
    for (int i = 0; i < 4; ++i) codes[i] = static_cast<Code>(assay::device::encode_e2m1(x[i]));
  }
};
struct Bf16 {
  static constexpr const char* kName = "bf16";
  static constexpr Format kFormat = Format::bf16;
  using Code = std::uint16_t;
  static __device__ void encode(const float (&x)[4], Code (&codes)[4]) {
    for (int i = 0; i < 4; ++i) codes[i] = assay::device::encode_bf16(x[i]);
  }
};
struct F16 {
  static constexpr const char* kName = "f16";
  static constexpr Format kFormat = Format::f16;
  using Code = std::uint16_t;
  static __device__ void encode(const float (&x)[4], Code (&codes)[4]) {
    for (int i = 0; i < 4; ++i) codes[i] = assay::device::encode_f16(x[i]);
  }
};

constexpr int kThreads = 256;
constexpr std::int64_t kChunk = std::int64_t{1} << 26;  // inputs in one transfer to the host
constexpr std::int64_t kBlock = std::int64_t{1} << 14;  // inputs that a core compares at a time

template <class Conversion>
__global__ void __launch_bounds__(kThreads)
    encode_all(std::uint32_t first, std::int64_t count, typename Conversion::Code* codes) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * 4;
  if (at >= count) return;
  float x[4];
  typename Conversion::Code four[4];
  for (int i = 0; i < 4; ++i) x[i] = __uint_as_float(first + static_cast<std::uint32_t>(at) + i);
  Conversion::encode(x, four);
  for (int i = 0; i < 4; ++i) {
    if (at + i < count) codes[at + i] = four[i];
  }
}

// Number of codes that differ; prints a line.
template <class Conversion>
std::int64_t compare(std::int64_t first, std::int64_t count, void* on_device, void* on_host) {
  using Code = typename Conversion::Code;
  auto* const codes = static_cast<Code*>(on_device);
  const auto* const got = static_cast<const Code*>(on_host);
  std::atomic<std::int64_t> differ = 0, compared = 0;
  std::mutex mutex;
  std::int64_t example = -1;
  Code example_got = 0, example_want = 0;

  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t part = std::min(kChunk, count - done);
    const auto blocks = static_cast<unsigned>((part + 4 * kThreads - 1) / (4 * kThreads));
    encode_all<Conversion><<<blocks, kThreads>>>(static_cast<std::uint32_t>(first + done), part, codes);
    check(cudaGetLastError(), "encode_all");
    check(cudaMemcpy(on_host, codes, static_cast<std::size_t>(part) * sizeof(Code), cudaMemcpyDeviceToHost), "cudaMemcpy");
    assay::parallel_for((part + kBlock - 1) / kBlock, 16, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> x(kBlock);
      std::vector<Code> want(kBlock);
      for (std::int64_t block = begin; block < end; ++block) {
        const std::int64_t from = block * kBlock, length = std::min(kBlock, part - from);
        for (std::int64_t i = 0; i < length; ++i)
          x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + done + from + i));
        assay::encode(Conversion::kFormat, std::span<const float>(x.data(), length), std::span<Code>(want.data(), length));
        compared += length;
        if (std::memcmp(got + from, want.data(), static_cast<std::size_t>(length) * sizeof(Code)) == 0) continue;
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < length; ++i) {
          if (got[from + i] == want[i]) continue;
          ++wrong;
          const std::lock_guard lock(mutex);
          if (example < 0 || first + done + from + i < example) {
            example = first + done + from + i;
            example_got = got[from + i];
            example_want = want[i];
          }
        }
        differ += wrong;
      }
    });
  }
  std::printf("%-12s %10" PRId64 " compared, %" PRId64 " differ", Conversion::kName, compared.load(), differ.load());
  if (example >= 0) {
    std::printf("; the first at 0x%08" PRIx64 ": got 0x%02x, want 0x%02x", static_cast<std::uint64_t>(example),
                static_cast<unsigned>(example_got), static_cast<unsigned>(example_want));
  }
  std::printf("\n");
  std::fflush(stdout);
  return compared == count ? differ.load() : count;
}

template <class... Conversions>
std::int64_t compare_each(std::int64_t first, std::int64_t count) {
  void *on_device = nullptr, *on_host = nullptr;
  check(cudaMalloc(&on_device, kChunk * 2), "cudaMalloc");
  check(cudaMallocHost(&on_host, kChunk * 2), "cudaMallocHost");
  const std::int64_t differ = (compare<Conversions>(first, count, on_device, on_host) + ...);
  cudaFreeHost(on_host);
  cudaFree(on_device);
  return differ;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t first = 0, count = std::int64_t{1} << 32;
  if (argc == 3) {
    first = std::strtoll(argv[1], nullptr, 0);
    count = std::strtoll(argv[2], nullptr, 0);
  }
  if ((argc != 1 && argc != 3) || first < 0 || count < 1 || first + count > std::int64_t{1} << 32) {
    std::fprintf(stderr, "usage: device_conversions [FIRST COUNT]\n");
    return 2;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no CUDA device: nothing was compared\n");
    return 9;
  }
  const std::int64_t differ =
      compare_each<E4m3, E5m2, OneByOne<Format::e4m3>, OneByOne<Format::e5m2>, WithoutInstruction<Format::e4m3>,
                   WithoutInstruction<Format::e5m2>, E8m0, E2m1, Bf16, F16>(first, count);
  return differ == 0 ? 0 : 1;
}
