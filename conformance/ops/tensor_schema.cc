#include "conformance/ops/tensor_schema.h"

#include <algorithm>
#include <cctype>

#include "conformance/ops/grouped_layout.h"
#include "conformance/ops/rule_request.h"
#include "conformance/ops/words.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + separator.size(), text.size()));
  }
  return parts;
}

// "1" for the integer 1, the text itself, "" where absent.
std::string value_of(const Request& request, const std::string& key) {
  const auto found = request.attributes.find(key);
  if (found == request.attributes.end()) return "";
  if (const auto* integer = std::get_if<std::int64_t>(&found->second)) return std::to_string(*integer);
  if (const auto* text = std::get_if<std::string>(&found->second)) return *text;
  return "";
}

bool word_holds(const std::string& word, const Request& request) {
  if (word.starts_with("in/")) return request.in.count(word.substr(3)) != 0;
  const std::size_t equals = word.find('=');
  const bool differs = word[equals - 1] == '!';
  const std::string value = value_of(request, word.substr(0, equals - (differs ? 1 : 0)));
  const std::vector<std::string> listed = parts_of(word.substr(equals + 1), "|");
  return (std::find(listed.begin(), listed.end(), value) != listed.end()) != differs;
}

bool is_name(std::string_view pattern, std::string_view name) {
  const std::size_t number = pattern.find('#');
  if (number == std::string_view::npos) return pattern == name;
  const std::string_view digits = name.substr(std::min(number, name.size()));
  const bool is_number = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return name.substr(0, number) == pattern.substr(0, number) && !digits.empty() && is_number;
}

std::int64_t extent_of(const Request& request, const char* name, std::size_t axis) {
  const auto found = request.in.find(name);
  return found == request.in.end() || found->second.shape.size() <= axis ? -1 : found->second.shape[axis];
}

// Total rows: as stated, or those of the matrix that has them; an operand in flat order has them times its columns.
std::int64_t rows_of(const Request& request, std::int64_t N, std::int64_t K) {
  if (const std::string said = value_of(request, "R"); !said.empty()) return std::stoll(said);
  for (const char* name : {"x", "dy", "x_rowwise_data", "dy_rowwise_data"}) {
    if (extent_of(request, name, 0) >= 0) return extent_of(request, name, 0);
  }
  for (const char* name : {"x_columnwise_data", "dy_columnwise_data"}) {
    const auto found = request.in.find(name);
    const std::int64_t width = name[0] == 'x' ? K : N;
    if (found == request.in.end() || width == 0) continue;
    if (found->second.shape.size() == 2) return found->second.shape[0];
    return found->second.elements() * (found->second.type == Format::e2m1 ? 2 : 1) / width;
  }
  return 0;
}

std::optional<Format> absent_type(std::string_view attribute) {
  if (attribute == "itype") return Format::bf16;
  if (attribute == "otype") return Format::e4m3;
  if (attribute == "dtype_d") return Format::f32;
  return std::nullopt;
}

// H: matrices side by side in x, as of op quantize. S and s: scales as stored, and those that are written. A and a: the same of the amax of the tensor or row.
void add_scale_counts(const Request& request, FormulaValues& values) {
  RuleProblem problem = rule_problem_of(request);
  values.names["H"] = problem.rule->matrices_in_x();
  values.names["K"] /= problem.rule->matrices_in_x();
  problem.rows = values.names.at("R");
  problem.columns = values.names.at("K");
  problem.grouped = request.in.count("splits") != 0;
  if (problem.grouped) problem.splits = values.group_rows;
  const RuleShapes shapes = rule_outputs(problem);
  const Format type = problem.rule->scale_type;
  values.names["S"] = shapes.scale_bytes / bytes_of(type, 1);
  const std::int64_t width = problem.block.columns == 0 ? std::max<std::int64_t>(problem.columns, 1) : problem.block.columns;
  const std::int64_t blocks = block_row_offsets(problem).back() * ((problem.columns + width - 1) / width);
  values.names["s"] = clears_padding(problem.storage) ? values.names["S"] : blocks;
  std::int64_t active = 0;
  for (const std::int64_t rows : values.group_rows) active += rows;
  values.names["A"] = shapes.outer_amaxes;
  values.names["a"] = problem.rule->outer == OuterAmax::row ? active : shapes.outer_amaxes;
}

}  // namespace

bool holds(const TensorSchema& tensor, const Request& request) {
  const std::vector<std::string> words = parts_of(tensor.when, " ");
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) { return word_holds(word, request); });
}

const TensorSchema* find_tensor(std::span<const TensorSchema> among, std::string_view name, const Request& request) {
  for (const TensorSchema& each : among) {
    if (is_name(each.name, name) && holds(each, request)) return &each;
  }
  return nullptr;
}

FormulaValues formula_values(const Request& request) {
  FormulaValues values;
  const auto attribute = [&](const char* name) {
    const std::string text = value_of(request, name);
    return text.empty() ? std::int64_t{-1} : std::stoll(text);
  };
  std::int64_t K = attribute("K");
  const std::int64_t N = attribute("N");
  if (K < 0) K = std::max(extent_of(request, "x", 1), extent_of(request, "dy", 1));
  if (request.in.count("splits") != 0) values.group_rows = request.splits();
  std::int64_t R = rows_of(request, N, K);
  std::int64_t sum = 0;
  for (const std::int64_t rows : values.group_rows) sum += rows;
  R = std::max(R, sum);  // a matrix without columns does not show its rows
  std::int64_t groups = static_cast<std::int64_t>(values.group_rows.size());
  if (request.in.count("splits") == 0 && request.op() != "grouped_gemm") {
    groups = request.in.count("first") != 0 ? extent_of(request, "first", 0) : 1;
    values.group_rows = {R};
  }
  values.names = {{"R", R}, {"K", K}, {"N", N}, {"G", groups}};
  values.names["length"] = extent_of(request, "amax_history", 0);
  values.names["n"] = extent_of(request, "amax_history", 1);
  values.names["W"] = sum;
  if (request.attributes.count("grouped_layout") != 0) {
    const GroupRows rows = group_rows_of(request);
    values.group_rows = value_of(request, "layout") == "NT" ? rows.splits : rows.scale_rows;
    values.names["R"] = rows.rows, values.names["G"] = static_cast<std::int64_t>(rows.splits.size());
    values.names["W"] = rows.open_rows;
  }
  if (const auto map = request.in.find("row_map"); map != request.in.end() && map->second.shape.size() == 2) {
    const auto* entries = static_cast<const std::int32_t*>(map->second.data);
    values.names["R"] = map->second.shape[0], values.names["T"] = map->second.shape[1];
    values.names["U"] = std::count_if(entries, entries + map->second.elements(), [](std::int32_t row) { return row >= 0; });
    const std::string rows = value_of(request, "permuted_rows");
    values.names["P"] = rows.empty() ? extent_of(request, "permuted", 0) : std::stoll(rows);
    values.names["K"] = std::max(extent_of(request, "x", 1), extent_of(request, "permuted", 1));
    values.names["S"] = extent_of(request, "scale_inv", 1);
  }
  if (request.op() == "quantize") {
    values.names["H"] = matrices_in_x(activation_of(request));
    values.names["K"] /= values.names["H"];
  }
  if (request.op().starts_with("linear_")) values.names["H"] = matrices_in_x(activation_of(request));
  if (request.op() == "quantize_by_rule") add_scale_counts(request, values);
  return values;
}

std::vector<Format> types_of(const TensorSchema& tensor, const Request& request) {
  if (tensor.type.starts_with("as ")) return {request.input(tensor.type.substr(3)).type};
  std::vector<Format> types;
  for (const std::string& word : parts_of(tensor.type, "|")) {
    std::optional<Format> type = format_named(word);
    if (!type) type = format_named(value_of(request, word));
    if (!type) type = absent_type(word);
    require(type.has_value(), "type of " + tensor.name, word, "a format, or an attribute that names one");
    types.push_back(*type);
  }
  return types;
}

std::vector<std::vector<std::int64_t>> shapes_of(const TensorSchema& tensor, const Request& request) {
  const bool grouped = request.in.count("splits") != 0 && !tensor.grouped_shape.empty();
  const FormulaValues values = formula_values(request);
  std::vector<std::vector<std::int64_t>> shapes;
  for (const std::string& shape : parts_of(grouped ? tensor.grouped_shape : tensor.shape, " or "))
    shapes.push_back(extents_of_formula(shape, values));
  return shapes;
}

std::optional<std::int64_t> written_elements(const TensorSchema& tensor, const Request& request) {
  const bool padded = tensor.compared == Compared::unpadded && value_of(request, "scale_layout") == "swizzled";
  if (tensor.written.empty() || padded) return std::nullopt;
  return value_of_formula(tensor.written, formula_values(request));
}

std::string_view name_of(Need need) {
  switch (need) {
    case Need::required: return "required";
    case Need::optional: return "optional";
    case Need::depends: return "depends";
  }
  return "";
}

std::string_view name_of(Compared compared) {
  switch (compared) {
    case Compared::all: return "all";
    case Compared::group_rows: return "group_rows";
    case Compared::unpadded: return "unpadded";
  }
  return "";
}

}  // namespace assay::conformance
