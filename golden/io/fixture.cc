#include "golden/io/fixture.h"

#include <bit>
#include <utility>

#include "golden/io/tensor.h"
#include "reference/support/error.h"

namespace assay::golden {

std::int64_t stored_bytes(Format type) { return bytes_of(type, 1); }

std::int64_t element_count(std::span<const std::int64_t> shape) {
  bool empty = false;
  std::int64_t count = 1;  // of the extents other than 0, so that no order of multiplication overflows
  for (std::size_t i = 0; i < shape.size(); ++i) {
    require(shape[i] >= 0, "shape[" + show(i) + "]", shape[i], "an extent of at least 0");
    empty = empty || shape[i] == 0;
    const std::int64_t factor = shape[i] == 0 ? 1 : shape[i];
    require(!__builtin_mul_overflow(count, factor, &count), "shape", shape_text(shape), "fewer than 2^63 elements");
  }
  return empty ? 0 : count;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + show(shape[i]);
  return text + "]";
}

Tensor make_tensor(Format type, std::vector<std::int64_t> shape) {
  std::int64_t bytes = 0;
  require(!__builtin_mul_overflow(element_count(shape), stored_bytes(type), &bytes), "shape", shape_text(shape),
          "fewer than 2^63 bytes");
  Tensor tensor{type, std::move(shape), {}};
  tensor.bytes.resize(static_cast<std::size_t>(bytes));
  return tensor;
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.shape == b.shape && a.bytes == b.bytes;
}

namespace {

bool same_attribute(const Attribute& a, const Attribute& b) {
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  if (x != nullptr && y != nullptr) return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
  return a == b;
}

template <class Map, class Same>
bool same_map(const Map& a, const Map& b, Same same) {
  if (a.size() != b.size()) return false;
  for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
    if (x->first != y->first || !same(x->second, y->second)) return false;
  }
  return true;
}

}  // namespace

bool same_fixture(const Fixture& a, const Fixture& b) {
  if (a.schema != b.schema || a.provenance != b.provenance || a.cases.size() != b.cases.size()) return false;
  for (std::size_t i = 0; i < a.cases.size(); ++i) {
    const Case& x = a.cases[i];
    const Case& y = b.cases[i];
    if (x.name != y.name || x.op != y.op || !same_map(x.attributes, y.attributes, same_attribute) ||
        !same_map(x.in, y.in, same_tensor) || !same_map(x.out, y.out, same_tensor)) {
      return false;
    }
  }
  return true;
}

}  // namespace assay::golden
