#include "conformance/program/case_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/catalogue/case_text.h"
#include "conformance/program/cli.h"
#include "golden/io/fixture_error.h"
#include "golden/io/text_file.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kLargestCaseFile = std::int64_t{16} << 20;
constexpr std::size_t kMaxCanonicalText = std::size_t{256} << 20;  // zipf(1048576,...) is short in a file and long in memory

[[noreturn]] void refuse(const std::string& reason) { throw cli::ValidationError("--cases", reason); }

bool is_control(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return (byte < 0x20 && letter != '\t' && letter != '\n' && letter != '\r') || byte == 0x7f;
}

// A message that shows a long value keeps what stands before and after it.
std::string shortened(const std::string& message) {
  constexpr std::size_t kBegin = 600, kEnd = 900;
  return message.size() <= kBegin + kEnd ? message : message.substr(0, kBegin) + " ... " + message.substr(message.size() - kEnd);
}

CaseText case_text_of(const std::string& path) {
  try {
    const std::string text = golden::read_text_file(path, kLargestCaseFile);
    if (const auto bad = std::find_if(text.begin(), text.end(), is_control); bad != text.end()) {
      const auto line = 1 + std::count(text.begin(), bad, '\n');
      refuse(fmt::format("{}: line {}: holds the byte {:#04x}: expected text", golden::one_line(path), line,
                         static_cast<unsigned char>(*bad)));
    }
    return parse_case_text(text, golden::one_line(path), Marks::optional);
  } catch (const golden::FixtureError& error) {
    refuse(error.what());
  } catch (const CaseTextError& error) {
    refuse(golden::one_line(shortened(error.what()), 4000));
  }
}

}  // namespace

std::vector<CaseLine> cases_of_files(const std::vector<std::string>& paths, Profile profile) {
  std::vector<CaseText> files;
  for (const std::string& path : paths) files.push_back(case_text_of(path));
  std::vector<CaseLine> cases;
  std::set<std::string> seen;
  std::size_t bytes = 0;
  for (const Profile section : {Profile::smoke, Profile::standard, Profile::full}) {
    if (section > profile) break;
    for (const CaseText& file : files) {
      for (const CaseLine& line : file.of(section)) {
        const auto [text, is_new] = seen.insert(to_text(line));
        if (!is_new) continue;
        bytes += text->size();
        if (bytes > kMaxCanonicalText)
          refuse(fmt::format("{}: over {} bytes of canonical text: expected fewer groups", names_of_files(paths),
                             kMaxCanonicalText));
        cases.push_back(line);
      }
    }
  }
  return cases;
}

std::string names_of_files(const std::vector<std::string>& paths) {
  std::string names;
  for (const std::string& each : paths) names += (names.empty() ? "" : ", ") + golden::one_line(each);
  return names;
}

}  // namespace assay::conformance
