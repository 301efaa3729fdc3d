#pragma once
// Points at which mutate.py changed a copy of a kernel's source. Each is the original expression until `chosen` is its number.
// A point in a constant expression is never reached: what the compiler computes stays as it is.
//
//   source                copy
//   a < b                 a < ::assay::mutants::Compared{12} < b      12: a <= b
//   for (; a < b;)        for (; ::assay::mutants::is_less(12, a, b);)
//   if (c)                if (::assay::mutants::condition(13, c))     13: true     14: false
//   4                     ::assay::mutants::literal(15, 4)            15: 5        16: 3
//   max(a, b)             ::assay::mutants::maximum(17, a, b)         17: min(a, b)
//   __fmul_rn(a, b)       ::assay::mutants::multiply(18, a, b)        18: rounded toward zero
//   __syncthreads();      if (!::assay::mutants::is(19)) ...          19: no barrier
//   atomicOr(p, v)        (::assay::mutants::is(20) ? ... )           20: not stored; memsets alike
//   launch_kernel(...);   { if (!::assay::mutants::is_left_out(21)) ... } 21: no launch, with --host

#include <cmath>
#include <cstdint>
#include <type_traits>

#ifdef __NVCC__
#include "device/tests/mutants/on_device/chosen.cuh"
#define ASSAY_MUTANTS_BOTH __host__ __device__
#else
#define ASSAY_MUTANTS_BOTH
#endif

namespace assay::mutants {

#ifndef __NVCC__
extern int chosen;              // number of the mutant, -1: none
extern std::uint8_t reached[];  // by number: whether the point was evaluated

inline bool is(int number) {
  reached[number] = 1;
  return chosen == number;
}

// Whether the host leaves out a launch or a memset.
inline bool is_left_out(int number) { return is(number); }
#endif

ASSAY_MUTANTS_BOTH constexpr bool condition(int number, bool value) {
  if (__builtin_is_constant_evaluated()) return value;
  if (is(number)) return true;
  return is(number + 1) ? false : value;
}

template <class Value>
ASSAY_MUTANTS_BOTH constexpr Value literal(int number, Value value) {
  if (__builtin_is_constant_evaluated()) return value;
  if (is(number)) return static_cast<Value>(value + 1);
  return is(number + 1) ? static_cast<Value>(value - 1) : value;
}

struct Compared {
  int number;
};
template <class Value>
struct Left {
  Value value;
  int number;
};

// The two operators of a comparison are the same, so that precedence is that of the source.
#define ASSAY_MUTANTS_COMPARISON(NAME, OPERATOR, MUTATED)                       \
  template <class A>                                                            \
  ASSAY_MUTANTS_BOTH constexpr Left<A> operator OPERATOR(A a, Compared point) { \
    return {a, point.number};                                                   \
  }                                                                             \
  template <class A, class B>                                                   \
  ASSAY_MUTANTS_BOTH constexpr bool operator OPERATOR(Left<A> left, B b) {      \
    if (__builtin_is_constant_evaluated()) return left.value OPERATOR b;        \
    return is(left.number) ? left.value MUTATED b : left.value OPERATOR b;      \
  }                                                                             \
  template <class A, class B>                                                   \
  ASSAY_MUTANTS_BOTH constexpr bool NAME(int number, A a, B b) {                \
    if (__builtin_is_constant_evaluated()) return a OPERATOR b;                 \
    return is(number) ? a MUTATED b : a OPERATOR b;                             \
  }
ASSAY_MUTANTS_COMPARISON(is_less, <, <=)
ASSAY_MUTANTS_COMPARISON(is_at_most, <=, <)
ASSAY_MUTANTS_COMPARISON(is_greater, >, >=)
ASSAY_MUTANTS_COMPARISON(is_at_least, >=, >)
ASSAY_MUTANTS_COMPARISON(is_equal, ==, !=)
ASSAY_MUTANTS_COMPARISON(is_unequal, !=, ==)
#undef ASSAY_MUTANTS_COMPARISON

#ifdef __NVCC__
// CUDA's own, which know numbers of two types, and floats that are none.
template <class A, class B>
ASSAY_MUTANTS_BOTH auto maximum(int number, A a, B b) {
  return is(number) ? ::min(a, b) : ::max(a, b);
}
template <class A, class B>
ASSAY_MUTANTS_BOTH auto minimum(int number, A a, B b) {
  return is(number) ? ::max(a, b) : ::min(a, b);
}

__device__ inline float multiply(int number, float a, float b) { return is(number) ? __fmul_rz(a, b) : __fmul_rn(a, b); }
__device__ inline float add(int number, float a, float b) { return is(number) ? __fadd_rz(a, b) : __fadd_rn(a, b); }
__device__ inline float subtract(int number, float a, float b) { return is(number) ? __fsub_rz(a, b) : __fsub_rn(a, b); }
__device__ inline float divide(int number, float a, float b) { return is(number) ? __fdiv_rz(a, b) : __fdiv_rn(a, b); }
#else
template <class A, class B>
constexpr auto maximum(int number, A a, B b) {
  const bool larger = a < b;
  if (!__builtin_is_constant_evaluated() && is(number)) return larger ? a : b;
  return larger ? b : a;
}
template <class A, class B>
constexpr auto minimum(int number, A a, B b) {
  const bool smaller = b < a;
  if (!__builtin_is_constant_evaluated() && is(number)) return smaller ? a : b;
  return smaller ? b : a;
}

// The value toward zero of the two floats around `exact`, where `nearest` is its nearest.
inline float toward_zero(float nearest, double exact) {
  return std::fabs(static_cast<double>(nearest)) > std::fabs(exact) ? std::nextafter(nearest, 0.0f) : nearest;
}
inline float multiply(int number, float a, float b) {
  return is(number) ? toward_zero(a * b, static_cast<double>(a) * b) : a * b;
}
inline float add(int number, float a, float b) { return is(number) ? toward_zero(a + b, static_cast<double>(a) + b) : a + b; }
inline float subtract(int number, float a, float b) {
  return is(number) ? toward_zero(a - b, static_cast<double>(a) - b) : a - b;
}
inline float divide(int number, float a, float b) { return is(number) ? toward_zero(a / b, static_cast<double>(a) / b) : a / b; }
#endif

}  // namespace assay::mutants
