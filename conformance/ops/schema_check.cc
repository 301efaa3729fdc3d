#include "conformance/ops/schema_check.h"

#include <algorithm>
#include <cctype>

#include "conformance/ops/rule_request.h"
#include "conformance/ops/tensor_schema.h"
#include "reference/types/error.h"

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

// As formula_values(), of what shapes and attributes show; the other names are absent.
FormulaValues shown_values(const Request& request) {
  std::int64_t K = integer_of(request, "K");
  const std::int64_t N = integer_of(request, "N");
  if (K < 0) K = std::max(extent_of(request, "x", 1), extent_of(request, "dy", 1));
  FormulaValues values;
  auto& names = values.names;
  names = {{"R", rows_of(request, N, K)}, {"K", K}, {"N", N}, {"G", groups_of(request)}};
  names["length"] = extent_of(request, "amax_history", 0), names["n"] = extent_of(request, "amax_history", 1);
  if (request.in.count("row_map") != 0) {
    names["R"] = extent_of(request, "row_map", 0), names["T"] = extent_of(request, "row_map", 1);
    names["P"] = request.op() == "permute" ? integer_of(request, "permuted_rows") : extent_of(request, "permuted", 0);
    names["K"] = std::max(extent_of(request, "x", 1), extent_of(request, "permuted", 1));
    names["S"] = extent_of(request, "scale_inv", 1);
  }
  if (request.op() == "quantize_by_rule") {
    names["H"] = rule_problem_of(request).rule->matrices_in_x();
    names["K"] = K < 0 ? -1 : K / names["H"];
  }
  std::erase_if(names, [](const auto& each) { return each.second < 0; });
  return values;
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

// The value of a formula all of whose names have one here; else -1.
std::int64_t shown_extent(const std::string& formula, const FormulaValues& values) {
  for (std::size_t at = 0; at < formula.size();) {
    std::size_t end = at;
    while (end < formula.size() && std::isalpha(static_cast<unsigned char>(formula[end])) != 0) ++end;
    const std::string name = formula.substr(at, end - at);
    if (!name.empty() && name != "blocks" && name != "up" && values.names.count(name) == 0) return -1;
    at = std::max(end, at + 1);
  }
  return value_of_formula(formula, values);
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

bool is_shape(const std::vector<std::int64_t>& shape, const std::string& formulas, const FormulaValues& values) {
  const std::vector<std::string> extents = extents_in(formulas);
  if (extents.size() != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t shown = shown_extent(extents[i], values);
    if (shown >= 0 && shown != shape[i]) return false;
  }
  return true;
}

// "[G,K], here [3,40]"; '?' stands for an extent that only contents decide.
std::string expected_text(const std::string& formulas, const FormulaValues& values) {
  std::string numbers;
  for (const std::string& extent : extents_in(formulas)) {
    const std::int64_t shown = shown_extent(extent, values);
    numbers += (numbers.empty() ? "" : ",") + (shown < 0 ? "?" : show(shown));
  }
  return "[" + formulas + "], here [" + numbers + "]";
}

bool has_half_columns(const std::string& formulas) { return formulas.ends_with("/2"); }

template <class Address>
void check_tensor(const TensorSchema& schema, const std::string& label, const View<Address>& tensor, const Request& request,
                  const FormulaValues& values) {
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
  if (std::any_of(shapes.begin(), shapes.end(), [&](const std::string& each) { return is_shape(tensor.shape, each, values); }))
    return;
  std::string expected;
  for (const std::string& each : shapes) expected += (expected.empty() ? "" : " or ") + expected_text(each, values);
  throw InvalidArgument(label, describe(tensor), expected);
}

template <class Views>
void check_tensors(const std::vector<TensorSchema>& among, const std::string& folder, const std::string& kind, const Views& views,
                   const Request& request, const FormulaValues& values) {
  for (const auto& [name, tensor] : views) {
    const TensorSchema* schema = find_tensor(among, name, request);
    if (schema == nullptr) throw NotSupported("op " + request.op() + " has no " + kind + " '" + name + "' here");
    check_tensor(*schema, folder + name, tensor, request, values);
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
  const FormulaValues values = shown_values(request);
  check_tensors(op->in, "in/", "input", request.in, request, values);
  check_tensors(op->out, "out/", "output", request.out, request, values);
}

}  // namespace assay::conformance
