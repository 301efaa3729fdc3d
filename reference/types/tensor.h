#pragma once
// A tensor in memory, as fixtures store it and calls pass it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/types/format.h"

namespace assay {

struct Tensor {
  Format type = Format::f32;
  std::vector<std::int64_t> shape;  // of the elements as stored: e2m1 counts bytes, two codes each
  std::vector<std::byte> bytes;     // row-major, native byte order

  // Elements as stored (bytes for e2m1).
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};

// A tensor of zeros. Errors: a negative extent, or a size past int64.
Tensor make_tensor(Format type, std::vector<std::int64_t> shape);

// Bytes of one element as stored: 1 for e2m1, whose element in a file is the byte with two codes.
std::int64_t stored_bytes(Format type);

// Elements of a shape; an empty shape has one. Errors: a negative extent, or a product past int64 (extents of 0 left
// out of it).
std::int64_t element_count(std::span<const std::int64_t> shape);

// "[3,128]"; "[]" for a shape without extents.
std::string shape_text(std::span<const std::int64_t> shape);

// True when type, shape and every byte are the same.
bool same_tensor(const Tensor& a, const Tensor& b);

}  // namespace assay
