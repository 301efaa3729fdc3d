// Elements that equal those of an input of the same shape: an output that is not updated.

#include "conformance/diagnose/hints/hypothesis.h"

namespace assay::conformance {

void propose_inputs(const WrongOutput& e, std::span<const Word>, Hypotheses& hypotheses) {
  for (const auto& [name, tensor] : e.problem.in) {
    const Elements input(tensor);
    if (tensor.type != e.want.type || static_cast<std::int64_t>(tensor.bytes.size()) * 8 / input.bits != e.map.elements) continue;
    propose(
        hypotheses, {}, [input](const Word& w) { return input[w.element] == w.got ? 0 : -1; },
        [name = name](const Tally& tally) { return "values of the input " + name + ": " + share_text(tally); });
  }
}

}  // namespace assay::conformance
