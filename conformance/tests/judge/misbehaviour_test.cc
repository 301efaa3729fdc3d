// Backends that break the rules of backend.h, one rule each. The judge must name the fault.

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

#include "conformance/tests/judge/rogue_backend.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

constexpr const char* kOffsets = "splits_to_offsets splits=3,0,5";  // one input of 24 bytes, one output of 32
constexpr const char* kQuantize = "quantize recipe=block_1x128 splits=5,0,128 extra_rows=7 K=136 seed=22";
constexpr const char* kSkipped = "quantize recipe=mxfp8 noop=1 R=33 K=64 seed=21";  // the skip flag: nothing is written
constexpr const char* kProduct = "grouped_gemm kind=bf16 splits=5,0,6 N=8 K=32 extra_rows=2 seed=3";

struct Fault {
  const char* name;
  const char* line;
  Verdict verdict;
  std::vector<std::string> reported;  // parts of the text
  void (*plant)(Rogue&);
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class Misbehaviour : public testing::TestWithParam<Fault> {};

TEST_P(Misbehaviour, IsToldByName) {
  const Fault& fault = GetParam();
  Rogue rogue;
  fault.plant(rogue);
  JudgeOptions options;
  options.timeout_ms = 250;
  const Judgement judgement = judge_text(rogue, fault.line, options);
  EXPECT_EQ(name_of(judgement.verdict), name_of(fault.verdict)) << judgement.text;
  for (const std::string& part : fault.reported) EXPECT_TRUE(contains(judgement.text, part)) << part << "\nis not in\n" << judgement.text;
  if (fault.verdict == Verdict::passed) {
    EXPECT_EQ(judgement.text, "");
  } else {
    const std::string headed = "FAILED  " + to_text(parse_case_line(fault.line));
    const bool is_reason = fault.verdict == Verdict::not_run;
    EXPECT_EQ(judgement.text.starts_with(headed), !is_reason) << judgement.text;
    EXPECT_EQ(judgement.text.ends_with("repro   assay repro"), !is_reason) << judgement.text;
  }
  // What a call that never finishes may still write to is not given back, which could wait for it besides.
  EXPECT_EQ(rogue.buffers.empty(), fault.verdict != Verdict::unfinished) << rogue.buffers.size() << " buffers are not released";
}

const Fault kFaults[] = {
    {"nothing", kOffsets, Verdict::passed, {}, [](Rogue&) {}},
    {"nothing_with_rows_beyond", kQuantize, Verdict::passed, {}, [](Rogue&) {}},
    {"nothing_with_workspace", kProduct, Verdict::passed, {}, [](Rogue& rogue) {
       rogue.workspace = 100;
       rogue.execute = [&rogue](const assay_call& call) {
         std::memset(call.workspace, 1, static_cast<std::size_t>(call.workspace_bytes));
         return rogue.honest(call);
       };
     }},

    // Memory that is not the call's.
    {"one_byte_before", kOffsets, Verdict::failed, {"  memory  offsets: 1 bytes written before its start (first at -1: 0x5a)"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         bytes(call, "offsets")[-1] = 0x5a;
         return rogue.honest(call);
       };
     }},
    {"one_byte_past", kOffsets, Verdict::failed, {"  memory  offsets: 1 bytes written past its end (first at +0: 0x5a)"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         bytes(call, "offsets")[32] = 0x5a;
         return rogue.honest(call);
       };
     }},
    {"far_past", kOffsets, Verdict::failed, {"  memory  offsets: 4 bytes written past its end (first at +1000: 0x00)"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         std::memset(bytes(call, "offsets") + 32 + 1000, 0, 4);
         return rogue.honest(call);
       };
     }},
    {"far_beyond_the_workspace", kProduct, Verdict::failed, {"  memory  workspace: 12 bytes written past its end (first at +70000: 0x00), in the margin"}, [](Rogue& rogue) {
       rogue.workspace = 100;
       rogue.execute = [&rogue](const assay_call& call) {
         std::memset(static_cast<std::uint8_t*>(call.workspace) + 100 + 70'000, 0, 12);
         return rogue.honest(call);
       };
     }},
    {"two_thousand_bytes_before_an_output", kProduct, Verdict::failed, {"  memory  d: 4 bytes written before its start (first at -2000: 0x00)"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         std::memset(bytes(call, "d") - 2000, 0, 4);
         return rogue.honest(call);
       };
     }},
    {"another_tensor", kProduct, Verdict::failed, {"  memory  in/w: the input was changed, first at byte 3: ", " d)"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         bytes(call, "w")[3] ^= 1;
         return rogue.honest(call);
       };
     }},
    {"the_canaries_own_bytes", kOffsets, Verdict::failed, {"over the second poison (0xa5) only", "offsets: 1 bytes written past its end"}, [](Rogue& rogue) {
       // The value that is there in the first run: only the second run can show the write.
       rogue.execute = [&rogue, found = std::uint8_t{0}](const assay_call& call) mutable {
         if (rogue.calls == 1) found = bytes(call, "offsets")[40];
         bytes(call, "offsets")[40] = found;
         return rogue.honest(call);
       };
     }},
    {"around_an_input", kOffsets, Verdict::failed, {"  memory  in/splits: 8 bytes written past its end (first at +0: 0x00)"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         std::memset(bytes(call, "splits") + 24, 0, 8);
         return rogue.honest(call);
       };
     }},
    {"an_input", kOffsets, Verdict::failed, {"  memory  in/splits: the input was changed, first at byte 16: 0x05 became 0x06"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         bytes(call, "splits")[16] = 6;
         return status;
       };
     }},
    {"past_the_workspace", kProduct, Verdict::failed, {"  memory  workspace: 1 bytes written past its end (first at +0: 0x00)"}, [](Rogue& rogue) {
       rogue.workspace = 100;
       rogue.execute = [&rogue](const assay_call& call) {
         static_cast<std::uint8_t*>(call.workspace)[100] = 0;
         return rogue.honest(call);
       };
     }},

    // Outputs.
    {"off_by_one", kOffsets, Verdict::failed, {"  output  offsets i64 [4]: 1 of 4 differ", "index 3: got 9, want 8"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         bytes(call, "offsets")[24] += 1;
         return status;
       };
     }},
    {"writes_nothing", kOffsets, Verdict::failed, {"4 of 4 differ", "not written: all 4 still hold what was there before the call"}, [](Rogue& rogue) {
       rogue.execute = [](const assay_call&) { return ASSAY_OK; };
     }},
    {"leaves_the_last_out", kQuantize, Verdict::failed, {"  output  columnwise_data e4m3", "not written"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const std::uint8_t before = bytes(call, "columnwise_data")[0];
         const assay_status status = rogue.honest(call);
         bytes(call, "columnwise_data")[0] = before;
         return status;
       };
     }},
    {"writes_once", kOffsets, Verdict::failed, {"4 of 4 differ", "got -6510615555426900571", "not written"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) { return rogue.calls == 1 ? rogue.honest(call) : ASSAY_OK; };
     }},
    {"reads_its_output", kProduct, Verdict::failed, {"  output  d bf16"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {  // D += instead of D =, where 0xA5A5 is a number and 0xFFFF is NaN
         const std::uint8_t before = bytes(call, "d")[0];
         const assay_status status = rogue.honest(call);
         if (before != 0xff) bytes(call, "d")[0] ^= before & 1;
         return status;
       };
     }},
    {"writes_compact_padding", kQuantize, Verdict::failed, {"rowwise_scale_inv f32", "written where nothing may be: 1 element"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         // Group 0: 5 rows, so rows 5, 6 and 7 of its 2 x 8 scales are padding.
         std::memset(bytes(call, "rowwise_scale_inv") + 5 * 4, 0, 4);
         return status;
       };
     }},
    {"writes_rows_beyond", kQuantize, Verdict::failed, {"rowwise_data e4m3", "written where nothing may be: 1 element", "beyond the splits"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         bytes(call, "rowwise_data")[133 * 136] = 0x38;
         return status;
       };
     }},
    {"writes_rows_beyond_a_product", kProduct, Verdict::failed, {"d bf16", "written where nothing may be: 8 elements"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         std::memset(bytes(call, "d") + 12 * 8 * 2, 0, 8 * 2);
         return status;
       };
     }},
    {"ignores_the_skip_flag", kSkipped, Verdict::failed, {"written where nothing may be: 1 element"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         bytes(call, "rowwise_data")[0] = 0;
         return status;
       };
     }},

    // Questions with side effects.
    {"supports_writes_an_output", kOffsets, Verdict::failed, {"  memory  supports() changed memory: offsets was written, first at byte 8: 0x00"}, [](Rogue& rogue) {
       rogue.supports = [&rogue](const assay_call& call) {
         bytes(call, "offsets")[8] = 0;
         return rogue.honest_supports(call);
       };
     }},
    {"supports_writes_and_declares_absent", kOffsets, Verdict::failed, {"  memory  supports() changed memory: offsets was written"}, [](Rogue& rogue) {
       rogue.supports = [](const assay_call& call) {
         bytes(call, "offsets")[8] = 0;
         return ASSAY_NOT_SUPPORTED;
       };
       rogue.execute = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
     }},
    {"numerics_writes_an_input", kProduct, Verdict::failed, {"  memory  numerics() changed memory: in/splits: the input was changed, first at byte 0"}, [](Rogue& rogue) {
       rogue.asked = [](const assay_call& call) { bytes(call, "splits")[0] ^= 1; };
     }},
    {"numerics_writes_the_workspace", kProduct, Verdict::failed, {"  memory  numerics() changed memory: workspace was written, first at byte 99: 0x01"}, [](Rogue& rogue) {
       rogue.workspace = 100;
       rogue.asked = [](const assay_call& call) { static_cast<std::uint8_t*>(call.workspace)[99] = 1; };
     }},
    {"sizing_writes_a_canary", kProduct, Verdict::failed, {"  memory  workspace_bytes() changed memory: d: 1 bytes written past its end (first at +5: 0x07)"}, [](Rogue& rogue) {
       rogue.sized = [](const assay_call& call) { bytes(call, "d")[tensor(call, "d").bytes + 5] = 7; };
     }},
    {"sizing_spoils_what_supports_reads", kProduct, Verdict::failed,
     {"supports() returned 'invalid argument': ", "  memory  workspace_bytes() changed memory: in/splits: the input was changed"}, [](Rogue& rogue) {
       rogue.sized = [](const assay_call& call) { bytes(call, "splits")[6] = 0x70; };
     }},
    {"fill_leaves_its_tail", kProduct, Verdict::failed, {"  memory  fill() left memory in another state, before any question: d was written, first at byte"},
     [](Rogue& rogue) { rogue.not_filled = 3; }},
    {"asks_for_more_than_there_can_be", kProduct, Verdict::failed, {"workspace_bytes() asks for 9223372036854775807 bytes: expected 0 to 2^48"}, [](Rogue& rogue) {
       rogue.workspace = INT64_MAX;
     }},
    {"writes_the_workspace_of_an_absent_call", kProduct, Verdict::unproven_skip, {"declared absent, but the call changed memory: workspace was written"}, [](Rogue& rogue) {
       rogue.workspace = 100;
       rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
       rogue.execute = [](const assay_call& call) {
         static_cast<std::uint8_t*>(call.workspace)[99] = 1;
         return ASSAY_NOT_SUPPORTED;
       };
     }},
    {"fails_over_one_poison", kOffsets, Verdict::failed, {"  when    over the first poison (0xff) only\n  call    returned 'failed'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) { return bytes(call, "offsets")[0] == 0xff ? ASSAY_FAILED : rogue.honest(call); };
     }},
    {"fails_over_the_other_poison", kOffsets, Verdict::failed, {"  when    over the second poison (0xa5) only\n  call    returned 'failed'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) { return bytes(call, "offsets")[0] == 0xa5 ? ASSAY_FAILED : rogue.honest(call); };
     }},

    // Refusals.
    {"supported_then_not", kOffsets, Verdict::failed, {"  call    returned 'not supported': changed my mind"}, [](Rogue& rogue) {
       rogue.error = "changed my mind";
       rogue.execute = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
     }},
    {"supported_then_not_the_second_time", kOffsets, Verdict::failed, {"returned 'not supported'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) { return rogue.calls == 2 ? ASSAY_NOT_SUPPORTED : rogue.honest(call); };
     }},
    {"fails_with_right_outputs", kOffsets, Verdict::failed, {"  call    returned 'failed': for no reason"}, [](Rogue& rogue) {
       rogue.error = "for no reason";
       rogue.execute = [&rogue](const assay_call& call) {
         rogue.honest(call);
         return ASSAY_FAILED;
       };
     }},
    {"an_unknown_status", kOffsets, Verdict::failed, {"returned 'an unknown status'"}, [](Rogue& rogue) {
       rogue.execute = [](const assay_call&) { return static_cast<assay_status>(77); };
     }},
    {"finds_fault_with_a_good_call", kOffsets, Verdict::failed, {"supports() returned 'invalid argument': splits look odd"}, [](Rogue& rogue) {
       rogue.error = "splits look odd";
       rogue.supports = [](const assay_call&) { return ASSAY_INVALID_ARGUMENT; };
     }},
    {"absent", kOffsets, Verdict::not_run, {"no such path here"}, [](Rogue& rogue) {
       rogue.error = "no such path here";
       rogue.supports = rogue.execute = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
     }},
    {"absent_without_a_reason", kOffsets, Verdict::not_run, {"the backend declares this absent and gives no reason"}, [](Rogue& rogue) {
       rogue.supports = rogue.execute = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
     }},
    {"absent_but_succeeds", kOffsets, Verdict::unproven_skip,
     {"  skip    without proof: declared absent, but the call returned 'ok' (reason given: too hard)"}, [](Rogue& rogue) {
       rogue.error = "too hard";
       rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
     }},
    {"absent_but_fails", kOffsets, Verdict::unproven_skip, {"declared absent, but the call returned 'failed'"}, [](Rogue& rogue) {
       rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
       rogue.execute = [](const assay_call&) { return ASSAY_FAILED; };
     }},
    {"absent_but_writes", kOffsets, Verdict::unproven_skip, {"declared absent, but the call changed memory: offsets was written"}, [](Rogue& rogue) {
       rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
       rogue.execute = [](const assay_call& call) {
         bytes(call, "offsets")[31] = 0;
         return ASSAY_NOT_SUPPORTED;
       };
     }},
    {"absent_but_writes_what_the_first_poison_hides", kOffsets, Verdict::unproven_skip, {"declared absent, but the call changed memory: offsets was written"}, [](Rogue& rogue) {
       rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
       rogue.execute = [](const assay_call& call) {
         std::memset(bytes(call, "offsets"), 0xff, 32);
         return ASSAY_NOT_SUPPORTED;
       };
     }},
    {"absent_but_writes_beside", kOffsets, Verdict::unproven_skip, {"declared absent, but the call changed memory: offsets: 1 bytes written past its end"}, [](Rogue& rogue) {
       rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
       rogue.execute = [](const assay_call& call) {
         bytes(call, "offsets")[32] = 0;
         return ASSAY_NOT_SUPPORTED;
       };
     }},
    {"absent_but_changes_an_input", kOffsets, Verdict::unproven_skip, {"declared absent, but the call changed memory: in/splits: the input was changed"}, [](Rogue& rogue) {
       rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
       rogue.execute = [](const assay_call& call) {
         bytes(call, "splits")[0] = 9;
         return ASSAY_NOT_SUPPORTED;
       };
     }},

    // No answer.
    {"hangs", kOffsets, Verdict::unfinished, {"  call    returned 'timeout': not finished after 250 ms"}, [](Rogue& rogue) {
       rogue.synchronize = [&rogue] { return rogue.calls == 0 ? ASSAY_OK : ASSAY_TIMEOUT; };
     }},
    {"device_lost_in_the_call", kOffsets, Verdict::failed, {"returned 'device lost': it fell off the bus"}, [](Rogue& rogue) {
       rogue.error = "it fell off the bus";
       rogue.execute = [](const assay_call&) { return ASSAY_DEVICE_LOST; };
     }},
    {"device_lost_after_the_call", kOffsets, Verdict::failed, {"returned 'device lost'"}, [](Rogue& rogue) {
       rogue.synchronize = [&rogue] { return rogue.calls == 0 ? ASSAY_OK : ASSAY_DEVICE_LOST; };
     }},
    {"device_lost_when_asked", kOffsets, Verdict::failed, {"supports() returned 'device lost'"}, [](Rogue& rogue) {
       rogue.supports = [](const assay_call&) { return ASSAY_DEVICE_LOST; };
     }},
    {"out_of_memory_in_the_call", kOffsets, Verdict::machine_failed, {"returned 'out of memory'"}, [](Rogue& rogue) {
       rogue.execute = [](const assay_call&) { return ASSAY_OUT_OF_MEMORY; };
     }},
};

INSTANTIATE_TEST_SUITE_P(Faults, Misbehaviour, testing::ValuesIn(kFaults), [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace assay::conformance
