#include "conformance/emit/c_source.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

#include "conformance/emit/c_runtime.h"
#include "conformance/ops/elements.h"
#include "conformance/report/version.h"
#include "conformance/suites/backend_choice.h"
#include "conformance/support/wrap.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// Text that does not end a comment.
std::string in_comment(std::string_view text) {
  std::string safe;
  for (const char each : text) {
    if (each == '/' && safe.ends_with('*')) safe += ' ';
    safe += each == '\n' || each == '\r' ? ' ' : each;
  }
  return safe;
}

// A string literal: no trigraphs, no bytes beyond ASCII.
std::string literal(std::string_view text) {
  std::string made = "\"";
  for (const char each : text) {
    const auto code = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\' || each == '?') {
      made += {'\\', each};
    } else if (code < 0x20 || code > 0x7E) {
      made += fmt::format("\\{:03o}", code);
    } else {
      made += each;
    }
  }
  return made + "\"";
}

std::string real_literal(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  std::string text = fmt::format("{:.17g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// INT64_MIN has no literal of its own.
std::string integer_literal(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return "(-INT64_C(9223372036854775807) - 1)";
  return value >= INT32_MIN + std::int64_t{1} && value <= INT32_MAX ? fmt::format("{}", value)
                                                                    : fmt::format("INT64_C({})", value);
}

bool is_integer(Format type) { return type == Format::i32 || type == Format::i64; }

// Bits of a word of an array: a byte for two codes of e2m1.
int word_bits(Format type) { return std::max(bits_of(type), 8); }

std::string word_type(Format type) { return fmt::format("{}int{}_t", is_integer(type) ? "" : "u", word_bits(type)); }

std::string word_literal(const Tensor& tensor, std::int64_t at) {
  const auto width = static_cast<std::size_t>(word_bits(tensor.type) / 8);
  const auto place = static_cast<std::size_t>(at);
  const std::uint64_t word = width == 1 ? static_cast<std::uint64_t>(tensor.bytes[place]) : Elements(tensor)[at];
  if (tensor.type == Format::i64) return integer_literal(static_cast<std::int64_t>(word));
  if (tensor.type == Format::i32) return integer_literal(static_cast<std::int32_t>(word));
  return fmt::format("0x{:0{}X}", word, width * 2);
}

// `static const uint16_t NAME[N] = {...};`, or nothing for a tensor without elements.
void add_array(std::string& text, const std::string& name, const Tensor& tensor) {
  constexpr std::size_t kColumns = 100;
  const std::int64_t count = tensor.elements();
  if (count == 0) return;
  text += fmt::format("static const {} {}[{}] = {{\n", word_type(tensor.type), name, count);
  std::string line = " ";
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string word = word_literal(tensor, i);
    if (line.size() + word.size() + 2 > kColumns) {
      text += line + "\n";
      line = " ";
    }
    line += " " + word + (i + 1 < count ? "," : "");
  }
  text += line + "\n};\n";
}

std::vector<std::int64_t> strides_of(const Tensor& tensor) {
  std::vector<std::int64_t> strides(tensor.shape.size(), 1);
  for (std::size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * tensor.shape[i];
  return strides;
}

std::string shape_words(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += (text.empty() ? "" : ",") + show(extent);
  return "[" + text + "]";
}

// "x bf16 [22,136], strides [136,1]"
std::string described(const std::string& name, const Tensor& tensor) {
  return fmt::format("{} {} {}, strides {}", name, name_of(tensor.type), shape_words(tensor.shape),
                     shape_words(strides_of(tensor)));
}

// Name, type, rank, shape, strides, bytes, data: a row of the tables of inputs and outputs.
std::string table_row(const std::string& name, const Tensor& tensor, const std::string& data) {
  const auto pair = [](const std::vector<std::int64_t>& extents) {
    return fmt::format("{{{}, {}}}", extents.empty() ? "0" : integer_literal(extents[0]),
                       extents.size() < 2 ? "0" : integer_literal(extents[1]));
  };
  require(tensor.shape.size() <= 2, name, shape_words(tensor.shape), "one or two extents");
  return fmt::format("  {{{}, \"{}\", {}, {}, {}, {}, {}}},\n", literal(name), name_of(tensor.type), tensor.shape.size(),
                     pair(tensor.shape), pair(strides_of(tensor)), tensor.bytes.size(), tensor.bytes.empty() ? "NULL" : data);
}

struct WordCounts {
  std::int64_t kept = 0, free = 0;
};
WordCounts counts_of(const ExactOutput& output) {
  WordCounts counts;
  for (const OpenRange& range : output.open) (range.is_free ? counts.free : counts.kept) += range.count;
  return counts;
}

void add_head(std::string& text, const ExactCase& each, const std::string& line) {
  text += fmt::format("/* {}\n *\n", in_comment(line));
  text += fmt::format(
      " * Made by assay {} from the line above, with its CPU reference: one call of the op {}, its inputs, and the\n"
      " * outputs that it must give, by bits{}.\n *\n",
      kVersion, each.problem.op, each.bounded ? " but for the product" : "");
  if (each.bounded)
    text += fmt::format(
        " * The product is right where each word lies in its interval, which holds the results of every order of additions\n"
        " * {}.\n *\n",
        each.unit.empty() ? "in the arithmetic of every known unit for its operands" : "in the unit " + in_comment(each.unit));
  if (!each.plan.empty()) {
    text += each.order_free ? " * The product is exact in every order of additions.\n"
                            : fmt::format(
                                  " * The product follows this accumulation plan; under another one other bits are right:\n"
                                  " *   {}\n",
                                  in_comment(each.plan));
    text += " *\n";
  }
  text += " * Inputs:\n";
  for (const auto& [name, tensor] : each.problem.in) text += fmt::format(" *   {}\n", described(name, tensor));
  text += " * Outputs:\n";
  for (const ExactOutput& output : each.outputs) {
    const WordCounts counts = counts_of(output);
    text += fmt::format(" *   {}", described(output.name, output.want));
    if (counts.kept > 0) text += fmt::format("; {} kept", counts.kept);
    if (counts.free > 0) text += fmt::format("; {} free", counts.free);
    text += "\n";
  }
  text += fmt::format(" * What they hold, and in which order: assay list --schema --op {}\n", each.problem.op);
  text += " * Parameters:\n";
  for (const auto& [name, value] : each.problem.attributes) {
    const std::string shown = std::visit(
        [](const auto& held) {
          if constexpr (std::is_same_v<std::decay_t<decltype(held)>, double>)
            return real_literal(held);
          else
            return fmt::format("{}", held);
        },
        value);
    text += fmt::format(" *   {} = {}\n", name, in_comment(shown));
  }
  if (each.problem.attributes.empty()) text += " *   none\n";
  text += std::string(" *\n") + kCUsage + " */\n";
}

// Positions in the tables, so that they can be named.
void add_positions(std::string& text, const ExactCase& each) {
  std::string inputs, outputs;
  for (const auto& [name, tensor] : each.problem.in) inputs += (inputs.empty() ? "ASSAY_IN_" : ", ASSAY_IN_") + name;
  for (const ExactOutput& output : each.outputs) outputs += (outputs.empty() ? "ASSAY_OUT_" : ", ASSAY_OUT_") + output.name;
  text += "\n/* Positions in the tables of inputs and outputs. */\n";
  text += fmt::format("enum {{ {} }};\nenum {{ {} }};\n", wrapped(inputs, 2, 7), wrapped(outputs, 2, 7));
}

bool add_parameters(std::string& text, const Case& problem) {
  if (problem.attributes.empty()) return false;
  text += "\nstatic const struct assay_case_parameter assay_parameters[] = {\n";
  for (const auto& [name, value] : problem.attributes) {
    text += "  {" + literal(name) + ", ";
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      text += "ASSAY_PARAMETER_INTEGER, " + integer_literal(*integer) + ", 0.0, NULL},\n";
    } else if (const auto* real = std::get_if<double>(&value)) {
      text += "ASSAY_PARAMETER_REAL, 0, " + real_literal(*real) + ", NULL},\n";
    } else {
      text += "ASSAY_PARAMETER_TEXT, 0, 0.0, " + literal(std::get<std::string>(value)) + "},\n";
    }
  }
  text += "};\n";
  return true;
}

// `bounded`: words are compared as values, of which 8 bits have NaNs too.
std::string nan_of(Format type, bool bounded) {
  if (bounded && type == Format::e4m3) return "ASSAY_NAN_E4M3";
  if (bounded && type == Format::e5m2) return "ASSAY_NAN_E5M2";
  switch (type) {
    case Format::f32: return "ASSAY_NAN_F32";
    case Format::bf16: return "ASSAY_NAN_BF16";
    case Format::f16: return "ASSAY_NAN_F16";
    default: return "ASSAY_NAN_IS_A_WORD";
  }
}

void add_ranges(std::string& text, const ExactOutput& output) {
  if (output.open.empty()) return;
  text += fmt::format("static const struct assay_range ranges_{}[{}] = {{\n", output.name, output.open.size());
  for (const OpenRange& range : output.open)
    text += fmt::format("  {{{}, {}, {}}},\n", range.first, range.count, range.is_free ? "ASSAY_FREE" : "ASSAY_KEPT");
  text += "};\n";
}

std::string expected_row(const ExactOutput& output) {
  const WordCounts counts = counts_of(output);
  const bool none = output.elements == 0;
  return fmt::format("  {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}},\n", none ? "NULL" : "want_" + output.name,
                     none || !output.most ? "NULL" : "most_" + output.name, output.elements, bits_of(output.want.type),
                     nan_of(output.want.type, output.most.has_value()), output.zero_sign_free ? 1 : 0,
                     output.open.empty() ? "NULL" : "ranges_" + output.name, output.open.size(), counts.kept, counts.free);
}

bool has_special_real(const Case& problem) {
  for (const auto& [name, value] : problem.attributes) {
    const auto* real = std::get_if<double>(&value);
    if (real != nullptr && !std::isfinite(*real)) return true;
  }
  return false;
}

}  // namespace

std::string c_source(const ExactCase& each, const std::string& case_line) {
  require(!each.outputs.empty(), "outputs", "none", "a case with an output");
  std::string text;
  add_head(text, each, case_line);
  text += "\n";
  text += kCTypes;
  add_positions(text, each);
  text += "\n#ifndef ASSAY_DECLARATIONS_ONLY\n";
  if (has_special_real(each.problem)) text += "\n#include <math.h> /* INFINITY, NAN */\n";

  text += "\n/* Inputs. */\n";
  for (const auto& [name, tensor] : each.problem.in) {
    text += fmt::format("/* {} */\n", described(name, tensor));
    add_array(text, "in_" + name, tensor);
  }
  text += "\n/* Memory of the outputs. */\n";
  for (const ExactOutput& output : each.outputs) {
    if (output.elements > 0)
      text += fmt::format("static {} out_{}[{}];\n", word_type(output.want.type), output.name, output.want.elements());
  }
  text += "\n/* Expected outputs; 0 where a range says that nothing is compared. */\n";
  if (each.bounded) text += "/* Where there is most_NAME too, every word from want_NAME to most_NAME is right. */\n";
  for (const ExactOutput& output : each.outputs) {
    text += fmt::format("/* {} */\n", described(output.name, output.want));
    add_array(text, "want_" + output.name, output.want);
    if (output.most) add_array(text, "most_" + output.name, *output.most);
  }

  text += "\n";
  text += kCExpected;
  text += "\n";
  for (const ExactOutput& output : each.outputs) add_ranges(text, output);
  const bool has_parameters = add_parameters(text, each.problem);
  text += "\nstatic const struct assay_case_input assay_inputs[] = {\n";
  for (const auto& [name, tensor] : each.problem.in) text += table_row(name, tensor, "in_" + name);
  text += "};\n\nstatic const struct assay_case_output assay_outputs[] = {\n";
  for (const ExactOutput& output : each.outputs) text += table_row(output.name, output.want, "out_" + output.name);
  text += "};\n\nstatic const struct assay_expected assay_expected_outputs[] = {\n";
  for (const ExactOutput& output : each.outputs) text += expected_row(output);
  text += "};\n\n";
  text += fmt::format(
      "const struct assay_case ASSAY_CASE = {{\n  {},\n  {}, {}, {}, {},\n  {}, assay_inputs, assay_outputs,\n}};\n\n",
      literal(case_line), literal(each.problem.op), each.problem.attributes.size(), each.problem.in.size(), each.outputs.size(),
      has_parameters ? "assay_parameters" : "NULL");
  text += kCProgram;
  text += "\n#endif /* ASSAY_DECLARATIONS_ONLY */\n";
  return text;
}

}  // namespace assay::conformance
