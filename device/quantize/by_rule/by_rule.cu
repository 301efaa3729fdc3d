// Quantization by a scale rule on the device: any rule, any block, any storage. A call is up to seven launches:
//
//   measure_groups    one block: sums over the splits; the instructions of the rule to the workspace (long rules: more launches)
//   clear             ranks to 0, and the bytes of padded scales
//   rank_blocks       a warp a strip of 32 rows x 128 columns, a lane four columns; one atomic maximum for each block it meets
//   rank_outer        a thread a block, where an outer amax has to be found; store_outer: a thread an amax, where it is an output
//   evaluate_blocks   a thread a block: its formulas, the scale to its place, what elements use to the workspace.
//                     evaluate_joining_blocks, where the rule joins values of the elements of a block: the thread reads its 16
//                     elements again for each such value, four at a time
//   encode_rows       a warp a strip as above: the formula of the code for four elements side by side, packed, one store
//   encode_columns    transposed codes: a block of 256 threads a tile of 128 rows x 32 columns of a group; lanes take columns, a
//                     thread four rows at a time; the codes are turned in shared memory and leave column by column
//
//   traffic   x is read twice, codes are written once; 12 B a block for its rank, and 8 B for each of its slots
//   ceiling   the interpreter: it reads each instruction from the first cache and decides on it for four elements
//   order     maxima of integers, in any order; everything else is of one element or one block alone. Sums over a block are
//             of one thread, in the order of spec scale-rules-2.4
//   matches   reference/rules/quantize_by_rule.h

#include "device/quantize/by_rule/by_rule.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <string>

#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/quantize/by_rule/block_formulas.cuh"
#include "device/quantize/by_rule/phases.cuh"
#include "device/support/call_checks.h"
#include "device/support/call_device.h"
#include "device/support/launch.cuh"
#include "device/support/measured_instructions.h"

namespace assay::device {
namespace by_rule {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ void add(RuleGroup& sum, const RuleGroup& other) {
  sum.first_row += other.first_row;
  sum.first_block_row += other.first_block_row;
  sum.scale_byte += other.scale_byte;
  sum.first_tile += other.first_tile;
}

// Inclusive over the lanes of a warp.
__device__ RuleGroup scan_warp(RuleGroup own) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int step = 1; step < 32; step *= 2) {
    RuleGroup lower;
    lower.first_row = __shfl_up_sync(0xFFFFFFFFu, static_cast<long long>(own.first_row), step);
    lower.first_block_row = __shfl_up_sync(0xFFFFFFFFu, static_cast<long long>(own.first_block_row), step);
    lower.scale_byte = __shfl_up_sync(0xFFFFFFFFu, static_cast<long long>(own.scale_byte), step);
    lower.first_tile = __shfl_up_sync(0xFFFFFFFFu, static_cast<long long>(own.first_tile), step);
    if (lane >= step) add(own, lower);
  }
  return own;
}

__device__ void copy_chunk(RuleInstruction* program, const RuleChunk& chunk) {
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += static_cast<int>(blockDim.x)) {
    program[chunk.first + i] = chunk.items[i];
  }
}

// One block: thread t has group t.
__global__ void __launch_bounds__(kMaxGroups) measure_groups(const RuleArguments a, const RuleChunk chunk) {
  __shared__ RuleGroup of_warps[kMaxGroups / 32];
  copy_chunk(a.program, chunk);
  const int t = static_cast<int>(threadIdx.x), groups = a.rows.groups;
  unsigned faults = 0;
  RuleGroup own{};
  if (t < groups) {
    const std::int64_t rows = a.rows.splits == nullptr ? a.rows.capacity : group_detail::read_split(a.rows, t, faults);
    if (splits_bytes(a, rows)) faults |= kStatusOddPackedExtent;
    own = measures(a, rows);
  }
  RuleGroup before = scan_warp(own);
  if (t % 32 == 31) of_warps[t / 32] = before;
  __syncthreads();
  for (int warp = 0; warp < t / 32; ++warp) add(before, of_warps[warp]);
  if (t == groups - 1 && before.first_row > a.rows.capacity) faults |= kStatusSplitsExceedRows;
  if (t < groups) {  // sums through group t, which are those before group t + 1
    RuleGroup next = before;
    if (t == groups - 1) next.scale_byte = all_scale_bytes(a, before);
    a.groups[t + 1] = next;
  }
  if (t == 0) a.groups[0] = RuleGroup{};
  if (faults != 0 && a.status != nullptr) atomicOr(a.status, faults);
  const int at_fault = __syncthreads_or(faults != 0 ? 1 : 0);
  if (t == 0) *a.valid = at_fault != 0 ? 0u : 1u;
}

__global__ void __launch_bounds__(kThreads) copy_instructions(RuleInstruction* program, const RuleChunk chunk) {
  copy_chunk(program, chunk);
}

__device__ std::int64_t thread_number() { return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; }
__device__ std::int64_t thread_count() { return static_cast<std::int64_t>(gridDim.x) * kThreads; }

__global__ void __launch_bounds__(kThreads) clear(const RuleArguments a, bool scales) {
  if (*a.valid == 0) return;
  const std::int64_t ranks = blocks(a), outer = a.given_outer == nullptr ? outer_amaxes(a) : 0;
  const std::int64_t bytes = scales ? totals(a).scale_byte : 0;
  for (std::int64_t i = thread_number(); i < ranks; i += thread_count()) a.ranks[i] = 0;
  for (std::int64_t i = thread_number(); i < outer; i += thread_count()) a.outer_ranks[i] = 0;
  for (std::int64_t i = thread_number(); i < bytes; i += thread_count()) a.scale[i] = 0;
}

// The largest rank of the lanes from this one on with the same `target`, all lanes of which lie side by side: the first of them
// has that of all. Called by all lanes.
__device__ std::uint32_t largest_of_run(std::uint32_t rank, std::int64_t target) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int step = 1; step < 32; step *= 2) {
    const std::uint32_t other = __shfl_down_sync(0xFFFFFFFFu, rank, step);
    const std::int64_t its = __shfl_down_sync(0xFFFFFFFFu, static_cast<long long>(target), step);
    if (lane + step < 32 && its == target) rank = max(rank, other);
  }
  return rank;
}
// One atomic maximum for each run. A target below 0: nothing to raise.
__device__ void raise(std::uint32_t* ranks, std::int64_t target, std::uint32_t rank) {
  const std::int64_t before = __shfl_up_sync(0xFFFFFFFFu, static_cast<long long>(target), 1);
  const std::uint32_t largest = largest_of_run(rank, target);
  if (target >= 0 && largest != 0 && (threadIdx.x % 32 == 0 || before != target)) atomicMax(ranks + target, largest);
}

template <Format X>
__global__ void __launch_bounds__(kThreads) rank_blocks(const RuleArguments a, std::int64_t chunks) {
  if (*a.valid == 0) return;
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  rank_strip<X>(a, warp / chunks, warp % chunks, lane,
                [&](std::int64_t block_row, const StripColumns& c, const std::uint32_t(&ranks)[4]) {
                  const std::int64_t first = block_row * a.columns_of_blocks;
                  if (a.block_columns % 4 == 0) {  // the four columns are of one block; those outside have rank 0
                    const std::uint32_t rank = max(max(ranks[0], ranks[1]), max(ranks[2], ranks[3]));
                    return raise(a.ranks, c.count > 0 ? first + c.block[0] : -1, rank);
                  }
#pragma unroll
                  for (int k = 0; k < 4; ++k) raise(a.ranks, k < c.count ? first + c.block[k] : -1, ranks[k]);
                });
}

__global__ void __launch_bounds__(kThreads) rank_outer(const RuleArguments a) {
  if (*a.valid == 0) return;
  const std::int64_t block = thread_number();
  const bool inside = block < blocks(a);
  raise(a.outer_ranks, inside ? outer_of_block(a, block) : -1, inside ? a.ranks[block] : 0);
}

__global__ void __launch_bounds__(kThreads) store_outer(const RuleArguments a) {
  if (*a.valid == 0) return;
  const std::int64_t i = thread_number();
  if (i < outer_amaxes(a)) a.outer_amax[i] = stored_float(outer_amax(a, i));
}

__global__ void __launch_bounds__(kThreads) evaluate_blocks(const RuleArguments a) {
  if (*a.valid == 0) return;
  const std::int64_t block = thread_number();
  if (block < blocks(a)) evaluate_block<BlockValues>(a, block);
}

template <Format X>
__global__ void __launch_bounds__(kThreads) evaluate_joining_blocks(const RuleArguments a) {
  if (*a.valid == 0) return;
  const std::int64_t block = thread_number();
  if (block < blocks(a)) evaluate_block<JoiningBlockValues<X>>(a, block);
}

template <Format X>
__global__ void __launch_bounds__(kThreads) encode_rows(const RuleArguments a, std::int64_t chunks) {
  if (*a.valid == 0) return;
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  encode_strip<X>(a, warp / chunks, warp % chunks, static_cast<int>(threadIdx.x % 32));
}

template <Format X>
__global__ void __launch_bounds__(kThreads) encode_columns(const RuleArguments a, std::int64_t column_tiles) {
  constexpr int kQuads = kTileRows / 4;
  __shared__ std::uint32_t words[kTileColumns][kQuads + 1];  // one more: lanes of a warp write to different banks
  if (*a.valid == 0) return;
  const std::int64_t number = blockIdx.x / column_tiles;
  if (number >= totals(a).first_tile) return;
  const RuleTile tile = find_tile(a, number, blockIdx.x % column_tiles);
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  for (int quad = warp; quad < kQuads; quad += kWarps) words[lane][quad] = encode_quad<X>(a, tile, quad, lane);
  __syncthreads();
  const int bytes = kTileRows * a.code_bits / 8;
  for (int column = warp; column < kTileColumns; column += kWarps) {
    for (int b = lane; b < bytes; b += 32) store_byte(a, tile, column, b, [&](int quad) { return words[column][quad]; });
  }
}

// Blocks of threads for `items`, `each` a block. Errors: NotSupported.
dim3 grid_of(std::int64_t items, std::int64_t each) {
  const std::int64_t blocks = (items + each - 1) / each;
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    throw NotSupported("the matrix takes " + std::to_string(blocks) + " blocks of threads: at most 2^31 - 1 are supported");
  }
  return {static_cast<unsigned>(blocks)};
}

template <Format X>
void launch_elements(const RuleArguments& a, bool ranks, bool codes, Stream stream) {
  const std::int64_t chunks = ceil_div(a.columns, kStripColumns), strips = ceil_div(a.rows.capacity, kStripRows);
  if (ranks) {
    launch_kernel("by_rule: rank_blocks", rank_blocks<X>, grid_of(strips * chunks, kWarps), kThreads, 0, stream, a, chunks);
  }
  if (!codes) return;
  if (!a.transposed) {
    launch_kernel("by_rule: encode_rows", encode_rows<X>, grid_of(strips * chunks, kWarps), kThreads, 0, stream, a, chunks);
    return;
  }
  const std::int64_t column_tiles = ceil_div(a.columns, kTileColumns);
  launch_kernel("by_rule: encode_columns", encode_columns<X>, grid_of(max_tiles(a.rows, kTileRows) * column_tiles, 1), kThreads,
                0, stream, a, column_tiles);
}
void launch_elements(Format x_type, const RuleArguments& a, bool ranks, bool codes, Stream stream) {
  const auto launch = x_type == Format::bf16  ? launch_elements<Format::bf16>
                      : x_type == Format::f16 ? launch_elements<Format::f16>
                                              : launch_elements<Format::f32>;
  launch(a, ranks, codes, stream);
}

void launch_blocks(bool joins, Format x_type, const RuleArguments& a, Stream stream) {
  const auto joining = x_type == Format::bf16  ? evaluate_joining_blocks<Format::bf16>
                       : x_type == Format::f16 ? evaluate_joining_blocks<Format::f16>
                                               : evaluate_joining_blocks<Format::f32>;
  launch_kernel(joins ? "by_rule: evaluate_joining_blocks" : "by_rule: evaluate_blocks", joins ? joining : evaluate_blocks,
                grid_of(a.most_blocks, kThreads), kThreads, 0, stream, a);
}

void launch_measures(const RulePlan& plan, const RuleArguments& a, Stream stream) {
  const auto& all = plan.program.instructions;
  const int count = static_cast<int>(all.size());
  for (int first = 0; first < count; first += kChunk) {
    RuleChunk chunk{};
    chunk.first = first;
    chunk.count = std::min(kChunk, count - first);
    std::copy_n(all.begin() + first, chunk.count, chunk.items);
    if (first == 0) {
      launch_kernel("by_rule: measure_groups", measure_groups, 1, kMaxGroups, 0, stream, a, chunk);
    } else {
      launch_kernel("by_rule: copy_instructions", copy_instructions, 1, kThreads, 0, stream, a.program, chunk);
    }
  }
}

void check_pointers(const QuantizeByRuleCall& call) {
  if (call.rows.capacity != 0 && call.columns != 0) {
    require_pointer(call.x, "x", static_cast<std::uintptr_t>(wide_bytes(call.x_type)));
  }
  check_alignment(call.outer_amax, "outer_amax", 4);
  check_alignment(call.output_to.scale, "output_to.scale", call.rule->scale_type == Format::f32 ? 4 : 1);
  check_alignment(call.output_to.outer_amax, "output_to.outer_amax", 4);
  check_alignment(call.status, "status", 4);
}

}  // namespace
}  // namespace by_rule

std::int64_t quantize_by_rule_workspace_bytes(const QuantizeByRuleCall& call) { return by_rule::rule_plan(call).workspace_bytes; }

void quantize_by_rule(const QuantizeByRuleCall& call, Stream stream) {
  using namespace by_rule;
  const RulePlan plan = rule_plan(call);
  by_rule::check_pointers(call);
  check_workspace(call.workspace, call.workspace_bytes, plan.workspace_bytes);
  if (call.rows.groups == 0) return;
  const CallDevice device(stream, {{"x", call.x},
                                   {"rows.splits", call.rows.splits},
                                   {"output_to.data", call.output_to.data},
                                   {"output_to.scale", call.output_to.scale},
                                   {"status", call.status}});
  if (plan.program.approximate) require_measured_instructions("the rule");
  const RuleArguments a = bound(plan, call.workspace);
  launch_measures(plan, a, stream);

  const bool elements = a.most_blocks != 0;
  const bool codes = elements && a.data != nullptr, scales = elements && a.scale != nullptr;
  const bool finds_outer = a.outer_amaxes != 0 && a.given_outer == nullptr && (codes || scales || a.outer_amax != nullptr);
  const bool ranks = codes || scales || (elements && finds_outer);
  const bool clears = scales && clears_bytes(a.order);
  if (ranks || finds_outer) {
    const std::int64_t most = std::max(a.most_blocks, a.outer_amaxes), few = 4096 * std::int64_t{kThreads};
    launch_kernel("by_rule: clear", clear, grid_of(std::clamp<std::int64_t>(most, 1, few), kThreads), kThreads, 0, stream, a,
                  clears);
  }
  if (ranks) launch_elements(call.x_type, a, true, false, stream);
  if (elements && finds_outer) {
    launch_kernel("by_rule: rank_outer", rank_outer, grid_of(a.most_blocks, kThreads), kThreads, 0, stream, a);
  }
  if (a.outer_amax != nullptr && a.outer_amaxes != 0) {
    launch_kernel("by_rule: store_outer", store_outer, grid_of(a.outer_amaxes, kThreads), kThreads, 0, stream, a);
  }
  if (codes || scales) {
    launch_blocks(plan.program.joins, call.x_type, a, stream);
  }
  if (codes) launch_elements(call.x_type, a, false, true, stream);
}

}  // namespace assay::device
