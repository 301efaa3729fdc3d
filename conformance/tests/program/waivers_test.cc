// assay run --waivers and --retries, from fingerprints to exit codes.

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

struct Judged {
  Ran ran;
  json report;
  std::map<std::string, json> cases;  // of the backend, by case line
};

Judged judged(const EmptyGolden& golden, const char* fault, Words more, const ProcessOptions& options) {
  const std::string path = (golden.folder / "report.json").string();
  more.insert(more.end(), {"--json", path});
  Judged made{assay(faulty_run(fault, more), options), {}, {}};
  made.report = json::parse(text_of(path));
  expect_valid(made.report, "report");
  for (const json& each : made.report.at("cases")) made.cases[each.at("case")] = each;
  return made;
}
Judged judged(const EmptyGolden& golden, const char* fault, const Words& more) {
  return judged(golden, fault, more, golden.options);
}

// A waiver for each case that did not pass, written by this test from the report alone.
std::string waivers_for(const std::map<std::string, json>& cases, const std::string& expires) {
  std::string text;
  for (const auto& [line, each] : cases) {
    if (each.at("verdict") == "passed") continue;
    text += "[[waiver]]\ncase = \"" + line + "\"\nfingerprint = \"" + each.at("fingerprint").get<std::string>() +
            "\"\nreason = \"rows are exchanged\"\nlink = \"https://example.com/1\"\nowner = \"kernels\"\nexpires = " + expires +
            "\n";
  }
  return text;
}

constexpr const char* kTurned = "turned=rowwise_scale_inv";
const Words kSome{"quantize", "recipe=block_1x128"};

TEST(Fingerprints, AreTheSameInEveryRunAndOfOneFailure) {
  const EmptyGolden golden;
  Judged first = judged(golden, kTurned, kSome);
  ASSERT_EQ(first.ran.code, 1) << first.ran.err;
  ProcessOptions one_thread = golden.options;
  one_thread.environment.emplace_back("ASSAY_THREADS", "1");
  const Judged again = judged(golden, kTurned, kSome, one_thread);
  const Judged other = judged(golden, "left=rowwise_scale_inv", kSome);
  int failed = 0;
  for (const auto& [line, each] : first.cases) {
    if (each.at("verdict") != "failed") continue;
    ++failed;
    const std::string fingerprint = each.at("fingerprint");
    EXPECT_EQ(again.cases.at(line).at("fingerprint"), fingerprint) << line;
    EXPECT_NE(other.cases.at(line).at("fingerprint"), fingerprint) << line;
  }
  EXPECT_GE(failed, 2);
  const std::size_t at = first.ran.out.find("\n  waive   fingerprint ");
  ASSERT_NE(at, std::string::npos) << first.ran.out;
  EXPECT_EQ(first.ran.out.substr(at + 23, 16).find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(WaivedRuns, PassWhileTheWaiversHold) {
  const EmptyGolden golden;
  const Judged plain = judged(golden, kTurned, kSome);
  const std::string path = (golden.folder / "waivers.toml").string();
  std::ofstream(path) << waivers_for(plain.cases, "2999-12-31");
  Words more = kSome;
  more.insert(more.end(), {"--waivers", path});
  const Judged waived = judged(golden, kTurned, more);
  const auto number = [&](const char* verdict) {
    return std::count_if(plain.cases.begin(), plain.cases.end(),
                         [&](const auto& each) { return each.second.at("verdict") == verdict; });
  };
  const auto failed = number("failed"), passed = number("passed");
  ASSERT_GE(failed, 2);
  EXPECT_EQ(waived.ran.code, 0) << waived.ran.out << waived.ran.err;
  EXPECT_EQ(waived.report.at("counts").at("waived"), failed);
  EXPECT_EQ(waived.report.at("counts").at("failed"), 0);
  EXPECT_EQ(waived.report.at("counts").at("passed"), passed);
  const std::string partial =
      "PASS (partial: " + std::to_string(failed) + " of " + std::to_string(failed + passed) + " failed, waived)";
  EXPECT_TRUE(contains(waived.ran.out, partial)) << waived.ran.out;
  EXPECT_TRUE(contains(waived.ran.out,
                       "waived, 1 case: rows are exchanged (" + path + ":1; kernels, until 2999-12-31, https://example.com/1)"));
  EXPECT_FALSE(contains(waived.ran.out, "FAILED"));
  for (const auto& [line, each] : waived.cases) {
    if (plain.cases.at(line).at("verdict") == "passed") continue;
    EXPECT_EQ(each.at("verdict"), "failed") << "the verdict of the judge stays";
    EXPECT_EQ(each.at("waiver").at("state"), "covers");
  }
  // Another failure of a waived case.
  const Judged other = judged(golden, "left=rowwise_scale_inv", more);
  EXPECT_EQ(other.ran.code, 1);
  EXPECT_EQ(other.report.at("counts").at("waived"), 0);
  EXPECT_TRUE(contains(other.ran.out, "\n  waive   " + path + ":1 waives another failure\n")) << other.ran.out;
  // A required case is not passed by a waiver.
  Words required = more;
  required.insert(required.end(), {"--require", "quantize recipe=block_1x128"});
  EXPECT_EQ(judged(golden, kTurned, required).ran.code, 1);
}

TEST(WaivedRuns, AreOutOfDateWhenTheyExpireOrPass) {
  const EmptyGolden golden;
  const Judged plain = judged(golden, kTurned, kSome);
  const std::string path = (golden.folder / "waivers.toml").string();
  std::ofstream(path) << waivers_for(plain.cases, "2020-01-01");
  Words more = kSome;
  more.insert(more.end(), {"--waivers", path});
  const Judged expired = judged(golden, kTurned, more);
  EXPECT_EQ(expired.ran.code, 7) << expired.ran.out;
  EXPECT_TRUE(contains(expired.ran.out, "waiver out of date: " + path + ":1: expired 2020-01-01, owner kernels: quantize"));
  EXPECT_TRUE(contains(expired.ran.out, "FAIL run")) << expired.ran.out;
  std::ofstream(path) << waivers_for(plain.cases, "2999-12-31");
  const Judged passing = judged(golden, "none", more);
  EXPECT_EQ(passing.ran.code, 7) << passing.ran.out;
  EXPECT_TRUE(contains(passing.ran.out, "waiver out of date: " + path + ":1: the case passes: quantize"));
  // Where something fails too, that comes first, and both are listed.
  std::ofstream(path) << waivers_for({*plain.cases.begin()}, "2020-01-01") + waivers_for(plain.cases, "2020-01-01");
  Words all = kSome;
  all[1] = "recipe=block";
  all.insert(all.end(), {"--waivers", path});
  const Judged both = judged(golden, kTurned, all);
  EXPECT_EQ(both.ran.code, 1);
  EXPECT_TRUE(contains(both.ran.out, "exit 1 (failed), 7 (a waiver is out of date)")) << both.ran.out;
}

TEST(WaivedRuns, RefuseAFileThatIsNoneAndNameItsLine) {
  const EmptyGolden golden;
  const std::string path = (golden.folder / "waivers.toml").string();
  std::ofstream(path) << "[[waiver]]\ncase = \"splits_to_offsets splits=1\"\nexipres = 2027-01-01\n";
  const Ran ran = assay(faulty_run("none", {"splits_to_offsets", "--waivers", path}), golden.options);
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "assay: " + path + ":3: a waiver has no key 'exipres' (did you mean expires?)\n");
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(assay(faulty_run("none", {"splits_to_offsets", "--waivers", "/there/is/none"}), golden.options).code, 2);
}

TEST(Retries, MakeAFlakyCaseWhichIsNoPass) {
  const EmptyGolden golden;
  const auto once = [&](const char* name, Words more) {
    const std::string fault = "once=" + (golden.folder / name).string();
    more.insert(more.begin(), "splits_to_offsets");
    return judged(golden, fault.c_str(), more);
  };
  const Judged flaky = once("first", {"--retries", "2"});
  EXPECT_EQ(flaky.ran.code, 1) << flaky.ran.out << flaky.ran.err;
  EXPECT_EQ(flaky.report.at("counts").at("flaky"), 1);
  EXPECT_EQ(flaky.report.at("counts").at("failed"), 0);
  EXPECT_TRUE(contains(flaky.ran.out, "\n  flaky   passed at try 2\n")) << flaky.ran.out;
  EXPECT_TRUE(contains(flaky.ran.out, "flaky, 1 case: ")) << flaky.ran.out;
  EXPECT_TRUE(contains(flaky.ran.out, " (1 flaky), ")) << flaky.ran.out;
  int seen = 0;
  for (const auto& [line, each] : flaky.cases) {
    if (each.at("verdict") != "flaky") continue;
    ++seen;
    ASSERT_EQ(each.at("tries").size(), 2u);
    EXPECT_EQ(each.at("tries")[0].at("verdict"), "failed");
    EXPECT_EQ(each.at("tries")[1].at("verdict"), "passed");
    EXPECT_EQ(each.at("tries")[0].at("fingerprint"), each.at("fingerprint"));
    EXPECT_EQ(each.at("findings")[0].at("kind"), "bits");
  }
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(once("second", {}).report.at("counts").at("failed"), 1) << "without --retries nothing is judged again";
  EXPECT_EQ(once("second", {}).ran.code, 0) << "the fault is gone once its file is there";

  const Judged failing = judged(golden, "wrong", {"splits_to_offsets", "--retries", "2"});
  EXPECT_EQ(failing.report.at("counts").at("flaky"), 0);
  for (const auto& [line, each] : failing.cases) {
    if (each.at("verdict") == "passed") continue;
    EXPECT_EQ(each.at("verdict"), "failed");
    EXPECT_EQ(each.at("tries").size(), 3u);
  }
  EXPECT_TRUE(contains(failing.ran.out, "\n  again   failed in all 3 tries, in the same way\n")) << failing.ran.out;
  // A waiver of the first failure does not make a flaky case good.
  std::string waivers = (golden.folder / "waivers.toml").string();
  for (const auto& [line, each] : flaky.cases) {
    if (each.at("verdict") == "flaky") std::ofstream(waivers) << waivers_for({{line, each}}, "2999-12-31");
  }
  const Judged waived = once("third", {"--retries", "1", "--waivers", waivers});
  EXPECT_EQ(waived.ran.code, 1) << waived.ran.out;
  EXPECT_EQ(waived.report.at("counts").at("flaky"), 1);
}

// A process that ends, and one that is lost, are judged again in another.
TEST(Retries, GoOnInAnotherProcess) {
  const EmptyGolden golden;
  const Judged lost = judged(golden, "lost", {"splits_to_offsets", "--retries", "1"});
  EXPECT_EQ(lost.ran.code, 1);
  int tried = 0;
  for (const auto& [line, each] : lost.cases) tried += each.contains("tries") && each.at("tries").size() == 2;
  EXPECT_GE(tried, 1) << lost.ran.out;
}

// The fingerprint is that of the failure, whether it was judged again or not.
TEST(Retries, LeaveTheFingerprintAsItIs) {
  const EmptyGolden golden;
  const std::string hangs = "hang=" + (golden.folder / "hangs").string();
  const Words words{"splits_to_offsets", "splits=1,0,127,128,129", "--timeout", "1"};
  Words again = words;
  again.insert(again.end(), {"--retries", "1"});
  const Judged one = judged(golden, hangs.c_str(), words), two = judged(golden, hangs.c_str(), again);
  ASSERT_FALSE(one.cases.empty());
  for (const auto& [line, each] : one.cases) {
    EXPECT_EQ(each.at("verdict"), "unfinished");
    EXPECT_EQ(two.cases.at(line).at("fingerprint"), each.at("fingerprint")) << line;
    EXPECT_EQ(two.cases.at(line).at("tries").size(), 2u);
  }
}

}  // namespace
}  // namespace assay::conformance
