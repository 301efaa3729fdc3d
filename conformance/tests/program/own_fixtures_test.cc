// The fixtures that belong to the program exist; otherwise the program says so, and does not pass.

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

namespace fs = std::filesystem;

// The program as installed in a prefix, with a manifest but without the files that it lists.
struct Prefix {
  golden::TemporaryFolder folder;
  std::string program = (folder / "bin" / "assay").string();
  fs::path fixtures = folder / "share" / "assay" / "golden";
  Prefix() {
    fs::create_directories(folder / "bin");
    fs::create_directories(fixtures);
    fs::copy_file(ASSAY_PROGRAM, program);
    fs::copy_file(fs::path(ASSAY_GOLDEN_FOLDER) / "manifest.json", fixtures / "manifest.json");
  }
  Ran run(Words words, const ProcessOptions& options = {}) const {
    words.insert(words.begin(), {program, "run", "--profile", "smoke", "--backend", "reference"});
    return run_program(words, options);
  }
};

void expect_refused(const Ran& ran, const std::string& reported) {
  EXPECT_EQ(ran.code, 9) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_TRUE(contains(ran.err, reported)) << ran.err;
}

TEST(OwnFixtures, ThatAreMissingAreNoPass) {
  const Prefix prefix;
  expect_refused(prefix.run({}), (prefix.fixtures / "cublaslt_grouped_gemm.h5").string() + ": no such file");
  expect_refused(prefix.run({"splits_to_offsets"}), "no such file");  // whose fixture cases are unknown
  fs::remove(prefix.fixtures / "manifest.json");
  expect_refused(prefix.run({}), (prefix.fixtures / "manifest.json").string());
}

TEST(OwnFixtures, AreNotMissedWhereOthersAreNamedOrNoneAreAskedFor) {
  const Prefix prefix;
  const EmptyGolden other;
  EXPECT_EQ(prefix.run({"splits_to_offsets"}, other.options).code, 0);
  const Ran random =
      run_program({prefix.program, "run", "--random", "1", "splits=??", "N=???", "K=???", "--backend", "reference", "--quiet"});
  EXPECT_EQ(random.code, 0) << random.out << random.err;
}

// A folder that cannot be listed is not a folder without fixtures.
TEST(OwnFixtures, ThatCannotBeListedAreNoPass) {
  const Prefix prefix;
  fs::permissions(prefix.folder.path(), fs::perms(0755));
  fs::create_directory(prefix.folder / "closed");
  fs::permissions(prefix.folder / "closed", fs::perms::none);
  Words command{prefix.program, "run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference"};
  if (geteuid() == 0)
    command.insert(command.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});  // who may read all
  ProcessOptions options;
  options.environment.emplace_back("ASSAY_GOLDEN", (prefix.folder / "closed").string());
  expect_refused(run_program(command, options), (prefix.folder / "closed").string() + ": cannot be read: Permission denied");
}

}  // namespace
}  // namespace assay::conformance
