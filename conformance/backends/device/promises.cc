#include "conformance/backends/device/promises.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "conformance/backends/device/pow2_scales.h"

namespace assay::conformance {
namespace {

// Of NT with FP8 blocks.
struct Scales {
  const TensorView *dy, *x;
  std::pair<const void*, const void*> addresses() const { return {dy->data, x->data}; }
};

std::optional<Scales> scales_of(const Request& request) {
  if (request.op() != "grouped_gemm") return std::nullopt;
  const Scales scales{request.find_input("dy_columnwise_scale_inv"), request.find_input("x_columnwise_scale_inv")};
  for (const TensorView* each : {scales.dy, scales.x}) {
    if (each == nullptr || each->data == nullptr || each->type != Format::f32) return std::nullopt;
  }
  return scales;
}

const TensorView* splits_of(const Request& request) {
  const TensorView* splits = request.find_input("splits");
  return splits != nullptr && splits->data != nullptr && splits->type == Format::i64 ? splits : nullptr;
}

template <class Set, class Key>
void put(Set& set, const Key& key, bool in) {
  in ? (void)set.insert(key) : (void)set.erase(key);
}

}  // namespace

template <class T>
std::vector<T> Promises::values(const TensorView& tensor) const {
  std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
  read_(values.data(), tensor.data, values.size() * sizeof(T));
  return values;
}

void Promises::look(const Request& request) {
  if (!any()) return;
  const std::optional<Scales> scales = scales_of(request);
  if (scales) scales_.erase(scales->addresses());
  const TensorView* const tensor = splits_of(request);
  if (tensor == nullptr) return;
  const std::vector<std::int64_t> splits = values<std::int64_t>(*tensor);
  put(splits_, tensor->data,
      std::all_of(splits.begin(), splits.end(), [&](std::int64_t rows) { return rows % options_.rows_multiple == 0; }));
  if (!options_.pow2_scales || !scales) return;
  const auto are_pow2 = [&](const TensorView& of, const char* columns) {
    return are_pow2_scales(values<float>(of), splits, request.integer_or(columns, -1));
  };
  put(scales_, scales->addresses(), are_pow2(*scales->dy, "N") && are_pow2(*scales->x, "K"));
}

PromiseOptions Promises::kept(const Request& request) const {
  PromiseOptions kept;
  const TensorView* const splits = splits_of(request);
  const std::optional<Scales> scales = scales_of(request);
  if (splits != nullptr && splits_.contains(splits->data)) kept.rows_multiple = options_.rows_multiple;
  kept.pow2_scales = scales && scales_.contains(scales->addresses());
  return kept;
}

}  // namespace assay::conformance
