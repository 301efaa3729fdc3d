#include "conformance/diagnose/explain/effect.h"

#include <algorithm>
#include <bit>
#include <map>

namespace assay::conformance::explaining {
namespace {

int distance_bits(Format type, std::uint64_t got, std::uint64_t want) {
  std::uint64_t distance = got > want ? got - want : want - got;
  if (is_floating(type)) {
    const bool finite = is_finite(type, got) && is_finite(type, want);
    distance = finite ? std::max<std::uint64_t>(ulp_distance(type, got, want), 1) : 256;
  }
  return std::min(8, static_cast<int>(std::bit_width(distance)));
}

}  // namespace

Effect effect_of(const FailedOutput& output, const Tensor& predicted) {
  Effect effect;
  const Elements of(predicted), got(output.got), want(output.want);
  for (std::int64_t at = 0; at < output.elements; ++at) {
    const std::uint64_t p = of[at], w = want[at], g = got[at];
    if (output.same(p, w) && output.same(g, w)) continue;
    if (!output.is_judged(at)) continue;
    if (output.same(p, w)) {
      ++effect.left;
    } else {
      (output.same(p, g) ? effect.right : effect.spoilt).push_back(at);
    }
  }
  return effect;
}

int evidence(const FailedOutput& output, const std::vector<std::int64_t>& explained) {
  const Elements got(output.got), want(output.want);
  std::map<std::uint64_t, int> seen;
  int bits = 0;
  for (const std::int64_t at : explained) {
    if (bits > 8 * kEnoughBits) break;
    if (seen[got[at]]++ < 2) bits += distance_bits(output.want.type, got[at], want[at]);
  }
  return bits;
}

}  // namespace assay::conformance::explaining
