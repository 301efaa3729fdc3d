// Scenarios find faults: backends whose graphs, workspaces or flags are each wrong in one way, and the lines of the catalogue
// that must find it. A second line, where there is one, passes, which shows that the backend is wrong in that way only.

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <set>

#include "conformance/catalogue/catalogue.h"
#include "conformance/tests/judge/replayer.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

struct Fault {
  const char* name;
  const char* caught_by;  // a line of the catalogue
  Verdict verdict;
  std::vector<std::string> reported;
  const char* not_by;     // a line that it passes; empty: none
  void (*plant)(Replayer&);
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

constexpr const char* kForward = "scenario recipe=none steps=forward bias=1 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=440 replay=12:data,splits";
constexpr const char* kScaled = "scenario recipe=tensor_delayed steps=forward,dgrad,wgrad bias=1 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=444 replay=12:data,splits,scales";
constexpr const char* kBlockScaled = "scenario recipe=fp8_block steps=TN,NN,NT workspace=kept splits=17,0,33,7 N=24 K=40 seed=468 replay=6:data,splits,scales";
constexpr const char* kSkips = "scenario recipe=fp8_block steps=weights,forward noop=0 splits=17,0,33 N=136 K=24 seed=482 replay=10:data,noop";
constexpr const char* kHalfSkips = "scenario recipe=fp8_block steps=weights,forward/forward noop=0.5 splits=17,0,33 N=24 K=40 seed=485 replay=5:data,splits,noop";
constexpr const char* kApart = "scenario recipe=fp8_block steps=forward/dgrad,wgrad bias=1 warm=1 splits=17,0,33,7 N=24 K=136 seed=452 replay=8:data,splits";
constexpr const char* kBehind = "scenario recipe=fp8_block steps=dgrad,wgrad workspace=shared splits=17,0,33,7 N=24 K=40 seed=464 replay=6:data,splits";
constexpr const char* kTwo = "scenario recipe=fp8_block steps=forward/dgrad,wgrad modules=2 order=interleaved bias=1 splits=17,0,33,7 N=24 K=40 seed=471 replay=5:data,splits";
constexpr const char* kAtOnce = "scenario recipe=none steps=forward/dgrad,wgrad modules=2 order=streams splits=17,0,33,7 N=24 K=40 seed=472 replay=5:data,splits";
constexpr const char* kDeferred = "scenario recipe=none steps=forward,forward/dgrad,wgrad/dgrad,wgrad deferred=1 accumulate=1 splits=17,0,33,7 N=24 K=40 seed=490 replay=5:data,splits";
constexpr const char* kRest = "scenario recipe=fp8_block steps=wgrad,wgrad,wgrad deferred=1 accumulate=rest bias=1 splits=17,0,33,7 N=24 K=40 seed=491 replay=5:data,splits";
constexpr const char* kHistory = "scenario recipe=fp8_block steps=forward/dgrad/wgrad history=11 accumulate=1 splits=17,0,33,7 N=24 K=40 seed=453 replay=8:data,splits";

const Fault kFaults[] = {
    {"nothing", kApart, Verdict::passed, {}, "", [](Replayer&) {}},

    // What a graph keeps from its capture.
    {"splits_frozen", kForward, Verdict::failed, {"when    replay 2 of 12, step forward", "output  y bf16"}, "", [](Replayer& replayer) {
       freeze(replayer, [](const std::string& name) { return name == "splits"; });
     }},
    {"data_frozen", kForward, Verdict::failed, {"when    replay 2 of 12, step forward"}, "", [](Replayer& replayer) {
       freeze(replayer, [](const std::string& name) { return name == "x"; });
     }},
    {"scales_frozen", kScaled, Verdict::failed, {"when    replay 2 of 12, step forward"}, kForward, [](Replayer& replayer) {
       freeze(replayer, [](const std::string& name) { return name.ends_with("_scale"); });
     }},
    {"block_scales_frozen", kBlockScaled, Verdict::failed, {"when    replay 2 of 6, step TN", "output  d bf16"}, kForward, [](Replayer& replayer) {
       freeze(replayer, [](const std::string& name) { return name.ends_with("scale_inv"); });
     }},
    {"flag_frozen", kSkips, Verdict::failed, {"when    replay 2 of 10, step weights", "written where nothing may be"}, kForward, [](Replayer& replayer) {
       freeze(replayer, [](const std::string& name) { return name == "noop"; });
     }},
    {"first_replay_only", kForward, Verdict::failed, {"when    replay 2 of 12", "not written"}, "", [](Replayer& replayer) {
       replayer.perform = [&replayer](const assay_graph& graph, std::size_t index, int launch) {
         if (launch == 1) replayer.honest(graph.calls[index].call);
       };
     }},
    {"carried_out_at_capture", kForward, Verdict::failed, {"when    capture", "y was written"}, "", [](Replayer& replayer) {
       replayer.captured = [&replayer](const Recorded& recorded) { replayer.honest(recorded.call); };
     }},
    {"carried_out_at_capture_only", kApart, Verdict::failed, {"when    capture", "nothing may be carried out before the graph is launched"}, "", [](Replayer& replayer) {
       replayer.captured = [&replayer](const Recorded& recorded) { replayer.honest(recorded.call); };
       replayer.perform = [](const assay_graph&, std::size_t, int) {};
     }},
    {"rows_beyond_the_splits", kForward, Verdict::failed, {"written where nothing may be"}, kTwo, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {  // a fixed tail: the last row of the buffer, whatever the splits are
         replayer.honest(call);
         const assay_tensor& y = tensor(call, call.outputs[call.output_count - 1].name);
         const auto* splits = static_cast<const std::int64_t*>(tensor(call, "splits").data);
         std::int64_t used = 0;
         for (std::int64_t g = 0; g < groups_of(call); ++g) used += splits[g];
         if (y.name == std::string("y") && used < y.shape[0]) std::memset(static_cast<std::uint8_t*>(y.data) + y.bytes - 2, 0, 2);
       });
     }},
    {"one_edge_of_the_splits", kForward, Verdict::failed, {"replay 3 of 12"}, kTwo, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {  // a last group of full size is treated as empty
         const auto* splits = static_cast<const std::int64_t*>(tensor(call, "splits").data);
         if (splits[groups_of(call) - 1] != tensor(call, call.outputs[0].name).shape[0]) replayer.honest(call);
       });
     }},

    // Memory that graphs or layers share.
    {"set_up_of_another_module", kTwo, Verdict::failed, {"when    replay 1 of 5, module 1"}, kApart, [](Replayer& replayer) {
       // The set-up buffer is cached by step and group count: it holds the pointers of the last capture.
       auto kept = std::make_shared<std::map<std::string, const Recorded*>>();
       replayer.captured = [kept](const Recorded& recorded) { (*kept)[recorded.call.op + std::to_string(groups_of(recorded.call))] = &recorded; };
       replayer.perform = [kept, &replayer](const assay_graph& graph, std::size_t index, int) {
         const assay_call& own = graph.calls[index].call;
         assay_call call = (*kept)[own.op + std::to_string(groups_of(own))]->call;
         call.outputs = own.outputs;
         replayer.honest(call);
       };
     }},
    {"set_up_of_another_stream", kAtOnce, Verdict::failed, {"module 1"}, "", [](Replayer& replayer) {
       // A launch writes the buffer and reads it later. Launches on one stream are ordered, those on two are not.
       struct Device {
         const assay_graph* set_up = nullptr;
         std::map<assay_stream*, const assay_graph*> pending;
       };
       auto device = std::make_shared<Device>();
       const auto finish = [device, &replayer](assay_stream* stream) {
         const auto found = device->pending.find(stream);
         if (found == device->pending.end()) return;
         const assay_graph& own = *found->second;
         for (std::size_t i = 0; i < own.calls.size(); ++i) {
           assay_call call = own.calls[i].call;
           if (device->set_up->calls.size() == own.calls.size() && is(device->set_up->calls[i].call, call.op)) call = device->set_up->calls[i].call;
           call.outputs = own.calls[i].call.outputs;
           replayer.honest(call);
         }
         device->pending.erase(found);
       };
       replayer.launch = [device, finish](const assay_graph& graph, assay_stream* stream, int) {
         finish(stream);
         device->set_up = &graph;
         device->pending[stream] = &graph;
       };
       replayer.in_time = [finish](assay_stream* stream) {
         finish(stream);
         return true;
       };
     }},
    {"stale_workspace", kBehind, Verdict::failed, {"when    replay 1 of 6, step wgrad"}, kApart, [](Replayer& replayer) {
       // wgrad uses the contents that dgrad left in the workspace.
       replayer.workspace = 64;
       always(replayer, [&replayer](const assay_call& call) {
         auto* workspace = static_cast<std::uint8_t*>(call.workspace);
         replayer.honest(call);
         if (is(call, "linear_dgrad")) std::memset(workspace, 0x77, 64);
         if (is(call, "linear_wgrad") && workspace[0] == 0x77) spoil_last_group(call, "dw");
       });
     }},
    {"stale_workspace_of_the_replay_before", "scenario recipe=fp8_block steps=dgrad,wgrad workspace=kept splits=17,0,33,7 N=24 K=40 seed=463 replay=6:data,splits",
     Verdict::failed, {"when    replay 2 of 6, step wgrad", "group 3"}, "scenario recipe=fp8_block steps=dgrad,wgrad warm=1 splits=17,0,33,7 N=24 K=40 seed=465 replay=4",
     [](Replayer& replayer) {
       replayer.workspace = 64;
       always(replayer, [&replayer](const assay_call& call) {
         auto* workspace = static_cast<std::uint8_t*>(call.workspace);
         replayer.honest(call);
         if (is(call, "linear_wgrad") && workspace[0] == 0x77) spoil_last_group(call, "dw");
         if (is(call, "linear_wgrad")) std::memset(workspace, 0x77, 64);
       });
     }},
    {"workspace_between_layouts", "scenario recipe=fp8_block steps=NN,NT/NN,NT workspace=shared splits=17,0,33,7 N=24 K=40 seed=469 replay=6:data,splits,scales",
     Verdict::failed, {"step NT"}, kBlockScaled, [](Replayer& replayer) {
       replayer.workspace = 64;
       always(replayer, [&replayer](const assay_call& call) {
         auto* workspace = static_cast<std::uint8_t*>(call.workspace);
         replayer.honest(call);
         if (is_layout(call, "NN")) std::memset(workspace, 0x77, 64);
         if (is_layout(call, "NT") && workspace[0] == 0x77) spoil_last_group(call, "d");
       });
     }},
    {"memory_given_back_after_capture", kHistory, Verdict::failed, {"when    replay 1 of 8"}, "", [](Replayer& replayer) {
       // A buffer of the capture is released: the next allocation gets it.
       auto live = std::make_shared<std::pair<bool, bool>>(false, true);  // captured, whole
       replayer.captured = [live](const Recorded&) { *live = {true, true}; };
       replayer.allocated = [live] { live->second = live->second && !live->first; };
       replayer.perform = [live, &replayer](const assay_graph& graph, std::size_t index, int) {
         replayer.honest(graph.calls[index].call);
         if (!live->second) bytes(graph.calls[index].call, graph.calls[index].call.outputs[0].name)[0] ^= 1;
       };
     }},

    // Faults that only a later replay shows.
    {"second_replay_hangs", kBehind, Verdict::unfinished, {"when    replay 2 of 6", "hang    not finished after 200 ms"},
     "scenario recipe=fp8_block steps=forward/dgrad/wgrad history=11 accumulate=1 splits=17,0,33,7 N=24 K=40 seed=453 replay=8:data,splits", [](Replayer& replayer) {
       auto hangs = std::make_shared<bool>(false);
       replayer.perform = [hangs, &replayer](const assay_graph& graph, std::size_t index, int launch) {
         const bool behind = index > 0 && is(graph.calls[index].call, "linear_wgrad") && is(graph.calls[index - 1].call, "linear_dgrad");
         if (behind && launch == 2) *hangs = true;
         replayer.honest(graph.calls[index].call);
       };
       replayer.in_time = [hangs](assay_stream*) { return !*hangs; };
     }},
    {"last_group_from_the_second_replay_on", kBehind, Verdict::failed, {"when    replay 2 of 6, step wgrad", "where   group 3;"}, kHistory, [](Replayer& replayer) {
       replayer.perform = [&replayer](const assay_graph& graph, std::size_t index, int launch) {
         const assay_call& call = graph.calls[index].call;
         replayer.honest(call);
         if (launch > 1 && index > 0 && is(call, "linear_wgrad")) spoil_last_group(call, "dw");
       };
     }},
    {"second_replay_skips_a_call", kApart, Verdict::failed, {"when    replay 2 of 8, step wgrad", "not written"}, "", [](Replayer& replayer) {
       replayer.perform = [&replayer](const assay_graph& graph, std::size_t index, int launch) {
         if (launch != 2 || index != 1) replayer.honest(graph.calls[index].call);
       };
     }},
    {"tenth_replay", kForward, Verdict::failed, {"when    replay 10 of 12"}, kApart, [](Replayer& replayer) {
       replayer.perform = [&replayer](const assay_graph& graph, std::size_t index, int launch) {
         replayer.honest(graph.calls[index].call);
         if (launch == 10) bytes(graph.calls[index].call, graph.calls[index].call.outputs[0].name)[1] ^= 1;
       };
     }},
    {"first_inputs_again", kApart, Verdict::failed, {"when    the first inputs again, after 8 replays"}, "", [](Replayer& replayer) {
       replayer.perform = [&replayer](const assay_graph& graph, std::size_t index, int launch) {
         replayer.honest(graph.calls[index].call);
         if (launch == 9) bytes(graph.calls[index].call, graph.calls[index].call.outputs[0].name)[1] ^= 1;
       };
     }},
    {"eager_is_wrong", kForward, Verdict::failed, {"when    made one by one, on the inputs of replay 1 of 12"}, "", [](Replayer& replayer) {
       replayer.eager = [&replayer](const assay_call& call) {
         replayer.honest(call);
         bytes(call, call.outputs[0].name)[0] ^= 1;
       };
     }},

    // The skip flag.
    {"flag_inverted", kSkips, Verdict::failed, {"when    replay 1 of 10, step weights", "not written"}, kForward, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {
         flag_of(call) == nullptr ? replayer.honest(call) : with_flag(replayer, call, *flag_of(call) == 1 ? 0.0f : 1.0f);
       });
     }},
    {"flag_ignored", kSkips, Verdict::failed, {"when    replay 2 of 10, step weights"}, kForward, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) { flag_of(call) == nullptr ? replayer.honest(call) : with_flag(replayer, call, 0); });
     }},
    {"flag_ignored_by_the_layer", kSkips, Verdict::failed, {"when    replay 2 of 10, step forward", "output  w_rowwise_data e4m3"}, kForward, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) { is(call, "linear_forward") ? with_flag(replayer, call, 0) : replayer.honest(call); });
     }},
    {"any_flag_but_zero_skips", kHalfSkips, Verdict::failed, {"when    replay 1 of 5, microbatch 1, step weights", "not written"}, kSkips, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {
         flag_of(call) == nullptr ? replayer.honest(call) : with_flag(replayer, call, *flag_of(call) != 0 ? 1.0f : 0.0f);
       });
     }},
    {"torn_skip_scales_rewritten", kSkips, Verdict::failed, {"step weights", "output  rowwise_scale_inv f32"}, kForward, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {
         replayer.honest(call);
         if (flag_of(call) == nullptr || *flag_of(call) != 1 || !has_output(call, "rowwise_scale_inv")) return;
         Elsewhere renewed(call);
         with_flag(replayer, renewed.call(), 0);
         for (const char* name : {"rowwise_scale_inv", "columnwise_scale_inv"}) {
           std::memcpy(bytes(call, name), bytes(renewed.call(), name), static_cast<std::size_t>(tensor(call, name).bytes));
         }
       });
     }},
    {"skip_of_one_direction", kSkips, Verdict::failed, {"step weights", "output  columnwise_data e4m3"}, kForward, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {
         replayer.honest(call);
         if (flag_of(call) == nullptr || *flag_of(call) != 1 || !has_output(call, "columnwise_data")) return;
         Elsewhere renewed(call);
         with_flag(replayer, renewed.call(), 0);
         std::memcpy(bytes(call, "columnwise_data"), bytes(renewed.call(), "columnwise_data"), static_cast<std::size_t>(tensor(call, "columnwise_data").bytes));
       });
     }},
    {"flag_never_clears", kSkips, Verdict::failed, {"when    replay 4 of 10, step weights", "not written"}, kForward, [](Replayer& replayer) {
       auto skipped = std::make_shared<bool>(false);
       replayer.perform = [skipped, &replayer](const assay_graph& graph, std::size_t index, int) {
         const assay_call& call = graph.calls[index].call;
         if (flag_of(call) == nullptr) return replayer.honest(call);
         *skipped = *skipped || *flag_of(call) == 1;
         with_flag(replayer, call, *skipped ? 1.0f : 0.0f);
       };
     }},

    // Weight gradients.
    {"put_off_and_carried_out_backwards", kRest, Verdict::failed, {"step wgrad", "output  dw f32"}, kApart, [](Replayer& replayer) {
       replayer.launch = [&replayer](const assay_graph& graph, assay_stream*, int) {
         for (std::size_t i = graph.calls.size(); i > 0; --i) replayer.honest(graph.calls[i - 1].call);
       };
     }},
    {"order_of_sums", kDeferred, Verdict::failed, {"step wgrad", "output  dw f32"}, kApart, [](Replayer& replayer) {
       // The newest piece of work first: each addend is right, the order is not. Only the second of a pair shows it.
       auto waiting = std::make_shared<const Recorded*>(nullptr);
       replayer.perform = [waiting, &replayer](const assay_graph& graph, std::size_t index, int) {
         const Recorded& recorded = graph.calls[index];
         if (!has_input(recorded.call, "main_grad")) return replayer.honest(recorded.call);
         if (*waiting == nullptr) {
           *waiting = &recorded;  // deferred until the other has been executed
           return replayer.honest(recorded.call);
         }
         // main + second, then + first, into the second's output
         Elsewhere partial(recorded.call);
         Instead second(partial.call());
         second.replace("main_grad", tensor((*waiting)->call, "main_grad").data);
         replayer.honest(second.call());
         Instead first((*waiting)->call);
         first.replace("main_grad", bytes(partial.call(), "dw"));
         assay_call last = first.call();
         last.outputs = recorded.call.outputs;
         replayer.honest(last);
         *waiting = nullptr;
       };
     }},
    {"accumulation_left_out", kDeferred, Verdict::failed, {"step wgrad", "output  dw f32"}, kApart, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {
         if (!has_input(call, "main_grad")) return replayer.honest(call);
         Instead other(call);
         const std::vector<std::uint8_t> zeros(static_cast<std::size_t>(tensor(call, "main_grad").bytes), 0);
         other.replace("main_grad", zeros.data());
         replayer.honest(other.call());
       });
     }},
    {"added_twice", kDeferred, Verdict::failed, {"step wgrad", "output  dw f32"}, kApart, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {
         replayer.honest(call);
         if (!has_input(call, "main_grad")) return;
         Elsewhere once(call);
         Instead again(call);
         again.replace("main_grad", bytes(once.call(), "dw"));
         replayer.honest(again.call());
       });
     }},
    {"added_to_what_was_there", kRest, Verdict::failed, {"microbatch 1, step wgrad"}, kForward, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {  // also by the first microbatch, which must overwrite
         if (!is(call, "linear_wgrad") || has_input(call, "main_grad")) return replayer.honest(call);
         const assay_tensor& dw = tensor(call, "dw");
         const auto* before = static_cast<const float*>(dw.data);
         const std::vector<float> held(before, before + dw.bytes / 4);
         replayer.honest(call);
         for (std::size_t i = 0; i < held.size(); ++i) static_cast<float*>(dw.data)[i] += held[i];
       });
     }},
    {"gradient_lost_where_a_group_is_empty", kApart, Verdict::failed, {"step wgrad", "output  dw f32", "not written"}, kForward, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {  // a group without rows keeps what was there
         if (!is(call, "linear_wgrad")) return replayer.honest(call);
         const assay_tensor& dw = tensor(call, "dw");
         Elsewhere before(call);
         replayer.honest(call);
         const auto* splits = static_cast<const std::int64_t*>(tensor(call, "splits").data);
         const std::int64_t group = dw.bytes / groups_of(call);
         for (std::int64_t g = 0; g < groups_of(call); ++g) {
           if (splits[g] == 0) std::memcpy(static_cast<std::uint8_t*>(dw.data) + g * group, bytes(before.call(), "dw") + g * group, static_cast<std::size_t>(group));
         }
       });
     }},
    {"bias_gradient_lost_when_put_off", kRest, Verdict::failed, {"output  dbias bf16", "not written"}, kForward, [](Replayer& replayer) {
       always(replayer, [&replayer](const assay_call& call) {
         if (!is(call, "linear_wgrad")) return replayer.honest(call);
         assay_call without = call;
         std::vector<assay_tensor> outputs;
         for (int i = 0; i < call.output_count; ++i) {
           if (call.outputs[i].name != std::string("dbias")) outputs.push_back(call.outputs[i]);
         }
         without.outputs = outputs.data();
         without.output_count = static_cast<std::int32_t>(outputs.size());
         replayer.honest(without);
       });
     }},
};

class ScenarioFault : public testing::TestWithParam<Fault> {};

TEST_P(ScenarioFault, IsFoundByItsLine) {
  const Fault& fault = GetParam();
  {
    Replayer replayer;
    fault.plant(replayer);
    const Judgement judgement = judged(fault.caught_by);
    EXPECT_EQ(name_of(judgement.verdict), name_of(fault.verdict)) << judgement.text;
    for (const std::string& part : fault.reported) EXPECT_TRUE(contains(judgement.text, part)) << part << "\nis not in\n" << judgement.text;
    if (fault.verdict != Verdict::passed) {
      EXPECT_TRUE(judgement.text.starts_with("FAILED  scenario recipe=")) << judgement.text;
      EXPECT_TRUE(judgement.text.ends_with("repro   assay repro")) << judgement.text;
    }
  }
  if (*fault.not_by == '\0') return;
  Replayer replayer;
  fault.plant(replayer);
  const Judgement judgement = judged(fault.not_by);
  EXPECT_EQ(name_of(judgement.verdict), "passed") << judgement.text;
}
INSTANTIATE_TEST_SUITE_P(All, ScenarioFault, testing::ValuesIn(kFaults), [](const auto& info) { return std::string(info.param.name); });

TEST(ScenarioFaults, LinesAreInTheCatalogue) {
  std::set<std::string> all;
  for (const CaseLine& line : catalogue(Profile::full)) all.insert(to_text(line));
  for (const Fault& fault : kFaults) EXPECT_TRUE(all.count(to_text(parse_case_line(fault.caught_by)))) << fault.name << ": " << fault.caught_by;
}

}  // namespace
}  // namespace assay::conformance
