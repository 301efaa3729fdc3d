#pragma once
// A grouped_gemm request as a call of the device library. Reads only shapes, types and attributes: tensors, the
// splits and scalars among them, lie on the device.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/backends/device/call_parts.h"
#include "conformance/backends/device/group_places.h"
#include "conformance/backends/device/promises.h"
#include "device/gemm/grouped_gemm.h"
#include "device/layout/column_layout.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {

// alpha or beta: an input f32 [G], or a number in the request's attributes, which a workspace takes to the device.
class Scalar {
 public:
  // `absent`: the value without one; it needs no memory.
  Scalar(const Request& request, const std::string& name, float absent, int groups);
  bool per_group() const { return data_ != nullptr && groups_ != 1; }
  bool is_default() const { return data_ == nullptr && value_ == absent_; }
  // The value that the host knows; of an input only the device does.
  std::optional<float> number() const { return data_ == nullptr ? std::optional(value_) : std::nullopt; }
  // Reserves memory for one value, or one per group.
  void reserve(Parts& parts, bool repeated);
  // Where the values will be: null for the default. Enqueues what puts them there.
  const float* bind(void* workspace, device::Stream stream) const;

 private:
  const float* data_ = nullptr;
  float value_ = 0, absent_ = 0;
  int groups_ = 1, count_ = 0;
  std::int64_t offset_ = 0;
};

class GemmRequest {
 public:
  // Errors: InvalidArgument, NotSupported, as of the reference.
  explicit GemmRequest(const Request& request);

  // Passes w and its scales, or D of layout NT that has no C, as lists of the matrices of the groups, where these are aligned as lists want
  // them.
  void pass_lists();
  void promise(const PromiseOptions& promises) {
    call_.rows_multiple = promises.rows_multiple, call_.pow2_scales = promises.pow2_scales;
  }

  // NT of FP8 blocks: codes of dy and x at these addresses instead, with each column at a multiple of 16 bytes
  // (device/layout/column_layout.h).
  void align_columns(const void* dy, const void* x) {
    call_.column_alignment = device::kAlignedColumns;
    call_.dy.data = dy, call_.x.data = x;
  }

  // The call with placeholders for what only bind() knows: splits, scalars and a D that is not requested. For questions and for
  // the library's checks, not for execution.
  const device::GroupedGemmCall& shape() const { return call_; }
  // The call to execute. Enqueues what fills scalars where they are not in device memory already: after all checks. A D that is
  // not requested goes to the workspace, so that wrong contents are found.
  device::GroupedGemmCall bind(void* workspace, std::uint32_t* status, device::Stream stream) const;

  // Has the device report wrong splits of a call without elements of D. Groups follow one another.
  void check_contents(std::uint32_t* status, device::Stream stream) const { splits_.check(call_.rows.capacity, status, stream); }

  bool is_wanted() const { return wanted_; }           // D is requested, and has elements
  bool has_elements() const { return elements_ > 0; }  // D has, requested or not
  std::optional<float> beta() const { return beta_.number(); }
  bool has_plain_scalars() const { return alpha_.is_default() && beta_.is_default(); }  // alpha 1, beta 0
  const std::string& architecture() const { return architecture_; }                     // whose arithmetic is requested
  const AccumulationPlan* plan() const { return plan_; }                                // named by the request, or null
  // What the request says about a plan: kind, layout, types, architecture.
  PlanKey key() const;
  Parts& parts() { return parts_; }

 private:
  struct Lists {
    std::vector<const char*> w, w_scale_inv;  // [groups], or empty
    std::vector<char*> d;
  };

  void take_d(const Request& request, std::int64_t elements);
  device::GemmOperand operand(const Request& request, const std::string& name, std::int64_t width, std::int64_t rows,
                              bool weight);

  Parts parts_;
  PlacedGroups splits_;
  Scalar alpha_, beta_;
  device::GroupedGemmCall call_;
  bool wanted_ = false;
  std::int64_t elements_ = 0, d_at_ = -1;  // of D; its place in the workspace, if it is there
  std::string architecture_;
  const AccumulationPlan* plan_ = nullptr;
  std::int64_t w_bytes_ = 0, w_scale_bytes_ = 0;  // of all groups
  std::shared_ptr<const Lists> lists_;            // call_ points into it, in copies too
};

}  // namespace assay::conformance
