// The right elements, each changed alike: a last step that is left out or done twice.

#include <bit>
#include <cstdint>
#include <iterator>

#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/ops/elements.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"

namespace assay::conformance::diagnosis {
namespace {

using Bits = std::uint64_t;

Bits sign_bit(Format type) { return Bits{1} << (bits_of(type) - 1); }

float as_float(Format type, Bits bits) { return static_cast<float>(value_of(type, bits)); }
Bits of_float(Format type, float value) {
  if (type == Format::bf16) return scalar::encode_bf16(value);
  if (type == Format::f16) return scalar::encode_f16(value);
  return std::bit_cast<std::uint32_t>(value);
}
Bits cut_below(Bits bits, int kept) { return bits & ~((Bits{1} << (23 - kept)) - 1); }

struct Outcome {
  const char* text;
  Bits (*change)(Format type, Bits right);
};

constexpr Outcome kOutcomes[] = {
    {"with every result rounded to bf16 on the way",
     [](Format type, Bits right) {
       return is_finite(type, right) ? of_float(type, scalar::decode_bf16(scalar::encode_bf16(as_float(type, right)))) : right;
     }},
    {"with every result rounded to f16 on the way",
     [](Format type, Bits right) {
       return is_finite(type, right) ? of_float(type, scalar::decode_f16(scalar::encode_f16(as_float(type, right)))) : right;
     }},
    {"with the low half of every f32 result dropped",
     [](Format type, Bits right) { return type == Format::f32 ? cut_below(right, 7) : right; }},
    {"with every f32 result cut to the 10 fraction bits of tf32",
     [](Format type, Bits right) { return type == Format::f32 ? cut_below(right, 10) : right; }},
    {"with the sign of every result flipped",
     [](Format type, Bits right) { return is_floating(type) ? right ^ sign_bit(type) : right; }},
};

}  // namespace

void try_outcomes(const Suspect& suspect, const SampledOutput& sample, Effort& effort, AcceptedHypotheses& accepted) {
  if (!is_floating(suspect.want.type)) return;
  const Elements want(suspect.want);
  for (const Outcome& outcome : kOutcomes) {
    if (!effort.spend(static_cast<std::int64_t>(sample.wrong.size()))) return;
    const Weight weight =
        weigh(sample, [&](std::int64_t at) { return std::optional(outcome.change(suspect.want.type, want[at])); });
    if (!accepted.add(sample, weight, outcome.text)) return;
  }
}

std::vector<std::string> outcome_texts() {
  std::vector<std::string> texts;
  for (const auto& row : kOutcomes) texts.emplace_back(row.text);
  return texts;
}

}  // namespace assay::conformance::diagnosis
