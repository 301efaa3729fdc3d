// Waivers: their file, and which verdicts they cover.

#include "conformance/report/waivers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

constexpr const char* kLine = "splits_to_offsets splits=1,2";

std::string waiver_text(const std::string& changed = "", const std::string& to = "") {
  std::string text =
      "# known\n"
      "[[waiver]]\n"
      "case = \"splits_to_offsets splits=1,2\"\n"
      "fingerprint = \"0123456789abcdef\"\n"
      "reason = \"offsets are short\"\n"
      "link = \"https://example.com/issues/1\"\n"
      "owner = \"kernels\"\n"
      "expires = 2027-01-31\n";
  if (!changed.empty()) {
    const std::size_t at = text.find(changed);
    EXPECT_NE(at, std::string::npos) << changed;
    text.replace(at, changed.size(), to);
  }
  return text;
}

std::string fault_of(const std::string& text) {
  try {
    parse_waivers(text, "w.toml");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(WaiverFile, HoldsWhatIsWritten) {
  const std::vector<Waiver> waivers = parse_waivers(
      waiver_text() + "\n[[waiver]]\ncases = \"quantize mxfp8\"\nfingerprint = [\"0123456789abcdef\", \"fedcba9876543210\"]\n" +
          "reason = \"r\"\nlink = \"https://a\"\nowner = \"o\"\nexpires = 2028-02-29\ndevice = \"*H200*\"\nsetting = \"axis: "
          "*\"\n",
      "w.toml");
  ASSERT_EQ(waivers.size(), 2u);
  EXPECT_EQ(waivers[0].at, "w.toml:2");
  EXPECT_EQ(waivers[0].one_case, kLine);
  EXPECT_EQ(waivers[0].expires, "2027-01-31");
  EXPECT_EQ(waivers[1].words, (std::vector<std::string>{"quantize", "mxfp8"}));
  EXPECT_EQ(waivers[1].fingerprints.size(), 2u);
  EXPECT_EQ(waivers[1].device, "*H200*");
  EXPECT_EQ(waivers[1].setting, "axis: *");
}

TEST(WaiverFile, FaultsNameFileAndLine) {
  const struct {
    std::string changed, to, begins;
  } kCases[] = {
      {"expires =", "exipres =", "w.toml:8: a waiver has no key 'exipres'"},
      {"owner = \"kernels\"\n", "", "w.toml:2: the waiver has no owner"},
      {"fingerprint = \"0123456789abcdef\"\n", "", "w.toml:2: the waiver has no fingerprint"},
      {"case = \"splits_to_offsets splits=1,2\"\n", "", "w.toml:2: the waiver has no case"},
      {"owner = \"kernels\"", "cases = \"quantize\"\nowner = \"kernels\"", "w.toml:2: the waiver has case and cases"},
      {"2027-01-31", "2027-02-31", "w.toml:8: "},
      {"2027-01-31", "2027-1-31", "w.toml:8: "},
      {"2027-01-31", "\"2027-01-31\"", "w.toml:8: expires is a text: expected a date such as 2027-01-31, without quotes"},
      {"2027-01-31", "2027-01-31T10:00:00Z", "w.toml:8: expires is a date with a time"},
      {"0123456789abcdef", "0123456789ABCDEF", "w.toml:4: fingerprint is '0123456789ABCDEF': expected 16 of the digits"},
      {"0123456789abcdef", "0123", "w.toml:4: fingerprint is '0123'"},
      {"\"0123456789abcdef\"", "[]", "w.toml:4: fingerprint is an empty list"},
      {"\"0123456789abcdef\"", "12", "w.toml:4: fingerprint is no text"},
      {"offsets are short", "", "w.toml:5: reason is empty"},
      {"https://example.com/issues/1", "issue 1", "w.toml:6: link is 'issue 1': expected an address"},
      {"splits=1,2", "splits=1,x", "w.toml:3: case is neither a case line"},
      {"[[waiver]]", "[[waver]]", "w.toml:2: 'waver' is not known: expected [[waiver]]"},
      {"[[waiver]]", "[waiver]", "w.toml:2: waiver is no list of tables"},
      {"reason = \"offsets are short\"", "reason = \"offsets", "w.toml:5: "},
  };
  EXPECT_EQ(fault_of(waiver_text()), "");
  for (const auto& each : kCases) {
    const std::string fault = fault_of(waiver_text(each.changed, each.to));
    EXPECT_EQ(fault.substr(0, each.begins.size()), each.begins) << each.changed << " -> " << each.to;
  }
  EXPECT_THROW(read_waivers("/there/is/none.toml"), std::runtime_error);
}

CaseReport report_of(Verdict verdict, const std::string& fingerprint) {
  CaseReport report{kGenerated, "splits_to_offsets/1", kLine, "splits_to_offsets", "-", {}};
  report.judgement.verdict = verdict;
  report.fingerprint = fingerprint;
  return report;
}

TestedBackend tested() { return {"vendor", "NVIDIA H200", "sm90", "1", "/x/v.so"}; }

std::string standing(const std::string& text, const CaseReport& report, const std::string& day = "2026-11-25") {
  const auto found = Waivers(parse_waivers(text, "w.toml"), tested(), day).standing(report);
  return found ? std::string(name_of(found->state)) : "";
}

TEST(WaiverStandings, CoverOneFailureUntilTheLastDay) {
  const CaseReport failed = report_of(Verdict::failed, "0123456789abcdef");
  EXPECT_EQ(standing(waiver_text(), failed), "covers");
  EXPECT_EQ(standing(waiver_text(), failed, "2027-01-31"), "covers");
  EXPECT_EQ(standing(waiver_text(), failed, "2027-02-01"), "expired");
  EXPECT_EQ(standing(waiver_text(), report_of(Verdict::failed, "1123456789abcdef")), "other failure");
  EXPECT_EQ(standing(waiver_text(), report_of(Verdict::unfinished, "0123456789abcdef")), "covers");
  EXPECT_EQ(standing(waiver_text(), report_of(Verdict::passed, "")), "passes");
  for (const Verdict verdict : {Verdict::flaky, Verdict::not_run, Verdict::not_tried, Verdict::machine_failed})
    EXPECT_EQ(standing(waiver_text(), report_of(verdict, "0123456789abcdef")), "") << name_of(verdict);
}

TEST(WaiverStandings, SelectCasesSettingsAndDevices) {
  const CaseReport failed = report_of(Verdict::failed, "0123456789abcdef");
  EXPECT_EQ(standing(waiver_text("splits=1,2", "splits=1,3"), failed), "");
  const std::string words = waiver_text("case = \"splits_to_offsets splits=1,2\"", "cases = \"splits_to_offsets splits=1\"");
  EXPECT_EQ(standing(words, failed), "covers");
  EXPECT_EQ(standing(waiver_text("owner", "device = \"*H100*\"\nowner"), failed), "");
  EXPECT_EQ(standing(waiver_text("owner", "device = \"sm9?\"\nowner"), failed), "covers");
  EXPECT_EQ(standing(waiver_text("owner", "backend = \"other\"\nowner"), failed), "");
  CaseReport set = failed;
  set.setting = "algorithm: id 90";
  EXPECT_EQ(standing(waiver_text(), set), "") << "without a setting it is of the backend's own choice";
  const std::string with_setting = waiver_text("owner", "setting = \"algorithm: id 9*\"\nowner");
  EXPECT_EQ(standing(with_setting, set), "covers");
  EXPECT_EQ(standing(with_setting, failed), "");
  CaseReport fixture{"offsets.h5", "a/b", "", "splits_to_offsets", "-", failed.judgement};
  fixture.fingerprint = failed.fingerprint;
  EXPECT_EQ(standing(waiver_text("splits_to_offsets splits=1,2", "offsets.h5/a/b"), fixture), "covers");
  EXPECT_EQ(standing(waiver_text("splits_to_offsets splits=1,2", "offsets.h5/a"), fixture), "");
}

TEST(WaiverStandings, TheWaiverThatCoversComesBeforeOthers) {
  const CaseReport failed = report_of(Verdict::failed, "0123456789abcdef");
  EXPECT_EQ(standing(waiver_text("0123456789abcdef", "9999999999999999") + waiver_text(), failed), "covers");
  EXPECT_EQ(standing(waiver_text("2027", "2020") + waiver_text(), failed), "covers");
  EXPECT_EQ(standing(waiver_text("0123456789abcdef", "9999999999999999") + waiver_text("2027", "2020"), failed), "expired");
}

TEST(WaiverStandings, UnusedOnesAreNamed) {
  const Waivers waivers(parse_waivers(waiver_text() + waiver_text("splits=1,2", "splits=7"), "w.toml"), tested(), "2026-11-25");
  EXPECT_EQ(waivers.unused({report_of(Verdict::passed, "")}), std::vector<std::string>{"w.toml:10"});
}

// A draft has all fields, and is refused until they are filled in.
TEST(WaiverDrafts, AreWaiversOnceTheyAreCompleted) {
  CaseReport failed = report_of(Verdict::failed, "0123456789abcdef"), covered = failed;
  covered.waiver = WaiverStanding{};
  std::string draft =
      drafted_waivers({failed, covered, report_of(Verdict::passed, ""), report_of(Verdict::flaky, "0123456789abcdef")});
  EXPECT_EQ(std::count(draft.begin(), draft.end(), '['), 2) << draft;
  EXPECT_NE(fault_of(draft), "");
  for (const auto& [key, value] : {std::pair("reason = \"\"", "reason = \"r\""),
                                   {"link = \"\"", "link = \"https://a\""},
                                   {"owner = \"\"", "owner = \"o\""},
                                   {"expires = \"\"", "expires = 2027-01-01"}}) {
    const std::size_t at = draft.find(key);
    ASSERT_NE(at, std::string::npos) << draft;
    draft.replace(at, std::string(key).size(), value);
  }
  EXPECT_EQ(fault_of(draft), "") << draft;
  EXPECT_EQ(standing(draft, failed), "covers");
}

}  // namespace
}  // namespace assay::conformance
