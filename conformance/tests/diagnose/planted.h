#pragma once
// Faults planted into a call, by code that the diagnosis does not use: the reference's scalar layer on a changed call, or loops
// of the test over the right output.

#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/tests/judge/rogue_backend.h"

namespace assay::conformance::planted {

// The scalar layer's outputs for a call after `change` has changed its parameters or inputs. Views of the call's own memory.
inline Tensor scalar_words(const assay_call& call, const std::string& output, const std::function<void(Request&)>& change) {
  Request request = Request::of(call);
  const OutputView like = request.out.at(output);
  Tensor made{like.type, like.shape, std::vector<std::byte>(static_cast<std::size_t>(like.bytes))};
  if (like.bytes > 0) std::memcpy(made.bytes.data(), like.data, made.bytes.size());
  request.out.clear();
  request.out[output] = {like.type, like.shape, made.bytes.data(), like.bytes};
  change(request);
  answer(request, Layer::scalar);
  return made;
}

// Writes them over the outputs of the call.
inline void spoil(const assay_call& call, const std::string& output, const std::function<void(Request&)>& change) {
  const Tensor made = scalar_words(call, output, change);
  std::memcpy(bytes(call, output), made.bytes.data(), made.bytes.size());
}

// The text of the failure where `fault` changes the right outputs of a backend. `states`: the plan and unit that it states.
inline std::string failure(const std::string& line, const std::function<void(const assay_call&)>& fault, bool states = true) {
  Rogue rogue;
  if (!states) rogue.state = [](assay_numerics& numerics) { numerics.unit[0] = numerics.plan[0] = '\0'; };
  rogue.execute = [&](const assay_call& call) {
    const assay_status status = rogue.honest(call);
    if (status == ASSAY_OK) fault(call);
    return status;
  };
  return judge_text(rogue, line).text;
}

// The hints in a failure's text, each on one line.
inline std::string hints_of(const std::string& text) {
  std::istringstream lines(text);
  std::string hints;
  bool within = false;
  for (std::string line; std::getline(lines, line);) {
    const bool begins = line.starts_with("  hint"), goes_on = within && line.starts_with("          ");
    within = begins || goes_on;
    if (!within) continue;
    if (!hints.empty()) hints += begins ? '\n' : ' ';
    hints += line.substr(10);
  }
  return hints;
}

}  // namespace assay::conformance::planted
