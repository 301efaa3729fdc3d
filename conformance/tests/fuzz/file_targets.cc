// Inputs that are files: waivers, result files as `merge` and `report` read them, folders of a journal, fixtures.

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/publish/collected.h"
#include "conformance/publish/formats.h"
#include "conformance/report/line_chain.h"
#include "conformance/report/merge.h"
#include "conformance/report/waivers.h"
#include "conformance/tests/fuzz/targets.h"
#include "golden/io/contained_reader.h"
#include "golden/io/fixture_error.h"
#include "golden/io/writer.h"

#include <nlohmann/json.hpp>

namespace assay::fuzz {
namespace {

using namespace assay::conformance;

constexpr std::size_t kFiles = 6;  // of an input

void expect_line(const std::exception& error, std::string_view input) {
  const std::string what = error.what();
  promise(!what.empty() && what.find('\n') == std::string::npos, "an error is one line: " + what, input);
}

struct NamedText {
  std::string name, text;
};

// An input of several files: each begins behind a line "=== NAME".
std::vector<NamedText> files_in(std::string_view data) {
  constexpr std::string_view kMark = "=== ";
  std::vector<NamedText> files;
  for (std::size_t at = 0; at < data.size() && files.size() < kFiles;) {
    const bool named = data.substr(at).starts_with(kMark);
    const std::size_t line_end = named ? std::min(data.find('\n', at), data.size()) : at;
    const std::size_t next = data.find("\n=== ", named ? line_end : at);
    const std::size_t end = next == std::string_view::npos ? data.size() : next + 1;
    const std::size_t begin = std::min(end, named ? line_end + 1 : at);
    files.push_back({named ? std::string(data.substr(at + kMark.size(), line_end - at - kMark.size())) : "",
                     std::string(data.substr(begin, end - begin))});
    at = end;
  }
  return files;
}

// The files behind names of this process, for as long as this lives.
struct OpenFiles {
  explicit OpenFiles(std::string_view data) {
    for (const NamedText& each : files_in(data)) {
      files.push_back(std::make_unique<InputFile>(each.text));
      paths.push_back(files.back()->path());
    }
  }
  std::vector<std::unique_ptr<InputFile>> files;
  std::vector<std::string> paths;
};

void expect_whole(const MergedRun& run, std::string_view input) {
  promise(run.files.size() >= 1, "a merged run has a file", input);
  for (std::size_t i = 1; i < run.cases.size(); ++i)
    promise(run.cases[i - 1].suite != run.cases[i].suite || run.cases[i - 1].line != run.cases[i].line ||
                run.cases[i - 1].setting != run.cases[i].setting || run.cases[i - 1].name != run.cases[i].name,
            "each case is there once", input);
}

}  // namespace

void run_waivers(std::string_view data) {
  try {
    const std::vector<Waiver> all = parse_waivers(data, "waivers.toml");
    for (const Waiver& each : all) {
      promise(!each.fingerprints.empty() && !each.reason.empty() && !each.owner.empty() && each.expires.size() == 10,
              "a waiver says what it covers, why, whose it is and until when", data);
      promise(each.one_case.empty() != each.words.empty(), "a waiver has a case or words", data);
    }
  } catch (const std::runtime_error& error) {
    expect_line(error, data);
  }
}

void run_merge(std::string_view data) {
  const OpenFiles files(data);
  std::vector<RunPart> parts;
  for (const std::string& path : files.paths) {
    try {
      for (RunPart& each : read_parts(path)) parts.push_back(std::move(each));
    } catch (const golden::FixtureError& error) {
      expect_line(error, data);
    }
  }
  if (parts.empty()) return;
  try {
    expect_whole(merge_parts(std::move(parts)), data);
  } catch (const golden::FixtureError& error) {
    expect_line(error, data);
  }
}

void run_journal(std::string_view data) {
  char name[] = "/tmp/assay-fuzz-XXXXXX";
  promise(mkdtemp(name) != nullptr, "the test can make a folder", "");
  const std::filesystem::path folder(name);
  for (const NamedText& each : files_in(data)) {
    const bool is_plain =
        !each.name.empty() && each.name.size() < 100 && each.name.find_first_of(std::string("/\0", 2)) == std::string::npos;
    if (is_plain && each.name != "." && each.name != "..") std::ofstream(folder / each.name, std::ios::binary) << each.text;
  }
  try {
    std::vector<RunPart> parts = read_parts(folder.string());
    if (!parts.empty()) expect_whole(merge_parts(std::move(parts)), data);
  } catch (const golden::FixtureError& error) {
    expect_line(error, data);
  }
  std::filesystem::remove_all(folder);
}

void run_report(std::string_view data) {
  const OpenFiles files(data);
  for (const std::string& path : files.paths) {
    try {
      promise(!check_results(path).text.empty(), "a check of digests says what it found", data);
    } catch (const golden::FixtureError& error) {
      expect_line(error, data);
    }
  }
  if (files.paths.empty()) return;
  try {
    const Collected all = collect_results(files.paths, nullptr);
    promise(junit_xml(all).ends_with("</testsuites>\n"), "junit.xml is whole", data);
    promise(report_html(all).ends_with("</html>\n"), "report.html is whole", data);
    promise(!summary_markdown(all).empty() && !badge_svg(all).empty() && !all.verdict().empty(), "a text is not empty", data);
    ctrf_json(all).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
    kcidb_json(all, "assay").dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  } catch (const golden::FixtureError& error) {
    expect_line(error, data);
  }
}

// libhdf5 crashes and hangs on damaged files, so that a process of its own reads them, here as in the program.
void run_fixtures(std::string_view data) {
  const InputFile file(data);
  golden::Containment containment;
  containment.seconds = 2;
  try {
    const golden::Fixture fixture = golden::read_fixture_contained(file.path(), containment);
    for (const Case& each : fixture.cases) promise(!each.op.empty(), "a case has an op", "");
  } catch (const golden::FixtureError& error) {
    expect_line(error, "");
  } catch (const golden::MachineError& error) {
    expect_line(error, "");
  }
}

}  // namespace assay::fuzz
