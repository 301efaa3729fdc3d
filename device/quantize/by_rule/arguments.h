#pragma once
// What the kernels of a call share, and how the workspace is divided among them.
//
// The matrix is cut into blocks that share a scale, counted from the first row of each group; `block` numbers are over all
// groups, row of blocks by row of blocks:
//
//   block = (first_block_row of the group + i) * columns_of_blocks + j
//
//   workspace   groups        RuleGroup [groups + 1], the last one: the sums over all
//               valid         u32 [1], 0 where the splits are at fault: every kernel then does nothing
//               instructions  of the program
//               ranks         u32 [blocks] magnitudes as bits, whose order is that of the magnitudes
//               outer_ranks   u32 [groups] or [rows], where the rule has an outer amax that is not given
//               slots         f32 [slots][blocks]

#include <cstdint>

#include "device/layout/groups.h"
#include "device/quantize/by_rule/by_rule.h"
#include "device/quantize/by_rule/program.h"
#include "device/quantize/by_rule/round_code.cuh"

namespace assay::device::by_rule {

inline constexpr int kStripRows = 32;      // rows of a warp's strip
inline constexpr int kStripColumns = 128;  // 4 a lane
inline constexpr int kTileRows = 128;      // of transposed codes
inline constexpr int kTileColumns = 32;

// Sums over the groups before one, and its own rows.
struct RuleGroup {
  std::int64_t first_row;
  std::int64_t first_block_row;
  std::int64_t scale_byte;  // of the group's scales, where each group is stored by itself; of the last entry: bytes of all scales
  std::int64_t first_tile;  // of kTileRows rows
};

struct RuleArguments {
  const void* x;
  Rows rows;
  std::int64_t columns;
  std::int64_t block_rows;  // 0: all rows of the group
  std::int64_t block_columns;
  std::int64_t columns_of_blocks;
  std::int64_t most_blocks;   // of any splits
  std::int64_t outer_amaxes;  // capacity: groups or rows
  ScaleStorage::Order order;
  bool per_group;
  bool transposed;
  bool propagates_nan;
  bool vectors_in, vectors_out;  // four elements, or four codes, as one access
  int scale_size;                // bytes of a scale
  int code_bits;
  Format scale_type;
  OuterAmax outer;
  RuleRounding rounding;
  const float* given_outer;
  std::uint8_t* data;
  std::uint8_t* scale;
  float* outer_amax;
  std::uint32_t* status;
  RuleGroup* groups;
  std::uint32_t* valid;
  RuleInstruction* program;
  int of_block, of_element, of_activation;
  std::uint32_t* ranks;
  std::uint32_t* outer_ranks;
  float* slots;
};

// Instructions that one launch carries in its parameters; more take more launches.
inline constexpr int kChunk = 384;
struct RuleChunk {
  int first, count;
  RuleInstruction items[kChunk];
};
static_assert(sizeof(RuleArguments) + sizeof(RuleChunk) <= 4000, "parameters of a kernel are 4 KiB");

// Sizes of a call and the parts of its workspace.
struct RulePlan {
  RuleProgram program;
  RuleArguments arguments;  // pointers into the workspace are from its beginning
  std::int64_t workspace_bytes;
};
// Errors: those of quantize_by_rule() that need no pointer and no device.
RulePlan rule_plan(const QuantizeByRuleCall& call);
// The arguments for the call's own workspace.
RuleArguments bound(const RulePlan& plan, void* workspace);

}  // namespace assay::device::by_rule
