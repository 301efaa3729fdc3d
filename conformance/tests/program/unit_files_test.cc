// Files of further tensor-core units: read before the verb does anything, also by workers, and named in the commands and files
// that reproduce a verdict (reference/spec/tensor-core.md, clause 2.2).

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

constexpr const char* kNextRow =
    "name=next.mma.f16 instruction=\"next mma\" operands=bf16,f16 products=16 fraction_bits=25 evidence=\"a data sheet\"\n";
// It keeps fewer bits than the backend's sums have.
constexpr const char* kNarrowRow =
    "name=next.mma.f16 instruction=\"next mma\" operands=bf16,f16 products=8 fraction_bits=24 evidence=\"a data sheet\"\n";

struct UnitFile {
  golden::TemporaryFolder folder;
  std::string path = (folder / "next.txt").string();
  explicit UnitFile(const std::string& text) { std::ofstream(path) << text; }
};

constexpr const char* kProbedProduct = "grouped_gemm kind=bf16 d_type=f32 splits=72,0,72 N=16 K=8 data=unit_probes";

Words stating_next(const std::string& verb, const Words& more) {
  Words words{verb, kProbedProduct, "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "unit=next.mma.f16"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(UnitFiles, AreListedAfterTheBuiltInRows) {
  const UnitFile file(kNextRow);
  const Ran ran = assay({"list", "--units", file.path});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(contains(ran.out, "\nnext.mma.f16\n  next mma\n  L=16 F=25")) << ran.out;
  EXPECT_TRUE(ran.out.ends_with("a data sheet\n")) << ran.out;
  EXPECT_FALSE(contains(assay({"list", "--units"}).out, "next.mma.f16"));
  const Ran by_environment = assay({"list", "--units"}, {.environment = {{"ASSAY_UNITS", file.path}}});
  EXPECT_EQ(by_environment.out, ran.out);
}

TEST(UnitFiles, LetABackendStateTheirUnits) {
  const UnitFile file(kNextRow);
  const Ran without = assay(stating_next("repro", {}));
  EXPECT_EQ(without.code, 1);
  EXPECT_TRUE(contains(without.out, "states the unit 'next.mma.f16', which is not a row")) << without.out;
  const Ran with = assay(stating_next("repro", {"--units", file.path}));
  EXPECT_EQ(with.code, 0) << with.out << with.err;
  EXPECT_TRUE(contains(with.out, "passed by bits")) << with.out;
}

TEST(UnitFiles, AreInTheCommandAndTheReportOfAFailure) {
  const UnitFile file(kNarrowRow);
  const std::string report = (file.folder / "report.json").string();
  const Ran ran = assay(stating_next("repro", {"--units", file.path, "--json", report}));
  EXPECT_EQ(ran.code, 1) << "an arithmetic that keeps more bits passed for the stated one: " << ran.out;
  EXPECT_TRUE(contains(ran.out, " --units " + file.path)) << ran.out;
  std::ifstream stream(report);
  const json read = json::parse(stream);
  expect_valid(read, "report");
  ASSERT_EQ(read.at("backend").at("units").size(), 1u);
  EXPECT_EQ(read.at("backend").at("units")[0].at("path"), file.path);
}

TEST(UnitFiles, ThatAreFaultyAreWrongUsage) {
  const UnitFile other("name=sm90.wgmma.fp8 instruction=i operands=e4m3 products=32 fraction_bits=14 evidence=e\n");
  const UnitFile faulty("# one\nname=next.mma instruction=i operands=f16 products=0 fraction_bits=25 evidence=e\n");
  const struct {
    std::string path, text;
  } rows[] = {
      {other.path, other.path + ": name is sm90.wgmma.fp8: expected a new name, or the row that has it: name=sm90.wgmma.fp8"},
      {faulty.path, faulty.path + ":2: products is 0: expected a whole number from 1 to 64"},
      {"/nowhere/units.txt", "a file of units is /nowhere/units.txt: expected a regular file that can be read"},
      {"/dev/null", "a file of units is /dev/null: expected a regular file that can be read"},
      {"a:b", "a file of units is a:b: expected a path without a colon"},
  };
  for (const auto& row : rows) {
    for (const Words& words :
         {Words{"run", "--backend", "reference", "--units", row.path}, Words{"list", "--units", row.path},
          Words{"compute", "in.h5", "-o", "out.h5", "--units", row.path}, Words{"verify", "in.h5", "--units", row.path},
          Words{"scale-map", kProbedProduct, "--units", row.path}, stating_next("repro", {"--units", row.path})}) {
      const Ran ran = assay(words);
      EXPECT_EQ(ran.code, 2) << words[0];
      EXPECT_TRUE(contains(ran.err, "assay: " + row.text)) << words[0] << ": " << ran.err;
    }
  }
}

}  // namespace
}  // namespace assay::conformance
