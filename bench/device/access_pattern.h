#pragma once
// The loads and stores of quantization without its arithmetic: what the memory of a device allows a kernel with this pattern.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::bench {

// How long L2 keeps what an instruction loads or stores: normal, or evict_first (ld.global.cs, st.global.cs: what leaves first).
enum class CachePriority { normal, evict_first };

// A block of threads has a tile of x, and reads 2 bytes of each element. It writes 1 byte of each in the order of rows; with
// `columns` another one in the order of columns.
struct AccessPattern {
  CachePriority loads = CachePriority::normal, stores = CachePriority::normal;
  bool columns = false;
  int tile_rows = 128, tile_columns = 128;  // 128 x 128; 256 x 128; 256 x 256

  std::int64_t bytes(std::int64_t elements) const { return (columns ? 4 : 3) * elements; }
};

struct AccessedMemory {
  const void* x = nullptr;                             // rows x columns of 2 bytes
  void *row_codes = nullptr, *column_codes = nullptr;  // rows x columns and columns x rows of 1 byte
  std::int64_t rows = 0, columns = 0;                  // multiples of 256
};

void access(const AccessPattern& pattern, const AccessedMemory& memory, cudaStream_t stream);

// Reads memory with normal priority and writes nothing.
void read_through(const void* memory, std::int64_t bytes, cudaStream_t stream);

}  // namespace assay::bench
