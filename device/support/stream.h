#pragma once
// What every device header needs to name, without CUDA's own headers: these compile with any C++20 compiler.

struct CUstream_st;  // cudaStream_t is a pointer to this

namespace assay::device {
using Stream = CUstream_st*;
}
