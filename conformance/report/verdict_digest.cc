#include "conformance/report/verdict_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include <nlohmann/json.hpp>

#include "golden/io/sha256.h"

namespace assay::conformance {

using nlohmann::json;

std::string digested_line(const json& entry) {
  const auto number = [&](const char* name) { return entry.value(name, std::int64_t{0}); };
  const std::int64_t elements = entry.contains("elements") ? number("elements") : number("words");  // the former name
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", entry.at("suite").get<std::string>(),
                     entry.contains("case") ? entry.at("case").get<std::string>() : entry.at("name").get<std::string>(),
                     entry.value("setting", ""), entry.at("verdict").get<std::string>(), entry.value("ground", ""), elements,
                     number("bounded"), number("unbounded"), entry.value("plan", ""), entry.value("unit", ""),
                     entry.value("expected_by", ""));
}

std::string verdict_digest(const std::vector<json>& cases) {
  std::vector<std::string> lines;
  lines.reserve(cases.size());
  for (const json& each : cases) lines.push_back(digested_line(each));
  std::sort(lines.begin(), lines.end());
  golden::Sha256 sum;
  for (const std::string& line : lines) sum.update(std::as_bytes(std::span(line)));
  return golden::hex_of(sum.digest());
}

}  // namespace assay::conformance
