// Every exit code that can be reached, and the output with it. Results go to standard output; errors of the command itself go to
// standard error.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <ostream>

#include "conformance/catalogue/catalogue.h"
#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

using Words = std::vector<std::string>;
using Environment = std::vector<std::pair<std::string, std::string>>;

struct Call {
  const char* name;
  Words words;  // FAULTY: the path of the faulty backend. FOLDER: cut.h5, text.h5, empty/. GOLDEN/: the fixtures. COUNT: kFaulty's cases
  int code;
  Words out, err;  // parts of what is printed; nothing else on standard error if none are named
  Environment environment = {};
};
void PrintTo(const Call& call, std::ostream* out) { *out << call.name; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

// Those of offsets in smoke, whose number grows with its cover, and the nine of offsets.h5.
std::string number_of_offsets() {
  const std::vector<CaseLine> cases = catalogue(Profile::smoke);
  return std::to_string(9 + std::count_if(cases.begin(), cases.end(), [](const CaseLine& line) { return line.op.starts_with("splits_to_offsets"); }));
}

class Program : public testing::TestWithParam<Call> {};

TEST_P(Program, AndWhatIsSaid) {
  const Call& call = GetParam();
  const golden::TemporaryFolder folder;
  const auto filled = [&](const std::string& text) {
    const std::string named = replaced(replaced(text, "FAULTY", ASSAY_FAULTY_BACKEND), "FOLDER", folder.path().string());
    return replaced(replaced(named, "GOLDEN/", ASSAY_GOLDEN_FOLDER "/"), "COUNT", number_of_offsets());
  };
  // A truncated fixture, and a file that is no fixture.
  const std::vector<std::byte> whole = golden::bytes_of_file(std::filesystem::path(ASSAY_GOLDEN_FOLDER) / "offsets.h5");
  golden::put_file(folder / "cut.h5", std::span(whole).first(whole.size() / 2));
  std::ofstream(folder / "text.h5") << "not HDF5\n";
  std::filesystem::create_directory(folder / "empty");

  Words words;
  for (const std::string& word : call.words) words.push_back(filled(word));
  ProcessOptions options;
  for (const auto& [name, value] : call.environment) options.environment.emplace_back(name, filled(value));
  const Ran ran = assay(words, options);
  EXPECT_EQ(ran.signal, 0);
  EXPECT_EQ(ran.code, call.code) << ran.out << ran.err;
  for (const std::string& part : call.out) EXPECT_TRUE(contains(ran.out, filled(part))) << filled(part) << "\nis not in\n" << ran.out;
  for (const std::string& part : call.err) EXPECT_TRUE(contains(ran.err, filled(part))) << filled(part) << "\nis not in\n" << ran.err;
  if (call.err.empty()) {
    EXPECT_EQ(without_judged_line(ran.err), "");
  } else {
    const std::string err = without_judged_line(ran.err);
    EXPECT_EQ(ran.out, "") << "a wrong command has no results";
    EXPECT_LE(std::count(err.begin(), err.end(), '\n'), 2) << "more than a line, or CLI11's two:\n" << err;
  }
}

const Words kFaulty{"run", "splits_to_offsets", "--profile", "smoke", "--backend", "FAULTY", "--backend-options"};
Words faulty(const char* fault, Words more = {}) {
  Words words = kFaulty;
  words.push_back(fault);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Call kCalls[] = {
    {"run", {"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference"}, 0, {"PASS run --profile smoke splits_to_offsets: backend reference", "COUNT passed, 0 failed"}, {}},
    {"run_sound_library", faulty("none"), 0, {"PASS run --profile smoke splits_to_offsets: backend faulty of ", "COUNT passed, 0 failed"}, {}},
    {"run_by_glob", {"run", "quantize/mxfp8/*", "--profile", "smoke"}, 0, {"quantize\n  mxfp8 "}, {}},
    {"run_fixture_by_name", {"run", "offsets", "--profile", "smoke"}, 0, {"splits_to_offsets_2d"}, {}},
    // Words select cases of fixtures by their path: together with other words, alone, as a pattern.
    {"run_fixture_cases", {"run", "grouped/specials", "mxfp8", "--profile", "smoke"}, 0, {"1 passed, 0 failed"}, {}},
    {"run_one_file", {"run", "per_tensor.h5/quantize", "--profile", "smoke"}, 0, {"\n  tensor_delayed ", "9 passed, 0 failed"}, {}},
    {"run_fixture_cases_by_glob", {"run", "cublaslt_grouped_gemm.h5/b_*", "--profile", "smoke"}, 0, {"grouped_gemm"}, {}},
    {"verify_recorded_ops", {"verify", "GOLDEN/transformer_engine_ops.h5"}, 0, {"289 passed, 0 failed, 0 not run, 0 other"}, {}},
    {"verify_recorded_ops_scalar", {"verify", "GOLDEN/transformer_engine_ops.h5", "--backend-options", "layer=scalar"}, 0, {"289 passed, 0 failed, 0 not run, 0 other"}, {}},
    {"verify_recorded_draws", {"verify", "GOLDEN/transformer_engine_stochastic.h5"}, 0, {"12 passed, 0 failed, 0 not run, 0 other"}, {}},
    {"verify_recorded_draws_scalar", {"verify", "GOLDEN/transformer_engine_stochastic.h5", "--backend-options", "layer=scalar"}, 0, {"12 passed, 0 failed, 0 not run, 0 other"}, {}},
    {"version", {"--version"}, 0, {"assay 0."}, {}},

    {"wrong_backend", faulty("wrong"), 1, {"FAILED  splits_to_offsets splits=1,0,127,128,129", "index 0: got 1, want 0", "exit 1 (failed)"}, {}},
    {"null_backend", {"run", "swizzle", "--backend", "null", "--profile", "smoke"}, 1, {"not written", "FAIL run"}, {}},
    {"repro_null", {"repro", "splits_to_offsets splits=3,0,5", "--backend", "null"}, 1, {"4 of 4 differ"}, {}},
    {"verify_null", {"verify", "GOLDEN/offsets.h5", "--backend", "null"}, 1, {"FAILED", "  repro   assay verify GOLDEN/offsets.h5 --case "}, {}},

    {"scale_map", {"scale-map", "grouped_gemm kind=fp8_block d_type=f32 splits=130,0,256 N=300 K=300"}, 0,
     {"scales of x (x_rowwise_scale_inv, 1x128, 1164 with padding, rows of D): 36 of 36 pairs of tile and block right",
      "scales of w (w_rowwise_scale_inv, 128x128, 36 with padding, columns of D): 36 of 36 pairs", "PASS scale-map: backend reference", "1 passed, 0 failed"}, {}},
    {"scale_map_null", {"scale-map", "grouped_gemm", "kind=fp8_block", "d_type=f32", "splits=128", "N=128", "K=256", "--backend", "null"}, 1,
     {"wrong: 1 of 1 tiles 128x128, 2 pairs", "blocks 0-1 read 2xunwritten", "exit 1 (failed)"}, {}},
    {"scale_map_wrong", {"scale-map", "grouped_gemm kind=fp8_block d_type=f32 splits=256 N=384 K=384", "--operand", "w", "--backend", "FAULTY", "--backend-options", "scales=4"}, 1,
     {"wrong: 2 of 6 tiles 128x128, 6 pairs", "index read depends on the block alone: blocks 0-2 read 4-6", "exit 1 (failed)"}, {}},
    {"scale_map_kind", {"scale-map", "grouped_gemm kind=mxfp8 d_type=f32 splits=128 N=128 K=128"}, 2, {}, {"it cannot distinguish those of kind=mxfp8 yet"}},
    {"scale_map_type", {"scale-map", "grouped_gemm kind=fp8_block splits=128 N=128 K=128"}, 2, {}, {"d_type=f32, not bf16"}},
    {"scale_map_operand", {"scale-map", "grouped_gemm kind=fp8_block d_type=f32 splits=128 N=128 K=128", "--operand", "dy"}, 2, {}, {"operand is dy: expected x or w"}},
    {"scale_map_absent", {"scale-map", "grouped_gemm kind=fp8_block d_type=f32 splits=128 N=128 K=128", "--backend", "FAULTY", "--backend-options", "absent"}, 4,
     {"not run, 1 case: absent"}, {}},
    {"scale_map_late", {"scale-map", "grouped_gemm kind=fp8_block d_type=f32 splits=128 N=128 K=128", "--timeout", "1", "--backend", "FAULTY", "--backend-options", "busy"}, 5,
     {"returned 'timeout': not finished after 1000 ms", "exit 5 (incomplete)"}, {}},
    {"scale_map_lost", {"scale-map", "grouped_gemm kind=fp8_block d_type=f32 splits=128 N=128 K=128", "--backend", "FAULTY", "--backend-options", "lost"}, 1,
     {"returned 'device lost': lost"}, {}},
    {"no_verb", {}, 2, {}, {"A subcommand is required"}},
    {"unknown_verb", {"frobnicate"}, 2, {}, {"Run with --help for more information"}},
    {"unknown_option", {"run", "--fast"}, 2, {}, {"--fast"}},
    {"unknown_profile", {"run", "--profile", "huge"}, 2, {}, {"assay: --profile: huge not in {smoke,standard,full}\n"}},
    {"misspelt_profile", {"run", "--profile", "stanard"}, 2, {}, {"stanard not in {smoke,standard,full} (did you mean standard?)"}},
    {"unknown_backend", {"run", "--backend", "nul"}, 2, {}, {"backend 'nul' is unknown: expected reference, null", "(did you mean null?)"}},
    {"missing_library", {"run", "--backend", "./no.so"}, 2, {}, {"backend ./no.so does not load: no such file\n"}},
    {"library_without_entry", {"run", "--backend", "libm.so.6"}, 2, {}, {"backend libm.so.6 does not export assay_backend_v1"}},
    {"backend_options", {"run", "--backend-options", "layer=x"}, 2, {}, {"expected layer=fast or layer=scalar"}},
    {"unknown_op", {"repro", "quantise R=3 K=3"}, 2, {}, {"op is quantise", "(did you mean quantize?)"}},
    {"unknown_key", {"repro", "quantize recip=mxfp8 R=3 K=3"}, 2, {}, {"key is recip", "(did you mean recipe?)"}},
    {"unknown_value", {"repro", "quantize recipe=mxfp9 R=3 K=3"}, 2, {}, {"recipe is mxfp9", "(did you mean mxfp8?)"}},
    {"missing_key", {"repro", "quantize", "R=3", "K=3"}, 2, {}, {"recipe"}},
    {"shard_past_the_end", {"run", "--shard", "3/3"}, 2, {}, {"'3/3': expected I/N with I from 0 to N-1"}},
    {"shard_of_nothing", {"run", "--shard", "0/0"}, 2, {}, {"'0/0': expected I/N"}},
    {"shards_without_end", {"run", "--shard", "1/999999999999999999999"}, 2, {}, {"--shard: ", " shards: expected at most 1000000"}},
    {"seed_without_end", {"run", "--random", "1", "--seed", "18446744073709551616"}, 2, {}, {"--seed: 18446744073709551616: expected a number from 0 to"}},
    {"seed_below_nothing", {"run", "--random", "1", "--seed", "-1"}, 2, {}, {"--seed: -1: expected a number from 0 to 9223372036854775807"}},
    {"algorithm_without_end", {"run", "--algorithm", "99999999999999999999"}, 2, {}, {"--algorithm: 99999999999999999999: expected a number"}},
    {"expect_by_nothing", {"run", "--profile", "smoke", "--backend", "reference", "--expect-by", "nosuch"}, 2, {}, {"backend 'nosuch' is unknown"}},
    {"shard_with_a_tail", {"run", "--shard", "0/3x"}, 2, {}, {"'0/3x'"}},
    {"shards_no_number", {"run"}, 2, {}, {"GTEST_TOTAL_SHARDS: 'x' is not a number"}, {{"GTEST_TOTAL_SHARDS", "x"}}},
    {"shard_index_too_large", {"run"}, 2, {}, {"expected an index below the total"}, {{"GTEST_TOTAL_SHARDS", "2"}, {"GTEST_SHARD_INDEX", "2"}}},
    {"threads_no_number", {"run", "splits_to_offsets"}, 2, {}, {"ASSAY_THREADS is zero"}, {{"ASSAY_THREADS", "zero"}}},
    {"golden_nowhere", {"run"}, 2, {}, {"ASSAY_GOLDEN: 'FOLDER/none' is not a folder"}, {{"ASSAY_GOLDEN", "FOLDER/none"}}},
    {"show_negative", {"run", "--show", "-1"}, 2, {}, {"--show: Value -1 not in range "}},
    {"timeout_zero", {"run", "--timeout", "0"}, 2, {}, {"--timeout"}},
    {"op_without_schema", {"list", "--op", "quantize"}, 2, {}, {"--op requires --schema"}},
    {"unknown_op_listed", {"list", "--schema", "--op", "quant"}, 2, {}, {"quant"}},
    {"verify_nothing", {"verify"}, 2, {}, {"FILE is required"}},
    {"matrix_of_nothing", {"matrix"}, 2, {}, {"RESULTS is required"}},
    {"matrix_into_nowhere", {"matrix", "FOLDER/none.jsonl", "--html", "FOLDER/none/page.html"}, 2, {}, {"FOLDER/none/page.html: cannot be written"}},
    {"compute_without_output", {"compute", "GOLDEN/offsets.h5"}, 2, {}, {"--output is required"}},

    {"verify_missing", {"verify", "FOLDER/none.h5"}, 3, {"FOLDER/none.h5: no such file\n", "exit 3 (a fixture is damaged or inconsistent)"}, {}},
    {"verify_cut", {"verify", "FOLDER/cut.h5"}, 3, {"FOLDER/cut.h5: HDF5 cannot open it: truncated file"}, {}},
    {"verify_text", {"verify", "FOLDER/text.h5"}, 3, {"FOLDER/text.h5: "}, {}},
    {"verify_folder", {"verify", "FOLDER"}, 3, {"FOLDER: "}, {}},
    {"verify_goes_on", {"verify", "FOLDER/cut.h5", "GOLDEN/offsets.h5"}, 3, {"cut.h5: HDF5", " passed, 0 failed, 0 not run"}, {}},
    {"compute_into_nowhere", {"compute", "GOLDEN/offsets.h5", "-o", "FOLDER/none/out.h5"}, 2, {}, {"FOLDER/none/out.h5: cannot be written: No such file or directory"}},
    {"compute_cut", {"compute", "FOLDER/cut.h5", "-o", "FOLDER/out.h5"}, 3, {}, {"FOLDER/cut.h5: HDF5 cannot open it: truncated file"}},
    {"matrix_missing", {"matrix", "FOLDER/none.jsonl"}, 3, {}, {"FOLDER/none.jsonl: no such file"}},
    {"matrix_text", {"matrix", "FOLDER/text.h5"}, 3, {}, {"FOLDER/text.h5: line 1: is not a header of a file of --results"}},
    {"matrix_folder", {"matrix", "FOLDER"}, 3, {}, {"FOLDER: "}},
    {"golden_check_nowhere", {"golden", "check", "--folder", "FOLDER/none"}, 3, {}, {"FOLDER/none: no such folder"}},
    {"doctor_without_fixtures", {"doctor"}, 3, {"FAULT fixtures     none in FOLDER/none"}, {}, {{"ASSAY_GOLDEN", "FOLDER/none"}}},

    {"unmatched_word", {"run", "nosuchword"}, 4, {"no case of profile standard and no fixture matches 'nosuchword'"}, {}},
    {"unmatched_among_others", {"run", "quantize", "nosuchword"}, 4, {"'nosuchword'"}, {}},
    {"no_common_case", {"run", "recipe=nvfp4", "kind=fp8_block", "--profile", "smoke"}, 4, {"exit 4 (nothing selected)"}, {}},
    {"unmatched_listed", {"list", "nosuchword"}, 4, {}, {"matches 'nosuchword'"}},
    {"no_such_path", {"verify", "GOLDEN/offsets.h5", "--case", "nosuch"}, 4, {"no case has that path"}, {}},
    // A shard may be empty if others have the selected cases; if nothing is selected, every shard says so.
    {"empty_shard", {"run", "splits_to_offsets", "--profile", "smoke", "--shard", "63/64"}, 0,
     {"0 cases in this shard (63/64): others have what was selected\nPASS ", " 0 passed, 0 failed"}, {}},
    {"empty_shard_by_environment", {"run", "splits_to_offsets", "--profile", "smoke"}, 0, {"0 cases in this shard (63/64)", "PASS "}, {},
     {{"GTEST_TOTAL_SHARDS", "64"}, {"GTEST_SHARD_INDEX", "63"}}},
    {"fixtures_of_another_shard", {"run", "offsets.h5", "--profile", "smoke", "--shard", "1/2"}, 0, {" passed, 0 failed", "PASS "}, {}},
    {"shard_of_no_common_case", {"run", "recipe=nvfp4", "kind=fp8_block", "--profile", "smoke", "--shard", "1/2"}, 4, {"exit 4 (nothing selected)"}, {}},
    {"all_absent", faulty("absent"), 4, {"not run, COUNT cases: absent", "0 passed, 0 failed, COUNT not run"}, {}},
    {"all_absent_and_self_check", {"run", "--profile", "smoke", "--backend", "FAULTY", "--backend-options", "absent"}, 4,
     {"self-check", " 0 passed, 0 failed", "exit 4 (nothing selected)"}, {}, {{"ASSAY_GOLDEN", "FOLDER/empty"}}},
    {"golden_build_nowhere", {"golden", "build", "--folder", "FOLDER/none"}, 3, {}, {"FOLDER/none: no such folder"}},
    {"golden_in_a_file", {"golden", "check", "--folder", "FOLDER/text.h5"}, 3, {}, {"FOLDER/text.h5: is no folder"}},
    {"golden_build_nothing", {"golden", "build", "--folder", "FOLDER"}, 4, {"no lists of cases in FOLDER/cases"}, {}},

    {"late", faulty("late", {"--timeout", "1"}), 5, {"returned 'timeout': not finished after 1000 ms", "exit 5 (incomplete)"}, {}},
    {"unproven", faulty("unproven"), 6, {"skip    without proof: declared absent, but the call returned 'ok'", "exit 6 (a skip without proof)"}, {}},
    // A case that loses the device fails; the next one gets a new process.
    {"lost", faulty("lost"), 1, {"returned 'device lost': lost", "0 passed, COUNT failed", "exit 1 (failed)"}, {}},
    {"full", faulty("full"), 9, {"could not allocate", "(out of memory): full"}, {}},
    {"closed", faulty("closed"), 9, {}, {"backend faulty does not open (device lost): closed"}},
    {"doctor_closed", {"doctor", "--backend", "FAULTY", "--backend-options", "closed"}, 9, {"FAULT backend      backend faulty does not open"}, {}},
};
INSTANTIATE_TEST_SUITE_P(Calls, Program, testing::ValuesIn(kCalls), [](const auto& each) { return each.param.name; });

// If several codes apply, the first of 9, 3, 1, 6, 5 is returned, and all are listed.
TEST(ExitCodes, TheGravestIsReturnedAndAllAreListed) {
  const golden::TemporaryFolder folder;
  std::ofstream(folder / "text.h5") << "not HDF5\n";
  const std::string offsets = std::string(ASSAY_GOLDEN_FOLDER) + "/offsets.h5", text = (folder / "text.h5").string();
  Ran ran = assay({"verify", text, offsets, "--backend", "null"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(contains(ran.out, "exit 1 (failed), 3 (a fixture is damaged or inconsistent)")) << ran.out;
  ran = assay({"verify", text, offsets, "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "full"});
  EXPECT_EQ(ran.code, 9);
  EXPECT_TRUE(contains(ran.out, "exit 3 (a fixture is damaged or inconsistent), 9 (the machine failed)")) << ran.out;
  ran = assay({"verify", text, offsets, "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "unproven"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(contains(ran.out, "6 (a skip without proof)")) << ran.out;
}

// Ctrl-C: the results so far are reported, and the exit code says that the run is incomplete. A second one ends the program at
// once.
TEST(Interrupt, OnceTellsWhatWasFound) {
  const golden::TemporaryFolder folder;
  const std::filesystem::path started = folder / "started";
  ProcessOptions options;
  options.meanwhile = [&](pid_t child) {
    EXPECT_TRUE(appears(started));
    kill(child, SIGINT);
  };
  const Ran ran = assay({"run", "--profile", "smoke", "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "slow=" + started.string()}, options);
  EXPECT_EQ(ran.code, 5) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "interrupted before the end")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "exit 5 (incomplete)")) << ran.out;
  EXPECT_FALSE(contains(ran.out, "self-check")) << ran.out;
}

TEST(Interrupt, TwiceEndsAtOnce) {
  const golden::TemporaryFolder folder;
  const std::filesystem::path started = folder / "started";
  ProcessOptions options;
  options.meanwhile = [&](pid_t child) {
    EXPECT_TRUE(appears(started));
    kill(child, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));  // signals at the same time count as one
    kill(child, SIGINT);
  };
  const Ran ran = assay({"run", "--profile", "smoke", "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "hang=" + started.string()}, options);
  EXPECT_EQ(ran.signal, SIGINT) << ran.code << ran.out;
}

// Calls that never finish: each case gets the time limit of one call, and after five in a row the rest is not tried.
TEST(Busy, TheRestIsNotTried) {
  const golden::TemporaryFolder folder;
  const std::string json = (folder / "run.json").string();
  ProcessOptions options;
  options.environment.emplace_back("ASSAY_GOLDEN", folder.path().string());  // no fixtures
  const std::string cases = (folder / "seven.txt").string();
  for (int i = 1; i <= 7; ++i) std::ofstream(cases, std::ios::app) << "splits_to_offsets splits=" << i << "\n";
  const Ran ran = assay({"run", "--cases", cases, "--timeout", "1", "--json", json, "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "busy"}, options);
  EXPECT_EQ(ran.code, 5) << ran.signal << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "returned 'timeout': not finished after 1000 ms")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "not tried, 2 cases: one case after another did not finish")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "exit 5 (incomplete)")) << ran.out;
  std::ifstream file(json);
  const nlohmann::json reported = nlohmann::json::parse(file);
  EXPECT_EQ(reported.at("exit"), 5);
  int unfinished = 0, untried = 0;
  for (const auto& each : reported.at("cases")) {
    unfinished += each.at("verdict") == "unfinished";
    untried += each.at("verdict") == "not tried";
  }
  EXPECT_EQ(unfinished, 5);
  EXPECT_EQ(untried, 2);
}

TEST(Busy, OneCaseAlone) {
  const Ran ran = assay({"repro", "splits_to_offsets splits=1,2", "--timeout", "1", "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "busy"});
  EXPECT_EQ(ran.code, 5) << ran.signal << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "returned 'timeout': not finished after 1000 ms")) << ran.out;
}

// A call that is running when the program is asked to end has two seconds, whatever the time limit of a call is.
TEST(Busy, AnInterruptEndsAWaitForEver) {
  const golden::TemporaryFolder folder;
  const std::filesystem::path started = folder / "started";
  ProcessOptions options;
  options.meanwhile = [&](pid_t child) {
    if (appears(started)) kill(child, SIGTERM);
  };
  const Ran ran = assay({"run", "offsets", "--profile", "smoke", "--timeout", "300", "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "stuck=" + started.string()}, options);
  EXPECT_EQ(ran.code, 5) << ran.signal << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "copy_to_host() had not returned when the program was asked to end")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "interrupted before the end")) << ran.out;
}

// timeout(1) signals the program and its process group: that counts as one interrupt. SIGHUP is an interrupt too.
TEST(Interrupt, TwoSignalsAtOnceAreOne) {
  const golden::TemporaryFolder folder;
  const std::string json = (folder / "run.json").string();
  for (const int signal : {SIGTERM, SIGHUP}) {
    const std::filesystem::path started = folder / ("started" + std::to_string(signal));
    ProcessOptions options;
    options.meanwhile = [&](pid_t child) {
      EXPECT_TRUE(appears(started));
      kill(child, signal);
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      kill(child, signal);
    };
    const Ran ran = assay({"run", "--profile", "smoke", "--json", json, "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "slow=" + started.string()}, options);
    EXPECT_EQ(ran.code, 5) << ran.signal << ran.out << ran.err;
    std::ifstream file(json);
    ASSERT_TRUE(file.good());
    EXPECT_EQ(nlohmann::json::parse(file).at("exit"), 5);
    std::filesystem::remove(json);
  }
}

}  // namespace
}  // namespace assay::conformance
