// assay explain BUNDLE | LINE: the cause of a failure, by trying every change of the call.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "conformance/diagnose/explain/explain.h"
#include "conformance/program/backend_options.h"
#include "conformance/program/failed_call.h"
#include "conformance/program/verbs.h"
#include "conformance/report/output_file.h"
#include "conformance/suites/judge_line.h"
#include "conformance/suites/progress.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_output.h"

namespace assay::conformance {
namespace {

struct ExplainInterrupted {};

bool is_file(const std::vector<std::string>& words) {
  std::error_code none;
  return words.size() == 1 && (words[0].ends_with(".h5") || std::filesystem::exists(words[0], none));
}

nlohmann::json to_json(const FailureBundle& failure, const Explanation& explanation) {
  nlohmann::json causes = nlohmann::json::array();
  for (const Cause& cause : explanation.causes) {
    causes.push_back({{"cause", cause.text},
                      {"region", cause.region},
                      {"explained", cause.explained},
                      {"spoilt", cause.spoilt},
                      {"every_word", cause.full},
                      {"chance", cause.by_chance}});
  }
  nlohmann::json made{{"line", failure.line},
                      {"wrong", explanation.wrong},
                      {"words", explanation.words},
                      {"tried", explanation.tried},
                      {"causes", std::move(causes)}};
  if (!failure.kept.when.empty()) made["when"] = failure.kept.when;
  if (!explanation.note.empty()) made["note"] = explanation.note;
  return made;
}

void print(const FailureBundle& failure, const Explanation& explanation) {
  say("{}\n", failure.line);
  if (!failure.kept.when.empty()) say("  when    {}\n", failure.kept.when);
  if (!explanation.note.empty()) say("  plan    {}\n", explanation.note);
  say("  wrong   {} of {} words; {} causes tried\n", explanation.wrong, explanation.words, explanation.tried);
  if (explanation.causes.empty()) return say("  cause   none of those tried gives a wrong word\n");
  const bool named = explanation.causes[0].full;
  bool first = true;
  for (const Cause& cause : explanation.causes) {
    if (named && !cause.full) break;
    say("  {}  {}\n", !named ? "nearest" : first ? "cause  " : "or     ", text_of(cause, explanation));
    first = false;
  }
}

// The call of a line whose outputs are wrong on the backend, or why there is none.
std::string judged(const std::vector<std::string>& words, BackendChoice& choice, FailureBundle& failure) {
  const CaseLine line = parse_case_line(joined(words));
  std::unique_ptr<Backend> opened = choice.open();
  std::unique_ptr<Backend> expecting = choice.open_expecting();
  choice.keeps_got = true;
  const CaseReport report = judge_line(line, {*opened, expecting.get()}, choice);
  failure.line = to_text(line);
  failure.text = report.judgement.text;
  if (report.judgement.kept == nullptr) {
    return report.judgement.text.empty()
               ? fmt::format("{}: {}: nothing to explain", failure.line, name_of(report.judgement.verdict))
               : report.judgement.text + "\nno output is wrong by bits: nothing to explain";
  }
  failure.kept = *report.judgement.kept;
  return "";
}

}  // namespace

Action add_explain(CLI::App& verb) {
  struct Options {
    std::vector<std::string> words;
    BackendChoice backend;
    std::string json;
    int most = 5;
    bool quiet = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("FAILURE", options->words, "A file of --save-got, or a case line, quoted or not, which the backend fails")
      ->required();
  add_judge_options(verb, options->backend);
  verb.add_option("--most", options->most, "Causes that are named")->capture_default_str()->check(CLI::Range(1, 100));
  verb.add_option("--json", options->json, "Write the causes to this file too");
  verb.add_flag("--quiet", options->quiet, "No progress");
  verb.footer(
      "Computes the call again with one thing changed, some hundred to thousand times: options, inputs, plans and units and\n"
      "their fields, scales and elements of other places, rules, presets, outputs written elsewhere; everywhere, or in the "
      "region\n"
      "that the wrong words form. A cause is named with 'every word' only where it gives each word of every output, the wrong "
      "and\n"
      "the right ones. Causes that give the same words are all named, the simplest first. Exit code 0: such a cause was found;\n"
      "1: none was; the nearest are listed.");
  return [options] {
    if (!options->json.empty()) check_output(options->json);
    FailureBundle failure;
    if (is_file(options->words)) {
      failure = read_bundle(options->words[0]);
    } else if (const std::string why = judged(options->words, options->backend, failure); !why.empty()) {
      say("{}\n", why);
      return ExitCode::nothing_selected;
    }
    Explanation explanation;
    try {
      Progress progress("causes", 0, !options->quiet);
      ExplainOptions asked;
      asked.most = static_cast<std::size_t>(options->most);
      asked.tried = [&](const std::string& text) {
        if (interrupted()) throw ExplainInterrupted();
        progress.done(text, false);
      };
      explanation = explain(failure.kept, asked);
    } catch (const ExplainInterrupted&) {
      say("interrupted\n");
      return ExitCode::incomplete;
    }
    print(failure, explanation);
    if (!options->json.empty()) write_json(options->json, to_json(failure, explanation));
    return !explanation.causes.empty() && explanation.causes[0].full ? ExitCode::passed : ExitCode::failed;
  };
}

}  // namespace assay::conformance
