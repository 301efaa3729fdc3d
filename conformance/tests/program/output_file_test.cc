// Files that the program writes: links stay links, modes stay unchanged, and a file that cannot be written is reported before the
// run, with the true reason.

#include <sys/stat.h>

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

namespace fs = std::filesystem;

const Words kRepro{"repro", "splits_to_offsets splits=1,2"};
Words with(Words words, Words more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

mode_t mode_of(const fs::path& path) {
  struct stat there {};
  EXPECT_EQ(stat(path.c_str(), &there), 0) << path;
  return there.st_mode & 07777;
}

TEST(OutputFile, ThroughALinkAndWithTheModeThatIsThere) {
  const golden::TemporaryFolder folder;
  fs::create_directory(folder / "kept");
  std::ofstream(folder / "kept" / "report.json") << "old";
  fs::permissions(folder / "kept" / "report.json", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("kept/report.json", folder / "link.json");
  fs::create_symlink("link.json", folder / "second.json");
  EXPECT_EQ(assay(with(kRepro, {"--json", (folder / "second.json").string()})).code, 0);
  EXPECT_TRUE(fs::is_symlink(folder / "second.json"));
  EXPECT_TRUE(fs::is_symlink(folder / "link.json"));
  EXPECT_EQ(mode_of(folder / "kept" / "report.json"), 0600u);
  EXPECT_EQ(json::parse(text_of(folder / "kept" / "report.json")).at("exit"), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "kept"), {}), 1) << "something was left behind";
}

TEST(OutputFile, ThroughALinkToNothingYet) {
  const golden::TemporaryFolder folder;
  fs::create_directory(folder / "kept");
  fs::create_symlink("kept/report.json", folder / "link.json");
  EXPECT_EQ(assay(with(kRepro, {"--json", (folder / "link.json").string()})).code, 0);
  EXPECT_TRUE(fs::is_symlink(folder / "link.json"));
  EXPECT_TRUE(fs::is_regular_file(folder / "kept" / "report.json"));
}

TEST(OutputFile, LinksThatLeadNowhere) {
  const golden::TemporaryFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  const Ran ran = assay(with(kRepro, {"--json", (folder / "a").string()}));
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "Too many levels of symbolic links")) << ran.err;
}

// The same for fixtures.
TEST(OutputFile, OfAFixture) {
  const golden::TemporaryFolder folder;
  std::ofstream(folder / "case.h5") << "old";
  fs::permissions(folder / "case.h5", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("case.h5", folder / "link.h5");
  EXPECT_EQ(assay(with(kRepro, {"--save", (folder / "link.h5").string()})).code, 0);
  EXPECT_TRUE(fs::is_symlink(folder / "link.h5"));
  EXPECT_EQ(mode_of(folder / "case.h5"), 0600u);
  EXPECT_EQ(assay({"verify", (folder / "case.h5").string()}).code, 0);
}

// Checked before the run: no case is judged, and nothing is on standard output.
TEST(OutputFile, IsCheckedFirst) {
  const EmptyGolden golden;
  std::ofstream(golden.folder / "text") << "a file";
  for (const char* option : {"--json", "--results"}) {
    for (const auto& [path, why] : {std::pair((golden.folder / "none" / "file").string(), "No such file or directory"),
                                    std::pair((golden.folder / "text" / "file").string(), "Not a directory"),
                                    std::pair(golden.folder.path().string(), "not a regular file")}) {
      const Ran ran =
          assay({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", option, path}, golden.options);
      EXPECT_EQ(ran.code, 2) << option << " " << path << ran.out << ran.err;
      EXPECT_EQ(ran.out, "") << option << " " << path;
      EXPECT_TRUE(contains(ran.err, why) && contains(ran.err, golden.folder.path().string())) << ran.err;
    }
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(golden.folder.path()), {}), 1) << "something was left behind";
}

TEST(OutputFile, WhatIsThereIsLeftAloneByTheCheck) {
  const EmptyGolden golden;
  const std::string report = (golden.folder / "report.json").string();
  std::ofstream(report) << "old";
  EXPECT_EQ(assay({"run", "nosuchword", "--backend", "reference", "--json", report}, golden.options).code, 4);
  EXPECT_EQ(text_of(report), "old");
}

// A full disk is a fault of the machine, wherever it is found.
TEST(OutputFile, AFullDiskIsSaidToBeFull) {
  const Ran ran = assay(with(kRepro, {"--json", "/dev/full"}));
  EXPECT_EQ(ran.code, 9);
  EXPECT_EQ(ran.err, "assay: /dev/full: cannot be written: No space left on device\n");
  EXPECT_TRUE(contains(ran.out, "PASS repro")) << "the verdict is printed all the same: " << ran.out;
}

// A run whose results cannot be printed does not pass.
TEST(StandardOutput, ThatIsFullIsNoPass) {
  for (const char* words : {"run splits_to_offsets --profile smoke --backend reference", "list", "doctor",
                            "repro 'splits_to_offsets splits=1,2'", "--help"}) {
    const Ran ran = run_program({"sh", "-c", std::string("exec \"$ASSAY\" ") + words + " > /dev/full"},
                                {.environment = {{"ASSAY", ASSAY_PROGRAM}}, .terminal = false, .meanwhile = {}});
    EXPECT_EQ(ran.code, 9) << words << ran.err;
    EXPECT_TRUE(contains(ran.err, "No space left on device")) << words << ran.err;
  }
}

// Only messages that cannot be written are lost: no verdict is, and no file that gets the number of a closed descriptor is
// damaged.
TEST(StandardError, ThatIsFullOrClosedOrABrokenPipeCostsNothing) {
  for (const char* where : {"2>/dev/full", "2>&-", "0<&- 2>&-", "2> >(exec 0<&-)"}) {
    SCOPED_TRACE(where);
    const EmptyGolden golden;
    ProcessOptions options = golden.options;
    options.environment.emplace_back("ASSAY", ASSAY_PROGRAM);
    const std::string file = (golden.folder / "results").string();
    const std::string command =
        "\"$ASSAY\" run --profile smoke splits_to_offsets --backend reference --results '" + file + "' " + where;
    const Ran ran = run_program({"bash", "-c", command}, options);
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.out, "PASS run ")) << ran.out;
    std::ifstream lines(file);
    std::string line;
    int count = 0;
    for (; std::getline(lines, line); ++count) EXPECT_TRUE(json::accept(line)) << line;
    EXPECT_GT(count, 5);
  }
}

TEST(StandardOutput, ThatIsClosedIsNoPass) {
  const Ran ran = run_program({"sh", "-c", "exec \"$ASSAY\" repro 'splits_to_offsets splits=1,2' >&-"},
                              {.environment = {{"ASSAY", ASSAY_PROGRAM}}, .terminal = false, .meanwhile = {}});
  EXPECT_EQ(ran.code, 9) << ran.err;
  EXPECT_TRUE(contains(ran.err, "standard output cannot be written: Bad file descriptor")) << ran.err;
}

// A reader that leaves early ends the program by SIGPIPE, but only after its other files are written.
TEST(StandardOutput, WithoutAReaderCostsNoOtherFile) {
  const EmptyGolden golden;
  ProcessOptions options = golden.options;
  options.environment.emplace_back("ASSAY", ASSAY_PROGRAM);
  const std::string report = (golden.folder / "report.json").string();
  const std::string command = "\"$ASSAY\" run grouped_gemm --profile smoke --backend null --show 1000 --json '" + report +
                              "' | true; exit ${PIPESTATUS[0]}";
  const Ran ran = run_program({"bash", "-c", command}, options);
  EXPECT_EQ(ran.code, 128 + SIGPIPE) << ran.err;
  EXPECT_GT(json::parse(text_of(report)).at("cases").size(), 50u);
}

// A limit of the shell on the size of files (ulimit -f) is a fault of the machine, not the end of the program by SIGXFSZ.
TEST(OutputFile, BeyondTheAllowedSize) {
  for (const char* option : {"--json", "--results"}) {
    const EmptyGolden golden;
    ProcessOptions options = golden.options;
    options.environment.emplace_back("ASSAY", ASSAY_PROGRAM);
    const std::string command = std::string("ulimit -f 1; exec \"$ASSAY\" run --profile smoke --backend reference ") + option +
                                " '" + (golden.folder / "file").string() + "'";
    const Ran ran = run_program({"sh", "-c", command}, options);
    EXPECT_EQ(ran.code, 9) << option << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.err, "File too large")) << option << ran.err;
  }
}

// A pipe without a reader blocks the program. SIGTERM still ends it.
TEST(OutputFile, APipeWithoutAReader) {
  for (const char* option : {"--json", "--results"}) {
    const golden::TemporaryFolder folder;
    const std::string pipe = (folder / "pipe").string();
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    ProcessOptions options;
    options.meanwhile = [](pid_t program) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      EXPECT_EQ(kill(program, SIGTERM), 0);
    };
    const Ran ran = assay({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", option, pipe}, options);
    EXPECT_NE(ran.code, 0) << option << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.err, pipe)) << option << ran.err;
  }
}

TEST(OutputFile, APipeWithAReaderReceivesAll) {
  const golden::TemporaryFolder folder;
  ProcessOptions options;
  options.environment.emplace_back("ASSAY", ASSAY_PROGRAM);
  const std::string file = (folder / "copy").string();
  const Ran ran = run_program({"bash", "-c",
                               "\"$ASSAY\" run --profile smoke --backend reference --json >(sleep 0.3; cat > '" + file +
                                   "'); code=$?; sleep 1; exit $code"},
                              options);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_GT(json::parse(text_of(file)).at("cases").size(), 50u);
}

// One file would replace the other.
TEST(OutputFile, TwoOfOneName) {
  const golden::TemporaryFolder folder;
  fs::create_symlink("file", folder / "link");
  for (const auto& [one, other] : {std::pair(folder / "file", folder / "file"), std::pair(folder / "file", folder / "." / "file"),
                                   std::pair(folder / "link", folder / "file")}) {
    const Ran ran = assay({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", "--json", one.string(),
                           "--results", other.string()});
    EXPECT_EQ(ran.code, 2) << ran.out;
    EXPECT_TRUE(contains(ran.err, "is the file of --results too")) << ran.err;
    EXPECT_FALSE(fs::exists(folder / "file"));
  }
}

// As with --baseline "$UNSET": an empty value must not be ignored silently.
TEST(EmptyValue, IsWrongUsage) {
  for (const char* option :
       {"--baseline", "--resume", "--json", "--results", "--shard", "--require", "--axes", "--expect-by", "--backend"}) {
    for (const Words& given : {Words{option, ""}, Words{std::string(option) + "="}}) {
      const Ran ran = assay(with({"run", "splits_to_offsets", "--profile", "smoke"}, given));
      EXPECT_EQ(ran.code, 2) << option << ran.out;
      EXPECT_EQ(ran.out, "") << option;
      EXPECT_TRUE(contains(ran.err, option)) << ran.err;
    }
  }
  EXPECT_EQ(assay({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", "--backend-options", ""}).code, 0);
}

TEST(StandardOutput, ThatIsFullCostsNoOtherFile) {
  const EmptyGolden golden;
  ProcessOptions options = golden.options;
  options.environment.emplace_back("ASSAY", ASSAY_PROGRAM);
  const std::string report = (golden.folder / "report.json").string();
  const Ran ran = run_program(
      {"sh", "-c",
       "exec \"$ASSAY\" run grouped_gemm --profile smoke --backend null --show 1000 --json '" + report + "' > /dev/full"},
      options);
  EXPECT_EQ(ran.code, 9) << ran.err;
  const json made = json::parse(text_of(report));
  expect_valid(made, "report");
  EXPECT_GT(made.at("cases").size(), 50u);
}

}  // namespace
}  // namespace assay::conformance
