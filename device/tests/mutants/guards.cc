#include "device/tests/mutants/guards.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace assay::mutants {
namespace {

constexpr std::size_t kGuard = 1024;  // more than a row of the tensors here
constexpr std::byte kValue{0xC3};

std::byte* before(const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)) - kGuard; }
std::byte* behind(const void* data, std::size_t bytes) { return static_cast<std::byte*>(const_cast<void*>(data)) + bytes; }
bool holds(const std::byte* guard) {
  return std::all_of(guard, guard + kGuard, [](std::byte each) { return each == kValue; });
}

void* allocate(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(std::malloc(bytes + 2 * kGuard));
  if (memory == nullptr) throw std::bad_alloc();
  return memory + kGuard;
}

}  // namespace

void renew_guards(const void* data, std::size_t bytes) {
  if (data == nullptr) return;
  std::fill_n(before(data), kGuard, kValue);
  std::fill_n(behind(data, bytes), kGuard, kValue);
}

bool guards_hold(const void* data, std::size_t bytes) {
  return data == nullptr || (holds(before(data)) && holds(behind(data, bytes)));
}

}  // namespace assay::mutants

void* operator new(std::size_t bytes) { return assay::mutants::allocate(bytes); }
void* operator new[](std::size_t bytes) { return assay::mutants::allocate(bytes); }
void operator delete(void* data) noexcept {
  if (data != nullptr) std::free(assay::mutants::before(data));
}
void operator delete[](void* data) noexcept { operator delete(data); }
void operator delete(void* data, std::size_t) noexcept { operator delete(data); }
void operator delete[](void* data, std::size_t) noexcept { operator delete(data); }
