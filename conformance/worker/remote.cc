#include "conformance/worker/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "conformance/worker/answers.h"
#include "conformance/worker/cpu_affinity.h"

namespace assay::conformance::worker {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::atomic<bool (*)()> asked_to_end = nullptr;

// Time for everything except calls: the start of a process, the gap between two calls on a busy machine.
constexpr std::int64_t kBetweenCalls = 30'000;
// What a wait of the backend may take beyond the time that it was given.
constexpr std::int64_t kGrace = 1'000;
// A call that is under way when the program is asked to end.
constexpr std::int64_t kLastCall = 2'000;
// Opening a device may take long, regardless of the limit of a call.
constexpr std::int64_t kDeviceOpens = 120'000;

std::string time_text(std::int64_t limit_ms) {
  return limit_ms % 1000 == 0 ? fmt::format("{} s", limit_ms / 1000) : fmt::format("{} ms", limit_ms);
}

}  // namespace

void end_early_when(bool (*interrupted)()) { asked_to_end = interrupted; }

Remote::Remote(const std::string& name, const std::string& options, std::int64_t limit_ms)
    : limit_ms_(limit_ms), worker_(worker_with_room(name, channel_)) {
  sequence_ = worker_->channel(channel_).posted.load();
  load();
  make_table();
  open(options);
}

// A channel whose context is not closed is not used again: its remaining activity is unknown.
Remote::~Remote() {
  try {
    if (is_open_ && is_usable()) close();
  } catch (const BackendError&) {  // close() reports it
  }
  if (!is_open_ && is_usable()) worker_->give_channel(channel_);
}

void Remote::give_up() {
  lost_ = true;
  if (!is_built_in(worker_->name())) worker_->process().kill();
}

void Remote::read(const Answer& answer, const std::function<void(Reader&)>& take) {
  try {
    Reader from(answer.bytes.data(), answer.bytes.size());
    take(from);
  } catch (const Malformed&) {
    no_sense();
  }
}

void Remote::fault(const std::string& text, bool spent) {
  if (spent) lost_ = true;
  throw BackendFault(ASSAY_FAILED, text, "", spent, is_alone());
}

// The worker has ended, or is ended here.
void Remote::ended(const std::string& what, assay_status status) {
  lost_ = is_told_ = true;
  const bool alone = is_alone();
  worker_->is_spent = true;
  worker_->process().kill();
  worker_->process().wait(milliseconds(2000));
  throw BackendFault(status, what, printable(worker_->process().printed()), true, alone);
}

void Remote::load() {
  const std::lock_guard lock(worker_->loading);
  Worker::Library& library = worker_->library;
  if (library.loaded) return;
  const bool device = is_built_in(worker_->name());
  const Answer answer = ask(
      Function::load, [&](Writer& to) { to.put_text(worker_->name()); }, device ? std::max(limit_ms_, kDeviceOpens) : 0);
  read(answer, [&](Reader& from) {
    library.name = printable(from.text());
    library.description = printable(from.text());
    library.float_mode = printable(from.text());
    library.captures = from.get<std::uint8_t>() != 0;
    library.has_events = from.get<std::uint8_t>() != 0;
    library.has_algorithms = from.get<std::uint8_t>() != 0;
    library.has_axes = from.get<std::uint8_t>() != 0;
  });
  library.loaded = true;
}

void Remote::open(const std::string& options) {
  const bool device = is_built_in(worker_->name());
  const Answer answer = ask(
      Function::open, [&](Writer& to) { to.put_text(options); }, device ? std::max(limit_ms_, kDeviceOpens) : 0);
  if (answer.status == ASSAY_OK) {
    is_open_ = true;
    return;
  }
  lost_ = true;
  throw BackendError(answer.status, "backend " + worker_->library.name + " does not open (" +
                                        std::string(conformance::name_of(answer.status)) + "): " + error_);
}

void Remote::close() {
  if (!is_open_ || !is_usable()) return;
  is_open_ = false;
  ask(Function::close, [](Writer&) {});
  if (is_built_in(worker_->name())) return;
  // The process of a library ends with it, so that what the library does then is detected.
  add(Function::unload, [](Writer&) {});
  post();
  lost_ = true;
  Process& process = worker_->process();
  if (!process.wait(milliseconds(limit_ms_)))
    ended(fmt::format("{} did not return within {}", name_of(Function::unload), time_text(limit_ms_)), ASSAY_TIMEOUT);
  if (process.end_text() != "ended with exit code 0") {
    ended(fmt::format("the process of backend {} {} in {}", worker_->name(), process.end_text(), name_of(Function::unload)),
          ASSAY_FAILED);
  }
}

void Remote::settle() {
  if (is_usable()) flush();
}

void Remote::add(Function function, const std::function<void(Writer&)>& fill) {
  if (commands_.size() > Channel::kCommandBytes / 2) settle();
  append(function, OnFailure::report, fill, false);
}

void Remote::add_quietly(Function function, const std::function<void(Writer&)>& fill) {
  append(function, OnFailure::report, fill, false);
}

void Remote::later(Function function, OnFailure on_failure, const std::function<void(Writer&)>& fill, Take take) {
  if (!is_usable()) {
    if (worker_->process().has_ended())
      ended("the process of backend " + worker_->name() + " has " + worker_->process().end_text(), ASSAY_FAILED);
    throw BackendFault(ASSAY_FAILED, "the context of backend " + worker_->name() + " takes no further calls", "", true,
                       is_alone());
  }
  if (commands_.size() > Channel::kCommandBytes / 2) settle();
  awaited_.push_back({command_count_, function, std::move(take)});
  append(function, on_failure, fill, true);
}

void Remote::append(Function function, OnFailure on_failure, const std::function<void(Writer&)>& fill, bool answers) {
  const std::size_t at = commands_.size();
  commands_.put(CommandHead{});
  fill(commands_);
  const auto length = static_cast<std::uint32_t>(commands_.size() - at - sizeof(CommandHead));
  commands_.put_at(at, CommandHead{function, on_failure, length, answers ? 1u : 0u});
  ++command_count_;
}

Remote::Answer Remote::ask(Function function, const std::function<void(Writer&)>& fill, std::int64_t limit_ms) {
  Answer answer;
  bool answered = false;
  later(function, OnFailure::stop, fill, [&](assay_status status, const std::string& error, Reader& from) {
    answered = true;
    answer.status = status;
    error_ = error;
    const std::byte* first = from.take(0);
    answer.bytes.assign(first, first + from.left());
  });
  flush(function, limit_ms);
  if (!answered) no_sense();
  return answer;
}

void Remote::flush(Function last, std::int64_t limit_ms) {
  if (command_count_ == 0) return;
  post();
  read_reply(last, wait_for_reply(last, limit_ms));
}

void Remote::post() {
  Channel& channel = worker_->channel(channel_);
  const std::size_t bytes = commands_.size();
  if (bytes + sizeof(Frame) > Channel::kCommandBytes) {
    commands_.clear();
    command_count_ = 0;
    awaited_.clear();
    throw BackendError(ASSAY_INVALID_ARGUMENT,
                       fmt::format("a call of {} bytes: expected at most {}", bytes, Channel::kCommandBytes - sizeof(Frame)));
  }
  const Frame frame{kCommandMagic, ++sequence_, static_cast<std::uint32_t>(bytes), command_count_};
  std::memcpy(channel.commands, &frame, sizeof frame);
  std::memcpy(channel.commands + sizeof frame, commands_.bytes().data(), bytes);
  commands_.clear();
  channel.judge_processor.store(sched_getcpu());
  channel.posted.store(sequence_);
  if (channel.worker_waits.load() != 0) wake(channel.posted);
}

// Copies the reply out of shared memory, which the worker may still change.
std::vector<std::byte> Remote::wait_for_reply(Function last, std::int64_t limit_ms) {
  Channel& channel = worker_->channel(channel_);
  const std::uint32_t commands = std::exchange(command_count_, 0);
  const std::int64_t longest_wait = std::exchange(longest_wait_ms_, 0);
  const Clock::time_point start = Clock::now();
  Clock::time_point since = start;
  std::uint32_t progress = channel.progress.load();
  bool hurried = false;
  const std::string who = "the process of backend " + worker_->name();
  const ScopedCpuAffinity here(sched_getcpu());
  while (channel.answered.load() != sequence_) {
    const auto calling = static_cast<Function>(channel.calling.load());
    if (worker_->process().has_ended()) {
      if (channel.answered.load() == sequence_) break;
      const std::string place = calling == Function::none ? "between two calls" : "in " + name_of(calling);
      ended(fmt::format("{} {} {}", who, worker_->process().end_text(), place), ASSAY_FAILED);
    }
    const auto now = Clock::now();
    if (const std::uint32_t seen = channel.progress.load(); seen != progress) {
      progress = seen;
      since = now;
    }
    const auto asked = asked_to_end.load();
    if (!hurried && asked != nullptr && asked()) {
      hurried = true;
      since = now;
    }
    std::int64_t limit = std::max(limit_ms_, calling == last || last == Function::load ? limit_ms : 0);
    if (calling == Function::synchronize) limit = std::max(limit, longest_wait);
    if (hurried) limit = std::min(limit, kLastCall);
    if (calling == Function::none) limit = std::max(limit, kBetweenCalls);
    // A child that only pretends to make progress is ended too.
    const auto most = milliseconds(std::max(limit, kBetweenCalls)) * (commands + 1) * 2;
    if (now - since > milliseconds(limit) || now - start > most) {
      if (calling == Function::none) ended(who + " does not answer", ASSAY_TIMEOUT);
      ended(hurried ? fmt::format("{} had not returned when the program was asked to end", name_of(calling))
                    : fmt::format("{} did not return within {}", name_of(calling), time_text(std::min(limit, limit_ms_))),
            ASSAY_TIMEOUT);
    }
    channel.judge_waits.store(1);
    const std::uint32_t old = channel.answered.load();
    if (old != sequence_) wait_while(channel.answered, old, milliseconds(std::clamp<std::int64_t>(limit, 1, 50)));
    channel.judge_waits.store(0);
  }
  Frame frame;
  std::memcpy(&frame, channel.replies, sizeof frame);
  if (frame.magic != kReplyMagic || frame.sequence != sequence_ || frame.commands != commands ||
      frame.length > Channel::kReplyBytes - sizeof frame) {
    ended(who + " answers with bytes that make no sense", ASSAY_FAILED);
  }
  return {channel.replies + sizeof frame, channel.replies + sizeof frame + frame.length};
}

void Remote::no_sense() {
  ended("the process of backend " + worker_->name() + " answers with bytes that make no sense", ASSAY_FAILED);
}

// A lost device is lost for all contexts that share it.
void Remote::note_lost(Function function, assay_status status, const std::string& error) {
  if (status != ASSAY_DEVICE_LOST || function == Function::open) return;
  worker_->is_spent = true;
  if (!is_alone() && is_built_in(worker_->name()))
    throw BackendFault(ASSAY_FAILED, "the device was lost: " + error, "", true, false);
}

void Remote::read_reply(Function last, const std::vector<std::byte>& bytes) {
  const std::vector<Awaited> awaited = std::exchange(awaited_, {});
  Reader from(bytes.data(), bytes.size());
  Fault found = Fault::none;
  Function faulty = Function::none, failed = Function::none;
  assay_status failed_status = ASSAY_OK;
  std::string fault_text, failed_error;
  struct Given {
    const Awaited* to;
    assay_status status;
    std::string error;
    const std::byte* first;
    std::size_t bytes;
  };
  std::vector<Given> given;
  try {
    found = from.get<Fault>();
    faulty = from.get<Function>();
    fault_text = printable(from.text());
    failed = from.get<Function>();
    failed_status = from.get<assay_status>();
    failed_error = printable(from.text());
    for (std::size_t next = 0; from.left() > 0;) {
      const auto head = from.get<AnswerHead>();
      Reader answer(from.take(head.length), head.length);
      while (next < awaited.size() && awaited[next].command != head.command) ++next;
      if (next == awaited.size()) throw Malformed("an answer to no question");
      const std::string error = printable(answer.text());
      given.push_back({&awaited[next++], head.status, error, answer.take(0), answer.left()});
    }
  } catch (const Malformed&) {
    no_sense();
  }
  const std::string call = name_of(faulty);
  switch (found) {
    case Fault::none: break;
    case Fault::refused: lost_ = true; throw BackendError(ASSAY_FAILED, "backend " + worker_->name() + " " + fault_text);
    case Fault::exception: fault(call + " let a C++ exception through the C interface: " + fault_text, true);
    case Fault::float_mode: fault(call + " left " + fault_text, false);
    case Fault::jump: fault(call + " did not return where it was called (longjmp?)", true);
    case Fault::overrun: fault(call + " wrote more than the " + fault_text + " items that were requested", true);
    default: no_sense();
  }
  note_lost(failed, failed_status, failed_error);
  for (const Given& each : given) {
    note_lost(last == Function::open ? last : each.to->function, each.status, each.error);
    try {
      Reader answer(each.first, each.bytes);
      each.to->take(each.status, each.error, answer);
    } catch (const Malformed&) {
      no_sense();
    }
  }
  if (failed != Function::none) {
    error_ = failed_error;
    throw BackendError(failed_status, fmt::format("backend {}: {} returned '{}': {}", worker_->name(), name_of(failed),
                                                  conformance::name_of(failed_status), failed_error));
  }
}

}  // namespace assay::conformance::worker
