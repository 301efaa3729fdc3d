#include "conformance/judge/memory/canaries.h"

#include <array>
#include <vector>

namespace assay::conformance {
namespace {

std::array<std::vector<std::byte>, 2> tables_made() {  // no lambda: the compiler would try for seconds to run it itself
  std::array<std::vector<std::byte>, 2> made{std::vector<std::byte>(2 * kCanaryPeriod),
                                             std::vector<std::byte>(2 * kCanaryPeriod)};
  for (std::int64_t i = 0; i < 2 * kCanaryPeriod; ++i) {
    const std::int64_t place = i % kCanaryPeriod, byte = 0xC3 ^ place * 37 ^ (place >> 8) * 101;
    made[0][static_cast<std::size_t>(i)] = static_cast<std::byte>(byte & 0xff);
    made[1][static_cast<std::size_t>(i)] = static_cast<std::byte>(~byte & 0xff);
  }
  return made;
}

}  // namespace

const std::byte* canaries(std::int64_t at, bool inverted) {
  static const std::array<std::vector<std::byte>, 2> tables = tables_made();
  return tables[inverted ? 1 : 0].data() + at % kCanaryPeriod;
}

}  // namespace assay::conformance
