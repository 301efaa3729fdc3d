// Wrong calls: backends that accept what they must refuse, or refuse it in a wrong way. The failure names the fault.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <set>

#include "conformance/catalogue/catalogue.h"
#include "conformance/judge/call_runner.h"
#include "conformance/judge/calls/contract.h"
#include "conformance/judge/calls/wrong_calls.h"
#include "conformance/tests/judge/rogue_backend.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

constexpr const char* kOffsets = "splits_to_offsets splits=3,0,5 stride=24 contract=1";
constexpr const char* kProduct = "grouped_gemm kind=bf16 beta=1 splits=5,0,6 N=8 K=32 seed=3 contract=1";

Judgement judged(const std::string& text, const assay_backend& table = Rogue::table()) {
  const CaseLine line = parse_case_line(text);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options;
  options.wanted = &wanted;
  options.title = to_text(line);
  options.reproduce = "assay repro";
  options.timeout_ms = 250;
  Backend backend(table);
  return judge_contract(backend, generate(line), options);
}

bool has_parameter(const assay_call& call, const std::string& name) {
  return std::any_of(call.parameters, call.parameters + call.parameter_count, [&](const assay_parameter& each) { return each.name != nullptr && each.name == name; });
}

bool is_named(const assay_tensor& tensor, const char* name) { return tensor.name != nullptr && tensor.name == std::string(name); }

// Answers a call without its last parameter, input or output.
assay_status without_last(Rogue& rogue, const assay_call& call, int parameters, int inputs, int outputs) {
  assay_call fewer = call;
  fewer.parameter_count -= parameters;
  fewer.input_count -= inputs;
  fewer.output_count -= outputs;
  return rogue.honest(fewer);
}

struct Fault {
  const char* name;
  const char* line;
  Verdict verdict;
  std::vector<std::string> reported;
  void (*plant)(Rogue&);
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class Contract : public testing::TestWithParam<Fault> {};

TEST_P(Contract, IsJudged) {
  const Fault& fault = GetParam();
  Rogue rogue;
  fault.plant(rogue);
  const Judgement judgement = judged(fault.line);
  EXPECT_EQ(name_of(judgement.verdict), name_of(fault.verdict)) << judgement.text;
  for (const std::string& part : fault.reported) EXPECT_TRUE(contains(judgement.text, part)) << part << "\nis not in\n" << judgement.text;
}

const Fault kFaults[] = {
    {"nothing", kOffsets, Verdict::passed, {}, [](Rogue&) {}},
    {"nothing_of_a_product", kProduct, Verdict::passed, {}, [](Rogue& rogue) {
       rogue.workspace = 100;
       rogue.execute = [&rogue](const assay_call& call) {
         if (call.workspace_bytes < 100) {
           rogue.error = "no workspace";
           return ASSAY_INVALID_ARGUMENT;
         }
         rogue.error.clear();
         return rogue.honest(call);
       };
     }},
    {"takes_an_unknown_parameter", kOffsets, Verdict::failed, {"with the unknown parameter 'no_such_parameter': returned 'ok': expected a refusal"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) { return has_parameter(call, "no_such_parameter") ? without_last(rogue, call, 1, 0, 0) : rogue.honest(call); };
     }},
    {"takes_an_unknown_input", kProduct, Verdict::failed, {"with the unknown input 'no_such_input': returned 'ok'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         return is_named(call.inputs[call.input_count - 1], "no_such_input") ? without_last(rogue, call, 0, 1, 0) : rogue.honest(call);
       };
     }},
    {"takes_an_unknown_output", kOffsets, Verdict::failed, {"with the unknown output 'no_such_output': returned 'ok'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         return is_named(call.outputs[call.output_count - 1], "no_such_output") ? without_last(rogue, call, 0, 0, 1) : rogue.honest(call);
       };
     }},
    {"does_not_miss_an_input", kProduct, Verdict::failed, {"with no input c: returned 'ok'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const bool whole = std::any_of(call.inputs, call.inputs + call.input_count, [](const assay_tensor& each) { return is_named(each, "c"); });
         return whole ? rogue.honest(call) : ASSAY_OK;
       };
     }},
    {"takes_a_size_that_does_not_fit", kOffsets, Verdict::failed, {"with output offsets of one row more: returned 'ok': expected a refusal, and it changed memory"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_tensor& offsets = call.outputs[0];
         if (offsets.shape[0] == 5 && offsets.bytes == 40) {
           std::memset(offsets.data, 1, 40);
           return ASSAY_OK;
         }
         return rogue.honest(call);
       };
     }},
    {"takes_a_negative_size", kOffsets, Verdict::failed, {"with input splits of a negative extent: returned 'ok'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         return call.input_count > 0 && call.inputs[0].rank == 1 && call.inputs[0].shape[0] < 0 ? ASSAY_OK : rogue.honest(call);
       };
     }},
    {"takes_any_algorithm", kProduct, Verdict::failed, {"with the unknown algorithm 1099511627776: returned 'ok'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         assay_call own = call;
         own.algorithm = -1;
         return rogue.honest(own);
       };
     }},
    {"does_without_a_workspace", kProduct, Verdict::failed, {"with no workspace: returned 'ok'"}, [](Rogue& rogue) { rogue.workspace = 100; }},
    {"writes_and_refuses", kOffsets, Verdict::failed, {"returned 'not supported', but changed memory: offsets was written, first at byte 0: 0x00"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         if (status != ASSAY_OK && call.outputs[0].bytes == 32 && call.outputs[0].data != nullptr) std::memset(call.outputs[0].data, 0, 32);
         return status;
       };
     }},
    {"refuses_without_a_word", kOffsets, Verdict::failed, {"and last_error() says nothing"}, [](Rogue& rogue) { rogue.silent = true; }},
    {"refuses_tensors_that_touch", "splits_to_offsets splits=32x3 contract=1", Verdict::failed, {"the right call, over tensors without gaps between them"},
     [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const bool touches = call.input_count == 1 && call.output_count == 1 &&
                              static_cast<const char*>(call.inputs[0].data) + call.inputs[0].bytes == call.outputs[0].data;
         return touches ? ASSAY_INVALID_ARGUMENT : rogue.honest(call);
       };
     }},
    {"takes_a_stride_of_0", kOffsets, Verdict::failed, {"with parameter stride=0: returned 'ok': expected a refusal"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         return call.parameter_count == 1 && call.parameters[0].kind == ASSAY_INTEGER && call.parameters[0].integer == 0 ? ASSAY_OK : rogue.honest(call);
       };
     }},
    {"refuses_with_several_lines", kOffsets, Verdict::failed, {"last_error() has several lines: expected one, found 'one\\ntwo'"},
     [](Rogue& rogue) { rogue.error = "one\ntwo"; }},
    {"refuses_with_the_same_words_always", kOffsets, Verdict::failed, {"wrong calls, 'the first error': expected why the last call failed"},
     [](Rogue& rogue) { rogue.error = "the first error"; }},
    {"takes_a_wrong_call_under_capture", kProduct, Verdict::failed,
     {"with the unknown op 'no_such_op', under capture: returned 'ok': expected a refusal"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         return rogue.capturing ? ASSAY_OK : status;
       };
     }},
    {"refuses_the_right_call_after_a_wrong_one_under_capture", kProduct, Verdict::failed,
     {"the right call, captured after calls that were refused: under capture the call returned 'failed'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue, wrong = false](const assay_call& call) mutable {
         if (!rogue.capturing) wrong = false;
         if (wrong) return ASSAY_FAILED;
         const assay_status status = rogue.honest(call);
         wrong = status != ASSAY_OK;
         return status;
       };
     }},
    {"captures_nothing_after_a_wrong_call", kProduct, Verdict::failed, {"the right call, captured after calls that were refused, and launched"},
     [](Rogue& rogue) {
       rogue.execute = [&rogue, wrong = false](const assay_call& call) mutable {
         if (rogue.capturing && wrong && rogue.honest_supports(call) == ASSAY_OK) return ASSAY_OK;
         const assay_status status = rogue.honest(call);
         wrong = rogue.capturing && status != ASSAY_OK;
         return status;
       };
     }},
    {"refuses_with_a_status_of_its_own", kOffsets, Verdict::failed, {"returned the status 99: expected one of assay_status"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) { return rogue.honest(call) == ASSAY_OK ? ASSAY_OK : static_cast<assay_status>(99); };
     }},
    {"an_error_sticks", kOffsets, Verdict::failed, {"when    the right call, after one with the unknown op 'no_such_op'", "returned 'failed'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue, failed = false](const assay_call& call) mutable {
         if (failed) return ASSAY_FAILED;
         const assay_status status = rogue.honest(call);
         failed = status != ASSAY_OK;
         return status;
       };
     }},
    {"a_refused_parameter_sticks", kOffsets, Verdict::failed, {"when    the right call, after one with the unknown parameter", "4 of 4 differ"}, [](Rogue& rogue) {
       rogue.execute = [&rogue, failed = false](const assay_call& call) mutable {
         failed = failed || has_parameter(call, "no_such_parameter");
         return failed && !has_parameter(call, "no_such_parameter") ? ASSAY_OK : rogue.honest(call);
       };
     }},
    {"hangs_on_a_wrong_call", kOffsets, Verdict::unfinished, {"with the unknown op 'no_such_op': returned 'timeout'"}, [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         if (call.op != nullptr && call.op == std::string("no_such_op")) rogue.synchronize = [] { return ASSAY_TIMEOUT; };
         return rogue.honest(call);
       };
     }},
    {"refuses_the_right_call", kOffsets, Verdict::failed, {"  call    returned 'not supported'"}, [](Rogue& rogue) {
       rogue.execute = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
     }},
};

INSTANTIATE_TEST_SUITE_P(Faults, Contract, testing::ValuesIn(kFaults), [](const auto& each) { return each.param.name; });

// Every op has such a case, and the reference keeps the contract in all of them; null, which refuses nothing, breaks it in all.
TEST(Contracts, EveryOpIsAskedAndTheReferenceKeepsThem) {
  std::set<std::string> ops;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario" || line.integer("contract") == 0) continue;
    ops.insert(line.op);
    const Judgement judgement = judged(to_text(line), *reference_backend());
    EXPECT_EQ(name_of(judgement.verdict), "passed") << judgement.text;
    EXPECT_EQ(name_of(judged(to_text(line), *null_backend()).verdict), "failed");
  }
  EXPECT_EQ(ops.size(), known_ops().size());
}

// The backend chooses the ids of its algorithms: one that it lists is not unknown.
TEST(Contracts, NoListedAlgorithmIsCalledUnknown) {
  static constexpr std::int64_t kFirst = std::int64_t{1} << 40;
  for (const bool takes_others : {false, true}) {
    Rogue rogue;
    assay_backend table = Rogue::table();
    table.list_algorithms = [](assay_context*, const assay_call*, assay_algorithm* algorithms, std::int32_t capacity, std::int32_t* count) {
      for (std::int32_t i = 0; i < std::min<std::int32_t>(capacity, 2); ++i) algorithms[i].id = kFirst + i;
      *count = 2;
      return ASSAY_OK;
    };
    rogue.execute = [&](const assay_call& call) {
      assay_call own = call;
      if (takes_others || call.algorithm == kFirst || call.algorithm == kFirst + 1) own.algorithm = -1;
      return rogue.honest(own);
    };
    const Judgement judgement = judged(kOffsets, table);
    EXPECT_EQ(name_of(judgement.verdict), takes_others ? "failed" : "passed") << judgement.text;
    EXPECT_EQ(contains(judgement.text, "with the unknown algorithm 1099511627778: returned 'ok'"), takes_others) << judgement.text;
  }
}

// Every kind of wrong call is made.
TEST(Contracts, NoWrongCallIsMissing) {
  const Case problem = generate(parse_case_line(kProduct));
  Backend backend(*reference_backend());
  CallRunner runner(backend, problem, outputs_of(Request::read_only(problem)), -1, 1000);
  std::set<std::string> names;
  for (const WrongCall& wrong : wrong_calls(runner.call())) names.insert(wrong.what);
  for (const char* name : {"the unknown op 'no_such_op'", "the unknown parameter 'no_such_parameter'", "the unknown input 'no_such_input'",
                           "the unknown output 'no_such_output'", "the unknown algorithm 1099511627776", "no parameter kind", "parameter kind='no_such_word'",
                           "parameter N=-3", "parameter N, which is a number, as the text 'seven'", "no input splits", "no input c",
                           "input x of rank -1", "input x of 8 bytes fewer than its shape takes", "input c of a negative extent",
                           "output d of type 99", "output d of rank -1", "output d of one row more", "output d of one row fewer"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
}

}  // namespace
}  // namespace assay::conformance
