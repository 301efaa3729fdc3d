#include "conformance/judge/calls/questions_blame.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::conformance {
namespace {

// What differs after fills, copies and a wait alone, each line headed by the cause.
std::vector<std::string> left_without_questions(CaseMemory& memory, assay_stream* stream,
                                                const std::function<void(std::uint8_t)>& prepare) {
  for (const std::uint8_t poison : {std::uint8_t{0x5a}, std::uint8_t{0xa5}}) {
    prepare(poison);
    std::vector<std::string> found = memory.look(stream, nullptr);
    if (found.empty()) continue;
    const bool filled = std::all_of(found.begin(), found.end(), [](const std::string& line) {
      return line.find(" was written, first at byte ") != std::string::npos;  // outputs and workspaces
    });
    const char* const who = filled ? "fill()" : "fill(), the copies or synchronize()";
    for (std::string& line : found) line = fmt::format("{} left memory in another state, before any question: {}", who, line);
    return found;
  }
  return {};
}

}  // namespace

std::vector<std::string> blamed(std::vector<std::string> damage, CaseMemory& memory, assay_stream* stream,
                                const std::function<void(std::uint8_t)>& prepare, const std::vector<NamedQuestion>& questions) {
  if (std::vector<std::string> left = left_without_questions(memory, stream, prepare); !left.empty()) return left;
  std::string who;
  for (const NamedQuestion& each : questions) {
    prepare(0xa5);
    each.ask();
    if (!memory.look(stream, nullptr).empty()) who += (who.empty() ? "" : ", ") + each.name;
  }
  for (std::string& line : damage) line = (who.empty() ? "a question before the call" : who) + " changed memory: " + line;
  return damage;
}

}  // namespace assay::conformance
