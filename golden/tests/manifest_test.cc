#include "golden/io/manifest.h"

#include <gtest/gtest.h>

#include "golden/io/reader.h"
#include "golden/io/writer.h"
#include "golden/tests/sample_fixture.h"
#include "golden/tests/temporary_folder.h"
#include "reference/rules/scale_rule.h"

namespace assay::golden {
namespace {

const std::filesystem::path kGolden = ASSAY_GOLDEN_DIR;

TEST(GoldenFolder, HoldsWhatItsManifestSays) { EXPECT_EQ(check_manifest(kGolden), std::vector<std::string>()); }

TEST(GoldenFolder, IsDescribedRightByItsManifest) {
  for (const ManifestEntry& entry : read_manifest(kGolden / "manifest.json")) {
    const ManifestEntry found = describe(kGolden / entry.file, entry.origin);
    EXPECT_EQ(entry.bytes, found.bytes) << entry.file;
    EXPECT_EQ(entry.sha256, found.sha256) << entry.file;
    EXPECT_EQ(entry.contents, found.contents) << entry.file;
    EXPECT_EQ(entry.cases, found.cases) << entry.file;
  }
}

// Properties of the two files, as h5py reads them.
TEST(GoldenFolder, HasTheRecordedCases) {
  const Fixture gemm = read_fixture(kGolden / "cublaslt_grouped_gemm.h5");
  ASSERT_EQ(gemm.cases.size(), 15u);
  const Case& first = gemm.cases[0];
  EXPECT_EQ(first.name, "b_nn");
  EXPECT_EQ(first.op, "grouped_gemm");
  EXPECT_EQ(first.attributes.at("K"), Attribute(std::int64_t{384}));
  EXPECT_EQ(first.attributes.at("alpha"), Attribute(1.0));
  EXPECT_EQ(first.attributes.at("layout"), Attribute(std::string("NN")));
  EXPECT_EQ(first.in.at("dy_rowwise_data").type, Format::e5m2);
  const Tensor& splits = first.in.at("splits");
  EXPECT_EQ(std::vector<std::int64_t>(splits.as<std::int64_t>(), splits.as<std::int64_t>() + splits.elements()),
            (std::vector<std::int64_t>{128, 0, 256, 128}));
  EXPECT_EQ(first.out.at("d").shape, (std::vector<std::int64_t>{512, 384}));

  const Fixture quantize = read_fixture(kGolden / "transformer_engine_quantize.h5");
  EXPECT_EQ(quantize.cases.size(), 188u);
  std::size_t bytes = 0;
  for (const Case& each : quantize.cases) {
    for (const auto* side : {&each.in, &each.out}) {
      for (const auto& [name, tensor] : *side) bytes += tensor.bytes.size();
    }
  }
  EXPECT_EQ(bytes, 13'875'640u);
}

// A preset whose formula changes no longer gives what the file holds.
TEST(GoldenFolder, HasCasesOfEveryPresetOfScaleRules) {
  const Fixture file = read_fixture(kGolden / "presets.h5");
  std::map<std::string, int> grouped, single;
  for (const Case& each : file.cases) {
    ASSERT_EQ(each.op, "quantize_by_rule");
    ++(each.in.count("splits") != 0 ? grouped : single)[std::get<std::string>(each.attributes.at("preset"))];
  }
  EXPECT_GT(scale_rules().size(), 70u);
  for (const ScaleRule& rule : scale_rules()) {
    EXPECT_EQ(grouped[rule.name], 1) << rule.name;
    EXPECT_EQ(single[rule.name], 1) << rule.name;
  }
}

TEST(GoldenFolder, OutsideFilesKeepTheDigestsTheyCameWith) {
  std::map<std::string, std::string> digests;
  for (const ManifestEntry& entry : read_manifest(kGolden / "manifest.json")) {
    if (entry.origin == "outside") digests[entry.file] = entry.sha256;
  }
  EXPECT_EQ(digests["cublaslt_grouped_gemm.h5"], "35436e03e9cd2a38f1a6849e1af6192c051b0c4d66a07e0b028e05ec4c578529");
  EXPECT_EQ(digests["transformer_engine_quantize.h5"], "6209cd2a7c1ddfd4d5c47bb693a754e2abc94e40a3300924e2c049abb283989a");
  EXPECT_EQ(digests["nvfp4_4over6_2d_bf16_mae.h5"], "771ff32cccb232986e917ab7d91cba06dd25e3454c0b101f0ca3451f9d2460c2");
  EXPECT_EQ(digests["nvfp4_4over6_2d_bf16_mse.h5"], "89e0c12d8679905884866ad85c039f818838430b2889dd72733efa0f44d13edd");
  EXPECT_EQ(digests["nvfp4_4over6_2d_f32_mae.h5"], "f4487d158462a0adec32e1416c218701bcbb33460e7de9440052024c8350f94b");
  EXPECT_EQ(digests["nvfp4_4over6_2d_f32_mse.h5"], "66eff6b4ecba859b6598fab09dc06939a1879e1e8b3ccbaeff855634cac2b74b");
  EXPECT_EQ(digests["transformer_engine_ops.h5"], "0b775f97a6514daf0d6ef6f2ea15c74ccd2aa14cfcf43f5eeead57622ed9be38");
  EXPECT_EQ(digests["transformer_engine_stochastic.h5"], "e8fffdcd1287a2c3d2a4317cfd7ed3b5154c473633ad4bf9c9abf9438471f909");
  EXPECT_EQ(digests.size(), 8u);
}

class ManifestTest : public ::testing::Test {
 protected:
  ManifestTest() {
    write_fixture(folder_ / "a.h5", sample_fixture());
    write_fixture(folder_ / "b.h5", small_fixture());
    write_manifest(manifest_, {describe(folder_ / "b.h5", "reference"), describe(folder_ / "a.h5", "outside")});
  }
  const TemporaryFolder folder_;
  const std::filesystem::path manifest_ = folder_ / "manifest.json";
};

TEST_F(ManifestTest, ComesBackInTheOrderOfNames) {
  const Manifest manifest = read_manifest(manifest_);
  ASSERT_EQ(manifest.size(), 2u);
  EXPECT_EQ(manifest[0].file, "a.h5");
  EXPECT_EQ(manifest[0].origin, "outside");
  EXPECT_EQ(manifest[0].bytes, static_cast<std::int64_t>(std::filesystem::file_size(folder_ / "a.h5")));
  EXPECT_EQ(manifest[0].cases, (std::map<std::string, std::int64_t>{{"anything", 1}, {"quantize", 3}, {"splits_to_offsets", 1}}));
  EXPECT_EQ(manifest[0].provenance, R"({"producer":"a test","note":"größer, 大"})");
  EXPECT_EQ(manifest[1].contents, contents_digest(small_fixture()));
  const std::vector<std::byte> before = bytes_of_file(manifest_);
  write_manifest(manifest_, manifest);
  EXPECT_EQ(bytes_of_file(manifest_), before);
}

TEST_F(ManifestTest, SeesEveryDeviation) {
  EXPECT_EQ(check_manifest(folder_.path()), std::vector<std::string>());

  const std::string digest = read_manifest(manifest_)[0].sha256;
  std::vector<std::byte> bytes = bytes_of_file(folder_ / "a.h5");
  bytes.back() ^= std::byte{1};
  put_file(folder_ / "a.h5", bytes);
  std::vector<std::string> found = check_manifest(folder_.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rfind("a.h5: its sha256 is ", 0), 0u) << found[0];
  EXPECT_NE(found[0].find("expected " + digest), std::string::npos) << found[0];

  bytes.pop_back();
  put_file(folder_ / "a.h5", bytes);
  std::filesystem::remove(folder_ / "b.h5");
  write_fixture(folder_ / "new.h5", small_fixture());
  found = check_manifest(folder_.path());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], "a.h5: has " + std::to_string(bytes.size()) + " bytes: expected " + std::to_string(bytes.size() + 1));
  EXPECT_EQ(found[1], "b.h5: is listed in the manifest, but cannot be read: No such file or directory");
  EXPECT_EQ(found[2], "new.h5: is not listed in the manifest");
}

TEST(ContentsDigest, SeesEachDifference) {
  const std::string original = contents_digest(sample_fixture());
  EXPECT_EQ(original, contents_digest(sample_fixture()));
  const auto differs = [&](auto change) {
    Fixture changed = sample_fixture();
    change(changed);
    return contents_digest(changed) != original;
  };
  EXPECT_TRUE(differs([](Fixture& f) { f.provenance += " "; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases.pop_back(); }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].name += "x"; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].op = "x"; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].attributes["minus_zero"] = 0.0; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].attributes["integer"] = std::int64_t{5}; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].in["f32"].shape = {5, 3}; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].in["e4m3"].type = Format::e5m2; }));
  EXPECT_TRUE(differs([](Fixture& f) { f.cases[1].out["f32"].bytes.back() ^= std::byte{1}; }));
  EXPECT_TRUE(differs([](Fixture& f) { std::swap(f.cases[1].in, f.cases[1].out); }));
}

struct Malformed {
  const char* name;
  const char* text;
  const char* message;  // after the file's name
};
void PrintTo(const Malformed& each, std::ostream* to) { *to << each.name; }

#define DIGEST "35436e03e9cd2a38f1a6849e1af6192c051b0c4d66a07e0b028e05ec4c578529"
#define ENTRY(file, origin, bytes, digest, cases)                                                                 \
  R"({"fixtures": [{"file": ")" file R"(", "origin": ")" origin R"(", "bytes": )" bytes R"(, "sha256": ")" digest \
  R"(", "contents": ")" digest R"(", "cases": )" cases R"(, "provenance": {}}]})"

// clang-format off
const Malformed kMalformed[] = {
    {"empty", "", "is not JSON"},
    {"not_json", "{\"fixtures\": [", "is not JSON"},
    {"an_array", "[]", "fixtures: is not there: expected an array"},
    {"no_array", "{\"fixtures\": 1}", "fixtures: is not there: expected an array"},
    {"no_object", "{\"fixtures\": [1]}", "fixtures[0]: is not an object"},
    {"no_file", "{\"fixtures\": [{}]}", "fixtures[0].file: is not there: expected a string"},
    {"file_elsewhere", ENTRY("../a.h5", "outside", "1", DIGEST, "{}"),
     "fixtures[0].file: is '../a.h5': expected a name without folders"},
    {"origin", ENTRY("a.h5", "moon", "1", DIGEST, "{}"), "fixtures[0].origin: is 'moon': expected reference or outside"},
    {"bytes", ENTRY("a.h5", "outside", "-1", DIGEST, "{}"),
     "fixtures[0].bytes: is not there: expected a number of at least 0"},
    {"digest", ENTRY("a.h5", "outside", "1", "35", "{}"),
     "fixtures[0].sha256: is '35': expected 64 lower-case hexadecimal digits"},
    {"cases", ENTRY("a.h5", "outside", "1", DIGEST, "3"), "fixtures[0].cases: is not there: expected an object"},
    {"count", ENTRY("a.h5", "outside", "1", DIGEST, R"({"quantize": "x"})"),
     "fixtures[0].cases.quantize: is not there: expected a number of at least 0"},
};
// clang-format on

class MalformedManifestTest : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedManifestTest, IsNamed) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "manifest.json";
  put_file(path, std::as_bytes(std::span(std::string_view(GetParam().text))));
  try {
    read_manifest(path);
    FAIL() << "nothing was thrown";
  } catch (const FixtureError& error) {
    EXPECT_EQ(error.what(), path.string() + ": " + GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(Manifests, MalformedManifestTest, ::testing::ValuesIn(kMalformed),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Manifest, MustBeThere) {
  const TemporaryFolder folder;
  EXPECT_THROW(check_manifest(folder.path()), FixtureError);
}

}  // namespace
}  // namespace assay::golden
