// Nothing is released while enqueued work may use it, however a case ends: a device may execute that work later.

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/backends/built_in.h"
#include "conformance/backends/host_backend.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/replay_steps.h"
#include "conformance/judge/calls/contract.h"
#include "conformance/judge/calls/scenario.h"

namespace assay::conformance {
namespace {

// The reference, counting the work that is enqueued on a stream and not waited for. One instance at a time.
struct Ledger {
  const char* refused = "";      // the function that refuses every call of an op
  assay_status with = ASSAY_OK;  // and the status
  std::map<assay_stream*, int> enqueued;
  std::set<std::string> early;  // released too early

  static inline Ledger* current = nullptr;
  Ledger() { current = this; }
  ~Ledger() { current = nullptr; }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  assay_status answer(const char* function) const { return std::string_view(refused) == function ? with : ASSAY_OK; }
  void give_back(const char* what) {
    for (const auto& [stream, count] : enqueued) {
      if (count > 0) early.insert(what);
    }
  }
};

const assay_backend& ledger_table() {
  static const assay_backend made = [] {
    assay_backend table = *reference_backend();
    table.name = "ledger";
    table.fill = [](assay_context* context, assay_stream* stream, void* data, std::uint8_t value, std::int64_t bytes) {
      ++Ledger::current->enqueued[stream];
      return reference_backend()->fill(context, stream, data, value, bytes);
    };
    table.copy_to_device = [](assay_context* context, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
      ++Ledger::current->enqueued[stream];
      return reference_backend()->copy_to_device(context, stream, to, from, bytes);
    };
    table.copy_to_host = [](assay_context* context, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
      ++Ledger::current->enqueued[stream];
      return reference_backend()->copy_to_host(context, stream, to, from, bytes);
    };
    table.graph_launch = [](assay_context* context, assay_graph* graph, assay_stream* stream) {
      ++Ledger::current->enqueued[stream];
      return reference_backend()->graph_launch(context, graph, stream);
    };
    table.execute = [](assay_context* context, assay_stream* stream, const assay_call* call) {
      if (stream->recording == nullptr) ++Ledger::current->enqueued[stream];
      const assay_status status = Ledger::current->answer("execute");
      return status != ASSAY_OK ? status : reference_backend()->execute(context, stream, call);
    };
    table.supports = [](assay_context* context, const assay_call* call) {
      const assay_status status = Ledger::current->answer("supports");
      return status != ASSAY_OK ? status : reference_backend()->supports(context, call);
    };
    table.numerics = [](assay_context* context, const assay_call* call, assay_numerics* numerics) {
      const assay_status status = Ledger::current->answer("numerics");
      return status != ASSAY_OK ? status : reference_backend()->numerics(context, call, numerics);
    };
    table.workspace_bytes = [](assay_context*, const assay_call*, std::int64_t* bytes) {
      *bytes = 1000;  // so that there is a workspace to prepare
      return Ledger::current->answer("workspace_bytes");
    };
    table.capture_begin = [](assay_context* context, assay_stream* stream) {
      const assay_status status = Ledger::current->answer("capture_begin");
      return status != ASSAY_OK ? status : reference_backend()->capture_begin(context, stream);
    };
    table.synchronize = [](assay_context* context, assay_stream* stream, std::int64_t timeout_ms) {
      Ledger::current->enqueued[stream] = 0;
      return reference_backend()->synchronize(context, stream, timeout_ms);
    };
    table.stream_destroy = [](assay_context* context, assay_stream* stream) {
      if (Ledger::current->enqueued[stream] > 0) Ledger::current->early.insert("a stream");
      Ledger::current->enqueued.erase(stream);
      reference_backend()->stream_destroy(context, stream);
    };
    table.release = [](assay_context* context, void* data) {
      Ledger::current->give_back("memory");
      reference_backend()->release(context, data);
    };
    table.graph_destroy = [](assay_context* context, assay_graph* graph) {
      Ledger::current->give_back("a graph");
      reference_backend()->graph_destroy(context, graph);
    };
    table.close = [](assay_context* context) {
      Ledger::current->give_back("a context");
      reference_backend()->close(context);
    };
    return table;
  }();
  return made;
}

// For every op the first call, replay, scenario and case of wrong calls of smoke and standard, as far as they exist.
std::vector<std::string> lines_of_every_kind() {
  std::vector<std::string> lines;
  std::set<std::string> kinds;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    const std::string kind = line.op == "scenario" ? to_text(line).substr(0, to_text(line).find(" modules"))
                             : line.has("contract") && line.integer("contract") != 0 ? line.op + " contract"
                             : replay_plan(line).count > 0                           ? line.op + " replay"
                                                                                     : line.op;
    if (kinds.insert(kind).second) lines.push_back(to_text(line));
  }
  return lines;
}

void judge_line(Backend& backend, const CaseLine& line) {
  const std::vector<std::string> wanted = line.op == "scenario" ? std::vector<std::string>{} : wanted_outputs(line);
  JudgeOptions options;
  options.title = to_text(line);
  options.explains = false;
  if (line.op == "scenario") {
    judge_scenario(backend, line, options);
    return;
  }
  options.wanted = &wanted;
  if (line.has("contract") && line.integer("contract") != 0) {
    judge_contract(backend, generate(line), options);
  } else if (replay_plan(line).count > 0) {
    judge_replay(backend, replay_steps(line), options);
  } else {
    judge(backend, generate(line), nullptr, options);
  }
}

struct Refusal {
  const char* function;
  assay_status status;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.function << " " << refusal.status; }

class GivenBack : public testing::TestWithParam<Refusal> {};

TEST_P(GivenBack, once_it_is_not_in_use) {
  for (const std::string& text : lines_of_every_kind()) {
    Ledger ledger;
    ledger.refused = GetParam().function;
    ledger.with = GetParam().status;
    {
      Backend backend(ledger_table());
      judge_line(backend, parse_case_line(text));
    }
    EXPECT_TRUE(ledger.early.empty()) << text << ": " << *ledger.early.begin() << " was released too early";
  }
}

INSTANTIATE_TEST_SUITE_P(However, GivenBack,
                         testing::Values(Refusal{"", ASSAY_OK}, Refusal{"supports", ASSAY_NOT_SUPPORTED},
                                         Refusal{"supports", ASSAY_FAILED}, Refusal{"execute", ASSAY_FAILED},
                                         Refusal{"execute", ASSAY_NOT_SUPPORTED}, Refusal{"numerics", ASSAY_FAILED},
                                         Refusal{"workspace_bytes", ASSAY_FAILED}, Refusal{"capture_begin", ASSAY_FAILED}));

}  // namespace
}  // namespace assay::conformance
