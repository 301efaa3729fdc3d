#include "conformance/backends/device/group_places.h"

#include <string>

#include "conformance/ops/grouped_layout.h"
#include "device/layout/group_table.cuh"
#include "reference/types/sizes.h"

namespace assay::conformance {

PlacedGroups::PlacedGroups(const Request& request) : layout_(grouped_layout_of(request)) {
  if (layout_ == GroupedLayout::splits || layout_ == GroupedLayout::masked) splits_.emplace(with_splits(request));
  if (layout_ == GroupedLayout::splits) return;
  if (layout_ == GroupedLayout::masked) {
    max_m_ = request.integer("max_m");
    require(max_m_ >= 0, "attribute max_m", max_m_, "0 or more");
    stated_rows_ = checked_product(splits_->groups(), max_m_, "attribute max_m", max_m_);
    return;
  }
  const bool indices = layout_ == GroupedLayout::m_indices;
  const std::string name = indices ? "m_indices" : "psum";
  const TensorView& index = request.input(name, Format::i32);
  if (index.shape.size() != 1) throw InvalidArgument("in/" + name, describe(index), "one extent");
  has_index_ = true;
  index_ = index.data;
  alignment_ = request.integer("alignment");
  require(alignment_ >= 1, "attribute alignment", alignment_, "1 or more");
  if (alignment_ > device::kMaxRows) {
    throw NotSupported("alignment " + std::to_string(alignment_) + ": the device has kernels for at most " +
                       std::to_string(device::kMaxRows) + " rows");
  }
  if (!indices) {
    groups_ = supported_groups(index.elements(), "in/psum is " + describe(index));
    return;
  }
  const std::int64_t groups = request.integer("groups");
  require(groups >= 0, "attribute groups", groups, "0 or more");
  groups_ = supported_groups(groups, std::to_string(groups) + " groups");
  stated_rows_ = index.elements();
}

device::Rows PlacedGroups::rows(std::int64_t capacity) const {
  if (splits_) return splits_->rows(capacity);
  device::Rows rows;
  rows.capacity = capacity;
  rows.groups = groups_;
  return rows;
}

device::GroupPlaces PlacedGroups::places() const {
  return {layout_, has_index_ ? unknown_address<std::int32_t>() : nullptr, alignment_, max_m_};
}

const void* PlacedGroups::address(const TensorView& tensor, const void* anything) const {
  return tensor.data == nullptr ? anything : tensor.data;
}

void PlacedGroups::bind(device::GroupedGemmCall& call, const std::uint32_t* anything) const {
  if (splits_) return splits_->bind(call.rows, anything);
  // Of no entries none is read, but the callee requires an address.
  call.places.index = static_cast<const std::int32_t*>(index_ == nullptr ? anything : index_);
}

std::vector<std::int64_t> PlacedGroups::scale_rows(std::int64_t capacity) const {
  switch (layout_) {
    case GroupedLayout::splits: return {};
    case GroupedLayout::masked: return std::vector<std::int64_t>(static_cast<std::size_t>(groups()), max_m_);
    default: return {capacity};
  }
}

}  // namespace assay::conformance
