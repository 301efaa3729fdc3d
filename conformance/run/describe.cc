#include "conformance/run/describe.h"

#include <fmt/format.h>

#include "conformance/run/same.h"
#include "reference/formats/encode.h"

namespace assay::conformance {

std::string describe_difference(const DescribeRequest& request) {
  const std::size_t width = stored_width(request.spec.type);
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < request.want.size() / width; ++i) {
    const std::uint64_t want = stored_element(request.want, i, width), got = stored_element(request.got, i, width);
    if (same_element(request.spec.type, want, got, request.zero_sign_free)) continue;
    if (wrong++ == 0) first = i;
  }
  return fmt::format("  {}: {} of {} differ, first at {}: want 0x{:x}, got 0x{:x}", request.spec.name, wrong, request.want.size() / width,
                     first, stored_element(request.want, first, width), stored_element(request.got, first, width));
}

std::string describe_outside_bounds(const DescribeRequest& request, std::span<const CertifiedBound> bounds) {
  const std::size_t width = stored_width(request.spec.type);
  const std::size_t count = request.got.size() / width;
  std::vector<float> values(count);
  widen(request.spec.type, request.got.data(), values);
  std::size_t outside = 0, unwritten = 0, touched = 0, first = count;
  for (std::size_t i = 0; i < count; ++i) {
    bool poisoned = true;
    for (std::size_t b = 0; b < width; ++b) poisoned = poisoned && request.got[i * width + b] == static_cast<std::byte>(request.poison);
    if (request.written[i * width] == 0) {
      if (poisoned) continue;
      ++touched;
    } else if (poisoned && request.poison == 0xff) {  // 0xA5 bytes may well be a result; NaN with every bit set is none
      ++unwritten;
    } else if (!bounds[i].contains(values[i])) {
      ++outside;
    } else {
      continue;
    }
    if (first == count) first = i;
  }
  if (first == count) return "";
  const std::int64_t columns = request.spec.shape.empty() ? 1 : request.spec.shape.back();
  const auto at = static_cast<std::int64_t>(first);
  return fmt::format(
      "  {}: {} outside their bound, {} not written, {} written past the groups, of {}\n"
      "    first at row {}, column {}: got {:a} (0x{:x}), bound [{:a}, {:a}]",
      request.spec.name, outside, unwritten, touched, count, columns == 0 ? 0 : at / columns, columns == 0 ? 0 : at % columns,
      values[first], stored_element(request.got, first, width), bounds[first].exact - bounds[first].radius,
      bounds[first].exact + bounds[first].radius);
}

}  // namespace assay::conformance
