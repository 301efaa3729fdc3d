#pragma once
// From the reads of quarters of tiles to pieces: quarters that are displaced alike are reported as one.

#include "conformance/diagnose/scale_map/reads.h"
#include "conformance/diagnose/scale_map/scale_map.h"

namespace assay::conformance {

// Fills in the tiles, the pairs, the pieces and their counts. Blocks that were not examined, where the map was
// left unfinished, count as right.
void tell_reads(const ScaleReads& reads, ScaleSide& side);

}  // namespace assay::conformance
