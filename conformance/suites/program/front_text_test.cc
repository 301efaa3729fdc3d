// What the program says of words that it does not know, how commands to paste begin, how wide its tables are.

#include "conformance/suites/program/evidence.h"

#include <csignal>

namespace assay::conformance {
namespace {

TEST(UnknownWords, AreNamedWithTheNearest) {
  struct Case {
    Words words;
    const char* told;
  };
  for (const Case& each : {Case{{"rnu"}, "assay: 'rnu' is no verb of assay (did you mean run?)\n"}, Case{{"frobnicate"}, "assay: 'frobnicate' is no verb of assay\n"},
                           Case{{"golden", "chekc"}, "assay: 'chekc' is no verb of golden (did you mean check?)\n"},
                           Case{{"run", "--profil", "smoke"}, "assay: run has no option --profil (did you mean --profile?)\n"},
                           Case{{"run", "--jsn=file"}, "assay: run has no option --jsn (did you mean --json?)\n"},
                           Case{{"verify", "file.h5", "--frobnicate"}, "assay: verify has no option --frobnicate\n"}}) {
    const Ran ran = assay(each.words);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(ran.err.starts_with(each.told)) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

TEST(ReproCommand, BeginsAsTheProgramWasStarted) {
  RunOptions options;
  options.environment = {{"ASSAY_COMMAND", "./assay"}};
  Ran ran = assay({"run", "splits_to_offsets_multi", "--profile", "smoke", "--backend", "null"}, options);
  EXPECT_TRUE(contains(ran.out, "\n  repro   ./assay repro '")) << ran.out;
  ran = assay({"verify", std::string(ASSAY_GOLDEN_FOLDER) + "/offsets.h5", "--backend", "null"}, options);
  EXPECT_TRUE(contains(ran.out, "\n  repro   ./assay verify ")) << ran.out;
  options.environment = {{"ASSAY_COMMAND", "/a path/assay"}};
  ran = assay({"repro", "splits_to_offsets splits=1", "--backend", "null"}, options);
  EXPECT_TRUE(contains(ran.out, "\n  repro   '/a path/assay' repro ")) << ran.out;
}

// Tables: lines of several columns. The verdict and reasons are lines of words.
TEST(Tables, FitSixtyColumns) {
  const EmptyGolden golden;
  const Ran ran = assay(faulty_run("settings", {"--algorithms", "all", "--show", "0"}), golden.options);
  std::istringstream lines(ran.out);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (contains(line, "algorithm: ") || contains(line, "axis: ")) continue;  // rows that end with a name that is not ours
    if (line.find("  passed") != std::string::npos || line.starts_with("  ")) {
      ++rows;
      EXPECT_LE(line.size(), 60u) << line;
    }
  }
  EXPECT_GE(rows, 10) << ran.out;
  for (const char* list : {"--units", "--plans"}) {
    std::istringstream names(assay({"list", list}).out);
    for (std::string line; std::getline(names, line);) {
      if (!line.starts_with(' ')) EXPECT_LE(line.size(), 60u) << line;
    }
  }
}

// Two signals at once, as `timeout` sends them, are one; the report is written.
TEST(Interrupt, TwoSignalsTogetherAreOne) {
  const golden::TemporaryFolder folder;
  const std::filesystem::path started = folder / "started";
  const std::string report = (folder / "report.json").string();
  for (const auto& [first, second] : {std::pair(SIGTERM, SIGINT), std::pair(SIGHUP, SIGTERM)}) {
    std::filesystem::remove(started);
    RunOptions options;
    options.meanwhile = [&, first = first, second = second](pid_t child) {
      EXPECT_TRUE(appears(started));
      kill(child, first);
      kill(child, second);
    };
    const Ran ran = assay(faulty_run(("slow=" + started.string()).c_str(), {"--json", report}), options);
    EXPECT_EQ(ran.code, 5) << ran.signal << ran.out << ran.err;
    EXPECT_EQ(json::parse(text_of(report)).at("exit"), 5);
  }
}

TEST(Interrupt, EndsAGoldenCheck) {
  const golden::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cases");
  std::ofstream lines(folder / "cases" / "long.txt");
  for (int seed = 0; seed < 4; ++seed) lines << "quantize recipe=nvfp4 R=4096 K=4096 seed=" << seed << "\n";
  lines.close();
  std::ofstream(folder / "cases" / "short.txt") << "splits_to_offsets splits=3,0,5\n";
  RunOptions options;
  options.environment = {{"ASSAY_THREADS", "1"}};
  options.meanwhile = [](pid_t child) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(child, SIGINT);
  };
  const Ran ran = assay({"golden", "build", "--folder", folder.path().string()}, options);
  EXPECT_EQ(ran.code, 5) << ran.signal << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "interrupted: long.h5 and what follows it were not written")) << ran.out;
  EXPECT_FALSE(std::filesystem::exists(folder / "manifest.json"));
}

// Bytes of a backend that are not text cost neither the report nor a line of results.
TEST(NotText, CostsNoReport) {
  const EmptyGolden golden;
  const std::string report = (golden.folder / "report.json").string(), results = (golden.folder / "results.jsonl").string();
  const Ran ran = assay(faulty_run("bytes", {"splits_to_offsets", "--json", report, "--results", results}), golden.options);
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  const json made = json::parse(text_of(report));
  expect_valid(made, "report");
  EXPECT_TRUE(contains(made.at("cases")[0].at("text"), "not text")) << made.at("cases")[0];
  EXPECT_EQ(results_of(results).size(), made.at("cases").size() + 2);
}

}  // namespace
}  // namespace assay::conformance
