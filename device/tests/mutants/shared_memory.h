#pragma once
// Shared memory of kernels that the host runs: each block finds bytes there that it may not count on, and a store behind it is seen.
// mutate.py writes the calls.
//
//   source                  copy
//   __shared__ T a, b[4];   static struct { T a, b[4]; SharedGuard guard; } shared_0;
//                           auto& [a, b, guard_0] = shared_0; enter_shared(shared_0);
//   extern __shared__ T c[];
//                           T* const c = dynamic_shared<T>();

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "device/tests/emulated_gemm/dynamic_shared.h"
#include "device/tests/emulated_gemm/run_kernel.h"

namespace assay::mutants {

struct SharedGuard {
  std::byte bytes[256];
};

// Begins to watch the guard.
void watch(SharedGuard& guard);
// Whether all that are watched are as they were.
bool shared_guards_hold();

// By each thread of a block, before it uses the memory: the first of them fills it. Bytes of NaN, of a large float, both far from
// an index.
template <class Shared>
void enter_shared(Shared& shared) {
  static std::uint64_t last_block = 0;  // of this memory: each has a type of its own
  if (last_block == device::host::blocks_begun) return;
  if (last_block == 0) watch(shared.guard);
  last_block = device::host::blocks_begun;
  std::memset(static_cast<void*>(&shared), device::host::reversed ? 0x5A : 0xFF, offsetof(Shared, guard));
}

// What the launch gives to the block (dynamic_shared.h). It ends where a page begins: a size that is a multiple of a larger alignment than
// kSharedAlignment has that too.
template <class Element, std::size_t kAlignment = alignof(Element)>
Element* dynamic_shared() {
  void* const memory = device::host::dynamic_shared();
  if (reinterpret_cast<std::uintptr_t>(memory) % kAlignment != 0) std::abort();
  return static_cast<Element*>(memory);
}

}  // namespace assay::mutants
