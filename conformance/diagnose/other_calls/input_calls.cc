// The same call with one input changed: another group's, another type's, left out, with special values taken for others.

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "conformance/diagnose/other_calls/input_changes.h"
#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/ops/elements.h"

namespace assay::conformance::diagnosis {
namespace {

// Without an optional input and its flag.
bool without(const Suspect& suspect, const std::string& name, const Try& attempt) {
  OtherCall call(suspect.request);
  call.request.in.erase(name);
  if (call.request.attributes.count(name) != 0) call.request.attributes[name] = std::int64_t{0};
  call.text = "without " + name;
  return attempt(std::move(call));
}

// Every tensor of an operand of another group at once.
bool operand_of_another_group(const Suspect& suspect, const std::string& prefix, std::int64_t groups, const Try& attempt) {
  for (const InputChange& change : input_changes().first(kChangesOfGroup)) {
    OtherCall call(suspect.request);
    int changed = 0;
    for (const auto& [name, view] : suspect.request.in) {
      if (!name.starts_with(prefix) || view.elements() > kMaxChangedElements) continue;
      Tensor tensor = tensor_of(view);
      if (!change.change({name, groups}, tensor)) continue;
      call.replace(name, std::move(tensor));
      ++changed;
    }
    call.text = fmt::format("with {} {}", prefix.substr(0, prefix.size() - 1), change.text);
    if (changed > 1 && !attempt(std::move(call))) return false;
  }
  return true;
}

bool exchanged(const Suspect& suspect, const Try& attempt) {
  const auto& in = suspect.request.in;
  for (auto one = in.begin(); one != in.end(); ++one) {
    for (auto other = std::next(one); other != in.end(); ++other) {
      if (one->second.type != other->second.type || one->second.shape != other->second.shape) continue;
      OtherCall call(suspect.request);
      std::swap(call.request.in[one->first], call.request.in[other->first]);
      call.text = fmt::format("with {} and {} exchanged", one->first, other->first);
      if (!attempt(std::move(call))) return false;
    }
  }
  return true;
}

// The input that is added to the output holds the output already.
bool added_twice(const Suspect& suspect, const Try& attempt) {
  for (const auto& [name, view] : suspect.request.in) {
    if (name != "c" && name != "main_grad" && name != "dbias") continue;
    if (view.type != suspect.want.type || view.elements() != suspect.want.elements()) continue;
    OtherCall call(suspect.request);
    Tensor kept = tensor_of(view);
    kept.bytes = suspect.want.bytes;
    call.replace(name, std::move(kept));
    call.text = fmt::format("with {} holding the result already: carried out twice", name);
    if (!attempt(std::move(call))) return false;
  }
  return true;
}

}  // namespace

// For inputs with subnormals: they are read as 0, in one input or in all. Tried before an option with the same effect, as
// alpha=0 where every value is subnormal.
void calls_with_flushed_inputs(const Suspect& suspect, const Try& attempt) {
  const ChangedInput any{suspect.output, 1};
  OtherCall all(suspect.request);
  int changed = 0;
  for (const auto& [name, view] : suspect.request.in) {
    if (view.elements() > kMaxChangedElements) return;
    Tensor tensor = tensor_of(view);
    if (!no_subnormals(any, tensor)) continue;
    ++changed;
    OtherCall call(suspect.request);
    call.text = fmt::format("with {} having 0 for its subnormals (FTZ)", name);
    call.replace(name, tensor);
    if (!attempt(std::move(call))) return;
    all.replace(name, std::move(tensor));
  }
  all.text = "with every input having 0 for its subnormals (FTZ)";
  if (changed > 1) attempt(std::move(all));
}

// Scales of 2^-127 read as 0, in dequantization: their elements are found by putting another scale in their place.
void try_zero_scales(const Suspect& suspect, const SampledOutput& sample, Effort& effort, AcceptedHypotheses& accepted) {
  if (suspect.request.op() != "dequantize" || suspect.output != "x") return;
  for (const auto& [name, view] : suspect.request.in) {
    if (view.type != Format::e8m0 || view.elements() > kMaxChangedElements) continue;
    Tensor tensor = tensor_of(view);
    if (!lowest_scale(tensor, std::byte{255})) continue;
    OtherCall call(suspect.request);
    call.replace(name, std::move(tensor));
    if (!effort.spend(2 * suspect.want.elements())) return;
    Tensor made = suspect.want;
    call.request.out.clear();
    call.request.out["x"] = {made.type, made.shape, made.bytes.data(), static_cast<std::int64_t>(made.bytes.size())};
    answer(call.request, Layer::fast);
    const Elements words(made), want(suspect.want);
    const Weight weight = weigh(sample, [&](std::int64_t at) {
      const bool of_zero = is_nan(made.type, words[at]) && !is_nan(made.type, want[at]);
      return std::optional(of_zero ? want[at] & sign_bit_of(made.type) : want[at]);
    });
    if (!accepted.add(sample, weight, fmt::format("with {} having 0 for 2^-127, the code 0", name))) return;
  }
}

void calls_with_other_inputs(const Suspect& suspect, const Try& attempt) {
  const auto& in = suspect.request.in;
  const auto splits = in.find("splits");
  const std::int64_t groups = splits == in.end() ? 1 : splits->second.elements();
  for (const std::string prefix : {"w_", "x_", "dy_"}) {
    if (!operand_of_another_group(suspect, prefix, groups, attempt)) return;
  }
  if (!added_twice(suspect, attempt)) return;
  for (const auto& [name, view] : in) {
    if (!without(suspect, name, attempt)) return;
    if (view.elements() > kMaxChangedElements) continue;
    for (const InputChange& change : input_changes()) {
      Tensor tensor = tensor_of(view);
      if (!change.change({name, groups}, tensor)) continue;
      OtherCall call(suspect.request);
      call.replace(name, std::move(tensor));
      call.text = fmt::format("with {} {}", name, change.text);
      if (!attempt(std::move(call))) return;
    }
  }
  exchanged(suspect, attempt);
}

}  // namespace assay::conformance::diagnosis
