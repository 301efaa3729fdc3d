#pragma once
// Operands, scales and accumulators for one step of a unit, in patterns for which its rules matter.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/tests/arithmetic/second_route.h"

namespace assay::unit_vectors {

using second_route::Vector;

// SplitMix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count)); }
  std::int64_t from_to(std::int64_t first, std::int64_t last) { return first + below(last - first + 1); }
  bool one_in(int count) { return below(count) == 0; }

 private:
  std::uint64_t state_;
};

struct Encoding {
  int exponent_bits, fraction_bits, bias;
};
inline Encoding encoding_of(Format format) {
  const second_route::Layout layout = second_route::layout_of(format);
  return {layout.exponent_bits, format == Format::f32 ? 23 : layout.fraction_bits, layout.bias};
}

inline std::uint32_t join(Format format, bool negative, std::int64_t exponent_field, std::uint64_t fraction) {
  const Encoding e = encoding_of(format);
  const std::int64_t top = (std::int64_t{1} << e.exponent_bits) - 1;
  const bool finite = format == Format::e3m2 || format == Format::e2m3 || format == Format::e2m1;
  const std::int64_t largest = format == Format::e4m3 || finite ? top : top - 1;
  std::uint32_t code = static_cast<std::uint32_t>(std::clamp<std::int64_t>(exponent_field, 0, largest)) << e.fraction_bits;
  code |= static_cast<std::uint32_t>(fraction & ((std::uint64_t{1} << e.fraction_bits) - 1));
  if (format == Format::e4m3 && code == 0x7F) code = 0x7E;
  return code | static_cast<std::uint32_t>(negative) << (e.exponent_bits + e.fraction_bits);
}

inline std::uint32_t flipped(Format format, std::uint32_t code) { return code ^ 1u << (bits_of(format) - 1); }

struct Generator {
  const TensorCoreUnit& unit;
  Random random;

  Format accumulator() const { return unit.accumulator == Accumulator::f16_nearest ? Format::f16 : Format::f32; }
  Format operand() {
    return unit.operands[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(unit.operands.size())))];
  }
  std::uint32_t raw(Format format) { return static_cast<std::uint32_t>(random.next() >> (64 - bits_of(format))); }

  // Products of one scale; 0 without scales.
  std::size_t scale_span() const {
    return unit.scaling == StepScaling::none ? 0 : unit.scaling == StepScaling::e8m0_per_32 ? 32 : 16;
  }
  // Whether each product is moved by one pair of scales.
  bool is_moved() const { return unit.scaling == StepScaling::e8m0_per_32 && unit.group == 1; }

  // Types, scales and zeros; some steps are short.
  Vector blank() {
    Vector v;
    v.a_type = operand();
    v.b_type = bits_of(v.a_type) < 16 ? operand() : v.a_type;
    const auto length = static_cast<std::size_t>(unit.products_per_step);
    const std::size_t count =
        random.one_in(8)
            ? static_cast<std::size_t>(random.from_to(std::min<std::int64_t>(3, unit.products_per_step), unit.products_per_step))
            : length;
    v.a.assign(count, 0);
    v.b.assign(count, 0);
    const std::size_t per_scale = scale_span();
    for (std::size_t at = 0; per_scale != 0 && at < count; at += per_scale) {
      const bool e4m3 = unit.scaling == StepScaling::e4m3_per_16;
      for (auto* scales : {&v.scale_a, &v.scale_b})
        scales->push_back(static_cast<std::uint8_t>(e4m3 ? random.below(0x7F) : random.from_to(100, 150)));
    }
    return v;
  }

  Vector raw_bits() {
    Vector v = blank();
    for (auto& code : v.a) code = raw(v.a_type);
    for (auto& code : v.b) code = raw(v.b_type);
    v.c = raw(accumulator());
    for (auto* scales : {&v.scale_a, &v.scale_b}) {
      for (auto& scale : *scales) scale = static_cast<std::uint8_t>(random.next());
    }
    return v;
  }

  // The exponent that decides the alignment, for a code pair with their scales.
  int product_exponent(const Vector& v, std::size_t k) {
    const auto exponent = [](Format format, std::uint32_t code) {
      const Encoding e = encoding_of(format);
      const int field = static_cast<int>(code >> e.fraction_bits) & ((1 << e.exponent_bits) - 1);
      return std::max(field, 1) - e.bias;
    };
    if (unit.scaling == StepScaling::e4m3_per_16) {
      return exponent(Format::e4m3, v.scale_a[k / 16]) + exponent(Format::e4m3, v.scale_b[k / 16]);
    }
    if (unit.group == 16) return v.scale_a[k / scale_span()] + v.scale_b[k / scale_span()] - 254;
    const int scales = is_moved() ? v.scale_a[0] + v.scale_b[0] - 254 : 0;
    return exponent(v.a_type, v.a[k]) + exponent(v.b_type, v.b[k]) + scales;
  }

  // An accumulator near 2^exponent.
  std::uint32_t c_near(std::int64_t exponent) {
    const Encoding e = encoding_of(accumulator());
    const std::int64_t field = exponent + e.bias;
    if (field >= 1) return join(accumulator(), random.one_in(2), field, random.next() & random.next());
    const std::int64_t bit = std::max<std::int64_t>(e.fraction_bits + field - 1, 0);
    return join(accumulator(), random.one_in(2), 0, std::uint64_t{1} << bit);
  }

  // Exponents within a few of a centre, one pair that cancels exactly, C in the window most of the time.
  Vector clustered() {
    Vector v = blank();
    const auto fill = [&](Format format, std::vector<std::uint32_t>& codes) {
      const Encoding e = encoding_of(format);
      const std::int64_t width = random.from_to(1, 4), centre = random.from_to(0, (1 << e.exponent_bits) - 2);
      for (auto& code : codes) {
        code =
            join(format, random.one_in(2),
                 std::clamp<std::int64_t>(centre + random.from_to(-width, width), 0, (1 << e.exponent_bits) - 1), random.next());
      }
    };
    fill(v.a_type, v.a);
    fill(v.b_type, v.b);
    const auto i = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(v.a.size())));
    const std::size_t j =
        (i + 1 + static_cast<std::size_t>(random.below(static_cast<std::int64_t>(v.a.size()) - 1))) % v.a.size();
    v.a[j] = flipped(v.a_type, v.a[i]);
    v.b[j] = v.b[i];
    if (random.below(10) < 7) v.c = c_near(product_exponent(v, i) + random.from_to(-8, 8));
    return v;
  }

  // A cancelling pair U, -U of a chosen kind sets the grid; the remaining products lie around the grid's last bit.
  Vector probe() {
    Vector v = blank();
    const auto pick = [&](Format format) {
      const Encoding e = encoding_of(format);
      const bool subnormal = random.one_in(3);
      const std::uint64_t fraction =
          random.one_in(2) ? random.next() : random.next() | (std::uint64_t{1} << (e.fraction_bits - 1));
      const std::int64_t top = (1 << e.exponent_bits) - 2;
      return join(format, random.one_in(2), subnormal ? 0 : random.one_in(4) ? top : random.from_to(1, top), fraction);
    };
    const auto count = static_cast<std::int64_t>(v.a.size());
    const auto i = static_cast<std::size_t>(random.below(count));
    const std::size_t j = (i + 1 + static_cast<std::size_t>(random.below(count - 1))) % v.a.size();
    v.a[i] = pick(v.a_type);
    v.b[i] = pick(v.b_type);
    v.a[j] = flipped(v.a_type, v.a[i]);
    v.b[j] = v.b[i];
    const std::int64_t last = product_exponent(v, i) - unit.fraction_bits;
    if (random.one_in(2)) v.c = c_near(last + random.from_to(-4, 3));
    for (int extra = 0; extra < 2; ++extra) {
      const auto k = static_cast<std::size_t>(random.below(count));
      if (k == i || k == j || random.one_in(3)) continue;
      const Encoding ea = encoding_of(v.a_type), eb = encoding_of(v.b_type);
      std::int64_t wanted = last + random.from_to(-4, 3);
      if (is_moved()) wanted -= v.scale_a[0] + v.scale_b[0] - 254;
      const std::int64_t a_field = random.from_to(0, (1 << ea.exponent_bits) - 2);
      v.a[k] = join(v.a_type, random.one_in(2), a_field, random.next());
      v.b[k] = join(v.b_type, random.one_in(2), wanted - (a_field - ea.bias) + eb.bias, random.next());
    }
    return v;
  }

  // The same with U the product of a subnormal and one of the largest binade, and one small product in the same half.
  Vector subnormal_pair() {
    Vector v = blank();
    const Encoding ea = encoding_of(v.a_type), eb = encoding_of(v.b_type);
    v.a[0] = join(v.a_type, false, 0, std::uint64_t{1} << random.below(ea.fraction_bits));
    v.b[0] = join(v.b_type, false, (1 << eb.exponent_bits) - 2, random.next());
    v.a[1] = flipped(v.a_type, v.a[0]);
    v.b[1] = v.b[0];
    const std::size_t k = v.a.size() > 4 ? 4 : 2;
    const std::int64_t wanted = product_exponent(v, 0) - unit.fraction_bits + random.from_to(-3, 0);
    const int scales = is_moved() ? v.scale_a[0] + v.scale_b[0] - 254 : 0;
    const std::int64_t a_field = random.from_to(1, (1 << ea.exponent_bits) - 2);
    v.a[k] = join(v.a_type, random.one_in(2), a_field, random.next());
    v.b[k] = join(v.b_type, random.one_in(2), wanted - scales - (a_field - ea.bias) + eb.bias, random.next());
    return v;
  }

  // Products whose bits reach below the grid of a zero term, and one that lies at the limit of the output.
  Vector near_floor() {
    Vector v = blank();
    if (unit.group == 16 && unit.scaling != StepScaling::e4m3_per_16) {  // 2^-149, less 1/4 of a power at the grid's last bit
      const std::size_t last = v.scale_a.size() - 1;
      const auto exponent = [&](std::size_t at, std::int64_t wanted) {
        v.scale_a[at] = static_cast<std::uint8_t>((wanted + 254) / 2);
        v.scale_b[at] = static_cast<std::uint8_t>(wanted + 254 - (wanted + 254) / 2);
      };
      exponent(0, -149);
      v.a[0] = v.b[0] = 2;
      if (last == 0) return v;
      exponent(last, unit.zero_floor - unit.fraction_bits + 2 + random.from_to(-2, 2));
      v.a[last * scale_span()] = 1;
      v.b[last * scale_span()] = random.one_in(4) ? 1 : 9;
      return v;
    }
    if (unit.scaling == StepScaling::e8m0_per_32) {
      v.scale_a = {static_cast<std::uint8_t>(random.from_to(30, 70))};
      v.scale_b = {static_cast<std::uint8_t>(random.from_to(30, 70))};
    }
    const int scales = is_moved() ? v.scale_a[0] + v.scale_b[0] - 254 : 0;
    const std::int64_t edge = accumulator() == Format::f16 ? -25 : -149, grid = unit.zero_floor - unit.fraction_bits;
    const auto place = [&](std::size_t k, std::int64_t wanted) {
      const Encoding ea = encoding_of(v.a_type), eb = encoding_of(v.b_type);
      // A power of two: split between a and b so that both have a code, subnormal ones included.
      const auto power = [&](Format format, const Encoding& e, std::int64_t exponent) {
        const std::int64_t field = exponent + e.bias;
        if (field >= 1) return join(format, random.one_in(2), field, 0);
        const std::int64_t bit = e.fraction_bits + field - 1;
        return bit < 0 ? 0u : join(format, random.one_in(2), 0, std::uint64_t{1} << bit);
      };
      const std::int64_t rest = wanted - scales, lowest = 1 - ea.bias - ea.fraction_bits;
      const std::int64_t a_exponent = std::clamp<std::int64_t>(rest / 2 + random.from_to(-2, 2), lowest, ea.bias);
      v.a[k] = power(v.a_type, ea, a_exponent);
      v.b[k] = power(v.b_type, eb, rest - a_exponent);
    };
    const auto count = static_cast<std::int64_t>(v.a.size());
    place(0, edge);
    for (int extra = 0; extra < 2; ++extra)
      place(static_cast<std::size_t>(random.from_to(1, count - 1)), grid + random.from_to(-3, 3));
    return v;
  }

  // NaN and infinities among ordinary values, in operands, scales and C.
  Vector specials() {
    Vector v = clustered();
    const auto special = [&](Format format) {
      const Encoding e = encoding_of(format);
      const std::uint32_t top = ((1u << e.exponent_bits) - 1) << e.fraction_bits;
      const std::uint32_t fraction = (1u << e.fraction_bits) - 1;
      const std::uint32_t choices[] = {0, top, top | fraction, top | 1};
      return choices[random.below(4)] | static_cast<std::uint32_t>(random.below(2)) << (bits_of(format) - 1);
    };
    for (std::int64_t extra = random.from_to(0, 2); extra > 0; --extra) {
      const auto k = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(v.a.size())));
      if (random.one_in(2)) v.a[k] = special(v.a_type);
      if (random.one_in(2)) v.b[k] = special(v.b_type);
    }
    if (random.one_in(3)) v.c = special(accumulator());
    if (!v.scale_a.empty() && random.one_in(4)) v.scale_a[0] = 0xFF;
    if (!v.scale_b.empty() && random.one_in(4)) v.scale_b.back() = random.one_in(2) ? 0x7F : 0x00;
    return v;
  }

  // Sums at the top of the output's range.
  Vector overflow() {
    Vector v = clustered();
    const Encoding ea = encoding_of(v.a_type), eb = encoding_of(v.b_type);
    const auto k = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(v.a.size())));
    v.a[k] = join(v.a_type, false, (1 << ea.exponent_bits) - 1, random.next());
    v.b[k] = join(v.b_type, random.one_in(2), random.from_to(eb.bias - 1, eb.bias + 1), random.next());
    const Encoding ec = encoding_of(accumulator());
    v.c = join(accumulator(), random.one_in(2), (1 << ec.exponent_bits) - 2, ~std::uint64_t{0} << random.below(8));
    if (unit.scaling != StepScaling::none && unit.scaling != StepScaling::e4m3_per_16) {
      for (auto* scales : {&v.scale_a, &v.scale_b}) (*scales)[0] = static_cast<std::uint8_t>(random.from_to(180, 254));
    }
    return v;
  }
};

constexpr int kPatterns = 8;

inline std::vector<Vector> vectors_of(const TensorCoreUnit& unit) {
  Generator generator{unit, Random(0xA55A ^ unit.name.size() * 7919u ^ static_cast<unsigned>(unit.products_per_step))};
  std::vector<Vector> vectors;
  for (int i = 0; i < 600; ++i) {
    vectors.push_back(generator.raw_bits());
    vectors.push_back(generator.clustered());
    vectors.push_back(generator.probe());
    vectors.push_back(generator.probe());
    vectors.push_back(generator.subnormal_pair());
    vectors.push_back(generator.near_floor());
    vectors.push_back(generator.specials());
    vectors.push_back(generator.overflow());
  }
  return vectors;
}

}  // namespace assay::unit_vectors
