#pragma once
// Lines about sizes, for the parts of the catalogue that make them: a length of every size beside a short one, with the options of
// an op in turn.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/catalogue/covering.h"

namespace assay::conformance {

// The options of a line are the next of each axis; combinations that are refused are passed over.
class Lines {
 public:
  explicit Lines(int first_seed) : seed_(first_seed) {}
  void add(const std::string& text, const std::vector<Axis>& options);
  std::vector<CaseLine> take() { return std::move(made_); }

 private:
  std::vector<CaseLine> made_;
  std::size_t turn_ = 0;
  int seed_;
};

// A length and, beside it, a short one.
struct Pair {
  std::int64_t length, beside;
};

// The first `longest` of the lengths at the end of the range and `others` of those before, counted from `turn` on, each with the
// next short length; `unit`: both are multiples of it.
std::vector<Pair> pairs(std::size_t turn, std::size_t others, std::int64_t unit = 1, std::size_t longest = 2);

// " FIRST=value SECOND=other"
std::string words(const char* first, std::int64_t value, const char* second, std::int64_t other);

// Both sides of the small powers of two, and the residues between them.
constexpr std::pair<std::int64_t, std::int64_t> kBeside[] = {{16, 17},   {17, 16},   {32, 33},   {33, 32},   {64, 65}, {65, 64},
                                                             {128, 129}, {129, 128}, {112, 127}, {127, 112}, {15, 15}};
void small_sizes(const std::string& op, const char* rows, const std::vector<Axis>& options, Lines& lines);

// Sizes of scale rules (rule_cases.cc).
void rule_sizes(Lines& lines);

}  // namespace assay::conformance
