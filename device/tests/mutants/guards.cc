#include "device/tests/mutants/guards.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>

namespace assay::mutants {
namespace {

constexpr std::size_t kGuard = 1024;  // more than a row of the tensors here
constexpr std::size_t kPage = 4096, kAlignment = 16;
constexpr std::uintptr_t kFirstAddress = 0x2000'0000'0000, kApart = 0x1'0000'0000;
constexpr std::byte kValue{0xC3};

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Memory that may be read and written, with a page that may not on either side.
struct Pages {
  std::byte *begin = nullptr, *end = nullptr;
};
std::array<Pages, 64> fenced;  // those of the tensors of a call; unused ones are null
std::size_t fenced_end = 0;    // behind the last one that was used
std::optional<Fence> next;     // of the next allocation
std::size_t next_past = 0;     // and where it begins

Pages* pages_of(const void* data) {
  const auto holds = [&](const Pages& each) { return each.begin <= data && data < each.end; };
  const auto found = std::find_if(fenced.begin(), fenced.begin() + fenced_end, holds);
  return found == fenced.begin() + fenced_end ? nullptr : &*found;
}

// The guards of an allocation and what lies between.
Pages around(const void* data, std::size_t bytes) {
  if (const Pages* pages = pages_of(data)) return *pages;
  auto* const first = static_cast<std::byte*>(const_cast<void*>(data));
  return {first - kGuard, first + bytes + kGuard};
}

void* allocate_fenced(std::size_t bytes, Fence fence) {
  const std::size_t inside = round_up(bytes + next_past, kPage);
  const auto place = std::find_if(fenced.begin(), fenced.end(), [](const Pages& each) { return each.begin == nullptr; });
  // Each tensor has the same address in every process, if the system can: a mutant may be seen at some addresses alone.
  auto* const wanted = reinterpret_cast<void*>(kFirstAddress + static_cast<std::uintptr_t>(place - fenced.begin()) * kApart);
  void* const all = mmap(wanted, inside + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == fenced.end() || all == MAP_FAILED) throw std::bad_alloc();
  std::byte* const begin = static_cast<std::byte*>(all) + kPage;
  if (mprotect(begin, inside, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  *place = {begin, begin + inside};
  fenced_end = std::max(fenced_end, static_cast<std::size_t>(place - fenced.begin()) + 1);
  return fence == Fence::before ? begin + next_past : begin + inside - round_up(bytes, kAlignment);
}

void* allocate(std::size_t bytes) {
  if (next) return allocate_fenced(bytes, *next);
  auto* const memory = static_cast<std::byte*>(std::malloc(bytes + 2 * kGuard));
  if (memory == nullptr) throw std::bad_alloc();
  return memory + kGuard;
}

void release(void* data) {
  if (data == nullptr) return;
  Pages* const pages = pages_of(data);
  if (pages == nullptr) return std::free(static_cast<std::byte*>(data) - kGuard);
  munmap(pages->begin - kPage, static_cast<std::size_t>(pages->end - pages->begin) + 2 * kPage);
  *pages = {};
}

}  // namespace

void renew_guards(const void* data, std::size_t bytes) {
  if (data == nullptr) return;
  const Pages pages = around(data, bytes);
  auto* const first = static_cast<std::byte*>(const_cast<void*>(data));
  std::fill(pages.begin, first, kValue);
  std::fill(first + bytes, pages.end, kValue);
}

bool guards_hold(const void* data, std::size_t bytes) {
  if (data == nullptr) return true;
  const Pages pages = around(data, bytes);
  const auto* const first = static_cast<const std::byte*>(data);
  const auto holds = [](std::byte each) { return each == kValue; };
  return std::all_of<const std::byte*>(pages.begin, first, holds) &&
         std::all_of<const std::byte*>(first + bytes, pages.end, holds);
}

std::vector<std::byte> fenced_copy(const std::vector<std::byte>& bytes, Fence fence, std::size_t past) {
  next = fence;
  next_past = past;
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  next.reset();
  return copy;
}

}  // namespace assay::mutants

void* operator new(std::size_t bytes) { return assay::mutants::allocate(bytes); }
void* operator new[](std::size_t bytes) { return assay::mutants::allocate(bytes); }
void operator delete(void* data) noexcept { assay::mutants::release(data); }
void operator delete[](void* data) noexcept { operator delete(data); }
void operator delete(void* data, std::size_t) noexcept { operator delete(data); }
void operator delete[](void* data, std::size_t) noexcept { operator delete(data); }
