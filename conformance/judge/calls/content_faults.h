#pragma once
// Contents of splits, or of another tensor that says which rows belong to which group, that no call may have, put into a case that
// is right (backend.h, 2.). Shapes and all other tensors stay, so that only a reader of that tensor can see the fault.

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

// The fault that the line asks for: "negative_split", "excess_rows", "wrong_group", "wrong_row", "sum_overflow",
// "unaligned_rows"; empty: none.
std::string_view fault_word(const CaseLine& line);

// Every way to put the line's fault into `right`, which the line generates. What the fault is follows from the word alone:
//
//   negative_split   one value below 0: -1, the least of its type, minus its own rows; and two whose sum stays what it was;
//                    in layout psum an end before the start of its group
//   excess_rows      rows in sum beyond those of the tensors: by one, by 2^20, by 2^32 (where the type has so many), by the largest
//                    value of the type; and three whose sum wraps around to what it was
//                    in layouts psum and masked: a group that ends beyond the rows, or that has more rows than max_m
//   wrong_group      m_indices: neither -1 nor a group; two groups in one block; a row of a group behind one of none
//   wrong_row        row_map: neither -1 nor a row of the permuted matrix
//   sum_overflow     values of which an offset, or a product of two, does not fit its type; some wrap around to a small one
//   unaligned_rows   a row moved from one group to another: odd numbers where two codes share a byte
//
// Whether an op refuses each of them is the reference's decision. Errors (InvalidArgument): the case has no group.
std::vector<ContentFault> content_faults(const CaseLine& line, const Case& right);

}  // namespace assay::conformance
