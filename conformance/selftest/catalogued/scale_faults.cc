// Catalogued faults of the scales that a product reads.

#include <bit>
#include <cmath>

#include "conformance/selftest/catalogued/catalogued_faults.h"
#include "conformance/selftest/catalogued/product_parts.h"

namespace assay::conformance {
namespace {

using Rescale = void (*)(ChangedProduct&, Side, const GroupView&, const OperandView&, std::int64_t i, std::int64_t k,
                         const std::byte* old, std::byte* to);

const OperandView& part(const GroupView& group, Side side) { return side == Side::rows ? group.rows : group.columns; }

void copy_scale(const OperandView& of, std::byte* to, const std::byte* from) {
  std::memcpy(to, from, element_bytes(of.scale.type));
}

ProductChange of_sides(bool rows, bool columns, Rescale value) {
  return [=](ChangedProduct& product) {
    for (const Side side : {Side::rows, Side::columns}) {
      if (side == Side::rows ? !rows : !columns) continue;
      product.rescale(side, [&](const GroupView& group, std::int64_t i, std::int64_t k, const std::byte* old, std::byte* to) {
        value(product, side, group, part(group, side), i, k, old, to);
      });
    }
  };
}

bool is_f32(const OperandView& of) { return of.scale.type == Format::f32; }

// Scales of the first group, as far as it has as many.
void of_first_group(ChangedProduct& product, Side side, const GroupView&, const OperandView& of, std::int64_t i, std::int64_t k,
                    const std::byte* old, std::byte* to) {
  const OperandView& first = part(product.view.groups.front(), side);
  copy_scale(of, to, i < first.extent && k < first.depth ? product.scale(first, i, k) : old);
}

void of_first_k_block(ChangedProduct& product, Side, const GroupView&, const OperandView& of, std::int64_t i, std::int64_t,
                      const std::byte*, std::byte* to) {
  copy_scale(of, to, product.scale(of, i, 0));
}

// Scales of the neighbouring tile of 128 rows or columns of D.
void of_neighbouring_tile(ChangedProduct& product, Side, const GroupView&, const OperandView& of, std::int64_t i, std::int64_t k,
                          const std::byte* old, std::byte* to) {
  const std::int64_t other = i ^ 128;
  copy_scale(of, to, other < of.extent ? product.scale(of, other, k) : old);
}

void of_first_row_of_block(ChangedProduct& product, Side, const GroupView&, const OperandView& of, std::int64_t i, std::int64_t k,
                           const std::byte*, std::byte* to) {
  copy_scale(of, to, product.scale(of, i / 128 * 128, k));
}

void squared(ChangedProduct&, Side, const GroupView&, const OperandView& of, std::int64_t, std::int64_t, const std::byte* old,
             std::byte* to) {
  if (is_f32(of)) put(to, 0, at<float>(old, 0) * at<float>(old, 0));
}

// A power of two, as E8M0 holds it.
void cut_to_power(ChangedProduct&, Side, const GroupView&, const OperandView& of, std::int64_t, std::int64_t,
                  const std::byte* old, std::byte* to) {
  if (is_f32(of)) put(to, 0, at<std::uint32_t>(old, 0) & 0xff800000u);
}

// Byte k / 128 % 4 of the f32 scale, taken for an E8M0 code.
void as_packed_e8m0(ChangedProduct& product, Side, const GroupView&, const OperandView& of, std::int64_t i, std::int64_t k,
                    const std::byte*, std::byte* to) {
  if (!is_f32(of)) return;
  const std::uint32_t code = at<std::uint8_t>(product.scale(of, i, 0), k / 128 % 4);
  put(to, 0, std::ldexp(1.0f, static_cast<int>(code) - 127));
}

// The byte as a number: the power of two at or below it.
void byte_as_value(ChangedProduct&, Side, const GroupView&, const OperandView& of, std::int64_t, std::int64_t,
                   const std::byte* old, std::byte* to) {
  if (of.scale.type != Format::e8m0) return;
  const std::uint8_t code = at<std::uint8_t>(old, 0);
  put(to, 0, static_cast<std::uint8_t>(code == 0 ? 0 : 127 + std::bit_width(static_cast<unsigned>(code)) - 1));
}

// The scale matrix of the group, walked in the order of the other operand: i and k exchanged.
void in_other_order(ChangedProduct& product, Side, const GroupView&, const OperandView& of, std::int64_t i, std::int64_t k,
                    const std::byte*, std::byte* to) {
  const std::int64_t k_block = std::max<std::int64_t>(of.scale.k_block, 1), blocks = (of.depth + k_block - 1) / k_block;
  const std::int64_t at = i * blocks + k / k_block;  // of the matrix, row by row
  copy_scale(of, to, product.scale(of, at % of.extent, at / of.extent % blocks * k_block));
}

// The compact order where the product reads the swizzled one: byte number i * blocks + k of the group.
void in_compact_order(ChangedProduct&, Side, const GroupView&, const OperandView& of, std::int64_t i, std::int64_t k,
                      const std::byte*, std::byte* to) {
  if (!of.scale.swizzled) return;
  const std::int64_t at = i * of.scale.tiles * 4 + k / of.scale.k_block;
  copy_scale(of, to, static_cast<const std::byte*>(of.scale.data) + at);
}

// Offsets of a group's scales without the padding of the groups before.
void change_unpadded(ChangedProduct& product) {
  for (const Side side : {Side::rows, Side::columns}) {
    if (product.operand(side).scale_inv == nullptr) continue;
    const auto* base = static_cast<const std::byte*>(product.operand(side).scale_inv);
    product.rescale(side,
                    [&, side, base](const GroupView& group, std::int64_t i, std::int64_t k, const std::byte* old, std::byte* to) {
                      std::int64_t padding = 0;  // bytes of it in front of the group
                      for (const GroupView& each : product.view.groups) {
                        if (&each == &group) break;
                        const OperandView& of = part(each, side);
                        if (of.scale.k_stride > of.extent && of.scale.i_stride == 1)
                          padding += (of.scale.k_stride - of.extent) * ((of.depth + of.scale.k_block - 1) / of.scale.k_block) * 4;
                      }
                      static_cast<void>(i), static_cast<void>(k);
                      copy_scale(part(group, side), to, old - base >= padding ? old - padding : old);
                    });
  }
}

bool is_wide(const Place& place) { return place.tile >= 132; }

void add_scales_of_others(std::vector<CallFault>& to) {
  add_product_fault(
      to, "scales_of_first_group", "the product of every group reads the scales of the first group",
      [](const Request&) { return true; }, of_sides(true, true, of_first_group));
  add_product_fault(
      to, "weight_scale_of_first_group", "every group has the weight scales of the first group",
      [](const Request& request) { return layout_of(request) != "NT"; }, of_sides(false, true, of_first_group));
  add_product_fault(
      to, "scales_of_first_k_block", "the scale pointer stands still: every block of K has the scales of the first",
      [](const Request&) { return true; }, of_sides(true, true, of_first_k_block));
  add_product_fault(
      to, "scales_of_neighbouring_tile", "each tile of D has the scales of its neighbour, as in a swizzled order of tiles",
      [](const Request&) { return true; }, of_sides(true, true, of_neighbouring_tile));
  add_product_fault(to, "weight_scales_1x128_as_128x128", "weight scales of 1x128 are read as if 128 rows shared one",
                    is_op_of("grouped_gemm", "weight_block", "1x128"), of_sides(false, true, of_first_row_of_block));
  add_product_fault(to, "scale_offsets_unpadded", "the scales of a group are looked for where they would be without padding",
                    product_of_kind("block"), change_unpadded);
  add_product_fault(to, "scales_in_other_order", "the scales of the second operand are laid out by the order of the first",
                    either(product_of_kind("mxfp8"), product_of_kind("nvfp4")), of_sides(false, true, in_other_order));
  add_product_fault(to, "scales_not_swizzled", "the product reads compact scales as if they were swizzled",
                    either(product_of_kind("mxfp8"), product_of_kind("nvfp4")), of_sides(true, true, in_compact_order));
}

void add_other_scales(std::vector<CallFault>& to) {
  add_product_fault(to, "scale_twice_from_second_wave",
                    "the scale of the first operand is applied twice from the second wave of tiles on", product_of_kind("block"),
                    of_sides(true, false, squared), is_wide);
  add_product_fault(to, "block_scales_as_mx", "FP8 block scaling is imitated by MXFP8: scales lose their mantissa",
                    product_of_kind("block"), of_sides(true, true, cut_to_power));
  add_product_fault(to, "f32_scales_as_packed_e8m0", "the bytes of f32 scales are read as packed E8M0 codes",
                    product_of_kind("block"), of_sides(true, false, as_packed_e8m0));
  add_product_fault(to, "e8m0_byte_as_value", "the byte of an E8M0 scale is taken for its value", product_of_kind("mxfp8"),
                    of_sides(true, true, byte_as_value));
}

}  // namespace

void add_scale_faults(std::vector<CallFault>& to) {
  add_scales_of_others(to);
  add_other_scales(to);
  add_product_fault(to, "amax_of_first_group", "every group has the amax of the first group", product_of_kind("nvfp4"),
                    [](ChangedProduct& product) {
                      for (const Side side : {Side::rows, Side::columns}) {
                        GemmOperand& of = product.operand(side);
                        std::vector<std::byte>& all =
                            product.own(std::vector<std::byte>(product.problem.splits.size() * sizeof(float)));
                        for (std::size_t g = 0; g < product.problem.splits.size(); ++g)
                          put(all.data(), static_cast<std::int64_t>(g), of.amax[0]);
                        of.amax = reinterpret_cast<const float*>(all.data());
                      }
                    });
  add_product_fault(to, "factor_of_first_group", "every group has the alpha and the beta of the first group",
                    is_op("grouped_gemm"), [](ChangedProduct& product) {
                      if (!product.problem.alpha.empty()) product.problem.alpha = product.problem.alpha.first(1);
                      if (!product.problem.beta.empty()) product.problem.beta = product.problem.beta.first(1);
                    });
}

}  // namespace assay::conformance
