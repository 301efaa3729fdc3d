#pragma once
// Quantization by a scale rule on the device: the call of reference/rules/quantize_by_rule.h over device memory, with the same
// bits. The rule is the reference's parsed form (a formula in steps, spec scale-rules-2.1); no arithmetic is shared.
//
// One call quantizes one tensor or all groups of a ragged one. It reads the splits on the device only, allocates nothing, does
// not synchronise and may be captured in a CUDA graph: data, splits and a given amax may change between replays; the rule may
// not.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/quantize/by_rule/program.h"
#include "device/support/error.h"
#include "device/support/stream.h"
#include "reference/rules/quantize_by_rule.h"

namespace assay::device {

struct QuantizeByRuleCall {
  const ScaleRule* rule = nullptr;       // read during the call alone
  const RuleProgram* program = nullptr;  // rule_program(*rule, output, x_type), for many calls; null: each call makes it
  Format output = Format::e4m3;          // e4m3, e5m2, e3m2, e2m3 or e2m1
  BlockShape block;                      // 1x16 for a rule that joins the elements of a block
  ScaleStorage storage;
  bool transposed = false;       // codes of each group are stored [K, M] at the group's own place
  Format x_type = Format::bf16;  // bf16, f16 or f32
  const void* x = nullptr;       // device, [rows.capacity, columns], aligned as its type; twice the columns, gate then up, where
                                 // the rule has an activation
  Rows rows;
  std::int64_t columns = 0;
  const float* outer_amax = nullptr;  // device, [G] for a tensor amax, [rows.capacity] for row amaxes; null: max |x|
  RuleOutput output_to;               // device; null pointers: not requested
  void* workspace = nullptr;          // device, 256-byte aligned, quantize_by_rule_workspace_bytes(); contents undefined
  std::int64_t workspace_bytes = 0;
  std::uint32_t* status = nullptr;  // device [1], or null
};

// Device memory that a call needs besides its tensors. Depends on sizes and the rule only, not on splits.
std::int64_t quantize_by_rule_workspace_bytes(const QuantizeByRuleCall& call);

// Errors: InvalidArgument and NotSupported before anything is launched; invalid splits, and groups whose rows do not fill the
// bytes of transposed codes, in the status word. NotSupported where the rule uses an approximate instruction and the device is
// not SM90.
void quantize_by_rule(const QuantizeByRuleCall& call, Stream stream);

}  // namespace assay::device
