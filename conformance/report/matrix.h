#pragma once
// Result files of several runs as one table: implementations by op and recipe, with counts, failures and reasons of absences.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::conformance {

// A file of --results or a report of --json.
struct MatrixFile {
  std::string name;     // without folders
  std::string sha256;   // of its bytes
  std::string date;     // "2026-11-23T22:42:44Z"; empty: not recorded
  std::string verb;     // "run --profile standard"
  std::string program;  // "assay 0.1.0, commit 539a547e6809"
  std::string exit;     // "1 (failed)"; empty: not recorded
  std::int64_t verdicts = 0;
};

// A row. Files whose headers agree in all of this are of one implementation, and their verdicts are joined.
struct MatrixImplementation {
  std::string name;  // "python:adapters.pytorch:grouped_mm", "libvendor.so", "reference"; libraries without their folder
  std::string software, device, architecture;
  std::string options;          // --backend-options; empty: none
  std::string algorithm;        // --algorithm; empty: the backend's own choice
  std::string sha256;           // of a library; empty where there is none (a function in Python, a built-in backend)
  std::string version() const;  // "Python 3.12.3, ...; sha256 1234...; options x", what is not empty
  std::string place() const;    // "NVIDIA H200 (sm90)"
  bool operator<(const MatrixImplementation& other) const {
    return std::tie(name, software, device, architecture, options, algorithm, sha256) <
           std::tie(other.name, other.software, other.device, other.architecture, other.options, other.algorithm, other.sha256);
  }
};

// A verdict that is neither a pass nor an absence.
struct MatrixFailure {
  std::string title;    // case line, or "FILE.h5 PATH" of a fixture's case
  std::string setting;  // algorithm or axis; empty: the backend's own choice
  std::string verdict;  // "failed", "unfinished", ...
  std::string text;     // several lines, without the command of `repro`
  std::string repro;    // command that shows it again
  std::size_t file = 0;
};

struct MatrixPlan {
  std::int64_t passed = 0, not_passed = 0;
  std::string ground;  // how it is known
};

struct MatrixCell {
  std::int64_t passed = 0, failed = 0, absent = 0, other = 0;  // verdicts; one for each case and setting
  std::int64_t elements = 0;                                   // compared
  std::map<std::string, std::int64_t> bases;                   // passes by what was checked: "bits", "bound", ...
  std::map<std::string, MatrixPlan> plans;                     // accumulation plans that the implementation stated
  std::map<std::string, std::int64_t> reasons;                 // of absences
  std::vector<MatrixFailure> failures;                         // sorted by title and setting
  std::set<std::size_t> files;                                 // whose verdicts count here
  std::int64_t replaced = 0;                                   // older verdicts on the same case and setting, not counted
  std::int64_t changed = 0;                                    // of those: they were another verdict than the newer one
};

struct MatrixRow {
  MatrixImplementation implementation;
  std::map<std::size_t, MatrixCell> cells;  // by column
};

struct Matrix {
  std::vector<MatrixFile> files;                             // older before newer
  std::vector<std::pair<std::string, std::string>> columns;  // op and recipe ("-": the op has none), sorted
  std::vector<MatrixRow> rows;                               // sorted
  std::int64_t same_files = 0;                               // files that hold the bytes of another one, and count once
  std::int64_t verdicts() const;
};

// Reads and joins the files. Of one case and setting of one implementation the verdict of the file with the newest date counts.
// The order of `paths` does not matter. Verdicts of the self-check, which judge the suite, are left out.
// Errors: golden::FixtureError naming file and reason: it cannot be read, is cut off or no result file.
Matrix collect_matrix(const std::vector<std::string>& paths);

// The pages. Texts of result files are escaped; both need no other file.
std::string matrix_html(const Matrix& matrix);
std::string matrix_markdown(const Matrix& matrix);

// Parts of both pages.
std::string column_title(const std::pair<std::string, std::string>& column);  // "grouped_gemm bf16"
std::string cell_anchor(std::size_t row, std::size_t column);                 // "r1c2"
std::string cell_counts(const MatrixCell& cell);                              // "13 passed, 1 failed, 94 absent, 2 other"
std::string cell_grounds(const MatrixCell& cell);  // "by bits; plan cublaslt.sm90.bf16", "by bits 9, bound 2; 3 plans"
std::string cell_dates(const Matrix& matrix, const MatrixCell& cell);    // "2026-11-22 to 2026-11-23"
std::string cell_digests(const Matrix& matrix, const MatrixCell& cell);  // "3fa2b1c04d5e", "3fa2b1c04d5e and 2 more"
std::string replaced_text(const MatrixCell& cell);                       // a sentence; empty: no verdict was replaced
std::string short_digest(const std::string& sha256);                     // its first 12 digits
std::vector<std::pair<std::string, std::int64_t>> sorted_reasons(const MatrixCell& cell);  // the most frequent first
std::string printable(std::string_view text);  // control characters and marks that reorder text become U+FFFD; newlines stay

}  // namespace assay::conformance
