// Contents that no call may have: backends that do not report them, report them in a wrong way, or do damage. The failure names
// the fault.

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <set>

#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/judge/calls/content_faults.h"
#include "conformance/judge/calls/faulty_contents.h"
#include "conformance/tests/judge/rogue_backend.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr const char* kQuantize = "quantize recipe=block_1x128 splits=5,0,6,3 K=40 seed=3 fault=negative_split";
constexpr const char* kOffsets = "splits_to_offsets splits=3,0,5 stride=24 fault=negative_split";
constexpr const char* kProduct = "grouped_gemm kind=bf16 splits=5,0,6,3 N=8 K=32 seed=3 fault=excess_rows";

Judgement judged(const std::string& text, const assay_backend& table = Rogue::table()) {
  const CaseLine line = parse_case_line(text);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options;
  options.wanted = &wanted;
  options.title = to_text(line);
  options.reproduce = "assay repro";
  options.timeout_ms = 250;
  Backend backend(table);
  const Case problem = generate(line);
  return judge_faulty_contents(backend, problem, content_faults(line, problem), options);
}

// The reference, behaving like a device: it accepts every call and reports faults later. Where the reference refuses, it does the
// damage that the test asks for.
struct Device {
  bool silent = false, sticky = false;
  int reports = 1;  // waits that report it
  std::function<void(const assay_call&)> damage;
  int left = 0;

  void install(Rogue& rogue) {
    rogue.execute = [this, &rogue](const assay_call& call) {
      const assay_status status = rogue.honest(call);
      if (status == ASSAY_OK || rogue.capturing) return status;
      if (damage) damage(call);
      if (!silent) left = sticky ? 1'000'000 : reports;
      return ASSAY_OK;
    };
    rogue.synchronize = [this, &rogue] {
      if (left == 0) return ASSAY_OK;
      --left;
      rogue.error = "the status word says negative_split";
      return ASSAY_FAILED;
    };
  }
};

struct Fault {
  const char* name;
  const char* line;
  std::vector<std::string> reported;
  void (*plant)(Device&, Rogue&);
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class FaultyContents : public testing::TestWithParam<Fault> {};

TEST_P(FaultyContents, AreJudged) {
  const Fault& fault = GetParam();
  Rogue rogue;
  Device device;
  device.install(rogue);
  if (fault.plant != nullptr) fault.plant(device, rogue);
  assay_backend table = Rogue::table();
  table.capture_begin = nullptr, table.capture_end = nullptr, table.graph_launch = nullptr, table.graph_destroy = nullptr;
  const Judgement judgement = judged(fault.line, table);
  EXPECT_EQ(judgement.verdict, fault.reported.empty() ? Verdict::passed : Verdict::failed) << judgement.text;
  for (const std::string& each : fault.reported)
    EXPECT_NE(judgement.text.find(each), std::string::npos) << each << "\n" << judgement.text;
}

// clang-format off
const Fault kFaults[] = {
    {"reported_later", kQuantize, {}, nullptr},
    {"reported_later_of_offsets", kOffsets, {}, nullptr},
    {"reported_later_of_products", kProduct, {}, nullptr},
    {"outputs_hold_anything", kQuantize, {}, [](Device& device, Rogue&) {
       device.damage = [](const assay_call& call) { std::memset(call.outputs[0].data, 0x11, static_cast<std::size_t>(call.outputs[0].bytes)); };
     }},
    {"ignored", kQuantize, {"with splits[0] = -1 (5 is right): returned 'ok', and so did the wait behind it", "splits[3] = -3"},
     [](Device& device, Rogue&) { device.silent = true; }},
    {"ignored_by_offsets", kOffsets, {"with splits[0] = -1 (3 is right): returned 'ok'"}, [](Device& device, Rogue&) { device.silent = true; }},
    {"ignored_by_products", kProduct, {"with splits[3] = 4 (3 is right): returned 'ok'"}, [](Device& device, Rogue&) { device.silent = true; }},
    {"writes_past_an_output", kQuantize, {"with splits[0] = -1 (5 is right): returned 'failed', and changed memory: ", "past its end"},
     [](Device& device, Rogue&) {
       device.damage = [](const assay_call& call) {
         auto* const data = static_cast<std::uint8_t*>(call.outputs[0].data);
         std::memset(data + call.outputs[0].bytes, 0x11, 64);
       };
     }},
    {"changes_an_input", kQuantize, {"returned 'failed', and changed memory: in/x: the input was changed"},
     [](Device& device, Rogue&) { device.damage = [](const assay_call& call) { bytes(call, "x")[7] ^= 1; }; }},
    {"reports_and_the_error_sticks", kQuantize, {"cannot be read after the wait that failed", "the right call, after one with splits[0] = -1"},
     [](Device& device, Rogue&) { device.sticky = true; }},
    {"reports_twice", kQuantize, {"with splits[0] = -1 (5 is right)", "cannot be read after the wait that failed"},
     [](Device& device, Rogue&) { device.reports = 2; }},
    {"says_nothing", kQuantize, {"returned 'failed', and last_error() says nothing"}, [](Device&, Rogue& rogue) { rogue.silent = true; }},
    {"says_two_lines", kQuantize, {"last_error() has several lines"}, [](Device& device, Rogue& rogue) {
       rogue.synchronize = [&device, &rogue] {
         if (device.left == 0) return ASSAY_OK;
         --device.left;
         rogue.error = "one\ntwo";
         return ASSAY_FAILED;
       };
     }},
    {"another_status", kQuantize, {"returned 'out of memory': expected 'invalid argument', 'not supported' or 'failed'"},
     [](Device& device, Rogue& rogue) {
       rogue.synchronize = [&device, &rogue] {
         if (device.left == 0) return ASSAY_OK;
         --device.left;
         rogue.error = "no room";
         return ASSAY_OUT_OF_MEMORY;
       };
     }},
    {"loses_the_device", kQuantize, {"with splits[0] = -1 (5 is right): returned 'device lost'"}, [](Device& device, Rogue& rogue) {
       rogue.synchronize = [&device] { return device.left == 0 ? ASSAY_OK : ASSAY_DEVICE_LOST; };
     }},
    // The remains of one call spoil the next.
    {"spoils_the_next_call", kQuantize, {"when    the right call, after one with splits[0] = -1 (5 is right)", "rowwise_data"},
     [](Device& device, Rogue& rogue) {
       static bool met = false;
       met = false;
       device.damage = [](const assay_call&) { met = true; };
       rogue.execute = [&device, &rogue, before = rogue.execute](const assay_call& call) {
         const bool spoiled = met;
         const assay_status status = before(call);
         if (spoiled && status == ASSAY_OK && device.left == 0) bytes(call, "rowwise_data")[0] ^= 1;
         return status;
       };
     }},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Backends, FaultyContents, testing::ValuesIn(kFaults), [](const auto& each) { return each.param.name; });

// The reference itself: it reads the contents during the call, and also launches captured calls.
TEST(FaultyContentsOfTheCatalogue, AreReportedByTheReference) {
  std::set<std::string> words, ops, layouts;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (fault_word(line).empty()) continue;
    words.insert(std::string(fault_word(line)));
    ops.insert(line.op + " " + std::string(fault_word(line)));
    if (line.op == "grouped_gemm") layouts.insert(line.text("grouped_layout"));
    const Case problem = generate(line);
    const std::vector<ContentFault> faults = content_faults(line, problem);
    EXPECT_GE(faults.size(), 2u) << to_text(line);
    for (const ContentFault& each : faults) {
      int changed = 0;
      for (const auto& [name, tensor] : each.problem.in) {
        EXPECT_EQ(tensor.shape, problem.in.at(name).shape);
        changed += tensor.bytes != problem.in.at(name).bytes;
      }
      EXPECT_EQ(changed, 1) << each.what;
    }
    EXPECT_EQ(judged(to_text(line), *reference_backend()).verdict, Verdict::passed) << to_text(line);
  }
  EXPECT_EQ(words, (std::set<std::string>{"negative_split", "excess_rows", "wrong_group", "wrong_row", "sum_overflow",
                                          "unaligned_rows"}));
  for (const char* const placed : {"m_indices", "psum", "masked"}) EXPECT_EQ(layouts.count(placed), 1u) << placed;
  // Every op with the key has a line for each of its values.
  for (const OpSchema& op : case_schema()) {
    const KeySchema* key = find_key(op, "fault");
    if (key == nullptr) continue;
    for (const std::string_view word : words_of(key->allowed)) {
      const bool met = word == "none" || ops.count(std::string(op.op) + " " + std::string(word)) == 1;
      EXPECT_TRUE(met) << op.op << " " << word;
    }
  }
}

TEST(FaultyContentsOfALine, AreOneOfItsWords) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      judged(text, *reference_backend());
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of("quantize recipe=mxfp8 R=33 K=64 fault=negative_split").find("splits, which hold the fault"),
            std::string::npos);
  EXPECT_NE(error_of("quantize recipe=mxfp8 splits=32,0 K=64 fault=unaligned_rows").find("recipe=nvfp4"), std::string::npos);
  EXPECT_NE(error_of("quantize recipe=mxfp8 splits=32,0 K=64 fault=negative_split contract=1").find("fault"), std::string::npos);
  EXPECT_NE(error_of("splits_to_offsets splits=3,0,5 fault=excess_rows").find("fault"), std::string::npos);
  const std::string product = "grouped_gemm kind=bf16 splits=5,3 N=8 K=16 grouped_layout=";
  EXPECT_NE(error_of(product + "m_indices fault=negative_split").find("wrong_group"), std::string::npos);
  EXPECT_NE(error_of(product + "psum fault=wrong_group").find("m_indices"), std::string::npos);
  EXPECT_NE(error_of("grouped_gemm kind=nvfp4 splits=16,16 N=16 K=32 grouped_layout=psum fault=unaligned_rows")
                .find("follow one another"),
            std::string::npos);
  EXPECT_NE(error_of("permute R=0 K=8 fault=wrong_row").find("a row"), std::string::npos);
  EXPECT_NE(error_of("quantize recipe=mxfp8 splits=0x0 K=64 fault=negative_split").find("a group"), std::string::npos);
}

}  // namespace
}  // namespace assay::conformance
