// Conformance levels: the cases that they require exist, together they require every case, and --require, --baseline and the
// verdict line state what a pass claims.

#include <sys/stat.h>

#include <regex>

#include "conformance/levels/levels.h"

#include "conformance/catalogue/catalogue.h"
#include "conformance/report/claims.h"
#include "conformance/tests/program/evidence.h"
#include "golden/io/fixture_error.h"

namespace assay::conformance {
namespace {

// Texts and names of the standard profile.
struct Catalogue {
  std::vector<std::string> texts, names;
  Catalogue() {
    for (const CaseLine& each : catalogue(Profile::standard)) {
      texts.push_back(to_text(each));
      names.push_back(name_of(each));
    }
  }
};
const Catalogue& standard() {
  static const Catalogue made;
  return made;
}

TEST(Levels, EveryLineRequiresSomething) {
  ASSERT_GE(levels().size(), 8u);
  std::set<std::string> names;
  for (const Level& level : levels()) {
    EXPECT_TRUE(names.insert(level.name).second) << level.name;
    EXPECT_GE(level.version, 1) << level.name;
    EXPECT_GE(level.claims.size(), 20u) << level.name;
    for (const std::vector<std::string>& words : level.selections) {
      const Level line{level.name, 1, "", {words}, {}};
      EXPECT_FALSE(required_by(line, standard().texts, standard().names).empty()) << level.name << ": " << words[0];
    }
  }
  EXPECT_EQ(levels().back().name, "all");
}

TEST(Levels, TogetherRequireEverything) {
  std::set<std::size_t> required;
  for (const Level& level : levels()) {
    const std::vector<std::size_t> places = required_by(level, standard().texts, standard().names);
    if (level.name == "all") {
      EXPECT_EQ(places.size(), standard().texts.size());
    } else {
      required.insert(places.begin(), places.end());
    }
  }
  for (std::size_t i = 0; i < standard().texts.size(); ++i)
    EXPECT_TRUE(required.count(i)) << "no level but `all` requires " << standard().texts[i];
}

// A recipe's level requires every case of that recipe and no case of another.
TEST(Levels, OfARecipeRequireThatRecipe) {
  for (const auto& [name, word] : {std::pair("mx", "mxfp8"), std::pair("nvfp4", "nvfp4")}) {
    std::set<std::string> required;
    for (const std::size_t place : required_by(*find_level(name), standard().texts, standard().names))
      required.insert(standard().texts[place]);
    for (const std::string& text : standard().texts) {
      // Presets are named after recipes; other layouts of groups, named plans, FP4 weights beside FP8, D in FP8 and random bytes that
      // are drawn are another level's.
      const bool other_product = contains(text, " grouped_layout=") || contains(text, " plan=") || contains(text, " w_type=e2m1") ||
                                 contains(text, " d_type=e4m3") || contains(text, " d_type=e5m2");
      const bool of_other = text.starts_with("quantize_by_rule") || contains(text, " draws=te_") ||
                            (text.starts_with("grouped_gemm") && other_product);
      const bool of_recipe = contains(text, std::string("=") + word) && !of_other,
                 offsets = text.starts_with("splits_to_offsets");
      EXPECT_EQ(required.count(text) == 1, of_recipe || offsets) << name << ": " << text;
    }
  }
}

TEST(Levels, TextsThatAreNone) {
  EXPECT_THROW(parse_level("", "file"), golden::FixtureError);
  EXPECT_THROW(parse_level("# only why\nlevel core 1\nclaims all\n", "file"), golden::FixtureError);
  EXPECT_THROW(parse_level("level core\nquantize\n", "file"), golden::FixtureError);
  EXPECT_THROW(parse_level("level core x\nquantize\n", "file"), golden::FixtureError);
  EXPECT_THROW(parse_level("fixture\n", "file"), golden::FixtureError);
  const Level level = parse_level("# why\nlevel mine 3\nclaims this and that\n\nquantize  recipe=mxfp8\nfixture *\n", "file");
  EXPECT_EQ(level.title(), "mine 3");
  EXPECT_EQ(level.claims, "this and that");
  EXPECT_EQ(level.selections, (std::vector<std::vector<std::string>>{{"quantize", "recipe=mxfp8"}}));
  EXPECT_EQ(level.fixtures, std::vector<std::string>{"*"});
}

TEST(Levels, AreListedWithTheirCases) {
  // Before its lines are wrapped: a title begins a line, a second column continues it.
  const std::string text = std::regex_replace(assay({"list", "--levels"}).out, std::regex("\n  (?!cases: )"), " ");
  for (const Level& level : levels()) {
    const std::size_t at = text.find(level.title() + " " + level.claims + "\n  cases: smoke ");
    ASSERT_NE(at, std::string::npos) << level.name;
    const std::string counts = text.substr(at, text.find("full ", at) - at);
    EXPECT_TRUE(
        contains(counts, "standard " + std::to_string(required_by(level, standard().texts, standard().names).size()) + ","))
        << counts;
  }
}

// In this backend swizzles are absent, and everything else is right.
Words partly_absent(Words more) { return faulty_run("absent=swizzle", more); }

TEST(Verdict, SaysHowMuchIsAbsentAndWhichLevelsPassed) {
  const EmptyGolden golden;
  const Ran ran = assay(partly_absent({}), golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out;
  const std::vector<CaseLine> all = catalogue(Profile::smoke);
  const auto absent = std::count_if(all.begin(), all.end(), [](const CaseLine& each) { return each.op == "swizzle"; });
  EXPECT_GE(absent, 2);
  EXPECT_TRUE(contains(ran.out, "\nPASS (partial: " + std::to_string(absent) + " of " + std::to_string(all.size()) +
                                    " cases absent) run --profile smoke: backend faulty of "))
      << ran.out;
  EXPECT_TRUE(contains(ran.out, "levels passed, profile smoke: core 1, ")) << ran.out;
  const std::string open = ran.out.substr(ran.out.find("levels not claimed: "));
  EXPECT_TRUE(contains(open.substr(0, open.find('\n')), "mx 1 (")) << open;
  EXPECT_TRUE(contains(open.substr(0, open.find('\n')), " absent of ")) << open;
  EXPECT_FALSE(contains(open.substr(0, open.find('\n')), "core 1")) << open;
  const std::string verdict = ran.out.substr(ran.out.find("\nPASS") + 1);
  EXPECT_TRUE(contains(verdict, " by bits") && contains(verdict, "; levels passed: core 1, ")) << verdict;
}

TEST(Verdict, OfAWholePassIsPlain) {
  const EmptyGolden golden;
  const Ran ran = assay({"run", "--profile", "smoke", "--backend", "reference"}, golden.options);
  EXPECT_TRUE(contains(ran.out, "\nPASS run --profile smoke: backend reference on ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "levels not claimed: all 1 (1 not selected of ")) << "the fixtures are not there: " << ran.out;
}

TEST(Require, TurnsAnAbsenceIntoAFailureThatNamesIt) {
  const EmptyGolden golden;
  Ran ran = assay(partly_absent({"--require", "core"}), golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(contains(ran.out, "required: core 1: all ")) << ran.out;
  ran = assay(partly_absent({"--require", "core", "--require", "mx"}), golden.options);
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_TRUE(contains(ran.out, "required by mx 1: swizzle recipe=mxfp8")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "(not run: absent)")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "FAIL run") && contains(ran.out, "exit 1 (failed)")) << ran.out;
  ran = assay(partly_absent({"--require", "swizzle recipe=nvfp4"}), golden.options);
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_TRUE(contains(ran.out, "required by swizzle recipe=nvfp4: ")) << ran.out;
}

TEST(Require, WhatWordsLeaveOutIsNotThere) {
  const EmptyGolden golden;
  const Ran ran = assay(
      {"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", "--require", "grouped_dbias"}, golden.options);
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_TRUE(contains(ran.out, "(not selected)")) << ran.out;
}

TEST(Require, AFileAndFixtures) {
  const EmptyGolden golden;
  const std::string file = (golden.folder / "mine.txt").string();
  std::ofstream(file) << "# ours\nlevel ours 2\nclaims offsets\nsplits_to_offsets\nfixture offsets\n";
  Ran ran = assay({"run", "--profile", "smoke", "--backend", "reference", "--require", file}, golden.options);
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_TRUE(contains(ran.out, "required by ours 2: offsets (no such fixture file)")) << ran.out;
  std::filesystem::copy_file(std::filesystem::path(ASSAY_GOLDEN_FOLDER) / "offsets.h5", golden.folder / "offsets.h5");
  ran = assay({"run", "--profile", "smoke", "--backend", "reference", "--require", file}, golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(contains(ran.out, "required: ours 2: all ")) << ran.out;
}

TEST(Require, WhatNothingMatchesIsSaid) {
  const EmptyGolden golden;
  Ran ran = assay({"run", "--profile", "smoke", "--backend", "reference", "--require", "nosuchlevel"}, golden.options);
  EXPECT_EQ(ran.code, 4);
  EXPECT_TRUE(contains(ran.out, "required by 'nosuchlevel'")) << ran.out;
  ran = assay({"run", "--profile", "smoke", "--backend", "reference", "--require", "none.txt"}, golden.options);
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "none.txt: no such file")) << ran.err;
}

class Baseline : public testing::TestWithParam<const char*> {};

TEST_P(Baseline, LossesAreFailuresByName) {
  const EmptyGolden golden;
  const std::string file = (golden.folder / "earlier").string();
  ASSERT_EQ(assay(faulty_run("none", {GetParam(), file}), golden.options).code, 0);
  Ran ran = assay(faulty_run("none", {"--baseline", file}), golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(contains(ran.out, "baseline: " + file + " (run --profile smoke, backend faulty, ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, " kept, 0 lost, 0 gained, 0 no longer in the suite")) << ran.out;

  ran = assay(partly_absent({"--baseline", file}), golden.options);  // now absent: no failure of its own
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_TRUE(contains(ran.out, "lost against " + file + ": swizzle ") && contains(ran.out, "(not run: absent)")) << ran.out;

  ran = assay(faulty_run("none", {"grouped_gemm", "--baseline", file}), golden.options);  // not selected
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_TRUE(contains(ran.out, "(not selected)")) << ran.out;

  ran = assay({"run", "--profile", "standard", "--backend", "reference", "--baseline", file}, golden.options);  // another profile
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_TRUE(contains(ran.err, "is of 'run --profile smoke': this is 'run --profile standard'")) << ran.err;

  ran = assay({"run", "--profile", "smoke", "--backend", "reference", "--baseline", file},
              golden.options);  // another backend: the report says so
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(contains(ran.out, "backend faulty, ") && contains(ran.out, "backend reference on ")) << ran.out;
}
INSTANTIATE_TEST_SUITE_P(Forms, Baseline, testing::Values("--json", "--results"),
                         [](const auto& each) { return std::string(each.param).substr(2); });

TEST(BaselineFile, CasesThatTheSuiteNoLongerHasAreToldApart) {
  const EmptyGolden golden;
  const std::string file = (golden.folder / "earlier.json").string();
  ASSERT_EQ(assay({"run", "--profile", "smoke", "--backend", "reference", "--json", file}, golden.options).code, 0);
  json earlier = json::parse(text_of(file));
  json gone = earlier.at("cases")[0];
  gone["name"] = "an/old/case";
  gone["case"] = "splits_to_offsets splits=1,2,3,4,5,6,7,8,9,10,11";
  gone["suite"] = "generated";
  earlier["cases"].push_back(gone);
  std::ofstream(file) << earlier.dump();
  const Ran ran = assay({"run", "--profile", "smoke", "--backend", "reference", "--baseline", file}, golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(contains(ran.out, " 0 lost, 0 gained, 1 no longer in the suite")) << ran.out;
}

TEST(BaselineFile, ThatIsNone) {
  const EmptyGolden golden;
  std::ofstream(golden.folder / "other.json") << "{\"a\": 1}";
  for (const auto& [name, why] :
       {std::pair("none.json", "no such file"), std::pair("other.json", "neither a report of --json nor a file of --results")}) {
    const Ran ran = assay({"run", "--profile", "smoke", "--backend", "reference", "--baseline", (golden.folder / name).string()},
                          golden.options);
    EXPECT_EQ(ran.code, 2) << ran.out;
    EXPECT_TRUE(contains(ran.err, why)) << ran.err;
  }
}

// Files that would block, never end, or have no case.
TEST(BaselineFile, ThatCannotBeOne) {
  const EmptyGolden golden;
  const std::string earlier = (golden.folder / "earlier").string();
  ASSERT_EQ(
      assay({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", "--results", earlier}, golden.options)
          .code,
      0);
  std::string text = text_of(earlier);
  const std::size_t place = text.find("\"verdict\":\"passed\"");
  ASSERT_NE(place, text.npos);
  std::ofstream(golden.folder / "word") << std::string(text).replace(place, 17, "\"verdict\":\"PASSED");
  std::ofstream(golden.folder / "number") << std::string(text).replace(place, 18, "\"verdict\":7");
  ASSERT_EQ(mkfifo((golden.folder / "pipe").c_str(), 0600), 0);
  for (const char* option : {"--baseline", "--resume"}) {
    for (const auto& [file, why] : {std::pair((golden.folder / "word").string(), "'PASSED' is not a verdict"),
                                    std::pair((golden.folder / "number").string(), "must be string"),
                                    std::pair((golden.folder / "pipe").string(), "is not a regular file"),
                                    std::pair(std::string("/dev/zero"), "is not a regular file"),
                                    std::pair(golden.folder.path().string(), "is a directory")}) {
      const Ran ran =
          assay({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", option, file}, golden.options);
      EXPECT_EQ(ran.code, 2) << option << file << ran.out;
      EXPECT_TRUE(contains(ran.err, why)) << option << file << ran.err;
    }
  }
  for (const char* file : {"/dev/zero", "/dev"}) {
    const Ran ran = assay({"run", "--profile", "smoke", "--backend", "reference", "--require", file}, golden.options);
    EXPECT_EQ(ran.code, 2) << file << ran.out;
  }
}

}  // namespace
}  // namespace assay::conformance
