#include "conformance/diagnosis/product_element.h"

#include <algorithm>

#include "reference/gemm/element_scalar.h"

namespace assay::conformance::diagnosis {

Place place_of(const GroupedGemmView& view, std::int64_t element) {
  for (const GroupView& group : view.groups) {
    const std::int64_t within = element - group.d_offset;
    if (within >= 0 && within < group.m * group.n) return {&group, within / group.n, within % group.n};
  }
  return {};
}

std::int64_t ProductElements::work(std::int64_t element) const {
  const Place place = place_of(view_, element);
  return place.group == nullptr ? 1 : std::max<std::int64_t>(place.group->depth, 1);
}

std::optional<std::uint64_t> ProductElements::word(std::int64_t element) const {
  const Place place = place_of(view_, element);
  if (place.group == nullptr) return std::nullopt;
  return scalar::element_of_d(view_, *place.group, place.i, place.j);
}

}  // namespace assay::conformance::diagnosis
