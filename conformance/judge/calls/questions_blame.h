#pragma once
// Finds what has written to memory before a call: the fills, copies and waits, or a question about the call.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/judge/memory/case_memory.h"

namespace assay::conformance {

struct NamedQuestion {
  std::string name;  // "numerics()"
  std::function<void()> ask;
};

// `damage`: where memory differs from what was written, after the questions; one line each, not empty. Repeats here: first
// fills, copies and a wait alone, with two poisons, then each question by itself. Returns the lines, each headed by its cause.
// `prepare` writes everything with a poison and waits. Errors: BackendError of `prepare` and of reading the memory.
std::vector<std::string> blamed(std::vector<std::string> damage, CaseMemory& memory, assay_stream* stream,
                                const std::function<void(std::uint8_t)>& prepare, const std::vector<NamedQuestion>& questions);

}  // namespace assay::conformance
