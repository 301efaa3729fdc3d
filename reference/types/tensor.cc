#include "reference/types/tensor.h"

#include <utility>

#include "reference/types/error.h"

namespace assay {

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

bool same_tensor(const Tensor& a, const Tensor& b) { return a.type == b.type && a.shape == b.shape && a.bytes == b.bytes; }

}  // namespace assay
