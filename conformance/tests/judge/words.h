#pragma once
// Tensors for the tests of hints: contents of outputs, element by element.

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/output_map.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

inline Case case_of(const std::string& line) { return generate(parse_case_line(line)); }

inline Tensor tensor_like(Format type, std::vector<std::int64_t> shape) {
  Tensor t{type, std::move(shape), {}};
  t.bytes.resize(static_cast<std::size_t>(t.elements() * std::max(bits_of(type) / 8, 1)));
  return t;
}

inline void put(Tensor& t, std::int64_t at, std::uint64_t bits) {
  const int width = bits_of(t.type);
  if (width == 4) {
    std::byte& byte = t.bytes[static_cast<std::size_t>(at / 2)];
    byte = at % 2 == 0 ? (byte & std::byte{0xF0}) | static_cast<std::byte>(bits & 15)
                       : (byte & std::byte{0x0F}) | static_cast<std::byte>(bits << 4);
  } else {
    std::memcpy(t.bytes.data() + at * (width / 8), &bits, static_cast<std::size_t>(width / 8));
  }
}
inline std::uint64_t get(const Tensor& t, std::int64_t at) { return Elements(t)[at]; }
inline std::int64_t count_of(const Tensor& t) { return static_cast<std::int64_t>(t.bytes.size()) * 8 / bits_of(t.type); }

// Contents of outputs: signed numbers without NaN; power-of-two scales within 24 steps of each other; growing sums.
inline Tensor drawn(Format type, std::vector<std::int64_t> shape, std::uint64_t seed) {
  Tensor t = tensor_like(type, std::move(shape));
  std::mt19937_64 random(seed);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < count_of(t); ++i) {
    const std::uint64_t bits = random();
    const auto number = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-29f;
    std::uint32_t single;
    std::memcpy(&single, &number, sizeof single);
    switch (type) {
      case Format::f32: put(t, i, single); break;
      case Format::bf16: put(t, i, single >> 16); break;
      case Format::e4m3: put(t, i, (bits & 0x80) | (bits >> 8) % 0x7F); break;
      case Format::e2m1: put(t, i, bits & 0xF); break;
      case Format::e8m0: put(t, i, 115 + bits % 24); break;
      default: put(t, i, sum), sum += (bits % 300) << 20; break;
    }
  }
  return t;
}

// Calls each(segment, row, column, element) for all elements in use.
inline void each_used(const OutputMap& map,
                      const std::function<void(const Segment&, std::int64_t, std::int64_t, std::int64_t)>& each) {
  for (const Segment& s : map.segments) {
    for (std::int64_t i = 0; i < s.used_rows; ++i) {
      for (std::int64_t j = 0; j < s.used_columns; ++j) each(s, i, j, s.first + offset_of(s, {i, j}));
    }
  }
}

// Each element in use is taken from another place of its group, if there is one.
inline auto moved(std::function<Coordinates(Coordinates)> from) {
  return [from](const OutputMap& map, const Tensor& want, Tensor& got) {
    each_used(map, [&](const Segment& s, std::int64_t i, std::int64_t j, std::int64_t element) {
      const Coordinates at = from({i, j});
      if (at.row < 0 || at.column < 0 || at.row >= s.used_rows || at.column >= s.used_columns) return;
      put(got, element, get(want, s.first + offset_of(s, at)));
    });
  };
}

// Each element alone.
inline auto changed(std::function<std::uint64_t(std::uint64_t)> change) {
  return [change](const OutputMap& map, const Tensor& want, Tensor& got) {
    each_used(map, [&](const Segment&, std::int64_t, std::int64_t, std::int64_t element) {
      put(got, element, change(get(want, element)));
    });
  };
}

}  // namespace assay::conformance
