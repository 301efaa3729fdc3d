#include "conformance/report/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/cases/former_words.h"
#include "conformance/report/earlier_results.h"
#include "conformance/report/report.h"
#include "conformance/report/report_counts.h"

namespace assay::conformance {
namespace {

struct Found {
  Standing standing = Standing::passed;
  std::string why;  // empty for a pass
};

Found found_of(const Judgement& judgement) {
  if (judgement.verdict == Verdict::passed) return {};
  const std::string text =
      fmt::format("{}{}{}", name_of(judgement.verdict), judgement.text.empty() ? "" : ": ", first_line(judgement.text));
  if (judgement.verdict == Verdict::not_run) return {Standing::absent, text};
  return {Standing::failed, std::string(name_of(judgement.verdict))};
}

// By case line, or "FILE: NAME" for a fixture's case.
std::map<std::string, Found> standings(const std::vector<CaseReport>& cases) {
  std::map<std::string, Found> all;
  for (const CaseReport& each : cases) {
    if (each.suite == kSelfCheck) continue;
    Found found = found_of(each.judgement);
    const auto [place, is_new] = all.emplace(each.line.empty() ? each.suite + ": " + each.name : each.line, found);
    if (!is_new && found.standing > place->second.standing) place->second = std::move(found);
  }
  return all;
}

void add(LevelStanding& level, Standing standing) {
  ++level.required;
  switch (standing) {
    case Standing::passed: ++level.passed; break;
    case Standing::absent: ++level.absent; break;
    case Standing::unselected: ++level.unselected; break;
    case Standing::failed: ++level.failed; break;
  }
}

bool names_fixture(const std::string& wanted, const std::string& file) {
  return wanted == "*" || wanted == file || wanted + ".h5" == file;
}

class Measure {
 public:
  Measure(const Claimed& claimed, const std::vector<CaseReport>& cases)
      : claimed_(claimed), cases_(cases), all_(standings(cases)), elsewhere_(claimed.shard.begin(), claimed.shard.end()) {}

  // `unmet`, if given, receives the required cases that did not pass.
  LevelStanding of(const Level& level, std::vector<Loss>* unmet) const {
    LevelStanding made;
    made.title = level.title();
    made.claims = level.claims;
    const auto take = [&](const std::string& name, const Found& found) {
      add(made, found.standing);
      if (unmet != nullptr && found.standing != Standing::passed) unmet->push_back({made.title, name, found.why});
    };
    for (const std::size_t place : required_by(level, claimed_.texts, claimed_.names)) {
      const std::string& text = claimed_.texts[place];
      if (elsewhere_.count(text) != 0) continue;
      const auto found = all_.find(text);
      take(text, found == all_.end() ? Found{Standing::unselected, "not selected"} : found->second);
    }
    for (const std::string& wanted : level.fixtures) take_fixtures(wanted, take);
    return made;
  }

 private:
  template <class Take>
  void take_fixtures(const std::string& wanted, Take take) const {
    std::set<std::string> judged;
    for (const CaseReport& each : cases_) {
      if (!each.line.empty() || each.suite == kSelfCheck || !names_fixture(wanted, each.suite)) continue;
      judged.insert(each.suite);
      take(each.suite + ": " + each.name, all_.at(each.suite + ": " + each.name));
    }
    if (claimed_.sharded) return;
    bool known = wanted == "*";
    for (const std::string& file : claimed_.fixtures) {
      if (!names_fixture(wanted, file)) continue;
      known = true;
      if (judged.count(file) == 0) take(file, Found{Standing::unselected, "not selected"});
    }
    if (!known) take(wanted, Found{Standing::unselected, "no such fixture file"});
    if (wanted == "*" && claimed_.fixtures.empty()) take("fixtures", Found{Standing::unselected, "there are none"});
  }

  const Claimed& claimed_;
  const std::vector<CaseReport>& cases_;
  const std::map<std::string, Found> all_;
  const std::set<std::string> elsewhere_;
};

}  // namespace

std::string LevelStanding::shortfall() const {
  std::string text;
  for (const auto& [number, what] :
       {std::pair(failed, "failed"), std::pair(absent, "absent"), std::pair(unselected, "not selected")}) {
    if (number > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, what);
  }
  return required == 0 ? "no case in this profile" : fmt::format("{} of {}", text, required);
}

std::string Claims::passed_levels(bool brief) const {
  if (brief && !levels.empty() && levels.back().whole() && levels.back().title.starts_with("all ")) return levels.back().title;
  std::string text;
  for (const LevelStanding& each : levels) {
    if (each.whole()) text += (text.empty() ? "" : ", ") + each.title;
  }
  return text.empty() ? "none" : text;
}

Claims claims_of(const Claimed& claimed, const std::vector<CaseReport>& cases) {
  Claims claims;
  claims.profile = claimed.profile;
  claims.whole_run = claimed.whole_run;
  const Measure measure(claimed, cases);
  if (!claimed.sharded && !claimed.profile.empty()) {
    for (const Level& each : levels()) claims.levels.push_back(measure.of(each, nullptr));
  }
  for (const Level& each : claimed.requirements) claims.requirements.push_back(measure.of(each, &claims.unmet));
  return claims;
}

void compare_with(Claims& claims, const Claimed& claimed, const std::string& path, const EarlierResults& earlier,
                  const std::vector<CaseReport>& cases) {
  // A generated case by its line, as merge() has it: names may change from version to version, lines do not.
  using Key = std::tuple<std::string, std::string, std::string>;
  const auto key_of = [](const std::string& suite, const std::string& name, const std::string& line, const std::string& setting) {
    return Key{suite, line.empty() ? name : line, setting};
  };
  std::map<Key, Found> now;
  for (const CaseReport& each : cases) now[key_of(each.suite, each.name, each.line, each.setting)] = found_of(each.judgement);
  const std::set<std::string> known(claimed.texts.begin(), claimed.texts.end()),
      elsewhere(claimed.shard.begin(), claimed.shard.end());
  const std::set<std::string> files(claimed.fixtures.begin(), claimed.fixtures.end());
  std::set<Key> passed_then;
  for (const nlohmann::json& each : earlier.cases) {
    const std::string suite = each.at("suite"), name = each.at("name"), setting = each.value("setting", "");
    const std::string line = present_text(each.value("case", ""));  // of an earlier version, perhaps
    if (suite == kSelfCheck || each.at("verdict") != name_of(Verdict::passed)) continue;
    const Key key = key_of(suite, name, line, setting);
    passed_then.insert(key);
    const std::string title = (line.empty() ? suite + ": " + name : line) + (setting.empty() ? "" : " (" + setting + ")");
    const auto found = now.find(key);
    if (found != now.end()) {
      if (found->second.standing == Standing::passed) {
        ++claims.kept;
      } else {
        claims.lost.push_back({path, title, found->second.why});
      }
    } else if (elsewhere.count(line) != 0 || (line.empty() && claimed.sharded)) {
      continue;  // another shard's
    } else if (!setting.empty() || (line.empty() ? files.count(suite) == 0 : known.count(line) == 0)) {
      ++claims.dropped;
    } else {
      claims.lost.push_back({path, title, "not selected"});
    }
  }
  for (const auto& [key, found] : now)
    claims.gained += found.standing == Standing::passed && std::get<0>(key) != kSelfCheck && passed_then.count(key) == 0;
  const nlohmann::json backend = earlier.header.value("backend", nlohmann::json::object());
  claims.baseline =
      fmt::format("{} ({}, backend {}{}{})", path, earlier.header.value("verb", "a run"), backend.value("name", "unknown"),
                  earlier.header.contains("date") ? ", " : "", earlier.header.value("date", ""));
}

nlohmann::json to_json(const Claims& claims) {
  const auto standing = [](const LevelStanding& each) {
    return nlohmann::json{{"title", each.title},   {"claims", each.claims}, {"required", each.required},
                          {"passed", each.passed}, {"absent", each.absent}, {"unselected", each.unselected},
                          {"failed", each.failed}, {"met", each.whole()}};
  };
  const auto losses = [](const std::vector<Loss>& all) {
    nlohmann::json made = nlohmann::json::array();
    for (const Loss& each : all) made.push_back({{"of", each.of}, {"name", each.name}, {"why", each.why}});
    return made;
  };
  nlohmann::json made{{"profile", claims.profile},
                      {"levels", nlohmann::json::array()},
                      {"requirements", nlohmann::json::array()},
                      {"unmet", losses(claims.unmet)}};
  for (const LevelStanding& each : claims.levels) made["levels"].push_back(standing(each));
  for (const LevelStanding& each : claims.requirements) made["requirements"].push_back(standing(each));
  if (!claims.baseline.empty()) {
    made["baseline"] = {{"of", claims.baseline},
                        {"kept", claims.kept},
                        {"gained", claims.gained},
                        {"dropped", claims.dropped},
                        {"lost", losses(claims.lost)}};
  }
  return made;
}

std::string claims_text(const Claims& claims, int most) {
  std::string text;
  const auto losses = [&](const char* what, const std::vector<Loss>& all) {
    int listed = 0;
    for (const Loss& each : all) {
      if (listed++ == most) break;
      text += fmt::format("{} {}: {} ({})\n", what, each.of, each.name, each.why);
    }
    if (listed > most)
      text += fmt::format("... and {} more (--json has them all)\n", all.size() - static_cast<std::size_t>(most));
  };
  losses("required by", claims.unmet);
  losses("lost against", claims.lost);
  if (!claims.baseline.empty()) {
    text += fmt::format("baseline: {}: {} kept, {} lost, {} gained, {} no longer in the suite\n", claims.baseline, claims.kept,
                        claims.lost.size(), claims.gained, claims.dropped);
  }
  for (const LevelStanding& each : claims.requirements) {
    text += fmt::format("required: {}: {}\n", each.title,
                        each.whole() ? fmt::format("all {} cases passed", each.required) : each.shortfall());
  }
  if (!claims.tells_levels()) return text;
  text += fmt::format("levels passed, profile {}: {}\n", claims.profile, claims.passed_levels(false));
  std::string open;
  for (const LevelStanding& each : claims.levels) {
    // If WORDS selected the cases, levels without a selected case are left out.
    const bool untouched = each.required == 0 || (!claims.whole_run && each.unselected == each.required);
    if (!each.whole() && !untouched) open += fmt::format("{}{} ({})", open.empty() ? "" : ", ", each.title, each.shortfall());
  }
  if (!open.empty()) text += "levels not claimed: " + open + "\n";
  return text;
}

}  // namespace assay::conformance
