// compute, verify, repro --save: input files, output files, and commands that can be pasted.

#include <gtest/gtest.h>

#include <fstream>
#include <ostream>

#include "conformance/tests/program/run_program.h"
#include "golden/io/manifest.h"
#include "golden/io/reader.h"
#include "golden/io/writer.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

using golden::Fixture;

Tensor int64s(const std::vector<std::int64_t>& values) {
  Tensor tensor = make_tensor(Format::i64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<std::int64_t>());
  return tensor;
}

// What a Python user writes: cases that have only inputs.
Fixture questions() {
  Fixture fixture;
  Case offsets{"offsets", "splits_to_offsets", {{"stride", std::int64_t{7}}}, {{"splits", int64s({3, 0, 5})}}, {}};
  Case quantize{
      "deep/er/quantize", "quantize", {{"recipe", std::string("tensor_delayed")}, {"otype", std::string("e4m3")}}, {}, {}};
  quantize.in["x"] = make_tensor(Format::bf16, {1, 4});
  const std::uint16_t x[] = {0x3f80, 0xc000, 0x7f80, 0x8000};  // 1, -2, infinity, -0
  std::copy(std::begin(x), std::end(x), quantize.in["x"].as<std::uint16_t>());
  quantize.in["scale"] = make_tensor(Format::f32, {1});
  *quantize.in["scale"].as<float>() = 2;
  fixture.cases = {quantize, offsets};
  return fixture;
}

TEST(Compute, AnswersAndTheAnswersVerify) {
  const golden::TemporaryFolder folder;
  const std::string in = (folder / "in.h5").string(), out = (folder / "out.h5").string();
  golden::write_fixture(in, questions());
  const Ran ran = assay({"compute", in, "-o", out});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with(out + ": 2 cases, ")) << ran.out;

  const Fixture made = golden::read_fixture(out);
  ASSERT_EQ(made.cases.size(), 2u);
  EXPECT_EQ(made.schema, 1);
  EXPECT_TRUE(contains(made.provenance, "assay compute"));
  const Tensor& codes = made.cases[0].out.at("rowwise_data");
  EXPECT_EQ(codes.bytes,
            (std::vector<std::byte>{std::byte{0x40}, std::byte{0xc8}, std::byte{0x7e}, std::byte{0x80}}));  // 2, -4, 448, -0
  EXPECT_EQ(made.cases[1].out.at("offsets").bytes, int64s({0, 21, 21, 56}).bytes);
  for (std::size_t i = 0; i < 2; ++i) {  // the request is kept
    const Case asked = questions().cases[i], &kept = made.cases[i];
    EXPECT_EQ(kept.name, asked.name);
    EXPECT_EQ(kept.attributes, asked.attributes);
    ASSERT_EQ(kept.in.size(), asked.in.size());
    for (const auto& [name, tensor] : asked.in) EXPECT_EQ(kept.in.at(name).bytes, tensor.bytes) << name;
  }
  EXPECT_EQ(assay({"verify", out}).code, 0);
  EXPECT_EQ(assay({"verify", out, "--backend", "null"}).code, 1);
}

// The G of each direction (nvfp4.h): the same for both without the Hadamard transform, and the given amax if there is one.
TEST(Compute, WritesBothAmaxesOfNvfp4) {
  const golden::TemporaryFolder folder;
  const std::string in = (folder / "in.h5").string(), out = (folder / "out.h5").string();
  Fixture fixture;
  fixture.schema = 2;
  Case own;
  own.op = "quantize";
  own.attributes = {{"recipe", std::string("nvfp4")}};
  own.in["x"] = make_tensor(Format::f32, {16, 16});
  own.in["x"].as<float>()[37] = -5;
  for (const bool given : {false, true}) {
    Case each = own;
    each.name = given ? "given" : "own";
    if (given) {
      each.in["columnwise_amax"] = make_tensor(Format::f32, {1});
      each.in["columnwise_amax"].as<float>()[0] = 7;
    }
    fixture.cases.push_back(each);
  }
  golden::write_fixture(in, fixture);
  ASSERT_EQ(assay({"compute", in, "-o", out}).code, 0);
  const Fixture made = golden::read_fixture(out);
  ASSERT_EQ(made.cases.size(), 2u);
  for (const Case& each : made.cases) {
    ASSERT_TRUE(each.out.contains("amax") && each.out.contains("columnwise_amax")) << each.name;
    EXPECT_EQ(each.out.at("amax").as<float>()[0], 5) << each.name;
    EXPECT_EQ(each.out.at("columnwise_amax").as<float>()[0], each.name == "given" ? 7 : 5) << each.name;
  }
  EXPECT_EQ(assay({"verify", out}).code, 0);
}

TEST(Compute, MayWriteOverItsInput) {
  const golden::TemporaryFolder folder;
  const std::string file = (folder / "file.h5").string();
  golden::write_fixture(file, questions());
  EXPECT_EQ(assay({"compute", file, "-o", file}).code, 0);
  EXPECT_EQ(assay({"verify", file}).code, 0);
  const std::vector<std::byte> once = golden::bytes_of_file(file);
  EXPECT_EQ(assay({"compute", file, "-o", file}).code, 0);
  EXPECT_EQ(golden::bytes_of_file(file), once);
}

TEST(Compute, ReplacesWrongAnswers) {
  const golden::TemporaryFolder folder;
  Fixture wrong = questions();
  wrong.provenance = "{}";
  wrong.cases[1].out["offsets"] = int64s({0, 1, 2, 3});
  const std::string in = (folder / "in.h5").string();
  golden::write_fixture(in, wrong);
  const Ran judged = assay({"verify", in, "--case", "offsets"});
  EXPECT_EQ(judged.code, 1) << judged.out;
  EXPECT_TRUE(contains(judged.out, "index 1: got 21, want 1")) << judged.out;
  EXPECT_EQ(assay({"compute", in, "-o", in}).code, 0);
  EXPECT_EQ(assay({"verify", in}).code, 0);
}

// A case without expected values cannot be verified, and is not skipped silently.
TEST(Verify, WantsExpectedValues) {
  const golden::TemporaryFolder folder;
  const std::string in = (folder / "in.h5").string();
  golden::write_fixture(in, questions());
  const Ran ran = assay({"verify", in});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(
      contains(ran.out, in + ": /offsets: out is empty: expected at least one expected output (assay compute makes them)"))
      << ran.out;
}

struct BadCase {
  const char* name;
  const char* reported;
  void (*spoil)(Case&);  // the case `offsets`
};
void PrintTo(const BadCase& bad, std::ostream* out) { *out << bad.name; }

// Bad cases among good ones: all bad ones are named, and nothing is written.
class BadQuestion : public testing::TestWithParam<BadCase> {};

TEST_P(BadQuestion, WritesNothing) {
  const golden::TemporaryFolder folder;
  Fixture fixture = questions();
  GetParam().spoil(fixture.cases[1]);
  const std::string in = (folder / "in.h5").string(), out = (folder / "out.h5").string();
  golden::write_fixture(in, fixture);
  Ran ran = assay({"compute", in, "-o", out});
  EXPECT_EQ(ran.code, 3) << ran.out << ran.err;
  EXPECT_TRUE(ran.out.starts_with(in + ": /offsets: ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, GetParam().reported)) << ran.out;
  EXPECT_TRUE(ran.out.ends_with("\nnothing was written\n")) << ran.out;
  EXPECT_FALSE(std::filesystem::exists(out));

  std::ofstream(out) << "what was there";
  EXPECT_EQ(assay({"compute", in, "-o", out}).code, 3);
  EXPECT_EQ(golden::bytes_of_file(out).size(), std::string("what was there").size());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2) << "something was left behind";
}
// clang-format off
const BadCase kBadCases[] = {
    {"unknown_op", "op 'splits_to_offset' is unknown: expected one of quantize", [](Case& each) { each.op = "splits_to_offset"; }},
    {"unknown_attribute", "has no attribute 'strid' here", [](Case& each) { each.attributes = {{"strid", std::int64_t{7}}}; }},
    {"attribute_of_another_type", "attribute stride is '7': expected an integer", [](Case& each) { each.attributes["stride"] = std::string("7"); }},
    {"missing_input", "in/splits is absent: expected a tensor", [](Case& each) { each.in.clear(); }},
    {"unknown_input", "has no input 'more' here", [](Case& each) { each.in["more"] = int64s({1}); }},
    {"input_of_another_type", "in/splits", [](Case& each) { each.in["splits"] = make_tensor(Format::f32, {3}); }},
    {"negative_split", "-1", [](Case& each) { each.in["splits"] = int64s({3, -1}); }},
    {"overflow", "splits", [](Case& each) { each.in["splits"] = int64s({std::int64_t{1} << 62, std::int64_t{1} << 62}); }},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Cases, BadQuestion, testing::ValuesIn(kBadCases), [](const auto& each) { return each.param.name; });

TEST(Compute, SaysWhereItCannotWrite) {
  const golden::TemporaryFolder folder;
  const std::string in = (folder / "in.h5").string(), out = (folder / "none" / "out.h5").string();
  golden::write_fixture(in, questions());
  const Ran ran = assay({"compute", in, "-o", out});
  EXPECT_EQ(ran.code, 2) << "the path is wrong, no fixture is damaged";
  EXPECT_EQ(ran.err, "assay: " + out + ": cannot be written: No such file or directory\n");
  EXPECT_EQ(ran.out, "");
}

TEST(Repro, SavesAFixtureThatVerifies) {
  const golden::TemporaryFolder folder;
  const std::string file = (folder / "saved.h5").string(), line = "quantize recipe=block_1x128 splits=5,0,9 K=136 seed=4";
  const Ran ran = assay({"repro", line, "--save", file});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out.starts_with(line + "\npassed by bits: ")) << ran.out;
  EXPECT_TRUE(contains(golden::read_fixture(file).provenance, line));
  EXPECT_EQ(assay({"verify", file}).code, 0);
  EXPECT_EQ(assay({"verify", file, "--backend", "null"}).code, 1);
}

// A word selects recorded cases by their path, as it selects lines.
TEST(Run, ChoosesCasesOfFixturesByWords) {
  const Ran ran = assay({"run", "--profile", "smoke", "--quiet", "--backend", "reference", "fp8_block.h5/"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.err, "0 cases, 1 fixture file")) << ran.err;
  EXPECT_TRUE(contains(ran.out, "block_1x128")) << ran.out;
  EXPECT_FALSE(contains(ran.out, "mxfp8")) << ran.out;
}

// The form of a line does not matter: quoted, in separate words, in another order, with defaults written out.
TEST(Repro, TakesALineInAnyForm) {
  const std::string want = assay({"repro", "quantize recipe=mxfp8 splits=8,8,8,8 K=32"}).out;
  const std::string first = want.substr(0, want.find('\n'));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"repro", "quantize", "recipe=mxfp8", "splits=4x8", "K=32"},
                                             {"repro", "quantize K=32 splits=4x8", "recipe=mxfp8"},
                                             {"repro", "  quantize   recipe=mxfp8  x_type=bf16 splits=4x8 K=32 seed=0 "}}) {
    const Ran ran = assay(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out.substr(0, ran.out.find('\n')), first);
  }
}

// The command that a failure prints gives the same failure when it is pasted into a shell, whatever the names contain.
Ran paste(const std::string& text) {
  const std::size_t start = text.find("repro   assay ") + std::string("repro   assay ").size();
  const std::string command = text.substr(start, text.find('\n', start) - start);
  return run_program({"sh", "-c", std::string("\"$ASSAY\" ") + command},
                     {.environment = {{"ASSAY", ASSAY_PROGRAM}}, .terminal = false, .meanwhile = {}});
}

// Up to and including the repro line.
std::string failure(const std::string& text) {
  const std::size_t start = text.find("FAILED  ");
  return start == std::string::npos ? "no failure in: " + text
                                    : text.substr(start, text.find('\n', text.find("  repro   ", start)) - start);
}

TEST(ReproCommand, OfAGeneratedCase) {
  const golden::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "it's \"my\" $HOME");
  const std::string backend = (folder / "it's \"my\" $HOME" / "faulty.so").string();
  std::filesystem::copy_file(ASSAY_FAULTY_BACKEND, backend);
  const Ran ran =
      assay({"run", "splits_to_offsets_multi", "--profile", "smoke", "--backend", backend, "--backend-options", "wrong; it's *"});
  ASSERT_EQ(ran.code, 1) << ran.out << ran.err;
  const Ran again = paste(ran.out);
  EXPECT_EQ(again.code, 1) << again.err;
  EXPECT_EQ(failure(again.out), failure(ran.out));
}

TEST(ReproCommand, OfAFixturesCase) {
  const golden::TemporaryFolder folder;
  const std::string file = (folder / "it's a file.h5").string();
  Fixture fixture = questions();
  fixture.provenance = "{}";
  fixture.cases = {fixture.cases[1]};
  fixture.cases[0].name = "it's/a case";
  fixture.cases[0].out["offsets"] = int64s({0, 21, 21, 57});
  golden::write_fixture(file, fixture);
  const Ran ran = assay({"verify", file});
  ASSERT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_TRUE(contains(failure(ran.out), "index 3: got 56, want 57")) << ran.out;
  const Ran again = paste(ran.out);
  EXPECT_EQ(again.code, 1) << again.err;
  EXPECT_EQ(failure(again.out), failure(ran.out));
}

TEST(Golden, ChecksAndFindsADamagedFile) {
  const golden::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cases");
  std::ofstream(folder / "cases" / "few.txt") << "# a list\nsplits_to_offsets splits=3,0,5\nquantize recipe=mxfp8 R=3 K=32\n";
  const std::string where = folder.path().string();
  EXPECT_EQ(assay({"golden", "build", "--folder", where}).code, 0);
  EXPECT_EQ(assay({"golden", "check", "--folder", where}).code, 0);
  EXPECT_EQ(assay({"verify", (folder / "few.h5").string()}).code, 0);
  const std::vector<std::byte> once = golden::bytes_of_file(folder / "few.h5");
  EXPECT_EQ(assay({"golden", "build", "--folder", where}).code, 0);
  EXPECT_EQ(golden::bytes_of_file(folder / "few.h5"), once);

  std::ofstream(folder / "cases" / "few.txt", std::ios::app) << "splits_to_offsets splits=4\n";  // the list has changed since
  Ran ran = assay({"golden", "check", "--folder", where});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(contains(ran.out, "few.h5: rebuilding it from few.txt gives other contents")) << ran.out;

  EXPECT_EQ(assay({"golden", "build", "--folder", where}).code, 0);
  std::vector<std::byte> damaged = golden::bytes_of_file(folder / "few.h5");
  damaged[damaged.size() / 2] ^= std::byte{1};
  golden::put_file(folder / "few.h5", damaged);
  ran = assay({"golden", "check", "--folder", where});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(contains(ran.out, "few.h5")) << ran.out;

  std::ofstream(folder / "cases" / "few.txt") << "splits_to_offsets splits=3,0,5\nsplits_to_offset splits=4\n";
  ran = assay({"golden", "build", "--folder", where});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(contains(ran.err, "few.txt: line 2: op is splits_to_offset")) << ran.err;
}

// What the manifest says of an oracle is compared with the oracle itself, not only the digest of the file.
TEST(Golden, ChecksWhatTheManifestSaysOfAnOracle) {
  const golden::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cases");
  std::ofstream(folder / "cases" / "few.txt") << "splits_to_offsets splits=3,0,5\n";
  const std::string where = folder.path().string();
  ASSERT_EQ(assay({"golden", "build", "--folder", where}).code, 0);
  std::filesystem::remove(folder / "cases" / "few.txt");
  golden::Manifest manifest = {golden::describe(folder / "few.h5", "outside")};
  golden::write_manifest(folder / "manifest.json", manifest);
  EXPECT_EQ(assay({"golden", "check", "--folder", where}).code, 0);

  manifest[0].cases["quantize"] = 1;
  golden::write_manifest(folder / "manifest.json", manifest);
  Ran ran = assay({"golden", "check", "--folder", where});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(contains(ran.out, "few.h5: manifest.json counts other cases than the file has")) << ran.out;

  manifest[0].cases.erase("quantize");
  const std::string right = manifest[0].contents;
  manifest[0].contents = std::string(64, '0');
  golden::write_manifest(folder / "manifest.json", manifest);
  ran = assay({"golden", "check", "--folder", where});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(contains(ran.out, "in manifest.json: expected " + right)) << ran.out;
}

}  // namespace
}  // namespace assay::conformance
