#include "conformance/worker/session.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "conformance/backends/backend.h"
#include "conformance/worker/call.h"

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

constexpr std::size_t kLongestText = 4096;
std::string bounded(const char* text) { return text == nullptr ? "" : std::string(text, strnlen(text, kLongestText)); }

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

template <class Body>
void Session::call(Function function, Body body) {
  channel_.calling.store(static_cast<std::uint32_t>(function));
  channel_.progress.fetch_add(1);
  const std::uint64_t before = calls_;
  const volatile std::uint64_t mine = before + 1;
  calls_ = before + 1;
  set_float_mode({});
  try {
    body();
  } catch (const std::exception& error) {
    note(Fault::exception, function, bounded(error.what()));
  } catch (...) {
    note(Fault::exception, function, "of no standard type");
  }
  if (const FloatMode left = current_float_mode(); left != FloatMode{}) {
    set_float_mode({});
    note(Fault::float_mode, function, describe(left));
  }
  if (mine != calls_) {
    fault_ = Fault::none;
    note(Fault::jump, function, "");
    calls_ = mine;
  }
  channel_.calling.store(static_cast<std::uint32_t>(Function::none));
  channel_.progress.fetch_add(1);
}

template <class Body>
void Session::status_of(Function function, Body body) {
  status_ = ASSAY_FAILED;  // what it stays where the call does not return by itself
  call(function, [&] { status_ = body(); });
  if (status_ == ASSAY_OK || fault_ != Fault::none) return;
  call(Function::last_error, [&] { error_ = bounded(table_->last_error(function == Function::open ? nullptr : context_)); });
}

void Session::serve() {
  std::uint32_t seen = 0;
  for (;;) {
    if (!patience_.look(channel_.posted, seen)) {
      while (channel_.posted.load() == seen) {
        channel_.worker_waits.store(1);
        if (channel_.posted.load() == seen) wait_while(channel_.posted, seen, std::chrono::seconds(1));
        channel_.worker_waits.store(0);
      }
      patience_.slept();
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
  Reader commands(channel_.commands + sizeof frame, frame.length);
  for (std::uint32_t i = 0; i < frame.commands; ++i) {
    const auto function = commands.get<Function>();
    const auto length = commands.get<std::uint32_t>();
    Reader command(commands.take(length), length);
    status_ = ASSAY_OK;
    error_.clear();
    answer_.clear();
    // After a call that failed nothing more is made of what follows from it; memory is given back all the same.
    if (failed != Function::none && !frees(function)) continue;
    execute(function, command);
    if (i + 1 < frame.commands && status_ != ASSAY_OK) failed = function, failed_status = status_, failed_error = error_;
    if (fault_ != Fault::none && fault_ != Fault::float_mode) break;
  }
  Writer reply;
  reply.put(fault_);
  reply.put(faulty_);
  reply.put_text(fault_text_);
  reply.put(failed);
  reply.put(failed_status);
  reply.put_text(failed_error);
  reply.put(status_);
  reply.put_text(error_);
  reply.put_bytes(answer_.bytes().data(), answer_.size());
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
        dlclose(loaded_.library);
        std::exit(0);
      });
      return;
    case Function::open: {
      const std::string options = command.text();
      context_ = nullptr;
      table_ = loaded_.table;
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
  if (table == nullptr) {
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
    // Code linked with -ffast-math sets this as it is loaded. That is no fault: its calls are made in the default mode.
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
  loaded_.table = table;
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

void Session::execute_question(Function function, Reader& command) {
  if (function == Function::device_info) {
    assay_device_info info = command.get<assay_device_info>();
    status_of(function, [&] { return table_->device_info(context_, &info); });
    return answer_.put(info);
  }
  if (function == Function::set_axis) {
    const std::string name = command.text(), value = command.text();
    return status_of(function, [&] { return table_->set_axis(context_, name.c_str(), value.c_str()); });
  }
  const OwnedCall made(command);
  if (function == Function::supports) {
    status_of(function, [&] { return table_->supports(context_, &made.get()); });
  } else if (function == Function::numerics) {
    assay_numerics stated = command.get<assay_numerics>();
    status_of(function, [&] { return table_->numerics(context_, &made.get(), &stated); });
    answer_.put(stated);
  } else {
    std::int64_t bytes = 0;
    status_of(function, [&] { return table_->workspace_bytes(context_, &made.get(), &bytes); });
    answer_.put(bytes);
  }
}

namespace {

// Room for `capacity` items, and two behind them that must stay as they are.
template <class Item>
struct Room {
  explicit Room(std::int32_t capacity) : items(static_cast<std::size_t>(capacity) + 2) {
    std::memset(static_cast<void*>(items.data()), 0, items.size() * sizeof(Item));
    for (Item& each : items) each.struct_size = sizeof each;
    std::memset(static_cast<void*>(items.data() + capacity), 0xCD, 2 * sizeof(Item));
    room = capacity;
  }
  bool is_overrun() const {
    const auto* first = reinterpret_cast<const unsigned char*>(items.data() + room);
    return std::any_of(first, first + 2 * sizeof(Item), [](unsigned char each) { return each != 0xCD; });
  }
  std::vector<Item> items;
  std::int32_t room;
};

}  // namespace

void Session::execute_list(Function function, Reader& command) {
  const auto capacity = command.get<std::int32_t>();
  std::int32_t count = 0;
  const auto give = [&](auto& room) {
    if (room.is_overrun()) return note(Fault::overrun, function, std::to_string(capacity));
    answer_.put(count);
    const std::int32_t given = std::clamp(count, 0, capacity);
    answer_.put_bytes(room.items.data(), static_cast<std::size_t>(given) * sizeof room.items[0]);
  };
  if (function == Function::list_axes) {
    Room<assay_axis> room(capacity);
    status_of(function, [&] { return table_->list_axes(context_, capacity == 0 ? nullptr : room.items.data(), capacity, &count); });
    return give(room);
  }
  const OwnedCall made(command);
  Room<assay_algorithm> room(capacity);
  status_of(function, [&] {
    return table_->list_algorithms(context_, &made.get(), capacity == 0 ? nullptr : room.items.data(), capacity, &count);
  });
  give(room);
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
    case Function::stream_destroy: return call(function, [&, stream = pointer<assay_stream>(command)] { table_->stream_destroy(context_, stream); });
    case Function::event_destroy: return call(function, [&, event = pointer<assay_event>(command)] { table_->event_destroy(context_, event); });
    case Function::graph_destroy: return call(function, [&, graph = pointer<assay_graph>(command)] { table_->graph_destroy(context_, graph); });
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
      const OwnedCall made(command);
      return status_of(function, [&] { return table_->execute(context_, stream, &made.get()); });
    }
    default: throw Malformed("an unknown command");
  }
}

}  // namespace assay::conformance::worker
