// The same call with what an earlier replay held: everything, one tensor, or the tensors of one operand.

#include <fmt/format.h>

#include <set>

#include "conformance/diagnose/other_calls/other_call.h"

namespace assay::conformance::diagnosis {
namespace {

// "x" of x_rowwise_data: the operand that a tensor belongs to.
std::string family_of(const std::string& name) { return name.substr(0, name.find('_')); }

bool differs(const Request& request, const std::string& name, const Tensor& earlier) {
  const auto found = request.in.find(name);
  return found != request.in.end() && tensor_of(found->second).bytes != earlier.bytes;
}

}  // namespace

void earlier_calls(const Suspect& suspect, const Try& attempt) {
  const Request& request = suspect.request;
  for (std::size_t back = 1; back <= suspect.earlier.size(); ++back) {
    const Case& earlier = *suspect.earlier[suspect.earlier.size() - back];
    const std::string when = back == 1 ? "the call before" : fmt::format("{} calls before", back);
    std::set<std::string> changed, families;
    for (const auto& [name, tensor] : earlier.in) {
      if (!differs(request, name, tensor)) continue;
      changed.insert(name);
      families.insert(family_of(name));
    }
    // One tensor, the tensors of one operand, and everything.
    const auto with = [&](const std::set<std::string>& names, const std::string& what) {
      OtherCall call(request);
      for (const std::string& name : names) call.replace(name, earlier.in.at(name));
      call.text = fmt::format("with {} of {}: what replays change is read in the call, not kept", what, when);
      return attempt(std::move(call));
    };
    for (const std::string& name : changed) {
      if (!with({name}, name)) return;
    }
    for (const std::string& family : families) {
      std::set<std::string> of_it;
      for (const std::string& name : changed) {
        if (family_of(name) == family) of_it.insert(name);
      }
      if (of_it.size() > 1 && !with(of_it, "all of " + family)) return;
    }
    if (changed.size() > 1 && !with(changed, "all inputs")) return;
    if (changed.size() > 2) {
      for (const std::string& name : changed) {  // everything but one
        std::set<std::string> rest = changed;
        rest.erase(name);
        if (!with(rest, "all inputs but " + name)) return;
      }
    }
  }
}

}  // namespace assay::conformance::diagnosis
