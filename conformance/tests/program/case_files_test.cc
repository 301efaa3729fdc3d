// --cases FILE: the cases of text files in place of the catalogue's.

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

class CaseFiles : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  Ran run(Words words) {
    words.insert(words.begin(), {"run", "--backend", "reference", "--quiet"});
    return assay(words);
  }
  Ran list(Words words) {
    words.insert(words.begin(), "list");
    return assay(words);
  }
  // The case lines in the report of a run.
  Words judged(Words words) {
    const std::string path = (folder_ / "report.json").string();
    words.insert(words.end(), {"--json", path});
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    report_ = json::parse(text_of(path));
    expect_valid(report_, "report");
    Words lines;
    for (const json& each : report_.at("cases")) {
      EXPECT_EQ(each.at("suite"), "generated");
      EXPECT_EQ(each.at("verdict"), "passed");
      lines.push_back(each.at("case"));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  golden::TemporaryFolder folder_;
  json report_;
};

const char* const kMarked =
    "# three sections\n[smoke]\nswizzle recipe=mxfp8 K=64 R=33\n[standard]\nsplits_to_offsets splits=1,2,3\n\n[full]\n"
    "quantize recipe=nvfp4 R=16 K=32\n";

TEST_F(CaseFiles, RunInPlaceOfTheCatalogue) {
  const std::string mine = put("mine.txt", kMarked);
  EXPECT_EQ(judged({"--cases", mine, "--profile", "smoke"}), (Words{"swizzle recipe=mxfp8 R=33 K=64"}));
  EXPECT_EQ(judged({"--cases", mine}), (Words{"splits_to_offsets splits=1,2,3", "swizzle recipe=mxfp8 R=33 K=64"}));
  EXPECT_EQ(judged({"--cases", mine, "--profile", "full"}),
            (Words{"quantize recipe=nvfp4 R=16 K=32", "splits_to_offsets splits=1,2,3", "swizzle recipe=mxfp8 R=33 K=64"}));
  EXPECT_EQ(judged({"--cases", mine, "--profile", "full", "splits*", "1,2"}), (Words{"splits_to_offsets splits=1,2,3"}));
}

TEST_F(CaseFiles, WithoutMarksBelongToEveryProfile) {
  const std::string plain = put("plain.txt", "splits_to_offsets splits=9\r\nsplits_to_offsets splits=4");
  for (const char* profile : {"smoke", "standard", "full"}) {
    EXPECT_EQ(list({"--cases", plain, "--profile", profile}).out, "splits_to_offsets splits=9\nsplits_to_offsets splits=4\n");
  }
}

TEST_F(CaseFiles, SeveralTogetherHaveEachCaseOnce) {
  const std::string mine = put("mine.txt", kMarked),
                    plain = put("plain.txt", "splits_to_offsets splits=9\nsplits_to_offsets splits=1,2,3\n");
  const Ran ran = list({"--cases", mine, "--cases", plain});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "swizzle recipe=mxfp8 R=33 K=64\nsplits_to_offsets splits=9\nsplits_to_offsets splits=1,2,3\n");
  Words all;
  for (const char* shard : {"0/2", "1/2"}) {
    for (const std::string& line : judged({"--cases", mine, "--cases", plain, "--shard", shard})) all.push_back(line);
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (Words{"splits_to_offsets splits=1,2,3", "splits_to_offsets splits=9", "swizzle recipe=mxfp8 R=33 K=64"}));
}

TEST_F(CaseFiles, AreNamedByTheReport) {
  const std::string mine = put("mine.txt", kMarked);
  judged({"--cases", mine});
  EXPECT_EQ(report_.at("selection").at("case_files"), json::array({mine}));
  EXPECT_EQ(report_.at("selection").at("profile"), "standard");
  EXPECT_EQ(report_.at("selection").at("cases"), 2);
  EXPECT_TRUE(report_.at("claims").at("levels").empty()) << "a level requires cases of the catalogue";
  const Ran ran = run({"--cases", mine});
  EXPECT_TRUE(contains(ran.out, "PASS run --cases " + mine + " --profile standard: backend reference")) << ran.out;
  EXPECT_TRUE(contains(ran.err, "run --cases " + mine + " --profile standard, 2 cases, 0 fixture files")) << ran.err;
  const std::string report = (folder_ / "catalogue.json").string();
  EXPECT_EQ(run({"splits_to_offsets", "--profile", "smoke", "--json", report}).code, 0);
  EXPECT_FALSE(json::parse(text_of(report)).at("selection").contains("case_files"));
}

TEST_F(CaseFiles, RunWithFixturesWhereTheyAreRequested) {
  const std::string mine = put("mine.txt", "splits_to_offsets splits=9\n");
  const Ran without = run({"--cases", mine, "offsets"}), with = run({"--cases", mine, "--fixtures", "offsets"});
  EXPECT_EQ(without.code, 0);
  EXPECT_TRUE(contains(without.err, "1 case, 0 fixture files")) << without.err;
  EXPECT_EQ(with.code, 0);
  EXPECT_FALSE(contains(with.err, " 0 fixture files")) << with.err;
  EXPECT_EQ(run({"--cases", mine, "--fixtures", "fp8_block.h5/no_such_case"}).code, 4);
}

TEST_F(CaseFiles, AreComparedWithAnEarlierRunOfTheSameFile) {
  const std::string mine = put("mine.txt", kMarked), before = (folder_ / "before.json").string();
  EXPECT_EQ(run({"--cases", mine, "--json", before}).code, 0);
  const Ran same = run({"--cases", mine, "--baseline", before});
  EXPECT_EQ(same.code, 0) << same.out;
  EXPECT_TRUE(contains(same.out, "2 kept, 0 lost, 0 gained")) << same.out;
  const Ran other = run({"--profile", "smoke", "--baseline", before});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err, "is of 'run --cases " + mine + " --profile standard': this is 'run --profile smoke'"))
      << other.err;
}

TEST_F(CaseFiles, ResumeOnlyWhileTheFileHasTheSameCases) {
  const std::string mine = put("mine.txt", kMarked), results = (folder_ / "r.jsonl").string();
  EXPECT_EQ(run({"--cases", mine, "--results", results}).code, 0);
  const Ran again = run({"--cases", mine, "--resume", results});
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  EXPECT_TRUE(contains(again.out, "2 passed")) << again.out;
  put("mine.txt", "splits_to_offsets splits=9\nsplits_to_offsets splits=8\n");
  const Ran other = run({"--cases", mine, "--resume", results});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err, "is of another run: selection/sha256")) << other.err;
}

TEST_F(CaseFiles, AskForNoLevelOfTheCatalogue) {
  const std::string mine = put("mine.txt", kMarked), level = put("level.txt", "level mine 1\nsplits_to_offsets*\n");
  const Ran named = run({"--cases", mine, "--require", "core"});
  EXPECT_EQ(named.code, 2);
  EXPECT_TRUE(contains(named.err, "--require: core 1 is a level of the catalogue's cases")) << named.err;
  EXPECT_EQ(run({"--random", "1", "--require", "core"}).code, 2);
  EXPECT_TRUE(contains(run({"--cases", mine, "--require", level}).out, "required: mine 1: all 1 cases passed"));
  EXPECT_TRUE(contains(run({"--cases", mine, "--require", "swizzle"}).out, "required: swizzle: all 1 cases passed"));
}

TEST_F(CaseFiles, WithoutTheRequestedCasesSelectNothing) {
  const std::string full = put("full.txt", "[full]\nsplits_to_offsets splits=9\n");
  const Ran ran = run({"--cases", full});
  EXPECT_EQ(ran.code, 4);
  EXPECT_TRUE(contains(ran.out, "no case of " + full + " is in profile standard")) << ran.out;
  EXPECT_EQ(run({"--cases", full, "--profile", "full"}).code, 0);
  EXPECT_EQ(run({"--cases", full, "--profile", "full", "nosuchword"}).code, 4);
  EXPECT_EQ(list({"--cases", full}).code, 4);
  EXPECT_EQ(list({"--cases", full, "--profile", "full", "nosuchword"}).code, 4);
}

TEST_F(CaseFiles, ThatAreWrongAreRefusedByNameAndLine) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const std::string good = "splits_to_offsets splits=9\n", folder = folder_.path().string();
  const std::string dealt = "splits_to_offsets splits=zipf(1048576,1000000000000,";
  std::string many;
  for (int seed = 0; seed < 60; ++seed) many += dealt + std::to_string(seed) + ")\n";
  const struct {
    std::string path, expected;
    // clang-format off
  } faults[] = {
      {folder + "/missing.txt", "missing.txt: no such file"},
      {folder, "is a directory: expected a file"},
      {folder + "/pipe", "is not a regular file"},
      {"/dev/zero", "is not a regular file"},
      {put("empty.txt", ""), "empty.txt: holds no case"},
      {put("huge.txt", std::string((std::size_t{16} << 20) + 1, '#')), "huge.txt: is larger than 16777216 bytes"},
      {put("nul.txt", good + std::string(3, '\0')), "nul.txt: line 2: holds the byte 0x00: expected text"},
      {put("escape.txt", "# \x1b[2J\n" + good), "escape.txt: line 1: holds the byte 0x1b: expected text"},
      {put("bytes.txt", good + "\xff\xfe=1\n"), "bytes.txt: line 2: op is \\xff\\xfe=1: expected one of"},
      {put("line.txt", good + "\n# more\nswizzle recipe=mxfp8 R=1 K=3x\n"), "line.txt: line 4: K is 3x: expected an integer of at least 0"},
      {put("mark.txt", "[smok]\n" + good), "mark.txt: line 1: '[smok]': expected [smoke], [standard] or [full] (did you mean [smoke]?)"},
      {put("word.txt", "swizzle recipe=" + std::string(8 << 20, 'm') + " R=1 K=3\n"), "expected one of mxfp8 nvfp4"},
      {put("groups.txt", many), "of canonical text: expected fewer groups"},
      {put("json.txt", "{\"cases\": []}\n"), "json.txt: line 1: op is {\"cases\":: expected one of"},
  };
  // clang-format on
  for (const auto& each : faults) {
    for (const char* verb : {"run", "list"}) {
      const Ran ran = assay({verb, "--cases", each.path});
      EXPECT_EQ(ran.code, 2) << each.path << ran.err;
      EXPECT_EQ(ran.out, "") << each.path;
      EXPECT_TRUE(contains(ran.err, "--cases: ")) << ran.err;
      EXPECT_TRUE(contains(ran.err, each.expected)) << each.expected << " is not in\n" << ran.err;
      EXPECT_LT(ran.err.size(), 4200u);
      EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    }
  }
}

TEST_F(CaseFiles, GoWithWhatTheyGoWith) {
  const std::string mine = put("mine.txt", kMarked);
  EXPECT_EQ(assay({"run", "--cases", mine, "--random", "2"}).code, 2);
  EXPECT_EQ(assay({"run", "--fixtures"}).code, 2);
  EXPECT_EQ(assay({"run", "--cases", ""}).code, 2);
  EXPECT_EQ(assay({"run", "--cases"}).code, 2);
}

}  // namespace
}  // namespace assay::conformance
