// emit --c: the files compile without a warning as C99 and as C++, accept the bytes of golden/, and name a single flipped bit.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "conformance/backends/backend_handle.h"
#include "conformance/backends/built_in.h"
#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/call_runner.h"
#include "conformance/ops/tensor_schema.h"
#include "conformance/suites/golden_cases.h"
#include "conformance/tests/program/run_program.h"
#include "golden/io/reader.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

using golden::TemporaryFolder;

const std::vector<std::string> kStrict{"-Wall", "-Wextra", "-Werror", "-pedantic"};

void put_text(const std::filesystem::path& path, const std::string& text) {
  golden::put_file(path, std::as_bytes(std::span(text)));
}

// Compiles and links `sources`; the messages of the compiler, empty if all is well.
std::string built(const TemporaryFolder& folder, const std::string& compiler, std::vector<std::string> words,
                  const std::vector<std::string>& sources, const std::string& program) {
  words.insert(words.begin(), compiler);
  words.insert(words.end(), kStrict.begin(), kStrict.end());
  for (const std::string& source : sources) words.push_back((folder / source).string());
  words.insert(words.end(), {"-o", (folder / program).string()});
  const Ran ran = run_program(words);
  return ran.code == 0 ? ran.out + ran.err : fmt::format("exit code {}: {}{}", ran.code, ran.out, ran.err);
}
std::string built_as_c(const TemporaryFolder& folder, const std::vector<std::string>& sources, const std::string& program) {
  return built(folder, ASSAY_C_COMPILER, {"-std=c99"}, sources, program);
}

// A case, and what its outputs hold after a right call.
struct Known {
  CaseLine line;
  Case recorded;                                             // the outputs of a fixture of golden/
  std::map<std::string, std::vector<std::uint8_t>> written;  // by byte: 1 where the op writes
};

// Bytes that keep both of two poisons are not written. The scalar layer says so, by its own code.
std::map<std::string, std::vector<std::uint8_t>> written_by(const Case& problem, const std::set<std::string>& wanted) {
  Backend backend(*reference_backend(), "layer=scalar");
  std::vector<OutputSpec> specs;
  for (const OutputSpec& spec : outputs_of(Request::read_only(problem))) {
    if (wanted.count(spec.name) != 0) specs.push_back(spec);
  }
  CallRunner runner(backend, problem, specs, -1, 60'000);
  const Attempt zeros = runner.attempt(0x00), ones = runner.attempt(0xFF);
  EXPECT_EQ(zeros.status, ASSAY_OK) << zeros.error;
  std::map<std::string, std::vector<std::uint8_t>> written;
  for (const auto& [name, bytes] : zeros.outputs) {
    for (std::size_t i = 0; i < bytes.size(); ++i) written[name].push_back(bytes[i] == ones.outputs.at(name)[i] ? 1 : 0);
  }
  return written;
}

std::string byte_array(const std::string& name, const auto& bytes) {
  std::string text = fmt::format("static const unsigned char {}[] = {{", name);
  for (const auto each : bytes) text += fmt::format("{},", static_cast<unsigned>(each));
  return text + "0};\n";
}

// An assay_run() that writes the recorded bytes. ASSAY_FLIP="OUTPUT BYTE": afterwards it flips bit 0 of that byte.
std::string copying_run(const Known& known, const std::string& file) {
  std::string text = "#define ASSAY_DECLARATIONS_ONLY\n#include \"" + file + "\"\n#include <stdio.h>\n#include <stdlib.h>\n";
  std::string calls;
  for (const auto& [name, tensor] : known.recorded.out) {
    text += byte_array("bytes_" + name, tensor.bytes) + byte_array("written_" + name, known.written.at(name));
    calls += fmt::format("  copy(call, ASSAY_OUT_{0}, bytes_{0}, written_{0}, {1});\n", name, tensor.bytes.size());
  }
  text += R"(
static void copy(const struct assay_case *call, int output, const unsigned char *from, const unsigned char *written, size_t bytes) {
  unsigned char *to = (unsigned char *)call->outputs[output].data;
  size_t i;
  if (call->outputs[output].bytes != bytes) exit(3);
  for (i = 0; i < bytes; ++i) {
    if (written[i]) to[i] = from[i];
  }
}

int assay_run(const struct assay_case *call) {
  const char *flip = getenv("ASSAY_FLIP");
  int output, byte;
)" + calls +
          R"(  if (flip != NULL && sscanf(flip, "%d %d", &output, &byte) == 2)
    ((unsigned char *)call->outputs[output].data)[byte] = (unsigned char)(((unsigned char *)call->outputs[output].data)[byte] ^ 1u);
  return 0;
}
)";
  return text;
}

// The first line of each op and recipe, kind or format of each list in golden/cases/, with its outputs from golden/NAME.h5.
std::vector<Known> known_cases() {
  std::vector<Known> all;
  const std::filesystem::path golden_folder = ASSAY_GOLDEN_FOLDER;
  for (const std::filesystem::path& list : case_lists(golden_folder)) {
    std::map<std::string, CaseLine> chosen;
    for (const CaseLine& line : read_case_list(list)) {
      std::string variety = line.op;
      for (const char* key : {"kind", "layout", "recipe", "otype", "scale_layout", "storage"}) {
        if (find_key(*find_op(line.op), key) != nullptr) variety.append(" ").append(line.text(key));
      }
      chosen.emplace(variety, line);
    }
    const golden::Fixture fixture = golden::read_fixture((golden_folder / list.stem()).string() + ".h5");
    for (const auto& [variety, line] : chosen) {
      for (const Case& each : fixture.cases) {
        if (each.name == name_of(line)) all.push_back({line, each, {}});
      }
    }
  }
  for (Known& each : all) {
    std::set<std::string> wanted;
    for (const auto& [name, tensor] : each.recorded.out) wanted.insert(name);
    each.written = written_by(each.recorded, wanted);
  }
  return all;
}

int position_of(const Known& known, const std::string& output) {
  const std::vector<std::string> names = wanted_outputs(known.line);
  return static_cast<int>(std::find(names.begin(), names.end(), output) - names.begin());
}

// A bit flipped in a written byte is a wrong word; in another one it is a word that must not change, or one that may hold anything.
void expect_flips_found(const TemporaryFolder& folder, const Known& known) {
  for (const auto& [name, tensor] : known.recorded.out) {
    const std::vector<std::uint8_t>& written = known.written.at(name);
    for (const std::uint8_t which : {1, 0}) {
      const auto found = std::find(written.rbegin(), written.rend(), which);
      if (found == written.rend()) continue;
      const auto byte = written.rend() - found - 1;
      const Ran ran = run_program({(folder / "program").string()},
                                  {{{"ASSAY_FLIP", fmt::format("{} {}", position_of(known, name), byte)}}, false, {}});
      const std::int64_t width = std::max(bits_of(tensor.type) / 8, 1),
                         word = tensor.type == Format::e2m1 ? byte * 2 : byte / width;
      EXPECT_EQ(ran.code, 1) << to_text(known.line) << " " << name << " byte " << byte << "\n" << ran.out;
      EXPECT_TRUE(contains(ran.out, "\n  output  " + name + " ")) << ran.out;
      EXPECT_TRUE(contains(ran.out, ": 1 of ")) << ran.out;
      EXPECT_TRUE(contains(ran.out, fmt::format("\n  first   word {}", word))) << word << ran.out;
      EXPECT_EQ(contains(ran.out, "must not change"), which == 0) << ran.out;
    }
  }
}

// Words that the call must not change, and words that are compared, from the bytes that the scalar layer wrote.
std::string count_line(const Known& known) {
  std::int64_t compared = 0, kept = 0;
  for (const auto& [name, tensor] : known.recorded.out) {
    const std::vector<std::uint8_t>& written = known.written.at(name);
    const auto width = static_cast<std::size_t>(std::max(bits_of(tensor.type) / 8, 1));
    for (std::size_t i = 0; i < written.size(); i += width)
      (written[i] != 0 ? compared : kept) += tensor.type == Format::e2m1 ? 2 : 1;
  }
  return fmt::format("\n  {} words as expected, {} unchanged, over two fills\n", compared, kept);
}

TEST(Emitted, CopiesOfRecordedOutputsPassAndFlippedBitsFail) {
  std::set<std::string> ops;
  const std::vector<Known> all = known_cases();
  for (const Known& each : all) {
    SCOPED_TRACE(to_text(each.line));
    ops.insert(each.line.op);
    const TemporaryFolder folder;
    const Ran ran = assay({"emit", "--c", to_text(each.line), "-o", (folder / "case.c").string()});
    ASSERT_EQ(ran.code, 0) << ran.err;
    put_text(folder / "run.c", copying_run(each, "case.c"));
    ASSERT_EQ(built_as_c(folder, {"case.c", "run.c"}, "program"), "");
    const Ran right = run_program({(folder / "program").string()});
    EXPECT_EQ(right.code, 0) << right.out;
    EXPECT_EQ(right.out, "passed  " + to_text(each.line) + count_line(each));
    expect_flips_found(folder, each);
  }
  EXPECT_GE(all.size(), 40u);
  // Those of golden/; the two token permutations follow below.
  for (const std::string_view op : known_ops()) {
    if (op == "permute" || op == "unpermute") continue;
    EXPECT_EQ(ops.count(std::string(op)), 1u) << op;
  }
}

// The rows of tokens, moved by code of the test; rows of no choice keep what they held.
constexpr const char* kPermute = R"(#define ASSAY_DECLARATIONS_ONLY
#include "case.c"
int assay_run(const struct assay_case *call) {
  const struct assay_case_input *x = &call->inputs[ASSAY_IN_x], *map = &call->inputs[ASSAY_IN_row_map];
  const int32_t *rows = (const int32_t *)map->data;
  const unsigned char *from = (const unsigned char *)x->data;
  unsigned char *to = (unsigned char *)call->outputs[ASSAY_OUT_permuted].data;
  const size_t width = x->bytes / (size_t)x->shape[0];
  int64_t i;
  size_t j;
  for (i = 0; i < map->shape[0] * map->shape[1]; ++i) {
    if (rows[i] < 0) continue;
    for (j = 0; j < width; ++j) to[(size_t)rows[i] * width + j] = from[(size_t)(i / map->shape[1]) * width + j];
  }
  return 0;
}
)";

TEST(Emitted, APermutationWrittenForItPasses) {
  const TemporaryFolder folder;
  ASSERT_EQ(assay({"emit", "--c", "permute R=37 topk=3 experts=5 dropped=9 alignment=8 K=20 seed=3", "-o",
                   (folder / "case.c").string()})
                .code,
            0);
  put_text(folder / "run.c", kPermute);
  ASSERT_EQ(built_as_c(folder, {"case.c", "run.c"}, "program"), "");
  const Ran ran = run_program({(folder / "program").string()});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(contains(ran.out, "\n  2040 words as expected, ")) << ran.out;  // (37 * 3 - 9) * 20
}

// One expert a token and no weights: each sum is one row, or 0 where the token is dropped.
constexpr const char* kUnpermute = R"(#define ASSAY_DECLARATIONS_ONLY
#include "case.c"
int assay_run(const struct assay_case *call) {
  const struct assay_case_input *in = &call->inputs[ASSAY_IN_permuted], *map = &call->inputs[ASSAY_IN_row_map];
  const int32_t *rows = (const int32_t *)map->data;
  const uint32_t *from = (const uint32_t *)in->data;
  uint32_t *to = (uint32_t *)call->outputs[ASSAY_OUT_x].data;
  int64_t i, j;
  for (i = 0; i < map->shape[0]; ++i) {
    for (j = 0; j < in->shape[1]; ++j)
      to[i * in->shape[1] + j] = rows[i] < 0 ? 0 : from[rows[i] * in->shape[1] + j];
  }
  return 0;
}
)";

TEST(Emitted, ASumOfTokensWrittenForItPassesAsCpp) {
  const TemporaryFolder folder;
  ASSERT_EQ(assay({"emit", "--c", "unpermute x_type=f32 data=integers R=12 topk=1 experts=3 dropped=2 K=8 seed=3", "-o",
                   (folder / "case.c").string()})
                .code,
            0);
  put_text(folder / "run.c", kUnpermute);
  ASSERT_EQ(built(folder, ASSAY_CXX_COMPILER, {"-std=c++11", "-x", "c++"}, {"case.c", "run.c"}, "program"), "");
  const Ran ran = run_program({(folder / "program").string()});
  EXPECT_EQ(ran.code, 0) << ran.out;
}

// Every op of the smoke profile, as C++, without stdio, and several in one program.
TEST(Emitted, FilesOfEveryOpCompileAsCppAndLinkTogether) {
  const TemporaryFolder folder;
  std::map<std::string, std::string> lines;
  for (const CaseLine& line : catalogue(Profile::smoke)) {
    const bool plain = line.op != "scenario" && line.integer("contract") == 0 && !line.has("replay") &&
                       (find_key(*find_op(line.op), "fault") == nullptr || !line.has("fault"));
    if (plain && check_kind(line) != CheckKind::bound) lines.emplace(line.op, to_text(line));
  }
  std::vector<std::string> objects;
  std::string sum = "#include <stdio.h>\n";
  std::string calls;
  for (const auto& [op, line] : lines) {
    const std::string file = op + ".c";
    const Ran ran = assay({"emit", "--c", line, "-o", (folder / file).string(), "--max-bytes", "10000000"});
    ASSERT_EQ(ran.code, 0) << line << ran.err;
    ASSERT_EQ(built(folder, ASSAY_CXX_COMPILER, {"-std=c++11", "-x", "c++", "-fsyntax-only"}, {file}, "none"), "") << line;
    std::vector<std::string> names{"-std=c99", "-c", "-DASSAY_NO_MAIN", "-DASSAY_NO_STDIO", "-DASSAY_RUN=run_" + op};
    for (const char* each : {"CHECK", "FILL", "COMPARE", "CASE"}) names.push_back(fmt::format("-DASSAY_{0}={0}_{1}", each, op));
    ASSERT_EQ(built(folder, ASSAY_C_COMPILER, names, {file}, op + ".o"), "") << line;
    objects.push_back(op + ".o");
    sum += fmt::format(
        "int CHECK_{0}(void);\nstruct assay_case;\nint run_{0}(const struct assay_case *call);\n"
        "int run_{0}(const struct assay_case *call) {{ (void)call; return 0; }}\n",
        op);
    calls += fmt::format("  printf(\"%d\", CHECK_{}());\n", op);
  }
  put_text(folder / "main.c", sum + "int main(void) {\n" + calls + "  return 0;\n}\n");
  objects.push_back("main.c");
  ASSERT_EQ(built_as_c(folder, objects, "program"), "");
  // A call that writes nothing is never right.
  EXPECT_EQ(run_program({(folder / "program").string()}).out, std::string(lines.size(), '1'));
  EXPECT_EQ(lines.size(), known_ops().size());
}

TEST(Emitted, ACallThatIsRefusedIsNoPass) {
  const TemporaryFolder folder;
  ASSERT_EQ(assay({"emit", "--c", "splits_to_offsets splits=3,0,5", "-o", (folder / "case.c").string()}).code, 0);
  put_text(folder / "run.c",
           "#define ASSAY_DECLARATIONS_ONLY\n#include \"case.c\"\nint assay_run(const struct assay_case *call) {\n"
           "  return (int)call->output_count + 6;\n}\n");
  ASSERT_EQ(built_as_c(folder, {"case.c", "run.c"}, "program"), "");
  const Ran ran = run_program({(folder / "program").string()});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.out, "assay_run() returned 7\n")) << ran.out;
}

// Under another plan the product has other bits, and the file names the plan.
TEST(Emitted, ThePlanThatIsGivenIsFollowed) {
  const std::string line = "grouped_gemm kind=bf16 d_type=f32 splits=8 N=8 K=64 seed=3";
  const std::string own = assay({"emit", "--c", line}).out;
  const std::string sliced = assay({"emit", "--c", line, "--plan", "unit=sm90.wgmma.f16,slices=2x32,merge=sequential_f32"}).out;
  EXPECT_TRUE(contains(own, "\n *   unit=sm90.wgmma.f16\n")) << own.substr(0, 1000);
  EXPECT_TRUE(contains(sliced, "\n *   unit=sm90.wgmma.f16,slices=2x32,merge=sequential_f32\n")) << sliced.substr(0, 1000);
  EXPECT_NE(own.substr(own.find("want_d[")), sliced.substr(sliced.find("want_d[")));
}

struct Refused {
  std::string line;
  std::vector<std::string> more;
  std::string reason;
};

TEST(Emitted, WhatIsNotOneCallIsRefused) {
  const TemporaryFolder folder;
  const std::string file = (folder / "case.c").string();
  const Refused all[] = {
      {"scenario recipe=none steps=forward splits=3 N=8 K=8 replay=2:data", {}, "a scenario has several calls"},
      {"quantize recipe=mxfp8 R=32 K=64 contract=1", {}, "it asks for wrong calls"},
      {"quantize recipe=mxfp8 splits=32,64 K=64 fault=negative_split", {}, "a wrong call has no right outputs"},
      {"quantize recipe=mxfp8 R=32 K=64 replay=3:data", {}, "leave it out for the first call"},
      {"quantize recipe=mxfp8 R=32 K=64", {"--bounds"}, "--bounds is given: expected an op with a product"},
      {"grouped_gemm kind=bf16 splits=5 N=8 K=16", {"--bounds", "--plan", "cublaslt.sm90.bf16"}, "no --plan beside it"},
      {"grouped_gemm kind=bf16 splits=5 N=8 K=16", {"--unit", "sm90.wgmma.f16"}, "expected --bounds, or a case with check=bound"},
      {"grouped_gemm kind=bf16 splits=5 N=8 K=16", {"--bounds", "--unit", "sm1.none"}, "a row of the tensor-core table"},
      {"grouped_gemm kind=bf16 splits=5 N=8 K=16", {"--bounds", "--unit", "sm90.wgmma.fp8"}, "sm90.wgmma.fp8"},
      {"grouped_gemm kind=bf16 d_type=f32 splits=4 N=8 K=8 check=bound", {"--max-bytes", "455"}, "456 bytes of inputs and"},
      {"quantize recipe=mxfp8 R=32 K=64",
       {"--plan", "cublaslt.sm90.bf16"},
       "--plan is cublaslt.sm90.bf16: expected an op with a product"},
      {"quantize recipe=mxfp8 R=32 K=64",
       {"--max-bytes", "9215"},
       "9216 bytes of inputs and expected outputs: expected at most 9215"},
      {"quantize recipe=mxfp8 R=68719476 K=1000", {}, "at least 1073741812 bytes"},
      {"quantize recipe=mxfp9 R=32 K=64", {}, "did you mean mxfp8?"},
  };
  for (const Refused& each : all) {
    std::vector<std::string> words{"emit", "--c", each.line, "-o", file};
    words.insert(words.end(), each.more.begin(), each.more.end());
    const Ran ran = assay(words);
    EXPECT_EQ(ran.code, 2) << each.line;
    EXPECT_TRUE(contains(ran.err, each.reason)) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(file)) << each.line;
  }
  EXPECT_EQ(assay({"emit", "quantize recipe=mxfp8 R=32 K=64"}).code, 2);
  EXPECT_TRUE(contains(assay({"emit", "quantize recipe=mxfp8 R=32 K=64"}).err, "--c: is missing"));
  // x, codes and scales of both directions, which are padded: 4096 + 2 * 2048 + 2 * 512.
  EXPECT_EQ(assay({"emit", "--c", "quantize recipe=mxfp8 R=32 K=64", "--max-bytes", "9216"}).code, 0);
}

}  // namespace
}  // namespace assay::conformance
