// Layer (b). D is cut into tiles that threads take one by one; a tile walks K in chunks whose operands are decoded once,
// and every 8 x 64 block of it keeps its running values from chunk to chunk. No tile reads what another writes, and the
// order within an element is the plan's, so neither threads nor tiles can change a bit.

#include "reference/gemm/grouped_gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "reference/gemm/epilogue.h"
#include "reference/gemm/fused_kernel.h"
#include "reference/gemm/merge_shape.h"
#include "reference/gemm/packed_operand.h"
#include "reference/gemm/problem.h"
#include "reference/gemm/quantized_output.h"
#include "reference/support/parallel.h"
#include "reference/types/sizes.h"

namespace assay {
namespace gemm {
namespace {

constexpr std::int64_t kTileRows = 256;  // an element of a column is decoded once per tile: rows pay for it
constexpr std::int64_t kMaxTileColumns = 256;
constexpr std::int64_t kChunkSlots = 256;  // rows of a tile and one panel, decoded: 512 + 80 KiB, within a level-2 cache
constexpr std::int64_t kBlock = kRowGroup * kPanel;

// The kernels below are for fused steps whose numbers they can hold (fused_kernel.h): a half of the terms below 2^31, a floor
// below the exponent of every C. Units of other numbers and sums go element by element.
bool kernels_take(const TensorCoreUnit& unit) {
  if (unit.sum != StepSum::fused || unit.products_per_step % 2 != 0) return false;
  if (unit.scaling == StepScaling::e4m3_per_16) {
    return unit.products_per_step == kFp4Group * kFp4Groups && unit.fraction_bits <= 35 && unit.zero_floor <= -126;
  }
  bool wide = false;
  for (const Format each : unit.operands) wide = wide || bits_of(each) >= 16;
  const int half = unit.products_per_step / (unit.execution == Execution::emulated_fp8 ? 4 : 2);
  const double largest = half * (wide ? 4.0 : 3.6) + 2;  // products, of 1.875^2 and less where operands are narrow, and C
  const bool fits = unit.fraction_bits <= 25 && std::ldexp(largest, unit.fraction_bits) <= 0x1p31;
  return unit.group == 1 && fits && unit.zero_floor <= (unit.accumulator == Accumulator::f16_nearest ? -14 : -126);
}

ChainRule rule_of(const TensorCoreUnit& unit, const AccumulationPlan& plan) {
  ChainRule rule;
  rule.linked = unit.execution == Execution::emulated_fp8;
  rule.products = rule.linked ? unit.products_per_step / 2 : unit.products_per_step;
  rule.fraction_bits = unit.fraction_bits;
  rule.zero_floor = unit.zero_floor;
  rule.accumulator = unit.accumulator;
  rule.scaling = unit.scaling;
  rule.promotion = plan.promotion;
  rule.widen = rule.linked ? Format::f16 : plan.widen;  // emulated FP8 steps multiply f16
  rule.flushes = plan.subnormals == Subnormals::flushed;
  return rule;
}

// The steps of one slice, in order, a chunk at a time.
class StepWalk {
 public:
  StepWalk(const ChainRule& rule, std::int64_t begin, std::int64_t end, std::int64_t promotion_interval)
      : rule_(rule), k_(begin), end_(end), interval_(promotion_interval), interval_end_(end_of_interval(begin)) {}

  // The next steps, as many as a chunk holds; none when the slice is done.
  void next(std::vector<Step>& steps) {
    const auto max_steps = static_cast<std::size_t>(kChunkSlots / rule_.products);
    const int advance = rule_.linked ? 2 * rule_.products : rule_.products;
    steps.clear();
    while (k_ < end_ && steps.size() + (rule_.linked ? 2 : 1) <= max_steps) {
      Step step;
      step.k = k_;
      step.count = static_cast<int>(std::min<std::int64_t>(advance, interval_end_ - k_));
      if (rule_.linked) {
        step.slots = Slots::low_pairs;
        steps.push_back(step);
        step.slots = Slots::high_pairs;
        step.ends_link = true;
      }
      k_ += step.count;
      step.ends_interval = k_ == interval_end_;
      if (step.ends_interval && k_ < end_) step.next_k = k_;
      steps.push_back(step);
      if (step.ends_interval) interval_end_ = end_of_interval(k_);
    }
  }

 private:
  std::int64_t end_of_interval(std::int64_t begin) const {
    return interval_ == 0 || interval_ > end_ - begin ? end_ : begin + interval_;
  }
  const ChainRule& rule_;
  std::int64_t k_, end_, interval_, interval_end_;
};

// Buffers that a thread keeps from tile to tile.
struct Workspace {
  std::vector<PackedOperand> rows = std::vector<PackedOperand>(kTileRows / kRowGroup);
  PackedOperand columns;
  std::vector<Step> steps;
  Buffer<float> chain, link, partial, total, line, column_scale;
  std::vector<Buffer<float>> waiting;  // sums of a tree that wait for the other side
  std::vector<char> wide;              // blocks that have left the narrow kernel in this slice
};

// One tile of one group.
struct Tile {
  const GroupedGemmView* view;
  const GroupView* group;
  const ChainRule* rule;
  std::int64_t first_row, rows;
  std::int64_t first_column, columns;
  std::int64_t row_groups() const { return ceil_div(rows, kRowGroup); }
  std::int64_t panels() const { return ceil_div(columns, kPanel); }
  std::size_t values() const { return static_cast<std::size_t>(row_groups() * panels() * kBlock); }
};

void run_chunk(const Tile& tile, Workspace& work) {
  const ChainRule& rule = *tile.rule;
  const Chunk chunk{&rule, work.steps.data(), static_cast<std::int64_t>(work.steps.size())};
  const bool narrow = narrow_kernel_available() && narrow_kernel_takes(rule);
  const auto rows_in = [&](std::int64_t g) {
    return static_cast<int>(std::min<std::int64_t>(kRowGroup, tile.rows - g * kRowGroup));
  };
  for (std::int64_t g = 0; g < tile.row_groups(); ++g) {
    work.rows[static_cast<std::size_t>(g)].pack(tile.group->rows, tile.first_row + g * kRowGroup, rows_in(g), kRowGroup, chunk,
                                                narrow);
  }
  for (std::int64_t p = 0; p < tile.panels(); ++p) {
    const int columns = static_cast<int>(std::min<std::int64_t>(kPanel, tile.columns - p * kPanel));
    work.columns.pack(tile.group->columns, tile.first_column + p * kPanel, columns, kPanel, chunk, narrow);
    for (std::int64_t g = 0; g < tile.row_groups(); ++g) {
      PackedOperand& rows = work.rows[static_cast<std::size_t>(g)];
      const std::int64_t block = p * tile.row_groups() + g;
      KernelCall call;
      call.rule = &rule;
      call.steps = chunk.steps;
      call.step_count = chunk.step_count;
      call.rows = rows_in(g);
      call.state = {work.chain.data() + block * kBlock, work.link.data() + block * kBlock, work.partial.data() + block * kBlock};
      if (rule.scaling == StepScaling::e4m3_per_16) {
        call.row_lines = rows.lines();
        call.column_lines = work.columns.lines();
        run_fp4(call);
        continue;
      }
      // The narrow kernel needs the chain that it wrote itself: after a wide chunk a block stays wide.
      char& wide = work.wide[static_cast<std::size_t>(block)];
      wide = wide || !narrow || !rows.narrow() || !work.columns.narrow();
      if (wide) {
        rows.widen();
        work.columns.widen();
      }
      call.row_lines = rows.lines();
      call.column_lines = work.columns.lines();
      wide ? run_wide(call) : run_narrow(call);
    }
  }
}

// partial = the sum over products [begin, end).
void run_slice(const Tile& tile, std::int64_t begin, std::int64_t end, Workspace& work) {
  std::fill_n(work.chain.take(tile.values()), tile.values(), 0.0f);
  std::fill_n(work.link.take(tile.values()), tile.values(), 0.0f);
  std::fill_n(work.partial.take(tile.values()), tile.values(), 0.0f);
  work.wide.assign(tile.values() / kBlock, 0);
  StepWalk walk(*tile.rule, begin, end, tile.view->plan->promotion_interval);
  for (walk.next(work.steps); !work.steps.empty(); walk.next(work.steps)) run_chunk(tile, work);
}

// A tree of neighbours in postfix: as a binary counter adds up, a value joins the one before it as often as its number has
// trailing ones; what is left joins from the end.
std::vector<std::int64_t> postfix_of_pairs(std::int64_t slices) {
  std::vector<std::int64_t> postfix;
  for (std::int64_t slice = 0; slice < slices; ++slice) {
    postfix.push_back(slice);
    for (std::int64_t rest = slice; rest % 2 == 1; rest /= 2) postfix.push_back(-1);
  }
  for (int left = std::popcount(static_cast<std::uint64_t>(slices)); left > 1; --left) postfix.push_back(-1);
  return postfix;
}

// Slices merged as a tree, its leaves from left to right.
const float* accumulate_tree(const Tile& tile, Workspace& work) {
  const AccumulationPlan& plan = *tile.view->plan;
  const std::int64_t depth = tile.group->depth;
  const bool shaped = plan.merge == SliceMerge::shape_f32;
  const std::vector<std::int64_t> postfix = shaped ? postfix_of_shape(plan.merge_shape) : postfix_of_pairs(plan.slices);
  std::size_t waiting = 0;
  for (const std::int64_t item : postfix) {
    if (item >= 0) {
      const std::int64_t begin = item > depth / plan.slice_length ? depth : item * plan.slice_length;
      run_slice(tile, begin, begin + std::min(plan.slice_length, depth - begin), work);
      if (work.waiting.size() == waiting) work.waiting.emplace_back();
      std::copy_n(work.partial.data(), tile.values(), work.waiting[waiting++].take(tile.values()));
    } else {
      float* left = work.waiting[waiting - 2].data();
      const float* right = work.waiting[--waiting].data();
      for (std::size_t i = 0; i < tile.values(); ++i) left[i] = left[i] + right[i];
    }
  }
  return work.waiting[0].data();
}

// The accumulated values of the tile, slices merged in order.
const float* accumulate(const Tile& tile, Workspace& work) {
  const AccumulationPlan& plan = *tile.view->plan;
  const std::int64_t depth = tile.group->depth;
  if (plan.slices == 1) {
    run_slice(tile, 0, depth, work);
    return work.partial.data();
  }
  if (plan.merge == SliceMerge::tree_f32 || plan.merge == SliceMerge::shape_f32) return accumulate_tree(tile, work);
  const bool stored = plan.merge == SliceMerge::sequential_output;
  const auto count = static_cast<std::int64_t>(tile.values());
  float* total = work.total.take(tile.values());
  std::int64_t begin = 0;
  std::int64_t slice = 0;
  for (; slice < plan.slices && begin < depth; ++slice) {
    const std::int64_t end = begin + std::min(plan.slice_length, depth - begin);
    run_slice(tile, begin, end, work);
    float* partial = work.partial.data();
    if (stored) round_to(tile.view->d_type, partial, count);
    for (std::int64_t i = 0; i < count; ++i) total[i] = slice == 0 ? partial[i] : total[i] + partial[i];
    if (stored && slice > 0) round_to(tile.view->d_type, total, count);
    begin = end;
  }
  // Slices past the end of K add +0, which only turns -0 into +0: once is enough.
  if (slice < plan.slices) {
    for (std::int64_t i = 0; i < count; ++i) total[i] = total[i] + 0.0f;
  }
  return total;
}

// What multiplies the sum: alpha and the scales that belong to a whole group (spec grouped-gemm-2.2). Without
// products alpha alone (plan.h).
float sum_factor(const GroupedGemmView& view, const GroupView& group) {
  if (group.depth == 0) return group.alpha;
  switch (view.kind) {
    case GemmKind::fp8_per_tensor: {
      if (view.plan->scale_vectors != ScaleVectors::none) return group.alpha;
      const float columns_first = group.alpha * group.columns.scale.value(0, 0);
      return columns_first * group.rows.scale.value(0, 0);
    }
    case GemmKind::nvfp4: {
      const float columns_first = group.alpha * group.columns.amax;
      const float both = columns_first * group.rows.amax;
      return both * (1.0f / 7225344.0f);  // (6 * 448)^2 is exact in f32, so this is its inverse rounded once
    }
    default: return group.alpha;
  }
}

void run_tile(const Tile& tile, void* d, Workspace& work) {
  const GroupedGemmView& view = *tile.view;
  const GroupView& group = *tile.group;
  const bool no_products = group.depth == 0;  // acc = +0, and the epilogue is that of every other group (plan.h)
  const float* sums = no_products ? nullptr : accumulate(tile, work);
  const AccumulationPlan& plan = *view.plan;
  const bool reduces = plan.epilogue != GemmEpilogue::scaled_alpha_beta;
  const bool flushes = plan.epilogue == GemmEpilogue::reduce_add_ftz;
  const Epilogue epilogue{view.d_type, sum_factor(view, group), group.beta, reduces, flushes, no_products};
  float* line = work.line.take(static_cast<std::size_t>(kMaxTileColumns));
  const bool vectors = plan.scale_vectors != ScaleVectors::none && !no_products;
  float* column_scale = work.column_scale.take(static_cast<std::size_t>(kMaxTileColumns));
  for (std::int64_t j = 0; vectors && j < tile.columns; ++j)
    column_scale[j] = group.columns.scale.value(tile.first_column + j, 0);
  if (no_products) std::fill_n(line, kMaxTileColumns, 0.0f);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    for (std::int64_t p = 0; p < tile.panels() && !no_products; ++p) {
      const std::int64_t block = p * tile.row_groups() + row / kRowGroup;
      std::copy_n(sums + block * kBlock + row % kRowGroup * kPanel, kPanel, line + p * kPanel);
    }
    if (vectors) {
      apply_scales(plan.scale_vectors, plan.subnormals, group.rows.scale.value(tile.first_row + row, 0), column_scale, line,
                   tile.columns);
    }
    const void* bias = group.bias;
    if (bias != nullptr) bias = static_cast<const std::uint8_t*>(bias) + bytes_of(view.d_type, tile.first_column);
    const std::int64_t at = group.d_offset + (tile.first_row + row) * group.n + tile.first_column;
    store(epilogue, line, view.c, bias, d, at, tile.columns);
  }
}

// Tiles of every group, numbered one after another.
class Tiling {
 public:
  Tiling(const GroupedGemmView& view, std::int64_t tile_columns) : view_(view), tile_columns_(tile_columns) {
    for (const GroupView& group : view.groups) {
      first_.push_back(count_);
      count_ += ceil_div(group.m, kTileRows) * ceil_div(group.n, tile_columns);
    }
  }
  std::int64_t count() const { return count_; }

  Tile tile(std::int64_t index, const ChainRule& rule) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), index);
    const auto t = static_cast<std::size_t>(after - first_.begin()) - 1;
    const GroupView& group = view_.groups[t];
    const std::int64_t row_tiles = ceil_div(group.m, kTileRows);
    const std::int64_t local = index - first_[t];
    const std::int64_t first_row = local % row_tiles * kTileRows;
    const std::int64_t first_column = local / row_tiles * tile_columns_;
    return {&view_,
            &group,
            &rule,
            first_row,
            std::min(kTileRows, group.m - first_row),
            first_column,
            std::min(tile_columns_, group.n - first_column)};
  }

 private:
  const GroupedGemmView& view_;
  std::int64_t tile_columns_;
  std::vector<std::int64_t> first_;  // number of each group's first tile
  std::int64_t count_ = 0;
};

}  // namespace
}  // namespace gemm

void grouped_gemm(const GroupedGemmProblem& problem, void* d) {
  const GroupedGemmView view = view_of(problem, d);
  if (is_quantized_output(problem.d_type)) {
    std::vector<float> values(static_cast<std::size_t>(grouped_gemm_shape(problem).rows * grouped_gemm_shape(problem).columns));
    grouped_gemm(with_f32_output(problem, view), values.data());
    return assay::quantize_output(view, values.data(), d);
  }
  if (!gemm::kernels_take(*view.unit)) return scalar::grouped_gemm(problem, d);
  const gemm::ChainRule rule = gemm::rule_of(*view.unit, *view.plan);

  // Narrower tiles where wide ones would leave threads without work.
  std::int64_t tile_columns = gemm::kMaxTileColumns;
  while (tile_columns > gemm::kPanel && gemm::Tiling(view, tile_columns).count() < 4 * thread_count()) tile_columns /= 2;
  const gemm::Tiling tiling(view, tile_columns);

  parallel_for(tiling.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    static thread_local gemm::Workspace work;
    for (std::int64_t index = begin; index < end; ++index) gemm::run_tile(tiling.tile(index, rule), d, work);
  });
}

}  // namespace assay
