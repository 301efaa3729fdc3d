#pragma once
// The parts of grouped_dbias() that quantization uses: its call, and its first half where only column sums are requested
// or the quantize kernels compute none.

#include "device/dbias/dbias.h"
#include "device/quantize/quantize.h"

namespace assay::device {

// The column sums of a quantize call, in the type of x. The place of tile sums is passed separately.
inline DbiasCall dbias_of(const QuantizeCall& call) {
  DbiasCall dbias;
  dbias.x_type = dbias.output_type = call.x_type;
  dbias.x = call.x;
  dbias.rows = call.rows;
  dbias.columns = call.columns;
  dbias.dbias = call.output.dbias;
  dbias.status = call.status;
  return dbias;
}

// tile_sums [tiles, columns] as finish_dbias() reads them. The checks of the call have been made.
void sum_tiles(const DbiasCall& call, float* tile_sums, const float* noop, Stream stream);

}  // namespace assay::device
