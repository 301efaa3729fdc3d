// Fingerprints: what changes them and what does not.

#include "conformance/report/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>

namespace assay::conformance {
namespace {

Judgement failure() {
  Judgement judgement;
  judgement.verdict = Verdict::failed;
  judgement.text = "FAILED  quantize ...\n  output  ...\n  repro   assay repro ...";
  Finding finding;
  finding.kind = "bits";
  finding.output = "d f32 [4,4]";
  finding.compared = 16;
  finding.wrong = 3;
  finding.element = 2;
  finding.got_hex = "0x1";
  finding.want_hex = "0x2";
  finding.digest = "00000000000000aa";
  judgement.findings.push_back(finding);
  return judgement;
}

Judgement of_text(const std::string& kind, const std::string& text) {
  Judgement judgement;
  judgement.verdict = Verdict::failed;
  judgement.findings.push_back(finding_of(kind, text));
  return judgement;
}

TEST(Fingerprint, ChangesWithWhatIsWrong) {
  const std::string fingerprint = fingerprint_of(failure());
  ASSERT_EQ(fingerprint.size(), 16u);
  const std::function<void(Judgement&)> kChanges[] = {
      [](Judgement& j) { j.verdict = Verdict::unfinished; },
      [](Judgement& j) { j.findings[0].kind = "bound"; },
      [](Judgement& j) { j.findings[0].output = "d f32 [4,5]"; },
      [](Judgement& j) { j.findings[0].when = "replay 2 of 3"; },
      [](Judgement& j) { j.findings[0].compared = 15; },
      [](Judgement& j) { j.findings[0].wrong = 4; },
      [](Judgement& j) { j.findings[0].element = 1; },
      [](Judgement& j) { j.findings[0].got_hex = "0x3"; },
      [](Judgement& j) { j.findings[0].want_hex = "0x3"; },
      [](Judgement& j) { j.findings[0].digest = "00000000000000ab"; },
      [](Judgement& j) { j.findings.push_back(j.findings[0]); },
  };
  for (const auto& change : kChanges) {
    Judgement changed = failure();
    change(changed);
    EXPECT_NE(fingerprint_of(changed), fingerprint) << &change - kChanges;
  }
}

TEST(Fingerprint, StaysWithWhatOnlyDescribesIt) {
  const std::function<void(Judgement&)> kChanges[] = {
      [](Judgement& j) { j.seconds = 12; },
      [](Judgement& j) { j.text += " --backend ./elsewhere/lib.so"; },
      [](Judgement& j) { j.findings[0].hints = {"rows are exchanged"}; },
      [](Judgement& j) { j.findings[0].where = "rows 0-1"; },
      [](Judgement& j) { j.details = {"tile (0, 1)"}; },
  };
  for (const auto& change : kChanges) {
    Judgement changed = failure();
    change(changed);
    EXPECT_EQ(fingerprint_of(changed), fingerprint_of(failure())) << &change - kChanges;
  }
}

TEST(Fingerprint, OfTextsLeavesOutWhatDiffersFromRunToRun) {
  const auto same = [](const std::string& a, const std::string& b) {
    return fingerprint_of(of_text("call", a)) == fingerprint_of(of_text("call", b));
  };
  EXPECT_TRUE(same("process 1234 ended by signal 11", "process 77 ended by signal 11"));
  EXPECT_FALSE(same("process 1234 ended by signal 11", "process 1234 ended by signal 6"));
  EXPECT_TRUE(same("at 0x7ffd12345678", "at 0x7f0012345678"));
  EXPECT_FALSE(same("got 0x3F800000", "got 0x40000000")) << "32 bits are a value, not an address";
  EXPECT_TRUE(same("did not return within 60 s", "did not return within 90 s"));
  EXPECT_FALSE(same("returned 'failed': error 700", "returned 'failed': error 702"));
  EXPECT_FALSE(fingerprint_of(of_text("call", "x")) == fingerprint_of(of_text("memory", "x")));
}

TEST(Fingerprint, OfAFailureWithoutFindingsIsThatOfItsText) {
  Judgement one, other;
  one.verdict = other.verdict = Verdict::failed;
  one.text =
      "FAILED  a line\n  call    the process ended\n  printed one\n          two\n  repro   assay repro x --backend /a/lib.so";
  other.text = "FAILED  a line\n  call    the process ended\n  printed three\n  repro   assay repro x --backend /b/lib.so";
  EXPECT_EQ(fingerprint_of(one), fingerprint_of(other));
  other.text = "FAILED  a line\n  call    the process hangs\n  repro   assay repro x --backend /b/lib.so";
  EXPECT_NE(fingerprint_of(one), fingerprint_of(other));
}

TEST(Fingerprint, IsEmptyWhereNothingFails) {
  Judgement judgement;
  for (const Verdict verdict : {Verdict::passed, Verdict::not_run}) {
    judgement.verdict = verdict;
    EXPECT_EQ(fingerprint_of(judgement), "");
  }
}

}  // namespace
}  // namespace assay::conformance
