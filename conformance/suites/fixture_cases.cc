#include "conformance/suites/fixture_cases.h"

#include <algorithm>
#include <cstdlib>

#include "conformance/cases/former_words.h"
#include "conformance/catalogue/case_word.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/suites/failure_bundle.h"
#include "conformance/suites/golden_cases.h"
#include "conformance/suites/judge_line.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/progress.h"
#include "conformance/suites/retries.h"
#include "conformance/support/interrupt.h"
#include "golden/io/contained_reader.h"
#include "golden/io/fixture_error.h"
#include "golden/io/manifest.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::string recipe_of(const Case& each) {
  for (const char* name : {"recipe", "kind"}) {
    const auto found = each.attributes.find(name);
    if (found != each.attributes.end() && std::holds_alternative<std::string>(found->second)) {
      return golden::one_line(std::string(present_value(each.op, name, std::get<std::string>(found->second))), 40);
    }
  }
  return "-";
}

}  // namespace

std::int64_t judge_fixtures(const std::vector<std::filesystem::path>& files, const std::vector<std::string>& only,
                            const BackendChoice& choice, bool progress, Report& report, FixtureWords words, std::int64_t shard,
                            std::int64_t shards) {
  std::int64_t selected = 0;
  for (const std::filesystem::path& file : files) {
    if (interrupted()) break;
    golden::Fixture fixture;
    try {
      fixture = golden::read_fixture_contained(file);
    } catch (const golden::FixtureError& error) {
      report.bad_fixture(golden::one_line(file.string()), error.what());
      continue;
    } catch (const golden::MachineError& error) {
      report.note_machine_failed(error.what());
      continue;
    }
    const std::string shown = golden::one_line(file.string());  // file names are input too
    if (is_bundle(fixture.provenance)) {
      report.bad_fixture(shown, shown + ": holds what a failed call gave, not what is expected: assay explain reads it");
      continue;
    }
    std::vector<const Case*> cases;
    for (const Case& each : fixture.cases) {
      const bool wanted = std::all_of(only.begin(), only.end(), [&](const std::string& word) {
        if (words == FixtureWords::parts_of_case) return each.name.find(word) != std::string::npos;
        return matches(word, each.name, file.filename().string() + "/" + each.name);
      });
      if (!wanted) continue;
      if (selected++ % shards == shard && !report.has_earlier(file.filename().string(), each.name)) cases.push_back(&each);
    }
    Progress line(golden::one_line(file.filename().string()), static_cast<std::int64_t>(cases.size()), progress);
    std::vector<std::string> inconsistent(cases.size());
    judge_in_parallel(
        choice, static_cast<std::int64_t>(cases.size()),
        [&](std::int64_t i, Judged judged) {
          const Case& each = *cases[static_cast<std::size_t>(i)];
          JudgeOptions options = choice.judge_options();
          options.title = shown + ": " + each.name;
          options.reproduce =
              command_name() + " verify " + quoted(file.string()) + " --case " + quoted(each.name) + choice.words();
          try {
            require_room(each);
            // The file's own expectation takes precedence over a backend's.
            const bool expects = !each.out.empty();
            if (!expects && (judged.expecting == nullptr || each.op != "grouped_gemm")) {
              throw InvalidArgument("out", "empty", "at least one expected output (assay compute makes them)");
            }
            if (!expects) options.expected_by = judged.expecting;
            const auto judge_case = [&](Judged with) {
              CaseReport report{golden::one_line(file.filename().string()), each.name, "", each.op, recipe_of(each), {}};
              try {
                report.judgement = judge(with.backend, each, expects ? &each : nullptr, options);
                with.settle();
              } catch (const BackendFault& fault) {
                report.judgement = judgement_of(fault, with, options);
              } catch (const BackendError& error) {
                report.judgement = judgement_of(error, options);
              }
              return std::vector<CaseReport>{std::move(report)};
            };
            std::vector<CaseReport> reports = with_retries(judged, choice, judge_case);
            note_device(reports, judged, choice);
            CaseReport made = std::move(reports.front());
            const Verdict verdict = made.judgement.verdict;
            line.done(each.name, made.judgement.verdict != Verdict::passed && made.judgement.verdict != Verdict::not_run);
            report.add(std::move(made));
            return verdict;
          } catch (const InvalidArgument& error) {
            inconsistent[static_cast<std::size_t>(i)] = error.what();
          } catch (const NotSupported& error) {
            inconsistent[static_cast<std::size_t>(i)] = error.what();
          }
          return Verdict::not_tried;
        },
        [&](std::int64_t i, Judgement judgement) {
          const Case& each = *cases[static_cast<std::size_t>(i)];
          if (judgement.verdict == Verdict::machine_failed) judgement.text = shown + ": " + each.name + "\n  " + judgement.text;
          report.add({golden::one_line(file.filename().string()), each.name, "", each.op, recipe_of(each), std::move(judgement)});
        });
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!inconsistent[i].empty())
        report.bad_fixture(shown, shown + ": /" + cases[i]->name + ": " + golden::one_line(inconsistent[i], 1000));
    }
  }
  return selected;
}

std::filesystem::path golden_folder() {
  if (const char* named = std::getenv("ASSAY_GOLDEN"); named != nullptr && *named != '\0') return named;
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    const std::filesystem::path installed = self.parent_path().parent_path() / "share" / "assay" / "golden";
    if (std::filesystem::is_directory(installed, failed)) return installed;
  }
  return ASSAY_SOURCE_GOLDEN;
}

std::string missing_fixtures() {
  if (const char* named = std::getenv("ASSAY_GOLDEN"); named != nullptr && *named != '\0') return "";
  const std::filesystem::path folder = golden_folder();
  try {
    for (const golden::ManifestEntry& entry : golden::read_manifest(folder / "manifest.json")) {
      std::error_code failed;
      if (!std::filesystem::is_regular_file(folder / entry.file, failed))
        return (folder / entry.file).string() + ": no such file";
    }
  } catch (const golden::FixtureError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> files;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder(), failed)) {
    if (entry.path().extension() == ".h5") files.push_back(entry.path());
  }
  const bool absent = failed == std::errc::no_such_file_or_directory || failed == std::errc::not_a_directory;
  if (failed && !absent) throw golden::MachineError(golden_folder().string() + ": cannot be read: " + failed.message());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace assay::conformance
