// JUnit XML. Two schemas are in use, Ant's and that of Jenkins' xUnit plug-in; what is written here is valid under both: suites have
// properties first, then cases, then system-out and system-err, and a case has at most one child.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/publish/formats.h"
#include "conformance/report/matrix.h"
#include "conformance/report/page_text.h"
#include "conformance/report/report_counts.h"
#include "conformance/report/version.h"

namespace assay::conformance {
namespace {

// A newline in an attribute would be read as a blank.
std::string xml_attribute(std::string_view text) {
  std::string made;
  for (const char letter : html_text(text)) made += letter == '\n' ? std::string("&#10;") : std::string(1, letter);
  return made;
}

struct JunitCase {
  std::string name, element;  // element: "failure", "error", "skipped"; empty: passed
  std::string message, type, text;
  double seconds = 0;
};

struct JunitSuite {
  std::string name, package, date, host;
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<JunitCase> cases;
  std::size_t number_of(std::string_view element) const {
    return static_cast<std::size_t>(
        std::count_if(cases.begin(), cases.end(), [&](const JunitCase& each) { return each.element == element; }));
  }
  double seconds() const {
    double sum = 0;
    for (const JunitCase& each : cases) sum += each.seconds;
    return sum;
  }
};

JunitCase junit_case(const PublishedCase& each) {
  const CaseReport& report = each.report;
  const Judgement& judgement = report.judgement;
  JunitCase made{each.title, "", "", "", "", judgement.seconds};
  if (is_waived(report)) {
    const bool expired = report.waiver->state == WaiverStanding::State::expired;
    made.element = expired ? "failure" : "skipped";
    made.type = expired ? "waiver out of date" : "";
    made.message = (expired ? "waiver out of date: " : "waived: ") + waiver_text(*report.waiver);
    if (expired) made.text = judgement.text;
    return made;
  }
  switch (judgement.verdict) {
    case Verdict::passed:
      if (!report.waiver) break;
      made.element = "failure";
      made.type = "waiver out of date";
      made.message = "the case passes, and is waived: " + waiver_text(*report.waiver);
      made.text = made.message;
      break;
    case Verdict::not_run:
      made.element = "skipped";
      made.message = fmt::format("absent: {}; proof: {}", first_line(judgement.text), absence_proof());
      break;
    case Verdict::failed:
    case Verdict::flaky:
    case Verdict::unproven_skip:
      made.element = "failure";
      made.type = judgement.verdict == Verdict::failed && !judgement.findings.empty() ? judgement.findings.front().kind
                                                                                      : std::string(name_of(judgement.verdict));
      made.message = first_line_of_failure(each);
      made.text = judgement.text + "\n\nfingerprint " + report.fingerprint;
      break;
    default:
      made.element = "error";
      made.type = name_of(judgement.verdict);
      made.message = first_line_of_failure(each);
      made.text = judgement.text;
  }
  return made;
}

// A word of a class name: readers split these at dots.
std::string class_word(const std::string& text) {
  std::string made;
  for (const char letter : text) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    made += plain || letter == '-' ? letter : '_';
  }
  return made.empty() ? "_" : made;
}

// A distinct word for each implementation; none where there is only one.
std::vector<std::string> implementation_words(const Collected& all) {
  std::vector<std::string> words;
  std::map<std::string, int> seen;
  for (const PublishedImplementation& each : all.implementations) {
    if (all.implementations.size() == 1) return {""};
    const std::string word = class_word(each.name);
    const int number = ++seen[word];
    words.push_back("." + (number == 1 ? word : fmt::format("{}-{}", word, number)));
  }
  return words;
}

JunitSuite suite_of(const Collected& all, const PublishedCase& each, const std::string& word) {
  const PublishedRun& run = all.runs[each.run];
  JunitSuite made;
  made.name = column_title({each.report.op, each.report.recipe});
  if (all.implementations.size() > 1) made.name += " on " + all.implementation_text(each.implementation);
  made.package = "assay" + word + "." + class_word(each.report.op);
  if (each.report.recipe != "-") made.package += "." + class_word(each.report.recipe);
  made.date = run.date;
  made.host = run.host;
  const PublishedImplementation& implementation = all.implementations[each.implementation];
  for (const auto& [name, value] : {std::pair<const char*, const std::string&>("backend", implementation.name),
                                    {"software", implementation.software},
                                    {"device", implementation.device},
                                    {"architecture", implementation.architecture},
                                    {"options", implementation.options},
                                    {"library.sha256", implementation.sha256},
                                    {"suite", run.program},
                                    {"suite.commit", run.commit},
                                    {"run", run.verb},
                                    {"results", run.file},
                                    {"results.sha256", run.sha256}}) {
    if (!value.empty()) made.properties.emplace_back(name, value);
  }
  return made;
}

// Readers take cases of one class and name for one: further ones get a number.
class DistinctNames {
 public:
  std::string of(const std::string& package, const std::string& name) {
    std::string made = name;
    for (int i = 2; !seen_.emplace(package, made).second; ++i) made = fmt::format("{} ({})", name, i);
    return made;
  }

 private:
  std::set<std::pair<std::string, std::string>> seen_;
};

// What is no verdict on a case.
void add_faults(const Collected& all, DistinctNames& names, std::vector<JunitSuite>& suites) {
  JunitSuite made;
  made.name = "run";
  made.package = "assay.run";
  made.date = all.date();
  made.host = all.runs.empty() ? "" : all.runs.back().host;
  for (const auto& [what, why] : all.faults)
    made.cases.push_back({names.of(made.package, what), "failure", why, "run", what + ": " + why});
  if (all.outcome.exit_code() == ExitCode::nothing_selected)
    made.cases.push_back({"selection", "failure", "no case passed, failed or was waived", "run", "nothing was judged"});
  if (!made.cases.empty()) suites.push_back(std::move(made));
}

std::string case_text(const JunitSuite& suite, const JunitCase& each) {
  std::string made = fmt::format("    <testcase name=\"{}\" classname=\"{}\" time=\"{:.6f}\"", xml_attribute(each.name),
                                 xml_attribute(suite.package), each.seconds);
  if (each.element.empty()) return made + "/>\n";
  made += fmt::format(">\n      <{} message=\"{}\"", each.element, xml_attribute(each.message));
  if (!each.type.empty()) made += fmt::format(" type=\"{}\"", xml_attribute(each.type));
  made += each.text.empty() ? "/>" : fmt::format(">{}</{}>", html_text(each.text), each.element);
  return made + "\n    </testcase>\n";
}

std::string suite_text(const JunitSuite& suite, std::size_t id) {
  std::string date = suite.date.empty() ? "1970-01-01T00:00:00" : suite.date;
  if (date.ends_with('Z')) date.pop_back();  // Ant's schema has no zone
  std::string made = fmt::format(
      "  <testsuite name=\"{}\" package=\"{}\" id=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
      "time=\"{:.6f}\" timestamp=\"{}\" hostname=\"{}\">\n    <properties>\n",
      xml_attribute(suite.name), xml_attribute(suite.package), id, suite.cases.size(), suite.number_of("failure"),
      suite.number_of("error"), suite.number_of("skipped"), suite.seconds(), date,
      xml_attribute(suite.host.empty() ? "unknown" : suite.host));
  for (const auto& [name, value] : suite.properties)
    made += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, xml_attribute(value));
  made += "    </properties>\n";
  for (const JunitCase& each : suite.cases) made += case_text(suite, each);
  return made + "    <system-out/>\n    <system-err/>\n  </testsuite>\n";
}

}  // namespace

std::string junit_xml(const Collected& all) {
  const std::vector<std::string> words = implementation_words(all);
  std::vector<JunitSuite> suites;
  std::map<std::string, std::size_t> places;
  DistinctNames names;
  for (const PublishedCase& each : all.cases) {
    JunitSuite suite = suite_of(all, each, words[each.implementation]);
    const auto [place, is_new] = places.emplace(suite.package, suites.size());
    if (is_new) suites.push_back(std::move(suite));
    JunitSuite& to = suites[place->second];
    JunitCase made = junit_case(each);
    made.name = names.of(to.package, made.name);
    to.cases.push_back(std::move(made));
  }
  add_faults(all, names, suites);
  std::size_t tests = 0, failures = 0, errors = 0;
  double seconds = 0;
  for (const JunitSuite& each : suites) {
    tests += each.cases.size();
    failures += each.number_of("failure");
    errors += each.number_of("error");
    seconds += each.seconds();
  }
  std::string made = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
      "time=\"{:.6f}\">\n",
      kVersion, tests, failures, errors, seconds);
  for (std::size_t i = 0; i < suites.size(); ++i) made += suite_text(suites[i], i);
  return made + "</testsuites>\n";
}

}  // namespace assay::conformance
