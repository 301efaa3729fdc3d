#pragma once
// In which order a mutant is tried on cases: a few cheap ones first, then such as differ from those before.

#include <cstdint>
#include <string>
#include <vector>

namespace assay::conformance {

class TrialOrder {
 public:
  // `cases`: their lines, the cheapest first.
  explicit TrialOrder(const std::vector<std::string>& cases);

  // Puts some of the cases, ascending at first, into the order in which a mutant is tried on them. After the cheapest ones each case
  // has a word (a type, a unit, a recipe, a layout, a size of its own kind) that none before it had; where no such is left, it begins
  // anew. Allocates nothing.
  void arrange(std::vector<std::int32_t>& cases);

 private:
  std::vector<std::size_t> begins_;     // of each case, in features_
  std::vector<std::int32_t> features_;  // numbers of words
  std::vector<std::int64_t> round_of_;  // in which each word was last met
  std::vector<std::int32_t> left_;
  std::int64_t round_ = 0;
};

// What counts as the same word: sizes of about one magnitude and the same divisibility do, and all seeds. Empty: no word of its own.
std::string feature_of(const std::string& word);

}  // namespace assay::conformance
