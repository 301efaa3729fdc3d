#pragma once
// The shape of a tree of sums of slices, as text: "((0+1)+(2+3))". Grammar: SUM = "(" TERM "+" TERM ")", TERM = SUM or the number
// of a slice. Each slice stands in it once.

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay {

// Errors (InvalidArgument "plan.merge"): a text that is no such shape, a number that is no slice, a slice that is not there once.
void require_merge_shape(std::string_view shape, std::int64_t slices);

// The shape in postfix: the numbers of slices, and -1 where the two values before it are added. A shape that
// require_merge_shape() takes.
std::vector<std::int64_t> postfix_of_shape(std::string_view shape);

}  // namespace assay
