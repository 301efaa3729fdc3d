#pragma once
// Memory that this process shares with those it forks.

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <stdexcept>

namespace assay::mutants {

template <class Value>
struct Shared {
  Value* values;
  std::size_t bytes;
  explicit Shared(std::size_t count) : bytes((count == 0 ? 1 : count) * sizeof(Value)) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory that processes share");
    values = new (memory) Value[count == 0 ? 1 : count];
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { munmap(values, bytes); }
};

}  // namespace assay::mutants
