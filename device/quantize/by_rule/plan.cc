// The checks of a call that need no device, and the division of its workspace.

#include <algorithm>
#include <string>

#include "device/quantize/by_rule/arguments.h"
#include "device/support/call_checks.h"

namespace assay::device::by_rule {
namespace {

void check_types(const QuantizeByRuleCall& call) {
  if (call.rule == nullptr) throw InvalidArgument("rule is null: expected a scale rule");
  check_wide(call.x_type, "x_type");
  const Format output = call.output;
  const bool small = is_fp8(output) || output == Format::e3m2 || output == Format::e2m3 || output == Format::e2m1;
  if (!small) require(false, "output", format_name(output), "e4m3, e5m2, e3m2, e2m3 or e2m1");
  for (const std::int64_t size : {call.block.rows, call.block.columns}) {
    require(size >= 0 && size <= 1024, "block", to_text(call.block), "1 to 1024 rows and columns, or all");
  }
  if (call.rule->outer == OuterAmax::row) {
    require(call.block.rows == 1, "block", to_text(call.block), "blocks of one row: the rule has an amax a row");
  }
  if (const RuleProgram* program = call.program) {
    const auto of = [](const std::string& rule, Format output, Format x_type) {
      return "of rule " + rule + ", output " + format_name(output) + ", x_type " + format_name(x_type);
    };
    const bool same = program->rule == call.rule->name && program->output == output && program->x_type == call.x_type;
    if (!same)
      require(false, "program", of(program->rule, program->output, program->x_type), of(call.rule->name, output, call.x_type));
  }
  if (call.rule->reduces()) {
    require(call.block == kReducedBlock, "block", to_text(call.block),
            to_text(kReducedBlock) + ": the rule joins the elements of such blocks");
  }
  const ScaleStorage::Order order = call.storage.order;
  const Format scale = call.rule->scale_type;
  require(order <= ScaleStorage::Order::swizzled_8x4, "storage", static_cast<std::int64_t>(order), "one of ScaleStorage::Order");
  if (order == ScaleStorage::Order::packed) {
    require(scale == Format::e8m0, "storage", name_of(call.storage), "another order: only e8m0 scales are packed");
  } else if (order >= ScaleStorage::Order::swizzled_128x4) {
    require(scale != Format::f32, "storage", name_of(call.storage), "another order: only scales of one byte are swizzled");
  }
}

// Codes of 4 and 6 bits fill bytes along their rows; the rows of groups only the device knows.
void check_packing(const QuantizeByRuleCall& call) {
  const int bits = bits_of(call.output);
  const std::int64_t unit = bits == 4 ? 2 : bits == 6 ? 4 : 1;
  const std::string expected =
      "a multiple of " + std::to_string(unit) + ": codes of " + format_name(call.output) + " fill whole bytes along it";
  if (!call.transposed) {
    require(call.columns % unit == 0, "columns", call.columns, expected);
  } else if (call.rows.splits == nullptr) {
    require(call.rows.capacity % unit == 0, "rows.capacity", call.rows.capacity, expected);
  }
}

class Workspace {
 public:
  template <class Type>
  Type* take(std::int64_t count) {
    auto* at = reinterpret_cast<Type*>(bytes_);
    bytes_ += (count * static_cast<std::int64_t>(sizeof(Type)) + 255) / 256 * 256;
    return at;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

template <class Type>
void shift(Type*& pointer, void* workspace) {
  pointer = reinterpret_cast<Type*>(static_cast<std::byte*>(workspace) + reinterpret_cast<std::intptr_t>(pointer));
}

}  // namespace

RulePlan rule_plan(const QuantizeByRuleCall& call) {
  check_types(call);
  check_matrix(call.rows, call.columns);
  check_packing(call);
  check_matrix(call.rows, call.rule->matrices_in_x() * call.columns);
  RulePlan plan{call.program != nullptr ? *call.program : rule_program(*call.rule, call.output, call.x_type), {}, 0};
  RuleArguments& a = plan.arguments;
  a.x = call.x;
  a.rows = call.rows;
  a.columns = call.columns;
  a.block_rows = call.block.rows;
  a.block_columns = call.block.columns != 0 ? call.block.columns : std::max<std::int64_t>(call.columns, 1);
  a.columns_of_blocks = (call.columns + a.block_columns - 1) / a.block_columns;
  const std::int64_t groups = std::min<std::int64_t>(call.rows.groups, call.rows.capacity);
  const std::int64_t most_rows = call.block.rows == 0 ? groups : call.rows.capacity / call.block.rows + groups;
  std::int64_t bytes = 0;
  a.most_blocks = most_rows * a.columns_of_blocks;  // fits: a block row has no more blocks than columns
  if (__builtin_mul_overflow(a.most_blocks, 4 * (plan.program.slots + 1), &bytes)) {
    throw NotSupported("rows.capacity is " + std::to_string(call.rows.capacity) + " with " + std::to_string(a.columns_of_blocks) +
                       " blocks a row: their values exceed int64 bytes");
  }
  a.order = call.storage.order;
  a.per_group = call.storage.per_group;
  a.transposed = call.transposed;
  a.propagates_nan = call.rule->nan == AmaxNan::propagated;
  a.scale_type = call.rule->scale_type;
  a.scale_size = a.scale_type == Format::f32 ? 4 : 1;
  a.code_bits = bits_of(call.output);
  a.outer = call.rule->outer;
  a.outer_amaxes = a.outer == OuterAmax::none ? 0 : a.outer == OuterAmax::row ? call.rows.capacity : call.rows.groups;
  a.rounding = rule_rounding(call.output, call.rule->rounding);
  a.given_outer = a.outer == OuterAmax::none ? nullptr : call.outer_amax;
  a.data = static_cast<std::uint8_t*>(call.output_to.data);
  a.scale = static_cast<std::uint8_t*>(call.output_to.scale);
  a.outer_amax = a.outer == OuterAmax::none ? nullptr : call.output_to.outer_amax;
  a.status = call.status;
  a.of_block = plan.program.of_block;
  a.of_element = plan.program.of_element();
  a.of_activation = plan.program.of_activation;
  a.vectors_in = call.columns % 4 == 0 && is_aligned(call.x, static_cast<std::uintptr_t>(4 * wide_bytes(call.x_type)));
  a.vectors_out = a.code_bits == 8 && call.columns % 4 == 0 && is_aligned(a.data, 4);

  Workspace workspace;
  a.groups = workspace.take<RuleGroup>(call.rows.groups + 1);
  a.valid = workspace.take<std::uint32_t>(1);
  a.program = workspace.take<RuleInstruction>(static_cast<std::int64_t>(plan.program.instructions.size()));
  a.ranks = workspace.take<std::uint32_t>(a.most_blocks);
  a.outer_ranks = workspace.take<std::uint32_t>(a.given_outer != nullptr ? 0 : a.outer_amaxes);
  a.slots = workspace.take<float>(plan.program.slots * a.most_blocks);
  plan.workspace_bytes = workspace.bytes();
  return plan;
}

RuleArguments bound(const RulePlan& plan, void* workspace) {
  RuleArguments a = plan.arguments;
  shift(a.groups, workspace);
  shift(a.valid, workspace);
  shift(a.program, workspace);
  shift(a.ranks, workspace);
  shift(a.outer_ranks, workspace);
  shift(a.slots, workspace);
  return a;
}

}  // namespace assay::device::by_rule
