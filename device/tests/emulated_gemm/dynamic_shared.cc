#include "device/tests/emulated_gemm/dynamic_shared.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/tests/emulated_gemm/run_kernel.h"

namespace assay::device::host {

unsigned rank_in_cluster = 0;

namespace {

constexpr std::size_t kPage = 4096, kApart = std::size_t{1} << 18;  // more than a multiprocessor has
constexpr std::size_t kGuard = 256;
constexpr std::byte kValue{0xC3};

std::byte* first_page = nullptr;  // of the memory of block 0; kApart further lies that of block 1
std::size_t sizes[kMostInCluster] = {};
bool there[kMostInCluster] = {};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "run_kernel: %s\n", what);
  std::abort();
}

void reserve() {
  if (first_page != nullptr) return;
  void* const all = mmap(nullptr, kMostInCluster * kApart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) fail("no memory");
  first_page = static_cast<std::byte*>(all);
  for (unsigned rank = 0; rank < kMostInCluster; ++rank) mprotect(first_page + (rank + 1) * kApart - kPage, kPage, PROT_NONE);
}

// It ends where a page begins.
std::byte* memory_of(unsigned rank) {
  return first_page + (rank + 1) * kApart - kPage - (sizes[rank] + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
}

}  // namespace

void begin_dynamic_shared(unsigned rank, std::size_t bytes) {
  if (rank >= kMostInCluster || bytes + kGuard + kSharedAlignment + kPage > kApart) fail("more shared memory than a device has");
  reserve();
  sizes[rank] = bytes;
  there[rank] = true;
  std::byte* const memory = memory_of(rank);
  std::fill_n(memory - kGuard, kGuard, kValue);
  std::memset(memory, reversed ? found_in_reverse : 0xFF, bytes);
}

void end_dynamic_shared(unsigned rank) {
  there[rank] = false;
  const std::byte* const memory = memory_of(rank);
  if (!std::all_of(memory - kGuard, memory, [](std::byte each) { return each == kValue; })) fail("a store before shared memory");
}

void* dynamic_shared() { return memory_of(rank_in_cluster); }

std::uint32_t shared_address(const void* place) {
  return static_cast<std::uint32_t>(static_cast<const std::byte*>(place) - first_page);
}

std::uint32_t address_in_block(std::uint32_t address, unsigned rank) {
  if (rank >= kMostInCluster) fail("a place in a block that no cluster has");
  return static_cast<std::uint32_t>(address % kApart + rank * kApart);
}

void* at_address(std::uint32_t address, std::size_t bytes) {
  const auto rank = static_cast<unsigned>(address / kApart);
  if (rank >= kMostInCluster || !there[rank]) fail("an access to the shared memory of a block that has none");
  const std::byte* const memory = memory_of(rank);
  std::byte* const at = first_page + address;
  if (at < memory || at + bytes > memory + sizes[rank]) fail("an access beside the shared memory of a block");
  return at;
}

void store_at_address(std::uint32_t address, const void* value, std::size_t bytes) {
  if (address % bytes != 0) fail("a store at an address that is no multiple of its size");
  std::memcpy(at_address(address, bytes), value, bytes);
}

}  // namespace assay::device::host
