#include "device/tests/mutants/shared_memory.h"

#include <algorithm>
#include <vector>

namespace assay::mutants {
namespace {

constexpr std::byte kValue{0xC3};
std::vector<const SharedGuard*> watched;

}  // namespace

void watch(SharedGuard& guard) {
  std::fill(std::begin(guard.bytes), std::end(guard.bytes), kValue);
  watched.push_back(&guard);
}

bool shared_guards_hold() {
  const auto holds = [](const SharedGuard* guard) {
    return std::all_of(std::begin(guard->bytes), std::end(guard->bytes), [](std::byte each) { return each == kValue; });
  };
  return std::all_of(watched.begin(), watched.end(), holds);
}

}  // namespace assay::mutants
