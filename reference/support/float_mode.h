#pragma once
// The floating-point mode of a thread: rounding, denormals, traps. All results of the reference are those of the default mode
// (spec conventions-1.1). A thread can inherit another mode from the thread that created it, or from a library linked with
// -ffast-math.

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace assay {

// Control bits only, without the status flags.
struct FloatMode {
#if defined(__x86_64__)
  std::uint32_t vector = 0x1F80;  // MXCSR
  std::uint32_t x87 = 0x037F;     // x87 control word
#elif defined(__aarch64__)
  std::uint64_t control = 0;  // FPCR
#else
  int rounding = FE_TONEAREST;
#endif
  bool operator==(const FloatMode&) const = default;
};

inline FloatMode current_float_mode() {
  FloatMode mode;
#if defined(__x86_64__)
  mode.vector = _mm_getcsr() & ~0x3Fu;
  std::uint16_t word = 0;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  mode.x87 = word;
#elif defined(__aarch64__)
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode.control));
#else
  mode.rounding = std::fegetround();
#endif
  return mode;
}

inline void set_float_mode(const FloatMode& mode) {
#if defined(__x86_64__)
  _mm_setcsr(mode.vector);
  const auto word = static_cast<std::uint16_t>(mode.x87);
  __asm__ volatile("fldcw %0" : : "m"(word));
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(mode.control));
#else
  std::fesetround(mode.rounding);
#endif
}

// Sets the default mode for its lifetime, then restores the thread's mode.
class DefaultFloatMode {
 public:
  DefaultFloatMode() : before_(current_float_mode()) {
    if (before_ != FloatMode{}) set_float_mode({});
  }
  ~DefaultFloatMode() {
    if (before_ != FloatMode{}) set_float_mode(before_);
  }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  const FloatMode before_;
};

}  // namespace assay
