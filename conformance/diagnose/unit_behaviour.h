#pragma once
// The tensor-core unit that a backend shows in a case with data=unit_probes (generate/unit_probes.h), whose D is the accumulator itself.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/ops/request.h"
#include "golden/io/fixture.h"
#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/problem.h"

namespace assay::conformance {

// Whether two units differ in nothing but their names.
bool same_arithmetic(const TensorCoreUnit& one, const TensorCoreUnit& other);

// D as f32 bits, group after group, where each element is one chain of the unit's steps over all of K. A unit that keeps an f16
// sum gives that value. Scales, factors, C and bias are ignored. Errors: a unit that does not take the operands.
std::vector<std::uint32_t> chain_of(const GroupedGemmView& view, const TensorCoreUnit& unit);

// "states sm90.wgmma.fp8 (32 products a step, 13 bits, FP22 truncated), behaves as sm89.mma.fp8 (...)": the unit in the table
// that gives these bits, or else its numbers if a unit of other numbers fits; empty where none does or none is stated.
// `request` is the grouped_gemm, `stated` a row of the table.
std::string behaviour_of(const Request& request, const Tensor& got, std::string_view stated);

// Name of a plan under which the request is one step of this unit in every element: its sums are no longer than a step. Empty
// where they are, or where no plan for the request has such a unit.
std::string plan_of_one_step(const Request& request, std::string_view unit);

}  // namespace assay::conformance
