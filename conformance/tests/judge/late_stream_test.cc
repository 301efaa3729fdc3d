// Order on streams: asynchronous backends that break the order, each in one way, are found.

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <set>
#include <string>

#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/replay_steps.h"
#include "conformance/judge/call_runner.h"
#include "conformance/judge/calls/late_stream.h"
#include "conformance/judge/calls/scenario.h"
#include "conformance/tests/judge/late_backend.h"

namespace assay::conformance {
namespace {

Judgement judged(const std::string& text) {
  const CaseLine line = parse_case_line(text);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options;
  options.title = to_text(line);
  options.reproduce = "assay repro";
  Backend backend(Late::table());
  if (line.op == "scenario") return judge_scenario(backend, line, options);
  options.wanted = &wanted;
  if (replay_plan(line).count > 0) return judge_replay(backend, replay_steps(line), options);
  return judge(backend, generate(line), nullptr, options);
}

// Cases, some of which are made on a busy stream, as for every op.
std::vector<std::string> single_calls() {
  std::vector<std::string> lines;
  int late = 0;
  for (int rows = 1; late < 2; ++rows) {
    lines.push_back("splits_to_offsets splits=3,0," + std::to_string(rows));
    const CaseLine line = parse_case_line(lines.back());
    late += is_made_late(variety_of(line.op, name_of(line))) ? 1 : 0;
  }
  return lines;
}

constexpr const char* kReplayed = "splits_to_offsets splits=3,0,5 replay=4:splits";
constexpr const char* kScenario = "scenario recipe=none steps=forward/dgrad,wgrad splits=3,0,5 N=8 K=16 replay=3:data,splits";
// Several different calls in a graph; two layers, each on its own stream.
constexpr const char* kDifferentCalls =
    "scenario recipe=tensor_current steps=weights,quantize,TN,dgrad splits=3,0,5 N=8 K=16 replay=4:data,splits";
constexpr const char* kStreams =
    "scenario recipe=none steps=forward,wgrad modules=2 order=streams splits=3,0,5 N=8 K=16 replay=4:data,splits";

struct Fault {
  const char* name;
  bool Late::*planted;
  bool single, replayed, scenario,
      streams;  // found by single calls, by replays, by graphs of several calls, by layers on a stream each
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

const Fault kFaults[] = {
    {"calls_on_a_stream_of_its_own", &Late::runs_elsewhere, true, true, true, true},
    {"graphs_on_a_stream_of_its_own", &Late::launches_elsewhere, false, true, true, false},
    {"graphs_where_they_were_captured", &Late::launches_where_captured, false, true, true, false},
    {"later_calls_of_a_graph_on_a_stream_of_its_own", &Late::later_calls_elsewhere, false, false, true, false},
    {"synchronize_does_not_wait", &Late::poor_synchronize, true, true, true, true},
    {"synchronize_waits_for_one_stream_only", &Late::poor_second_synchronize, true, true, true, true},
    {"copy_to_host_does_not_wait", &Late::poor_copy_to_host, true, true, true, false},
    {"copies_on_a_stream_of_its_own", &Late::copies_elsewhere, true, true, true, false},
};

// A fault of order is a race, which may go unnoticed while other programs keep the cores busy: one of several runs must fail.
bool is_found(const std::string& text, int runs) {
  for (int run = 0; run < runs; ++run) {
    if (judged(text).verdict == Verdict::failed) return true;
  }
  return false;
}
constexpr int kRuns = 50;

class Order : public testing::TestWithParam<Fault> {};

TEST_P(Order, IsKept) {
  Late late;
  late.*GetParam().planted = true;
  int found = 0;
  for (const std::string& line : single_calls()) found += judged(line).verdict == Verdict::failed ? 1 : 0;
  EXPECT_EQ(found > 0, GetParam().single);
  EXPECT_EQ(is_found(kReplayed, GetParam().replayed ? kRuns : 1), GetParam().replayed);
  EXPECT_EQ(is_found(kDifferentCalls, GetParam().scenario ? kRuns : 1), GetParam().scenario);
  // Inputs are written before layers on their own streams begin, so some faults are found there only by chance.
  if (GetParam().streams) {
    EXPECT_TRUE(is_found(kStreams, kRuns));
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, Order, testing::ValuesIn(kFaults), [](const auto& each) { return each.param.name; });

TEST(Order, AnAsynchronousBackendThatKeepsItPasses) {
  const Late late;
  for (const std::string& line : single_calls()) {
    const Judgement judgement = judged(line);
    EXPECT_EQ(judgement.verdict, Verdict::passed) << judgement.text;
  }
  for (const char* line : {kReplayed, kScenario, kDifferentCalls, kStreams}) {
    const Judgement judgement = judged(line);
    EXPECT_EQ(judgement.verdict, Verdict::passed) << judgement.text;
  }
}

TEST(Order, TheTextSaysHowTheCallWasMade) {
  Late late;
  late.poor_copy_to_host = true;  // right wherever the stream has been waited for
  bool reported = false;
  for (const std::string& line : single_calls())
    reported = reported || judged(line).text.find("behind other work on the stream") != std::string::npos;
  EXPECT_TRUE(reported);
}

// The fills that keep a stream busy, once the time of the backend's fills is known.
template <const assay_backend& (*of)()>
int fills_of_a_busy_stream() {
  static int fills = 0;
  static const assay_backend table = [] {
    assay_backend made = of();
    made.fill = [](assay_context* context, assay_stream* stream, void* memory, std::uint8_t value, std::int64_t bytes) {
      ++fills;
      return of().fill(context, stream, memory, value, bytes);
    };
    return made;
  }();
  Backend backend(table);
  assay_stream* stream = nullptr;
  backend.check(table.stream_create(backend.context(), &stream), "create a stream");
  int counted = 0;
  for (int run = 0; run < 3; ++run) {
    fills = 0;
    const LateStream busy(backend, stream);
    counted = fills;
    backend.check(table.synchronize(backend.context(), stream, 10'000), "wait for a stream");
  }
  table.stream_destroy(backend.context(), stream);
  return counted;
}
const assay_backend& reference_table() { return *reference_backend(); }

// A stream whose work is done when the call returns cannot be kept busy: filling memory would only cost time.
TEST(Order, AStreamIsKeptBusyWhereItCanBe) {
  EXPECT_EQ(fills_of_a_busy_stream<&reference_table>(), 0);
  const Late late;
  EXPECT_GT(fills_of_a_busy_stream<&Late::table>(), 0);
}

TEST(Order, EveryOpIsTriedOnABusyStream) {
  std::map<std::string, int> late;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario" || replay_plan(line).count > 0) continue;
    late[line.op] += is_made_late(variety_of(line.op, name_of(line))) ? 1 : 0;
  }
  EXPECT_EQ(late.size(), 16u);
  for (const auto& [op, count] : late) EXPECT_GT(count, 0) << op;
}

}  // namespace
}  // namespace assay::conformance
