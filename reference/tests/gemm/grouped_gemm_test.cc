// The fast grouped GEMM against the scalar one, bit for bit: every unit, both kernels, with data for each place where a bit can
// be lost. All of D is compared, including rows that must not be written.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "reference/arithmetic/unit_table.h"
#include "reference/gemm/epilogue.h"
#include "reference/gemm/fused_kernel.h"
#include "reference/gemm/grouped_gemm.h"
#include "reference/gemm/plan.h"
#include "reference/layout/scale_shape.h"
#include "reference/support/parallel.h"

// Tables, one row per line.
// clang-format off

namespace assay {
namespace {

// ---- Data ---------------------------------------------------------------------------------------------------------

std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

struct Random {
  std::uint64_t state;
  std::uint64_t next() { return mixed(state++); }
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
};

enum class Data {
  uniform,         // exponents fall off by halves, as those of a normal distribution do
  raw,             // every code: subnormals, infinities and NaN too
  finite,          // every finite code
  cancelling,      // exponents within 8, and half of the products followed by their negatives
  subnormal,       // nearly all subnormal
  near_overflow,   // the largest exponents: 16-bit sums pass 2^128
  near_underflow,  // bf16 products about 2^-150: results are subnormal, grids lie below the floor
  mostly_zero,     // both signs of zero
  largest,         // one significand, all ones: the sum needs every carry bit
  narrow_edge,     // bf16 exponents of +-42, where the narrow kernel ends, of +-43 or of +-60, with zeros
  rare_special,    // uniform, with one infinity or NaN in some hundred elements
};
constexpr Data kEveryData[] = {Data::uniform,       Data::raw,            Data::finite,      Data::cancelling,
                               Data::subnormal,     Data::near_overflow,  Data::near_underflow, Data::mostly_zero,
                               Data::largest,       Data::narrow_edge,    Data::rare_special};
constexpr const char* kDataNames[] = {"uniform",        "raw",         "finite",  "cancelling",  "subnormal",   "near_overflow",
                                      "near_underflow", "mostly_zero", "largest", "narrow_edge", "rare_special"};
const char* name_of(Data data) { return kDataNames[static_cast<int>(data)]; }

struct Fields {
  int exponent_bits, mantissa_bits;
  bool has_infinity, has_nan;
};
Fields fields_of(Format format) {
  switch (format) {
    case Format::bf16: return {8, 7, true, true};
    case Format::f16: return {5, 10, true, true};
    case Format::e5m2: return {5, 2, true, true};
    case Format::e4m3: return {4, 3, false, true};
    default: return {2, 1, false, false};  // e2m1
  }
}

bool finite(Format format, std::uint32_t code) {
  const Fields f = fields_of(format);
  const std::uint32_t magnitude = code & ((1u << (f.exponent_bits + f.mantissa_bits)) - 1);
  if (f.has_infinity) return magnitude >> f.mantissa_bits != (1u << f.exponent_bits) - 1;
  return !f.has_nan || magnitude != (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
}

std::uint32_t code_of(Format format, int sign, int exponent_field, std::uint32_t mantissa) {
  const Fields f = fields_of(format);
  const int last = (1 << f.exponent_bits) - 1 - (f.has_infinity ? 1 : 0);
  const auto field = static_cast<std::uint32_t>(std::clamp(exponent_field, 0, last));
  std::uint32_t code = field << f.mantissa_bits | (mantissa & ((1u << f.mantissa_bits) - 1));
  if (!finite(format, code)) --code;
  return code | static_cast<std::uint32_t>(sign) << (f.exponent_bits + f.mantissa_bits);
}

// Element (line, k) of an operand. `second` tells the two operands apart: planted pairs differ in sign in one of them.
std::uint32_t element(Format format, Data data, bool second, std::uint64_t seed, std::int64_t line, std::int64_t k) {
  const Fields f = fields_of(format);
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int last = (1 << f.exponent_bits) - 1;
  const bool planted = data == Data::cancelling && k % 2 == 1;
  const auto source_k = static_cast<std::uint64_t>(planted ? k - 1 : k);
  Random random{mixed(seed * 2 + second) ^ mixed(static_cast<std::uint64_t>(line) * 1000003 + source_k)};
  const auto mantissa = static_cast<std::uint32_t>(random.next());
  const int sign = random.below(2);
  const int drop = std::countr_zero(random.next() | 1u << 20);
  switch (data) {
    case Data::uniform: return code_of(format, sign, bias + 1 - drop, mantissa);
    case Data::raw: return mantissa & ((1u << (f.exponent_bits + f.mantissa_bits + 1)) - 1);
    case Data::finite: return code_of(format, sign, random.below(last + 1), mantissa);
    case Data::cancelling: {
      const bool flipped = planted && second && mixed(seed ^ static_cast<std::uint64_t>(k)) % 2 == 0;
      return code_of(format, sign != static_cast<int>(flipped), bias - 4 + random.below(8), mantissa);
    }
    case Data::subnormal: return code_of(format, sign, random.below(16) == 0 ? 1 + random.below(2) : 0, mantissa);
    case Data::near_overflow: {
      const int top = format == Format::bf16 ? bias + 63 : last;  // products about 2^127
      return code_of(format, sign, top - random.below(3), mantissa);
    }
    case Data::near_underflow: {
      const int low = format == Format::bf16 ? bias - 75 : 0;
      return code_of(format, sign, low + random.below(14), mantissa);
    }
    case Data::mostly_zero: return random.below(6) != 0 ? code_of(format, sign, 0, 0) : code_of(format, sign, bias - drop, mantissa);
    case Data::largest: {
      // Small products first, so that C has the exponent of the large ones that follow and its sign.
      const int exponent = bias + static_cast<int>(line % 2) - (k / 32 % 3 == 0 ? 3 : 0);
      return code_of(format, line % 3 == 0 && !second, exponent, ~0u);
    }
    case Data::narrow_edge: {
      // Blocks of 16 that hold the smallest products only, and zeros that meet the largest elements.
      constexpr int kBf16Edges[] = {42, 43, 60};
      const int edge = format == Format::bf16 ? kBf16Edges[seed % 3] : f.exponent_bits >= 5 ? 14 : 3;
      const bool low = mixed(seed + static_cast<std::uint64_t>(k / 16)) % 3 != 0;
      const bool empty = mixed(seed + 99 + static_cast<std::uint64_t>(k)) % 4 == 0;
      if (low && empty) return second ? code_of(format, sign, 0, 0) : code_of(format, sign, bias + edge, mantissa);
      if (random.below(4) == 0) return code_of(format, sign, 0, 0);
      return code_of(format, sign, bias + (!low && random.below(2) == 0 ? edge : -edge), mantissa);
    }
    case Data::rare_special:
      if (random.below(400) != 0) return code_of(format, sign, bias + 1 - drop, mantissa);
      return (1u << (f.exponent_bits + f.mantissa_bits)) - 1 - (random.below(2) == 0 ? 0u : (1u << f.mantissa_bits) - 1);
  }
  return 0;
}

void put(Format format, std::vector<std::uint8_t>& bytes, std::int64_t at, std::uint32_t code) {
  const auto index = static_cast<std::size_t>(at);
  switch (bits_of(format)) {
    case 4: bytes[index / 2] = static_cast<std::uint8_t>(bytes[index / 2] | (code & 0xF) << (index % 2 * 4)); break;
    case 8: bytes[index] = static_cast<std::uint8_t>(code); break;
    case 16: {
      const auto half = static_cast<std::uint16_t>(code);
      std::memcpy(&bytes[2 * index], &half, 2);
      break;
    }
    default: std::memcpy(&bytes[4 * index], &code, 4);
  }
}

// ---- Problems -----------------------------------------------------------------------------------------------------

struct GemmCase {
  std::string_view unit = "sm90.wgmma.f16";
  GemmKind kind = GemmKind::bf16;
  GemmLayout layout = GemmLayout::TN;
  Format first = Format::bf16, second = Format::bf16;
  Data data = Data::uniform;
  std::vector<std::int64_t> splits = {13};
  std::int64_t spare_rows = 0;  // of x, dy and D past the splits
  std::int64_t N = 70, K = 150;
  std::int64_t interval = 0;
  Promotion promotion = Promotion::none;
  std::int64_t slices = 1, slice_length = 0;
  SliceMerge merge = SliceMerge::none;
  WeightBlock weight_block = WeightBlock::b128x128;
  ScaleLayout scale_layout = ScaleLayout::compact;
  bool transposed = false;  // bf16, f16: the other storage of both operands
  Format d_type = Format::f32;
  bool accumulate = false;  // beta other than 0 and 1 by group, C given
  bool c_is_d = false;
  bool bias = false;
  std::uint64_t seed = 1;
  const char* line = nullptr;  // the plan, in place of unit, interval, promotion, slices and merge
};

std::ostream& operator<<(std::ostream& out, const GemmCase& c) {
  if (c.line != nullptr) out << "plan " << c.line << " ";
  out << "unit=" << c.unit << " kind=" << name_of(c.kind) << " layout=" << name_of(c.layout) << " types=" << name_of(c.first) << "x"
      << name_of(c.second) << " data=" << name_of(c.data) << " splits=";
  for (std::size_t i = 0; i < c.splits.size(); ++i) out << (i ? "+" : "") << c.splits[i];
  out << " N=" << c.N << " K=" << c.K << " interval=" << c.interval << " promotion=" << static_cast<int>(c.promotion)
      << " slices=" << c.slices << "x" << c.slice_length << " merge=" << static_cast<int>(c.merge)
      << " weight_block=" << static_cast<int>(c.weight_block) << " swizzled=" << static_cast<int>(c.scale_layout)
      << " transposed=" << c.transposed << " d=" << name_of(c.d_type) << " accumulate=" << c.accumulate << " c_is_d=" << c.c_is_d
      << " bias=" << c.bias << " seed=" << c.seed;
  return out;
}

struct StoredOperand {
  std::vector<std::uint8_t> data;
  std::vector<std::uint8_t> scales;
  std::vector<float> amax;
  GemmOperand operand;
};

// Whether the case keeps infinities and NaN out.
bool special_scales(Data data) { return data == Data::raw; }

void fill_scales(StoredOperand& stored, const GemmCase& c, Format scale_type, std::int64_t count, Random random) {
  stored.scales.assign(static_cast<std::size_t>(bytes_of(scale_type, count)), 0);
  const bool special = special_scales(c.data);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t code = 0;
    const bool odd = special && random.below(12) == 0;
    if (scale_type == Format::e8m0) {
      constexpr std::uint32_t kOdd[] = {0, 1, 254, 255, 40, 200, 97, 157, 96, 158};
      code = odd ? kOdd[random.below(10)] : static_cast<std::uint32_t>(121 + random.below(12));
      if (c.data == Data::narrow_edge) code = 127u + (random.below(2) == 0 ? 30u : -30u) + (random.below(500) == 0 ? 1u : 0u);
      if (c.data == Data::near_underflow) code = static_cast<std::uint32_t>(47 + random.below(6));
      if (c.data == Data::mostly_zero) code = static_cast<std::uint32_t>(97 + random.below(3));  // C is tiny where no product is
      if (c.data == Data::near_overflow) code = static_cast<std::uint32_t>(176 + random.below(4));
    } else if (scale_type == Format::e4m3) {
      code = odd ? static_cast<std::uint32_t>(random.below(256)) : static_cast<std::uint32_t>(8 + random.below(112));
      if (c.data == Data::subnormal) code = static_cast<std::uint32_t>(random.below(10));
      if (c.data == Data::finite) code = static_cast<std::uint32_t>(random.below(127));
    } else {
      const float value = std::ldexp(1.0f + static_cast<float>(random.below(1 << 23)) * 0x1p-23f, random.below(7) - 3);
      code = std::bit_cast<std::uint32_t>(random.below(16) == 0 ? -value : value);
      constexpr std::uint32_t kOdd[] = {0, 0x80000000, 1, 0x7F800000, 0x7FC00001, 0x7F7FFFFF, 0x00800000, 0xFF800000};
      if (odd) code = kOdd[random.below(8)];
    }
    put(scale_type, stored.scales, i, code);
  }
}

// An operand with `group_rows[t]` x columns a group, contraction along the rows or the columns.
StoredOperand stored_operand(const GemmCase& c, Format type, bool second, const std::vector<std::int64_t>& group_rows,
                             std::int64_t total_rows, std::int64_t columns, bool along_rows, bool tiles) {
  StoredOperand stored;
  stored.operand.type = type;
  const bool half = c.kind == GemmKind::bf16 || c.kind == GemmKind::f16;
  stored.operand.columnwise = half ? c.transposed : along_rows;
  stored.data.assign(static_cast<std::size_t>(bytes_of(type, total_rows * columns)) + 1, 0);
  const bool transposed_storage = stored.operand.columnwise && c.kind != GemmKind::mxfp8;
  std::int64_t base = 0, first_row = 0;
  for (const std::int64_t rows : group_rows) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t col = 0; col < columns; ++col) {
        const std::int64_t line = along_rows ? col : first_row + r, k = along_rows ? r : col;
        const std::int64_t at = base + (transposed_storage ? col * rows + r : r * columns + col);
        put(type, stored.data, at, element(type, c.data, second, c.seed, line, k));
      }
    }
    base += rows * columns;
    first_row += rows;
  }
  Random random{mixed(c.seed + 77) + static_cast<std::uint64_t>(second) * 1000};
  for (std::size_t t = 0; t < group_rows.size(); ++t) stored.amax.push_back(0.3f + static_cast<float>(random.below(1000)) * 0.01f);
  if (!half) {
    const Recipe recipe = c.kind == GemmKind::fp8_per_tensor   ? Recipe::tensor_current
                          : c.kind == GemmKind::mxfp8  ? Recipe::mxfp8
                          : c.kind == GemmKind::nvfp4  ? Recipe::nvfp4
                          : tiles                      ? Recipe::block_128x128
                                                       : Recipe::block_1x128;
    const Direction direction = stored.operand.columnwise ? Direction::columnwise : Direction::rowwise;
    const std::int64_t count = scale_offsets(recipe, direction, group_rows, columns).back();
    fill_scales(stored, c, scale_format(recipe), std::max(count, total_rows + columns * static_cast<std::int64_t>(group_rows.size())) + 1, random);
  }
  return stored;
}

class Fixture {
 public:
  explicit Fixture(const GemmCase& c) : case_(c) {
    std::int64_t used = 0;
    for (const std::int64_t rows : c.splits) used += rows;
    const std::int64_t rows = used + c.spare_rows;
    const bool wgrad = c.layout == GemmLayout::NT;
    const std::vector<std::int64_t> weights(c.splits.size(), c.N);
    const auto weight_rows = static_cast<std::int64_t>(c.splits.size()) * c.N;
    const bool tiles = c.weight_block == WeightBlock::b128x128;
    switch (c.layout) {
      case GemmLayout::TN:
        rows_ = stored_operand(c, c.first, false, c.splits, rows, c.K, false, false);
        columns_ = stored_operand(c, c.second, true, weights, weight_rows, c.K, false, tiles);
        break;
      case GemmLayout::NN:
        rows_ = stored_operand(c, c.first, false, c.splits, rows, c.N, false, false);
        columns_ = stored_operand(c, c.second, true, weights, weight_rows, c.K, true, tiles);
        break;
      case GemmLayout::NT:
        rows_ = stored_operand(c, c.first, false, c.splits, rows, c.N, true, false);
        columns_ = stored_operand(c, c.second, true, c.splits, rows, c.K, true, false);
        break;
    }
    for (StoredOperand* each : {&rows_, &columns_}) {
      each->operand.data = each->data.data();
      each->operand.scale_inv = each->scales.empty() ? nullptr : each->scales.data();
      each->operand.amax = each->amax.data();
    }

    plan_ = {"test", c.unit, c.interval, c.promotion, c.slices, c.slice_length, c.merge, GemmEpilogue::scaled_alpha_beta};
    if (c.line != nullptr) plan_ = *find_accumulation_plan(c.line);
    problem_.kind = c.kind;
    problem_.layout = c.layout;
    problem_.splits = case_.splits;
    problem_.rows = rows;
    problem_.N = c.N;
    problem_.K = c.K;
    (c.layout == GemmLayout::TN ? problem_.x : problem_.dy) = rows_.operand;
    (wgrad ? problem_.x : problem_.w) = columns_.operand;
    problem_.weight_block = c.weight_block;
    problem_.scale_layout = c.scale_layout;
    problem_.d_type = c.d_type;
    problem_.plan = &plan_;
    problem_.row_and_column_scales = plan_.scale_vectors != ScaleVectors::none;

    const MatrixShape shape = grouped_gemm_shape(problem_);
    elements_ = shape.rows * shape.columns;
    Random random{mixed(c.seed + 5)};
    if (c.accumulate) {
      for (std::size_t t = 0; t < c.splits.size(); ++t) {
        alpha_.push_back(t % 3 == 2 ? 0.0f : 0.7f - static_cast<float>(t));
        beta_.push_back(t % 4 == 3 ? 0.0f : 1.3f * static_cast<float>(t) - 0.4f);
      }
      if (plan_.epilogue != GemmEpilogue::scaled_alpha_beta) beta_.assign(beta_.size(), 1);
      problem_.alpha = alpha_;
      problem_.beta = beta_;
      c_ = output_values(random, elements_);
    }
    if (c.bias) {
      bias_ = output_values(random, weight_rows);
      problem_.bias = bias_.data();
    }
  }

  using Call = void (*)(const GroupedGemmProblem&, void*);
  std::vector<std::uint8_t> run(Call call) {
    std::vector<std::uint8_t> d(static_cast<std::size_t>(bytes_of(case_.d_type, elements_)), 0xA5);
    if (case_.c_is_d && !c_.empty()) std::copy(c_.begin(), c_.begin() + static_cast<std::ptrdiff_t>(d.size()), d.begin());
    problem_.c = case_.c_is_d ? static_cast<const void*>(d.data()) : c_.data();
    call(problem_, d.data());
    return d;
  }
  std::int64_t columns() const { return grouped_gemm_shape(problem_).columns; }
  GroupedGemmProblem& problem() { return problem_; }

 private:
  // Finite values of every size, some infinities and NaN.
  std::vector<std::uint8_t> output_values(Random& random, std::int64_t count) const {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(bytes_of(case_.d_type, count)) + 4);
    for (std::int64_t i = 0; i < count; ++i) {
      auto code = static_cast<std::uint32_t>(random.next());
      if (random.below(4) != 0) {  // mostly about 1, so that both parts contribute to the sums
        const int bits = bits_of(case_.d_type);
        if (bits == 32) code = (code & 0x807FFFFF) | 0x3F800000;
        if (case_.d_type == Format::bf16) code = (code & 0x807F) | 0x3F80;
        if (case_.d_type == Format::f16) code = (code & 0x83FF) | 0x3C00;
      }
      put(case_.d_type, bytes, i, code);
    }
    return bytes;
  }

  GemmCase case_;
  StoredOperand rows_, columns_;
  AccumulationPlan plan_;
  GroupedGemmProblem problem_;
  std::int64_t elements_ = 0;
  std::vector<float> alpha_, beta_;
  std::vector<std::uint8_t> c_, bias_;
};

std::uint32_t word(const std::vector<std::uint8_t>& bytes, Format type, std::int64_t at) {
  std::uint32_t code = 0;
  const auto size = static_cast<std::size_t>(bits_of(type) / 8);
  std::memcpy(&code, bytes.data() + static_cast<std::size_t>(at) * size, size);
  return code;
}

testing::AssertionResult same_bits(const std::vector<std::uint8_t>& want, const std::vector<std::uint8_t>& got, Format type,
                                   std::int64_t columns) {
  if (want == got) return testing::AssertionSuccess();
  const auto count = static_cast<std::int64_t>(want.size()) / (bits_of(type) / 8);
  std::int64_t different = 0, first = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    if (word(want, type, i) == word(got, type, i)) continue;
    if (first < 0) first = i;
    ++different;
  }
  std::ostringstream text;
  text << "row " << first / columns << ", column " << first % columns << ": want 0x" << std::hex << word(want, type, first) << ", got 0x"
       << word(got, type, first) << std::dec << "; " << different << " of " << count << " differ";
  return testing::AssertionFailure() << text.str();
}

// Restores the kernel that the machine would use.
struct NarrowKernel {
  explicit NarrowKernel(bool allowed) { gemm::allow_narrow_kernel(allowed); }
  ~NarrowKernel() { gemm::allow_narrow_kernel(true); }
};

void expect_equal_layers(const GemmCase& c) {
  SCOPED_TRACE(testing::Message() << c);
  Fixture fixture(c);
  const std::vector<std::uint8_t> want = fixture.run(scalar::grouped_gemm);
  for (const bool narrow : {true, false}) {
    const NarrowKernel kernel(narrow);
    EXPECT_TRUE(same_bits(want, fixture.run(grouped_gemm), c.d_type, fixture.columns())) << (narrow ? "machine's kernel" : "plain kernel");
  }
}

// ---- Every unit, every class of data ------------------------------------------------------------------------------

struct KindAndTypes {
  GemmKind kind;
  Format first, second;
};

bool takes(const TensorCoreUnit& unit, Format format) {
  return std::find(unit.operands.begin(), unit.operands.end(), format) != unit.operands.end();
}

std::vector<KindAndTypes> uses_of(const TensorCoreUnit& unit) {
  std::vector<KindAndTypes> uses;
  if (unit.scaling == StepScaling::e4m3_per_16) return {{GemmKind::nvfp4, Format::e2m1, Format::e2m1}};
  const bool mx = unit.scaling == StepScaling::e8m0_per_32;
  if (takes(unit, Format::bf16)) uses.push_back({GemmKind::bf16, Format::bf16, Format::bf16});
  if (takes(unit, Format::f16)) uses.push_back({GemmKind::f16, Format::f16, Format::f16});
  if (takes(unit, Format::e4m3)) {
    const GemmKind kind = mx ? GemmKind::mxfp8 : GemmKind::fp8_per_tensor;
    uses.push_back({kind, Format::e4m3, Format::e4m3});
    uses.push_back({kind, Format::e5m2, Format::e4m3});
    if (!mx) uses.push_back({GemmKind::fp8_block, Format::e4m3, Format::e5m2});
  }
  return uses;
}

// The ways to accumulate that a kind allows, including synthetic ones.
struct Accumulation {
  std::int64_t interval;
  Promotion promotion;
  std::int64_t slices, slice_length;
  SliceMerge merge;
};
std::vector<Accumulation> accumulations_of(const TensorCoreUnit& unit, GemmKind kind) {
  const std::int64_t step = unit.products_per_step;
  if (kind == GemmKind::fp8_block) {
    return {{128, Promotion::fma_scales_first, 1, 0, SliceMerge::none},
            {128, Promotion::fma_rows_first, 1, 0, SliceMerge::none},
            {64, Promotion::fma_cols_first, 1, 0, SliceMerge::none},
            {8, Promotion::fma_rows_first, 3, 72, SliceMerge::sequential_f32}};
  }
  if (unit.scaling != StepScaling::none) {
    return {{0, Promotion::none, 1, 0, SliceMerge::none},
            {2 * step, Promotion::add, 1, 0, SliceMerge::none},
            {0, Promotion::none, 6, step, SliceMerge::sequential_output}};
  }
  return {{0, Promotion::none, 1, 0, SliceMerge::none},
          {128, Promotion::add, 1, 0, SliceMerge::none},
          {37, Promotion::add, 1, 0, SliceMerge::none},                    // intervals that end inside a step
          {0, Promotion::none, 3, 61, SliceMerge::sequential_f32},         // slices that do
          {16, Promotion::add, 6, 50, SliceMerge::sequential_output}};     // and slices past the end of K
}

class EveryUnit : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryUnit, EqualsTheScalarLayer) {
  const TensorCoreUnit& unit = *find_tensor_core_unit(GetParam());
  constexpr Format kOutputs[] = {Format::f32, Format::bf16, Format::f16};
  std::uint64_t number = 0;
  for (const KindAndTypes& use : uses_of(unit)) {
    for (const Data data : kEveryData) {
      for (const Accumulation& accumulation : accumulations_of(unit, use.kind)) {
        GemmCase c;
        c.unit = GetParam();
        c.kind = use.kind;
        c.first = use.first;
        c.second = use.second;
        c.data = data;
        c.interval = accumulation.interval;
        c.promotion = accumulation.promotion;
        c.slices = accumulation.slices;
        c.slice_length = accumulation.slice_length;
        c.merge = accumulation.merge;
        // The rest varies with the number of the case, so that all combinations occur over the units.
        c.seed = ++number;
        c.layout = static_cast<GemmLayout>(number % 3);
        c.d_type = data == Data::near_overflow || data == Data::near_underflow ? Format::f32 : kOutputs[number / 3 % 3];
        if (accumulation.merge == SliceMerge::sequential_output) c.d_type = kOutputs[1 + number % 2];
        c.transposed = number % 2 == 0;
        c.weight_block = static_cast<WeightBlock>(number / 2 % 2);
        c.scale_layout = static_cast<ScaleLayout>(number / 2 % 2);
        c.accumulate = number % 5 == 0;
        c.c_is_d = number % 2 == 0;
        c.bias = c.layout == GemmLayout::TN && number % 4 < 2;
        c.spare_rows = static_cast<std::int64_t>(number % 3);
        switch (c.layout) {
          case GemmLayout::TN: c.splits = {2, 0, 9}; c.N = 67; c.K = 146; break;
          case GemmLayout::NN: c.splits = {0, 5, 3}; c.N = 146; c.K = 68; break;
          case GemmLayout::NT: c.splits = {146, 0, 4}; c.N = 10; c.K = 34; break;
        }
        expect_equal_layers(c);
      }
    }
  }
}

// ---- Plans that are lines -----------------------------------------------------------------------------------------

struct LineCase {
  const char* line;
  GemmKind kind;
};
void PrintTo(const LineCase& c, std::ostream* out) { *out << c.line; }

const LineCase kLines[] = {
    {"unit=sm90.wgmma.fp8,promote=32", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,promote=256", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,promote=128,association=rescale_by_ratio", GemmKind::fp8_block},
    {"unit=sm90.wgmma.fp8,promote=64,association=rescale_in_turn", GemmKind::fp8_block},
    {"unit=sm90.mma.fp8,promote=128,association=rescale_by_ratio,slices=3x128,merge=tree_f32", GemmKind::fp8_block},
    {"unit=sm90.wgmma.f16,slices=7x50,merge=tree_f32", GemmKind::bf16},
    {"unit=sm90.wgmma.f16,slices=11x40,merge=tree_f32", GemmKind::bf16},  // slices past the end of K
    {"unit=sm90.wgmma.f16,slices=5x61,merge=(3+((1+0)+(2+4)))", GemmKind::bf16},
    {"unit=sm90.mma.f16,widen=f16", GemmKind::fp8_per_tensor},
    {"unit=sm80.mma.f16,widen=bf16,promote=96", GemmKind::fp8_per_tensor},
    {"unit=sm90.mma.f16.to_f16,widen=f16", GemmKind::fp8_per_tensor},
    {"unit=sm90.mma.f16,widen=f16,promote=128,association=rows_first", GemmKind::fp8_block},
    {"unit=sm90.wgmma.fp8,scale_vectors=rows_first", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,promote=128,scale_vectors=cols_first", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,scale_vectors=scales_first", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,promote=128,association=scales_first,epilogue=reduce_add", GemmKind::fp8_block},
    {"unit=sm90.wgmma.f16,epilogue=reduce_add_ftz", GemmKind::bf16},
};

class Lines : public testing::TestWithParam<LineCase> {};

TEST_P(Lines, EqualTheScalarLayer) {
  const bool in_memory = find_accumulation_plan(GetParam().line)->epilogue != GemmEpilogue::scaled_alpha_beta;
  std::uint64_t number = 400;
  for (const Data data : kEveryData) {
    for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
      GemmCase c;
      c.line = GetParam().line;
      c.kind = GetParam().kind;
      c.first = c.second = c.kind == GemmKind::bf16 ? Format::bf16 : Format::e4m3;
      if (c.kind != GemmKind::bf16 && number % 2 == 1) c.second = Format::e5m2;
      c.data = data;
      c.seed = ++number;
      c.layout = layout;
      c.d_type = in_memory || number % 3 == 0 ? Format::f32 : Format::bf16;
      c.weight_block = static_cast<WeightBlock>(number / 2 % 2);
      c.accumulate = in_memory || number % 4 == 0;
      c.c_is_d = number % 2 == 0;
      switch (c.layout) {
        case GemmLayout::TN: c.splits = {2, 0, 9}; c.N = 67; c.K = 301; break;
        case GemmLayout::NN: c.splits = {0, 5, 3}; c.N = 301; c.K = 68; break;
        case GemmLayout::NT: c.splits = {301, 0, 4}; c.N = 10; c.K = 34; break;
      }
      expect_equal_layers(c);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GroupedGemm, Lines, testing::ValuesIn(kLines));

std::vector<std::string_view> gemm_units() {
  std::vector<std::string_view> names;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    const bool has_kernels = unit.sum == StepSum::fused;  // others go element by element: the scalar layer itself
    if (has_kernels && !uses_of(unit).empty()) names.push_back(unit.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(GroupedGemm, EveryUnit, testing::ValuesIn(gemm_units()), [](const auto& info) {
  std::string name(info.param);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// Rows that a caller adds: numbers at the limit of what the kernels hold, and beyond it.
TEST(GroupedGemm, UnitsOfOtherNumbersEqualTheScalarLayer) {
  constexpr const char* kRows[] = {"products=30 fraction_bits=25", "products=32 fraction_bits=25", "products=64 fraction_bits=23",
                                   "products=64 fraction_bits=24", "products=4 fraction_bits=26",  "products=5 fraction_bits=20",
                                   "products=2 fraction_bits=9",   "products=1 fraction_bits=40",  "products=16 fraction_bits=25 zero_floor=-126",
                                   "products=16 fraction_bits=25 zero_floor=-100"};
  int number = 0;
  for (const char* row : kRows) {
    const std::string name = "edge.row" + std::to_string(number++), text = "name=" + name + " instruction=none operands=bf16,f16 " + row;
    add_tensor_core_units(text + " evidence=none", "test");
    for (const Data data : kEveryData) {
      GemmCase c;
      c.unit = find_tensor_core_unit(name)->name;
      c.data = data;
      c.splits = {9, 0, 3};
      c.N = 67;
      c.K = 170;
      expect_equal_layers(c);
    }
  }
}

// ---- Shapes -------------------------------------------------------------------------------------------------------

class Shapes : public testing::TestWithParam<GemmCase> {};
TEST_P(Shapes, EqualsTheScalarLayer) { expect_equal_layers(GetParam()); }

const GemmCase kShapes[] = {
    {.splits = {}, .N = 5, .K = 7},                                                       // no group
    {.splits = {0, 0}, .N = 5, .K = 7},                                                   // nothing to do
    {.splits = {3}, .N = 0, .K = 7},                                                      // no column
    {.splits = {3}, .N = 5, .K = 0, .accumulate = true, .bias = true},                    // no product: beta * C, then the bias
    {.splits = {3}, .N = 5, .K = 0, .d_type = Format::bf16},
    {.layout = GemmLayout::NT, .splits = {0, 3, 0}, .N = 5, .K = 7, .accumulate = true},  // wgrad of empty groups
    {.splits = {1}, .N = 1, .K = 1},
    {.splits = {1}, .N = 1, .K = 17},
    {.splits = {0, 1, 127, 128, 129, 0}, .N = 33, .K = 65},                               // one either side of a block
    {.splits = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .N = 63, .K = 48},                            // every remainder of a row group
    {.splits = {255, 257}, .N = 65, .K = 40},                                             // one either side of a row tile
    {.splits = {3}, .N = 257, .K = 600},                                                  // chunks of K, tiles of columns
    {.data = Data::cancelling, .splits = {9}, .N = 66, .K = 1300},
    {.data = Data::rare_special, .splits = {9}, .N = 66, .K = 1300},                      // wide from one chunk on
    {.data = Data::narrow_edge, .splits = {17}, .N = 130, .K = 1300},
    {.layout = GemmLayout::NN, .splits = {0, 1, 129}, .N = 300, .K = 40},
    {.layout = GemmLayout::NT, .splits = {0, 1, 129, 300}, .N = 9, .K = 70},
    {.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_per_tensor, .first = Format::e4m3, .second = Format::e4m3, .data = Data::cancelling,
     .splits = {5, 0, 8}, .N = 66, .K = 1300},
    {.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_per_tensor, .first = Format::e5m2, .second = Format::e4m3, .splits = {129}, .N = 33,
     .K = 300, .interval = 128, .promotion = Promotion::add, .d_type = Format::bf16, .accumulate = true},
    {.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_block, .first = Format::e4m3, .second = Format::e4m3, .splits = {1, 127, 129},
     .N = 130, .K = 300, .interval = 128, .promotion = Promotion::fma_scales_first},
    {.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_block, .layout = GemmLayout::NT, .first = Format::e4m3, .second = Format::e5m2,
     .splits = {0, 130, 300}, .N = 20, .K = 140, .interval = 128, .promotion = Promotion::fma_rows_first, .accumulate = true},
    {.unit = "sm100.tcgen05.mxf8f6f4", .kind = GemmKind::mxfp8, .first = Format::e4m3, .second = Format::e4m3, .splits = {130, 1},
     .N = 70, .K = 600, .scale_layout = ScaleLayout::swizzled},
    {.unit = "sm100.tcgen05.mxf4nvf4", .kind = GemmKind::nvfp4, .first = Format::e2m1, .second = Format::e2m1, .splits = {130, 1},
     .N = 70, .K = 600, .scale_layout = ScaleLayout::swizzled, .d_type = Format::bf16},
    {.splits = {4}, .N = 70, .K = 100, .slices = std::int64_t{1} << 40, .slice_length = 60, .merge = SliceMerge::sequential_f32,
     .seed = 3},
};
// The scalar layer would add 2^40 empty slices one by one; that case has a test of its own below.
INSTANTIATE_TEST_SUITE_P(GroupedGemm, Shapes, testing::ValuesIn(std::begin(kShapes), std::end(kShapes) - 1));

TEST(GroupedGemm, SlicesPastTheEndOfKCostNothing) {
  GemmCase many = std::end(kShapes)[-1];
  GemmCase few = many;
  few.slices = 3;
  Fixture want(few), got(many);
  EXPECT_TRUE(same_bits(want.run(scalar::grouped_gemm), got.run(grouped_gemm), Format::f32, got.columns()));
}

// ---- Known answers (spec tensor-core-4.1, worked out by hand) --------------------------------------------------

struct KnownAnswer {
  const char* what;
  std::string_view unit;
  Format type;
  std::vector<double> a, b;  // powers of two and small sums of them, exact in `type`
  std::uint32_t want;        // bits of D in f32
};
void PrintTo(const KnownAnswer& answer, std::ostream* out) { *out << answer.what << ", " << answer.unit; }

std::uint32_t exact_code(Format type, double value) {
  const Fields f = fields_of(type);
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const double magnitude = std::fabs(value);
  const int exponent = std::max(magnitude == 0 ? -bias : std::ilogb(magnitude), 1 - bias);
  const auto units = static_cast<std::uint32_t>(std::ldexp(magnitude, f.mantissa_bits - exponent));
  const std::uint32_t code = units + (static_cast<std::uint32_t>(exponent + bias - 1) << f.mantissa_bits);
  return code | static_cast<std::uint32_t>(std::signbit(value)) << (f.exponent_bits + f.mantissa_bits);
}

class Known : public testing::TestWithParam<KnownAnswer> {};

TEST_P(Known, Answer) {
  const KnownAnswer& answer = GetParam();
  const auto depth = static_cast<std::int64_t>(answer.a.size());
  std::vector<std::uint8_t> x(answer.a.size() * 2), w(answer.a.size() * 2);
  for (std::int64_t k = 0; k < depth; ++k) {
    put(answer.type, x, k, exact_code(answer.type, answer.a[static_cast<std::size_t>(k)]));
    put(answer.type, w, k, exact_code(answer.type, answer.b[static_cast<std::size_t>(k)]));
  }
  const std::int64_t splits[] = {1};
  const float one = 1;
  const AccumulationPlan plan{"test", answer.unit, 0, Promotion::none, 1, 0, SliceMerge::none, GemmEpilogue::scaled_alpha_beta};
  GroupedGemmProblem problem;
  problem.kind = answer.type == Format::bf16 ? GemmKind::bf16 : answer.type == Format::f16 ? GemmKind::f16 : GemmKind::fp8_per_tensor;
  problem.splits = splits;
  problem.rows = problem.N = 1;
  problem.K = depth;
  problem.x = {answer.type, x.data(), &one, false, nullptr};
  problem.w = {answer.type, w.data(), &one, false, nullptr};
  problem.plan = &plan;
  for (const bool narrow : {true, false}) {
    const NarrowKernel kernel(narrow);
    float d = -1;
    grouped_gemm(problem, &d);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(d), answer.want) << std::hex << std::bit_cast<std::uint32_t>(d);
  }
}

const double kAlmostTwo = 1.9921875;  // all eight bits of a bf16 significand
// 16 elements that multiply to 2^-6 of the next 16: C has the exponent of a large product when those are added.
std::vector<double> small_then_large() {
  std::vector<double> values(32, kAlmostTwo);
  std::fill_n(values.begin(), 16, kAlmostTwo / 8);
  return values;
}
const KnownAnswer kAnswers[] = {
    {"14 bits of the largest term", "sm90.wgmma.fp8", Format::e4m3, {128, 128, 2}, {128, -128, 1}, 0x40000000},
    {"and not one more", "sm90.wgmma.fp8", Format::e4m3, {128, 128, 1}, {128, -128, 1}, 0},
    {"26 bits of the largest term", "sm90.wgmma.f16", Format::bf16, {1, 1, 0x1p-25}, {1, -1, 1}, 0x33000000},
    {"and not one more of 26", "sm90.wgmma.f16", Format::bf16, {1, 1, 0x1p-26}, {1, -1, 1}, 0},
    {"25 bits on SM80", "sm80.mma.f16", Format::bf16, {1, 1, 0x1p-25}, {1, -1, 1}, 0},
    {"terms are cut toward zero", "sm90.wgmma.fp8", Format::e4m3, {128, 128, 3}, {128, -128, 1}, 0x40000000},
    {"negative ones too", "sm90.wgmma.fp8", Format::e4m3, {128, 128, -3}, {128, -128, 1}, 0xC0000000},
    {"products are not normalised", "sm90.wgmma.fp8", Format::e4m3, {192, 192, 2}, {192, -192, 1}, 0x40000000},
    {"nor subnormal operands", "sm90.wgmma.fp8", Format::e4m3, {0x1p-9, 0x1p-9, 0x1p-6}, {256, -256, 0x1p-6}, 0},
    {"emulated FP8 pairs bytes", "sm90.mma.fp8", Format::e4m3, {256, 256, 0x1p-6}, {256, -256, 0x1p-6}, 0x39800000},
    {"native FP8 does not", "sm100.tcgen05.f8f6f4", Format::e4m3, {256, 256, 0x1p-6}, {256, -256, 0x1p-6}, 0},
    {"FP22 out: 32 * 1.75^2 needs 7 bits", "sm90.wgmma.fp8", Format::e4m3,
     std::vector<double>(32, 1.75), std::vector<double>(32, 1.75), 0x42C40000},
    {"floor: grid 2^-158", "sm90.wgmma.f16", Format::bf16, {0x1p-23, -0x1p-32}, {0x1p-126, 0x1p-126}, 0},
    {"floor: the next", "sm90.wgmma.f16", Format::bf16, {0x1p-23, -0x1p-33}, {0x1p-126, 0x1p-126}, 0x00000001},
    {"below 2^128: truncated", "sm90.wgmma.f16", Format::bf16,
     {kAlmostTwo * 0x1p64, kAlmostTwo * 0x1p56, kAlmostTwo * 0x1p48, 0x1p40}, {0x1p63, 0x1p63, 0x1p63, 0x1p63}, 0x7F7FFFFF},
    {"2^128: infinity", "sm90.wgmma.f16", Format::bf16,
     {kAlmostTwo * 0x1p64, kAlmostTwo * 0x1p56, kAlmostTwo * 0x1p48, 0x1p41}, {0x1p63, 0x1p63, 0x1p63, 0x1p63}, 0x7F800000},
    {"products beyond f32 cancel", "sm90.wgmma.f16", Format::bf16, {0x1p127, 0x1p127, 1}, {0x1p127, -0x1p127, 1}, 0},
    {"the largest f16", "sm90.wgmma.f16.to_f16", Format::f16, {65504, 15}, {1, 1}, 0x477FE000},
    {"65520 becomes infinity", "sm90.wgmma.f16.to_f16", Format::f16, {65504, 16}, {1, 1}, 0x7F800000},
    {"f16 ties to even, down", "sm90.wgmma.f16.to_f16", Format::f16, {2048, 1}, {1, 1}, 0x45000000},
    {"f16 ties to even, up", "sm90.wgmma.f16.to_f16", Format::f16, {2050, 1}, {1, 1}, 0x45004000},
    {"16 * (255/128)^2 * (1 + 1/64): 32 bits and a sign", "sm90.wgmma.f16", Format::bf16,
     small_then_large(), small_then_large(), 0x4280FC82},
};
INSTANTIATE_TEST_SUITE_P(GroupedGemm, Known, testing::ValuesIn(kAnswers));

// FP4 with scales of 2^16 on one group of 16, and of 2^-18 on the next, whose sum is the only one not 0. The grid is
// 2^(16 - 35) where the first group counts for e_max: where its products cancel, not where they are all 0.
TEST(GroupedGemm, Fp4GroupsThatCancelSetTheGridAndEmptyOnesDoNot) {
  constexpr std::uint8_t kHalf = 1, kOne = 2, kMinusOne = 10, k256 = 0x78, kSmallest = 1;
  struct Fp4Case {
    bool cancels;
    std::uint8_t second;  // times 0.5 * 2^-18
    float want;
  };
  for (const Fp4Case& each : {Fp4Case{false, kHalf, 0x1p-20f}, Fp4Case{true, kHalf, 0}, Fp4Case{true, kOne, 0x1p-19f}}) {
    std::array<std::uint8_t, 16> x{}, w{};  // 32 elements, two a byte
    if (each.cancels) {
      x[0] = kOne | kOne << 4;
      w[0] = kOne | kMinusOne << 4;
    }
    x[8] = each.second;
    w[8] = kHalf;
    std::array<std::uint8_t, 512> scales{};
    scales[0] = k256;
    scales[1] = kSmallest;
    const std::int64_t splits[] = {1};
    const float amax = 2688, alpha = 1;  // 2688^2 / 7225344 is 1, and so is its f32 evaluation
    GroupedGemmProblem problem;
    problem.kind = GemmKind::nvfp4;
    problem.splits = splits;
    problem.rows = problem.N = 1;
    problem.K = 32;
    problem.x = {Format::e2m1, x.data(), scales.data(), false, &amax};
    problem.w = {Format::e2m1, w.data(), scales.data(), false, &amax};
    problem.alpha = std::span(&alpha, 1);
    problem.plan = find_accumulation_plan("sm100.nvfp4.chain");
    float d = -1;
    grouped_gemm(problem, &d);
    EXPECT_EQ(d, each.want) << "cancels=" << each.cancels << " second=" << int{each.second};
  }
}

// ---- Dispatch, threads, memory ------------------------------------------------------------------------------------

TEST(GroupedGemm, AnErrorLeavesDUntouched) {
  GemmCase c{.splits = {3, 4}};
  Fixture fixture(c);
  fixture.problem().splits = std::span<const std::int64_t>();
  fixture.problem().kind = static_cast<GemmKind>(9);
  std::vector<std::uint8_t> d(4 * 7 * 70, 0xA5);
  EXPECT_THROW(grouped_gemm(fixture.problem(), d.data()), std::invalid_argument);
  EXPECT_EQ(d, std::vector<std::uint8_t>(4 * 7 * 70, 0xA5));
}

std::uint64_t digest_of_problems() {
  std::uint64_t digest = 0;
  const auto add = [&](GemmCase c) {
    Fixture fixture(c);
    for (const std::uint8_t byte : fixture.run(grouped_gemm)) digest = mixed(digest ^ byte);
  };
  add({.data = Data::cancelling, .splits = {100, 0, 300, 1}, .N = 300, .K = 400});
  add({.data = Data::rare_special, .splits = {70}, .N = 700, .K = 600});
  add({.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_block, .first = Format::e4m3, .second = Format::e4m3, .splits = {30, 40}, .N = 300,
       .K = 700, .interval = 128, .promotion = Promotion::fma_rows_first});
  return digest;
}

// No check of its own: the next test runs this one in separate processes and compares their output.
TEST(GroupedGemm, PrintsDigest) {
  std::printf("digest %llx threads %d narrow %d\n", static_cast<unsigned long long>(digest_of_problems()), thread_count(),
              static_cast<int>(gemm::narrow_kernel_available()));
}

TEST(GroupedGemm, BitsDoNotDependOnThreadsOrInstructions) {
  std::array<char, 4096> path{};
  ASSERT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
  const std::uint64_t want = digest_of_problems();
  for (const char* simd : {"auto", "portable"}) {
    for (const int threads : {1, 2, 5}) {
      std::ostringstream command;
      command << "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_OUTPUT ASSAY_SIMD=" << simd << " ASSAY_THREADS=" << threads << " '"
              << path.data() << "' --gtest_filter=GroupedGemm.PrintsDigest";
      FILE* pipe = popen(command.str().c_str(), "r");
      ASSERT_NE(pipe, nullptr);
      unsigned long long digest = 0;
      int used = 0, narrow = -1;
      std::array<char, 512> line{};
      while (std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr) {
        std::sscanf(line.data(), "digest %llx threads %d narrow %d", &digest, &used, &narrow);
      }
      EXPECT_EQ(pclose(pipe), 0) << command.str();
      EXPECT_EQ(digest, want) << command.str();
      EXPECT_EQ(used, threads) << command.str();
      const bool expected = std::string_view(simd) == "auto" && gemm::narrow_kernel_available();
      EXPECT_EQ(narrow, static_cast<int>(expected)) << command.str();
    }
  }
}

}  // namespace
}  // namespace assay
