#pragma once
// A request against the schema of its op, without a look at contents, which may lie on a device.

#include "conformance/ops/request.h"

namespace assay::conformance {

// Errors: NotSupported for an op, attribute or tensor that the schema does not have; InvalidArgument for a tensor of another type, rank
// or extent than it has there, and for a required input that is absent. Of an extent that the splits decide, which are contents, it is
// checked that it is at most what any splits of the rows can give, and a multiple of what one row takes.
void check_against_schema(const Request& request);

}  // namespace assay::conformance
