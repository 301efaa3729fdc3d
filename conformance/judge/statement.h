#pragma once
// What a backend states of the numbers of a call, looked at by itself (spec exactness-1.4).

#include <string>

#include "conformance/backend.h"

namespace assay::conformance {

// What is wrong with a statement whatever the call: text that does not end, a value out of range, a unit or plan that is not
// in the tables, a plan of another unit than the stated one. Names field and value; empty when nothing is wrong.
std::string fault_in_statement(const assay_numerics& stated);

// The row of the tensor-core table that is stated, by itself or with the plan; empty: none.
std::string unit_of(const assay_numerics& stated);

}  // namespace assay::conformance
