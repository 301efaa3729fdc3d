#pragma once
// Parts of calls of the device library: parts of the workspace, splits.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/ops/request.h"
#include "device/layout/check_splits.h"
#include "device/layout/groups.h"
#include "device/support/launch_check.h"
#include "device/support/stream.h"
#include "reference/types/error.h"
#include "reference/types/recipe.h"

namespace assay::conformance {

// Parts of a workspace, each 256-byte aligned.
class Parts {
 public:
  // Offset of a new part.
  std::int64_t add(std::int64_t bytes) {
    const std::int64_t begin = bytes_;
    bytes_ += (bytes + 255) / 256 * 256;
    return begin;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

template <class Type>
Type* part(void* workspace, std::int64_t offset) {
  return reinterpret_cast<Type*>(static_cast<std::byte*>(workspace) + offset);
}

inline void refuse_other_outputs(const Request& request, const std::vector<std::string>& known) {
  for (const auto& [name, tensor] : request.out) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw NotSupported("op " + request.op() + " has no output '" + name + "' here");
    }
  }
}

// Bytes that hold the codes of `elements` elements.
inline std::int64_t code_bytes(Recipe recipe, std::int64_t elements) { return recipe == Recipe::nvfp4 ? elements / 2 : elements; }

// Address of an output whose size depends on the splits: null when it is not requested.
inline void* output_of_any_size(const Request& request, const std::string& name, Format type) {
  const auto found = request.out.find(name);
  return found == request.out.end() ? nullptr : request.output(name, type, found->second.elements());
}

// The request itself, which must have splits. Errors: InvalidArgument.
inline const Request& with_splits(const Request& request) {
  request.input("splits");
  return request;
}

// Stands for device memory whose address is not known yet, so that checks find it given and aligned. One address for all types.
alignas(256) inline const std::byte kUnknownAddress[256] = {};
template <class Type>
const Type* unknown_address() {
  return reinterpret_cast<const Type*>(kUnknownAddress);
}

// `groups`, which `what` has. Errors: NotSupported for a valid number that is more than the kernels support.
inline int supported_groups(std::int64_t groups, const std::string& what) {
  if (groups > device::kMaxGroups) {
    throw NotSupported(what + ": the device has kernels for at most " + std::to_string(device::kMaxGroups) + " groups");
  }
  return static_cast<int>(groups);
}

// Splits as the device library takes them: int64 or int32 in device memory.
class Splits {
 public:
  explicit Splits(const Request& request) : tensor_(request.find_input("splits")) {
    if (tensor_ == nullptr) return;
    if (tensor_->type != Format::i64 && tensor_->type != Format::i32) {
      throw InvalidArgument("in/splits", describe(*tensor_), "type i64 or i32");
    }
    groups_ = supported_groups(tensor_->elements(), "in/splits is " + describe(*tensor_));
    data_ = tensor_->data;
    narrow_ = tensor_->type == Format::i32;
  }
  int groups() const { return groups_; }
  // Rows whose splits are there but may not be read yet.
  device::Rows rows(std::int64_t capacity) const {
    device::Rows rows;
    rows.capacity = capacity;
    rows.groups = groups_;
    if (tensor_ != nullptr) rows.splits = unknown_address<std::int64_t>();
    rows.splits_are_int32 = narrow_;
    return rows;
  }
  // Address of an input that is read only if groups have rows. One without elements is null in a request, but with rows
  // the callee requires an address: `anything` on the device, which is not read.
  const void* address(const TensorView& tensor, const void* anything) const {
    return tensor.data == nullptr && tensor_ != nullptr ? anything : tensor.data;
  }
  // Puts in the splits that kernels read.
  void bind(device::Rows& rows, const std::uint32_t* anything) const {
    if (tensor_ == nullptr) return;
    // Without groups nothing is read, but null would mean a single tensor.
    rows.splits = groups_ == 0 ? reinterpret_cast<const std::int64_t*>(anything) : static_cast<const std::int64_t*>(data_);
  }
  // Has the device report wrong splits, of a call that has nothing to compute.
  void check(std::int64_t capacity, std::uint32_t* status, device::Stream stream) const {
    device::Rows ready = rows(capacity);
    bind(ready, status);
    device::check_splits(ready, status, stream);
  }

 private:
  const TensorView* tensor_;
  const void* data_ = nullptr;
  int groups_ = 1;
  bool narrow_ = false;  // int32
};

}  // namespace assay::conformance
