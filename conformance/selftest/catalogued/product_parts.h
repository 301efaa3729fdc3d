#pragma once
// Products with changed operands: what a catalogued fault of a product does with its scales, elements and results. All ops with a
// product share this, the steps of a layer too, whose operands are quantized first.

#include "conformance/selftest/catalogued/fault_parts.h"
#include "reference/gemm/problem.h"

namespace assay::conformance {

// One of the two operands of a product, by the side of D that it gives.
enum class Side { rows, columns };

// Element (i, j) of a part of D, and the number of its tile of 128 x 128, counted over all parts. The part has `rows` rows.
struct Place {
  std::int64_t i, j, tile, rows;
};

// A product that is about to be computed. Changes are made to copies; `view` shows the operands as they are.
class ChangedProduct {
 public:
  explicit ChangedProduct(const GroupedGemmProblem& problem);

  GroupedGemmProblem problem;
  GroupedGemmView view;

  // Gives each scale a new value: `value(group, i, k, old)`, where i and k are the first that have the scale, and `old` is the
  // scale's address in what is given.
  void rescale(Side side,
               const std::function<void(const GroupView&, std::int64_t, std::int64_t, const std::byte*, std::byte*)>& value);
  // Gives each element a new value likewise. Codes of four bits stand in the lower half of a byte of their own.
  void replace(Side side,
               const std::function<void(const GroupView&, std::int64_t, std::int64_t, const std::byte*, std::byte*)>& value);
  std::int64_t element_size(Side side) const { return static_cast<std::int64_t>(element_bytes(operand(side).type)); }

  // Where element (i, k) of an operand of a group lies in what is given; its scale.
  const std::byte* element(const OperandView& of, std::int64_t i, std::int64_t k) const;
  const std::byte* scale(const OperandView& of, std::int64_t i, std::int64_t k) const;

  GemmOperand& operand(Side side);
  const GemmOperand& operand(Side side) const { return const_cast<ChangedProduct*>(this)->operand(side); }
  std::vector<std::byte>& own(std::vector<std::byte> bytes) { return owned_.emplace_back(std::move(bytes)); }

 private:
  std::deque<std::vector<std::byte>> owned_;
};

using ProductChange = std::function<void(ChangedProduct&)>;
using Chosen = std::function<bool(const Place&)>;

// Carries the request out, with the product changed in the chosen elements of D; all others are right.
void carry_out_changed(Request& request, const ProductChange& change, const Chosen& chosen = nullptr);
// Whether the change can be made: the changed problem is one.
void add_product_fault(std::vector<CallFault>& to, const std::string& name, std::string says, When when, ProductChange change,
                       Chosen chosen = nullptr);

// Carries the request out and then spoils D: parts of the view, D, what it held before, bytes of an element.
struct Result {
  const GroupedGemmView& view;
  std::byte* d;
  const std::vector<std::byte>& before;
  std::int64_t element;  // bytes
  std::byte* at(const GroupView& group, std::int64_t i, std::int64_t j) const {
    return d + (group.d_offset + i * group.n + j) * element;
  }
  // Whether rows [first, first + count) of a width lie in D.
  std::int64_t elements() const { return static_cast<std::int64_t>(before.size()) / element; }
};
void add_result_fault(std::vector<CallFault>& to, const std::string& name, std::string says, When when,
                      std::function<void(const Result&)> spoil);
void spoil_result(Request& request, const std::function<void(const Result&)>& spoil);

When product_of_kind(std::string kind);      // "bf16", ..., or the recipe of a layer whose products have this kind
When product_in_layout(std::string layout);  // TN, NN, NT

}  // namespace assay::conformance
