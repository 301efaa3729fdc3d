#pragma once
// The names that every device header needs, without CUDA's own headers: device headers compile with any C++20 compiler.

struct CUstream_st;  // cudaStream_t is a pointer to this

namespace assay::device {
using Stream = CUstream_st*;
}
