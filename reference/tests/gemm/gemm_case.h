#pragma once
// A grouped GEMM as a value: its operands, its call in either layer, how a case is printed, and the comparison of all of D.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <sstream>
#include <string_view>
#include <vector>

#include "reference/gemm/epilogue.h"
#include "reference/gemm/fused_kernel.h"
#include "reference/gemm/grouped_gemm.h"
#include "reference/gemm/plan.h"
#include "reference/layout/scale_shape.h"
#include "reference/tests/gemm/operand_data.h"

namespace assay::gemm_suite {

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

inline std::ostream& operator<<(std::ostream& out, const GemmCase& c) {
  if (c.line != nullptr) out << "plan " << c.line << " ";
  out << "unit=" << c.unit << " kind=" << name_of(c.kind) << " layout=" << name_of(c.layout) << " types=" << name_of(c.first)
      << "x" << name_of(c.second) << " data=" << name_of(c.data) << " splits=";
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
inline bool special_scales(Data data) { return data == Data::raw; }

inline void fill_scales(StoredOperand& stored, const GemmCase& c, Format scale_type, std::int64_t count, Random random) {
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
inline StoredOperand stored_operand(const GemmCase& c, Format type, bool second, const std::vector<std::int64_t>& group_rows,
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
  for (std::size_t t = 0; t < group_rows.size(); ++t)
    stored.amax.push_back(0.3f + static_cast<float>(random.below(1000)) * 0.01f);
  if (!half) {
    const Recipe recipe = c.kind == GemmKind::fp8_per_tensor ? Recipe::tensor_current
                          : c.kind == GemmKind::mxfp8        ? Recipe::mxfp8
                          : c.kind == GemmKind::nvfp4        ? Recipe::nvfp4
                          : tiles                            ? Recipe::block_128x128
                                                             : Recipe::block_1x128;
    const Direction direction = stored.operand.columnwise ? Direction::columnwise : Direction::rowwise;
    const std::int64_t count = scale_offsets(recipe, direction, group_rows, columns).back();
    fill_scales(stored, c, scale_format(recipe),
                std::max(count, total_rows + columns * static_cast<std::int64_t>(group_rows.size())) + 1, random);
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

inline std::uint32_t word(const std::vector<std::uint8_t>& bytes, Format type, std::int64_t at) {
  std::uint32_t code = 0;
  const auto size = static_cast<std::size_t>(bits_of(type) / 8);
  std::memcpy(&code, bytes.data() + static_cast<std::size_t>(at) * size, size);
  return code;
}

inline testing::AssertionResult same_bits(const std::vector<std::uint8_t>& want, const std::vector<std::uint8_t>& got,
                                          Format type, std::int64_t columns) {
  if (want == got) return testing::AssertionSuccess();
  const auto count = static_cast<std::int64_t>(want.size()) / (bits_of(type) / 8);
  std::int64_t different = 0, first = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    if (word(want, type, i) == word(got, type, i)) continue;
    if (first < 0) first = i;
    ++different;
  }
  std::ostringstream text;
  text << "row " << first / columns << ", column " << first % columns << ": want 0x" << std::hex << word(want, type, first)
       << ", got 0x" << word(got, type, first) << std::dec << "; " << different << " of " << count << " differ";
  return testing::AssertionFailure() << text.str();
}

// Restores the kernel that the machine would use.
struct NarrowKernel {
  explicit NarrowKernel(bool allowed) { gemm::allow_narrow_kernel(allowed); }
  ~NarrowKernel() { gemm::allow_narrow_kernel(true); }
};

inline void expect_equal_layers(const GemmCase& c) {
  SCOPED_TRACE(testing::Message() << c);
  Fixture fixture(c);
  const std::vector<std::uint8_t> want = fixture.run(scalar::grouped_gemm);
  for (const bool narrow : {true, false}) {
    const NarrowKernel kernel(narrow);
    EXPECT_TRUE(same_bits(want, fixture.run(grouped_gemm), c.d_type, fixture.columns()))
        << (narrow ? "machine's kernel" : "plain kernel");
  }
}

}  // namespace assay::gemm_suite
