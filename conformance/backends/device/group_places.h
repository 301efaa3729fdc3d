#pragma once
// Where a grouped_gemm request says that the rows of its groups lie, as the device library takes it (spec grouped-gemm-1.4).

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/backends/device/call_parts.h"
#include "device/gemm/grouped_gemm.h"

namespace assay::conformance {

// The counterpart of Splits: splits, or the tensor in their place. Contents lie on the device and are not read.
class PlacedGroups {
 public:
  // Errors: InvalidArgument, NotSupported, as of Splits.
  explicit PlacedGroups(const Request& request);

  int groups() const { return splits_ ? splits_->groups() : groups_; }
  // Rows of the matrix that the groups divide, where the request says so by itself; else -1.
  std::int64_t stated_rows() const { return stated_rows_; }
  // As Splits::rows: not for execution.
  device::Rows rows(std::int64_t capacity) const;
  device::GroupPlaces places() const;
  const void* address(const TensorView& tensor, const void* anything) const;
  // As Splits::check(), of groups that follow one another.
  void check(std::int64_t capacity, std::uint32_t* status, device::Stream stream) const {
    if (splits_) splits_->check(capacity, status, stream);
  }
  // Puts in the addresses that kernels read.
  void bind(device::GroupedGemmCall& call, const std::uint32_t* anything) const;
  // Rows of each matrix of block scales of x and dy in TN and NN; empty where the device alone knows them.
  std::vector<std::int64_t> scale_rows(std::int64_t capacity) const;

 private:
  GroupedLayout layout_ = GroupedLayout::splits;
  std::optional<Splits> splits_;  // splits, masked
  bool has_index_ = false;        // psum, m_indices
  const void* index_ = nullptr;
  int groups_ = 0;
  std::int64_t alignment_ = 1, max_m_ = 0, stated_rows_ = -1;
};

}  // namespace assay::conformance
