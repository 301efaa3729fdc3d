// The summary of a report on standard output. Tables fit 60 columns; the verdict is one line.

#include <fmt/format.h>
#include <unistd.h>

#include "conformance/report/report.h"
#include "conformance/report/report_counts.h"
#include "conformance/report/waivers.h"
#include "conformance/suites/progress.h"
#include "conformance/support/standard_output.h"

namespace assay::conformance {
namespace {

std::string paint(const std::string& text, const char* colour) {
  return colour_allowed(STDOUT_FILENO) ? fmt::format("\033[{}m{}\033[0m", colour, text) : text;
}

void say_row(const std::string& name, const Counts& counts) {
  say("{:<23}{:>7}{:>7}{:>8}{:>6}{:>9}\n", name, counts.passed, counts.failed, counts.not_run, counts.other,
      short_number(counts.elements));
}

// Ops, and their recipes below them.
void say_table(const std::vector<CaseReport>& cases) {
  std::map<std::string, std::map<std::string, Counts>> rows;
  for (const CaseReport& each : cases) count(rows[each.op][each.recipe], each);
  if (rows.empty()) return;
  say("{:<23}{:>7}{:>7}{:>8}{:>6}{:>9}\n", "op and recipe", "passed", "failed", "not run", "other", "elements");
  for (const auto& [op, recipes] : rows) {
    if (recipes.size() == 1 && recipes.begin()->first == "-") {
      say_row(op, recipes.begin()->second);
      continue;
    }
    say("{}\n", op);
    for (const auto& [recipe, counts] : recipes) say_row("  " + recipe, counts);
  }
}

}  // namespace

void Report::print_settings() const {
  constexpr std::size_t kMaxNamed = 8;
  const std::map<std::string, SettingCounts> settings = settings_of(cases_);
  std::int64_t elements = 0, known = 0;
  say("{:>7}{:>7}{:>8}{:>6}{:>9}{:>11}  {}\n", "passed", "failed", "not run", "other", "elements", "plan known", "setting");
  for (const auto& [setting, of] : settings) {
    const double share =
        of.counts.elements == 0 ? 0 : 100.0 * static_cast<double>(of.known_elements) / static_cast<double>(of.counts.elements);
    say("{:>7}{:>7}{:>8}{:>6}{:>9}{:>10.1f}%  {}\n", of.counts.passed, of.counts.failed, of.counts.not_run, of.counts.other,
        short_number(of.counts.elements), share, setting.empty() ? "own choice" : setting);
    elements += of.counts.elements, known += of.known_elements;
  }
  for (const auto& [setting, of] : settings) {
    if (of.unknown.empty()) continue;
    std::string text;
    std::size_t listed = 0;
    for (const auto& [variety, number] : of.unknown) {
      if (listed++ == kMaxNamed) break;
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", variety, number);
    }
    if (of.unknown.size() > kMaxNamed) text += fmt::format(" and {} more", of.unknown.size() - kMaxNamed);
    say("plan unknown, {}: {}\n", setting.empty() ? "the backend's own choice" : setting, text);
  }
  if (elements > 0)
    say("plan known for {:.2f}% of {} elements of products\n", 100.0 * static_cast<double>(known) / static_cast<double>(elements),
        elements);
}

// "PASS run --profile smoke: backend faulty of /x/faulty.so on CPU (x86-64), ...: 6 passed, ...".
std::string Report::verdict_line() const {
  const Counts all = count_cases(cases_);
  const bool good = outcome_.exit_code() == ExitCode::passed;
  // A proved absence is not a failure; but a partial pass gives the number of absent cases.
  std::string partial;
  if (all.not_run > 0) partial = fmt::format("{} of {} cases absent", all.not_run, all.cases());
  if (all.waived > 0) partial += fmt::format("{}{} of {} failed, waived", partial.empty() ? "" : ", ", all.waived, all.cases());
  const std::string word = !good ? "FAIL" : partial.empty() ? "PASS" : "PASS (partial: " + partial + ")";
  const std::string bases = elements_text(bases_of(cases_));
  std::string codes;
  for (const ExitCode code : outcome_.all())
    codes += fmt::format("{}{} ({})", codes.empty() ? "" : ", ", static_cast<int>(code), meaning(code));
  std::string claimed;
  if (claims_ && claims_->tells_levels()) claimed = fmt::format("; levels passed: {}", claims_->passed_levels(true));
  std::string apart;  // of the others
  if (all.flaky > 0) apart = fmt::format("{} flaky", all.flaky);
  if (all.waived > 0) apart += fmt::format("{}{} waived", apart.empty() ? "" : ", ", all.waived);
  if (!apart.empty()) apart = " (" + apart + ")";
  return fmt::format("{} {}: {}: {} passed, {} failed, {} not run, {} other{}{}, {} elements compared{}{}, {:.1f} s{}", word,
                     verb_, tested_.text(), all.passed, all.failed, all.not_run, all.other, apart,
                     resumed_ > 0 ? fmt::format(" ({} of an earlier run)", resumed_) : "", all.elements,
                     bases.empty() ? "" : " (passed: " + bases + ")", claimed, seconds_, codes.empty() ? "" : "; exit " + codes);
}

void Report::print_waivers() const {
  using State = WaiverStanding::State;
  std::map<std::string, std::pair<const WaiverStanding*, std::int64_t>> covering;
  std::int64_t flaky = 0;
  for (const CaseReport& each : cases_) {
    flaky += each.judgement.verdict == Verdict::flaky;
    if (!each.waiver) continue;
    const WaiverStanding& waiver = *each.waiver;
    const std::string title = each.line.empty() ? each.suite + "/" + each.name : each.line;
    if (waiver.state == State::covers) {
      auto& [standing, number] = covering[waiver.at];
      standing = &waiver;
      ++number;
    } else if (waiver.state == State::expired) {
      say("waiver out of date: {}: expired {}, owner {}: {}\n", waiver.at, waiver.expires, waiver.owner, title);
    } else if (waiver.state == State::passes) {
      say("waiver out of date: {}: the case passes: {}\n", waiver.at, title);
    }
  }
  for (const auto& [at, each] : covering) {
    say("waived, {} case{}: {} ({}; {}, until {}, {})\n", each.second, each.second == 1 ? "" : "s", each.first->reason, at,
        each.first->owner, each.first->expires, each.first->link);
  }
  if (flaky > 0) say("flaky, {} case{}: failed, then passed when judged again, which is no pass\n", flaky, flaky == 1 ? "" : "s");
  if (waivers_ == nullptr) return;
  for (const std::string& at : waivers_->unused(cases_)) say("note: waiver {} selects no case of this run\n", at);
}

void Report::print_summary() {
  std::map<std::string, std::int64_t> reasons, untried;
  for (const CaseReport& each : cases_) {
    if (each.judgement.verdict == Verdict::not_run) ++reasons[first_line(each.judgement.text)];
    if (each.judgement.verdict == Verdict::not_tried) ++untried[first_line(each.judgement.text)];
  }
  if (failures_ > most_shown_)
    say("... and {} more (--json has them all, --show sets how many are printed)\n\n", failures_ - most_shown_);
  say_table(cases_);
  const std::map<std::string, BasisCounts> bases = bases_of(cases_);
  if (bases.size() > 1 || (bases.size() == 1 && bases.begin()->first != name_of(CheckBasis::bits))) {
    std::string text;
    for (const auto& [basis, counts] : bases) text += fmt::format("{}{} by {}", text.empty() ? "" : "; ", counts.cases, basis);
    say("passed: {}\n", text);
  }
  if (tell_settings_) print_settings();
  for (const auto& [device, number] : devices_of(cases_)) say("device {}: {} case{}\n", device, number, number == 1 ? "" : "s");
  for (const auto& [predicted, number] : predicted_of(cases_))
    say("expected outputs, {} case{}: {}\n", number, number == 1 ? "" : "s", name_of(predicted));
  for (const auto& [way, number] : ways_of(cases_)) say("judged otherwise, {} case{}: {}\n", number, number == 1 ? "" : "s", way);
  for (const auto& [reason, number] : reasons) say("not run, {} case{}: {}\n", number, number == 1 ? "" : "s", reason);
  for (const auto& [reason, number] : untried) say("not tried, {} case{}: {}\n", number, number == 1 ? "" : "s", reason);
  for (const auto& [what, why] : not_tried_) say("not run, {}: {}\n", what, why);
  print_waivers();
  for (const std::string& trouble : troubles_) say("{}\n", trouble);
  for (const std::string& text : notes_) say("note: {}\n", text);
  if (!empty_shard_.empty()) say("0 cases in this shard ({}): others have what was selected\n", empty_shard_);
  if (claims_) say("{}", claims_text(*claims_, most_shown_));
  const std::string verdict = verdict_line();
  const std::string word = verdict.substr(0, 4);
  say("{}{}\n", paint(word, word == "PASS" ? "32" : "31"), verdict.substr(4));
  flush_standard_output();
}

}  // namespace assay::conformance
