#include "conformance/worker/session.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/worker/call.h"
#include "conformance/worker/cpu_affinity.h"
#include "conformance/worker/process.h"
#include "conformance/worker/server.h"
#include "conformance/worker/session_call.h"

namespace assay::conformance::worker {
namespace {

template <class T>
T* pointer(Reader& reader) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(reader.get<std::uint64_t>()));
}
template <class T>
void put_pointer(Writer& writer, T* value) {
  writer.put(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(value)));
}

bool frees(Function function) {
  return function == Function::release || function == Function::stream_destroy || function == Function::event_destroy ||
         function == Function::graph_destroy || function == Function::close;
}

}  // namespace

std::string describe(const FloatMode& mode) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
#if defined(__x86_64__)
  static constexpr const char* kRounding[] = {"to nearest", "downward", "upward", "toward zero"};
  if ((mode.vector & 0x8000) != 0) add("flush-to-zero on");
  if ((mode.vector & 0x0040) != 0) add("denormals-are-zero on");
  if ((mode.vector >> 13 & 3) != 0) add(std::string("rounding ") + kRounding[mode.vector >> 13 & 3]);
  if ((mode.vector & 0x1F80) != 0x1F80) add("floating-point traps on");
  if (mode.x87 != FloatMode{}.x87) add("another x87 control word");
#elif defined(__aarch64__)
  static constexpr const char* kRounding[] = {"to nearest", "upward", "downward", "toward zero"};
  if ((mode.control >> 24 & 1) != 0) add("flush-to-zero on");
  if ((mode.control >> 19 & 1) != 0) add("flush-to-zero of f16 on");
  if ((mode.control >> 22 & 3) != 0) add(std::string("rounding ") + kRounding[mode.control >> 22 & 3]);
#endif
  return text.empty() && mode != FloatMode{} ? "another floating-point mode" : text;
}

void Session::note(Fault fault, Function function, std::string text) {
  if (fault_ != Fault::none) return;  // the first tells what happened
  fault_ = fault;
  faulty_ = function;
  fault_text_ = std::move(text);
}

void Session::serve() {
  std::uint32_t seen = 0;
  for (;;) {
    while (channel_.posted.load() == seen) {
      const ScopedCpuAffinity there(channel_.judge_processor.load());  // until the judge has sent more
      channel_.worker_waits.store(1);
      if (channel_.posted.load() == seen) wait_while(channel_.posted, seen, std::chrono::seconds(1));
      channel_.worker_waits.store(0);
    }
    seen = channel_.posted.load();
    answer_batch();
    channel_.answered.store(seen);
    if (channel_.judge_waits.load() != 0) wake(channel_.answered);
  }
}

void Session::answer_batch() {
  Frame frame;
  std::memcpy(&frame, channel_.commands, sizeof frame);
  fault_ = Fault::none;
  fault_text_.clear();
  Function failed = Function::none;
  assay_status failed_status = ASSAY_OK;
  std::string failed_error;
  bool over = false;  // no further command is executed; memory is still released
  Writer answers;
  Reader commands(channel_.commands + sizeof frame, frame.length);
  for (std::uint32_t i = 0; i < frame.commands; ++i) {
    const auto head = commands.get<CommandHead>();
    Reader command(commands.take(head.length), head.length);
    if (over && !frees(head.function)) continue;
    status_ = ASSAY_OK;
    over_ = false;
    error_.clear();
    answer_.clear();
    execute(head.function, command);
    if (head.answers != 0) {
      Writer behind;
      behind.put_text(error_);
      behind.put_bytes(answer_.bytes().data(), answer_.size());
      answers.put(AnswerHead{i, status_, static_cast<std::uint32_t>(behind.size())});
      answers.put_bytes(behind.bytes().data(), behind.size());
    }
    if (!over && status_ != ASSAY_OK && head.on_failure == OnFailure::report)
      failed = head.function, failed_status = status_, failed_error = error_;
    over = over || over_ || status_ == ASSAY_DEVICE_LOST || (status_ != ASSAY_OK && head.on_failure != OnFailure::go_on);
    if (fault_ != Fault::none && fault_ != Fault::float_mode) break;
  }
  Writer reply;
  reply.put(fault_);
  reply.put(faulty_);
  reply.put_text(fault_text_);
  reply.put(failed);
  reply.put(failed_status);
  reply.put_text(failed_error);
  reply.put_bytes(answers.bytes().data(), answers.size());
  const Frame head{kReplyMagic, frame.sequence, static_cast<std::uint32_t>(reply.size()), frame.commands};
  if (sizeof head + reply.size() > Channel::kReplyBytes) std::abort();  // lists are cut before they are as long as this
  std::memcpy(channel_.replies, &head, sizeof head);
  std::memcpy(channel_.replies + sizeof head, reply.bytes().data(), reply.size());
}

void Session::execute(Function function, Reader& command) {
  switch (function) {
    case Function::load: return execute_load(command);
    case Function::unload:  // destructors run now, or as the process ends; the judge waits for that
      call(function, [&] {
        if (loaded_.library == nullptr) std::_Exit(0);  // an interpreter: its modules have nothing to tear down for the judge
        dlclose(loaded_.library);
        std::exit(0);
      });
      return;
    case Function::open: {
      const std::string options = command.text();
      context_ = nullptr;
      table_ = loaded_.table;
      sizes_ = sizes_of(*table_);
      return status_of(function, [&] { return table_->open(options.c_str(), &context_); });
    }
    case Function::close:
      call(function, [&] { table_->close(context_); });
      context_ = nullptr;
      return;
    case Function::allocate:
    case Function::release:
    case Function::copy_to_device:
    case Function::copy_to_host:
    case Function::fill: return execute_memory(function, command);
    case Function::device_info:
    case Function::supports:
    case Function::numerics:
    case Function::workspace_bytes:
    case Function::set_axis: return execute_question(function, command);
    case Function::list_algorithms:
    case Function::list_axes: return execute_list(function, command);
    case Function::questions: return execute_questions(command);
    case Function::nothing: return;
    default: return execute_stream(function, command);
  }
}

void Session::execute_load(Reader& command) {
  const std::string name = command.text();
  const assay_backend* table = nullptr;
  for (const assay_backend* each : built_in_backends()) {
    if (name == each->name) table = each;
  }
  std::string refusal, mode;
  if (table == nullptr && is_python(name)) {
    const LoadBackend load = backend_loader();
    if (load == nullptr)
      return note(Fault::refused, Function::load, "is an object of Python, and this process has no interpreter");
    call(Function::load, [&] { table = load(name, refusal); });
    if (fault_ == Fault::float_mode) fault_ = Fault::none;
    if (fault_ != Fault::none) return;
    if (table != nullptr) refusal = fault_of(*table);
  } else if (table == nullptr) {
    assay_backend_entry entry = nullptr;
    call(Function::load, [&] {
      loaded_.library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (loaded_.library == nullptr) {
        const char* why = dlerror();
        const bool missing = name.find('/') != std::string::npos && access(name.c_str(), F_OK) != 0 && errno == ENOENT;
        refusal = "does not load: " + (missing ? "no such file" : std::string(why));
      } else {
        entry = reinterpret_cast<assay_backend_entry>(dlsym(loaded_.library, ASSAY_BACKEND_ENTRY));
        if (entry == nullptr) refusal = "does not export " ASSAY_BACKEND_ENTRY;
      }
    });
    // Code linked with -ffast-math sets this as it is loaded. That is not a fault: its calls are made in the default mode.
    if (fault_ == Fault::float_mode) {
      mode = fault_text_;
      fault_ = Fault::none;
    }
    if (entry != nullptr) call(Function::load, [&] { table = entry(); });
    if (fault_ != Fault::none) return;
    if (entry != nullptr && table == nullptr) refusal = "returns no function table";
    if (table != nullptr) refusal = fault_of(*table);
  }
  if (!refusal.empty()) return note(Fault::refused, Function::load, refusal);
  loaded_.known = known_table(*table);
  loaded_.table = &loaded_.known;
  answer_.put_text(bounded(table->name));
  answer_.put_text(bounded(table->description));
  answer_.put_text(mode);
  answer_.put(static_cast<std::uint8_t>(table->capture_begin != nullptr));
  answer_.put(static_cast<std::uint8_t>(table->event_create != nullptr));
  answer_.put(static_cast<std::uint8_t>(table->list_algorithms != nullptr));
  answer_.put(static_cast<std::uint8_t>(table->list_axes != nullptr));
}

void Session::execute_memory(Function function, Reader& command) {
  if (function == Function::allocate) {
    const auto bytes = command.get<std::int64_t>();
    void* data = nullptr;
    status_of(function, [&] { return table_->allocate(context_, bytes, &data); });
    return put_pointer(answer_, data);
  }
  if (function == Function::release) {
    void* data = pointer<void>(command);
    return call(function, [&] { table_->release(context_, data); });
  }
  auto* stream = pointer<assay_stream>(command);
  void* device = pointer<void>(command);
  const auto bytes = command.get<std::int64_t>();
  if (function == Function::fill) {
    const auto value = command.get<std::uint8_t>();
    return status_of(function, [&] { return table_->fill(context_, stream, device, value, bytes); });
  }
  std::byte* staged = channel_.staging + command.get<std::uint64_t>();
  if (function == Function::copy_to_device) {
    status_of(function, [&] { return table_->copy_to_device(context_, stream, device, staged, bytes); });
  } else {
    status_of(function, [&] { return table_->copy_to_host(context_, stream, staged, device, bytes); });
  }
}

void Session::execute_stream(Function function, Reader& command) {
  switch (function) {
    case Function::stream_create: {
      assay_stream* stream = nullptr;
      status_of(function, [&] { return table_->stream_create(context_, &stream); });
      return put_pointer(answer_, stream);
    }
    case Function::event_create: {
      assay_event* event = nullptr;
      status_of(function, [&] { return table_->event_create(context_, &event); });
      return put_pointer(answer_, event);
    }
    case Function::stream_destroy:
      return call(function, [&, stream = pointer<assay_stream>(command)] { table_->stream_destroy(context_, stream); });
    case Function::event_destroy:
      return call(function, [&, event = pointer<assay_event>(command)] { table_->event_destroy(context_, event); });
    case Function::graph_destroy:
      return call(function, [&, graph = pointer<assay_graph>(command)] { table_->graph_destroy(context_, graph); });
    case Function::event_record: {
      auto* event = pointer<assay_event>(command);
      auto* stream = pointer<assay_stream>(command);
      return status_of(function, [&] { return table_->event_record(context_, event, stream); });
    }
    case Function::event_elapsed: {
      auto* start = pointer<assay_event>(command);
      auto* stop = pointer<assay_event>(command);
      double milliseconds = 0;
      status_of(function, [&] { return table_->event_elapsed(context_, start, stop, &milliseconds); });
      return answer_.put(milliseconds);
    }
    case Function::graph_launch: {
      auto* graph = pointer<assay_graph>(command);
      auto* stream = pointer<assay_stream>(command);
      return status_of(function, [&] { return table_->graph_launch(context_, graph, stream); });
    }
    default: break;
  }
  auto* stream = pointer<assay_stream>(command);
  switch (function) {
    case Function::synchronize: {
      const auto timeout = command.get<std::int64_t>();
      return status_of(function, [&] { return table_->synchronize(context_, stream, timeout); });
    }
    case Function::capture_begin: return status_of(function, [&] { return table_->capture_begin(context_, stream); });
    case Function::capture_end: {
      assay_graph* graph = nullptr;
      status_of(function, [&] { return table_->capture_end(context_, stream, &graph); });
      return put_pointer(answer_, graph);
    }
    case Function::execute: {
      const OwnedCall made(command, sizes_);
      return status_of(function, [&] { return table_->execute(context_, stream, &made.get()); });
    }
    default: throw Malformed("an unknown command");
  }
}

}  // namespace assay::conformance::worker
