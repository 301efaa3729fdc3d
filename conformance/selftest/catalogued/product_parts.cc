#include "conformance/selftest/catalogued/product_parts.h"

#include <algorithm>
#include <array>
#include <memory>

#include "conformance/ops/product.h"

namespace assay::conformance {
namespace {

alignas(16) const std::byte kNowhere[16] = {};

// Codes of four bits, which share bytes, as elements with an address.
constexpr std::array<std::byte, 16> kNibbles = [] {
  std::array<std::byte, 16> made{};
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::byte>(i);
  return made;
}();

const OperandView& side_of(const GroupView& group, Side side) { return side == Side::rows ? group.rows : group.columns; }

std::int64_t tiles_across(std::int64_t extent) { return (extent + 127) / 128; }

template <class Visit>
void each_place(const GroupedGemmView& view, Visit visit) {
  std::int64_t first = 0;
  for (const GroupView& group : view.groups) {
    for (std::int64_t i = 0; i < group.m; ++i) {
      for (std::int64_t j = 0; j < group.n; ++j)
        visit(group, Place{i, j, first + i / 128 * tiles_across(group.n) + j / 128, group.m});
    }
    first += tiles_across(group.m) * tiles_across(group.n);
  }
}

std::int64_t scale_size(const ScaleView& scale) { return static_cast<std::int64_t>(element_bytes(scale.type)); }

// The first i and k of each scale of an operand.
template <class Visit>
void each_scale(const OperandView& of, Visit visit) {
  const std::int64_t over_i = of.scale.i_block == 0 ? of.extent : of.scale.i_block;
  const std::int64_t over_k = of.scale.k_block == 0 ? of.depth : of.scale.k_block;
  for (std::int64_t i = 0; i < of.extent; i += over_i) {
    for (std::int64_t k = 0; k < of.depth; k += over_k) visit(i, k);
  }
}

}  // namespace

ChangedProduct::ChangedProduct(const GroupedGemmProblem& given) : problem(given), view(view_of(given, kNowhere)) {}

GemmOperand& ChangedProduct::operand(Side side) {
  const bool columns = side == Side::columns;
  switch (problem.layout) {
    case GemmLayout::TN: return columns ? problem.w : problem.x;
    case GemmLayout::NN: return columns ? problem.w : problem.dy;
    case GemmLayout::NT: break;
  }
  return columns ? problem.x : problem.dy;
}

const std::byte* ChangedProduct::element(const OperandView& of, std::int64_t i, std::int64_t k) const {
  if (of.type == Format::e2m1) return &kNibbles[of.element(i, k)];
  return static_cast<const std::byte*>(of.data) +
         (i * of.row_stride + k * of.k_stride) * static_cast<std::int64_t>(element_bytes(of.type));
}

const std::byte* ChangedProduct::scale(const OperandView& of, std::int64_t i, std::int64_t k) const {
  return static_cast<const std::byte*>(of.scale.data) + of.scale.index(i, k) * scale_size(of.scale);
}

void ChangedProduct::rescale(
    Side side, const std::function<void(const GroupView&, std::int64_t, std::int64_t, const std::byte*, std::byte*)>& value) {
  GemmOperand& of = operand(side);
  const auto* base = static_cast<const std::byte*>(of.scale_inv);
  std::int64_t end = 0;
  for (const GroupView& group : view.groups) {
    const OperandView& each = side_of(group, side);
    if (each.scale.data == nullptr) return;
    each_scale(each,
               [&](std::int64_t i, std::int64_t k) { end = std::max(end, scale(each, i, k) + scale_size(each.scale) - base); });
  }
  if (end == 0) return;
  std::vector<std::byte>& copy = own({base, base + end});
  for (const GroupView& group : view.groups) {
    const OperandView& each = side_of(group, side);
    each_scale(each, [&](std::int64_t i, std::int64_t k) {
      const std::byte* old = scale(each, i, k);
      value(group, i, k, old, copy.data() + (old - base));
    });
  }
  copy.resize(copy.size() + 4096);  // a changed problem may read padding behind the last scale
  of.scale_inv = copy.data();
}

void ChangedProduct::replace(
    Side side, const std::function<void(const GroupView&, std::int64_t, std::int64_t, const std::byte*, std::byte*)>& value) {
  GemmOperand& of = operand(side);
  const auto* base = static_cast<const std::byte*>(of.data);
  const bool nibbles = of.type == Format::e2m1;
  // Where element (i, k) of a group lies, in elements from the first of all.
  const auto place = [&](const OperandView& each, std::int64_t i, std::int64_t k) {
    const std::int64_t first = static_cast<const std::byte*>(each.data) - base;
    return (nibbles ? 2 * first : first / element_size(side)) + i * each.row_stride + k * each.k_stride;
  };
  std::int64_t count = 0;
  for (const GroupView& group : view.groups) {
    const OperandView& each = side_of(group, side);
    if (each.extent > 0 && each.depth > 0) count = std::max(count, place(each, each.extent - 1, each.depth - 1) + 1);
  }
  if (count == 0) return;
  std::vector<std::byte>& copy = own({base, base + (nibbles ? (count + 1) / 2 : count * element_size(side))});
  for (const GroupView& group : view.groups) {
    const OperandView& each = side_of(group, side);
    for (std::int64_t i = 0; i < each.extent; ++i) {
      for (std::int64_t k = 0; k < each.depth; ++k) {
        const std::int64_t at = place(each, i, k);
        if (!nibbles) {
          value(group, i, k, element(each, i, k), copy.data() + at * element_size(side));
          continue;
        }
        std::byte code = *element(each, i, k), &both = copy[static_cast<std::size_t>(at / 2)];
        value(group, i, k, element(each, i, k), &code);
        both = at % 2 == 0 ? (both & std::byte{0xF0}) | (code & std::byte{0xF}) : (both & std::byte{0xF}) | (code << 4);
      }
    }
  }
  of.data = copy.data();
}

void carry_out_changed(Request& request, const ProductChange& change, const Chosen& chosen) {
  const OutputView output = request.out.at(product_output(request.op()));
  std::vector<std::byte> made = bytes_of(output);
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;  // what of it is taken
  const auto size = static_cast<std::int64_t>(element_bytes(output.type));
  visit_product(request, [&](const GroupedGemmProblem& problem, void*) {
    ChangedProduct changed(problem);
    change(changed);
    std::vector<std::byte> aligned(made.size() + 64);
    void* to = aligned.data();
    std::size_t room = aligned.size();
    std::align(16, made.size() + 1, to, room);
    std::memcpy(to, made.data(), made.size());
    grouped_gemm(changed.problem, to);
    std::memcpy(made.data(), to, made.size());
    each_place(changed.view, [&](const GroupView& group, const Place& place) {
      const std::int64_t at = (group.d_offset + place.i * group.n + place.j) * size;
      if (chosen && !chosen(place)) return;
      if (!spans.empty() && spans.back().first + spans.back().second == at) {
        spans.back().second += size;
      } else {
        spans.emplace_back(at, size);
      }
    });
  });
  answer(request, Layer::fast);
  for (const auto& [at, bytes] : spans)
    std::memcpy(static_cast<std::byte*>(output.data) + at, made.data() + at, static_cast<std::size_t>(bytes));
}

void add_product_fault(std::vector<CallFault>& to, const std::string& name, std::string says, When when, ProductChange change,
                       Chosen chosen) {
  add_fault(
      to, name, std::move(says), both(has_product, std::move(when)),
      [change = std::move(change), chosen = std::move(chosen)](Request& request) { carry_out_changed(request, change, chosen); });
}

void spoil_result(Request& request, const std::function<void(const Result&)>& spoil) {
  const OutputView output = request.out.at(product_output(request.op()));
  const std::vector<std::byte> before = bytes_of(output);
  visit_product(request, [&](const GroupedGemmProblem& problem, void*) {
    const GroupedGemmView view = view_of(problem, kNowhere);
    answer(request, Layer::fast);
    spoil({view, static_cast<std::byte*>(output.data), before, static_cast<std::int64_t>(element_bytes(output.type))});
  });
}

void add_result_fault(std::vector<CallFault>& to, const std::string& name, std::string says, When when,
                      std::function<void(const Result&)> spoil) {
  add_fault(to, name, std::move(says), both(has_product, std::move(when)),
            [spoil = std::move(spoil)](Request& request) { spoil_result(request, spoil); });
}

When product_of_kind(std::string kind) {
  return [kind](const Request& request) {
    if (request.op() == "grouped_gemm") return request.text_or("kind", "") == kind;
    const std::string recipe = request.text_or("recipe", "");
    return recipe == kind || (recipe == "none" && request.text_or("itype", "bf16") == kind) ||
           (kind == "tensor" && recipe.rfind("tensor", 0) == 0);
  };
}

When product_in_layout(std::string layout) {
  return [layout](const Request& request) { return layout_of(request) == layout; };
}

}  // namespace assay::conformance
