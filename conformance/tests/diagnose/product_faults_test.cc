// The hint names how a wrong product was computed. Each fault is planted by loops over the operands' codes, with a second
// implementation of a matrix instruction's step.

#include <algorithm>
#include <bit>
#include <cmath>

#include "conformance/ops/grouped_gemm.h"
#include "conformance/tests/diagnose/planted.h"
#include "conformance/tests/diagnose/unit_chain.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/gemm/problem.h"
#include "reference/tests/arithmetic/second_route.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

using planted::hints_of;

// How a product is computed; a fault changes one of these.
struct Making {
  TensorCoreUnit unit;
  std::int64_t interval = 0;
  Promotion promotion = Promotion::none;
  std::function<std::int64_t(std::int64_t depth)> begin = [](std::int64_t) { return 0; };
  std::function<std::int64_t(std::int64_t depth)> end = [](std::int64_t depth) { return depth; };
  std::function<float(const Making&, const GroupView&, std::int64_t i, std::int64_t j)> sum;  // empty: chains of the unit
  bool fma = true, adds_c = true, adds_bias = true, early_bias = false, late_c = false, scales_apart = false;
  float c_times = 1;
  std::function<std::uint32_t(Format, float)> code;  // empty: to nearest even
  bool through_f16 = false;
};

std::uint32_t nearest(Format type, float value) {
  if (type == Format::f32) return std::bit_cast<std::uint32_t>(value);
  return type == Format::bf16 ? scalar::encode_bf16(value) : scalar::encode_f16(value);
}
float held(Format type, std::uint32_t code) { return static_cast<float>(second_route::value_of(type, code)); }
std::uint32_t read(Format type, const void* base, std::int64_t at) {
  if (type == Format::f32) return static_cast<const std::uint32_t*>(base)[at];
  return static_cast<const std::uint16_t*>(base)[at];
}

float sum_of(const Making& making, const GroupView& group, std::int64_t i, std::int64_t j) {
  if (making.sum) return making.sum(making, group, i, j);
  const std::int64_t first = making.begin(group.depth), last = making.end(group.depth);
  if (making.promotion == Promotion::none) return chain(making.unit, group, i, j, first, last);
  float acc = 0;
  for (std::int64_t k = first; k < last; k += making.interval) {
    const float t = chain(making.unit, group, i, j, k, std::min(k + making.interval, last));
    if (making.promotion == Promotion::add) {
      acc += t;
      continue;
    }
    const float rows = group.rows.scale.value(i, k), columns = group.columns.scale.value(j, k);
    if (making.promotion == Promotion::fma_scales_first) acc = std::fma(rows * columns, t, acc);
    if (making.promotion == Promotion::fma_rows_first) acc = std::fma(t * rows, columns, acc);
    if (making.promotion == Promotion::fma_cols_first) acc = std::fma(t * columns, rows, acc);
  }
  return acc;
}

std::uint32_t element(const Making& making, const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j) {
  float acc = sum_of(making, group, i, j), factor = group.alpha;
  if (view.kind == GemmKind::fp8_per_tensor) {
    const float rows = group.rows.scale.value(0, 0), columns = group.columns.scale.value(0, 0);
    if (making.scales_apart) {
      const float once = acc * columns;
      acc = once * rows;
    } else {
      const float with_columns = factor * columns;
      factor = with_columns * rows;
    }
  }
  if (making.through_f16) acc = held(Format::f16, scalar::encode_f16(acc));
  float value = acc * factor;
  const bool has_c = group.beta != 0 && making.adds_c;
  if (has_c) {
    const float c = making.c_times * (group.beta * held(view.d_type, read(view.d_type, view.c, group.d_offset + i * group.n + j)));
    const float product = making.late_c ? held(view.d_type, nearest(view.d_type, value)) : value;
    value = making.fma && !making.late_c ? std::fma(acc, factor, c) : product + c;
  }
  const auto round = [&](float x) { return making.code ? making.code(view.d_type, x) : nearest(view.d_type, x); };
  if (group.bias == nullptr || !making.adds_bias) return round(value);
  const float bias = held(view.d_type, read(view.d_type, group.bias, j));
  if (making.early_bias) return round(value + bias);
  return nearest(view.d_type, held(view.d_type, round(value)) + bias);
}

struct ProductFault {
  const char* name;
  const char* line;
  std::function<void(Making&)> plant;
  const char* hint;
};
void PrintTo(const ProductFault& fault, std::ostream* out) { *out << fault.name; }

// Which elements have the fault.
using Where = bool (*)(std::size_t group, std::int64_t i, std::int64_t j);
bool everywhere(std::size_t, std::int64_t, std::int64_t) { return true; }

std::string failure_of(const char* line, const std::function<void(Making&)>& plant, Where where = everywhere) {
  return planted::failure(line, [&](const assay_call& call) {
    const Request request = Request::of(call);
    ParsedGroupedGemm parsed;
    parse_grouped_gemm(request, parsed);
    const assay_tensor& d = tensor(call, "d");
    const GroupedGemmView view = view_of(parsed.problem, d.data);
    Making making;
    making.unit = *view.unit;
    making.interval = view.plan->promotion_interval;
    making.promotion = view.plan->promotion;
    plant(making);
    for (std::size_t g = 0; g < view.groups.size(); ++g) {
      const GroupView& group = view.groups[g];
      for (std::int64_t at = 0; at < group.m * group.n; ++at) {
        if (!where(g, at / group.n, at % group.n)) continue;
        const std::uint32_t code = element(making, view, group, at / group.n, at % group.n);
        if (view.d_type == Format::f32) {
          static_cast<std::uint32_t*>(d.data)[group.d_offset + at] = code;
        } else {
          static_cast<std::uint16_t*>(d.data)[group.d_offset + at] = static_cast<std::uint16_t>(code);
        }
      }
    }
  });
}

class ProductsMadeWrongly : public testing::TestWithParam<ProductFault> {};

TEST_P(ProductsMadeWrongly, AreNamed) {
  const std::string text = failure_of(GetParam().line, GetParam().plant);
  EXPECT_TRUE(contains(hints_of(text), GetParam().hint)) << text;
}

// Without a fault the loops above give the right product in every case, so that each difference comes from the fault.
TEST(ProductsMadeRightly, Pass) {
  for (const char* line : {"grouped_gemm kind=bf16 alpha=0.3 beta=0.5 bias=1 splits=9,0,12 N=16 K=72 seed=1", "grouped_gemm kind=fp8_per_tensor split_accumulator=1 d_type=f32 splits=9,12 N=16 K=300 seed=2",
                           "grouped_gemm kind=fp8_block splits=9,12 N=16 K=300 seed=3", "grouped_gemm kind=mxfp8 d_type=f32 splits=32,64 N=16 K=96 seed=4"}) {
    EXPECT_EQ(failure_of(line, [](Making&) {}), "");
  }
}

template <std::int64_t multiple>
void tail_left_out(Making& making) {
  making.end = [](std::int64_t depth) { return depth / multiple * multiple; };
}
template <std::int64_t count>
void first_left_out(Making& making) {
  making.begin = [](std::int64_t) { return count; };
}
template <std::int64_t count>
void last_left_out(Making& making) {
  making.end = [](std::int64_t depth) { return depth - count; };
}
template <int bits>
void fraction_bits(Making& making) {
  making.unit.fraction_bits += bits;
}
template <int products>
void products_per_step(Making& making) {
  making.unit.products_per_step = products;
}
template <std::int64_t interval>
void promoted_every(Making& making) {
  making.interval = interval;
  if (making.promotion == Promotion::none) making.promotion = Promotion::add;
}
void one_chain(Making& making) { making.promotion = Promotion::none; }
void wider_sums(Making& making) { making.unit.accumulator = Accumulator::f32_truncated; }
void narrower_sums(Making& making) { making.unit.accumulator = Accumulator::e8m13_truncated; }
void f16_sums(Making& making) { making.unit.accumulator = Accumulator::f16_nearest; }
template <Promotion order>
void scale_order(Making& making) {
  making.promotion = order;
}
double value(const OperandView& operand, std::int64_t i, std::int64_t k) { return second_route::value_of(operand.type, operand.element(i, k)); }
void f32_sums(Making& making) {
  making.sum = [](const Making&, const GroupView& group, std::int64_t i, std::int64_t j) {
    float sum = 0;
    for (std::int64_t k = 0; k < group.depth; ++k) sum = static_cast<float>(sum + value(group.rows, i, k) * value(group.columns, j, k));
    return sum;
  };
}
void exact_sums(Making& making) {
  making.sum = [](const Making&, const GroupView& group, std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t k = 0; k < group.depth; ++k) sum += value(group.rows, i, k) * value(group.columns, j, k);
    return static_cast<float>(sum);
  };
}
template <std::int64_t every>
void bf16_sums(Making& making) {
  making.sum = [](const Making&, const GroupView& group, std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t k = 0; k < group.depth; ++k) {
      sum += value(group.rows, i, k) * value(group.columns, j, k);
      if ((k + 1) % every == 0 || k + 1 == group.depth) sum = held(Format::bf16, scalar::encode_bf16(static_cast<float>(sum)));
    }
    return static_cast<float>(sum);
  };
}
void two_slices(Making& making) {
  making.sum = [](const Making& made, const GroupView& group, std::int64_t i, std::int64_t j) {
    const std::int64_t step = made.unit.products_per_step, half = (group.depth + 2 * step - 1) / (2 * step) * step;
    return chain(made.unit, group, i, j, 0, half) + chain(made.unit, group, i, j, half, group.depth);
  };
}
void unit_of_hopper_mma(Making& making) { making.unit = *find_tensor_core_unit("sm90.mma.fp8"); }
void unit_of_ampere(Making& making) { making.unit = *find_tensor_core_unit("sm80.mma.f16"); }
void scales_of_the_first_block(Making& making) {
  making.sum = [](const Making& made, const GroupView& group, std::int64_t i, std::int64_t j) {
    float acc = 0;
    for (std::int64_t k = 0; k < group.depth; k += 128) {
      const float t = chain(made.unit, group, i, j, k, std::min<std::int64_t>(k + 128, group.depth));
      const float scale = group.rows.scale.value(i, k) * group.columns.scale.value(j, 0);
      acc = std::fma(scale, t, acc);
    }
    return acc;
  };
}
std::uint32_t cut(Format type, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return type == Format::bf16 ? bits >> 16 : nearest(type, x);
}

const ProductFault kFaults[] = {
    {"k_tail_of_8", "grouped_gemm kind=bf16 splits=20,0,30 N=24 K=77 seed=1", tail_left_out<8>, "without the last 5 of 77 along K"},
    {"k_tail_of_16", "grouped_gemm kind=bf16 layout=NN splits=20,0,30 N=88 K=24 seed=2", tail_left_out<16>, "without the last 8 of 88 along K"},
    {"k_tail_of_32", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=20,0,30 N=24 K=112 seed=3", tail_left_out<32>, "without the last 16 of 112 along K"},
    {"k_tail_of_64", "grouped_gemm kind=mxfp8 splits=32,0,64 N=24 K=160 seed=4", tail_left_out<64>, "without the last 32 of 160 along K"},
    {"k_tail_of_128", "grouped_gemm kind=fp8_block splits=20,0,30 N=24 K=196 seed=5", tail_left_out<128>, "without the last 68 of 196 along K"},
    {"rows_tail_of_8", "grouped_gemm kind=bf16 layout=NT splits=21,0,30,17 N=24 K=32 seed=6", tail_left_out<8>, "with the rows of each group, summed over, rounded down to a multiple of 8"},
    {"rows_tail_of_16", "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=40,0,72,17 N=24 K=32 seed=7", tail_left_out<16>, "with the rows of each group, summed over, rounded down to a multiple of 16"},
    {"first_16_left_out", "grouped_gemm kind=bf16 splits=20,0,30 N=24 K=96 seed=8", first_left_out<16>, "without the first 16 along K"},
    {"last_one_left_out", "grouped_gemm kind=f16 splits=20,0,30 N=24 K=96 seed=9", last_left_out<1>, "without the last 1"},
    {"last_16_left_out", "grouped_gemm kind=f16 splits=20,0,30 N=24 K=96 seed=10", last_left_out<16>, "without the last 16 along K"},
    {"one_bit_less", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=20,0,30 N=24 K=160 seed=11", fraction_bits<-1>, "(F = 12)"},
    {"one_bit_more", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=20,0,30 N=24 K=160 seed=12", fraction_bits<1>, "(F = 14)"},
    {"one_bit_less_bf16", "grouped_gemm kind=bf16 d_type=f32 splits=20,0,30 N=24 K=160 seed=13", fraction_bits<-1>, "(F = 24)"},
    {"ten_bits", "grouped_gemm kind=fp8_block d_type=f32 splits=20,0,30 N=24 K=160 seed=14", fraction_bits<-3>, "(F = 10)"},
    {"steps_of_8", "grouped_gemm kind=bf16 d_type=f32 splits=20,0,30 N=24 K=160 seed=15", products_per_step<8>, "with"},
    {"steps_of_16", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=20,0,30 N=24 K=160 seed=16", products_per_step<16>, "with 16 products a step"},
    {"steps_of_16_split", "grouped_gemm kind=fp8_per_tensor split_accumulator=1 splits=20,0,30 N=24 K=160 seed=17", products_per_step<16>, "with 16 products a step"},
    {"steps_of_64", "grouped_gemm kind=fp8_block d_type=f32 splits=20,0,30 N=24 K=160 seed=18", products_per_step<64>, "with 64 products a step"},
    {"wider_sums", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=20,0,30 N=24 K=160 seed=19", wider_sums, "with an f32 sum, cut to 23 fraction bits"},
    {"narrower_sums", "grouped_gemm kind=mxfp8 d_type=f32 splits=32,0,64 N=24 K=160 seed=20", narrower_sums, "with sums kept to 13 fraction bits"},
    {"f16_sums", "grouped_gemm kind=f16 d_type=f32 splits=20,0,30 N=24 K=160 seed=21", f16_sums, "f16"},
    {"no_promotion", "grouped_gemm kind=fp8_per_tensor split_accumulator=1 d_type=f32 splits=20,0,30 N=24 K=400 seed=22", one_chain, "split_accumulator=0"},
    {"promotion_too_often", "grouped_gemm kind=fp8_per_tensor split_accumulator=1 d_type=f32 splits=20,0,30 N=24 K=400 seed=23", promoted_every<64>, "with sums promoted to f32 every 64 of K"},
    {"promotion_too_rarely", "grouped_gemm kind=fp8_per_tensor split_accumulator=1 d_type=f32 splits=20,0,30 N=24 K=600 seed=24", promoted_every<256>, "with sums promoted to f32 every 256 of K"},
    {"promotion_of_block_scales", "grouped_gemm kind=fp8_block d_type=f32 splits=20,0,30 N=24 K=300 seed=25", promoted_every<32>, "with sums promoted to f32 every 32 of K"},
    {"rows_first", "grouped_gemm kind=fp8_block d_type=f32 splits=20,0,30 N=24 K=300 seed=26", scale_order<Promotion::fma_rows_first>, "under the plan cublaslt.sm90.fp8_block.rows_first"},
    {"columns_first", "grouped_gemm kind=fp8_block d_type=f32 splits=20,0,30 N=24 K=300 seed=27", scale_order<Promotion::fma_cols_first>, "with the sum multiplied by the scale of the columns first"},
    {"f32_sums", "grouped_gemm kind=bf16 d_type=f32 splits=20,0,30 N=24 K=96 seed=28", f32_sums, "with f32 sums by FMA, a product at a time"},
    {"f32_sums_of_codes", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=20,0,30 N=24 K=96 data=full_exponent seed=29", f32_sums, "with f32 sums"},
    {"exact_sums", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=20,0,30 N=24 K=96 seed=30", exact_sums, "with an exact sum, rounded once"},
    {"exact_sums_bf16", "grouped_gemm kind=bf16 d_type=f32 splits=20,0,30 N=24 K=400 seed=31", exact_sums, "with an exact sum, rounded once"},
    {"bf16_sums", "grouped_gemm kind=bf16 splits=20,0,30 N=24 K=96 seed=32", bf16_sums<16>, "with sums rounded to bf16 after every 16 of K"},
    {"bf16_sums_of_64", "grouped_gemm kind=f16 d_type=f32 splits=20,0,30 N=24 K=160 seed=33", bf16_sums<64>, "with sums rounded to bf16 after every 64 of K"},
    {"two_slices", "grouped_gemm kind=bf16 d_type=f32 splits=20,0,30 N=24 K=160 seed=34", two_slices, "with K in 2 slices, added in f32"},
    {"emulated_unit", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=20,0,30 N=24 K=160 data=full_exponent seed=35", unit_of_hopper_mma, "with the arithmetic of the unit sm90.mma.fp8"},
    {"ampere_unit", "grouped_gemm kind=bf16 d_type=f32 splits=20,0,30 N=24 K=160 seed=36", unit_of_ampere, "sm80"},
    {"first_block_scale", "grouped_gemm kind=fp8_block d_type=f32 splits=20,0,30 N=24 K=300 seed=37", scales_of_the_first_block, "scale"},
    {"c_left_out", "grouped_gemm kind=bf16 beta=-0.7 splits=20,0,30 N=24 K=96 seed=38", [](Making& m) { m.adds_c = false; }, "with beta=0 in place of -0.7"},
    {"c_twice", "grouped_gemm kind=bf16 beta=-0.7 splits=20,0,30 N=24 K=96 seed=39", [](Making& m) { m.c_times = 2; }, "with beta=-1.4 in place of -0.7"},
    {"no_fma", "grouped_gemm kind=bf16 d_type=f32 alpha=0.3 beta=-0.7 splits=20,0,30 N=24 K=96 seed=40", [](Making& m) { m.fma = false; }, "no FMA"},
    {"c_after_rounding", "grouped_gemm kind=bf16 alpha=0.3 beta=-0.7 splits=20,0,30 N=24 K=96 seed=41", [](Making& m) { m.late_c = true; }, "with beta * C added to the rounded product"},
    {"bias_left_out", "grouped_gemm kind=bf16 bias=1 splits=20,0,30 N=24 K=96 seed=42", [](Making& m) { m.adds_bias = false; }, "bias"},
    {"bias_before_rounding", "grouped_gemm kind=bf16 bias=1 splits=20,0,30 N=24 K=96 seed=43", [](Making& m) { m.early_bias = true; }, "with the bias added before the rounding to the type of D"},
    {"scales_apart", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=20,0,30 N=24 K=96 seed=44", [](Making& m) { m.scales_apart = true; }, "with the sum multiplied by one scale after the other"},
    {"cut_results", "grouped_gemm kind=bf16 splits=20,0,30 N=24 K=96 seed=45", [](Making& m) { m.code = cut; }, "with D rounded toward zero"},
    {"rounded_twice", "grouped_gemm kind=bf16 splits=20,0,30 N=24 K=96 seed=46", [](Making& m) { m.through_f16 = true; }, "rounded to f16"},
};
INSTANTIATE_TEST_SUITE_P(Diagnosis, ProductsMadeWrongly, testing::ValuesIn(kFaults), [](const auto& info) { return std::string(info.param.name); });

// The same faults in some elements only: one group, or every fourth column. Where only a few elements differ, by one unit in the
// last place, chance cannot be excluded.
TEST(ProductsMadeWronglyInPart, AreNamedToo) {
  constexpr Where kParts[] = {[](std::size_t group, std::int64_t, std::int64_t) { return group == 1; },
                              [](std::size_t, std::int64_t, std::int64_t j) { return j % 4 == 3; }};
  int faults = 0, named = 0;
  std::string unnamed;
  for (const ProductFault& fault : kFaults) {
    for (const Where where : kParts) {
      const std::string text = failure_of(fault.line, fault.plant, where);
      if (text.empty()) continue;  // it has no effect there
      ++faults;
      if (contains(hints_of(text), fault.hint)) {
        ++named;
      } else {
        unnamed += text + "\n";
      }
    }
  }
  EXPECT_GE(faults, 85);
  EXPECT_GE(named * 100, faults * 95) << named << " of " << faults << " named; not:\n" << unnamed;
}

}  // namespace
}  // namespace assay::conformance
