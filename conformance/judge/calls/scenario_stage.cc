#include "conformance/judge/calls/scenario_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/backends/call_layout.h"
#include "conformance/generate/scenario_inputs.h"
#include "conformance/judge/call_runner.h"
#include "conformance/judge/calls/late_stream.h"
#include "conformance/judge/calls/questions_blame.h"
#include "conformance/support/counter_random.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::uint8_t kFirstPoison = 0xff;

}  // namespace

ScenarioStage::Streams::~Streams() {
  if (backend.is_given_up()) return;
  for (assay_stream* each : *this) backend.table().stream_destroy(backend.context(), each);
}

void ScenarioStage::Streams::drain() {
  for (assay_stream* each : *this) backend.drain(each);
}

ScenarioStage::ScenarioStage(Backend& backend, const CaseLine& line, const Scenario& scenario, const std::vector<Case>& inputs,
                             const std::vector<std::vector<OutputSpec>>& specs, std::int64_t algorithm, std::int64_t timeout_ms)
    : backend_(backend),
      scenario_(scenario),
      specs_(specs),
      timeout_ms_(timeout_ms),
      streams_(backend),
      memory_(backend, static_cast<std::uint64_t>(line.integer("seed")) * 0x9E37) {
  for (int i = 0; i < std::max(scenario.on_streams ? scenario.modules : 1, 2); ++i) {
    assay_stream* made = nullptr;
    backend.check(backend.table().stream_create(backend.context(), &made), "create a stream");
    streams_.push_back(made);
  }
  std::map<std::string, CaseMemory::Part> memory;                   // by its name, see scenario_memory()
  std::vector<std::map<std::string, CaseMemory::Part>> outputs_of;  // of each call, by output
  members_.resize(scenario.calls.size());
  for (std::size_t c = 0; c < scenario.calls.size(); ++c) {
    const ScenarioCall& call = scenario.calls[c];
    const Case& problem = inputs[c];
    Member& member = members_[c];
    const std::string place = scenario.place(c) + ", ";
    for (const auto& [name, value] : problem.attributes) member.parameters.push_back(parameter_of(name, value));
    const std::map<std::string, std::string> shared = scenario_memory(line, call, problem);
    for (const auto& [name, tensor] : problem.in) {
      member.inputs.push_back(tensor_of(name, tensor.type, tensor.shape));
      Input source{name, 0, false, false};
      const auto chained = std::find_if(call.chained.begin(), call.chained.end(),
                                        [&, n = name](const ScenarioLink& link) { return link.input == n; });
      const auto named = shared.find(name);
      if (chained != call.chained.end()) {
        source.chained = true;
        source.part = outputs_of[chained->call].at(chained->output);
        require(memory_.bytes(source.part) == member.inputs.back().bytes, "chained input " + name, member.inputs.back().bytes,
                "the size of " + chained->output);
      } else {
        // Memory is shared by tensors of one type and shape; see scenario_inputs().
        const std::string key = named == shared.end() ? ""
                                                      : fmt::format("{} {} {}", named->second, static_cast<int>(tensor.type),
                                                                    fmt::join(tensor.shape, ","));
        const auto found = key.empty() ? memory.end() : memory.find(key);
        source.owner = found == memory.end();
        if (source.owner) {
          source.part = memory_.add(place + "in/" + name, CaseMemory::Role::input, member.inputs.back().bytes);
          if (!key.empty()) memory[key] = source.part;
        } else {
          source.part = found->second;
        }
      }
      member.sources.push_back(std::move(source));
    }
    outputs_of.emplace_back();
    for (const OutputSpec& spec : specs[c]) {
      member.outputs.push_back(tensor_of(spec.name, spec.type, spec.shape));
      member.output_parts.push_back(memory_.add(place + spec.name, CaseMemory::Role::output, member.outputs.back().bytes));
      outputs_of.back()[spec.name] = member.output_parts.back();
    }
    assay_call& made = member.call;
    made = call_of_this_build();
    made.op = problem.op.c_str();
    made.parameters = member.parameters.data();
    made.parameter_count = static_cast<std::int32_t>(member.parameters.size());
    made.inputs = member.inputs.data();
    made.input_count = static_cast<std::int32_t>(member.inputs.size());
    made.outputs = member.outputs.data();
    made.output_count = static_cast<std::int32_t>(member.outputs.size());
    made.algorithm = algorithm;
  }
  memory_.place();
  for (Member& member : members_) {
    for (std::size_t i = 0; i < member.sources.size(); ++i) member.inputs[i].data = memory_.data(member.sources[i].part);
    for (std::size_t i = 0; i < member.output_parts.size(); ++i) member.outputs[i].data = memory_.data(member.output_parts[i]);
  }
  // What supports() and numerics() look at must be the line's own inputs.
  set_inputs(inputs);
  memory_.write(streams_[0], kFirstPoison, kFirstPoison);
  backend.check(backend.table().synchronize(backend.context(), streams_[0], timeout_ms_), "wait for the copies of the inputs");
  size_workspaces();
}

void ScenarioStage::size_workspaces() {
  std::vector<std::int64_t> needs;  // of each workspace
  for (std::size_t c = 0; c < members_.size(); ++c) {
    Member& member = members_[c];
    std::int64_t bytes = 0;
    const assay_status sized = backend_.table().workspace_bytes(backend_.context(), &member.call, &bytes);
    if (sized != ASSAY_OK) {
      if (sized != ASSAY_NOT_SUPPORTED) {
        workspace_fault_ =
            fmt::format("{}: workspace_bytes() returned '{}': {}", scenario_.place(c), name_of(sized), backend_.last_error());
      }
      bytes = 0;  // supports() reports the same again when it is called
    } else if (bytes < 0 || bytes > CaseMemory::kMaxBytes) {
      workspace_fault_ = fmt::format("{}: workspace_bytes() asks for {} bytes: expected 0 to 2^48", scenario_.place(c), bytes);
      bytes = 0;
    }
    member.call.workspace_bytes = bytes;
    member.workspace = scenario_.workspace == ScenarioWorkspace::shared ? static_cast<std::size_t>(scenario_.calls[c].module) : c;
    needs.resize(std::max(needs.size(), member.workspace + 1), 0);
    needs[member.workspace] = std::max(needs[member.workspace], bytes);
  }
  std::vector<CaseMemory::Part> parts;
  for (const std::int64_t each : needs) parts.push_back(memory_.add("workspace", CaseMemory::Role::workspace, each));
  memory_.place();
  memory_.write_placed(streams_[0], kFirstPoison);
  for (Member& member : members_) {
    if (member.call.workspace_bytes > 0) member.call.workspace = memory_.data(parts[member.workspace]);
  }
}

// Takes memory of many sizes and fills it; `give_back` returns about half of it at once, in another order. The rest stays
// until the end.
void ScenarioStage::take_history(bool give_back) {
  if (scenario_.history == 0) return;
  constexpr std::int64_t kSizes[] = {64, 256, 1024, 4096, 20'000, 65'536, 300'000};
  const CounterRandom random(scenario_.history, give_back ? "before" : "after");
  std::vector<std::unique_ptr<GuardedBuffer>> taken;
  for (std::uint32_t i = 0; i < 24; ++i) {
    taken.push_back(std::make_unique<GuardedBuffer>(backend_, streams_[0], "memory of no tensor", kSizes[random.below(i, 7)]));
    taken.back()->fill(i % 2 == 0 ? 0xff : 0xa5);
  }
  backend_.check(backend_.table().synchronize(backend_.context(), streams_[0], timeout_ms_), "wait for memory to be filled");
  for (std::uint32_t i = 0; !taken.empty(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(random.below(100 + i, static_cast<std::uint32_t>(taken.size())));
    if (!give_back || i % 2 == 0) history_.push_back(std::move(taken[static_cast<std::size_t>(at)]));
    std::rotate(taken.begin() + at, taken.begin() + at + 1, taken.end());
    taken.pop_back();
  }
}

std::string ScenarioStage::graph_text(std::size_t graph) const {
  std::string text = "graph ";
  for (const std::size_t c : scenario_.graphs[graph]) text += (text.back() == ' ' ? "" : ",") + scenario_.calls[c].step;
  const ScenarioCall& first = scenario_.calls[scenario_.graphs[graph].front()];
  return text + (scenario_.modules > 1 ? fmt::format(" of module {}", first.module + 1) : "");
}

std::optional<std::string> ScenarioStage::capture(assay_status& status) {
  const assay_backend& table = backend_.table();
  status = ASSAY_FAILED;
  prepare(streams_[0], 0xa5);
  take_history(true);
  for (std::size_t g = 0; g < scenario_.graphs.size(); ++g) {
    assay_stream* stream = stream_of(scenario_.calls[scenario_.graphs[g].front()], false);
    status = table.capture_begin(backend_.context(), stream);
    if (status != ASSAY_OK) return fmt::format("begin a capture: '{}': {}", name_of(status), backend_.last_error());
    std::string fault;
    assay_status failed = ASSAY_OK;
    for (const std::size_t c : scenario_.graphs[g]) {
      failed = table.execute(backend_.context(), stream, &members_[c].call);
      if (failed == ASSAY_OK) continue;
      fault = fmt::format("under capture {} returned '{}': {}", scenario_.place(c), name_of(failed), backend_.last_error());
      break;
    }
    assay_graph* graph = nullptr;
    status = table.capture_end(backend_.context(), stream, &graph);
    if (graph != nullptr) graphs_.push_back(graph);
    if (!fault.empty()) {
      status = failed;
      return fault;
    }
    if (status != ASSAY_OK)
      return fmt::format("end a capture, {}: '{}': {}", graph_text(g), name_of(status), backend_.last_error());
  }
  take_history(false);
  const std::vector<std::string> damage = memory_.look(streams_[0], nullptr);
  if (damage.empty()) return std::nullopt;
  return damage.front() + " under capture: nothing may be carried out before the graph is launched";
}

std::vector<std::string> ScenarioStage::written_by_questions() {
  std::vector<std::string> damage = memory_.look(streams_[0], nullptr);
  if (damage.empty()) return damage;
  const assay_backend& table = backend_.table();
  std::vector<NamedQuestion> questions;
  assay_numerics numerics = Questions().stated;
  std::int64_t bytes = 0;
  for (std::size_t c = 0; c < members_.size(); ++c) {
    const assay_call& call = members_[c].call;
    const std::string of = " of " + scenario_.place(c);
    questions.push_back({"workspace_bytes()" + of, [&] { table.workspace_bytes(backend_.context(), &call, &bytes); }});
    questions.push_back({"supports()" + of, [&] { table.supports(backend_.context(), &call); }});
    questions.push_back({"numerics()" + of, [&] { table.numerics(backend_.context(), &call, &numerics); }});
  }
  const auto prepare_all = [this](std::uint8_t poison) {
    workspaces_filled_ = false;
    prepare(streams_[0], poison);
  };
  return blamed(std::move(damage), memory_, streams_[0], prepare_all, questions);
}

void ScenarioStage::set_inputs(const std::vector<Case>& inputs) {
  for (std::size_t c = 0; c < members_.size(); ++c) {
    for (std::size_t i = 0; i < members_[c].sources.size(); ++i) {
      const Input& source = members_[c].sources[i];
      const Tensor& tensor = inputs[c].in.at(source.name);
      require(static_cast<std::int64_t>(tensor.bytes.size()) == members_[c].inputs[i].bytes, "replayed input " + source.name,
              static_cast<std::int64_t>(tensor.bytes.size()), "as many bytes as were captured");
      if (source.owner) memory_.set(source.part, tensor.bytes.data());
    }
  }
}

void ScenarioStage::write(assay_stream* stream, std::uint8_t poison, std::int64_t piece) {
  const bool workspaces = scenario_.workspace == ScenarioWorkspace::own || !workspaces_filled_;
  memory_.write(stream, poison, workspaces ? std::optional(poison) : std::nullopt, piece);
  workspaces_filled_ = true;
}

void ScenarioStage::prepare(assay_stream* stream, std::uint8_t poison) {
  write(stream, poison, 0);
  backend_.check(backend_.table().synchronize(backend_.context(), stream, timeout_ms_), CaseMemory::kPoisoned);
}

// The stream of a call of the module, or, in every second run, another one.
assay_stream* ScenarioStage::stream_of(const ScenarioCall& call, bool turned) const {
  const std::size_t module = scenario_.on_streams ? static_cast<std::size_t>(call.module) : 0;
  return streams_[(module + (turned ? 1 : 0)) % streams_.size()];
}

std::string ScenarioStage::text_of(Late late) {
  if (late == Late::no) return "";
  return std::string("behind other work on the stream, ") +
         (late == Late::waited ? "waited for there and read on another" : "read there without a wait before");
}

void ScenarioStage::note(const Called& called, ScenarioRun& result) const {
  if (called.result.status == ASSAY_OK || result.status != ASSAY_OK) return;
  result.status = called.result.status;
  result.error = fmt::format("{} returned '{}': {}", called.what, name_of(called.result.status), called.result.error);
}

void ScenarioStage::make(CallSequence& calls, bool launch, bool turned, std::deque<Called>& called) {
  for (const std::size_t g : scenario_.launches) {
    assay_stream* stream = stream_of(scenario_.calls[scenario_.graphs[g].front()], turned);
    if (launch) {
      calls.launch(graphs_[g], stream, called.emplace_back(Called{graph_text(g), {}}).result);
    } else {
      for (const std::size_t c : scenario_.graphs[g]) {
        calls.execute(stream, members_[c].call, called.emplace_back(Called{scenario_.place(c), {}}).result);
      }
    }
  }
}

// False where the calls did not finish. `waited`: the results of waits for the first streams.
bool ScenarioStage::have_ended(const std::vector<CallResult>& waited, bool turned, ScenarioRun& result) {
  for (std::size_t i = 0; i < waited.size(); ++i) {
    if (waited[i].status != ASSAY_TIMEOUT || !waited[i].made) {
      note({"the wait for the calls", waited[i]}, result);
      continue;
    }
    backend_.give_up();
    result.status = ASSAY_TIMEOUT;
    std::string module;
    for (const ScenarioCall& call : scenario_.calls) {
      if (scenario_.on_streams && stream_of(call, turned) == streams_[i])
        module = fmt::format(" on the stream of module {}", call.module + 1);
    }
    result.error = fmt::format("not finished after {} ms{}", timeout_ms_, module);
    return false;
  }
  return result.status == ASSAY_OK;
}

void ScenarioStage::read(assay_stream* stream, const CallResult& fetched, ScenarioRun& result) {
  result.outputs.resize(members_.size());
  CaseMemory::Outputs outputs;
  for (std::size_t c = 0; c < members_.size(); ++c) {
    for (std::size_t i = 0; i < specs_[c].size(); ++i)
      outputs[members_[c].output_parts[i]] = &result.outputs[c][specs_[c][i].name];
  }
  result.damage = memory_.look(stream, fetched, &outputs);
  for (const std::unique_ptr<GuardedBuffer>& buffer : history_) {
    if (const std::string text = buffer->damage(); !text.empty()) result.damage.push_back(text);
  }
}

// Writes inputs and poison, and keeps the streams busy where `late` says so.
std::vector<std::unique_ptr<LateStream>> ScenarioStage::begin(CallSequence& calls, assay_stream* on, std::uint8_t poison,
                                                              Late late, CallResult& written) {
  std::vector<std::unique_ptr<LateStream>> busy;
  const bool behind = late != Late::no && !scenario_.on_streams;
  // A call that overtakes the stream reads this, or its output is overwritten by it.
  const auto other = static_cast<std::uint8_t>(~poison);
  if (behind) {
    memory_.blank(on, other);
  } else {
    write(streams_[0], poison, 0);
  }
  calls.synchronize(behind ? on : streams_[0], timeout_ms_, written);
  if (late != Late::no && !LateStream::is_idle_on(backend_)) {
    calls.finish();
    backend_.check(written, CaseMemory::kPoisoned);
    if (behind) {
      busy.push_back(std::make_unique<LateStream>(backend_, on));
    } else {
      for (assay_stream* each : streams_) busy.push_back(std::make_unique<LateStream>(backend_, each));
    }
  }
  if (behind) {
    calls.enqueue([&] {
      memory_.blank(on, other);
      write(on, poison, kLatePiece);
    });
  }
  return busy;
}

ScenarioRun ScenarioStage::run(const std::vector<Case>& inputs, std::uint8_t poison, bool launch, Late late) {
  const bool turned = runs_++ % 2 == 1;
  set_inputs(inputs);
  assay_stream* const on = stream_of(scenario_.calls[scenario_.graphs[scenario_.launches.front()].front()], turned);
  const bool waits = late != Late::unwaited || scenario_.on_streams;
  assay_stream* const reader = late == Late::no ? streams_[0] : waits ? streams_[on == streams_[0] ? 1 : 0] : on;
  CallResult written, fetched;
  std::deque<Called> called;
  std::vector<CallResult> waited(waits ? streams_.size() : 0);
  CallSequence calls(backend_);
  const std::vector<std::unique_ptr<LateStream>> busy = begin(calls, on, poison, late, written);
  make(calls, launch, turned, called);
  ScenarioRun result;
  try {
    for (std::size_t i = 0; i < waited.size(); ++i) calls.synchronize(streams_[i], timeout_ms_, waited[i]);
    memory_.fetch(calls, reader, fetched);
    calls.finish();
    backend_.check(written, CaseMemory::kPoisoned);
    for (const Called& each : called) note(each, result);
    if (have_ended(waited, turned, result)) read(reader, fetched, result);
  } catch (const BackendFault&) {
    throw;
  } catch (const BackendError& error) {
    if (late == Late::no) throw;
    result.status = error.status();
    result.error = error.what();
  }
  return result;
}

}  // namespace assay::conformance
