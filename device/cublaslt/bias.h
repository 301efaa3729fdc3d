#pragma once
// The bias of a group added to D after the product: D = RN(D + bias), on D as it was rounded (spec grouped-gemm-2.4).

#include "device/gemm/grouped_gemm.h"

namespace assay::device {

// Layout TN: D [R,N] of the call, bias [G,N]. One launch. Rows past the sum of the splits are not written; with invalid splits
// nothing is.
void add_group_bias(const GroupedGemmCall& call, Stream stream);

}  // namespace assay::device
