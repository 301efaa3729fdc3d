// A report as Markdown: what a person reads first, and every failure by name.

#include <fmt/format.h>

#include "conformance/publish/formats.h"
#include "conformance/publish/tables.h"
#include "conformance/report/matrix.h"
#include "conformance/report/page_text.h"
#include "conformance/report/version.h"

namespace assay::conformance {
namespace {

constexpr std::size_t kSlowestOfSummary = 10;

std::string summary_number(std::int64_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string summary_table(const Collected& all) {
  const bool several = all.implementations.size() > 1;
  std::string made = several ? "| implementation " : "";
  made += "| op | recipe | passed | failed | absent | flaky | waived | other |\n";
  made += std::string(several ? "|---" : "") + "|---|---|--:|--:|--:|--:|--:|--:|\n";
  const auto number = [](std::int64_t value) { return value == 0 ? std::string() : std::to_string(value); };
  for (const ReportRow& row : report_rows(all)) {
    const Counts& counts = row.all;
    if (several) made += "| " + markdown_text(all.implementation_text(row.implementation)) + " ";
    made += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", markdown_text(row.op),
                        row.recipe == "-" ? "" : markdown_text(row.recipe), counts.passed, number(counts.failed),
                        number(counts.not_run), number(counts.flaky), number(counts.waived),
                        number(counts.other - counts.flaky - counts.waived));
  }
  return made;
}

std::string summary_failures(const Collected& all) {
  const std::vector<const PublishedCase*> found = failures(all);
  std::string made;
  if (!all.faults.empty()) {
    made += "## Beside the cases\n\n";
    for (const auto& [what, why] : all.faults) made += fmt::format("- {}: {}\n", markdown_text(what), markdown_text(why));
    made += "\n";
  }
  if (found.empty()) return made;
  made += fmt::format("## {} without a pass\n\n", summary_number(static_cast<std::int64_t>(found.size()), "case"));
  for (const PublishedCase* each : found) {
    made += fmt::format("<details><summary>{}: <code>{}</code></summary>\n\n", name_of(each->report.judgement.verdict),
                        html_text(each->title));
    made += markdown_block(each->body + (each->repro.empty() ? "" : "\n  repro   " + each->repro));
    if (!each->report.fingerprint.empty()) made += "\nfingerprint `" + each->report.fingerprint + "`\n";
    made += "\n</details>\n";
  }
  return made + "\n";
}

std::string summary_waivers(const Collected& all) {
  const std::vector<const PublishedCase*> found = waived(all);
  if (found.empty() && all.unused_waivers.empty()) return "";
  std::string made = "## Waivers\n\n";
  for (const PublishedCase* each : found) {
    made += fmt::format("- {}: {}: {}\n", name_of(each->report.waiver->state), markdown_text(each->title),
                        markdown_text(waiver_text(*each->report.waiver)));
  }
  for (const std::string& at : all.unused_waivers) made += fmt::format("- selects no case: {}\n", markdown_text(at));
  return made + "\n";
}

std::string summary_absences(const Collected& all) {
  const std::vector<Absence> found = absences(all);
  if (found.empty()) return "";
  std::string made =
      fmt::format("## Absences\n\nEach is proved: {}.\n\n| cases | of | reason |\n|--:|---|---|\n", absence_proof());
  for (const Absence& each : found) {
    std::string where;
    for (const auto& [name, number] : each.where) where += fmt::format("{}{} ({})", where.empty() ? "" : ", ", name, number);
    made += fmt::format("| {} | {} | {} |\n", each.cases, markdown_text(where), markdown_text(each.reason));
  }
  return made + "\n";
}

std::string summary_runs(const Collected& all) {
  std::string made = "## What was run\n\n| result file | SHA-256 | date | run | exit | on |\n|---|---|---|---|---|---|\n";
  for (const PublishedRun& run : all.runs) {
    made += fmt::format("| {} | `{}` | {} | {} | {} | {}, {} |\n", markdown_text(run.file), short_digest(run.sha256),
                        markdown_text(run.date), markdown_text(run.verb), markdown_text(run.complete ? run.exit : "incomplete"),
                        markdown_text(run.host), markdown_text(run.system));
  }
  for (const auto& [what, why] : all.not_tried)
    made += fmt::format("\nNot run: {}: {}.\n", markdown_text(what), markdown_text(why));
  return made + "\n";
}

}  // namespace

std::string summary_markdown(const Collected& all) {
  std::string made = fmt::format("# {}\n\n", markdown_text(all.verdict()));
  for (std::size_t i = 0; i < all.implementations.size(); ++i) made += "- " + markdown_text(all.implementation_text(i)) + "\n";
  made += fmt::format("\n{} of {}; {} elements compared.\n\n", counts_text(all.counts),
                      summary_number(all.counts.cases(), "case"), all.counts.elements);
  made += summary_table(all) + "\n" + summary_failures(all) + summary_waivers(all) + summary_absences(all);
  made += "## Slowest cases\n\n| time | case |\n|--:|---|\n";
  for (const PublishedCase* each : slowest(all, kSlowestOfSummary))
    made += fmt::format("| {} | {} |\n", seconds_text(each->report.judgement.seconds), markdown_text(each->title));
  return made + "\n" + summary_runs(all) + fmt::format("Made by `assay report` {}.\n", kVersion);
}

}  // namespace assay::conformance
