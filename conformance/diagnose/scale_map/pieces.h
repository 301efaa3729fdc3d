#pragma once
// From the reads of quarters of tiles to pieces: quarters that are displaced alike are reported as one.

#include "conformance/diagnose/scale_map/scale_map.h"
#include "conformance/diagnose/scale_map/reads.h"

namespace assay::conformance {

// Fills in the tiles, the pairs, the pieces and what is counted of them. Blocks that were not looked at, where the map was
// left unfinished, count as right.
void tell_reads(const ScaleReads& reads, ScaleSide& side);

}  // namespace assay::conformance
