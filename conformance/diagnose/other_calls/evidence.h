#pragma once
// The words of a wrong output that hypotheses are tried on, and what it takes to believe one.
//
// A hypothesis says what every word should be. It is believed only where chance is excluded: each wrong word that it
// foretells counts as many bits as its distance from the right word has (a rounding 1, a far one up to 8; the same value at
// most twice), and where it also foretells which words are right, each of the rarer kind counts one more.

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
  double slack = 0;  // words whose values lie so close are the same; 0: bits must be equal
};

struct Evidence {
  Format type = Format::f32;
  std::vector<Word> wrong, right;  // those that are looked at, spread over the output
  std::int64_t all_wrong = 0;
  bool within_bounds = false;  // wrong is what lies outside its certified bound
};

// What counts as a word: elements with a byte that `written` marks (one flag a byte; empty: all). NaN equals NaN in f32,
// bf16 and f16. Looks at no more than `most` wrong and `most` right words.
Evidence evidence_of(const golden::Tensor& got, const golden::Tensor& want, std::span<const std::uint8_t> written,
                     std::size_t most);
// The same of a product that is only bounded: wrong is what lies outside. `want` holds the values in the middle.
Evidence evidence_outside(const golden::Tensor& got, const golden::Tensor& want, std::span<const std::uint8_t> written,
                          std::span<const CertifiedBound> bounds, std::size_t most);
// The same with fewer words.
Evidence thinned(const Evidence& evidence, std::size_t wrong, std::size_t right);

// The word that a hypothesis has at an element; nothing where it has none.
using Foretold = std::function<std::optional<std::uint64_t>(std::int64_t element)>;

struct Weight {
  bool believed = false;
  bool all = false;        // every wrong word is as foretold
  bool right_too = false;  // and every right one
  std::int64_t matched = 0, looked_at = 0;
};

// Asks for no more words than it takes to reject the hypothesis.
Weight weigh(const Evidence& evidence, const Foretold& foretold);

// "all 39 wrong elements are those of the same call", "all 48 wrong elements that were looked at, of 1234, are ...", "37 of 39 ...".
std::string share_text(const Evidence& evidence, const Weight& weight);

}  // namespace assay::conformance::diagnosis
