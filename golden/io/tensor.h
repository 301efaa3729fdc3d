#pragma once
// Small facts about a stored tensor.

#include <cstdint>
#include <span>
#include <string>

#include "golden/io/fixture.h"

namespace assay::golden {

// Bytes of one element as stored: 1 for e2m1, whose element in a file is the byte with two codes.
std::int64_t stored_bytes(Format type);

// Elements of a shape; an empty shape has one. Errors: a negative extent, or a product past int64 (extents of 0 left
// out of it).
std::int64_t element_count(std::span<const std::int64_t> shape);

// "[3,128]"; "[]" for a shape without extents.
std::string shape_text(std::span<const std::int64_t> shape);

// True when type, shape and every byte are the same.
bool same_tensor(const Tensor& a, const Tensor& b);

// True when schema, provenance and every case are the same. Attributes of type float64 are compared by their bits.
bool same_fixture(const Fixture& a, const Fixture& b);

}  // namespace assay::golden
