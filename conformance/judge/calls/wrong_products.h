#pragma once
// Wrong calls of a product: each part is one that the op has, and the parts do not go together.

#include "conformance/judge/calls/wrong_calls.h"

namespace assay::conformance {

// Adds them where the call is a product; the reference decides which of them are wrong.
void add_wrong_products(const assay_call& right, std::vector<WrongCall>& all);

}  // namespace assay::conformance
