#pragma once
// Contents of splits that no call may have, put into a case that is right (backend.h, 2.). Shapes and all other tensors stay,
// so that only a reader of the splits can see the fault.

#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/case_line.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

struct ContentFault {
  std::string what;  // "splits[2] = -1 (0 is right)"
  Case problem;      // with these contents
};

// The fault that the line asks for: "negative_split", "excess_rows", "sum_overflow", "unaligned_rows"; empty: none.
std::string_view fault_word(const CaseLine& line);

// Every way to put the line's fault into `right`, which the line generates. What the fault is follows from the word alone:
//
//   negative_split   one value below 0: -1, the least of its type, minus its own rows; and two whose sum stays what it was
//   excess_rows      rows in sum beyond those of the tensors: by one, by 2^20, by 2^32 (where the type has so many), by the largest
//                    value of the type; and three whose sum wraps around to what it was
//   sum_overflow     values of which an offset, or a product of two, does not fit its type; some wrap around to a small one
//   unaligned_rows   a row moved from one group to another: odd numbers where two codes share a byte
//
// Whether an op refuses each of them is the reference's decision. Errors (InvalidArgument): the case has no group.
std::vector<ContentFault> content_faults(const CaseLine& line, const Case& right);

}  // namespace assay::conformance
