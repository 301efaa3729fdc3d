// Failures saved by --save-got, and what reads them, on a machine that has only the file.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/suites/failure_bundle.h"
#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

using Words = std::vector<std::string>;

const char* const kBundledLine = "quantize recipe=block_1x128 splits=8,0,20 K=272 seed=5";

Words faulty(Words words, const std::string& options) {
  words.insert(words.end(), {"--backend", ASSAY_FAULTY_BACKEND, "--backend-options", options});
  return words;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& each : std::filesystem::directory_iterator(folder)) files.push_back(each.path());
  return files;
}

class Bundles : public testing::Test {
 protected:
  golden::TemporaryFolder folder_;
  std::string got() const { return (folder_.path() / "deep" / "got").string(); }
  std::string saved(const std::string& options = "turned=rowwise_scale_inv") {
    ran_ = assay(faulty({"repro", kBundledLine, "--save-got", got()}, options));
    const auto files = files_in(got());
    return files.size() == 1 ? files[0].string() : "";
  }
  Ran ran_;
};

TEST_F(Bundles, HoldTheCallAsItWasMade) {
  const std::string file = saved();
  ASSERT_FALSE(file.empty()) << ran_.out;
  EXPECT_EQ(ran_.code, 1);
  EXPECT_TRUE(contains(ran_.out, "note: 1 failure is saved as " + file)) << ran_.out;
  const FailureBundle bundle = read_bundle(file);
  EXPECT_EQ(bundle.line, kBundledLine);
  EXPECT_TRUE(contains(bundle.text, "rowwise_scale_inv f32 [84]: 64 of 84 differ")) << bundle.text;
  const KeptCall& kept = bundle.kept;
  EXPECT_EQ(kept.call.op, "quantize");
  EXPECT_EQ(kept.call.in.count("x"), 1u);
  EXPECT_EQ(kept.call.out.size(), 4u) << "all outputs, not the wrong one alone";
  const auto* scales = kept.call.out.at("rowwise_scale_inv").as<std::uint32_t>();
  EXPECT_EQ(scales[0], 0x3B112492u) << "as the failure prints it";
  EXPECT_TRUE(kept.poison == 0xFF || kept.poison == 0xA5);
  const nlohmann::json environment = nlohmann::json::parse(bundle.environment);
  EXPECT_EQ(environment.at("backend").at("options"), "turned=rowwise_scale_inv");
  EXPECT_EQ(environment.at("verb"), "repro");
}

TEST_F(Bundles, OfARunAreOneFileAFailingCase) {
  const Ran ran = assay(faulty({"run", "--profile", "smoke", "splits_to_offsets", "--quiet", "--save-got", got()}, "wrong"));
  EXPECT_EQ(ran.code, 1);
  const auto files = files_in(got());
  ASSERT_GE(files.size(), 2u) << ran.out;
  EXPECT_TRUE(contains(ran.out, fmt::format("note: {} failures are saved in {}", files.size(), got()))) << ran.out;
  for (const auto& file : files) EXPECT_TRUE(contains(read_bundle(file).line, "splits_to_offsets"));
}

TEST_F(Bundles, AreNotMadeOfCasesThatPass) {
  EXPECT_EQ(assay({"repro", kBundledLine, "--save-got", got()}).code, 0);
  EXPECT_TRUE(files_in(got()).empty());
}

TEST_F(Bundles, AreNoFixtures) {
  const std::string file = saved();
  ASSERT_FALSE(file.empty());
  const Ran ran = assay({"verify", file, "--quiet"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(contains(ran.out, "holds what a failed call gave, not what is expected")) << ran.out;
}

TEST_F(Bundles, NeedAFolderThatCanBeWritten) {
  const std::string file = (folder_.path() / "file").string();
  std::ofstream(file) << "x";
  const Ran ran = assay({"repro", kBundledLine, "--save-got", file});
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_TRUE(contains(ran.err, file)) << ran.err;
}

TEST_F(Bundles, AreTraced) {
  const std::string file = saved();
  ASSERT_FALSE(file.empty());
  const std::string json = (folder_.path() / "trace.json").string();
  const Ran ran = assay({"trace", "--got", file, "--output", "rowwise_scale_inv", "--element", "0,0,0", "--json", json});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "0x3B109249 (0.002205985)  0x3B112492 (0.0022147042)  differs")) << ran.out;
  const nlohmann::json written = nlohmann::json::parse(std::ifstream(json));
  EXPECT_EQ(written.at("lines").back().at("got"), "0x3B112492 (0.0022147042)");
  EXPECT_EQ(written.at("line"), kBundledLine);
}

TEST_F(Bundles, AreRefusedWhereTheyAreNone) {
  const std::string file = (folder_.path() / "file").string();
  std::ofstream(file) << "x";
  EXPECT_EQ(assay({"trace", "--got", file, "--element", "0,0,0"}).code, 3);
  const Ran other = assay({"trace", "--got", std::string(ASSAY_GOLDEN_FOLDER) + "/offsets.h5", "--element", "0,0,0"});
  EXPECT_EQ(other.code, 3);
  EXPECT_TRUE(contains(other.err, "is no failure bundle")) << other.err;
  const std::string bundle = saved();
  const Ran line = assay({"trace", "splits_to_offsets splits=1", "--got", bundle, "--element", "0,0,0"});
  EXPECT_EQ(line.code, 2);
  EXPECT_TRUE(contains(line.err, kBundledLine)) << line.err;
}

TEST_F(Bundles, AreExplained) {
  const std::string file = saved();
  ASSERT_FALSE(file.empty());
  const std::string json = (folder_.path() / "causes.json").string();
  const Ran ran = assay({"explain", file, "--quiet", "--json", json});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "rowwise_scale_inv having rows exchanged in blocks of 1: every word, 64 wrong and 15796 right"))
      << ran.out;
  const nlohmann::json written = nlohmann::json::parse(std::ifstream(json));
  EXPECT_EQ(written.at("wrong"), 64);
  EXPECT_EQ(written.at("causes").at(0).at("every_word"), true);
  EXPECT_EQ(written.at("causes").at(0).at("explained"), 64);
}

TEST(ExplainVerb, AsksTheBackendForALine) {
  const Ran wrong = assay(faulty({"explain", kBundledLine, "--quiet"}, "left=rowwise_data"));
  EXPECT_EQ(wrong.code, 0) << wrong.out << wrong.err;
  EXPECT_TRUE(contains(wrong.out, "cause    with rowwise_data not written: every word")) << wrong.out;
  const Ran right = assay({"explain", kBundledLine, "--quiet"});
  EXPECT_EQ(right.code, 4);
  EXPECT_TRUE(contains(right.out, "passed: nothing to explain")) << right.out;
}

TEST(ExplainVerb, NamesNoCauseOfWordsThatNoneGives) {
  // The first byte of each call is changed to a value that nothing gives.
  const Ran ran =
      assay(faulty({"explain", "grouped_gemm kind=bf16 d_type=f32 splits=5,0,17 N=24 K=40 seed=3", "--quiet"}, "wrong"));
  EXPECT_FALSE(contains(ran.out, "cause ") && !contains(ran.out, "chance could do it")) << ran.out;
}

TEST(ShrinkVerb, PrintsTheSmallestLineThatFailsAlike) {
  const Ran ran = assay(faulty({"shrink", kBundledLine}, "turned=rowwise_scale_inv"));
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_EQ(ran.out, "quantize recipe=block_1x128 splits=1 K=1\n");
  EXPECT_TRUE(contains(ran.err, "fails by bits of rowwise_scale_inv")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "splits=8 K=272")) << "the steps:\n" << ran.err;
  const Ran again = assay(faulty({"shrink", "quantize recipe=block_1x128 splits=1 K=1"}, "turned=rowwise_scale_inv"));
  EXPECT_EQ(again.code, 1) << "the line fails itself";
  EXPECT_EQ(again.out, ran.out);
}

TEST(ShrinkVerb, LeavesALineThatPasses) {
  const Ran ran = assay({"shrink", kBundledLine});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(contains(ran.err, "passed: only a line that fails can be made smaller")) << ran.err;
}

TEST(TraceVerb, NamesWhatIsWrongWithAnElement) {
  const std::string line = "quantize recipe=mxfp8 splits=32,64 K=64";
  for (const auto& [element, message] : {std::pair{"1,2", "GROUP,ROW,COLUMN"},
                                         {"1,2,x", "GROUP,ROW,COLUMN"},
                                         {"2,0,0", "element group is 2: expected 0 to 1"},
                                         {"0,32,0", "element row is 32: expected 0 to 31"}}) {
    const Ran ran = assay({"trace", line, "--element", element});
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(contains(ran.err, message)) << ran.err;
  }
  EXPECT_EQ(assay({"trace", "scenario recipe=none steps=forward splits=3 N=8 K=8", "--element", "0,0,0"}).code, 2);
}

}  // namespace
}  // namespace assay::conformance
