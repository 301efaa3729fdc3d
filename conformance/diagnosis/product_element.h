#pragma once
// Single words of a product, computed as its view says.

#include <cstdint>
#include <functional>
#include <optional>

#include "reference/gemm/problem.h"

namespace assay::conformance::diagnosis {

// Where an element of D lies.
struct Place {
  const GroupView* group = nullptr;  // null: in none
  std::int64_t i = 0, j = 0;
};
Place place_of(const GroupedGemmView& view, std::int64_t element);

class ProductElements {
 public:
  explicit ProductElements(GroupedGemmView view) : view_(std::move(view)) {}
  // The products that the element is made of, at least 1.
  std::int64_t work(std::int64_t element) const;
  // Its bits; nothing outside the groups.
  std::optional<std::uint64_t> word(std::int64_t element) const;

 private:
  GroupedGemmView view_;
};

}  // namespace assay::conformance::diagnosis
