#pragma once
// The catalogued faults by subject. conformance/selftest/catalogued.txt says which rows of conformance/cases/faults.md each stands for.

#include "conformance/selftest/call_fault.h"

namespace assay::conformance {

void add_scale_faults(std::vector<CallFault>& to);       // the scales of a product: another's, another layout, applied otherwise
void add_operand_faults(std::vector<CallFault>& to);     // the elements of a product, its plan, its bias and gradients
void add_result_faults(std::vector<CallFault>& to);      // D: rows, tiles and groups wrong, unwritten or overwritten
void add_layer_faults(std::vector<CallFault>& to);       // the skip flag, the recipe of a layer, what is refused
void add_quantize_faults(std::vector<CallFault>& to);    // quantization: groups, directions, storage, bias gradients
void add_activation_faults(std::vector<CallFault>& to);  // an activation in front of a quantization
void add_rule_faults(std::vector<CallFault>& to);        // quantization: another arithmetic of scales and codes
void add_replay_faults(std::vector<CallFault>& to);      // what is kept from one call to the next
void add_index_faults(std::vector<CallFault>& to);       // offsets, swizzled scales, permuted rows

}  // namespace assay::conformance
