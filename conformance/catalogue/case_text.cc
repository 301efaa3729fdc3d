#include "conformance/catalogue/case_text.h"

#include <algorithm>
#include <optional>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/embedded_cases.h"

namespace assay::conformance {
namespace {

std::string show_place(int line) { return line == 0 ? "" : "line " + std::to_string(line); }

std::string_view without_spaces(std::string_view line) {
  constexpr std::string_view kSpaces = " \t\r";
  const std::size_t begin = line.find_first_not_of(kSpaces);
  return begin == std::string_view::npos ? "" : line.substr(begin, line.find_last_not_of(kSpaces) + 1 - begin);
}

class CaseTextParser {
 public:
  CaseTextParser(std::string_view source, Marks marks) : source_(source), is_marked_(marks == Marks::required) {}

  void take(std::string_view line, int number) {
    if (line.empty() || line[0] == '#') return;
    if (line[0] == '[') return begin_section(line, number);
    if (is_marked_ && section_ < 0)
      fail(number, "'" + std::string(line) + "': expected [smoke], [standard] or [full] above the first case");
    try {
      cases_.sections[section_ < 0 ? 0 : static_cast<std::size_t>(section_)].push_back(parse_case_line(line));
    } catch (const std::invalid_argument& error) {
      fail(number, error.what());
    }
    has_cases_ = true;
  }

  CaseText finish() {
    if (!has_cases_) fail(0, "holds no case: expected lines as 'quantize recipe=mxfp8 R=33 K=272'");
    return std::move(cases_);
  }

 private:
  [[noreturn]] void fail(int number, const std::string& reason) const { throw CaseTextError(source_, number, reason); }

  void begin_section(std::string_view mark, int number) {
    const std::string shown = "'" + std::string(mark) + "'";
    const std::optional<Profile> section = mark.back() == ']' ? profile_named(mark.substr(1, mark.size() - 2)) : std::nullopt;
    if (!section) {
      const std::vector<std::string_view> known{"[smoke]", "[standard]", "[full]"};
      fail(number, shown + ": expected [smoke], [standard] or [full]" + did_you_mean(mark, known));
    }
    if (section_ < 0 && has_cases_) fail(number, shown + ": expected above the first case, or no mark at all");
    if (static_cast<int>(*section) <= section_)
      fail(number, shown + ": expected each mark once: [smoke], then [standard], then [full]");
    section_ = static_cast<int>(*section);
  }

  std::string_view source_;
  bool is_marked_, has_cases_ = false;
  int section_ = -1;  // none yet
  CaseText cases_;
};

}  // namespace

CaseTextError::CaseTextError(std::string_view source, int line, std::string_view reason)
    : std::invalid_argument(std::string(source) + ": " + (line == 0 ? "" : show_place(line) + ": ") + std::string(reason)),
      place_(show_place(line)),
      reason_(reason) {}

CaseText parse_case_text(std::string_view text, std::string_view source, Marks marks) {
  CaseTextParser parser(source, marks);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    parser.take(without_spaces(text.substr(0, end)), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.finish();
}

const std::vector<CaseText>& written_cases() {
  static const std::vector<CaseText> all = [] {
    std::vector<CaseText> made;
    for (const EmbeddedText& each : kEmbeddedCases) {
      made.push_back(parse_case_text(each.text, "conformance/cases/" + std::string(each.file), Marks::required));
      made.back().file = each.file;
      made.back().is_cover = each.file.starts_with("cover_");
    }
    return made;
  }();
  return all;
}

}  // namespace assay::conformance
