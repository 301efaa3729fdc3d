#pragma once
// The first half of grouped_dbias() alone, for a quantization that wants column sums and no codes.

#include "device/recipes/dbias.h"

namespace assay::device {

// tile_sums [tiles, columns] as finish_dbias() wants them. The checks of the call have been made.
void sum_tiles(const DbiasCall& call, float* tile_sums, const float* noop, Stream stream);

}  // namespace assay::device
