#pragma once
// Digests of a file of results. Each line ends with the member "chain": the SHA-256, in hex, of the line before's chain followed by this
// line without the member. A line that is changed, removed, added or moved breaks the chain there. With a shell:
//   printf '%s%s' "$previous_chain" "$line_without_chain" | sha256sum
// A report of --json has the member "sha256": of the report without it, on one line.

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace assay::conformance {

// A line and its chain; nothing where the line has none.
struct ChainedLine {
  std::string body, chain;
};
std::optional<ChainedLine> split_chained(std::string_view line);

std::string chain_of(std::string_view previous, std::string_view body);
// The line with its chain, without a newline. `chain` holds the previous one, and then this one.
std::string chained(std::string_view body, std::string& chain);

std::string report_digest(const nlohmann::json& report);

// What a check of a file finds.
struct FileCheck {
  enum class State { sound, changed, incomplete, without_digests };
  State state = State::sound;
  std::string text;  // "sound: 812 verdicts, digest 3fa2...", "line 17: was changed, ..."
};
// Recomputes the digests of a file of --results or of --json. Errors: golden::FixtureError where it cannot be read or is neither.
FileCheck check_results(const std::string& path);

}  // namespace assay::conformance
