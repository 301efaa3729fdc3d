#pragma once
// Judging the cases of fixture files; what `verify` does, and `run` for the files of golden/.

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/report/report.h"
#include "conformance/suites/backend_choice.h"

namespace assay::conformance {

// Which words select a case: parts of its path within the file, or words and patterns on "FILE.h5/CASE" (catalogue.h).
enum class FixtureWords { parts_of_case, whole_path };

// Reads each file and judges its cases (those that every word of `only` selects). A file that cannot be used is
// reported and the next one is read. `progress`: show it on a terminal. Of the cases of all files together every
// `shards`-th is judged, from number `shard` on. Returns the number of cases selected, those of other shards included.
std::int64_t judge_fixtures(const std::vector<std::filesystem::path>& files, const std::vector<std::string>& only,
                            const BackendChoice& choice, bool progress, Report& report,
                            FixtureWords words = FixtureWords::parts_of_case, std::int64_t shard = 0, std::int64_t shards = 1);

// Where the fixtures are: ASSAY_GOLDEN, else share/assay/golden beside the program's folder, else the source tree.
std::filesystem::path golden_folder();

// The .h5 files of that folder, sorted.
std::vector<std::filesystem::path> golden_files();

// The fixtures of the program that are missing, as one line that names the folder; empty: none, or
// ASSAY_GOLDEN names another folder.
std::string missing_fixtures();

}  // namespace assay::conformance
