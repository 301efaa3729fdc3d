#include "conformance/program/merged_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "conformance/program/predict_cases.h"
#include "conformance/program/run_items.h"
#include "conformance/program/run_source.h"
#include "conformance/report/merge_predictions.h"
#include "conformance/report/output_file.h"
#include "conformance/report/version.h"
#include "conformance/support/standard_output.h"

namespace assay::conformance {
namespace {

std::string joined_words(const std::vector<std::string>& words, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), most); ++i) text += (i == 0 ? "" : ", ") + words[i];
  return words.size() > most ? fmt::format("{} and {} more", text, words.size() - most) : text;
}

// Selected cases that no part predicts or leaves out.
std::vector<std::string> cases_not_predicted(const MergedPredictions& merged, const RunSelection& selection) {
  std::vector<std::string> missing;
  for (const CaseLine& each : selection.chosen) {
    std::string line = to_text(each);
    if (merged.predicted.count(line) == 0 && merged.left_out.count(line) == 0) missing.push_back(std::move(line));
  }
  return missing;
}

}  // namespace

SelectedAgain select_again(const nlohmann::json& header) {
  SelectedAgain made;
  const std::string version = header.value("assay", ""), commit = header.value("commit", "");
  if (version != kVersion || commit != build_commit()) {
    made.why_not = fmt::format("this program is {} {}, the files are of {} {}", kVersion, build_commit(), version, commit);
    return made;
  }
  try {
    made.options = options_of(header);
    const bool predicts = header.contains("predictions");  // of no fixtures
    const std::string architecture =
        predicts ? header.value("architecture", "") : header.at("backend").at("architecture").get<std::string>();
    made.selection = select_for_run(cases_of(made.options, architecture),
                                    !predicts && (made.options.of_catalogue() || made.options.fixtures), made.options.words, {});
    if (whole_digest_of(made.selection) != header.at("selection").at("sha256").get<std::string>())
      made.why_not = predicts ? "the case files here are others than those of the run"
                              : "the case files or fixtures here are others than those of the run";
  } catch (const std::exception& error) {
    made.why_not = error.what();
  }
  return made;
}

std::string missing_shards(const std::vector<MergedFile>& files) {
  constexpr std::size_t kMaxNamed = 16;
  std::set<std::string> there;
  std::set<long long> totals;
  for (const MergedFile& each : files) {
    there.insert(each.shard);
    if (each.shard == "journal") return "";
    totals.insert(std::stoll(each.shard.substr(each.shard.find('/') + 1)));
  }
  if (totals.size() != 1) return "";
  std::vector<std::string> missing;
  for (long long i = 0; i < *totals.begin(); ++i) {
    const std::string shard = fmt::format("{}/{}", i, *totals.begin());
    if (there.count(shard) == 0) missing.push_back(shard);
  }
  if (missing.empty()) return "";
  return fmt::format("{} of the run {} missing: {}", missing.size() == 1 ? "a shard" : fmt::format("{} shards", missing.size()),
                     missing.size() == 1 ? "is" : "are", joined_words(missing, kMaxNamed));
}

void say_not_ended(const std::vector<MergedFile>& files, const char* verb) {
  for (const MergedFile& each : files) {
    if (each.ended) continue;
    if (each.shard == "journal") {
      say("{}: the blocks of this journal are not all done ({} --journal goes on)\n", each.path, verb);
    } else {
      say("{} (shard {}) has no summary: its run did not end (--resume goes on)\n", each.path, each.shard);
    }
  }
}

void say_some(const char* what, const std::vector<std::string>& all, int most) {
  for (std::size_t i = 0; i < std::min(all.size(), static_cast<std::size_t>(most)); ++i) say("{}: {}\n", what, all[i]);
  if (all.size() > static_cast<std::size_t>(most))
    say("{}: and {} more (--show sets how many are printed)\n", what, all.size() - static_cast<std::size_t>(most));
}

void say_same_files(std::int64_t same_files) {
  if (same_files > 0)
    say("{} file{} the bytes of another one, and count{} once\n", same_files, same_files == 1 ? " has" : "s have",
        same_files == 1 ? "s" : "");
}

ExitCode merge_prediction_files(const std::vector<std::string>& paths, const std::string& output, int show) {
  if (!output.empty()) check_output(output);
  const MergedPredictions merged = merge_predictions(paths);
  const SelectedAgain again = select_again(merged.header);
  say_some("twice", merged.twice, show);
  say_same_files(merged.same_files);
  if (const std::string shards = missing_shards(merged.files); !shards.empty()) say("{}\n", shards);
  say_not_ended(merged.files, "predict");
  if (again.why_not.empty()) {
    say_some("missing", cases_not_predicted(merged, again.selection), show);
  } else if (merged.missing() > 0) {
    say("missing cases are counted, not named: {}\n", again.why_not);
  }
  std::map<std::string, std::int64_t> left_out;
  for (const auto& [line, why] : merged.left_out) ++left_out[why];
  say_left_out(left_out);
  say("merged: {} file{}, {} of {} cases predicted, digest {}\n", merged.files.size(), merged.files.size() == 1 ? "" : "s",
      merged.predicted.size(), merged.whole_cases, merged.digest());
  if (!output.empty()) write_output(output, predictions_text(merged));
  if (merged.missing() == 0) return ExitCode::passed;
  say("incomplete: {} case{} in no part\n", merged.missing(), merged.missing() == 1 ? " is" : "s are");
  return ExitCode::incomplete;
}

}  // namespace assay::conformance
