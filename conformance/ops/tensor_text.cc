// The tables of tensor_schema.h as text.

#include <algorithm>

#include "conformance/ops/tensor_schema.h"
#include "conformance/support/wrap.h"

namespace assay::conformance {
namespace {

constexpr std::size_t kNameColumn = 6, kTextColumn = 10;

// "[up(R,128), up(blocks(K,16),4)]": a space after the commas between extents, none within one.
std::string shape_text(const std::string& shape) {
  std::string text = "[";
  int depth = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape.compare(i, 4, " or ") == 0) {
      text += "] or [";
      i += 3;
      continue;
    }
    depth += shape[i] == '(' ? 1 : shape[i] == ')' ? -1 : 0;
    text += shape[i];
    if (shape[i] == ',' && depth == 0) text += ' ';
  }
  return text + "]";
}

std::string when_text(const std::string& when) {
  std::string text;
  for (const char c : when) text += c == ' ' ? std::string(" and ") : std::string(1, c);
  return text;
}

std::string line_of(const TensorSchema& tensor, bool is_input) {
  std::string text = tensor.name + ": " + tensor.type + " " + shape_text(tensor.shape);
  if (!tensor.grouped_shape.empty()) text += ", with splits " + shape_text(tensor.grouped_shape);
  if (!tensor.when.empty()) text += "; if " + when_text(tensor.when);
  if (is_input && tensor.need == Need::optional) text += "; optional";
  if (!is_input && tensor.compared == Compared::group_rows) text += "; rows of the groups";
  if (!is_input && tensor.compared == Compared::unpadded) text += "; without padding";
  if (!tensor.help.empty()) text += "; " + tensor.help;
  return std::string(kNameColumn, ' ') + wrapped(text, kTextColumn, kNameColumn) + "\n";
}

}  // namespace

std::string describe_tensors(const OpTensors& op) {
  std::string attributes;
  for (const std::string_view each : op.attributes) attributes += (attributes.empty() ? "" : " ") + std::string(each);
  std::string text = "  attributes: " + wrapped(attributes.empty() ? "none" : attributes, kTextColumn, 14) + "\n  in/\n";
  for (const TensorSchema& each : op.in) text += line_of(each, true);
  text += "  out/\n";
  for (const TensorSchema& each : op.out) text += line_of(each, false);
  return text;
}

std::string describe_tensor_words() {
  return R"(A case is an op with attributes, tensors in/ and tensors out/, in a fixture as in a call of a
backend. A case line is one line of text from which a case is generated: an op and keys.

  R K N G       rows in all, columns, rows of a weight, groups
  r, sum(...)   the rows of one group, and a sum over the groups; in TN and NN all R rows are
                one with grouped_layout m_indices or psum, and each has max_m with masked
  T P U S       of row_map: choices of a token, rows of the permuted matrix, those that are named;
                scales of a token
  blocks(a,b)   a/b, rounded up
  up(a,b)       a, rounded up to a multiple of b

Tensors are row-major, without gaps, and begin at multiples of 256 bytes; e2m1 has two codes a byte,
the lower column in the lower half. Scales are padded group by group, one group after the other.
An output that is left out is not requested. All elements of the others are compared by bits (in
f32, bf16 and f16 every NaN equals every other), except these, which must be unchanged:
  rows of the groups   the rows beyond the sum of the splits; with a grouped_layout those beyond the
                       alignment of the last group, while rows of no group before may hold anything
  without padding      the padding of scales, where scale_layout is compact; if swizzled it is 0
A product whose order of summation is not known is compared by bounds (assay list --levels).
)";
}

}  // namespace assay::conformance
