#pragma once
// The header of a report or a file of results: program, tested backend, time, host and command line.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "conformance/suites/backend_choice.h"
#include "conformance/suites/tested_backend.h"

namespace assay::conformance {

// The words after the program's name, kept by main() for the header.
void keep_arguments(int argc, char** argv);

// The commit that was built, as `git describe --always --dirty` names it, or "unknown".
const char* build_commit();

// The selected cases: everything that determines which cases the run judges.
struct SelectionText {
  std::string profile;                  // "smoke"; empty for random products and for fixtures alone
  std::vector<std::string> case_files;  // --cases; empty: the catalogue
  std::vector<std::string> words;
  std::string shard = "0/1";
  std::int64_t random = 0, seed = 0;
  std::string settings;    // --algorithms and --axes
  std::int64_t cases = 0;  // generated ones
  std::vector<std::string> fixtures;
  std::string sha256;  // of every case line and every fixture's name and bytes, in order
  // The same of all shards together; where this is not one of several, the same values.
  std::int64_t whole_cases = 0;
  std::string whole_sha256;
};

// Fields: assay, commit, format, verb, arguments, date (UTC), host, backend (with its library's SHA-256), selection.
// Errors: golden::FixtureError if the library cannot be read.
nlohmann::json run_header(const std::string& verb, const TestedBackend& tested, const BackendChoice& choice,
                          const SelectionText* selection);

// The same as a line of JSON.
std::string header_text(const std::string& verb, const TestedBackend& tested, const BackendChoice& choice,
                        const SelectionText* selection = nullptr);

// The same, set as the report's header.
class Report;
void head(Report& report, const std::string& verb, const BackendChoice& choice);

// The first difference between two headers that makes them headers of different runs, as "backend.name: faulty there,
// reference here"; empty: none. Dates, hosts and the order of arguments may differ.
std::string header_difference(const nlohmann::json& there, const nlohmann::json& here);

}  // namespace assay::conformance
