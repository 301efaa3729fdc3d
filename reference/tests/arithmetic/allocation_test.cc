// A step of the scalar layer allocates no memory: there are billions of steps, and where the address space is limited the C
// library may need a system call for each allocation.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "reference/arithmetic/tensor_core.h"

namespace {

std::atomic<long> allocations{0};

}  // namespace

// Replaced for this whole test program: all forms whose memory the plain delete releases. A sanitizer has its own forms.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new(std::size_t size) {
  if (void* made = operator new(size, std::nothrow)) return made;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace assay {
namespace {

TEST(Step, allocates_nothing) {
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    const auto length = static_cast<std::size_t>(unit.products_per_step);
    const std::size_t scales = scales_of_step(unit, length);
    const std::vector<std::uint32_t> a(length, 1), b(length, 2);
    const std::vector<std::uint8_t> scale_a(scales, 1), scale_b(scales, 1);
    const Format type = unit.operands[0];
    const long before = allocations;
    tensor_core_step(unit, type, a, type, b, 0, scale_a, scale_b);
    EXPECT_EQ(allocations - before, 0) << unit.name;
    std::vector<int>* counted = new std::vector<int>(3);  // the counter works
    EXPECT_EQ(allocations - before, 2);
    delete counted;
  }
}

}  // namespace
}  // namespace assay
