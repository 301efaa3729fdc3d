// A right backend whose library is linked with -ffast-math, as some are: loading it sets flush-to-zero and denormals-are-zero,
// and here also rounding upward.

#include <cfenv>

#include "conformance/backends/built_in.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

// GCC 13 and later link no such start-up code into a shared library, so it is done here in any case.
__attribute__((constructor)) void set_mode() {
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

}  // namespace

extern "C" const assay_backend* assay_backend_v1(void) {
  static const assay_backend table = [] {
    assay_backend made = *assay::conformance::reference_backend();
    made.name = "fast_math";
    return made;
  }();
  return &table;
}
