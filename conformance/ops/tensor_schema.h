#pragma once
// The tensors of every op: names, types, shapes, when there is one, and which of its elements are compared. What
// `assay list --schema` prints; tests compare it with what the ops read and write, in every case of the standard profile.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/ops/request.h"
#include "conformance/ops/shape_formula.h"

namespace assay::conformance {

enum class Compared {
  all,
  group_rows,  // rows beyond the sum of the splits must hold what they held before the call (grouped_layout: spec grouped-gemm-1.4)
  unpadded,    // compact scales: padding must hold what it held; swizzled ones: all, padding being 0
};

enum class Need {
  required,
  optional,
  depends,  // `help` says on what
};

struct TensorSchema {
  std::string name = {};  // '#' stands for a number: offsets_0, offsets_1, ...
  std::string type = {};  // formats with '|' between them, the attribute that names one, or "as NAME": that of another input
  // Extents as stored, of which e2m1 has half as many as codes: formulas (shape_formula.h), " or " between shapes.
  std::string shape = {};
  std::string grouped_shape = {};  // with splits, where that differs
  // Conditions that must all hold: KEY=VALUE|VALUE, KEY!=VALUE|VALUE (of attributes), in/NAME (an input that is given).
  std::string when = {};
  Need need = Need::required;  // of an input; an output that is left out is not requested, or not checked
  Compared compared = Compared::all;
  std::string written = {};  // how many elements the op writes: a formula; empty: all
  std::string help = {};
};

struct OpTensors {
  std::string_view op;
  std::vector<std::string_view> attributes;  // that a case or a call may have
  // Several entries of one name are alternatives: the first that holds applies.
  std::vector<TensorSchema> in, out;
};

// In the order of known_ops().
std::span<const OpTensors> tensor_schema();
const OpTensors& tensors_of(std::string_view op);  // Errors (InvalidArgument): an op that is not known

// The entry for `name` in this request, or null when there is no such tensor in it.
const TensorSchema* find_tensor(std::span<const TensorSchema> among, std::string_view name, const Request& request);
bool holds(const TensorSchema& tensor, const Request& request);

// The values of the names in formulas for this request: R, K, N, G, W (rows that may be written), r, and for delayed_update length and n.
FormulaValues formula_values(const Request& request);

// The types and shapes that the tensor may have in this request.
std::vector<Format> types_of(const TensorSchema& tensor, const Request& request);
std::vector<std::vector<std::int64_t>> shapes_of(const TensorSchema& tensor, const Request& request);
// How many elements the op writes, when nothing is skipped; nullopt: all.
std::optional<std::int64_t> written_elements(const TensorSchema& tensor, const Request& request);

// For people, in lines of at most 100 columns: types, shapes, conditions and what is compared.
std::string describe_tensors(const OpTensors& op);
// Explains the words of these texts.
std::string describe_tensor_words();

// "required", "optional", "depends"; "all", "group_rows", "unpadded".
std::string_view name_of(Need need);
std::string_view name_of(Compared compared);

}  // namespace assay::conformance
