#include "conformance/selftest/call_fault.h"

#include "conformance/selftest/call_fault_lists.h"

namespace assay::conformance {
namespace {

int calls = 0, cases = 0, questions = 0;

}  // namespace

void note_call(bool dry) {
  cases += dry && calls > 0 ? 1 : 0;
  calls = dry ? 0 : calls + 1;
  questions = dry ? questions + 1 : 0;
}
int calls_since_question() { return calls; }
int cases_so_far() { return cases; }
int questions_in_a_row() { return questions; }

const std::vector<CallFault>& call_faults() {
  static const std::vector<CallFault> all = [] {
    std::vector<CallFault> made;
    add_option_faults(made);
    add_input_faults(made);
    add_output_faults(made);
    add_rare_faults(made);
    add_order_faults(made);
    add_rule_swaps(made);
    add_plan_faults(made);
    add_unit_faults(made);
    add_catalogued_faults(made);
    add_benign_variations(made);
    return made;
  }();
  return all;
}

}  // namespace assay::conformance
