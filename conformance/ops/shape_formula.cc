#include "conformance/ops/shape_formula.h"

#include <cctype>
#include <string>

#include "reference/types/error.h"

namespace assay::conformance {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const FormulaValues& values) : text_(text), values_(values) {}

  std::vector<std::int64_t> list() {
    std::vector<std::int64_t> extents{sum()};
    while (accept(',')) extents.push_back(sum());
    if (at_ != text_.size()) fail("the end, or an operator");
    return extents;
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    throw InvalidArgument("formula", "'" + std::string(text_) + "' at '" + std::string(text_.substr(at_)) + "'", expected);
  }
  void check(bool fits) const {
    if (!fits) throw InvalidArgument("formula", "'" + std::string(text_) + "'", "a value within int64");
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char wanted) {
    if (next() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted, const char* expected) {
    if (!accept(wanted)) fail(expected);
  }

  std::int64_t sum() {
    std::int64_t value = product();
    while (next() == '+' || next() == '-') {
      const bool plus = text_[at_++] == '+';
      const std::int64_t other = product();
      check(plus ? !__builtin_add_overflow(value, other, &value) : !__builtin_sub_overflow(value, other, &value));
    }
    return value;
  }

  std::int64_t product() {
    std::int64_t value = factor();
    while (next() == '*' || next() == '/') {
      const bool times = text_[at_++] == '*';
      const std::int64_t other = factor();
      if (!times && other == 0) fail("a divisor other than 0");
      if (times) {
        check(!__builtin_mul_overflow(value, other, &value));
      } else {
        value /= other;
      }
    }
    return value;
  }

  std::int64_t factor() {
    const std::size_t begin = at_;
    if (accept('(')) {
      const std::int64_t value = sum();
      expect(')', "a closing parenthesis");
      return value;
    }
    if (std::isdigit(static_cast<unsigned char>(next())) != 0) {
      std::int64_t value = 0;
      while (std::isdigit(static_cast<unsigned char>(next())) != 0) value = value * 10 + (text_[at_++] - '0');
      return value;
    }
    while (std::isalpha(static_cast<unsigned char>(next())) != 0) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty()) fail("a number, a name or a function");
    if (accept('(')) return call(name);
    if (name == "r" && row_ != nullptr) return *row_;
    const auto found = values_.names.find(name);
    if (found == values_.names.end()) fail("a name that has a value here");
    return found->second;
  }

  // The arguments of a function.
  std::int64_t call(std::string_view function) {
    if (function == "sum") return sum_over_groups();
    if (function != "blocks" && function != "up") fail("blocks, up or sum");
    const std::int64_t value = sum();
    expect(',', "a comma and a unit");
    const std::int64_t unit = sum();
    expect(')', "a closing parenthesis");
    if (unit <= 0) fail("a unit above 0");
    const std::int64_t blocks = value / unit + (value % unit > 0 ? 1 : 0);
    std::int64_t rounded = 0;
    check(!__builtin_mul_overflow(blocks, unit, &rounded));
    return function == "up" ? rounded : blocks;
  }

  std::int64_t sum_over_groups() {
    const std::size_t begin = at_;
    std::int64_t total = 0;
    const std::int64_t nothing = 0;
    row_ = &nothing;
    sum();  // where it ends, also without groups
    const std::size_t end = at_;
    for (const std::int64_t& rows : values_.group_rows) {
      row_ = &rows;
      at_ = begin;
      check(!__builtin_add_overflow(total, sum(), &total));
    }
    row_ = nullptr;
    at_ = end;
    expect(')', "a closing parenthesis");
    return total;
  }

  std::string_view text_;
  const FormulaValues& values_;
  std::size_t at_ = 0;
  const std::int64_t* row_ = nullptr;  // r, within sum()
};

}  // namespace

std::vector<std::int64_t> extents_of_formula(std::string_view formulas, const FormulaValues& values) {
  return Parser(formulas, values).list();
}

std::int64_t value_of_formula(std::string_view formula, const FormulaValues& values) {
  const std::vector<std::int64_t> extents = extents_of_formula(formula, values);
  require(extents.size() == 1, "formula", formula, "one value");
  return extents[0];
}

}  // namespace assay::conformance
