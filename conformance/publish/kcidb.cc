// KCIDB: a checkout and a build for each implementation, a test for each case, an issue for each waiver.

#include <fmt/format.h>

#include <map>

#include <nlohmann/json.hpp>

#include "conformance/publish/formats.h"
#include "conformance/report/matrix.h"
#include "conformance/report/report_counts.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestExcerpt = 16384, kIdDigits = 24;

const char* kcidb_status(const CaseReport& report) {
  switch (report.judgement.verdict) {
    case Verdict::passed: return "PASS";
    case Verdict::not_run: return "SKIP";
    case Verdict::unfinished: return "ERROR";
    case Verdict::not_tried:
    case Verdict::machine_failed: return "MISS";
    default: return "FAIL";
  }
}

// A path of the test tree: words of letters, digits, '_' and '-', with dots between them.
std::string kcidb_path(const CaseReport& report) {
  std::string made = "assay.";
  const std::string name = report.suite == kGenerated ? report.name : report.suite + "/" + report.name;
  for (const char letter : name) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (letter == '/') {
      if (made.back() != '.') made += '.';
    } else {
      made += plain || letter == '-' ? letter : '_';
    }
  }
  while (made.back() == '.') made.pop_back();
  return made;
}

std::string excerpt(const std::string& text) {
  std::string made = printable(text);
  if (made.size() <= kLongestExcerpt) return made;
  std::size_t end = kLongestExcerpt;
  while (end > 0 && (static_cast<unsigned char>(made[end]) & 0xC0) == 0x80) --end;  // whole characters
  return made.substr(0, end);
}

class Kcidb {
 public:
  Kcidb(const Collected& all, const std::string& origin) : all_(all), origin_(origin) {}

  json made() {
    for (std::size_t i = 0; i < all_.implementations.size(); ++i) add_implementation(i);
    for (const PublishedCase& each : all_.cases) add_test(each);
    json made{{"version", {{"major", 5}, {"minor", 3}}}, {"checkouts", checkouts_}, {"builds", builds_}, {"tests", tests_}};
    if (!issues_.empty()) made["issues"] = issues_;
    if (!incidents_.empty()) made["incidents"] = incidents_;
    return made;
  }

 private:
  std::string id(const std::string& text) const { return origin_ + ":" + hex_digest(text).substr(0, kIdDigits); }

  std::string implementation_id(std::size_t index) const {
    return id("implementation\n" + all_.implementation_text(index) + "\n" + all_.implementations[index].sha256 + "\n" +
              all_.implementations[index].axes + "\n" + all_.implementations[index].algorithm);
  }

  void add_implementation(std::size_t index) {
    const PublishedImplementation& each = all_.implementations[index];
    const std::string made = implementation_id(index), text = printable(all_.implementation_text(index));
    json misc{{"backend", printable(each.name)}, {"software", printable(each.software)}, {"device", printable(each.device)}};
    if (!each.sha256.empty()) misc["sha256"] = each.sha256;
    if (!each.options.empty()) misc["options"] = printable(each.options);
    checkouts_.push_back({{"id", made}, {"origin", origin_}, {"comment", text}, {"valid", true}, {"misc", misc}});
    builds_.push_back({{"id", made}, {"checkout_id", made}, {"origin", origin_}, {"comment", text}, {"status", "PASS"}});
    for (const PublishedRun& run : all_.runs) {  // "Linux 6.1.0 x86_64"
      if (run.implementation != index) continue;
      const std::string machine = run.system.substr(run.system.rfind(' ') + 1);
      if (machine.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos)
        builds_.back()["architecture"] = machine;
    }
  }

  void add_test(const PublishedCase& each) {
    const CaseReport& report = each.report;
    const PublishedRun& run = all_.runs[each.run];
    const std::string test = id(fmt::format("test\n{}\n{}\n{}\n{}", run.sha256, report.suite, report.name, report.setting));
    json made{{"id", test},
              {"build_id", implementation_id(each.implementation)},
              {"origin", origin_},
              {"path", kcidb_path(report)},
              {"status", kcidb_status(report)},
              {"comment", printable(each.title)},
              {"duration", report.judgement.seconds},
              {"environment",
               {{"comment", printable(all_.implementations[each.implementation].device)},
                {"misc", {{"host", printable(run.host)}, {"system", printable(run.system)}, {"threads", run.threads}}}}},
              {"misc",
               {{"verdict", name_of(report.judgement.verdict)},
                {"elements", report.judgement.elements},
                {"ground", basis_text(report.judgement)},
                {"suite", printable(run.program + ", commit " + run.commit)}}}};
    if (!run.date.empty()) made["start_time"] = run.date;
    if (report.judgement.verdict == Verdict::not_run) {
      made["log_excerpt"] = excerpt("absent: " + first_line(report.judgement.text) + "; proof: " + absence_proof());
    } else if (report.judgement.verdict != Verdict::passed) {
      made["log_excerpt"] = excerpt(report.judgement.text);
      made["misc"]["fingerprint"] = report.fingerprint;
    }
    tests_.push_back(std::move(made));
    if (is_waived(report)) add_incident(test, *report.waiver);
  }

  void add_incident(const std::string& test, const WaiverStanding& waiver) {
    const std::string issue = id("issue\n" + waiver.link + "\n" + waiver.reason);
    if (seen_.emplace(issue, true).second) {
      issues_.push_back({{"id", issue},
                         {"version", 1},
                         {"origin", origin_},
                         {"report_url", printable(waiver.link)},
                         {"comment", printable(waiver.reason)},
                         {"culprit", {{"code", true}, {"tool", false}, {"harness", false}}},
                         {"misc", {{"owner", printable(waiver.owner)}, {"expires", waiver.expires}}}});
    }
    incidents_.push_back({{"id", id("incident\n" + issue + "\n" + test)},
                          {"origin", origin_},
                          {"issue_id", issue},
                          {"issue_version", 1},
                          {"test_id", test},
                          {"present", true}});
  }

  const Collected& all_;
  const std::string origin_;
  json checkouts_ = json::array(), builds_ = json::array(), tests_ = json::array(), issues_ = json::array(),
       incidents_ = json::array();
  std::map<std::string, bool> seen_;
};

}  // namespace

json kcidb_json(const Collected& all, const std::string& origin) { return Kcidb(all, origin).made(); }

}  // namespace assay::conformance
