#include "conformance/report/line_chain.h"

#include <fmt/format.h>

#include <span>

#include <nlohmann/json.hpp>

#include "conformance/report/judgement_json.h"
#include "golden/io/fixture_error.h"
#include "golden/io/sha256.h"
#include "golden/io/text_file.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

constexpr std::string_view kChainMember = ",\"chain\":\"", kChainEnd = "\"}";
constexpr std::size_t kHexDigits = 64;
constexpr std::int64_t kLargestChecked = std::int64_t{4} << 30;

std::string sha256_of_text(std::string_view text) { return golden::sha256_hex(std::as_bytes(std::span(text))); }

FileCheck check_report(json report) {
  if (!report.contains("sha256")) return {FileCheck::State::without_digests, "has no digest: it is of an earlier version"};
  const std::string said = report.at("sha256").is_string() ? report.at("sha256").get<std::string>() : "";
  report.erase("sha256");
  const std::string found = report_digest(report);
  if (said != found)
    return {FileCheck::State::changed, fmt::format("was changed: its contents have the digest {}, and it says {}", found, said)};
  return {FileCheck::State::sound,
          fmt::format("sound: {} verdicts, digest {}", report.value("cases", json::array()).size(), found)};
}

FileCheck check_lines(const std::string& path, std::string_view text) {
  std::string previous;
  std::int64_t number = 0, found = 0;
  bool ended = false, chained_before = false, predicts = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return {FileCheck::State::incomplete, fmt::format("line {}: was cut off", number + 1)};
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    const std::optional<ChainedLine> parts = split_chained(line);
    if (!parts && !chained_before && number == 1) {
      if (!json::accept(line)) throw golden::FixtureError(path, "line 1", "is not a header of a file of --results");
      return {FileCheck::State::without_digests, "has no digests: it is of an earlier version"};
    }
    if (!parts) return {FileCheck::State::changed, fmt::format("line {}: was changed or added: it has no digest", number)};
    if (chain_of(previous, parts->body) != parts->chain) {
      return {FileCheck::State::changed,
              fmt::format("line {}: was changed, or lines before it were removed, added or moved", number)};
    }
    const json entry = json::parse(parts->body, nullptr, false);
    const std::string record = entry.is_object() ? entry.value("record", "") : "";
    predicts = predicts || (record == "header" && entry.contains("predictions"));
    found += record == (predicts ? "prediction" : "case");
    ended = record == "summary";
    previous = parts->chain;
    chained_before = true;
  }
  if (!ended) {
    return {FileCheck::State::incomplete,
            fmt::format("line {}: is the last, and no summary: the run did not end, or lines after it were removed", number)};
  }
  return {FileCheck::State::sound,
          fmt::format("sound: {} {}, digest {}", found, predicts ? "predictions" : "verdicts", previous)};
}

}  // namespace

std::optional<ChainedLine> split_chained(std::string_view line) {
  const std::size_t tail = kChainMember.size() + kHexDigits + kChainEnd.size();
  if (line.size() <= tail || !line.ends_with(kChainEnd)) return std::nullopt;
  const std::size_t at = line.size() - tail;
  const std::string_view chain = line.substr(at + kChainMember.size(), kHexDigits);
  if (line.substr(at, kChainMember.size()) != kChainMember ||
      chain.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  return ChainedLine{std::string(line.substr(0, at)) + "}", std::string(chain)};
}

std::string chain_of(std::string_view previous, std::string_view body) {
  return sha256_of_text(std::string(previous) + std::string(body));
}

std::string chained(std::string_view body, std::string& chain) {
  chain = chain_of(chain, body);
  return std::string(body.substr(0, body.size() - 1)) + std::string(kChainMember) + chain + std::string(kChainEnd);
}

std::string report_digest(const json& report) { return sha256_of_text(line_of(report)); }

FileCheck check_results(const std::string& path) {
  const std::string text = golden::read_text_file(path, kLargestChecked);
  if (json whole = json::parse(text, nullptr, false); whole.is_object() && !whole.contains("record"))
    return check_report(std::move(whole));
  if (text.empty()) throw golden::FixtureError(path, "", "is empty");
  return check_lines(path, text);
}

}  // namespace assay::conformance
