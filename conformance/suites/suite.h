#pragma once
// Judging the generated cases; what `run` does, and the GoogleTest form of the suite.

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/report/report.h"
#include "conformance/suites/judge_line.h"

namespace assay::conformance {

// Every case, in parallel where the backend allows it, large ones one after another.
void judge_lines(const std::vector<CaseLine>& lines, const BackendChoice& choice, const SettingsToTry& settings, bool progress,
                 Report& report);

// A case that fills memory and keeps every processor busy by itself: such cases are judged one after another.
bool is_large(const CaseLine& line);

// Words select fixtures as they select generated cases: a case of a file takes part if every word matches its path,
// "FILE.h5/CASE". `files` are those that hold such a case, and those that cannot be read, to be reported; with no words,
// every file of golden/. A word that matches the path of some case is taken out of `selection.unmatched`. `only` receives
// the words, for judge_fixtures.
void selection_of_fixtures(const std::vector<std::string>& words, Selection& selection, std::vector<std::filesystem::path>& files,
                           std::vector<std::string>& only);

}  // namespace assay::conformance
