#include "conformance/worker/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <utility>

#include "conformance/backends/built_in.h"
#include "conformance/worker/answers.h"
#include "reference/support/parallel.h"

namespace assay::conformance::worker {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::atomic<bool (*)()> asked_to_end = nullptr;

// Time for what is no call: the start of a process, the way from one call to the next on a busy machine.
constexpr std::int64_t kBetweenCalls = 30'000;
// What a wait of the backend may take beyond the time that it was given.
constexpr std::int64_t kGrace = 1'000;
// A call that is under way when the program is asked to end.
constexpr std::int64_t kLastCall = 2'000;
// Opening a device takes its time, whatever a call may take.
constexpr std::int64_t kDeviceOpens = 120'000;

bool is_built_in(const std::string& name) {
  const auto all = built_in_backends();
  return std::any_of(all.begin(), all.end(), [&](const assay_backend* each) { return name == each->name; });
}

std::string time_text(std::int64_t limit_ms) { return limit_ms % 1000 == 0 ? fmt::format("{} s", limit_ms / 1000) : fmt::format("{} ms", limit_ms); }

// Workers with room for another context, of built-in backends.
std::mutex workers_mutex;
std::list<std::shared_ptr<Worker>>& workers() {
  static auto* all = new std::list<std::shared_ptr<Worker>>;  // kept warm until the program ends
  return *all;
}

std::shared_ptr<Worker> worker_with_room(const std::string& name, int& channel) {
  if (!is_built_in(name)) {
    auto made = std::make_shared<Worker>(name, 1);
    channel = made->take_channel();
    return made;
  }
  const std::lock_guard lock(workers_mutex);
  for (auto each = workers().begin(); each != workers().end();) {
    const std::shared_ptr<Worker> worker = *each;
    if (worker->is_spent || worker->process().has_ended()) {
      each = workers().erase(each);
      continue;
    }
    if (worker->name() == name && (channel = worker->take_channel()) >= 0) return worker;
    ++each;
  }
  auto made = std::make_shared<Worker>(name, static_cast<std::size_t>(thread_count()) + 1);
  workers().push_back(made);
  channel = made->take_channel();
  return made;
}

}  // namespace

void end_early_when(bool (*interrupted)()) { asked_to_end = interrupted; }

void start_afresh() {
  const std::lock_guard lock(workers_mutex);
  for (const std::shared_ptr<Worker>& each : workers()) each->is_spent = true;
  workers().clear();
}

Worker::Worker(std::string name, std::size_t channels)
    : name_(std::move(name)), memory_(std::make_shared<SharedMemory>(channels * sizeof(Channel))), used_(channels, false) {
  const bool plug_in = !is_built_in(name_);
  process_ = Process::start({std::to_string(channels), plug_in ? "limited" : "unlimited"}, memory_->descriptor(), [memory = memory_, channels] {
    for (std::size_t i = 0; i < channels; ++i) wake(static_cast<Channel*>(memory->data())[i].answered);
  });
}

Worker::~Worker() { process_->kill(); }

int Worker::take_channel() {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(used_.begin(), used_.end(), false);
  if (found == used_.end()) return -1;
  *found = true;
  return static_cast<int>(found - used_.begin());
}

void Worker::give_channel(int channel) {
  const std::lock_guard lock(mutex_);
  used_[static_cast<std::size_t>(channel)] = false;
}

Remote::Remote(const std::string& name, const std::string& options, std::int64_t limit_ms)
    : limit_ms_(limit_ms), worker_(worker_with_room(name, channel_)) {
  sequence_ = worker_->channel(channel_).posted.load();
  load();
  make_table();
  open(options);
}

// A channel whose context is not closed is not used again: what still goes on in it is not known.
Remote::~Remote() {
  try {
    if (is_open_ && is_usable()) close();
  } catch (const BackendError&) {  // one who wants to know calls close()
  }
  if (!is_open_ && is_usable()) worker_->give_channel(channel_);
}

void Remote::give_up() {
  lost_ = true;
  if (!is_built_in(worker_->name())) worker_->process().kill();
}

void Remote::read(const Answer& answer, const std::function<void(Reader&)>& take) {
  try {
    Reader from(answer.bytes.data() + answer.at, answer.bytes.size() - answer.at);
    take(from);
  } catch (const Malformed&) {
    ended("the process of backend " + worker_->name() + " answers with bytes that make no sense", ASSAY_FAILED);
  }
}

void Remote::fault(const std::string& text, bool spent) {
  if (spent) lost_ = true;
  throw BackendFault(ASSAY_FAILED, text, "", spent, is_alone());
}

// The worker has ended, or is ended here.
void Remote::ended(const std::string& what, assay_status status) {
  lost_ = true;
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
  const Answer answer = ask(Function::load, [&](Writer& to) { to.put_text(worker_->name()); }, device ? std::max(limit_ms_, kDeviceOpens) : 0);
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
  const Answer answer = ask(Function::open, [&](Writer& to) { to.put_text(options); }, device ? std::max(limit_ms_, kDeviceOpens) : 0);
  if (answer.status == ASSAY_OK) {
    is_open_ = true;
    return;
  }
  lost_ = true;
  throw BackendError(answer.status, "backend " + worker_->library.name + " does not open (" + std::string(conformance::name_of(answer.status)) + "): " + error_);
}

void Remote::close() {
  if (!is_open_ || !is_usable()) return;
  is_open_ = false;
  ask(Function::close, [](Writer&) {});
  if (is_built_in(worker_->name())) return;
  // The process of a library ends with it, so that what the library does then is seen.
  add(Function::unload, [](Writer&) {});
  post();
  lost_ = true;
  Process& process = worker_->process();
  if (!process.wait(milliseconds(limit_ms_))) ended(fmt::format("{} did not return within {}", name_of(Function::unload), time_text(limit_ms_)), ASSAY_TIMEOUT);
  if (process.end_text() != "ended with exit code 0") {
    ended(fmt::format("the process of backend {} {} in {}", worker_->name(), process.end_text(), name_of(Function::unload)), ASSAY_FAILED);
  }
}

void Remote::settle() {
  if (command_count_ == 0 || !is_usable()) return;
  post();
  read_reply(Function::none, wait_for_reply(Function::none, 0));
}

void Remote::add(Function function, const std::function<void(Writer&)>& fill) {
  if (commands_.size() > Channel::kCommandBytes / 2) settle();
  add_quietly(function, fill);
}

void Remote::add_quietly(Function function, const std::function<void(Writer&)>& fill) {
  Writer command;
  fill(command);
  commands_.put(function);
  commands_.put(static_cast<std::uint32_t>(command.size()));
  commands_.put_bytes(command.bytes().data(), command.size());
  ++command_count_;
}

Remote::Answer Remote::ask(Function function, const std::function<void(Writer&)>& fill, std::int64_t limit_ms) {
  if (!is_usable()) {
    if (worker_->process().has_ended()) ended("the process of backend " + worker_->name() + " has " + worker_->process().end_text(), ASSAY_FAILED);
    throw BackendFault(ASSAY_FAILED, "the context of backend " + worker_->name() + " can be asked nothing more", "", true, is_alone());
  }
  add(function, fill);
  post();
  return read_reply(function, wait_for_reply(function, limit_ms));
}

void Remote::post() {
  Channel& channel = worker_->channel(channel_);
  const std::size_t bytes = commands_.size();
  if (bytes + sizeof(Frame) > Channel::kCommandBytes) {
    commands_.clear();
    command_count_ = 0;
    throw BackendError(ASSAY_INVALID_ARGUMENT, fmt::format("a call of {} bytes: expected at most {}", bytes, Channel::kCommandBytes - sizeof(Frame)));
  }
  const Frame frame{kCommandMagic, ++sequence_, static_cast<std::uint32_t>(bytes), command_count_};
  std::memcpy(channel.commands, &frame, sizeof frame);
  std::memcpy(channel.commands + sizeof frame, commands_.bytes().data(), bytes);
  commands_.clear();
  channel.posted.store(sequence_);
  if (channel.worker_waits.load() != 0) wake(channel.posted);
}

// Copies the reply out of shared memory, which the worker may still change.
std::vector<std::byte> Remote::wait_for_reply(Function last, std::int64_t limit_ms) {
  Channel& channel = worker_->channel(channel_);
  const std::uint32_t commands = std::exchange(command_count_, 0);
  const std::uint32_t before = sequence_ - 1;
  const Clock::time_point start = Clock::now();
  Clock::time_point since = start;
  std::uint32_t progress = channel.progress.load();
  bool hurried = false;
  const std::string who = "the process of backend " + worker_->name();
  const bool slept = !patience_.look(channel.answered, before);
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
    if (hurried) limit = std::min(limit, kLastCall);
    if (calling == Function::none) limit = std::max(limit, kBetweenCalls);
    // One that only pretends to go on does not go on for ever.
    const auto most = milliseconds(std::max(limit, kBetweenCalls)) * (commands + 1) * 2;
    if (now - since > milliseconds(limit) || now - start > most) {
      if (calling == Function::none) ended(who + " does not answer", ASSAY_TIMEOUT);
      ended(hurried ? fmt::format("{} had not returned when the program was asked to end", name_of(calling))
                    : fmt::format("{} did not return within {}", name_of(calling), time_text(std::min(limit, limit_ms_))), ASSAY_TIMEOUT);
    }
    channel.judge_waits.store(1);
    const std::uint32_t old = channel.answered.load();
    if (old != sequence_) wait_while(channel.answered, old, milliseconds(std::clamp<std::int64_t>(limit, 1, 50)));
    channel.judge_waits.store(0);
  }
  if (slept) patience_.slept();
  Frame frame;
  std::memcpy(&frame, channel.replies, sizeof frame);
  if (frame.magic != kReplyMagic || frame.sequence != sequence_ || frame.commands != commands || frame.length > Channel::kReplyBytes - sizeof frame) {
    ended(who + " answers with bytes that make no sense", ASSAY_FAILED);
  }
  return {channel.replies + sizeof frame, channel.replies + sizeof frame + frame.length};
}

Remote::Answer Remote::read_reply(Function last, std::vector<std::byte> bytes) {
  Answer answer;
  answer.bytes = std::move(bytes);
  Fault found = Fault::none;
  Function faulty = Function::none, failed = Function::none;
  assay_status failed_status = ASSAY_OK;
  std::string fault_text, failed_error;
  try {
    Reader from(answer.bytes.data(), answer.bytes.size());
    found = from.get<Fault>();
    faulty = from.get<Function>();
    fault_text = printable(from.text());
    failed = from.get<Function>();
    failed_status = from.get<assay_status>();
    failed_error = printable(from.text());
    answer.status = from.get<assay_status>();
    error_ = printable(from.text());
    answer.at = answer.bytes.size() - from.left();
  } catch (const Malformed&) {
    ended("the process of backend " + worker_->name() + " answers with bytes that make no sense", ASSAY_FAILED);
  }
  const std::string call = name_of(faulty);
  switch (found) {
    case Fault::none: break;
    case Fault::refused: lost_ = true; throw BackendError(ASSAY_FAILED, "backend " + worker_->name() + " " + fault_text);
    case Fault::exception: fault(call + " let a C++ exception through the C interface: " + fault_text, true);
    case Fault::float_mode: fault(call + " left " + fault_text, false);
    case Fault::jump: fault(call + " did not return where it was called (longjmp?)", true);
    case Fault::overrun: fault(call + " wrote more than the " + fault_text + " items that it was asked for", true);
    default: ended("the process of backend " + worker_->name() + " answers with bytes that make no sense", ASSAY_FAILED);
  }
  const bool device_lost = failed_status == ASSAY_DEVICE_LOST || answer.status == ASSAY_DEVICE_LOST;
  if (device_lost && last != Function::open) {
    worker_->is_spent = true;
    if (!is_alone() && is_built_in(worker_->name())) {  // the device is lost for all that share it, whoever lost it
      throw BackendFault(ASSAY_FAILED, "the device was lost: " + (answer.status == ASSAY_DEVICE_LOST ? error_ : failed_error), "", true, false);
    }
  }
  if (failed != Function::none) {
    error_ = failed_error;
    throw BackendError(failed_status, fmt::format("backend {}: {} returned '{}': {}", worker_->name(), name_of(failed), conformance::name_of(failed_status), failed_error));
  }
  return answer;
}

}  // namespace assay::conformance::worker
