#include "device/tests/mutants/rooms/product_faults.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/tests/emulated_gemm/give_betas.h"
#include "reference/gemm/plan.h"

namespace assay::mutants {
namespace {

using conformance::ContentFault;

// Each group in turn has another beta than the one that D takes, and a call of all the right ones.
void add_betas(const Case& right, std::size_t groups, float taken, std::vector<ContentFault>& made) {
  for (std::size_t t = 0; t <= groups; ++t) {
    std::vector<float> betas(groups, taken);
    if (t < groups) betas[t] = t % 2 == 0 ? 0.5f : -taken - 1.0f;
    ContentFault& each = made.emplace_back();
    each.what = t < groups ? "beta[" + std::to_string(t) + "] = " + std::to_string(betas[t]) : "a beta of each group";
    each.problem = right;
    conformance::give_betas(each.problem, betas);
  }
}

// One group has `rows` rows, and the others none.
void add_depth(const Case& right, std::int64_t rows, std::vector<ContentFault>& made) {
  const Tensor& splits = right.in.at("splits");
  for (std::int64_t t = 0; t < splits.elements(); ++t) {
    ContentFault& each = made.emplace_back();
    each.what = "splits[" + std::to_string(t) + "] = " + std::to_string(rows) + ", the others 0";
    each.problem = right;
    auto* const values = each.problem.in.at("splits").as<std::int64_t>();
    std::fill_n(values, splits.elements(), 0);
    values[t] = rows;
  }
}

// Each group has two rows fewer: packed codes whose last 16 are not full, and whose lines begin at any byte.
void add_even_depth(const Case& right, std::vector<ContentFault>& made) {
  ContentFault& each = made.emplace_back();
  each.what = "two rows fewer in each group";
  each.problem = right;
  Tensor& splits = each.problem.in.at("splits");
  for (std::int64_t t = 0; t < splits.elements(); ++t) {
    std::int64_t& rows = splits.as<std::int64_t>()[t];
    rows = std::max<std::int64_t>(rows - 2, 0);
  }
}

// Of a byte or word at a place in a tensor, the same in every program.
std::uint32_t number_at(std::size_t place) {
  const std::uint64_t mixed = (place + 1) * 0x9E37'79B9'7F4A'7C15u;
  return static_cast<std::uint32_t>((mixed ^ mixed >> 29) * 0xBF58'476D'1CE4'E5B9u >> 40);
}

// Elements of bf16 with exponents from `least` on, `count` of them; `far`: one in a few hundred has -30.
void add_exponents(const Case& right, int least, std::uint32_t count, bool far, std::vector<ContentFault>& made) {
  ContentFault& each = made.emplace_back();
  each.what = "exponents from " + std::to_string(least) + (far ? ", and a few of -30" : "");
  each.problem = right;
  for (auto& [name, tensor] : each.problem.in) {
    if (tensor.type != Format::bf16) continue;
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      std::uint16_t& code = tensor.as<std::uint16_t>()[i];
      const std::uint32_t number = number_at(static_cast<std::size_t>(i));
      const std::uint32_t field =
          far && number / count % 509 == 0 ? 127 - 30 : static_cast<std::uint32_t>(least + 127) + number % count;
      code = static_cast<std::uint16_t>((code & 0x807F) | field << 7);
    }
  }
}

// Elements of bf16 that are no zeros, with exponents from -4 on; but a row of x has the least subnormals alone.
void add_least_subnormals(const Case& right, std::vector<ContentFault>& made) {
  constexpr std::int64_t kRow = 3;
  add_exponents(right, -4, 9, false, made);
  ContentFault& each = made.back();
  each.what += ", and a row of the least subnormals";
  Tensor& x = each.problem.in.at("x");
  const std::int64_t columns = x.shape.back();
  for (std::int64_t i = kRow * columns; i < std::min((kRow + 1) * columns, x.elements()); ++i) {
    std::uint16_t& code = x.as<std::uint16_t>()[i];
    code = static_cast<std::uint16_t>((code & 0x8000) | 1);
  }
}

// MXFP8: scales that differ by much more than those of a line, whose products f32 holds; and elements of one exponent besides.
void add_wide_scales(const Case& right, bool one_exponent, std::vector<ContentFault>& made) {
  ContentFault& each = made.emplace_back();
  each.what = one_exponent ? "scales from 2^-30 to 2^8, elements of one exponent" : "scales from 2^-30 to 2^8";
  each.problem = right;
  for (auto& [name, tensor] : each.problem.in) {
    const bool elements = tensor.type == Format::e4m3 || tensor.type == Format::e5m2;
    const std::uint8_t fraction = tensor.type == Format::e5m2 ? 0x83 : 0x87;
    for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
      if (tensor.type == Format::e8m0) tensor.bytes[i] = static_cast<std::byte>(97 + number_at(i) % 39);
      if (elements && one_exponent) tensor.bytes[i] = (tensor.bytes[i] & std::byte{fraction}) | std::byte{0x70};
    }
  }
}

}  // namespace

std::vector<ContentFault> product_faults(const conformance::CaseLine& line, const Case& right) {
  std::vector<ContentFault> made;
  if (line.op != "grouped_gemm" || conformance::fault_word(line).empty()) return made;
  const AccumulationPlan* const plan = line.has("plan") ? find_accumulation_plan(line.text("plan")) : nullptr;
  const bool adds = plan != nullptr && plan->epilogue != GemmEpilogue::scaled_alpha_beta;
  const std::string d_type = line.text("d_type");
  if (adds || d_type == "e4m3" || d_type == "e5m2") add_betas(right, line.splits().size(), adds ? 1 : 0, made);
  const bool sliced = plan != nullptr && plan->slices > 1, paired = line.text("kind") == "nvfp4";
  const auto splits = right.in.find("splits");
  if (line.text("layout") == "NT" && (sliced || paired) && splits != right.in.end() && splits->second.type == Format::i64) {
    std::int64_t rows = 0;
    for (const std::int64_t each : line.splits()) rows += each;
    // Scales by blocks of rows would be as many as the splits of the line say, which a device does not see.
    const std::string kind = line.text("kind");
    if (!paired && kind != "mxfp8" && kind != "fp8_block") add_depth(right, rows, made);
    add_depth(right, 1, made);
    if (paired) add_even_depth(right, made);
  }
  if (line.text("kind") == "bf16") {  // what f32 steps of the fast kernels take, and what they do not
    add_exponents(right, -30, 51, false, made);
    add_exponents(right, -4, 9, true, made);
    add_exponents(right, -78, 25, false, made);
    if (right.in.contains("x") && line.text("layout") != "NT") add_least_subnormals(right, made);
  }
  if (line.text("kind") == "mxfp8") {
    add_wide_scales(right, false, made);
    add_wide_scales(right, true, made);
  }
  return made;
}

}  // namespace assay::mutants
