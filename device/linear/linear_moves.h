#pragma once
// The small kernels of a grouped linear layer: constants that the others read, and pieces between one buffer and many.

#include <cstdint>

#include "device/support/stream.h"

namespace assay::device {

// splits [groups], each `rows`, and one [1], 1.0; either may be null.
void make_linear_constants(std::int64_t* splits, int groups, std::int64_t rows, float* one, Stream stream);

// `count` pieces of `bytes` each, an even number, on even addresses: from many buffers to one, and from one to many. The
// host array of device pointers is read during the call.
void gather_pieces(const void* const* from, int count, std::int64_t bytes, void* to, Stream stream);
void scatter_pieces(const void* from, void* const* to, int count, std::int64_t bytes, Stream stream);

}  // namespace assay::device
