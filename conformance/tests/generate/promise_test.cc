// Generated cases have the properties that the name of their pattern states: every line of every profile is generated and
// checked.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/tests/generate/format_values.h"
#include "reference/support/parallel.h"
#include "reference/types/error.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {


// What a tensor holds, counted over its first `elements`.
struct Content {
  std::int64_t elements = 0, nan = 0, infinite = 0, plus_infinity = 0, minus_infinity = 0, negative_zero = 0, zero = 0, subnormal = 0, largest = 0;
  std::int64_t codes = 0, exponents = 0, highest_exponent = 0;  // different values; of f32 the upper halves of codes
  std::vector<double> values;
};

std::uint32_t code_at(const Tensor& tensor, std::int64_t i) {
  if (tensor.type == Format::e2m1) return tensor.as<std::uint8_t>()[i / 2] >> (i % 2 * 4) & 0xf;
  switch (bits_of(tensor.type)) {
    case 32: return tensor.as<std::uint32_t>()[i];
    case 16: return tensor.as<std::uint16_t>()[i];
    default: return tensor.as<std::uint8_t>()[i];
  }
}

Content content_of(const Tensor& tensor, std::int64_t elements) {
  Content content;
  content.elements = elements;
  const Layout layout = layout_of(tensor.type);
  std::vector<bool> met_code(1 << 16), met_exponent(1 << 8);
  content.values.reserve(static_cast<std::size_t>(elements));
  const std::uint32_t sign = 1u << (width(tensor.type) - 1);
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::uint32_t code = code_at(tensor, i), magnitude = code & (sign - 1);
    const double value = value_of(tensor.type, code);
    content.values.push_back(value);
    met_code[width(tensor.type) == 32 ? code >> 16 : code] = true;
    met_exponent[magnitude >> layout.mantissa] = true;
    content.highest_exponent = std::max<std::int64_t>(content.highest_exponent, magnitude >> layout.mantissa);
    content.nan += std::isnan(value);
    content.plus_infinity += std::isinf(value) && value > 0;
    content.minus_infinity += std::isinf(value) && value < 0;
    content.zero += code == 0;
    content.negative_zero += code == sign;
    content.subnormal += magnitude != 0 && magnitude >> layout.mantissa == 0;
    content.largest += std::isfinite(value) && !std::isfinite(value_of(tensor.type,
        magnitude + 1 < sign ? magnitude + 1 : magnitude)) ? 1 : magnitude == sign - 1 && std::isfinite(value);
  }
  content.codes = std::count(met_code.begin(), met_code.end(), true);
  content.exponents = std::count(met_exponent.begin(), met_exponent.end(), true);
  content.infinite = content.plus_infinity + content.minus_infinity;
  return content;
}

// Empty if the tensor has the property of its pattern.
std::string broken(std::string_view pattern, const Content& c, Format type, bool operand, std::int64_t lines) {
  const bool has_nan = type != Format::e2m1, has_infinity = layout_of(type).ieee;
  const auto power_of_two = [](double value) { int exponent; return value == 0 || std::fabs(std::frexp(value, &exponent)) == 0.5; };
  if (c.elements == 0) return "";
  if (pattern == "specials" || pattern == "every_special") {
    if (operand && lines < (pattern == "specials" ? 256 : 17)) return "";
    if (!operand && c.elements < (pattern == "specials" ? 64 : 256)) return "";
    return (has_nan && c.nan == 0) || (has_infinity && c.infinite == 0) || c.negative_zero == 0 || c.subnormal == 0 || c.largest == 0
               ? "NaN " + show(c.nan) + ", infinities " + show(c.infinite) + ", -0 " + show(c.negative_zero) + ", subnormals " + show(c.subnormal) + ", largest " + show(c.largest) : "";
  }
  if (pattern == "nans") return (c.nan == 0 && c.elements >= 64) || c.infinite != 0 ? "NaN " + show(c.nan) + ", infinities " + show(c.infinite) : "";
  if (pattern == "subnormals") return c.subnormal != c.elements ? show(c.subnormal) + " subnormals" : "";
  if (pattern == "near_underflow") return c.highest_exponent > (width(type) <= 8 ? 5 : layout_of(type).bias == 15 ? 9 : 22) ? "exponents to " + show(c.highest_exponent) : "";
  if (pattern == "zeros") return c.zero != c.elements ? "not zeros" : "";
  if (pattern == "sparse") return c.elements >= 256 && (c.zero < c.elements * 8 / 10 || c.zero == c.elements) ? show(c.zero) + " zeros" : "";
  if (pattern == "one_hot" && lines < 0) return std::all_of(c.values.begin(), c.values.end(), power_of_two) ? "" : "not powers of two";
  if (pattern == "integers") {
    return std::all_of(c.values.begin(), c.values.end(), [](double v) { return v != 0 && 2 * v == std::floor(2 * v) &&
        std::fabs(v) <= 30; }) ? "" : "not small integers times powers of two";
  }
  if (pattern == "every_code") {
    const auto finite = static_cast<std::int64_t>(std::int64_t{1} << std::min(width(type), 16));
    const std::int64_t codes = operand ? finite * 7 / 8 : finite;  // operands are finite
    return c.codes < std::min(codes, c.elements / 16) ? show(c.codes) + " codes" : "";
  }
  if (pattern == "full_exponent") {
    const std::int64_t all = std::int64_t{1} << (width(type) - 1 - layout_of(type).mantissa);
    return c.elements >= 16 * all && c.exponents < all * 3 / 4 ? show(c.exponents) + " exponents" : "";
  }
  return "";
}

// Patterns whose property is about scales, sums or orders: other tests check them (patterns_test.cc,
// adversarial_patterns_test.cc, and below).
const std::set<std::string_view> kElsewhere{"uniform", "normal", "clustered", "block_scales", "ties", "adversarial_midpoints", "adversarial_amax",
                                            "adversarial_eps",
                                            "adversarial_dbias", "adversarial_infinities", "adversarial_four_over_six", "adversarial_transform", "adversarial_gates", "wide_sums", "adversarial_output_ties",
                                            "adversarial_alignment", "adversarial_promotion", "adversarial_cancelling", "unit_probes", "step_edges", "fused_ties", "adversarial_thresholds"};
const std::set<std::string_view> kHere{"specials", "every_special", "nans", "subnormals", "near_underflow", "zeros", "sparse", "one_hot",
                                       "integers", "every_code", "full_exponent"};

std::int64_t active_rows(const CaseLine& line) {
  if (!line.has("splits")) return line.integer("R");
  const std::vector<std::int64_t> splits = line.splits();
  return std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
}

// Exact ties of the target's rounding in some block whose largest value is the target's largest times a power of two.
std::int64_t ties_in(const CaseLine& line, const Content& c, std::int64_t rows, std::int64_t columns) {
  const std::string recipe = line.text("recipe");
  const std::int64_t block = recipe == "mxfp8" ? 32 : recipe == "nvfp4" ? 16 : 128;
  const Format target = recipe == "nvfp4" ? Format::e2m1 : line.text("otype") == "e5m2" ? Format::e5m2 : Format::e4m3;
  const double most = target == Format::e2m1 ? 6 : target == Format::e5m2 ? 57344 : 448;
  std::vector<double> codes;
  for (std::uint32_t code = 0; code < (1u << (width(target) - 1)); ++code) {
    if (std::isfinite(value_of(target, code))) codes.push_back(value_of(target, code));
  }
  std::set<double> midpoints;
  for (std::size_t i = 0; i + 1 < codes.size(); ++i) midpoints.insert((codes[i] + codes[i + 1]) / 2);
  std::int64_t ties = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t first = 0; first < columns; first += block) {
      double peak = 0;
      for (std::int64_t k = first; k < std::min(first + block, columns); ++k) peak = std::max(peak,
          std::fabs(c.values[static_cast<std::size_t>(row * columns + k)]));
      int exponent;
      if (peak == 0 || std::frexp(peak / most, &exponent) != 0.5) continue;
      for (std::int64_t k = first; k < std::min(first + block,
                                                columns); ++k) ties += static_cast<std::int64_t>(midpoints.count(std::fabs(c.values[static_cast<std::size_t>(row * columns + k)]) * most / peak));
    }
  }
  return ties;
}

// The rows that a choice has; the others are NaN.
Tensor named_rows(const Case& made) {
  const Tensor &permuted = made.in.at("permuted"), &map = made.in.at("row_map");
  Tensor named{permuted.type, {0, permuted.shape[1]}, {}};
  const std::size_t bytes = permuted.shape[0] == 0 ? 0 : permuted.bytes.size() / static_cast<std::size_t>(permuted.shape[0]);
  for (std::int64_t i = 0; i < map.elements(); ++i) {
    const std::int32_t row = map.as<std::int32_t>()[i];
    if (row < 0) continue;
    const auto begin = permuted.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * bytes);
    named.bytes.insert(named.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
    ++named.shape[0];
  }
  return named;
}

std::string broken_value_case(const CaseLine& line, const Case& made) {
  const std::string data = line.text("data");
  const Tensor named = line.op == "unpermute" ? named_rows(made) : Tensor();
  const std::int64_t rows = line.op == "unpermute" ? named.shape[0] : active_rows(line), columns = line.integer("K");
  const Tensor& tensor = line.op == "unpermute" ? named : line.op == "dequantize" ? made.in.at(line.text("direction") + "_data") : made.in.at(line.op == "grouped_dbias" ? "dy" : "x");
  const Content c = content_of(tensor, rows * columns);
  // Specials lie here and there in regions of 64 columns: a small matrix of few columns may have none of a kind.
  if (data == "specials" && columns < 16 && rows * columns < 128) return "";
  std::string text = broken(data, c, tensor.type, false, -1);
  if ((data == "ties" || data == "adversarial_midpoints") && text.empty() && rows * columns >= 256 && line.op != "quantize_by_rule" && line.text("recipe") != "tensor_delayed") {
    if (ties_in(line, c, rows, columns) == 0) text = "no ties";
  }
  if (data == "adversarial_infinities" && rows >= 16 && columns >= 4 && text.empty()) {
    if (c.plus_infinity == 0 || c.minus_infinity == 0 || c.subnormal == 0 ||
        c.largest == 0) text = "no infinities of both signs, subnormals and largest values";
  }
  if (data == "adversarial_amax" && text.empty() && rows * columns >= 512) {
    const bool near = std::any_of(c.values.begin(), c.values.end(), [](double v) { int e; return v != 0 &&
        std::fabs(std::frexp(std::fabs(v), &e) - 0.875) < 0.02; });
    if (!near) text = "no block maximum near 1.75 * 2^e";
  }
  return text;
}

std::string broken_operands(const CaseLine& line, const Case& made) {
  const std::string data = line.text("data"), layout = line.op == "grouped_gemm" ? line.text("layout") : "";
  const std::int64_t rows = active_rows(line), N = line.integer("N"), K = line.integer("K");
  const auto groups = static_cast<std::int64_t>(line.splits().size());
  for (const auto& [name, tensor] : made.in) {
    if (kLayouts.count(tensor.type) == 0) continue;
    const std::string operand = name.substr(0, name.find('_'));
    const bool whole = name == operand, codes = name.ends_with("_data") && line.op == "grouped_gemm";
    if ((!whole && !codes) || (operand != "x" && operand != "w" && operand != "dy")) continue;
    const std::int64_t columns = operand == "dy" ? N : K, lines_of = operand == "w" ? groups * N : rows;
    const std::int64_t free = line.op == "grouped_gemm" ? (layout == "NT" || (layout == "NN" && operand == "w") ? columns : lines_of) : lines_of;
    const std::string text = broken(data, content_of(tensor, lines_of * columns), tensor.type, true, free);
    if (!text.empty()) return name + ": " + text;
  }
  return "";
}

TEST(Promise, OfEveryPatternIsKeptInEveryCase) {
  for (const OpSchema& op : case_schema()) {
    const KeySchema* data = find_key(op, "data");
    if (data == nullptr) continue;
    for (const std::string_view word : words_of(data->allowed)) EXPECT_TRUE(kHere.count(word) || kElsewhere.count(word)) << word;
  }
  std::vector<CaseLine> lines;
  std::int64_t larger = 0;
  for (const CaseLine& line : catalogue(Profile::full)) {
    if (line.op == "scenario" || find_key(*find_op(line.op), "data") == nullptr || line.op == "delayed_update") continue;
    // No property of a pattern needs more elements than this.
    cost_of(line).elements <= (std::int64_t{1} << 18) ? lines.push_back(line) : static_cast<void>(++larger);
  }
  EXPECT_LE(larger, 192);  // those at which faults of released versions show, faults that show seldom, or such of kernels with many tiles
  std::mutex mutex;
  std::vector<std::string> failures;
  parallel_for(static_cast<std::int64_t>(lines.size()), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const CaseLine& line = lines[static_cast<std::size_t>(i)];
      if (line.text("data") == "uniform" || line.text("data") == "normal") continue;
      const Case made = generate(line);
      const bool product = line.op == "grouped_gemm" || line.op.starts_with("linear_");
      const std::string text = product ? broken_operands(line, made) : broken_value_case(line, made);
      const std::lock_guard lock(mutex);
      if (!text.empty()) failures.push_back(to_text(line) + ": " + text);
    }
  });
  for (const std::string& each : failures) ADD_FAILURE() << each;
}

// NaN, infinity, -0, a subnormal and 0: newest, oldest, in the middle. Row 0 is the newest, row 1 the oldest.
TEST(Promise, OfAHistoryIsKeptAtEachPlace) {
  int lines = 0;
  for (const CaseLine& line : catalogue(Profile::full)) {
    if (line.op != "delayed_update" || line.text("data") != "every_special") continue;
    const std::int64_t tensors = line.integer("tensors"), length = line.integer("length");
    ASSERT_GE(tensors, 15) << to_text(line);
    const Case made = generate(line);
    std::set<std::pair<int, int>> met;  // kind, place
    for (std::int64_t t = 0; t < tensors; ++t) {
      for (std::int64_t row = 0; row < length; ++row) {
        const std::uint32_t bits = made.in.at("amax_history").as<std::uint32_t>()[row * tensors + t];
        const double value = value_of(Format::f32, bits);
        const int kind = std::isnan(value) ? 0 : std::isinf(value) ? 1 : bits == 0x8000'0000 ? 2 : bits == 0 ? 4 : bits < 0x0080'0000 ? 3 : 5;
        if (kind < 5) met.insert({kind, row == 0 ? 0 : row == 1 ? 1 : 2});
      }
    }
    EXPECT_EQ(met.size(), length >= 3 ? 15u : 5u * static_cast<std::size_t>(std::min<std::int64_t>(length, 3))) << to_text(line);
    ++lines;
  }
  EXPECT_GE(lines, 6);
}

// Scales and addends that are inputs.
TEST(Promise, OfScalesAndAddendsIsKept) {
  std::set<std::string> met;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario" || find_key(*find_op(line.op), "scales") == nullptr) continue;
    const std::string scales = line.text("scales");
    const bool with_addends = line.op == "grouped_gemm" && line.text("addends") != "plain";
    if (scales != "specials" && scales != "opposed" && scales != "two_roundings" && !with_addends) continue;
    const Case made = generate(line);
    for (const auto& [name, tensor] : made.in) {
      const bool is_scale = name == "scale" || name.ends_with("scale_inv");
      if (is_scale && tensor.type == Format::f32) {
        int infinite = 0, nan = 0, negative = 0, beside = 0, used = 0;
        for (std::int64_t i = 0; i < tensor.elements(); ++i) {
          const std::uint32_t bits = tensor.as<std::uint32_t>()[i];
          if (bits == 0x7FC0'DEAD) continue;  // padding
          const double value = value_of(Format::f32, bits);
          ++used, infinite += std::isinf(value), nan += std::isnan(value), negative += std::signbit(value) && std::isfinite(value);
          const std::uint64_t thrice = 3 * std::uint64_t{(bits & 0x7f'ffff) | 0x80'0000};
          for (const int bits_of_tie : {4, 5, 9, 12}) {
            const std::uint64_t below = thrice & ((std::uint64_t{1} << (26 - bits_of_tie)) - 1), odd = thrice + 1 >> (26 - bits_of_tie);
            beside += (below == 1 || below + 1 == std::uint64_t{1} << (26 - bits_of_tie)) && odd % 2 == 1;
          }
        }
        if (scales == "specials" && used >= 8 * 8) EXPECT_TRUE(infinite > 0 && nan > 0 && negative > 0) << to_text(line) << " " << name;
        if (scales == "two_roundings" && used >= 2) EXPECT_GT(beside, 0) << to_text(line) << " " << name;
        if (used >= 2) met.insert(scales);
      } else if (is_scale && tensor.type == Format::e4m3 && scales == "specials" && tensor.elements() >= 1024) {
        bool negative = false;
        for (std::int64_t i = 0; i < tensor.elements(); ++i) negative |= tensor.as<std::uint8_t>()[i] > 0x80 && tensor.as<std::uint8_t>()[i] < 0xFF;
        EXPECT_TRUE(negative) << to_text(line) << " " << name;
        met.insert("negative E4M3");
      } else if (with_addends && (name == "c" || name == "bias") && tensor.elements() > 0) {
        const std::vector<std::int64_t> splits = line.splits();
        const std::int64_t active = name == "c" && line.text("layout") != "NT" ? std::accumulate(splits.begin(), splits.end(),
            std::int64_t{0}) : tensor.shape[0];
        const Content c = content_of(tensor, active * tensor.shape[1]);
        if (line.text("addends") == "negative_zeros") EXPECT_EQ(c.negative_zero, c.elements) << to_text(line);
        if (line.text("addends") == "every_special" && c.elements >= 256) EXPECT_TRUE(c.nan > 0 && c.infinite > 0 &&
            c.negative_zero > 0) << to_text(line);
        met.insert(line.text("addends"));
      }
    }
  }
  EXPECT_EQ(met, (std::set<std::string>{"every_special", "negative", "negative E4M3", "negative_zeros", "opposed", "plain", "pow2", "edge", "ones", "specials",
                                        "two_roundings"}));
}

// The largest finite scale and the least positive one, in turn along groups, rows and blocks.
TEST(Promise, OfExtremeScalesIsKept) {
  const Case rows = generate(parse_case_line("dequantize recipe=block_1x128 R=3 K=512 scales=extremes"));
  const Case groups = generate(parse_case_line("dequantize recipe=tensor_current splits=2,3,1 K=8 scales=extremes"));
  const Case codes = generate(parse_case_line("grouped_gemm kind=nvfp4 scale_layout=compact splits=2,3 N=16 K=64 scales=extremes"));
  const Case powers = generate(parse_case_line("grouped_gemm kind=mxfp8 scale_layout=compact splits=1 N=16 K=128 scales=extremes"));
  const Tensor& f32 = rows.in.at("rowwise_scale_inv");
  for (std::int64_t block = 0; block < 4; ++block) {
    for (std::int64_t row = 0; row < 3; ++row) {
      const std::uint32_t code = f32.as<std::uint32_t>()[block * f32.shape[1] + row];
      EXPECT_EQ(code, (block + row) % 2 == 0 ? 0x7F7F'FFFFu : 1u) << block << " " << row;
    }
  }
  for (std::int64_t g = 0; g < 3; ++g) EXPECT_EQ(groups.in.at("rowwise_scale_inv").as<std::uint32_t>()[g], g % 2 == 0 ? 0x7F7F'FFFFu : 1u);
  for (const char* name : {"x_rowwise_scale_inv", "w_rowwise_scale_inv"}) {
    for (std::int64_t block = 0; block < 4; ++block) {
      EXPECT_EQ(codes.in.at(name).as<std::uint8_t>()[block], block % 2 == 0 ? 0x7E : 0x01) << name;
      EXPECT_EQ(powers.in.at(name).as<std::uint8_t>()[block], block % 2 == 0 ? 0xFE : 0x00) << name;
    }
  }
}

// Amaxes that differ from the amax of the tensor.
TEST(Promise, OfAnAmaxThatDoesNotFitIsKept) {
  const Case made = generate(parse_case_line("quantize recipe=nvfp4 amax=misfit splits=16,32,16,16,32,16 K=64 seed=6"));
  const auto* amax = made.in.at("amax").as<float>();
  float largest = 0;
  for (std::int64_t i = 0; i < 16 * 64; ++i) largest = std::max(largest, static_cast<float>(std::fabs(value_of(Format::bf16,
      code_at(made.in.at("x"), i)))));
  EXPECT_EQ(amax[0], largest / 4);
  EXPECT_EQ(amax[1], 0);
  EXPECT_TRUE(std::isinf(amax[2]));
  EXPECT_EQ(amax[3], std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(amax[4], 0x1p60f);
  EXPECT_TRUE(std::isnan(amax[5]));
}

// The amax for the columns differs from that for the rows, in every group; and one of each for all groups.
TEST(Promise, OfAnAmaxForTheColumnsIsKept) {
  const Case apart = generate(parse_case_line("quantize recipe=nvfp4 amax=apart splits=16,32,16 K=64 seed=6"));
  const Case one = generate(parse_case_line("quantize recipe=nvfp4 amax=single splits=16,32,16 K=64 seed=6"));
  ASSERT_EQ(apart.in.at("columnwise_amax").elements(), 3);
  const auto *rows = apart.in.at("amax").as<float>(), *columns = apart.in.at("columnwise_amax").as<float>();
  for (int g = 0; g < 3; ++g) EXPECT_EQ(columns[g], 4 * rows[g]);
  ASSERT_EQ(one.in.at("amax").elements(), 1);
  EXPECT_EQ(one.in.at("amax").as<float>()[0], *std::max_element(rows, rows + 3));
  EXPECT_EQ(one.in.at("columnwise_amax").as<float>()[0], *std::max_element(columns, columns + 3));
}

// Everything cancels but the product at k = 0.
TEST(Promise, OfCancellationIsKept) {
  for (const char* words : {"kind=bf16 K=96", "kind=fp8_per_tensor K=96", "kind=fp8_block K=272", "kind=mxfp8 scale_layout=compact K=96",
                            "kind=nvfp4 scale_layout=compact K=96"}) {
    const CaseLine line = parse_case_line("grouped_gemm splits=9,5 N=16 data=adversarial_cancelling seed=3 " + std::string(words));
    const Case made = generate(line);
    const bool plain = line.text("kind") == "bf16";
    const Tensor &x = made.in.at(plain ? "x" : "x_rowwise_data"), &w = made.in.at(plain ? "w" : "w_rowwise_data");
    const std::int64_t K = line.integer("K");
    for (std::int64_t m = 0; m < 9; ++m) {
      for (std::int64_t n = 0; n < 16; ++n) {
        double sum = 0, largest = 0;
        const auto product = [&](std::int64_t k) { return value_of(x.type, code_at(x, m * K + k)) * value_of(w.type, code_at(w, n * K + k)); };
        for (std::int64_t k = 0; k < K; ++k) sum += product(k), largest = std::max(largest, std::fabs(product(k)));
        ASSERT_EQ(sum, product(0)) << words;
        ASSERT_NE(sum, 0);
        ASSERT_GE(largest, 16 * std::fabs(sum)) << words;
      }
    }
  }
}

}  // namespace
}  // namespace assay::conformance
