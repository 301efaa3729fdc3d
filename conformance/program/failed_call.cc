#include "conformance/program/failed_call.h"

#include "conformance/generate/generator.h"
#include "reference/types/error.h"

namespace assay::conformance {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

FailureBundle unjudged(const std::vector<std::string>& words) {
  require(!words.empty(), "LINE", "left out", "a case line, or --got FILE");
  const CaseLine line = parse_case_line(joined(words));
  if (line.op == "scenario")
    throw InvalidArgument("LINE", "a scenario", "one call: --got of a failing scenario holds the call that failed");
  FailureBundle made;
  made.line = to_text(line);
  made.kept.call = generate(line);
  return made;
}

void check_same_line(const FailureBundle& bundle, const std::vector<std::string>& words, const std::string& path) {
  const std::string line = to_text(parse_case_line(joined(words)));
  require(line == bundle.line, "LINE", "'" + line + "'", "the line of " + path + ", '" + bundle.line + "', or none");
}

}  // namespace assay::conformance
