#include "conformance/selftest/hunt/guarded_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace assay::conformance {
namespace {

constexpr std::size_t kPage = 4096, kAlignment = 16;
constexpr std::size_t kPages = kGuardedBytes / kPage;
// A slot has a power of two of pages, and a guard page behind them.
constexpr int kSizes = 18;
// Each slot is two mappings, of which the system allows 65,530.
constexpr std::size_t kMostSlots = 28'000;
// What an allocation holds at first, and what stands in front of it and in the few bytes between its end and the guard page: a NaN,
// and no likely length or index.
constexpr int kFill = 0xA5;
// Slots of 2^kLarge pages and more hold zeros instead: new pages.
constexpr std::uint32_t kLarge = 8;

struct Slot {
  std::uint32_t page;  // its first one
  std::uint32_t size;  // 2^size pages
  std::uint32_t next;  // of the free ones of this size; 0: none
  std::size_t bytes;   // that were asked for
};

std::byte* region = nullptr;
std::atomic_flag lock = ATOMIC_FLAG_INIT;
// Slot 0 stands for none.
Slot slots[kMostSlots + 1];
std::uint32_t slot_of_page[kPages];
std::uint32_t free_slots[kSizes];
std::size_t used_slots = 0, used_pages = 0;

class Locked {
 public:
  Locked() {
    while (lock.test_and_set(std::memory_order_acquire)) {}
  }
  ~Locked() { lock.clear(std::memory_order_release); }
};

// Where the bytes begin that are filled in front of an allocation.
std::byte* front_of(std::byte* data, std::byte* begin) {
  return static_cast<std::size_t>(data - begin) > kPage ? data - kPage : begin;
}

bool is_filled(const std::byte* from, const std::byte* to) {
  return std::all_of(from, to, [](std::byte each) { return each == std::byte{kFill}; });
}

std::uint32_t new_slot(int size) {
  const std::size_t pages = std::size_t{1} << size;
  if (used_slots == kMostSlots || used_pages + pages + 1 > kPages) return 0;
  if (mprotect(region + used_pages * kPage, pages * kPage, PROT_READ | PROT_WRITE) != 0) return 0;
  slots[++used_slots] = {static_cast<std::uint32_t>(used_pages), static_cast<std::uint32_t>(size), 0, 0};
  used_pages += pages + 1;
  return static_cast<std::uint32_t>(used_slots);
}

}  // namespace

void guard_allocations() {
  void* const data = mmap(nullptr, kGuardedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data != MAP_FAILED) region = static_cast<std::byte*>(data);
}

void* guarded_allocate(std::size_t bytes) {
  if (region == nullptr || bytes > kGuardedBytes / 4) return nullptr;
  const std::size_t held = std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
  const int size = std::bit_width((held - 1) / kPage);
  if (size >= kSizes) return nullptr;
  std::byte *begin = nullptr, *end = nullptr;
  {
    const Locked locked;
    std::uint32_t& first = free_slots[size];
    const std::uint32_t slot = first != 0 ? first : new_slot(size);
    if (slot == 0) return nullptr;
    if (slot == first) first = slots[slot].next;
    begin = region + std::size_t{slots[slot].page} * kPage;
    end = begin + (kPage << size);
    slots[slot].bytes = bytes;
    slot_of_page[static_cast<std::size_t>(end - held - region) / kPage] = slot;
  }
  std::byte* const data = end - held;
  if (static_cast<std::uint32_t>(size) >= kLarge) return data;
  std::byte* const front = front_of(data, begin);
  std::memset(front, kFill, static_cast<std::size_t>(end - front));
  return data;
}

bool guarded_release(void* data) {
  auto* const at = static_cast<std::byte*>(data);
  if (region == nullptr || at < region || at >= region + kGuardedBytes) return false;
  const Locked locked;
  const std::uint32_t slot = slot_of_page[static_cast<std::size_t>(at - region) / kPage];
  const std::uint32_t size = slots[slot].size;
  std::byte* const begin = region + std::size_t{slots[slot].page} * kPage;
  std::byte* const end = begin + (kPage << size);
  if (size >= kLarge) {
    madvise(begin, kPage << size, MADV_DONTNEED);
  } else if (!is_filled(front_of(at, begin), at) || !is_filled(at + slots[slot].bytes, end)) {
    std::abort();
  }
  std::uint32_t& first = free_slots[size];
  slots[slot].next = first;
  first = slot;
  return true;
}

}  // namespace assay::conformance
