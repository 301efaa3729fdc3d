// Messages about unknown words, the beginning of commands to paste, and the width of tables.

#include "conformance/suites/progress.h"
#include "conformance/tests/program/evidence.h"

#include <csignal>

namespace assay::conformance {
namespace {

TEST(UnknownWords, AreNamedWithTheNearest) {
  struct Case {
    Words words;
    const char* reported;
  };
  for (const Case& each : {Case{{"rnu"}, "assay: 'rnu' is not a verb of assay (did you mean run?)\n"},
                           Case{{"frobnicate"}, "assay: 'frobnicate' is not a verb of assay\n"},
                           Case{{"golden", "chekc"}, "assay: 'chekc' is not a verb of golden (did you mean check?)\n"},
                           Case{{"run", "--profil", "smoke"}, "assay: run has no option --profil (did you mean --profile?)\n"},
                           Case{{"run", "--jsn=file"}, "assay: run has no option --jsn (did you mean --json?)\n"},
                           Case{{"verify", "file.h5", "--frobnicate"}, "assay: verify has no option --frobnicate\n"}}) {
    const Ran ran = assay(each.words);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(ran.err.starts_with(each.reported)) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

TEST(ReproCommand, BeginsAsTheProgramWasStarted) {
  ProcessOptions options;
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
    if (contains(line, "algorithm: ") || contains(line, "axis: ")) continue;  // rows that end with a name from outside
    if (line.find("  passed") != std::string::npos || line.starts_with("  ")) {
      ++rows;
      EXPECT_LE(line.size(), 60u) << line;
    }
  }
  EXPECT_GE(rows, 10) << ran.out;
}

void expect_narrow(const std::string& text, int least_rows) {
  std::istringstream lines(text);
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    if (line.ends_with('\r')) line.pop_back();
    const std::size_t words = line.find_first_not_of(' ');
    const bool is_one_word = line.find(' ', words) == std::string::npos;  // such as a path, which cannot be broken
    if (!is_one_word) EXPECT_LE(line.size(), 60u) << line;
  }
  EXPECT_GE(rows, least_rows) << text;
}

TEST(Tables, OfTheListsFitSixtyColumns) {
  for (const auto& [list, rows] :
       {std::pair("--units", 40), std::pair("--plans", 10), std::pair("--levels", 36), std::pair("--backends", 2)}) {
    const Ran ran = assay({"list", list});
    EXPECT_EQ(ran.code, 0);
    expect_narrow(ran.out, rows);
  }
}

// In a terminal. Elsewhere each fact is one line, for programs that read it.
TEST(Tables, OfTheDoctorFitSixtyColumnsOfATerminal) {
  expect_narrow(assay({"doctor"}, {.environment = {}, .terminal = true, .meanwhile = {}}).out, 8);
  std::istringstream facts(assay({"doctor"}).out);
  for (std::string line; std::getline(facts, line);) EXPECT_FALSE(line.starts_with(' ')) << line;
}

TEST(ProgressLines, ComeNowAndThenWhereThereIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    Progress seldom("judged", 4, true), often("made", 4, true, std::chrono::milliseconds(1)),
        none("quiet", 4, false, std::chrono::milliseconds(0));
    for (int i = 0; i < 4; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (Progress* each : {&seldom, &often, &none}) each->done("case", i == 1);
    }
  }
  // No line in the first half minute, and none for the last case, which the verdict follows.
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "made 1/4  0 s  \nmade 2/4  0 s  1 failed  \nmade 3/4  0 s  1 failed  \n");
}

TEST(UnknownWords, OfEveryVerbAreNamed) {
  const Words verbs{"run", "verify", "compute", "list", "repro", "scale-map", "doctor"};
  for (const std::string& verb : verbs) {
    const Ran ran = assay({verb, "--hlep"});
    EXPECT_EQ(ran.code, 2) << verb;
    EXPECT_TRUE(contains(ran.err, verb + " has no option --hlep (did you mean --help?)")) << ran.err;
    const Ran slip = assay({verb + "x"});
    EXPECT_EQ(slip.code, 2) << verb;
    EXPECT_TRUE(contains(slip.err, "(did you mean " + verb + "?)")) << slip.err;
  }
  for (const char* verb : {"build", "check"}) {
    EXPECT_TRUE(contains(assay({"golden", verb, "--foldr", "x"}).err, "has no option --foldr (did you mean --folder?)")) << verb;
  }
  const Ran ran = assay({"run", "--profile", "smoke", "--backend", "reference", "--require", "train-fp8-blok"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_TRUE(contains(ran.out, "is required by 'train-fp8-blok' (did you mean train-fp8-block?)")) << ran.out;
}

// Every command that a run prints gives the same failure when pasted, whatever name the program was started by.
TEST(ReproCommand, EachThatARunPrintsShowsItsFailure) {
  const EmptyGolden golden;
  const std::string link = (golden.folder / "my assay").string();
  std::filesystem::create_symlink(ASSAY_PROGRAM, link);
  ProcessOptions options = golden.options;
  options.environment.emplace_back("ASSAY_COMMAND", link);
  const Ran ran = assay(faulty_run("settings", {"--algorithms", "all", "--show", "6", "grouped_gemm"}), options);
  ASSERT_EQ(ran.code, 1) << ran.out << ran.err;
  std::istringstream lines(ran.out);
  int pasted = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  repro   ")) continue;
    ++pasted;
    const Ran again = run_program({"sh", "-c", line.substr(10)}, options);
    EXPECT_EQ(again.code, 1) << line << "\n" << again.out << again.err;
    EXPECT_TRUE(contains(again.out, line)) << line << "\n" << again.out;
  }
  EXPECT_GE(pasted, 3) << ran.out;
}

// Two signals at the same time, as `timeout` sends them, count as one; the report is written.
TEST(Interrupt, TwoSignalsTogetherAreOne) {
  const golden::TemporaryFolder folder;
  const std::filesystem::path started = folder / "started";
  const std::string report = (folder / "report.json").string();
  for (const auto& [first, second] : {std::pair(SIGTERM, SIGINT), std::pair(SIGHUP, SIGTERM)}) {
    std::filesystem::remove(started);
    ProcessOptions options;
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
  ProcessOptions options;
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

// Bytes from a backend that are not text do not lose the report or a line of results.
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
