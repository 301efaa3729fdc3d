#include "conformance/ops/grouped_layout.h"

#include <algorithm>
#include <string>
#include <vector>

#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay::conformance {
namespace {

std::span<const std::int32_t> integers(const Request& request, const std::string& name) {
  const TensorView& tensor = request.input(name, Format::i32);
  if (tensor.shape.size() != 1) throw InvalidArgument("in/" + name, describe(tensor), "one extent");
  return {static_cast<const std::int32_t*>(tensor.data), static_cast<std::size_t>(tensor.elements())};
}

// Rows of the matrix that the groups divide: dy where the layout reads it, else x. Only a transposed matrix is flat.
std::int64_t rows_of_matrix(const Request& request) {
  const std::string name = request.text("layout") == "TN" ? "x" : "dy";
  for (const char* storage : {"", "_rowwise_data", "_columnwise_data"}) {
    const TensorView* tensor = request.find_input(name + storage);
    if (tensor == nullptr) continue;
    if (tensor->shape.size() != 2)
      throw InvalidArgument("in/" + name + storage, describe(*tensor), "a matrix, whose rows grouped_layout divides");
    return tensor->shape[0];
  }
  throw InvalidArgument("in/" + name, "absent", name + ", " + name + "_rowwise_data or " + name + "_columnwise_data");
}

std::int64_t sum_of(std::span<const std::int64_t> splits) {
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) sum = checked_sum(sum, split, "in/splits", split);
  return sum;
}

}  // namespace

GroupedLayout grouped_layout_of(const Request& request) {
  const std::string name = request.text_or("grouped_layout", "splits");
  if (name == "splits") return GroupedLayout::splits;
  if (name == "m_indices") return GroupedLayout::m_indices;
  if (name == "psum") return GroupedLayout::psum;
  if (name == "masked") return GroupedLayout::masked;
  throw InvalidArgument("attribute grouped_layout", "'" + name + "'", "splits, m_indices, psum or masked");
}

GroupRows group_rows_of(const Request& request) {
  switch (grouped_layout_of(request)) {
    case GroupedLayout::m_indices: {
      const std::int64_t groups = request.integer("groups");
      require(groups >= 0 && groups <= 0x7fff'ffff, "attribute groups", groups, "0 or more, below 2^31");
      return rows_of_indices(integers(request, "m_indices"), groups, request.integer("alignment"));
    }
    case GroupedLayout::psum:
      return rows_of_psum(integers(request, "psum"), request.integer("alignment"), rows_of_matrix(request));
    case GroupedLayout::masked: return rows_of_masked(request.splits(), request.integer("max_m"));
    case GroupedLayout::splits: break;
  }
  GroupRows plain;
  plain.splits = request.splits();
  plain.rows = plain.open_rows = sum_of(plain.splits);
  return plain;
}

std::int64_t open_rows_of(const Request& request) {
  if (request.op() == "grouped_gemm") return group_rows_of(request).open_rows;
  return sum_of(request.splits());
}

std::vector<bool> free_rows_of(const Request& request) {
  if (request.op() != "grouped_gemm" || grouped_layout_of(request) == GroupedLayout::splits || request.text("layout") == "NT")
    return {};
  const GroupRows rows = group_rows_of(request);
  std::vector<bool> free(static_cast<std::size_t>(rows.open_rows), true);
  for (const RowRange& range : rows.ranges)
    std::fill_n(free.begin() + static_cast<std::ptrdiff_t>(range.first), range.rows, false);
  return free;
}

}  // namespace assay::conformance
