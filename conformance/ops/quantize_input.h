#pragma once
// The input matrix of ops that quantize, and its groups.

#include <cstdint>
#include <vector>

#include "conformance/ops/request.h"
#include "reference/types/error.h"

namespace assay::conformance {

// Fills x, its type and shape, and the groups of `problem`, a QuantizeProblem or RuleProblem. `splits` holds the lengths of the
// groups, to which the problem then points. Errors (InvalidArgument): x is missing or not a matrix; splits that cannot be read.
template <class Problem>
void read_x_and_splits(const Request& request, Problem& problem, std::vector<std::int64_t>& splits) {
  const TensorView& x = request.input("x");
  if (x.shape.size() != 2) throw InvalidArgument("in/x", describe(x), "a matrix [R,K]");
  problem.x_type = x.type;
  problem.x = x.data;
  problem.rows = x.shape[0];
  problem.columns = x.shape[1];
  problem.grouped = request.find_input("splits") != nullptr;
  if (problem.grouped) splits = request.splits();
  problem.splits = splits;
}

}  // namespace assay::conformance
