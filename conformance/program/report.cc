// assay report RESULTS...: what people and CI servers read, from the result files of a run.

#include <fmt/format.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "conformance/program/verbs.h"
#include "conformance/publish/formats.h"
#include "conformance/report/line_chain.h"
#include "conformance/report/output_file.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"
#include "golden/io/replace_file.h"

namespace assay::conformance {
namespace {

struct ReportOptions {
  std::vector<std::string> results;
  bool check = false;
  std::string out, waivers, drafts, badge, origin = "assay";
};

bool is_origin(const std::string& text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

struct OutputText {
  std::string path, text;
};

std::string json_text(const nlohmann::json& value) {
  return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::vector<OutputText> outputs(const ReportOptions& options, const Collected& all) {
  std::vector<OutputText> made;
  if (!options.out.empty()) {
    const std::filesystem::path folder(options.out);
    made.push_back({(folder / "junit.xml").string(), junit_xml(all)});
    made.push_back({(folder / "ctrf.json").string(), json_text(ctrf_json(all))});
    made.push_back({(folder / "kcidb.json").string(), json_text(kcidb_json(all, options.origin))});
    made.push_back({(folder / "summary").replace_extension(".md").string(), summary_markdown(all)});
    made.push_back({(folder / "report.html").string(), report_html(all)});
  }
  if (!options.badge.empty()) made.push_back({options.badge, badge_svg(all)});
  if (!options.drafts.empty()) {
    std::vector<CaseReport> cases;
    for (const PublishedCase& each : all.cases) cases.push_back(each.report);
    made.push_back({options.drafts,
                    "# Drafts: fill in reason, link, owner and expires of those that you accept.\n" + drafted_waivers(cases)});
  }
  return made;
}

// The digests of the files, recomputed.
ExitCode check_files(const ReportOptions& options) {
  if (!options.out.empty() || !options.badge.empty() || !options.drafts.empty() || !options.waivers.empty())
    throw cli::ValidationError("--check", "writes nothing: expected no other option");
  Outcome outcome;
  for (const std::string& path : options.results) {
    const FileCheck found = check_results(path);
    say("{}: {}\n", golden::one_line(path), found.text);
    if (found.state == FileCheck::State::incomplete) outcome.add(ExitCode::incomplete);
    if (found.state == FileCheck::State::changed || found.state == FileCheck::State::without_digests)
      outcome.add(ExitCode::bad_fixture);
  }
  return outcome.exit_code();
}

ExitCode make_report(const ReportOptions& options) {
  if (options.check) return check_files(options);
  if (options.out.empty() && options.drafts.empty() && options.badge.empty())
    throw cli::ValidationError("--out", "expected a folder for the report, or --badge FILE or --write-waivers FILE");
  if (!is_origin(options.origin))
    throw cli::ValidationError("--origin", fmt::format("'{}': expected lower-case letters, digits and '_'", options.origin));
  if (std::error_code none;
      !options.drafts.empty() && std::filesystem::exists(options.drafts, none) && !is_special(options.drafts))
    throw cli::ValidationError("--write-waivers", fmt::format("{} is there: expected the name of a new file", options.drafts));
  std::vector<Waiver> waivers;
  if (!options.waivers.empty()) waivers = read_waivers(options.waivers);
  const Collected all = collect_results(options.results, options.waivers.empty() ? nullptr : &waivers);
  const std::vector<OutputText> texts = outputs(options, all);  // all before anything is written
  if (!options.out.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(options.out, failed);
    if (failed) throw golden::OutputError(options.out, failed.value());
  }
  for (const OutputText& each : texts) check_output(each.path);
  for (const OutputText& each : texts) write_output(each.path, each.text);
  for (const std::string& at : all.unused_waivers) warn("assay report: waiver {} selects no case\n", at);
  say("{}\n", all.verdict());
  return all.outcome.exit_code();
}

}  // namespace

Action add_report(cli::App& verb) {
  const auto options = std::make_shared<ReportOptions>();
  verb.add_option("RESULTS", options->results,
                  "Files of --results or --json of run, verify or repro: of one run, of its shards, or of several")
      ->required();
  verb.add_option("--out", options->out,
                  "Write report.html, a summary in Markdown, junit.xml, ctrf.json and kcidb.json into this folder");
  verb.add_option("--waivers", options->waivers,
                  "TOML file of known failures, in place of those that the runs had; judged for the day of each run");
  verb.add_option("--write-waivers", options->drafts, "Write a draft of a waiver for each failure to this new file");
  verb.add_flag("--check", options->check, "Write nothing: recompute the digests of the files, and say which line was changed");
  verb.add_option("--badge", options->badge, "Write a badge with the counts, as SVG, to this file");
  verb.add_option("--origin", options->origin, "Name of the submitting system in kcidb.json")->capture_default_str();
  verb.footer(
      R"(The last line of standard output is the verdict on what the files hold, and the exit code is that of the verdict, as
`assay run` would give it, with the waivers taken into account. Of one case of one implementation the newest verdict counts.)");
  return [options] {
    try {
      return make_report(*options);
    } catch (const cli::ValidationError& error) {
      warn("assay report: {}\n", error.what());
      return ExitCode::usage;
    }
  };
}

}  // namespace assay::conformance
