#include "conformance/suites/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "conformance/cases/case_schema.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kMostJudged = 2000;

// A value that would make the case smaller, and what changes.
struct Smaller {
  std::string key, value, change;  // no value: the default
};

void add_numbers(const std::string& key, std::int64_t now, std::int64_t least, std::vector<Smaller>& to) {
  std::vector<std::int64_t> tried;
  for (const std::int64_t value :
       {least, std::int64_t{1}, std::int64_t{2}, std::int64_t{4}, std::int64_t{8}, std::int64_t{16}, std::int64_t{32},
        std::int64_t{64}, std::int64_t{128}, now / 2, now - 128, now - 32, now - 16, now - 8, now - 1}) {
    if (value < least || value >= now || value < 0 || std::find(tried.begin(), tried.end(), value) != tried.end()) continue;
    tried.push_back(value);
    to.push_back({key, std::to_string(value), fmt::format("{} {} for {}", key, value, now)});
  }
}

void add_splits(const std::string& key, const std::vector<std::int64_t>& now, std::vector<Smaller>& to) {
  const auto with_rows = [&](std::vector<std::int64_t> rows, std::string change) {
    if (!rows.empty()) to.push_back({key, splits_text(rows), std::move(change)});
  };
  if (now.size() > 2)
    with_rows({now.begin(), now.begin() + static_cast<std::ptrdiff_t>(now.size() / 2)}, "the first half of the groups");
  if (now.size() > 2)
    with_rows({now.begin() + static_cast<std::ptrdiff_t>(now.size() / 2), now.end()}, "the second half of the groups");
  for (std::size_t g = now.size(); g-- > 0;) {
    std::vector<std::int64_t> rows = now;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(g));
    with_rows(std::move(rows), fmt::format("without group {}", g));
    if (now.size() > 64) break;  // halves have been tried
  }
  for (std::size_t g = 0; g < now.size() && now.size() <= 64; ++g) {
    std::vector<std::int64_t> tried;
    for (const std::int64_t value : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{8}, std::int64_t{16},
                                     std::int64_t{32}, std::int64_t{64}, std::int64_t{128}, now[g] / 2, now[g] - 1}) {
      if (value < 0 || value >= now[g] || std::find(tried.begin(), tried.end(), value) != tried.end()) continue;
      tried.push_back(value);
      std::vector<std::int64_t> rows = now;
      rows[g] = value;
      with_rows(std::move(rows), fmt::format("group {} of {} rows for {}", g, value, now[g]));
    }
  }
}

std::vector<Smaller> smaller(const CaseLine& line) {
  std::vector<Smaller> all;
  const OpSchema& schema = op_named(line.op);
  for (const Parameter& each : line.parameters) {
    const KeySchema* key = find_key(schema, each.key);
    if (key != nullptr && key->fallback != "required" && each.key != "seed")
      all.push_back({each.key, "", fmt::format("without {}={}", each.key, each.value)});
  }
  for (const Parameter& each : line.parameters) {
    const KeySchema* key = find_key(schema, each.key);
    if (key == nullptr) continue;
    if (key->kind == ValueKind::splits) add_splits(each.key, line.splits(each.key), all);
    if (key->kind == ValueKind::integer && key->allowed.empty() && each.key != "seed")
      add_numbers(each.key, line.integer(each.key), std::max<std::int64_t>(key->minimum, 0), all);
    if (key->kind == ValueKind::replay) {
      const std::size_t colon = each.value.find(':');
      const std::int64_t count = std::strtoll(each.value.c_str(), nullptr, 10);
      if (colon != std::string::npos && count > 2)
        all.push_back(
            {each.key, std::to_string(count / 2) + each.value.substr(colon), fmt::format("{} replays for {}", count / 2, count)});
    }
  }
  all.push_back({"seed", "", "the default seed"});
  return all;
}

}  // namespace

std::string failure_kind(const Judgement& judgement) {
  if (judgement.verdict != Verdict::failed) return "";
  if (judgement.findings.empty()) return "failed";
  const Finding& first = judgement.findings.front();
  return first.kind + (first.output.empty() ? "" : " of " + first.output.substr(0, first.output.find(' ')));
}

Shrunk shrink(const CaseLine& line, const std::string& kind, const std::function<std::string(const CaseLine&)>& kind_of,
              const std::function<void(const CaseLine&, const std::string& change)>& step) {
  Shrunk shrunk{line};
  std::set<std::string> tried{to_text(line)};
  for (bool again = true; again;) {
    again = false;
    for (const Smaller& each : smaller(shrunk.line)) {
      CaseLine candidate;
      try {
        candidate = with(shrunk.line, each.key, each.value);
      } catch (const InvalidArgument&) {  // the schema has no such line
        continue;
      }
      if (!tried.insert(to_text(candidate)).second) continue;
      if (shrunk.judged == kMostJudged) return shrunk;
      ++shrunk.judged;
      if (kind_of(candidate) != kind) continue;
      shrunk.line = candidate;
      step(candidate, each.change);
      again = true;
      break;
    }
  }
  return shrunk;
}

}  // namespace assay::conformance
