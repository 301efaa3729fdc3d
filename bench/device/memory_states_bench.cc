// The two states of the card (device_bench.h, bench/results/h200_memory_states.json): one quantization, timed again and again,
// with copies, memsets and other kernels between. Kernel and data are the same; only the work before differs.
//
//   device_memory_states_bench
//
// Prints a line per step: what was done, where x and the codes lie (in MiB of one allocation), and the time of one launch in five
// rows of 8. Nothing is allocated meanwhile, and the number of runs is fixed.

#include <cstdint>
#include <cstdio>

#include "bench/device/device_bench.h"
#include "device/quantize/quantize.h"

namespace assay::bench {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kRows = 32768, kColumns = 7168, kElements = kRows * kColumns;
constexpr std::int64_t kXBytes = 2 * kElements, kCodeBytes = kElements;
constexpr std::int64_t kAllBytes = 20 * 1024 * kMiB, kScratch = 18 * 1024;  // kScratch: in MiB, where copies go

class Card {
 public:
  Card() : memory_(kAllBytes, Lifetime::process) {
    const DeviceBuffer x = normal_values(Format::bf16, kElements);
    for (std::int64_t at = 0; at + kXBytes <= kAllBytes / 2; at += kXBytes) copy(at / kMiB, x.as<char>(), kXBytes);
  }

  void time(const char* after, Recipe recipe = Recipe::block_1x128, bool both = false) {
    device::QuantizeCall call;
    call.config.recipe = recipe;
    call.config.columnwise = both;
    call.rows.capacity = kRows;
    call.columns = kColumns;
    call.x = at(x);
    call.output.rowwise_data = at(codes);
    call.output.rowwise_scale_inv = at(codes + 240);
    if (both) {
      call.output.columnwise_data = at(codes + 400);
      call.output.columnwise_scale_inv = at(codes + 640);
    }
    const char* const kernel = recipe == Recipe::block_1x128 ? "1x128" : "128x128";
    std::printf("%-44s %-7s %-9s x %5lld codes %5lld  ", after, kernel, both ? "both" : "rowwise", static_cast<long long>(x),
                static_cast<long long>(codes));
    for (int row = 0; row < 5; ++row) {
      std::printf(" %6.1f", 1e6 * seconds_per_launch(8, [&](int) { device::quantize(call, stream()); }));
    }
    std::printf("\n");
  }
  void copy(std::int64_t to, const void* from, std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    check(cudaMemcpyAsync(at(to), from, size, cudaMemcpyDeviceToDevice, stream()), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  }
  void copy(std::int64_t to, std::int64_t from, std::int64_t bytes) { copy(to, at(from), bytes); }
  void set(std::int64_t to, std::int64_t bytes) {
    check(cudaMemsetAsync(at(to), 0, static_cast<std::size_t>(bytes), stream()), "cudaMemsetAsync");
  }

  std::int64_t x = 0, codes = 12 * 1024;  // MiB

 private:
  void* at(std::int64_t mib) const { return memory_.as<char>() + mib * kMiB; }
  DeviceBuffer memory_;
};

void run() {
  Card card;
  card.time("x was filled by copies");
  card.time("nothing");
  card.copy(card.codes, card.x, kCodeBytes);
  card.time("half of x was copied to the codes");
  card.x = 6000, card.codes = 16 * 1024;
  card.time("x and codes elsewhere");
  card.copy(kScratch, card.codes, kCodeBytes);
  card.time("codes copied away");
  card.copy(card.codes, kScratch, kCodeBytes);
  card.time("codes copied back");
  card.time("nothing", Recipe::block_1x128, true);
  card.time("both directions");
  card.time("nothing", Recipe::block_128x128);
  card.set(card.codes, kCodeBytes);
  card.time("codes set to 0");
  for (int i = 0; i < 16; ++i) card.copy(card.codes, card.x, kCodeBytes);
  card.time("half of x copied to the codes 16 times");
  card.time("nothing", Recipe::block_1x128, true);
  card.time("both directions");
  card.time("nothing", Recipe::block_128x128);
  copy_rate_now();
  card.time("copies of 4 GiB and a memset elsewhere");
}

}  // namespace
}  // namespace assay::bench

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no CUDA device: nothing was measured\n");
    return 9;
  }
  assay::bench::run();
}
