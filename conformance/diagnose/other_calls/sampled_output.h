#pragma once
// The elements of a wrong output that hypotheses are tested on, and the weight of evidence that one needs.
//
// A hypothesis predicts every element. It is accepted only where chance is excluded: each wrong element that it
// predicts counts as many bits as its distance from the right value has (a rounding 1, a far one up to 8; the same value at
// most twice), and where it also predicts which elements are right, each of the rarer kind counts one more.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "golden/io/fixture.h"
#include "reference/gemm/error_bound.h"

namespace assay::conformance::diagnosis {

struct Word {
  std::int64_t element = 0;  // e2m1 counts codes
  std::uint64_t got = 0, want = 0;
  double slack = 0;  // values this close count as equal; 0: bits must be equal
};

struct SampledOutput {
  Format type = Format::f32;
  std::vector<Word> wrong, right;  // the sampled ones, spread over the output
  std::int64_t all_wrong = 0;
  bool within_bounds = false;  // an element outside its certified bound is wrong
};

// Uses the elements with a byte that `written` marks (one flag per byte; empty: all). NaN equals NaN in f32,
// bf16 and f16. Samples at most `most` wrong and `most` right elements.
SampledOutput sample_output(const Tensor& got, const Tensor& want, std::span<const std::uint8_t> written, std::size_t most);
// The same for a product that is only bounded: an element outside its bound is wrong. `want` holds the middle of each bound.
SampledOutput sample_bounded_output(const Tensor& got, const Tensor& want, std::span<const std::uint8_t> written,
                                    std::span<const CertifiedBound> bounds, std::size_t most);
// The same with fewer elements.
SampledOutput thinned(const SampledOutput& sample, std::size_t wrong, std::size_t right);

// The bits that a hypothesis predicts for an element; nothing where it predicts none.
using Prediction = std::function<std::optional<std::uint64_t>(std::int64_t element)>;

struct Weight {
  bool accepted = false;
  bool all = false;        // every wrong element is as predicted
  bool right_too = false;  // and every right one
  std::int64_t matched = 0, looked_at = 0;
};

// Requests no more elements than it takes to reject the hypothesis.
Weight weigh(const SampledOutput& sample, const Prediction& prediction);

// "all 39 wrong elements are those of the same call", "all 48 wrong elements that were compared, of 1234, are ...", "37 of 39 ...".
std::string share_text(const SampledOutput& sample, const Weight& weight);

}  // namespace assay::conformance::diagnosis
