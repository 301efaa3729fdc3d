#pragma once
// What a candidate gives for one output, against what the call gave.

#include <cstdint>
#include <vector>

#include "conformance/diagnose/explain/failure.h"

namespace assay::conformance::explaining {

constexpr int kEnoughBits = 20;  // of evidence for one of some thousand causes

// What a candidate gives for one output: where it changes a word, and what the call gave there.
struct Effect {
  std::vector<std::int64_t> right;   // it changes the word to what the call gave
  std::vector<std::int64_t> spoilt;  // it changes the word to something else than the call gave
  std::int64_t left = 0;             // wrong words that it does not change
};

Effect effect_of(const FailedOutput& output, const Tensor& predicted);

// Bits of evidence in the words that are explained: their distance from the right ones, equal ones twice at most.
int evidence(const FailedOutput& output, const std::vector<std::int64_t>& explained);

}  // namespace assay::conformance::explaining
