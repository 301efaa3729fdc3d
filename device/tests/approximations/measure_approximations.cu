// The approximate f32 instructions of this device (spec approximations).
//
//   measure_approximations record FOLDER [--device N]   writes the tables of golden/approximations to FOLDER
//   measure_approximations check [NAME ...] [--device N]
//                                                       compares every result, 2^32 of each instruction, with the reference
//
// Exit code: 0 all equal, 1 some differ, 2 an error, 77 no device.

#include <cuda_runtime.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "reference/approximations/approximations.h"
#include "reference/approximations/tables.h"

namespace {

enum class Instruction { rcp_ftz, rcp, ex2_ftz, ex2, rsqrt_ftz, rsqrt, tanh, divide_full, divide_ftz, exponential };

struct Row {
  Instruction instruction;
  const char* name;
  float (*predicted)(float);
};

// Divisions have two operands: the dividend of operand bits b is a scramble of b, so that 2^32 pairs are compared.
__host__ __device__ std::uint32_t dividend_bits(std::uint32_t b) {
  std::uint32_t z = b * 0x9E3779B1u;
  z = (z ^ z >> 16) * 0x85EBCA6Bu;
  z = (z ^ z >> 13) * 0xC2B2AE35u;
  return z ^ z >> 16;
}
float predicted_div_full(float b) {
  return assay::div_full(std::bit_cast<float>(dividend_bits(std::bit_cast<std::uint32_t>(b))), b);
}
float predicted_div_ftz(float b) {
  return assay::div_approx_ftz(std::bit_cast<float>(dividend_bits(std::bit_cast<std::uint32_t>(b))), b);
}

const Row kRows[] = {
    {Instruction::rcp_ftz, "rcp.approx.ftz.f32", assay::rcp_approx_ftz},
    {Instruction::rcp, "rcp.approx.f32", assay::rcp_approx},
    {Instruction::ex2_ftz, "ex2.approx.ftz.f32", assay::ex2_approx_ftz},
    {Instruction::ex2, "ex2.approx.f32", assay::ex2_approx},
    {Instruction::rsqrt_ftz, "rsqrt.approx.ftz.f32", assay::rsqrt_approx_ftz},
    {Instruction::rsqrt, "rsqrt.approx.f32", assay::rsqrt_approx},
    {Instruction::tanh, "tanh.approx.f32", assay::tanh_approx},
    {Instruction::divide_full, "div.full.f32", predicted_div_full},
    {Instruction::exponential, "expf", assay::cuda_expf},
    {Instruction::divide_ftz, "div.approx.ftz.f32", predicted_div_ftz},
};

template <Instruction I>
__device__ float result(std::uint32_t bits) {
  const float a = __uint_as_float(bits), dividend = __uint_as_float(dividend_bits(bits));
  float r = 0;
  if (I == Instruction::rcp_ftz) asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  if (I == Instruction::rcp) asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(a));
  if (I == Instruction::ex2_ftz) asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  if (I == Instruction::ex2) asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(a));
  if (I == Instruction::rsqrt_ftz) asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  if (I == Instruction::rsqrt) asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(a));
  if (I == Instruction::tanh) asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(a));
  if (I == Instruction::divide_full) asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(dividend), "f"(a));
  if (I == Instruction::divide_ftz) asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(dividend), "f"(a));
  if (I == Instruction::exponential) r = expf(a);
  return r;
}

// Operand i is the float of bits first + i, or the whole number `first + i` times `step` where step is not 0.
template <Instruction I>
__global__ void evaluate(std::uint32_t* results, std::uint32_t first, std::uint32_t count, float step) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const std::uint32_t bits = step == 0 ? first + i : __float_as_uint(static_cast<float>(first + i) * step);
    results[i] = __float_as_uint(result<I>(bits));
  }
}

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(status));
  std::exit(2);
}

constexpr std::uint32_t kChunk = 1u << 26;

class Device {
 public:
  Device() { check(cudaMalloc(&results_, sizeof(std::uint32_t) * kChunk), "cudaMalloc of 256 MiB"); }
  ~Device() { cudaFree(results_); }

  std::vector<std::uint32_t> operator()(Instruction instruction, std::uint32_t first, std::uint32_t count, float step = 0) {
    switch (instruction) {
      case Instruction::rcp_ftz: evaluate<Instruction::rcp_ftz><<<1024, 256>>>(results_, first, count, step); break;
      case Instruction::rcp: evaluate<Instruction::rcp><<<1024, 256>>>(results_, first, count, step); break;
      case Instruction::ex2_ftz: evaluate<Instruction::ex2_ftz><<<1024, 256>>>(results_, first, count, step); break;
      case Instruction::ex2: evaluate<Instruction::ex2><<<1024, 256>>>(results_, first, count, step); break;
      case Instruction::rsqrt_ftz: evaluate<Instruction::rsqrt_ftz><<<1024, 256>>>(results_, first, count, step); break;
      case Instruction::rsqrt: evaluate<Instruction::rsqrt><<<1024, 256>>>(results_, first, count, step); break;
      case Instruction::tanh: evaluate<Instruction::tanh><<<1024, 256>>>(results_, first, count, step); break;
      case Instruction::divide_full: evaluate<Instruction::divide_full><<<1024, 256>>>(results_, first, count, step); break;
      case Instruction::exponential: evaluate<Instruction::exponential><<<1024, 256>>>(results_, first, count, step); break;
      case Instruction::divide_ftz: evaluate<Instruction::divide_ftz><<<1024, 256>>>(results_, first, count, step); break;
    }
    check(cudaGetLastError(), "launch");
    std::vector<std::uint32_t> copy(count);
    check(cudaMemcpy(copy.data(), results_, sizeof(std::uint32_t) * count, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return copy;
  }

 private:
  std::uint32_t* results_ = nullptr;
};

// NAME.sm90.gz of FOLDER: the first result as u32, then differences as i16, low bytes first.
void write_table(const std::string& folder, const char* name, const std::vector<std::uint32_t>& table) {
  std::vector<unsigned char> bytes;
  bytes.reserve(2 * table.size() + 2);
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<unsigned char>(table[0] >> shift));
  for (std::size_t i = 1; i < table.size(); ++i) {
    const auto difference = static_cast<std::int32_t>(table[i] - table[i - 1]);
    if (difference < INT16_MIN || difference > INT16_MAX) {
      std::fprintf(stderr, "%s: results %zu and %zu differ by %d, more than an i16 holds\n", name, i - 1, i, difference);
      std::exit(2);
    }
    bytes.push_back(static_cast<unsigned char>(difference));
    bytes.push_back(static_cast<unsigned char>(difference >> 8));
  }
  const std::string path = folder + "/" + name + ".sm90.gz";
  gzFile file = gzopen(path.c_str(), "wb9");
  const bool written =
      file != nullptr && gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size());
  if (!written || gzclose(file) != Z_OK) {
    std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
    std::exit(2);
  }
  std::printf("%s: %zu results\n", path.c_str(), table.size());
}

void record(Device& device, const std::string& folder) {
  constexpr std::uint32_t kMantissas = 1u << 23, kOne = 0x3F800000;
  write_table(folder, "rcp", device(Instruction::rcp_ftz, kOne, kMantissas));
  write_table(folder, "rsqrt", device(Instruction::rsqrt_ftz, kOne, 2 * kMantissas));
  write_table(folder, "ex2", device(Instruction::ex2_ftz, 0, kMantissas, 0x1p-23f));
  write_table(folder, "negative_ex2", device(Instruction::ex2_ftz, 0, kMantissas, -0x1p-23f));
  std::vector<std::uint32_t> octaves;
  std::uint32_t octave = 127 - 8;
  for (const int bits : assay::kTanhBits) {
    const std::vector<std::uint32_t> whole = device(Instruction::tanh, octave++ << 23, kMantissas);
    for (std::uint32_t i = 0; i < kMantissas; i += 1u << (23 - bits)) octaves.push_back(whole[i]);
  }
  write_table(folder, "tanh", octaves);
}

// How many results of one instruction differ; the first three are printed.
std::uint64_t compare(Device& device, const Row& row) {
  std::atomic<std::uint64_t> differing = 0;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += kChunk) {
    const std::vector<std::uint32_t> got = device(row.instruction, static_cast<std::uint32_t>(first), kChunk);
    const unsigned workers = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (unsigned worker = 0; worker < workers; ++worker) {
      threads.emplace_back([&, worker] {
        const std::uint64_t begin = std::uint64_t{kChunk} * worker / workers,
                            end = std::uint64_t{kChunk} * (worker + 1) / workers;
        for (std::uint64_t i = begin; i < end; ++i) {
          const auto bits = static_cast<std::uint32_t>(first + i);
          const auto expected = std::bit_cast<std::uint32_t>(row.predicted(std::bit_cast<float>(bits)));
          if (expected != got[i] && differing++ < 3) {
            std::printf("  %s of 0x%08X: 0x%08X, expected 0x%08X\n", row.name, bits, got[i], expected);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  return differing;
}

}  // namespace

int main(int count, char** words) {
  const std::string task = count > 1 ? words[1] : "";
  const bool recording = task == "record" && count > 2;
  int index = 0;
  std::vector<std::string> names;  // of the instructions to compare; none: all
  bool understood = recording || task == "check";
  for (int i = recording ? 3 : 2; i < count; ++i) {
    if (std::strcmp(words[i], "--device") == 0 && i + 1 < count) {
      index = std::atoi(words[++i]);
    } else {
      names.emplace_back(words[i]);
      const auto known = [&](const Row& row) { return names.back() == row.name; };
      understood = understood && !recording && std::any_of(std::begin(kRows), std::end(kRows), known);
    }
  }
  if (!understood) {
    std::fprintf(stderr, "usage: measure_approximations record FOLDER | check [NAME ...] [--device N]; the names:");
    for (const Row& row : kRows) std::fprintf(stderr, " %s", row.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("not run: no CUDA device\n");
    return 77;
  }
  check(cudaSetDevice(index), "cudaSetDevice");
  cudaDeviceProp properties = {};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  std::printf("%s (sm%d%d)\n", properties.name, properties.major, properties.minor);
  Device device;
  if (recording) {
    record(device, words[2]);
    return 0;
  }
  std::uint64_t differing = 0;
  for (const Row& row : kRows) {
    if (!names.empty() && std::find(names.begin(), names.end(), row.name) == names.end()) continue;
    const std::uint64_t of_this = compare(device, row);
    std::printf("%-22s %llu of 4294967296 results differ\n", row.name, static_cast<unsigned long long>(of_this));
    std::fflush(stdout);
    differing += of_this;
  }
  return differing == 0 ? 0 : 1;
}
