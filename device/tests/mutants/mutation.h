#pragma once
// Points at which mutate.py changed a copy of a kernel's source. Each is the original expression until `chosen` is its number.
// A point in a constant expression is never reached: what the compiler computes stays as it is.
//
//   source                copy
//   a < b                 a < ::assay::mutants::Compared{12} < b      12: a <= b
//   if (c)                if (::assay::mutants::condition(13, c))     13: true     14: false
//   4                     ::assay::mutants::literal(15, 4)            15: 5        16: 3
//   max(a, b)             ::assay::mutants::maximum(17, a, b)         17: min(a, b)
//   __fmul_rn(a, b)       ::assay::mutants::multiply(18, a, b)        18: rounded toward zero
//   __syncthreads();      if (!::assay::mutants::is(19)) ...          19: no barrier
//   atomicOr(p, v)        (::assay::mutants::is(20) ? ... )           20: not stored; memsets alike

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace assay::mutants {

extern int chosen;              // number of the mutant, -1: none
extern std::uint8_t reached[];  // by number: whether the point was evaluated

inline bool is(int number) {
  reached[number] = 1;
  return chosen == number;
}

constexpr bool condition(int number, bool value) {
  if (std::is_constant_evaluated()) return value;
  if (is(number)) return true;
  return is(number + 1) ? false : value;
}

template <class Value>
constexpr Value literal(int number, Value value) {
  if (std::is_constant_evaluated()) return value;
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
#define ASSAY_MUTANTS_COMPARISON(OPERATOR, MUTATED)                        \
  template <class A>                                                       \
  constexpr Left<A> operator OPERATOR(A a, Compared point) {               \
    return {a, point.number};                                              \
  }                                                                        \
  template <class A, class B>                                              \
  constexpr bool operator OPERATOR(Left<A> left, const B& b) {             \
    if (std::is_constant_evaluated()) return left.value OPERATOR b;        \
    return is(left.number) ? left.value MUTATED b : left.value OPERATOR b; \
  }
ASSAY_MUTANTS_COMPARISON(<, <=)
ASSAY_MUTANTS_COMPARISON(<=, <)
ASSAY_MUTANTS_COMPARISON(>, >=)
ASSAY_MUTANTS_COMPARISON(>=, >)
ASSAY_MUTANTS_COMPARISON(==, !=)
ASSAY_MUTANTS_COMPARISON(!=, ==)
#undef ASSAY_MUTANTS_COMPARISON

template <class A, class B>
constexpr auto maximum(int number, A a, B b) {
  const bool larger = a < b;
  if (!std::is_constant_evaluated() && is(number)) return larger ? a : b;
  return larger ? b : a;
}
template <class A, class B>
constexpr auto minimum(int number, A a, B b) {
  const bool smaller = b < a;
  if (!std::is_constant_evaluated() && is(number)) return smaller ? a : b;
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

}  // namespace assay::mutants
