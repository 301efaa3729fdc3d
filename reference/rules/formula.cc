// The compiler of formulas: recursive descent, one function a level of precedence.

#include "reference/rules/formula.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "reference/types/error.h"

namespace assay {
namespace {

struct NamedFunction {
  std::string_view name;
  FormulaFunction function;
  int arguments;
};
constexpr NamedFunction kFunctions[] = {
    {"max", FormulaFunction::maximum, 2},
    {"min", FormulaFunction::minimum, 2},
    {"max_nan", FormulaFunction::maximum_or_nan, 2},
    {"min_nan", FormulaFunction::minimum_or_nan, 2},
    {"abs", FormulaFunction::absolute, 1},
    {"fma", FormulaFunction::fused, 3},
    {"pow2_ceil", FormulaFunction::power_up, 1},
    {"pow2_floor", FormulaFunction::power_down, 1},
    {"pow2_ceil_log2", FormulaFunction::power_up_log2, 1},
    {"pow2_floor_log2", FormulaFunction::power_down_log2, 1},
    {"round_mantissa", FormulaFunction::round_half_up, 2},
    {"bf16", FormulaFunction::to_bf16, 1},
    {"f16", FormulaFunction::to_f16, 1},
    {"e4m3", FormulaFunction::to_e4m3, 1},
    {"e5m2", FormulaFunction::to_e5m2, 1},
    {"ftz", FormulaFunction::flush, 1},
    {"rcp_approx_ftz", FormulaFunction::rcp_approx_ftz, 1},
    {"rcp_approx", FormulaFunction::rcp_approx, 1},
    {"ex2_approx_ftz", FormulaFunction::ex2_approx_ftz, 1},
    {"ex2_approx", FormulaFunction::ex2_approx, 1},
    {"rsqrt_approx_ftz", FormulaFunction::rsqrt_approx_ftz, 1},
    {"rsqrt_approx", FormulaFunction::rsqrt_approx, 1},
    {"tanh_approx", FormulaFunction::tanh_approx, 1},
    {"div_full", FormulaFunction::div_full, 2},
    {"div_approx_ftz", FormulaFunction::div_approx_ftz, 2},
    {"cuda_expf", FormulaFunction::cuda_expf, 1},
};

struct NamedReduction {
  std::string_view name;
  FormulaReduction reduction;
};
constexpr NamedReduction kReductions[] = {
    {"block_sum", FormulaReduction::sum}, {"block_squares", FormulaReduction::squares}, {"block_max", FormulaReduction::maximum}};

constexpr std::size_t kMaxVariables = 64;
constexpr int kMaxStack = 32;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Compiler {
 public:
  Compiler(std::string_view argument, std::string_view text, std::span<const std::string_view> given, int element)
      : argument_(argument), text_(text) {
    formula_.element = element;
    for (const std::string_view name : given) formula_.variables.emplace_back(name);
  }

  Formula compile() {
    do {
      skip_spaces();
      if (at_ == text_.size() && !formula_.statements.empty()) break;  // a semicolon may end the last statement
      statement();
    } while (take(";"));
    if (at_ != text_.size()) fail("an operator or ';'");
    return std::move(formula_);
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    const std::string found = rest.empty() ? "its end" : "'" + std::string(rest.substr(0, 20)) + "'";
    throw InvalidArgument(argument_, "'" + std::string(text_) + "'",
                          std::string(expected) + " at character " + std::to_string(at_ + 1) + ", found " + found);
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  bool take(std::string_view symbol) {
    skip_spaces();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }

  std::string_view take_name() {
    skip_spaces();
    const std::size_t begin = at_;
    if (at_ < text_.size() && is_letter(text_[at_])) {
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  void statement() {
    skip_spaces();
    const std::size_t begin = at_;
    const std::string name(take_name());
    if (name.empty()) fail("a name to assign to");
    if (formula_.find(name) >= 0) {
      at_ = begin;
      fail("a name that has no value yet");
    }
    if (!take("=")) fail("'='");
    steps_.clear();
    height_ = 0;
    const FormulaReduction reduction = take_reduction();
    expression();
    if (reduction != FormulaReduction::none && !take(")")) fail("')' at the end of the statement");
    if (formula_.variables.size() == kMaxVariables) fail("at most 64 names");
    formula_.variables.push_back(name);
    formula_.statements.push_back({static_cast<std::uint8_t>(formula_.variables.size() - 1), steps_, reduction});
  }

  // "block_sum(", where there are elements to join.
  FormulaReduction take_reduction() {
    const std::size_t begin = at_;
    const std::string_view name = take_name();
    for (const NamedReduction& each : kReductions) {
      if (formula_.element >= 0 && each.name == name && take("(")) return each.reduction;
    }
    at_ = begin;
    return FormulaReduction::none;
  }

  // comparison ['?' expression ':' expression]
  void expression() {
    if (++depth_ > 64) fail("at most 64 nested expressions");
    comparison();
    if (take("?")) {
      expression();
      if (!take(":")) fail("':'");
      expression();
      push(FormulaOp::select, 3);
    }
    --depth_;
  }

  void comparison() {
    sum();
    struct Symbol {
      std::string_view text;
      FormulaOp op;
      bool swapped;
    };
    constexpr Symbol kSymbols[] = {{"<=", FormulaOp::less_equal, false}, {">=", FormulaOp::less_equal, true},
                                   {"==", FormulaOp::equal, false},      {"!=", FormulaOp::not_equal, false},
                                   {"<", FormulaOp::less, false},        {">", FormulaOp::less, true}};
    for (const Symbol& each : kSymbols) {
      if (!take(each.text)) continue;
      const auto left = static_cast<std::ptrdiff_t>(steps_.size());
      const std::ptrdiff_t begin = operand_begin(left);
      sum();
      // a > b is b < a: the two operands change places.
      if (each.swapped) std::rotate(steps_.begin() + begin, steps_.begin() + left, steps_.end());
      push(each.op, 2);
      return;
    }
  }

  void sum() {
    term();
    for (;;) {
      if (take("+")) {
        term();
        push(FormulaOp::add, 2);
      } else if (take("-")) {
        term();
        push(FormulaOp::subtract, 2);
      } else {
        return;
      }
    }
  }

  void term() {
    factor();
    for (;;) {
      if (take("*")) {
        factor();
        push(FormulaOp::multiply, 2);
      } else if (take("/")) {
        factor();
        push(FormulaOp::divide, 2);
      } else {
        return;
      }
    }
  }

  void factor() {
    if (!take("-")) return primary();
    if (++depth_ > 64) fail("at most 64 nested expressions");
    factor();
    --depth_;
    push(FormulaOp::negate, 1);
  }

  void primary() {
    if (take("(")) {
      expression();
      if (!take(")")) fail("')'");
      return;
    }
    skip_spaces();
    if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) return number();
    const std::size_t begin = at_;
    const std::string_view name = take_name();
    if (name.empty()) fail("a number, a name or '('");
    if (name == "inf" || name == "nan") return push_constant(name == "inf" ? kInfinite : kNotANumber);
    if (take("(")) return call(name, begin);
    const int index = formula_.find(name);
    if (index < 0) {
      at_ = begin;
      std::string known;
      for (const std::string& each : formula_.variables) known += (known.empty() ? "" : ", ") + each;
      fail("one of the names " + known);
    }
    push(FormulaOp::variable, 0, static_cast<std::uint8_t>(index));
  }

  void call(std::string_view name, std::size_t begin) {
    const NamedFunction* found =
        std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const NamedFunction& each) { return each.name == name; });
    if (found == std::end(kFunctions)) {
      at_ = begin;
      std::string known;
      for (const NamedFunction& each : kFunctions) known += (known.empty() ? "" : ", ") + std::string(each.name);
      fail("one of the functions " + known);
    }
    for (int i = 0; i < found->arguments; ++i) {
      if (i != 0 && !take(",")) fail(std::to_string(found->arguments) + " arguments of " + std::string(name));
      expression();
    }
    if (!take(")")) fail("')' after " + std::to_string(found->arguments) + " arguments of " + std::string(name));
    push(FormulaOp::call, found->arguments, static_cast<std::uint8_t>(found->function));
  }

  // Decimal or hexadecimal ("0x1p-127"), rounded once to f32.
  void number() {
    const bool hex = text_.substr(at_, 2) == "0x";
    const char* begin = text_.data() + at_ + (hex ? 2 : 0);
    float value = 0;
    const auto [end, error] =
        std::from_chars(begin, text_.data() + text_.size(), value, hex ? std::chars_format::hex : std::chars_format::general);
    if (error != std::errc{}) fail("a number that an f32 holds");
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && is_letter(text_[at_])) fail("an operator after the number");
    push_constant(value);
  }

  void push_constant(float value) {
    push(FormulaOp::constant, 0);
    steps_.back().value = value;
  }

  // A step that takes `taken` values and leaves one.
  void push(FormulaOp op, int taken, std::uint8_t index = 0) {
    height_ += 1 - taken;
    if (height_ > kMaxStack) fail("a simpler expression: at most 32 values at a time");
    steps_.push_back({op, index, 0});
  }

  // First step of the value on top of the stack after `end` steps.
  std::ptrdiff_t operand_begin(std::ptrdiff_t end) const {
    for (int missing = 1; missing > 0;) {
      const FormulaStep& step = steps_[static_cast<std::size_t>(--end)];
      missing += taken_by(step) - 1;
    }
    return end;
  }

  static constexpr float kInfinite = __builtin_inff();
  static constexpr float kNotANumber = __builtin_nanf("");

  std::string_view argument_, text_;
  std::size_t at_ = 0;
  int height_ = 0, depth_ = 0;
  std::vector<FormulaStep> steps_;
  Formula formula_;
};

}  // namespace

int arguments_of(FormulaFunction function) {
  for (const NamedFunction& each : kFunctions) {
    if (each.function == function) return each.arguments;
  }
  return 0;
}

int taken_by(const FormulaStep& step) {
  switch (step.op) {
    case FormulaOp::constant:
    case FormulaOp::variable: return 0;
    case FormulaOp::negate: return 1;
    case FormulaOp::select: return 3;
    case FormulaOp::call: return arguments_of(static_cast<FormulaFunction>(step.index));
    default: return 2;
  }
}

int Formula::find(std::string_view name) const {
  const auto found = std::find(variables.begin(), variables.end(), name);
  return found == variables.end() ? -1 : static_cast<int>(found - variables.begin());
}

bool Formula::depends(std::size_t statement, int variable) const {
  if (variable == element && statements[statement].reduction != FormulaReduction::none) return false;
  for (const FormulaStep& step : statements[statement].steps) {
    if (step.op != FormulaOp::variable) continue;
    if (step.index == variable) return true;
    for (std::size_t earlier = 0; earlier < statement; ++earlier) {
      if (statements[earlier].target == step.index && depends(earlier, variable)) return true;
    }
  }
  return false;
}

Formula parse_formula(std::string_view argument, std::string_view text, std::span<const std::string_view> given, int element) {
  return Compiler(argument, text, given, element).compile();
}

}  // namespace assay
