#include "conformance/generate/unit_probes.h"

#include <vector>

#include "conformance/generate/pattern_source.h"

namespace assay::conformance {
namespace {

constexpr int kLargest = 8;                // log2 of the operands of B
constexpr int kWeights[] = {8, -8, 8, 0};  // log2 of the second operand at k, k + 4, ...
constexpr int kFewest = 8, kMax = 32;      // bits below B

ProbeTerm large(int k, bool negative) { return {k, 4, kLargest, negative}; }
// 2^-below B in the four products from k on.
ProbeTerm small(int k, int below, int quarters = 4) {
  const int at = below <= 20 ? 3 : 1;
  return {k + at, quarters, 2 * kLargest - below - kWeights[at], false};
}

std::vector<UnitProbe> make_probes() {
  std::vector<UnitProbe> probes;
  const auto add = [&](std::string name, std::initializer_list<ProbeTerm> terms, bool wide = false) {
    UnitProbe& probe = probes.emplace_back();
    probe.name = std::move(name);
    for (const ProbeTerm& each : terms) probe.terms[probe.count++] = each;
    probe.wide = wide;
  };
  const auto bits = [](int below) { return "2^-" + std::to_string(below) + " B"; };
  for (int below = kFewest; below <= kMax; ++below)
    add("B, " + bits(below) + ", -B", {large(0, false), small(0, below), large(2, true)});
  for (int below = kFewest; below <= 26; ++below) add("B, 1.75 * " + bits(below), {large(0, false), small(0, below, 7)});
  // A later step would cut the sum to its own bits.
  for (int below = kFewest; below <= 26; ++below)
    add("at the end B, B, 1.75 * " + bits(below), {large(-4, false), large(-2, false), small(-4, below, 7)});
  for (const int step : {4, 8, 16, 32}) {
    for (const int below : {8, 9, 10, 11, 12, 13, 14, 22, 23, 24, 25}) {
      add("B, B, " + bits(below) + ", and from product " + std::to_string(step) + " on -B, -B",
          {large(0, false), large(2, false), small(0, below), large(step, true), large(step + 2, true)});
    }
  }
  for (int below = kFewest; below <= kMax; ++below) {
    add("B, and from product 32 on -B, " + bits(below), {large(0, false), large(32, true), small(32, below)});
  }
  for (const int below : {100, 110, 120, 126, 130, 133}) {
    add("2^-" + std::to_string(below + 8) + " alone", {{1, 4, -below, false}}, true);
  }
  return probes;
}

}  // namespace

std::span<const UnitProbe> unit_probes() {
  static const std::vector<UnitProbe> probes = make_probes();
  return probes;
}

int probe_weight_exponent(std::int64_t k) { return kWeights[k % 4]; }

std::uint32_t unit_probe(const Source& s, std::int64_t row, std::int64_t column) {
  const std::int64_t k = s.k(row, column), line = s.free(row, column);
  if (s.request.role == Role::second) {
    return compose(s.fields, line % 2 == 1, line % 4 < 2 ? 2 : 3, probe_weight_exponent(k) - 1);
  }
  const std::span<const UnitProbe> probes = unit_probes();
  const UnitProbe& probe = probes[static_cast<std::size_t>(line) % probes.size()];
  if (probe.wide && s.request.type != Format::bf16) return 0;
  for (int i = 0; i < probe.count; ++i) {
    const ProbeTerm& term = probe.terms[i];
    if ((term.k < 0 ? s.request.contraction + term.k : term.k) == k)
      return compose(s.fields, term.negative, static_cast<std::uint32_t>(term.quarters), term.exponent - 2);
  }
  return 0;
}

}  // namespace assay::conformance
