// The program's operator new. It is malloc() but in a process in which `assay selftest` has planted a mutant
// (conformance/selftest/hunt/guarded_memory.h). Sanitizers have their own.

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <cstdlib>
#include <new>

#include "conformance/selftest/hunt/guarded_memory.h"

void* operator new(std::size_t bytes) {
  if (void* const guarded = assay::conformance::guarded_allocate(bytes)) return guarded;
  for (;;) {
    if (void* const made = std::malloc(bytes == 0 ? 1 : bytes)) return made;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* data) noexcept {
  if (!assay::conformance::guarded_release(data)) std::free(data);
}

void operator delete(void* data, std::size_t) noexcept { operator delete(data); }

#endif
