#pragma once
// Scales of the recipes whose blocks lie along rows or columns and whose scales may be swizzled: MXFP8 and NVFP4.

#include <cstdint>
#include <vector>

#include "bench/device/device_bench.h"

namespace assay::bench {

// Bytes of scales that are written, and that their buffer has. Padding of swizzled scales is written too.
struct Scales {
  std::int64_t written = 0, stored = 0;
};
inline Scales block_scales(std::int64_t block, bool swizzled, bool rowwise, std::int64_t columns,
                           const std::vector<std::int64_t>& splits) {
  Scales scales;
  for (const std::int64_t rows : splits) {
    const std::int64_t used = rowwise ? rows * ceil_div(columns, block) : ceil_div(rows, block) * columns;
    const std::int64_t stored = rowwise ? round_up(rows, 128) * round_up(ceil_div(columns, block), 4)
                                        : round_up(ceil_div(rows, block), 4) * round_up(columns, 128);
    scales.written += swizzled ? stored : used;
    scales.stored += stored;
  }
  return scales;
}

}  // namespace assay::bench
