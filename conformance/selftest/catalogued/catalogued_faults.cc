#include "conformance/selftest/catalogued/catalogued_faults.h"

#include "conformance/selftest/call_fault_lists.h"

namespace assay::conformance {

void add_catalogued_faults(std::vector<CallFault>& to) {
  add_scale_faults(to);
  add_operand_faults(to);
  add_result_faults(to);
  add_layer_faults(to);
  add_quantize_faults(to);
  add_activation_faults(to);
  add_rule_faults(to);
  add_replay_faults(to);
  add_index_faults(to);
}

}  // namespace assay::conformance
