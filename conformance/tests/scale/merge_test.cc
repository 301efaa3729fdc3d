// assay merge: shards together are one run, and what is missing, twice or of another run is named.

#include <algorithm>
#include <functional>

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

// Shards of the smoke profile's offsets, made once.
struct Shards {
  EmptyGolden golden;
  Words files;
  std::string whole = path("whole.jsonl");

  explicit Shards(const char* fault = "none") {
    EXPECT_GE(run({"--results", whole}, fault).code, 0);
    for (int i = 0; i < 3; ++i) {
      files.push_back(path("part" + std::to_string(i) + ".jsonl"));
      EXPECT_GE(run({"--shard", std::to_string(i) + "/3", "--results", files.back()}, fault).code, 0);
    }
  }
  std::string path(const std::string& name) const { return (golden.folder / name).string(); }
  Ran run(Words more, const char* fault = "none") const {
    more.insert(more.begin(), "splits_to_offsets");
    return assay(faulty_run(fault, more), golden.options);
  }
  Ran merge(Words words) const {
    words.insert(words.begin(), "merge");
    return assay(words, golden.options);
  }
};

const Shards& sound_shards() {
  static const Shards shards;
  return shards;
}

json summary_of(const std::string& path) { return results_of(path).back(); }

// The records of cases without times, sorted.
std::vector<std::string> verdicts_of(const std::string& path) {
  std::vector<std::string> all;
  for (json each : results_of(path)) {
    if (each.at("record") != "case") continue;
    each.erase("seconds");
    each.erase("chain");
    all.push_back(each.dump());
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Writes the records of a file again, each changed or left out.
void rewrite(const std::string& from, const std::string& to, const std::function<bool(json&)>& keep) {
  std::ofstream file(to);
  for (json each : results_of(from)) {
    if (keep(each)) file << each.dump() << "\n";
  }
}

TEST(Merge, ShardsAreOneRun) {
  const Shards& shards = sound_shards();
  const std::string merged = shards.path("merged.jsonl"), report = shards.path("merged.json");
  const Ran ran =
      shards.merge({shards.files[2], shards.files[0], shards.files[1], "-o", merged, "--json", report, "--show", "0"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_EQ(verdicts_of(merged), verdicts_of(shards.whole));
  json whole = summary_of(shards.whole), made = summary_of(merged);
  EXPECT_EQ(made.at("digest"), whole.at("digest"));
  EXPECT_TRUE(contains(ran.out, "merged: 3 files, " + std::to_string(verdicts_of(merged).size()) + " verdicts, digest " +
                                    whole.at("digest").get<std::string>()))
      << ran.out;
  for (const char* same : {"counts", "bases", "exit", "exits"}) EXPECT_EQ(made.at(same), whole.at(same)) << same;
  expect_valid(json::parse(text_of(report)), "report");
  const json header = results_of(merged).front(), one = results_of(shards.whole).front();
  for (const char* same : {"verb", "backend", "selection"}) EXPECT_EQ(header.at(same), one.at(same)) << same;
  EXPECT_EQ(header.at("merged").size(), 3u);

  // The order of the files changes nothing, and the report of --json is as good as lines.
  const std::string again = shards.path("again.jsonl");
  ASSERT_EQ(shards.merge({shards.files[0], shards.files[1], shards.files[2], "-o", again}).code, 0);
  EXPECT_EQ(text_of(again), text_of(merged));
  EXPECT_EQ(shards.merge({merged}).code, 0);
  EXPECT_EQ(shards.merge({report}).code, 0);
}

// The digest by another route: the text as the schema describes it, through the system's sha256sum.
TEST(Merge, DigestIsOfTheVerdictsAlone) {
  const Shards& shards = sound_shards();
  std::vector<std::string> lines;
  for (const json& each : results_of(shards.whole)) {
    if (each.at("record") != "case") continue;
    std::string line;
    for (const char* name :
         {"suite", "case", "setting", "verdict", "ground", "elements", "bounded", "unbounded", "plan", "unit", "expected_by"}) {
      const bool number = std::string(name) == "elements" || std::string(name).ends_with("bounded");
      line += (line.empty() ? "" : "\t") + (!each.contains(name) ? std::string(number ? "0" : "")
                                            : number             ? each.at(name).dump()
                                                                 : each.at(name).get<std::string>());
    }
    lines.push_back(line + "\n");
  }
  ASSERT_GE(lines.size(), 5u);
  std::sort(lines.begin(), lines.end());
  const std::string text = shards.path("lines.txt");
  std::ofstream file(text);
  for (const std::string& line : lines) file << line;
  file.close();
  const Ran sum = run_program({"sha256sum", text});
  EXPECT_EQ(summary_of(shards.whole).at("digest"), sum.out.substr(0, 64)) << sum.err;
}

TEST(Merge, NamesAMissingShardAndItsCases) {
  const Shards& shards = sound_shards();
  const std::string merged = shards.path("incomplete.jsonl");
  const Ran ran = shards.merge({shards.files[0], shards.files[2], "-o", merged, "--show", "1000"});
  EXPECT_EQ(ran.code, 5) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "a shard of the run is missing: 1/3")) << ran.out;
  int named = 0;
  for (const json& each : results_of(shards.files[1])) {
    if (each.at("record") != "case") continue;
    ++named;
    EXPECT_TRUE(contains(ran.out, "missing: " + each.at("case").get<std::string>() + "\n")) << ran.out;
  }
  EXPECT_GE(named, 2);
  EXPECT_TRUE(contains(ran.out, std::to_string(named) + " selected cases have no verdict")) << ran.out;
  EXPECT_EQ(summary_of(merged).at("exit"), 5) << "the file says it too";
}

TEST(Merge, NamesTheCasesOfARunThatDidNotEnd) {
  const Shards& shards = sound_shards();
  const std::string cut = shards.path("cut.jsonl");
  std::string lost;
  rewrite(shards.files[1], cut, [&](json& each) {
    if (each.at("record") == "case" && lost.empty()) {
      lost = each.at("case");
      return false;
    }
    return each.at("record") != "summary";
  });
  const Ran ran = shards.merge({shards.files[0], cut, shards.files[2]});
  EXPECT_EQ(ran.code, 5) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "missing: " + lost + "\n") && contains(ran.out, "1 selected case has no verdict")) << ran.out;
  EXPECT_TRUE(contains(ran.out, cut + " (shard 1/3) has no summary")) << ran.out;
}

TEST(Merge, CountsCasesInTwoFilesOnceAndSaysSo) {
  const Shards& shards = sound_shards();
  const std::string copy = shards.path("copy.jsonl");
  rewrite(shards.files[1], copy, [&](json& each) {
    if (each.contains("seconds")) each["seconds"] = 1.5;
    return true;
  });
  const std::string merged = shards.path("twice.jsonl");
  const Ran ran =
      shards.merge({shards.files[0], shards.files[1], copy, shards.files[2], shards.files[2], "-o", merged, "--show", "1"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "twice: splits_to_offsets") && contains(ran.out, "twice: and ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "1 file has the bytes of another one, and counts once")) << ran.out;
  EXPECT_EQ(summary_of(merged).at("digest"), summary_of(shards.whole).at("digest"));
}

TEST(Merge, RefusesVerdictsThatContradictEachOther) {
  const Shards& shards = sound_shards();
  const std::string other = shards.path("other.jsonl"), merged = shards.path("contradicts.jsonl");
  std::string line;
  rewrite(shards.files[1], other, [&](json& each) {
    if (each.at("record") != "case" || !line.empty()) return true;
    line = each.at("case");
    each["verdict"] = "failed";
    each["findings"] = {{{"kind", "other"}, {"text", "planted"}}};
    return true;
  });
  const Ran ran = shards.merge({shards.files[0], shards.files[1], other, shards.files[2], "-o", merged});
  EXPECT_EQ(ran.code, 3) << ran.out;
  EXPECT_TRUE(contains(ran.err, "contradicts another file: " + line + ": ") && contains(ran.err, "failed by bits in other.jsonl"))
      << ran.err;
  EXPECT_FALSE(std::filesystem::exists(merged));
}

// A machine that failed says nothing about the case, and another one's verdict counts.
TEST(Merge, TakesTheVerdictOfTheMachineThatJudged) {
  const Shards& shards = sound_shards();
  for (const char* word : {"machine failed", "not tried", "unfinished"}) {
    const std::string broken = shards.path("broken.jsonl"), merged = shards.path("mended.jsonl");
    rewrite(shards.files[1], broken, [&](json& each) {
      if (each.at("record") != "case") return true;
      each["verdict"] = word;
      each["elements"] = each["words"] = 0;
      each.erase("ground");
      each["text"] = "planted";
      return true;
    });
    EXPECT_NE(shards.merge({shards.files[0], broken, shards.files[2]}).code, 0) << word;
    const Ran ran = shards.merge({broken, shards.files[0], shards.files[1], shards.files[2], "-o", merged});
    EXPECT_EQ(ran.code, 0) << word << ran.out << ran.err;
    EXPECT_EQ(summary_of(merged).at("digest"), summary_of(shards.whole).at("digest")) << word;
  }
}

struct Mixed {
  const char* name;
  const char* place;  // in the header
  json value;
};
void PrintTo(const Mixed& mixed, std::ostream* out) { *out << mixed.name; }

class MergeRefuses : public testing::TestWithParam<Mixed> {};

TEST_P(MergeRefuses, FilesOfDifferentRuns) {
  const Shards& shards = sound_shards();
  const std::string other = shards.path(std::string(GetParam().name) + ".jsonl"), merged = shards.path("mixed.jsonl");
  rewrite(shards.files[1], other, [&](json& each) {
    if (each.at("record") == "header") each[json::json_pointer(GetParam().place)] = GetParam().value;
    return true;
  });
  const Ran ran = shards.merge({shards.files[0], other, shards.files[2], "-o", merged});
  EXPECT_EQ(ran.code, 3) << ran.out << ran.err;
  const std::string field = std::string(GetParam().place + 1);
  EXPECT_TRUE(contains(ran.err, "is of another run than part0.jsonl: ")) << ran.err;
  EXPECT_TRUE(contains(ran.err, field.substr(0, field.find("/whole")))) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(merged));
}
INSTANTIATE_TEST_SUITE_P(Headers, MergeRefuses,
                         testing::Values(Mixed{"device", "/backend/device", "another one"},
                                         Mixed{"architecture", "/backend/architecture", "sm103"},
                                         Mixed{"library", "/backend/library/sha256", std::string(64, '0')},
                                         Mixed{"options", "/backend/options", "wrong"}, Mixed{"commit", "/commit", "another"},
                                         Mixed{"suite", "/selection/whole/sha256", std::string(64, '1')},
                                         Mixed{"words", "/selection/words", {"swizzle"}},
                                         Mixed{"settings", "/selection/settings", "all"}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Merge, RefusesWhatIsNoPartOfARun) {
  const Shards& shards = sound_shards();
  const std::string verified = shards.path("repro.json");
  ASSERT_EQ(assay({"repro", "splits_to_offsets splits=1,2", "--json", verified}).code, 0);
  Ran ran = shards.merge({verified});
  EXPECT_EQ(ran.code, 3) << ran.out;
  EXPECT_TRUE(contains(ran.err, "expected a file of assay run")) << ran.err;
  ran = shards.merge({shards.path("none.jsonl")});
  EXPECT_EQ(ran.code, 3) << ran.out;
  EXPECT_TRUE(contains(ran.err, "none.jsonl")) << ran.err;
  // A shard of an earlier version does not say what the other shards are.
  const std::string former = shards.path("former.jsonl");
  rewrite(shards.files[1], former, [](json& each) {
    if (each.at("record") == "header") each["selection"].erase("whole");
    return true;
  });
  ran = shards.merge({shards.files[0], former});
  EXPECT_EQ(ran.code, 3) << ran.out;
  EXPECT_TRUE(contains(ran.err, "the header of shard 1/3 has no digest of the whole selection")) << ran.err;
}

TEST(Merge, FailsWhereAShardFailedAndWhereARequiredCaseDid) {
  const Shards shards("wrong");
  const Ran ran = shards.merge({shards.files[0], shards.files[1], shards.files[2], "--show", "1"});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "FAILED  splits_to_offsets") && contains(ran.out, "repro")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "exit 1 (failed)")) << ran.out;

  const Shards& sound = sound_shards();
  EXPECT_EQ(sound.merge({sound.files[0], sound.files[1], sound.files[2], "--require", "splits_to_offsets_2d"}).code, 0);
  const Ran required = sound.merge({sound.files[0], sound.files[1], sound.files[2], "--require", "swizzle"});
  EXPECT_EQ(required.code, 1) << "they were not selected: " << required.out;
  const Ran lost = shards.merge({shards.files[0], shards.files[1], shards.files[2], "--baseline", sound.whole});
  EXPECT_TRUE(contains(lost.out, "lost against")) << lost.out << lost.err;
}

}  // namespace
}  // namespace assay::conformance
