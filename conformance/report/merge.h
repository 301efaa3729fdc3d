#pragma once
// Result files of the parts of one run, joined.

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/report/earlier_results.h"
#include "conformance/report/report.h"

namespace assay::conformance {

// One part: a file of --results or --json, or what stands for one.
struct RunPart {
  std::string path;    // as the user named it
  std::string sha256;  // of the file
  EarlierResults results;
  std::string journal = "";   // the folder that it is a file of; empty: none
  bool is_cut_short = false;  // of a journal: blocks are not done
};
// The part that a file is, or the parts in the folder of a journal (conformance/suites/journal.h).
// Errors: golden::FixtureError for one that cannot be read, or that is not of `run`.
std::vector<RunPart> read_parts(const std::string& path);

struct MergedFile {
  std::string path, sha256;  // of a journal: of the digests of its files, in order
  std::string shard;         // "3/8"; "journal"
  std::string date, host;
  std::int64_t verdicts = 0;  // of this file, the self-check's included
  bool ended = false;         // it has a summary; of a journal: all blocks are done
};

struct MergedRun {
  nlohmann::json header;               // of the whole run, without shards
  std::int64_t whole_cases = 0;        // generated cases of the whole run
  std::vector<MergedFile> files;       // by shard, then by digest
  std::vector<CaseReport> cases;       // sorted by suite, name and setting; each once
  std::vector<nlohmann::json> others;  // summaries of the files, for what they say beside verdicts
  std::vector<std::string> twice;      // "CASE: in a.jsonl and in b.jsonl"
  std::int64_t same_files = 0;         // files that hold the bytes of another one, and count once
  double seconds = 0;                  // of all parts together
};

// The order of `parts` does not matter. A case that has a verdict in several parts counts once; a part that ended before it
// judged the case itself ("unfinished", "not tried", "machine failed") gives way to one that did.
// Errors: golden::FixtureError naming two files and what differs: device, program, library, selection, settings, or the verdict on
// a case.
MergedRun merge_parts(std::vector<RunPart> parts);

// The header of the whole run that a shard is a part of. Errors: std::runtime_error for one that does not say which it is.
nlohmann::json whole_header(nlohmann::json header);

// A report as lines of a file of results: header, cases, summary.
std::string results_text(const nlohmann::json& report);

}  // namespace assay::conformance
