// --results keeps every verdict, whatever ends the program; --resume continues from there.

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

std::set<std::string> cases_of(const std::vector<json>& entries) {
  std::set<std::string> names;
  for (const json& each : entries) {
    if (each.at("record") == "case") names.insert(each.at("suite").get<std::string>() + "/" + each.at("name").get<std::string>());
  }
  return names;
}

std::size_t lines_in(const std::filesystem::path& path) {
  const std::string text = text_of(path);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// A run of cases that take 50 ms each, killed when the file has that many lines.
struct Killed {
  std::size_t lines_before = 0;
  Ran ran;
};
Killed killed_run(const EmptyGolden& golden, const std::string& results, std::size_t after, const char* option = "--results") {
  Killed killed;
  ProcessOptions options = golden.options;
  options.environment.emplace_back("ASSAY_THREADS", "1");
  options.meanwhile = [&](pid_t child) {
    for (int i = 0; i < 6000 && (!std::filesystem::exists(results) || lines_in(results) < after); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    killed.lines_before = lines_in(results);
    kill(child, SIGKILL);
  };
  killed.ran = assay(faulty_run(("slow=" + (golden.folder / "started").string()).c_str(), {"swizzle", option, results}), options);
  return killed;
}

class KilledAfter : public testing::TestWithParam<std::size_t> {};

TEST_P(KilledAfter, NothingIsLostAndTheRestIsDone) {
  const EmptyGolden golden;
  const std::string results = (golden.folder / "results.jsonl").string(), report = (golden.folder / "report.json").string();
  const Killed killed = killed_run(golden, results, GetParam());
  EXPECT_EQ(killed.ran.signal, SIGKILL) << killed.ran.out;
  const std::vector<json> first = results_of(results);
  EXPECT_GE(first.size(), std::max<std::size_t>(killed.lines_before, GetParam()));
  for (const json& each : first) EXPECT_NE(each.at("record"), "summary");

  const Words words =
      faulty_run(("slow=" + (golden.folder / "started").string()).c_str(), {"swizzle", "--resume", results, "--json", report});
  const Ran ran = assay(words, golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  const std::vector<json> all = results_of(results);
  EXPECT_EQ(all.back().at("record"), "summary");
  const auto cases = cases_of(all);
  EXPECT_EQ(static_cast<std::size_t>(
                std::count_if(all.begin(), all.end(), [](const json& each) { return each.at("record") == "case"; })),
            cases.size())
      << "a case was judged twice";
  const json whole = json::parse(text_of(report));
  expect_valid(whole, "report");
  EXPECT_EQ(whole.at("cases").size(), cases.size()) << "the report counts both runs";
  EXPECT_EQ(whole.at("resumed"), cases_of(first).size());
  EXPECT_TRUE(contains(ran.out, std::to_string(cases.size()) + " passed, 0 failed, 0 not run, 0 other")) << ran.out;

  // Once more: every case now has its verdict.
  const Ran again = assay(words, golden.options);
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  EXPECT_EQ(cases_of(results_of(results)), cases);
  EXPECT_TRUE(contains(again.out, "(" + std::to_string(cases.size()) + " of an earlier run)")) << again.out;
}
INSTANTIATE_TEST_SUITE_P(Lines, KilledAfter, testing::Values(1u, 2u, 4u));

TEST(Resume, JudgesAgainWhatHasNoFinalVerdict) {
  const EmptyGolden golden;
  const std::string results = (golden.folder / "results.jsonl").string();
  Ran ran = assay(faulty_run("none", {"splits_to_offsets", "--results", results}), golden.options);
  ASSERT_EQ(ran.code, 0) << ran.out;
  std::vector<json> entries = results_of(results);
  const std::size_t cases = cases_of(entries).size();
  // One case is unfinished, one failed, one line is truncated, and there is no summary.
  std::ofstream file(results, std::ios::trunc);
  int number = 0;
  std::string cut;
  for (json each : entries) {
    if (each.at("record") == "summary") continue;
    if (each.at("record") == "case" && number++ < 3) {
      if (number == 3) {
        cut = each.dump();
        continue;
      }
      each["verdict"] = number == 1 ? "unfinished" : "failed";
      each.erase("ground");
      each["findings"] = {{{"kind", "other"}, {"text", "planted"}}};
      each["text"] = "FAILED  planted";
    }
    file << each.dump() << "\n";
  }
  file << cut.substr(0, cut.size() / 2);
  file.close();
  ran = assay(faulty_run("none", {"splits_to_offsets", "--resume", results}), golden.options);
  EXPECT_EQ(ran.code, 1) << "the failure of the earlier run counts" << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "FAILED  planted")) << ran.out;
  EXPECT_TRUE(contains(ran.out, std::to_string(cases - 1) + " passed, 1 failed")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "(" + std::to_string(cases - 2) + " of an earlier run)")) << ran.out;
  results_of(results);  // every line is whole
}

struct OtherRun {
  const char* name;
  Words words;
  const char* reported;
};
void PrintTo(const OtherRun& other, std::ostream* out) { *out << other.name; }

class ResumeRefuses : public testing::TestWithParam<OtherRun> {};

TEST_P(ResumeRefuses, AnotherRun) {
  const EmptyGolden golden;
  const std::string results = (golden.folder / "results.jsonl").string();
  ASSERT_EQ(
      assay({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", "--results", results}, golden.options)
          .code,
      0);
  const std::string before = text_of(results);
  Words words = GetParam().words;
  words.insert(words.end(), {"--resume", results});
  const Ran ran = assay(words, golden.options);
  EXPECT_EQ(ran.code, 2) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.err, "is of another run: ") && contains(ran.err, GetParam().reported)) << ran.err;
  EXPECT_EQ(text_of(results), before) << "nothing is written";
}
INSTANTIATE_TEST_SUITE_P(
    Runs, ResumeRefuses,
    testing::Values(OtherRun{"backend",
                             {"run", "splits_to_offsets", "--profile", "smoke", "--backend", ASSAY_FAULTY_BACKEND},
                             "backend/name: \"reference\" there, \"faulty\" here"},
                    OtherRun{"options",
                             {"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", "--backend-options",
                              "layer=scalar"},
                             "backend/options"},
                    OtherRun{"profile", {"run", "splits_to_offsets", "--profile", "standard", "--backend", "reference"}, "verb"},
                    OtherRun{"words", {"run", "swizzle", "--profile", "smoke", "--backend", "reference"}, "verb"},
                    OtherRun{"shard",
                             {"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", "--shard", "0/2"},
                             "verb"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Resume, RefusesAnotherBuildOfTheLibraryAndOtherFiles) {
  const EmptyGolden golden;
  const std::string library = (golden.folder / "faulty.so").string(), results = (golden.folder / "results.jsonl").string();
  std::filesystem::copy_file(ASSAY_FAULTY_BACKEND, library);
  const auto words = [&](const char* option) {
    return Words{"run",   "splits_to_offsets", "--profile", "smoke", "--backend",
                 library, "--backend-options", "none",      option,  results};
  };
  ASSERT_EQ(assay(words("--results"), golden.options).code, 0);
  std::ofstream(library, std::ios::app | std::ios::binary) << "one more byte";
  Ran ran = assay(words("--resume"), golden.options);
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "backend/library/sha256")) << ran.err;

  ran = assay({"run", "splits_to_offsets", "--backend", "reference", "--resume", (golden.folder / "none").string()},
              golden.options);
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "no such file")) << ran.err;
  std::ofstream(golden.folder / "text") << "not JSON\nnor this\n";
  ran = assay({"run", "splits_to_offsets", "--backend", "reference", "--resume", (golden.folder / "text").string()},
              golden.options);
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "line 1: is not a header of a file of --results")) << ran.err;
}

// A case with several settings is judged again unless the verdicts of all settings are there.
TEST(Resume, TakesSettingsWholeOrNotAtAll) {
  const EmptyGolden golden;
  const std::string results = (golden.folder / "results.jsonl").string();
  const Words more{"grouped_gemm kind=bf16", "--axes", "size=2"};
  Words words = more;
  words.insert(words.end(), {"--results", results});
  ASSERT_EQ(assay(faulty_run("settings", words), golden.options).code, 0);
  const std::vector<json> entries = results_of(results);
  std::ofstream file(results, std::ios::trunc);
  bool left_out = false;
  for (const json& each : entries) {
    if (!left_out && each.value("setting", "") == "axis: size=2") {
      left_out = true;
      continue;
    }
    if (each.at("record") != "summary") file << each.dump() << "\n";
  }
  file.close();
  ASSERT_TRUE(left_out);
  words = more;
  words.insert(words.end(), {"--resume", results});
  const Ran ran = assay(faulty_run("settings", words), golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  std::map<std::string, int> lines;
  for (const json& each : results_of(results)) {
    if (each.at("record") == "case") ++lines[each.at("name").get<std::string>() + each.value("setting", "")];
  }
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const auto& each) { return each.second == 2; }), 1)
      << "the setting that was there is judged again";
}

// A disk that becomes full during the run: reported as such, exit 9, and the verdicts are still printed.
TEST(Results, OnAFullDisk) {
  const EmptyGolden golden;
  const Ran ran = assay({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", "--results", "/dev/full"},
                        golden.options);
  EXPECT_EQ(ran.code, 9) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.err, "/dev/full: cannot be written: No space left on device")) << ran.err;
}

}  // namespace
}  // namespace assay::conformance
