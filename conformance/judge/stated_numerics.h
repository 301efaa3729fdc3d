#pragma once
// Checks of what a backend states about the numerics of a call (spec exactness-1.4).

#include <string>

#include "conformance/backend.h"

namespace assay::conformance {

// Faults of a statement that do not depend on the call: text without an end, a value out of range, a unit or plan that is not
// in the tables, a plan of another unit than the stated one. Names field and value; empty when nothing is wrong.
std::string fault_in_numerics(const assay_numerics& stated);

// The row of the tensor-core table that is stated, by itself or with the plan; empty: none. Of a statement without a fault.
std::string unit_of(const assay_numerics& stated);

}  // namespace assay::conformance
