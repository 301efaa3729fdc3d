#pragma once
// A whole call of quantize_by_rule() without a device: the kernels' functions of each thread, one thread after another.

#include <algorithm>
#include <cstring>
#include <vector>

#include "device/quantize/by_rule/block_formulas.cuh"
#include "device/quantize/by_rule/phases.cuh"

namespace assay::device::by_rule {

// What measure_groups leaves: sums over the groups. False: the splits are at fault.
inline bool measure_on_host(const RulePlan& plan, const RuleArguments& a) {
  std::copy(plan.program.instructions.begin(), plan.program.instructions.end(), a.program);
  RuleGroup sum{};
  for (int t = 0; t < a.rows.groups; ++t) {
    a.groups[t] = sum;
    const std::int64_t rows = a.rows.splits == nullptr ? a.rows.capacity : a.rows.splits[t];
    if (splits_bytes(a, rows)) return false;
    const RuleGroup own = measures(a, rows);
    sum.first_row += own.first_row;
    sum.first_block_row += own.first_block_row;
    sum.scale_byte += own.scale_byte;
    sum.first_tile += own.first_tile;
  }
  sum.scale_byte = all_scale_bytes(a, sum);
  a.groups[a.rows.groups] = sum;
  return true;
}

template <Format X>
void rank_on_host(const RuleArguments& a) {
  for (std::int64_t strip = 0; strip * kStripRows < a.rows.capacity; ++strip) {
    for (std::int64_t chunk = 0; chunk * kStripColumns < a.columns; ++chunk) {
      for (int lane = 0; lane < 32; ++lane) {
        rank_strip<X>(a, strip, chunk, lane, [&](std::int64_t block_row, const StripColumns& c, const std::uint32_t(&ranks)[4]) {
          for (int k = 0; k < c.count; ++k) {
            std::uint32_t& rank = a.ranks[block_row * a.columns_of_blocks + c.block[k]];
            rank = std::max(rank, ranks[k]);
          }
        });
      }
    }
  }
}

template <Format X>
void encode_on_host(const RuleArguments& a) {
  if (!a.transposed) {
    for (std::int64_t strip = 0; strip * kStripRows < a.rows.capacity; ++strip) {
      for (std::int64_t chunk = 0; chunk * kStripColumns < a.columns; ++chunk) {
        for (int lane = 0; lane < 32; ++lane) encode_strip<X>(a, strip, chunk, lane);
      }
    }
    return;
  }
  for (std::int64_t number = 0; number < totals(a).first_tile; ++number) {
    for (std::int64_t column_tile = 0; column_tile * kTileColumns < a.columns; ++column_tile) {
      const RuleTile tile = find_tile(a, number, column_tile);
      for (int column = 0; column < kTileColumns; ++column) {
        std::uint32_t words[kTileRows / 4];
        for (int quad = 0; quad < kTileRows / 4; ++quad) words[quad] = encode_quad<X>(a, tile, quad, column);
        for (int b = 0; b < kTileRows * a.code_bits / 8; ++b) {
          store_byte(a, tile, column, b, [&](int quad) { return words[quad]; });
        }
      }
    }
  }
}

template <Format X>
void run_of_type(const RuleArguments& a, bool joins) {
  const bool finds_outer = a.outer != OuterAmax::none && a.given_outer == nullptr;
  std::fill_n(a.ranks, blocks(a), 0u);
  if (finds_outer) std::fill_n(a.outer_ranks, outer_amaxes(a), 0u);
  if (a.scale != nullptr && clears_bytes(a.order)) std::memset(a.scale, 0, static_cast<std::size_t>(totals(a).scale_byte));
  rank_on_host<X>(a);
  for (std::int64_t block = 0; finds_outer && block < blocks(a); ++block) {
    std::uint32_t& rank = a.outer_ranks[outer_of_block(a, block)];
    rank = std::max(rank, a.ranks[block]);
  }
  for (std::int64_t i = 0; a.outer_amax != nullptr && i < outer_amaxes(a); ++i) a.outer_amax[i] = stored_float(outer_amax(a, i));
  for (std::int64_t block = 0; block < blocks(a); ++block) {
    joins ? evaluate_block<JoiningBlockValues<X>>(a, block) : evaluate_block<BlockValues>(a, block);
  }
  if (a.data != nullptr) encode_on_host<X>(a);
}

// The workspace has `poison` in every byte, as a device's may. False: the splits are at fault.
inline bool run_on_host(const QuantizeByRuleCall& call, std::uint8_t poison) {
  const RulePlan plan = rule_plan(call);
  std::vector<std::uint64_t> workspace(static_cast<std::size_t>(plan.workspace_bytes / 8 + 1));
  std::memset(workspace.data(), poison, workspace.size() * 8);
  const RuleArguments a = bound(plan, workspace.data());
  if (!measure_on_host(plan, a)) return false;
  switch (call.x_type) {
    case Format::bf16: run_of_type<Format::bf16>(a, plan.program.joins); break;
    case Format::f16: run_of_type<Format::f16>(a, plan.program.joins); break;
    default: run_of_type<Format::f32>(a, plan.program.joins); break;
  }
  return true;
}

}  // namespace assay::device::by_rule
