#include "conformance/ops/schema_check.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "conformance/ops/rule_request.h"
#include "conformance/ops/tensor_schema.h"
#include "conformance/ops/words.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay::conformance {
namespace {

std::int64_t extent_of(const Request& request, const char* name, std::size_t axis) {
  const auto found = request.in.find(name);
  return found == request.in.end() || found->second.shape.size() <= axis ? -1 : found->second.shape[axis];
}

std::int64_t integer_of(const Request& request, const char* name) {
  const auto found = request.attributes.find(name);
  const auto* integer = found == request.attributes.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  return integer == nullptr ? -1 : *integer;
}

// Rows of the matrices, -1 where no shape shows them. An operand in flat order has them times its columns.
std::int64_t rows_of(const Request& request, std::int64_t N, std::int64_t K) {
  if (const std::int64_t stated = integer_of(request, "R"); stated >= 0) return stated;
  for (const char* name : {"x", "dy", "x_rowwise_data", "dy_rowwise_data"}) {
    if (extent_of(request, name, 0) >= 0) return extent_of(request, name, 0);
  }
  for (const char* name : {"x_columnwise_data", "dy_columnwise_data"}) {
    const auto found = request.in.find(name);
    const std::int64_t width = name[0] == 'x' ? K : N;
    if (found == request.in.end() || width <= 0) continue;
    if (found->second.shape.size() == 2) return found->second.shape[0];
    return found->second.elements() / width * (found->second.type == Format::e2m1 ? 2 : 1);
  }
  return -1;
}

std::int64_t groups_of(const Request& request) {
  for (const char* name : {"splits", "psum", "first"}) {
    if (request.in.count(name) != 0) return extent_of(request, name, 0);
  }
  return request.op() == "grouped_gemm" ? integer_of(request, "groups") : 1;
}

// Values of names that shapes and attributes show, as of formula_values(); the other names are absent.
struct Shown {
  FormulaValues values;
  std::map<std::string, std::int64_t, std::less<>> at_most;  // of a name whose value the splits decide
  bool grouped = false;                                      // groups follow one another: R and G say which splits there can be
};

// An extent as a formula has it: its value; or, where the splits decide, the largest, and what it is a multiple of.
struct ShownExtent {
  std::int64_t value = -1;  // -1: unknown
  bool is_exact = true;
  std::int64_t unit = 1;
  bool allows(std::int64_t extent) const {
    if (value < 0) return true;
    return is_exact ? extent == value : extent <= value && (unit == 0 ? extent == 0 : extent % unit == 0);
  }
  std::string text() const { return value < 0 ? "?" : (is_exact ? "" : "at most ") + show(value); }
};

// Scales of op quantize_by_rule. Splits into groups of one row each but the last have the most blocks and the most padding.
void take_rule_scales(const Request& request, Shown& shown) {
  const auto& names = shown.values.names;
  if (names.count("R") == 0 || names.count("K") == 0 || names.count("G") == 0) return;
  const RuleProblem problem = rule_problem_of(request);
  const std::int64_t K = names.at("K"), R = names.at("R"), groups = std::min(names.at("G"), R);
  const auto blocks = [](std::int64_t extent, std::int64_t block) {
    return block == 0 ? (extent > 0 ? 1 : 0) : ceil_div(extent, block);
  };
  const auto bytes = [&](std::int64_t block_rows) {
    return stored_scales(problem.storage, problem.rule->scale_type, block_rows, blocks(K, problem.block.columns)).bytes;
  };
  std::int64_t all = 0;
  if (groups > 0) {
    const std::int64_t last = blocks(R - groups + 1, problem.block.rows);
    all = problem.storage.per_group
              ? checked_sum(checked_product(bytes(1), groups - 1, "groups", groups), bytes(last), "groups", groups)
              : bytes(groups - 1 + last);
  }
  const std::int64_t elements = all / (bits_of(problem.rule->scale_type) / 8);
  if (request.in.count("splits") == 0) {
    shown.values.names["S"] = elements;
  } else {
    shown.at_most["S"] = elements;
  }
}

Shown shown_values(const Request& request) {
  std::int64_t K = integer_of(request, "K");
  const std::int64_t N = integer_of(request, "N");
  if (K < 0) K = std::max(extent_of(request, "x", 1), extent_of(request, "dy", 1));
  Shown shown;
  auto& names = shown.values.names;
  names = {{"R", rows_of(request, N, K)}, {"K", K}, {"N", N}, {"G", groups_of(request)}};
  names["length"] = extent_of(request, "amax_history", 0), names["n"] = extent_of(request, "amax_history", 1);
  if (request.in.count("row_map") != 0) {
    names["R"] = extent_of(request, "row_map", 0), names["T"] = extent_of(request, "row_map", 1);
    names["P"] = request.op() == "permute" ? integer_of(request, "permuted_rows") : extent_of(request, "permuted", 0);
    names["K"] = std::max(extent_of(request, "x", 1), extent_of(request, "permuted", 1));
    names["S"] = extent_of(request, "scale_inv", 1);
  }
  if (request.op() == "quantize" || request.op() == "quantize_by_rule") {
    names["H"] =
        request.op() == "quantize" ? matrices_in_x(activation_of(request)) : rule_problem_of(request).rule->matrices_in_x();
    names["K"] = K < 0 ? -1 : K / names["H"];
  }
  if (request.op().starts_with("linear_")) names["H"] = matrices_in_x(activation_of(request));
  std::erase_if(names, [](const auto& each) { return each.second < 0; });
  shown.grouped = request.in.count("splits") != 0;
  if (request.op() == "quantize_by_rule") take_rule_scales(request, shown);
  return shown;
}

// "a,f(b,c)" has two extents.
std::vector<std::string> extents_in(std::string_view formulas) {
  std::vector<std::string> extents{""};
  int depth = 0;
  for (const char letter : formulas) {
    depth += letter == '(' ? 1 : letter == ')' ? -1 : 0;
    if (letter == ',' && depth == 0) {
      extents.emplace_back();
    } else {
      extents.back() += letter;
    }
  }
  return extents;
}

// The largest value of a formula with a sum over groups. What is summed grows by a step at the first of each so many rows: groups of one
// row each but the last take the most steps.
ShownExtent largest_sum(const std::string& formula, const FormulaValues& values) {
  const std::int64_t R = values.names.at("R"), groups = std::min(values.names.at("G"), R);
  const auto of = [&](std::int64_t rows) {
    FormulaValues group = values;
    group.group_rows = {rows};
    return value_of_formula(formula, group);
  };
  if (groups <= 0) return {0, false, 0};
  std::int64_t ones = 0, all = 0;
  try {
    const std::int64_t one = of(1), last = of(R - groups + 1);
    if (__builtin_mul_overflow(one, groups - 1, &ones) || __builtin_add_overflow(ones, last, &all)) return {};
    return {all, false, one};
  } catch (const InvalidArgument&) {  // no int64 holds it: what splits there are may take less
    return {};
  }
}

// The value of a formula all of whose names have one here.
ShownExtent shown_extent(const std::string& formula, const Shown& shown) {
  const FormulaValues& values = shown.values;
  if (const auto found = shown.at_most.find(formula); found != shown.at_most.end()) return {found->second, false, 1};
  const bool sums = formula.find("sum(") != std::string::npos;
  if (sums && (!shown.grouped || values.names.count("R") == 0 || values.names.count("G") == 0)) return {};
  for (std::size_t at = 0; at < formula.size();) {
    std::size_t end = at;
    while (end < formula.size() && std::isalpha(static_cast<unsigned char>(formula[end])) != 0) ++end;
    const std::string name = formula.substr(at, end - at);
    const bool known = name.empty() || name == "blocks" || name == "up" || (sums && (name == "sum" || name == "r"));
    if (!known && values.names.count(name) == 0) return {};
    at = std::max(end, at + 1);
  }
  return sums ? largest_sum(formula, values) : ShownExtent{value_of_formula(formula, values)};
}

std::vector<std::string> alternatives_of(std::string_view shapes) {
  std::vector<std::string> all;
  for (std::size_t end = 0; end != std::string_view::npos; shapes.remove_prefix(std::min(shapes.size(), end + 4))) {
    end = shapes.find(" or ");
    all.emplace_back(shapes.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  return all;
}

bool is_shape(const std::vector<std::int64_t>& shape, const std::string& formulas, const Shown& shown) {
  const std::vector<std::string> extents = extents_in(formulas);
  if (extents.size() != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!shown_extent(extents[i], shown).allows(shape[i])) return false;
  }
  return true;
}

// "[G,K], here [3,40]"; '?' stands for an extent that only contents decide.
std::string expected_text(const std::string& formulas, const Shown& shown) {
  std::string numbers;
  for (const std::string& extent : extents_in(formulas)) {
    numbers += (numbers.empty() ? "" : ",") + shown_extent(extent, shown).text();
  }
  return "[" + formulas + "], here [" + numbers + "]";
}

bool has_half_columns(const std::string& formulas) { return formulas.ends_with("/2"); }

template <class Address>
void check_tensor(const TensorSchema& schema, const std::string& label, const View<Address>& tensor, const Request& request,
                  const Shown& shown) {
  const std::vector<Format> types = types_of(schema, request);
  if (std::find(types.begin(), types.end(), tensor.type) == types.end()) {
    std::string names;
    for (const Format type : types) names += (names.empty() ? "" : " or ") + std::string(name_of(type));
    throw InvalidArgument(label, describe(tensor), "type " + names);
  }
  const bool grouped = request.in.count("splits") != 0 && !schema.grouped_shape.empty();
  std::vector<std::string> shapes = alternatives_of(grouped ? schema.grouped_shape : schema.shape);
  // Of two shapes the one with half the columns is that of codes that share a byte.
  if (std::any_of(shapes.begin(), shapes.end(), has_half_columns) && shapes.size() > 1)
    std::erase_if(shapes, [&](const std::string& each) { return has_half_columns(each) != (tensor.type == Format::e2m1); });
  if (std::any_of(shapes.begin(), shapes.end(), [&](const std::string& each) { return is_shape(tensor.shape, each, shown); }))
    return;
  std::string expected;
  for (const std::string& each : shapes) expected += (expected.empty() ? "" : " or ") + expected_text(each, shown);
  throw InvalidArgument(label, describe(tensor), expected);
}

template <class Views>
void check_tensors(const std::vector<TensorSchema>& among, const std::string& folder, const std::string& kind, const Views& views,
                   const Request& request, const Shown& shown) {
  for (const auto& [name, tensor] : views) {
    const TensorSchema* schema = find_tensor(among, name, request);
    if (schema == nullptr) throw NotSupported("op " + request.op() + " has no " + kind + " '" + name + "' here");
    check_tensor(*schema, folder + name, tensor, request, shown);
  }
}

}  // namespace

void check_against_schema(const Request& request) {
  const std::span<const OpTensors> all = tensor_schema();
  const auto op = std::find_if(all.begin(), all.end(), [&](const OpTensors& each) { return each.op == request.op(); });
  if (op == all.end()) throw NotSupported("op '" + request.op() + "' is unknown");
  for (const auto& [name, value] : request.attributes) {
    if (std::find(op->attributes.begin(), op->attributes.end(), name) == op->attributes.end())
      throw NotSupported("op " + request.op() + " has no attribute '" + name + "'");
  }
  for (const TensorSchema& each : op->in) {
    if (each.need != Need::required || request.in.count(each.name) != 0 || !holds(each, request)) continue;
    throw InvalidArgument("in/" + each.name, "absent", "a tensor (op " + request.op() + " needs it)");
  }
  const Shown shown = shown_values(request);
  check_tensors(op->in, "in/", "input", request.in, request, shown);
  check_tensors(op->out, "out/", "output", request.out, request, shown);
}

}  // namespace assay::conformance
