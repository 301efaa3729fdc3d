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
                      {"two_causes", cause.two},
                      {"chance", cause.by_chance}});
  }
  nlohmann::json made{{"line", failure.line},       {"wrong", explanation.wrong},       {"words", explanation.words},
                      {"tried", explanation.tried}, {"complete", explanation.complete}, {"causes", std::move(causes)}};
  if (!failure.kept.when.empty()) made["when"] = failure.kept.when;
  if (!explanation.note.empty()) made["note"] = explanation.note;
  return made;
}

void print(const FailureBundle& failure, const Explanation& explanation) {
  say("{}\n", failure.line);
  if (!failure.kept.when.empty()) say("  when    {}\n", failure.kept.when);
  if (!explanation.note.empty()) say("  plan    {}\n", explanation.note);
  say("  wrong   {} of {} words; {} causes tried{}\n", explanation.wrong, explanation.words, explanation.tried,
      explanation.complete    ? ""
      : explanation.left == 0 ? ", not all: the time was over"
                              : fmt::format(", {} mutants not: the time was over", explanation.left));
  if (explanation.causes.empty()) return say("  cause   none of those tried gives a wrong word\n");
  const bool named = explanation.causes[0].full;
  bool first = true;
  for (const Cause& cause : explanation.causes) {
    if (named && !cause.full) break;
    say("  {}  {}\n", !named ? "nearest" : first ? "cause  " : "or     ", text_of(cause, explanation));
    first = false;
  }
  if (explanation.alike() > 1)
    say("  note    these {} give the same words here; a case in which they differ would tell them apart\n", explanation.alike());
}

// The library of mutants that is built beside the program.
std::string mutants_beside_program() {
  std::error_code none;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none);
  const std::filesystem::path library = program.parent_path() / "assay_mutants.so";
  return !none && std::filesystem::exists(library, none) ? library.string() : "";
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

Action add_explain(cli::App& verb) {
  struct Options {
    std::vector<std::string> words;
    BackendChoice backend;
    std::string json;
    std::string mutants = mutants_beside_program();
    int most = 5, seconds = 300;
    bool quiet = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("FAILURE", options->words, "A file of --save-got, or a case line, quoted or not, which the backend fails")
      ->required();
  add_judge_options(verb, options->backend);
  verb.add_option("--most", options->most, "Nearest causes that are listed where none gives every word")
      ->capture_default_str()
      ->check(cli::Range(1, 100));
  verb.add_option("--seconds", options->seconds, "Seconds after which the search ends with what it has; 0: never")
      ->capture_default_str()
      ->check(cli::Range(0, 1000000));
  verb.add_option("--mutants", options->mutants, "Library of mutants, tried where no other cause gives every word, or none")
      ->default_str("assay_mutants.so beside the program, if it is there");
  verb.add_option("--json", options->json, "Write the causes to this file too");
  verb.add_flag("--quiet", options->quiet, "No progress");
  verb.footer(
      "Computes the call again with one thing changed, some hundred to thousand times: options, inputs, plans and units and\n"
      "their fields, scales and elements of other places, rules, presets, orders of sums, outputs written elsewhere; "
      "everywhere,\n"
      "or in the region that the wrong words form. If none of them gives every word, two of them at once are tried, then the\n"
      "mutants: the reference with one operator, index or condition wrong, and faults of whole calls. A cause is named with\n"
      "'every word' only where it gives each word of every output, the wrong and the right ones. Causes that give the same "
      "words\n"
      "are all named, the simplest first. Exit code 0: such a cause was found; 1: none was; the nearest are listed.");
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
      asked.seconds = options->seconds;
      if (options->mutants != "none") asked.mutants = options->mutants;
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
