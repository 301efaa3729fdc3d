// Events: impossible times, functions that fail, and events that change what a stream does are found. A backend without events
// has no fault.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <ostream>
#include <thread>

#include "conformance/judge/calls/contract.h"
#include "conformance/tests/judge/late_backend.h"
#include "conformance/tests/judge/rogue_backend.h"

namespace assay::conformance {
namespace {

Judgement judged(const assay_backend& table) {
  const CaseLine line = parse_case_line("splits_to_offsets splits=3,0,5 stride=24 contract=1");
  JudgeOptions options;
  options.title = to_text(line);
  options.reproduce = "assay repro";
  Backend backend(table);
  return judge_contract(backend, generate(line), options);
}

struct Fault {
  const char* name;
  const char* text;  // empty: right
  void (*plant)(Rogue&);
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class EventFault : public testing::TestWithParam<Fault> {};

TEST_P(EventFault, IsJudged) {
  const Fault& fault = GetParam();
  Rogue rogue;
  fault.plant(rogue);
  const Judgement judgement = judged(Rogue::table());
  EXPECT_EQ(judgement.verdict, fault.text[0] == '\0' ? Verdict::passed : Verdict::failed) << judgement.text;
  EXPECT_TRUE(contains(judgement.text, fault.text)) << judgement.text;
}

template <class Change>
std::function<assay_status(double&)> says(Change change) {
  return [change](double& milliseconds) mutable {
    milliseconds = change(milliseconds);
    return ASSAY_OK;
  };
}

// clang-format off
const Fault kFaults[] = {
    {"none", "", [](Rogue&) {}},
    {"clock_that_stands", "", [](Rogue& rogue) { rogue.event_elapsed = says([](double) { return 0.0; }); }},
    {"refuses_the_wrong_order", "", [](Rogue& rogue) {
       rogue.event_elapsed = [&rogue](double& milliseconds) {
         rogue.error = milliseconds < 0 ? "an event was not recorded, or stands behind the other" : "";
         return milliseconds < 0 ? ASSAY_FAILED : ASSAY_OK;
       };
       rogue.execute = [&rogue](const assay_call& call) {
         rogue.error.clear();
         return rogue.honest(call);
       };
     }},
    {"negative", "says -1 milliseconds: expected a finite number of at least 0", [](Rogue& rogue) { rogue.event_elapsed = says([](double) { return -1.0; }); }},
    {"order_exchanged", "milliseconds: expected a finite number of at least 0", [](Rogue& rogue) {
       rogue.event_record = [] {
         std::this_thread::sleep_for(std::chrono::milliseconds(1));  // no two at one time
         return ASSAY_OK;
       };
       rogue.event_elapsed = says([](double time) { return -time; });
     }},
    {"nan", "says nan milliseconds: expected a finite number", [](Rogue& rogue) { rogue.event_elapsed = says([](double) { return std::nan(""); }); }},
    {"infinite", "says inf milliseconds: expected a finite number",
     [](Rogue& rogue) { rogue.event_elapsed = says([](double) { return std::numeric_limits<double>::infinity(); }); }},
    {"microseconds", "have passed: expected milliseconds", [](Rogue& rogue) {
       rogue.event_record = [] {
         std::this_thread::sleep_for(std::chrono::milliseconds(1));
         return ASSAY_OK;
       };
       rogue.event_elapsed = says([](double time) { return 1000 * time; });
     }},
    {"time_since_the_machine_started", "have passed: expected milliseconds", [](Rogue& rogue) { rogue.event_elapsed = says([](double time) { return 1e9 + time; }); }},
    {"shorter_from_time_to_time", "up to one that was recorded before it", [](Rogue& rogue) {
       rogue.event_elapsed = says([next = 2.0](double) mutable { return next /= 2; });
     }},
    {"elapsed_fails", "event_elapsed() returned 'failed' for two events that were recorded and waited for: no clock", [](Rogue& rogue) {
       rogue.error = "no clock";
       rogue.event_elapsed = [](double&) { return ASSAY_FAILED; };
     }},
    {"create_fails", "event_create() returned 'out of memory': no events", [](Rogue& rogue) {
       rogue.error = "no events";
       rogue.event_create = [] { return ASSAY_OUT_OF_MEMORY; };
     }},
    {"record_fails", "event_record() returned 'invalid argument': no such stream", [](Rogue& rogue) {
       rogue.error = "no such stream";
       rogue.event_record = [] { return ASSAY_INVALID_ARGUMENT; };
     }},
    {"refuses_the_wrong_order_without_a_reason", "event_elapsed() of two events in the wrong order returned 'failed', and last_error() is not one line",
     [](Rogue& rogue) {
       rogue.silent = true;
       rogue.event_elapsed = [asked = 0](double&) mutable { return ++asked % 4 == 3 ? ASSAY_FAILED : ASSAY_OK; };
     }},
    {"unknown_status", "of an event that was not recorded returned the status 77: expected one of assay_status",
     [](Rogue& rogue) { rogue.event_elapsed = [asked = 0](double&) mutable { return ++asked % 4 == 0 ? static_cast<assay_status>(77) : ASSAY_OK; }; }},
    {"record_spoils_the_call", "the right call, with events before and after it", [](Rogue& rogue) {
       static bool recorded;
       recorded = false;
       rogue.event_record = [] {
         recorded = true;
         return ASSAY_OK;
       };
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         if (std::exchange(recorded, false)) bytes(call, "offsets")[8] ^= 1;
         return status;
       };
     }},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(All, EventFault, testing::ValuesIn(kFaults),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Events, NoneAreNoFault) {
  Rogue rogue;
  assay_backend table = Rogue::table();
  table.event_create = nullptr;
  table.event_destroy = nullptr;
  table.event_record = nullptr;
  table.event_elapsed = nullptr;
  const Judgement judgement = judged(table);
  EXPECT_EQ(judgement.verdict, Verdict::passed) << judgement.text;
}

TEST(Events, KeepTheOrderOfTheirStream) {
  for (const bool frees : {false, true}) {
    Late late;
    late.event_frees_stream = frees;
    const Judgement judgement = judged(Late::table());
    // This backend also accepts some wrong calls, which are judged after the right ones.
    EXPECT_EQ(frees, contains(judgement.text, "the right call, with events before and after it")) << judgement.text;
    EXPECT_EQ(frees, !contains(judgement.text, "expected a refusal")) << judgement.text;
  }
}

}  // namespace
}  // namespace assay::conformance
