#include "conformance/program/run_items.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "conformance/catalogue/case_word.h"
#include "conformance/report/report.h"
#include "golden/io/contained_reader.h"
#include "golden/io/fixture_error.h"

namespace assay::conformance {

std::vector<RunItem> items_of(const RunSelection& selection, bool with_self_check) {
  std::vector<RunItem> items;
  for (const CaseLine& each : selection.chosen) items.push_back({kGenerated, to_text(each), to_text(each)});
  golden::ReadingProcess reader;
  for (const std::filesystem::path& file : selection.files) {
    const std::string suite = golden::one_line(file.filename().string());
    try {
      for (const Case& each : reader.read(file).cases) {
        const bool chosen = std::all_of(
            selection.fixture_words.begin(), selection.fixture_words.end(),
            [&](const std::string& word) { return matches(word, each.name, file.filename().string() + "/" + each.name); });
        if (chosen) items.push_back({suite, each.name, suite + ": " + each.name});
      }
    } catch (const golden::FixtureError&) {  // see above
    }
  }
  if (!with_self_check) return items;
  for (const CaseLine& each : catalogue(Profile::smoke)) {
    const std::string line = to_text(each);
    items.push_back({kSelfCheck, line, std::string(kSelfCheck) + ": " + line});
  }
  return items;
}

RunOptions options_of(const nlohmann::json& header) {
  const nlohmann::json& selection = header.at("selection");
  RunOptions options;
  options.random = selection.at("random");
  if (options.random > 0) options.seed = selection.at("seed");
  if (options.random == 0) options.profile = selection.at("profile");
  options.case_files = selection.value("case_files", std::vector<std::string>{});
  options.words = selection.at("words");
  options.fixtures = !options.case_files.empty() && !selection.at("fixtures").empty();
  return options;
}

}  // namespace assay::conformance
