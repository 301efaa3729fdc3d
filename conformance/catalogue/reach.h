#pragma once
// What a list of cases covers: the lengths of each op, and how many elements of each output are compared.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

struct Reach {
  std::int64_t lines = 0;
  // "K", "N", "R" (rows of one tensor or group), "rows" (of all groups), "groups", "elements" (of the first tensor),
  // "scales" (of one row or column), "tiles" (swizzled, of one tensor or group), "tensors", "length".
  std::map<std::string, std::set<std::int64_t>> lengths;
  // Elements by kind: "codes e4m3", "scales f32", "values", "sums", "offsets". Replays count once.
  std::map<std::string, std::int64_t> elements;
};

// By op. A scenario counts as its calls.
std::map<std::string, Reach> reach_of(const std::vector<CaseLine>& lines);

// Whether it is an extent of a tensor, rather than a count that follows from others.
bool is_extent(const std::string& name);

// A table: a line for each op and what it compares, a line for each length with its number of values and the largest; of
// extents also the powers of two from 16 to 4096 that have no length on both sides.
std::string describe_reach(const std::map<std::string, Reach>& reach);

// Whether there is a length of exactly `power`, and one above it by at most an eighth: both sides of a threshold there.
bool on_both_sides(const std::set<std::int64_t>& lengths, std::int64_t power);

}  // namespace assay::conformance
