// Waivers from TOML. toml++ is a library of headers that takes seconds to compile; only this file includes it. Without it a program
// is built too, and refuses files of waivers.

#include "conformance/report/waivers.h"

#include <stdexcept>

#if ASSAY_HAS_TOML
#define TOML_HEADER_ONLY 1  // the package has a shared library too, which is not needed
#if __has_include(<toml++/toml.h>)
#include <toml++/toml.h>
#else
#include <toml++/toml.hpp>
#endif

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <sstream>

#include "conformance/cases/case_line.h"
#include "conformance/cases/case_schema.h"
#include "golden/io/fixture_error.h"
#include "golden/io/text_file.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::array<std::string_view, 10> kKeys{"case",  "cases",   "fingerprint", "reason", "link",
                                                 "owner", "expires", "backend",     "device", "setting"};
constexpr std::size_t kFingerprintDigits = 16;
constexpr std::int64_t kLargestFile = std::int64_t{1} << 24;

class WaiverParser {
 public:
  explicit WaiverParser(std::string source) : source_(std::move(source)) {}

  [[noreturn]] void fail(std::size_t line, const std::string& why) const {
    throw std::runtime_error(fmt::format("{}:{}: {}", golden::one_line(source_), line, golden::one_line(why, 1000)));
  }
  [[noreturn]] void fail(const toml::node& node, const std::string& why) const { fail(node.source().begin.line, why); }

  Waiver waiver(const toml::table& table) const {
    for (const auto& [key, node] : table) {
      if (std::find(kKeys.begin(), kKeys.end(), key.str()) != kKeys.end()) continue;
      const std::vector<std::string_view> known(kKeys.begin(), kKeys.end());
      fail(key.source().begin.line,
           fmt::format("a waiver has no key '{}'{}", key.str(), did_you_mean(std::string(key.str()), known)));
    }
    Waiver made;
    made.at = fmt::format("{}:{}", source_, table.source().begin.line);
    select(table, made);
    for (const std::string& each : texts(table, "fingerprint")) {
      if (each.size() != kFingerprintDigits || each.find_first_not_of("0123456789abcdef") != std::string::npos)
        fail(table.at("fingerprint"),
             fmt::format("fingerprint is '{}': expected 16 of the digits 0-9 and a-f, as a failure prints", each));
      made.fingerprints.push_back(each);
    }
    made.reason = text(table, "reason", "why the failure is accepted");
    made.link = text(table, "link", "where it is followed up, such as https://example.com/issues/12");
    if (made.link.find("://") == std::string::npos)
      fail(table.at("link"), fmt::format("link is '{}': expected an address such as https://example.com/issues/12", made.link));
    made.owner = text(table, "owner", "who decides");
    made.expires = date(table);
    for (const auto& [key, to] : {std::pair("backend", &made.backend), {"device", &made.device}, {"setting", &made.setting}}) {
      if (table.contains(key)) *to = text(table, key, "a pattern");
    }
    return made;
  }

 private:
  const toml::node& needed(const toml::table& table, std::string_view key) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) fail(table, fmt::format("the waiver has no {}", key));
    return *node;
  }

  std::string text(const toml::table& table, std::string_view key, std::string_view expected) const {
    const toml::node& node = needed(table, key);
    const auto* const value = node.as_string();
    if (value == nullptr) fail(node, fmt::format("{} is no text: expected {}, in quotes", key, expected));
    if (value->get().find_first_not_of(" \t\n") == std::string::npos)
      fail(node, fmt::format("{} is empty: expected {}", key, expected));
    return value->get();
  }

  // A text, or a list of them.
  std::vector<std::string> texts(const toml::table& table, std::string_view key) const {
    const toml::node& node = needed(table, key);
    std::vector<std::string> made;
    if (const auto* const one = node.as_string()) made.push_back(one->get());
    if (const toml::array* const several = node.as_array()) {
      for (const toml::node& each : *several) {
        if (each.as_string() == nullptr) fail(each, fmt::format("{} holds something else than a text", key));
        made.push_back(each.as_string()->get());
      }
      if (made.empty()) fail(node, fmt::format("{} is an empty list: expected at least one", key));
    }
    if (made.empty()) fail(node, fmt::format("{} is no text: expected one in quotes, or a list of them", key));
    return made;
  }

  void select(const toml::table& table, Waiver& made) const {
    if (table.contains("case") == table.contains("cases")) {
      fail(table, table.contains("case") ? "the waiver has case and cases: expected one of them"
                                         : "the waiver has no case: expected case = \"LINE\", or cases = \"WORDS\"");
    }
    if (table.contains("cases")) {
      std::istringstream words(text(table, "cases", "words, as assay run takes them"));
      for (std::string word; words >> word;) made.words.push_back(word);
      return;
    }
    made.one_case = text(table, "case", "a case line, or FILE.h5/CASE");
    if (made.one_case.find(".h5/") != std::string::npos && made.one_case.find(' ') == std::string::npos) return;
    try {
      made.one_case = to_text(parse_case_line(made.one_case));
    } catch (const std::exception& error) {
      fail(table.at("case"), fmt::format("case is neither a case line ({}) nor FILE.h5/CASE", error.what()));
    }
  }

  std::string date(const toml::table& table) const {
    const toml::node& node = needed(table, "expires");
    const auto* const value = node.as_date();
    if (value == nullptr) {
      fail(node, fmt::format("expires is {}: expected a date such as 2027-01-31, without quotes", node.is_string() ? "a text"
                                                                                                  : node.is_date_time()
                                                                                                      ? "a date with a time"
                                                                                                      : "no date"));
    }
    const toml::date day = value->get();
    return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year), static_cast<int>(day.month), static_cast<int>(day.day));
  }

  std::string source_;
};

}  // namespace

std::vector<Waiver> parse_waivers(std::string_view text, const std::string& source) {
  const WaiverParser parser(source);
  toml::table document;
  try {
    document = toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    parser.fail(error.source().begin.line, std::string(error.description()));
  }
  std::vector<Waiver> waivers;
  for (const auto& [key, node] : document) {
    if (key.str() != "waiver")
      parser.fail(key.source().begin.line, fmt::format("'{}' is not known: expected [[waiver]]", key.str()));
    const toml::array* const all = node.as_array();
    if (all == nullptr || !all->is_array_of_tables()) parser.fail(node, "waiver is no list of tables: expected [[waiver]]");
    for (const toml::node& each : *all) waivers.push_back(parser.waiver(*each.as_table()));
  }
  return waivers;
}

std::vector<Waiver> read_waivers(const std::string& path) {
  std::string text;
  try {
    text = golden::read_text_file(path, kLargestFile);
  } catch (const golden::FixtureError& error) {  // a file that the command line names: wrong usage
    throw std::runtime_error(error.what());
  }
  return parse_waivers(text, path);
}

}  // namespace assay::conformance

#else

namespace assay::conformance {

std::vector<Waiver> parse_waivers(std::string_view, const std::string& source) {
  throw std::runtime_error(source + ": this program was built without toml++ (libtomlplusplus-dev), which reads waivers");
}

std::vector<Waiver> read_waivers(const std::string& path) { return parse_waivers("", path); }

}  // namespace assay::conformance

#endif
