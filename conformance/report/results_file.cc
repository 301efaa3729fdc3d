#include "conformance/report/results_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <sstream>
#include <stdexcept>

#include "conformance/report/earlier_results.h"
#include "conformance/report/judgement_json.h"
#include "conformance/report/line_chain.h"
#include "conformance/report/output_file.h"
#include "golden/io/replace_file.h"
#include "golden/io/text_file.h"

namespace assay::conformance {

using nlohmann::json;

namespace {

// Bytes up to and with the last newline.
off_t whole_lines(int descriptor) {
  off_t end = lseek(descriptor, 0, SEEK_END);
  char letter = 0;
  while (end > 0 && pread(descriptor, &letter, 1, end - 1) == 1 && letter != '\n') --end;
  return end;
}

// The line that ends at `end`, where its newline is the last byte.
std::string line_before(int descriptor, off_t end) {
  std::string line;
  char letter = 0;
  for (off_t at = end - 2; at >= 0 && pread(descriptor, &letter, 1, at) == 1 && letter != '\n'; --at) line += letter;
  std::reverse(line.begin(), line.end());
  return line;
}

// A full run under all algorithms of a library writes less.
constexpr std::int64_t kLargestResults = std::int64_t{4} << 30;

// Names of generated cases end with a digest of 32 bits: among 100,000, some are equal. Lines are distinct.
std::string key_of(const json& entry) {
  const std::string suite = entry.at("suite"), name = entry.at("name");
  return suite + "\n" + entry.value("case", name) + "\n" + entry.value("setting", "");
}

// The last verdict on each case and setting, in the order of the first verdicts.
class Cases {
 public:
  // Errors: std::exception where it has no name or no verdict.
  void add(json entry) {
    const std::string verdict = entry.at("verdict").get<std::string>();
    if (!verdict_named(verdict)) throw std::runtime_error("'" + verdict + "' is not a verdict");
    const std::string key = key_of(entry);
    const auto [found, is_new] = place_.emplace(key, all_.size());
    if (is_new) {
      all_.push_back(std::move(entry));
    } else {
      all_[found->second] = std::move(entry);
    }
  }
  std::vector<json> take() { return std::move(all_); }

 private:
  std::map<std::string, std::size_t> place_;
  std::vector<json> all_;
};

// Of a report or a summary.
int exit_of(const json& entry) {
  const auto found = entry.find("exit");
  return found != entry.end() && found->is_number_integer() ? found->get<int>() : -1;
}

EarlierResults read_report(const std::string& path, json report) {
  EarlierResults results;
  if (!report.is_object() || !report.contains("cases") || !report.contains("verb")) {
    throw golden::FixtureError(path, "", "is JSON, but neither a report of --json nor a file of --results");
  }
  Cases cases;
  try {
    for (json& each : report.at("cases")) cases.add(std::move(each));
  } catch (const std::exception& error) {
    throw golden::FixtureError(path, "", std::string("has an invalid case: ") + error.what());
  }
  report.erase("cases");
  report.erase("sha256");
  results.exit = exit_of(report);
  results.header = std::move(report);
  results.summary = results.header;
  results.cases = cases.take();
  results.has_summary = true;
  return results;
}

}  // namespace

ResultsFile::ResultsFile(const std::string& path, bool append) : path_(path) {
  if (is_special(path)) {
    descriptor_ = open_special(path);
    return;
  }
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
  if (descriptor_ < 0) throw golden::OutputError(path, errno);
  if (!append) return;
  const off_t end = whole_lines(descriptor_);
  if (ftruncate(descriptor_, end) != 0) throw golden::OutputError(path, errno);
  if (end == 0) return;
  const std::optional<ChainedLine> last = split_chained(line_before(descriptor_, end));
  is_chained_ = last.has_value();
  if (last) chain_ = last->chain;
}

ResultsFile::~ResultsFile() { close(descriptor_); }

void ResultsFile::append(const std::vector<json>& entries) {
  std::string text;
  for (json each : entries) {
    each.erase("chain");  // of another file
    const std::string line = line_of(each);
    text += (is_chained_ ? chained(line, chain_) : line) + "\n";
  }
  write_all(descriptor_, path_, text);  // one write, unless a disk is full or a pipe is slow
}

EarlierResults read_results(const std::string& path) {
  const std::string text = golden::read_text_file(path, kLargestResults);
  if (json whole = json::parse(text, nullptr, false); !whole.is_discarded() && !whole.contains("record"))
    return read_report(path, std::move(whole));
  EarlierResults results;
  Cases cases;
  std::istringstream lines(text);
  std::string line;
  try {
    for (int number = 1; std::getline(lines, line); ++number) {
      if (lines.eof()) break;  // no newline: cut off
      json entry = json::parse(line, nullptr, false);
      if (entry.is_object()) entry.erase("chain");  // of this file: line_chain.h checks it
      const std::string record = entry.is_object() ? entry.value("record", "") : "";
      if (record == "header") {
        if (results.header.is_null()) results.header = std::move(entry);
        results.has_summary = false;
        results.summary = nullptr;
        results.exit = -1;
      } else if (record == "case" && !results.header.is_null()) {
        try {
          cases.add(std::move(entry));
        } catch (const std::exception& error) {
          throw golden::FixtureError(path, "line " + std::to_string(number),
                                     std::string("is not a record of a case: ") + error.what());
        }
      } else if (record == "summary" && !results.header.is_null()) {
        results.has_summary = true;
        results.exit = exit_of(entry);
        results.summary = std::move(entry);
      } else {
        throw golden::FixtureError(
            path, "line " + std::to_string(number),
            number == 1 ? "is not a header of a file of --results" : "is not a record of a file of --results");
      }
    }
    if (results.header.is_null()) throw golden::FixtureError(path, "", "holds no header of a file of --results");
    results.cases = cases.take();
  } catch (const json::exception& error) {
    throw golden::FixtureError(path, "", std::string("is not a file of --results: ") + error.what());
  }
  return results;
}

}  // namespace assay::conformance
