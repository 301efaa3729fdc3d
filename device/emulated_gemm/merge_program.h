#pragma once
// The sums of slices that are merged as a tree (spec plans-1.3), in an order that a thread can follow with a low stack. Internal to
// this folder.

#include <cstdint>
#include <vector>

#include "reference/gemm/plan.h"

namespace assay::device::emulated {

// No tree of 1024 slices needs a higher stack: one of height h has at least 2^(h-1) slices.
constexpr int kMergeHeight = 11;

// Steps for a stack: the number of a slice, whose sum is put on it; -1: the two on top are replaced by their sum. Of two terms the
// one that needs the higher stack comes first, since RN(a + b) = RN(b + a). Empty: the plan merges its slices one after another.
// The plan is sound (require_sound()).
std::vector<std::int16_t> merge_program(const AccumulationPlan& plan);

// Its length, without a look at the shape; 0 also for a number of slices that no tree has.
std::int64_t merge_steps(const AccumulationPlan& plan);

}  // namespace assay::device::emulated
