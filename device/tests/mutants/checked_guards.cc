// In place of guards.cc, for kernels that are compiled with the address sanitizer: it knows which bytes an allocation has, and ends the
// process at a load or store beside them.

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "device/tests/mutants/guards.h"

// No report of where, which takes longer than the call, and none of memory that lives to the end.
extern "C" const char* __asan_default_options() { return "symbolize=0:detect_leaks=0:detect_stack_use_after_return=0"; }

namespace assay::mutants {
namespace {

// An allocation that begins past an address of malloc().
struct Shifted {
  std::byte *begin = nullptr, *all = nullptr;
};
std::array<Shifted, 64> shifted;
std::size_t next_past = 0;  // of the next allocation

void* allocate(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(std::malloc(next_past + bytes));
  if (memory == nullptr) throw std::bad_alloc();
  if (next_past == 0) return memory;
  const auto place = std::find_if(shifted.begin(), shifted.end(), [](const Shifted& each) { return each.begin == nullptr; });
  if (place == shifted.end()) throw std::bad_alloc();
  __asan_poison_memory_region(memory, next_past);  // whole multiples of 8 bytes
  *place = {memory + next_past, memory};
  return place->begin;
}

void release(void* data) {
  const auto place = data == nullptr
                         ? shifted.end()
                         : std::find_if(shifted.begin(), shifted.end(), [&](const Shifted& each) { return each.begin == data; });
  if (place == shifted.end()) return std::free(data);
  std::free(place->all);
  *place = {};
}

}  // namespace

void renew_guards(const void*, std::size_t) {}
bool guards_hold(const void*, std::size_t) { return true; }

std::vector<std::byte> fenced_copy(const std::vector<std::byte>& bytes, Fence, std::size_t past) {
  if (bytes.empty()) return {};
  next_past = past;
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  next_past = 0;
  return copy;
}

}  // namespace assay::mutants

void* operator new(std::size_t bytes) { return assay::mutants::allocate(bytes); }
// The sanitizer has its own, from which this one's delete may not take memory.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return assay::mutants::allocate(bytes); }
void* operator new[](std::size_t bytes) { return assay::mutants::allocate(bytes); }
void operator delete(void* data) noexcept { assay::mutants::release(data); }
void operator delete[](void* data) noexcept { operator delete(data); }
void operator delete(void* data, std::size_t) noexcept { operator delete(data); }
void operator delete[](void* data, std::size_t) noexcept { operator delete(data); }
