#include "conformance/program/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "conformance/program/progress.h"
#include "conformance/program/version.h"

namespace assay::conformance {
namespace {

struct Counts {
  std::int64_t passed = 0, failed = 0, not_run = 0, other = 0, words = 0;
};

constexpr const char* kSelfCheck = "self-check";

void count(Counts& counts, const Judgement& judgement) {
  switch (judgement.verdict) {
    case Verdict::passed: ++counts.passed; break;
    case Verdict::failed: ++counts.failed; break;
    case Verdict::not_run: ++counts.not_run; break;
    default: ++counts.other;
  }
  counts.words += judgement.words;
}

std::string paint(const std::string& text, const char* colour) {
  return colour_allowed(STDOUT_FILENO) ? fmt::format("\033[{}m{}\033[0m", colour, text) : text;
}

// Cases of the backend. The self-check's are not among them: that the suite works is no verdict on a backend.
Counts count_cases(const std::vector<CaseReport>& cases) {
  Counts counts;
  for (const CaseReport& each : cases) {
    if (each.suite != kSelfCheck) count(counts, each.judgement);
  }
  return counts;
}

// What the products came to under one setting.
struct SettingCounts {
  Counts counts;
  std::int64_t known_words = 0;                  // of counts.words: the backend stated the plan
  std::map<std::string, std::int64_t> unknown;   // cases without a stated plan, by variety
};

// By setting; the backend's own choice first. Cases that are no product, or were not run to a comparison, have no plan.
std::map<std::string, SettingCounts> settings_of(const std::vector<CaseReport>& cases) {
  std::map<std::string, SettingCounts> settings;
  for (const CaseReport& each : cases) {
    if (each.variety.empty()) continue;
    SettingCounts& of = settings[each.setting.empty() ? "" : each.setting];
    count(of.counts, each.judgement);
    if (!each.judgement.plan.empty()) {
      of.known_words += each.judgement.words;
    } else if (each.judgement.verdict != Verdict::not_run) {
      ++of.unknown[each.variety];
    }
  }
  return settings;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Report::Report(std::string verb, Backend& backend, int most_shown) : verb_(std::move(verb)), most_shown_(most_shown) {
  const assay_device_info info = backend.device_info();
  backend_name_ = backend.name();
  device_ = std::string(info.name) + " (" + info.architecture + ")";
  software_ = info.software;
}

Report::Report(std::string verb, std::string backend, int most_shown)
    : verb_(std::move(verb)), backend_name_(std::move(backend)), device_("no device"), most_shown_(most_shown) {}

void Report::add(CaseReport report) {
  const std::lock_guard lock(mutex_);
  const Judgement& judgement = report.judgement;
  switch (judgement.verdict) {
    case Verdict::passed: break;
    case Verdict::not_run: break;
    case Verdict::failed: outcome_.add(ExitCode::failed); break;
    case Verdict::unproven_skip: outcome_.add(ExitCode::unproven_skip); break;
    case Verdict::unfinished:
    case Verdict::not_tried: outcome_.add(ExitCode::incomplete); break;
    case Verdict::machine_failed: outcome_.add(ExitCode::machine_failed); break;
  }
  if (judgement.verdict != Verdict::passed && judgement.verdict != Verdict::not_run &&
      judgement.verdict != Verdict::not_tried && failures_++ < most_shown_) {
    fmt::print("{}\n\n", judgement.text);
    std::fflush(stdout);
  }
  cases_.push_back(std::move(report));
}

void Report::not_tried(std::string what, std::string why) { not_tried_.emplace_back(std::move(what), std::move(why)); }

void Report::bad_fixture(std::string file, std::string why) {
  outcome_.add(ExitCode::bad_fixture);
  fmt::print("{}\n", why);
  bad_fixtures_.emplace_back(std::move(file), std::move(why));
}

void Report::note(std::string text) {
  const std::lock_guard lock(mutex_);
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
}

void Report::note_unfinished(std::string why) {
  outcome_.add(ExitCode::incomplete);
  troubles_.push_back(std::move(why));
}
void Report::note_interrupted() {
  outcome_.add(ExitCode::incomplete);
  troubles_.push_back("interrupted before the end");
}
void Report::note_machine_failed(std::string why) {
  outcome_.add(ExitCode::machine_failed);
  troubles_.push_back(std::move(why));
}
void Report::note_nothing_selected(std::string why) {
  outcome_.add(ExitCode::nothing_selected);
  troubles_.push_back(std::move(why));
}

void Report::print_settings() const {
  constexpr std::size_t kMostNamed = 8;
  const std::map<std::string, SettingCounts> settings = settings_of(cases_);
  std::int64_t words = 0, known = 0;
  fmt::print("{:>8} {:>8} {:>8} {:>8} {:>14} {:>10}  {}\n", "passed", "failed", "not run", "other", "words compared", "plan known", "setting");
  for (const auto& [setting, of] : settings) {
    const double share = of.counts.words == 0 ? 0 : 100.0 * static_cast<double>(of.known_words) / static_cast<double>(of.counts.words);
    fmt::print("{:>8} {:>8} {:>8} {:>8} {:>14} {:>9.1f}%  {}\n", of.counts.passed, of.counts.failed, of.counts.not_run, of.counts.other,
               of.counts.words, share, setting.empty() ? "the backend's own choice" : setting);
    words += of.counts.words, known += of.known_words;
  }
  for (const auto& [setting, of] : settings) {
    if (of.unknown.empty()) continue;
    std::string text;
    std::size_t told = 0;
    for (const auto& [variety, number] : of.unknown) {
      if (told++ == kMostNamed) break;
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", variety, number);
    }
    if (of.unknown.size() > kMostNamed) text += fmt::format(" and {} more", of.unknown.size() - kMostNamed);
    fmt::print("plan unknown, {}: {}\n", setting.empty() ? "the backend's own choice" : setting, text);
  }
  if (words > 0) {
    fmt::print("plan known for {:.2f}% of {} words of products\n", 100.0 * static_cast<double>(known) / static_cast<double>(words), words);
  }
}

void Report::print_summary() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::map<std::pair<std::string, std::string>, Counts> rows;
  const Counts all = count_cases(cases_);
  std::map<std::string, std::int64_t> reasons, untried;
  std::map<std::string, std::int64_t> grounds;
  for (const CaseReport& each : cases_) {
    count(rows[{each.op, each.recipe}], each.judgement);
    if (each.judgement.verdict == Verdict::not_run) ++reasons[first_line(each.judgement.text)];
    if (each.judgement.verdict == Verdict::not_tried) ++untried[first_line(each.judgement.text)];
    if (each.judgement.verdict == Verdict::passed && each.suite != kSelfCheck) ++grounds[ground_text(each.judgement)];
  }
  if (failures_ > most_shown_) fmt::print("... and {} more (--json has them all, --show sets how many are printed)\n\n", failures_ - most_shown_);
  if (!rows.empty()) {
    fmt::print("{:<24} {:<16} {:>8} {:>8} {:>8} {:>8} {:>14}\n", "op", "recipe", "passed", "failed", "not run", "other", "words compared");
    for (const auto& [key, counts] : rows) {
      fmt::print("{:<24} {:<16} {:>8} {:>8} {:>8} {:>8} {:>14}\n", key.first, key.second, counts.passed, counts.failed,
                 counts.not_run, counts.other, counts.words);
    }
  }
  if (grounds.size() > 1 || (grounds.size() == 1 && grounds.begin()->first != name_of(Ground::bits))) {
    std::string text;
    for (const auto& [ground, number] : grounds) text += fmt::format("{}{} by {}", text.empty() ? "" : "; ", number, ground);
    fmt::print("passed: {}\n", text);
  }
  if (tell_settings_) print_settings();
  for (const auto& [reason, number] : reasons) fmt::print("not run, {} case{}: {}\n", number, number == 1 ? "" : "s", reason);
  for (const auto& [reason, number] : untried) fmt::print("not tried, {} case{}: {}\n", number, number == 1 ? "" : "s", reason);
  for (const auto& [what, why] : not_tried_) fmt::print("not run, {}: {}\n", what, why);
  for (const std::string& trouble : troubles_) fmt::print("{}\n", trouble);
  for (const std::string& text : notes_) fmt::print("note: {}\n", text);
  if (!empty_shard_.empty()) fmt::print("0 cases in this shard ({}): others have what was selected\n", empty_shard_);

  if (outcome_.exit_code() == ExitCode::passed && all.passed == 0 && empty_shard_.empty()) outcome_.add(ExitCode::nothing_selected);
  std::string codes;
  for (const ExitCode code : outcome_.all()) codes += fmt::format("{}{} ({})", codes.empty() ? "" : ", ", static_cast<int>(code), meaning(code));
  const bool good = outcome_.exit_code() == ExitCode::passed;
  fmt::print("{} {}: backend {} on {}: {} passed, {} failed, {} not run, {} other, {} words compared, {:.1f} s{}\n",
             good ? paint("PASS", "32") : paint("FAIL", "31"), verb_, backend_name_, device_, all.passed, all.failed, all.not_run,
             all.other, all.words, seconds, codes.empty() ? "" : "; exit " + codes);
  std::fflush(stdout);
}

nlohmann::json Report::json() {
  std::stable_sort(cases_.begin(), cases_.end(), [](const CaseReport& a, const CaseReport& b) {
    return std::tie(a.suite, a.name) < std::tie(b.suite, b.name);
  });
  nlohmann::json cases = nlohmann::json::array();
  for (const CaseReport& each : cases_) {
    nlohmann::json entry{{"suite", each.suite},
                         {"name", each.name},
                         {"op", each.op},
                         {"recipe", each.recipe},
                         {"verdict", name_of(each.judgement.verdict)},
                         {"words", each.judgement.words},
                         {"seconds", each.judgement.seconds}};
    if (!each.line.empty()) entry["case"] = each.line;
    if (each.judgement.verdict == Verdict::passed) entry["ground"] = name_of(each.judgement.ground);
    if (!each.judgement.expected_by.empty()) entry["expected_by"] = each.judgement.expected_by;
    if (!each.judgement.details.empty()) entry["details"] = each.judgement.details;
    if (!each.judgement.plan.empty()) entry["plan"] = each.judgement.plan;
    if (!each.setting.empty()) entry["setting"] = each.setting;
    if (!each.variety.empty()) entry["variety"] = each.variety;
    if (!each.judgement.text.empty()) entry["text"] = each.judgement.text;
    cases.push_back(std::move(entry));
  }
  nlohmann::json not_tried = nlohmann::json::array(), bad = nlohmann::json::array(), exits = nlohmann::json::array();
  for (const auto& [what, why] : not_tried_) not_tried.push_back({{"what", what}, {"why", why}});
  for (const auto& [file, why] : bad_fixtures_) bad.push_back({{"file", file}, {"why", why}});
  for (const ExitCode code : outcome_.all()) exits.push_back({{"code", static_cast<int>(code)}, {"meaning", meaning(code)}});
  const Counts all = count_cases(cases_);
  nlohmann::json settings = nlohmann::json::array();
  for (const auto& [setting, all_of_it] : settings_of(cases_)) {
    nlohmann::json unknown = nlohmann::json::object();
    for (const auto& [variety, number] : all_of_it.unknown) unknown[variety] = number;
    settings.push_back({{"setting", setting}, {"passed", all_of_it.counts.passed}, {"failed", all_of_it.counts.failed},
                        {"not_run", all_of_it.counts.not_run}, {"other", all_of_it.counts.other}, {"words", all_of_it.counts.words},
                        {"words_with_known_plan", all_of_it.known_words}, {"unknown", unknown}});
  }
  return {{"assay", kVersion},
          {"format", 1},
          {"verb", verb_},
          {"backend", {{"name", backend_name_}, {"device", device_}, {"software", software_}}},
          {"exit", static_cast<int>(outcome_.exit_code())},
          {"exits", exits},
          {"counts", {{"passed", all.passed}, {"failed", all.failed}, {"not_run", all.not_run}, {"other", all.other}, {"words", all.words}}},
          {"settings", settings},
          {"not_tried", not_tried},
          {"bad_fixtures", bad},
          {"troubles", troubles_},
          {"notes", notes_},
          {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count()},
          {"cases", cases}};
}

void Report::write_json(const std::string& path) { assay::conformance::write_json(path, json()); }

void write_json(const std::string& path, const nlohmann::json& contents) {
  std::error_code none;
  // A pipe, a terminal or /dev/null is written to, not replaced.
  const bool special = std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none);
  const std::string temporary = special ? path : path + ".part";
  {
    std::ofstream file(temporary, std::ios::binary);
    file << contents.dump(1) << '\n';
    if (!file.flush()) {
      const std::string why = std::strerror(errno);
      if (!special) std::filesystem::remove(temporary, none);
      throw std::runtime_error("cannot write " + path + ": " + why);
    }
  }
  if (special) return;
  if (std::rename(temporary.c_str(), path.c_str()) != 0) throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
}

}  // namespace assay::conformance
