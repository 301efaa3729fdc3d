// What cuRAND's device generator Philox4_32_10 draws (spec nvfp4-4.2), as the table golden/philox/curand_draws.csv.
//
//   record_curand_draws device|host > FILE
//
// The functions of curand_kernel.h compile for both; `device` runs them on the first GPU. One row for each state, and for each state
// 12 draws of curand(), of which the later 4 follow 40 that are not written. Exit code: 0 written, 2 an error, 77 no device.

#define QUALIFIERS static __forceinline__ __host__ __device__
#include <curand_kernel.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct State {
  unsigned long long seed, subsequence, offset;
};
constexpr int kFirst = 8, kSkipped = 40, kDraws = 12;
struct Draws {
  std::uint32_t words[kDraws];
};

// Seeds, subsequences and offsets around the places where a word of the key or of the counter changes.
std::vector<State> states() {
  constexpr unsigned long long k32 = 1ull << 32;
  std::vector<State> all;
  for (const unsigned long long seed : {0ull, 1ull, 0x1234567ull, k32 - 1, k32, 0x9E3779B97F4A7C15ull, ~0ull}) {
    for (const unsigned long long subsequence : {0ull, 1ull, 255ull, k32 - 1, k32, ~0ull}) {
      for (const unsigned long long offset :
           {0ull, 1ull, 2ull, 3ull, 4ull, 7ull, 1027ull, k32 - 1, k32, 4 * k32 - 9, 4 * k32 - 1, 4 * k32 + 2, ~0ull - 5}) {
        all.push_back({seed, subsequence, offset});
      }
    }
  }
  return all;
}

__host__ __device__ void draw(const State& from, Draws& to) {
  curandStatePhilox4_32_10_t state;
  curand_init(from.seed, from.subsequence, from.offset, &state);
  for (int n = 0; n < kFirst; ++n) to.words[n] = curand(&state);
  for (int n = 0; n < kSkipped; ++n) curand(&state);
  for (int n = kFirst; n < kDraws; ++n) to.words[n] = curand(&state);
}

__global__ void draw_all(const State* from, Draws* to, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) draw(from[i], to[i]);
}

bool on_device(const std::vector<State>& from, std::vector<Draws>& to) {
  State* states = nullptr;
  Draws* draws = nullptr;
  const int count = static_cast<int>(from.size());
  cudaError_t status = cudaMalloc(&states, from.size() * sizeof(State));
  if (status == cudaSuccess) status = cudaMalloc(&draws, to.size() * sizeof(Draws));
  if (status == cudaSuccess) status = cudaMemcpy(states, from.data(), from.size() * sizeof(State), cudaMemcpyHostToDevice);
  if (status == cudaSuccess) {
    draw_all<<<(count + 127) / 128, 128>>>(states, draws, count);
    status = cudaGetLastError();
  }
  if (status == cudaSuccess) status = cudaMemcpy(to.data(), draws, to.size() * sizeof(Draws), cudaMemcpyDeviceToHost);
  cudaFree(states);
  cudaFree(draws);
  if (status != cudaSuccess) std::fprintf(stderr, "record_curand_draws: %s\n", cudaGetErrorString(status));
  return status == cudaSuccess;
}

}  // namespace

int main(int count, char** words) {
  const std::string where = count == 2 ? words[1] : "";
  if (where != "device" && where != "host") {
    std::fprintf(stderr, "usage: record_curand_draws device|host > FILE\n");
    return 2;
  }
  const std::vector<State> from = states();
  std::vector<Draws> to(from.size());
  if (where == "device") {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      std::fprintf(stderr, "record_curand_draws: no device\n");
      return 77;
    }
    if (!on_device(from, to)) return 2;
  } else {
    for (std::size_t i = 0; i < from.size(); ++i) draw(from[i], to[i]);
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::printf("%llu,%llu,%llu", from[i].seed, from[i].subsequence, from[i].offset);
    for (const std::uint32_t word : to[i].words) std::printf(",%08" PRIx32, word);
    std::printf("\n");
  }
  return 0;
}
