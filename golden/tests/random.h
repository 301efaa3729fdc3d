#pragma once
// Random numbers for tests that damage files or cases: the same on every machine and with every standard library.

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace assay::golden {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
  template <class Container>
  auto& one_of(Container& from) {
    return *std::next(std::begin(from), static_cast<std::ptrdiff_t>(below(std::size(from))));
  }

 private:
  std::uint64_t state_;
};

}  // namespace assay::golden
