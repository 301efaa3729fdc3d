#pragma once
// Numbered points of the instrumented copy of the reference (instrument.py). A point computes what the source says, unless its
// number is the chosen one: then it computes one of its variants.
//
//   a < POINT < b      <=, not <, and for whole numbers a + 1 < b           likewise <=, >, >=
//   a == POINT == b    !=                                                   likewise !=
//   a + POINT + b      a - b, and the result one more and one less          likewise - * / % & | ^ << >>; floats: one ulp
//   c != POINT         a condition: not c, always true, always false
//   conjunct, disjunct an operand of && or || left out
//   value              a constant one more and one less
//   minimum, maximum   either operand; fused: rounded twice; magnitude, sign: left out
//   statement          left out
//
// What is evaluated at compile time, and operators of other types than numbers, have no variants.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "conformance/selftest/point_state.h"

namespace assay_points {

extern State state;

// Whether the chosen variant of the point is wrong now. `differs`: for each variant, whether it makes a difference.
bool decide(std::int32_t point, const bool* differs, int variants);

// Whether the point must be looked at. The number is put into a section of the library too, by an instruction that can be
// removed only where the code is.
template <int id>
[[gnu::always_inline]] inline bool is_active() {
  asm volatile(".pushsection assay_points,\"a\"\n\t.balign 4\n\t.long %c0\n\t.popsection" : : "i"(id));
  const std::int32_t at = state.point;
  return __builtin_expect(at == id || (at < 0 && state.noted[id] != 0), 0);
}

template <class T>
bool is_same(T a, T b) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  return a == b;
}

// The right value, or a wrong one of `wrong`.
template <class T, class... Wrong>
[[gnu::noinline, gnu::cold]] T choose(std::int32_t point, T right, Wrong... wrong) {
  const std::array<T, sizeof...(Wrong)> all = {static_cast<T>(wrong)...};
  std::array<bool, sizeof...(Wrong)> differs{};
  for (std::size_t i = 0; i < all.size(); ++i) differs[i] = !is_same(all[i], right);
  return decide(point, differs.data(), static_cast<int>(all.size())) ? all[static_cast<std::size_t>(state.variant)] : right;
}

template <class T>
constexpr bool is_number = std::is_arithmetic_v<std::remove_cvref_t<T>>;

// The next value up or down; wraps as whole numbers do.
template <class T>
T neighbour(T value, int step) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + static_cast<std::uint32_t>(step));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(step));
  } else {
    return static_cast<T>(value + static_cast<T>(step));
  }
}

// An operator written twice with a point between: the first takes the left operand, the second the right one.
// clang-format off
#define ASSAY_POINT_OPERATOR(name, op, applies, ...)                                                                     \
  template <int id> struct name {};                                                                                      \
  template <int id, class L> struct name##_of { L left; };                                                               \
  template <int id, class L>                                                                                             \
  constexpr name##_of<id, L&&> operator op(L&& left, name<id>) { return {static_cast<L&&>(left)}; }                      \
  template <int id, class L, class R>                                                                                    \
  constexpr decltype(auto) operator op(name##_of<id, L> held, R&& right) {                                               \
    if constexpr (applies) {                                                                                             \
      const auto l = held.left; const auto r = right;                                                                    \
      const auto v = l op r;                                                                                             \
      using V = std::remove_const_t<decltype(v)>;                                                                        \
      if (!std::is_constant_evaluated() && is_active<id>()) return __VA_ARGS__;                                          \
      return V(v);                                                                                                       \
    } else {                                                                                                             \
      return static_cast<L>(held.left) op static_cast<R&&>(right);                                                       \
    }                                                                                                                    \
  }
// clang-format on

// Whether a + 1 compares with b as `compare` says; for floats the right answer, which is no variant.
template <class L, class R, class Compare>
bool shortened(L a, R b, bool right, Compare compare) {
  if constexpr (std::is_integral_v<L> && std::is_integral_v<R>) return compare(a, b);
  return right;
}
template <class V, class L, class R>
V without_shift_overflow(L a, R b, bool left) {
  const int by = static_cast<int>(b) & (static_cast<int>(sizeof(V)) * 8 - 1);
  return static_cast<V>(left ? static_cast<V>(a) << by : static_cast<V>(a) >> by);
}

#define ASSAY_POINT_NUMBERS (is_number<L> && is_number<R>)
#define ASSAY_POINT_WHOLE \
  (ASSAY_POINT_NUMBERS && std::is_integral_v<std::remove_cvref_t<L>> && std::is_integral_v<std::remove_cvref_t<R>>)
#define ASSAY_POINT_ANY                                                                                \
  (!std::is_array_v<std::remove_cvref_t<L>> && std::is_copy_constructible_v<std::remove_cvref_t<L>> && \
   !std::is_array_v<std::remove_cvref_t<R>>)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
ASSAY_POINT_OPERATOR(less, <, ASSAY_POINT_NUMBERS,
                     choose(id, v, l <= r, !v,
                            shortened(
                                l, r, v, [](auto a, auto b) { return a + 1 < b; })))
ASSAY_POINT_OPERATOR(less_equal, <=, ASSAY_POINT_NUMBERS, choose(id, v, l < r, !v))
ASSAY_POINT_OPERATOR(greater, >, ASSAY_POINT_NUMBERS, choose(id, v, l >= r, !v))
ASSAY_POINT_OPERATOR(greater_equal, >=, ASSAY_POINT_NUMBERS,
                     choose(id, v, l > r, !v, shortened(l, r, v, [](auto a, auto b) { return a + 1 >= b; })))
ASSAY_POINT_OPERATOR(equal, ==, ASSAY_POINT_ANY, choose(id, v, !v))
ASSAY_POINT_OPERATOR(unequal, !=, ASSAY_POINT_ANY, choose(id, v, !v))
ASSAY_POINT_OPERATOR(plus, +, ASSAY_POINT_NUMBERS, choose(id, V(v), l - r, neighbour(V(v), 1), neighbour(V(v), -1)))
ASSAY_POINT_OPERATOR(minus, -, ASSAY_POINT_NUMBERS, choose(id, V(v), l + r, neighbour(V(v), 1), neighbour(V(v), -1)))
ASSAY_POINT_OPERATOR(times, *, ASSAY_POINT_NUMBERS, choose(id, V(v), l + r, neighbour(V(v), 1), neighbour(V(v), -1)))
ASSAY_POINT_OPERATOR(divide, /, ASSAY_POINT_NUMBERS, choose(id, V(v), l* r, neighbour(V(v), 1), neighbour(V(v), -1)))
ASSAY_POINT_OPERATOR(modulo, %, ASSAY_POINT_WHOLE, choose(id, V(v), l, neighbour(V(v), 1), neighbour(V(v), -1)))
ASSAY_POINT_OPERATOR(bit_and, &, ASSAY_POINT_WHOLE, choose(id, V(v), l | r, l))
ASSAY_POINT_OPERATOR(bit_or, |, ASSAY_POINT_WHOLE, choose(id, V(v), l& r, l))
ASSAY_POINT_OPERATOR(bit_xor, ^, ASSAY_POINT_WHOLE, choose(id, V(v), l | r, l))
ASSAY_POINT_OPERATOR(shift_left, <<, ASSAY_POINT_WHOLE,
                     choose(id, V(v), without_shift_overflow<V>(l, r, false), without_shift_overflow<V>(l, r + 1, true)))
ASSAY_POINT_OPERATOR(shift_right, >>, ASSAY_POINT_WHOLE,
                     choose(id, V(v), without_shift_overflow<V>(l, r, true), without_shift_overflow<V>(l, r + 1, false)))
#pragma GCC diagnostic pop
#undef ASSAY_POINT_OPERATOR
#undef ASSAY_POINT_NUMBERS
#undef ASSAY_POINT_WHOLE
#undef ASSAY_POINT_ANY

// A condition, which only if, while and ?: read.
struct Decision {
  bool value;
  explicit constexpr operator bool() const { return value; }
};
template <int id>
struct condition {};
template <int id, class T>
constexpr Decision operator!=(T&& given, condition<id>) {
  const bool value = static_cast<bool>(given);
  if (!std::is_constant_evaluated() && is_active<id>()) return {choose(id, value, !value, true, false)};
  return {value};
}

template <int id>
constexpr bool conjunct(bool value) {
  return !std::is_constant_evaluated() && is_active<id>() ? choose(id, value, true) : value;
}
template <int id>
constexpr bool disjunct(bool value) {
  return !std::is_constant_evaluated() && is_active<id>() ? choose(id, value, false) : value;
}

template <int id, class T>
constexpr decltype(auto) value(T&& given) {
  if constexpr (is_number<T>) {
    using V = std::remove_cvref_t<T>;
    if (!std::is_constant_evaluated() && is_active<id>())
      return choose(id, V(given), neighbour(V(given), 1), neighbour(V(given), -1));
    return V(given);
  } else {
    return static_cast<T&&>(given);
  }
}

template <int id, class T>
constexpr T minimum(T a, T b) {
  const T right = std::min(a, b);
  if constexpr (is_number<T>) {
    if (!std::is_constant_evaluated() && is_active<id>()) return choose(id, right, a, b);
  }
  return right;
}
template <int id, class T>
constexpr T maximum(T a, T b) {
  const T right = std::max(a, b);
  if constexpr (is_number<T>) {
    if (!std::is_constant_evaluated() && is_active<id>()) return choose(id, right, a, b);
  }
  return right;
}
template <int id, class T, class Compare>
constexpr T maximum(T a, T b, Compare compare) {
  return std::max(a, b, compare);
}

template <int id, class A, class B, class C>
auto fused(A a, B b, C c) {
  const auto right = std::fma(a, b, c);
  using V = std::remove_const_t<decltype(right)>;
  if (is_active<id>()) {
    const V product = static_cast<V>(a) * static_cast<V>(b);
    return choose(id, V(right), product + static_cast<V>(c));
  }
  return V(right);
}
template <int id, class T>
auto magnitude(T x) {
  const auto right = std::abs(x);
  using V = std::remove_const_t<decltype(right)>;
  return is_active<id>() ? choose(id, V(right), static_cast<V>(x)) : V(right);
}
template <int id, class T>
bool sign(T x) {
  const bool right = std::signbit(x);
  return is_active<id>() ? choose(id, right, !right, false) : right;
}

template <int id>
bool is_left_out() {
  return is_active<id>() && choose(id, false, true);
}

}  // namespace assay_points

#define ASSAY_POINT(kind, id) \
  ::assay_points::kind<id> {}
#define ASSAY_POINT_VALUE(id, ...) ::assay_points::value<id>(__VA_ARGS__)
#define ASSAY_POINT_STATEMENT(id, ...) \
  static_cast<void>(::assay_points::is_left_out<id>() || (static_cast<void>(__VA_ARGS__), true))
