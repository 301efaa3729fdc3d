#include "conformance/report/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <regex>

#include <nlohmann/json.hpp>

#include "conformance/report/earlier_results.h"
#include "conformance/report/failure_parts.h"
#include "conformance/report/report.h"
#include "conformance/report/report_counts.h"
#include "conformance/suites/backend_choice.h"
#include "golden/io/fixture_error.h"
#include "golden/io/sha256.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

// What one file says.
struct ReadMatrixFile {
  MatrixFile file;
  MatrixImplementation implementation;
  std::string backend_words;  // " --backend ..." of a command that is written here
  std::vector<CaseReport> cases;
};

std::string text_at(const json& header, const char* place) {
  const json::json_pointer pointer(place);
  return header.contains(pointer) ? header.at(pointer).get<std::string>() : "";
}

// "ffi:/folders/lib.so:symbol" without its folders.
std::string without_folders(const std::string& library) {
  const std::size_t slash = library.rfind('/');
  if (slash == std::string::npos) return library;
  return (library.starts_with("ffi:") ? "ffi:" : "") + library.substr(slash + 1);
}

void read_header(const json& header, ReadMatrixFile& read) {
  MatrixFile& file = read.file;
  file.date = text_at(header, "/date");
  static const std::regex kDate(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)");
  if (!file.date.empty() && !std::regex_match(file.date, kDate))
    throw std::runtime_error("its date is '" + file.date + "': expected one like 2026-11-23T22:42:44Z");
  file.verb = text_at(header, "/verb");
  const std::string version = text_at(header, "/assay"), commit = text_at(header, "/commit");
  file.program = "assay" + (version.empty() ? "" : " " + version) + (commit.empty() ? "" : ", commit " + commit);

  MatrixImplementation& made = read.implementation;
  const json& backend = header.at("backend");
  const bool built_in = backend.value("built_in", false);
  const std::string library = text_at(backend, "/library/path");
  made.name = built_in || library.empty() ? backend.at("name").get<std::string>() : without_folders(library);
  made.software = backend.value("software", "");
  made.device = backend.value("device", "");
  made.architecture = backend.value("architecture", "");
  made.options = backend.value("options", "");
  if (const std::int64_t algorithm = backend.value("algorithm", std::int64_t{-1}); algorithm >= 0)
    made.algorithm = std::to_string(algorithm);
  if (!built_in) made.sha256 = text_at(backend, "/library/sha256");

  read.backend_words = " --backend " + conformance::quoted(built_in || library.empty() ? made.name : library);
  if (!made.options.empty()) read.backend_words += " --backend-options " + conformance::quoted(made.options);
  if (!made.algorithm.empty()) read.backend_words += " --algorithm " + made.algorithm;
}

ReadMatrixFile read_matrix_file(const std::string& path) {
  ReadMatrixFile read;
  read.file.name = std::filesystem::path(path).filename().string();
  const EarlierResults results = read_results(path);
  read.file.sha256 = golden::sha256_hex_of_file(path);
  if (!results.has_summary)
    throw golden::FixtureError(path, "", "has no summary: its run did not end (--resume goes on), or the file is cut off");
  try {
    read_header(results.header, read);
    if (results.exit >= 0) {
      const ExitCode code = static_cast<ExitCode>(results.exit);
      read.file.exit = fmt::format("{} ({})", results.exit, meaning(code));
    }
    for (const json& each : results.cases) {
      CaseReport report = report_from(each);
      if (report.suite != kSelfCheck) read.cases.push_back(std::move(report));
    }
  } catch (const std::exception& error) {  // of the JSON library, or of report_from
    throw golden::FixtureError(path, "", std::string("is not a result file of this program: ") + error.what());
  }
  read.file.verdicts = static_cast<std::int64_t>(read.cases.size());
  return read;
}

std::string ground_of_plan(const std::string& name) {
  for (const AccumulationPlan& plan : accumulation_plans()) {
    if (plan.name == name) return std::string(evidence_of(plan));
  }
  if (name.find('=') != std::string::npos) return "a line that the implementation stated";
  return "a name that this version of the program does not know";
}

MatrixFailure failure_of(const CaseReport& report, const ReadMatrixFile& read, std::size_t file) {
  FailureParts parts = failure_parts(report, read.backend_words);
  MatrixFailure failure;
  failure.title = report.line.empty() ? report.suite + " " + report.name : report.line;
  failure.setting = report.setting;
  failure.verdict = name_of(report.judgement.verdict);
  failure.text = std::move(parts.text);
  failure.repro = std::move(parts.repro);
  failure.file = file;
  return failure;
}

void add_to(MatrixCell& cell, const CaseReport& report, const ReadMatrixFile& read, std::size_t file) {
  const Judgement& judgement = report.judgement;
  cell.files.insert(file);
  cell.elements += judgement.elements;
  const bool passed = judgement.verdict == Verdict::passed;
  if (!judgement.plan.empty() && judgement.verdict != Verdict::not_run) {
    MatrixPlan& plan = cell.plans[judgement.plan];
    if (plan.ground.empty()) plan.ground = ground_of_plan(judgement.plan);
    ++(passed ? plan.passed : plan.not_passed);
  }
  if (passed) {
    ++cell.passed;
    ++cell.bases[basis_text(judgement)];
  } else if (judgement.verdict == Verdict::not_run) {
    ++cell.absent;
    ++cell.reasons[first_line(judgement.text)];
  } else {
    ++(judgement.verdict == Verdict::failed ? cell.failed : cell.other);
    cell.failures.push_back(failure_of(report, read, file));
  }
}

using CaseKey = std::tuple<std::string, std::string, std::string>;  // suite, name, setting
using CellKey = std::pair<std::string, std::string>;                // op, recipe

struct NewestVerdict {
  const CaseReport* report = nullptr;
  std::size_t file = 0;
  std::int64_t replaced = 0, changed = 0;
};

}  // namespace

Matrix collect_matrix(const std::vector<std::string>& paths) {
  std::vector<ReadMatrixFile> read;
  for (const std::string& path : paths) read.push_back(read_matrix_file(path));
  const auto order = [](const ReadMatrixFile& each) { return std::tie(each.file.date, each.file.sha256, each.file.name); };
  std::sort(read.begin(), read.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  const auto same = [](const auto& a, const auto& b) { return a.file.sha256 == b.file.sha256; };
  const auto rest = std::unique(read.begin(), read.end(), same);  // equal bytes have an equal date, and so are neighbours
  Matrix matrix;
  matrix.same_files = read.end() - rest;
  read.erase(rest, read.end());

  std::map<MatrixImplementation, std::map<CaseKey, NewestVerdict>> verdicts;
  std::set<CellKey> columns;
  for (std::size_t i = 0; i < read.size(); ++i) {
    matrix.files.push_back(read[i].file);
    std::map<CaseKey, NewestVerdict>& all = verdicts[read[i].implementation];
    for (const CaseReport& each : read[i].cases) {
      columns.emplace(each.op, each.recipe);
      NewestVerdict& newest = all[{each.suite, each.name, each.setting}];
      if (newest.report != nullptr) {
        ++newest.replaced;
        if (newest.report->judgement.verdict != each.judgement.verdict) ++newest.changed;
      }
      newest.report = &each;
      newest.file = i;
    }
  }
  matrix.columns.assign(columns.begin(), columns.end());
  for (const auto& [implementation, all] : verdicts) {
    MatrixRow row{implementation, {}};
    for (const auto& [key, newest] : all) {
      const CellKey column{newest.report->op, newest.report->recipe};
      const auto place = std::lower_bound(matrix.columns.begin(), matrix.columns.end(), column);
      MatrixCell& cell = row.cells[static_cast<std::size_t>(place - matrix.columns.begin())];
      add_to(cell, *newest.report, read[newest.file], newest.file);
      cell.replaced += newest.replaced;
      cell.changed += newest.changed;
    }
    for (auto& [column, cell] : row.cells) {
      std::stable_sort(cell.failures.begin(), cell.failures.end(), [](const MatrixFailure& a, const MatrixFailure& b) {
        return std::tie(a.title, a.setting) < std::tie(b.title, b.setting);
      });
    }
    matrix.rows.push_back(std::move(row));
  }
  return matrix;
}

std::int64_t Matrix::verdicts() const {
  std::int64_t sum = 0;
  for (const MatrixFile& each : files) sum += each.verdicts;
  return sum;
}

}  // namespace assay::conformance
