#include "conformance/report/fingerprint.h"

#include <fmt/format.h>

#include <regex>
#include <span>

#include "golden/io/sha256.h"

namespace assay::conformance {
namespace {

// Without what differs from run to run: addresses, numbers of processes, times.
std::string steady(const std::string& text) {
  static const std::regex kAddress("0x[0-9a-fA-F]{9,}"), kProcess("\\b(process|pid|thread) [0-9]+"),
      kTime("\\b[0-9]+(\\.[0-9]+)? ?(s|ms|us|seconds)\\b");
  std::string made = std::regex_replace(text, kAddress, "0x-");
  made = std::regex_replace(made, kProcess, "$1 -");
  return std::regex_replace(made, kTime, "- $2");
}

// The lines of a failure's text that say what is wrong: not its title, what the backend printed and the command.
std::string body_of(const std::string& text) {
  static constexpr std::string_view kLeftOut[] = {"  repro   ", "  printed ", "          ", "  hint    "};
  std::string body;
  bool first = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    bool wanted = !first && line.starts_with("  ");
    for (const std::string_view each : kLeftOut) wanted = wanted && !line.starts_with(each);
    if (wanted) body += line + "\n";
    first = false;
    at = end + 1;
  }
  return body.empty() ? text : body;
}

}  // namespace

std::string fingerprint_of(const Judgement& judgement) {
  if (judgement.verdict == Verdict::passed || judgement.verdict == Verdict::not_run) return "";
  std::string text = fmt::format("assay failure 1\n{}\n", name_of(judgement.verdict));
  for (const Finding& each : judgement.findings) {
    text += fmt::format("{}\t{}\t{}\t", each.kind, each.output, each.when);
    text += each.element >= 0 ? fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", each.compared, each.wrong, each.element, each.got_hex,
                                            each.want_hex, each.digest)
                              : steady(each.text) + "\n";
  }
  if (judgement.findings.empty()) text += steady(body_of(judgement.text));
  return golden::sha256_hex(std::as_bytes(std::span(text))).substr(0, 16);
}

}  // namespace assay::conformance
