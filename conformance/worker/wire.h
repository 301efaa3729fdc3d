#pragma once
// What the judge and a worker process say to each other, through memory that both have mapped: batches of commands one way,
// one reply to each batch the other way. A channel is one context of the backend; a worker has one or more.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "conformance/backend.h"

namespace assay::conformance::worker {

// A pointer as a message has it.
inline std::uint64_t number_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// Functions of the interface; `load`: the library is loaded and its table read; `unload`: it is unloaded.
enum class Function : std::uint32_t {
  none,
  load,
  unload,
  open,
  close,
  last_error,
  device_info,
  allocate,
  release,
  copy_to_device,
  copy_to_host,
  fill,
  stream_create,
  stream_destroy,
  synchronize,
  event_create,
  event_destroy,
  event_record,
  event_elapsed,
  capture_begin,
  capture_end,
  graph_launch,
  graph_destroy,
  supports,
  numerics,
  list_algorithms,
  list_axes,
  set_axis,
  workspace_bytes,
  execute,
  questions,  // several calls: ask_questions() of questions.h
  nothing,    // no call
  count
};
// "execute()"; "the loading of the library".
std::string name_of(Function function);

// What both sides must have in common, as text: another build's worker is refused.
std::string protocol();

constexpr std::uint32_t kCommandMagic = 0x43595341, kReplyMagic = 0x52595341;

// What happens to the commands after a call whose status is not ASSAY_OK. Commands that release something are
// still executed; once the device is lost, nothing else is.
enum class OnFailure : std::uint32_t {
  report,  // they are passed over, and the judge reports the failure as that of its own doing
  stop,    // they are passed over; the status is the answer
  go_on,   // they are carried out; the status is the answer
};

// Heads a command of a batch.
struct CommandHead {
  Function function = Function::none;
  OnFailure on_failure = OnFailure::report;
  std::uint32_t length = 0;   // bytes behind this
  std::uint32_t answers = 0;  // 1: a reply to it is read
};

// Heads an answer in a reply; behind it the text of the error and what the function gave.
struct AnswerHead {
  std::uint32_t command = 0;  // its number in the batch
  assay_status status = ASSAY_OK;
  std::uint32_t length = 0;  // bytes behind this
};

// Heads a batch of commands and a reply.
struct Frame {
  std::uint32_t magic = 0;
  std::uint32_t sequence = 0;  // of the batch; a reply has that of its batch
  std::uint32_t length = 0;    // bytes behind this
  std::uint32_t commands = 0;
};

// Shared memory of one channel. What the worker writes is read once, and checked, before it is used.
struct Channel {
  static constexpr std::size_t kCommandBytes = std::size_t{1} << 20, kReplyBytes = std::size_t{4} << 20,
                               kStagingBytes = std::size_t{32} << 20, kAreaBytes = std::size_t{32} << 20;

  alignas(64) std::atomic<std::uint32_t> posted;  // batches, by the judge
  std::atomic<std::uint32_t> worker_waits;
  std::atomic<std::int32_t> judge_processor;        // that the judge's thread runs on, or -1
  alignas(64) std::atomic<std::uint32_t> answered;  // batches, by the worker
  std::atomic<std::uint32_t> judge_waits;
  alignas(64) std::atomic<std::uint32_t> progress;  // grows as calls begin and end
  std::atomic<std::uint32_t> calling;               // the Function that the worker is in, or none
  alignas(64) std::byte commands[kCommandBytes];
  std::byte replies[kReplyBytes];
  alignas(4096) std::byte staging[kStagingBytes];  // what is copied, both ways
  alignas(4096) std::byte area[kAreaBytes];        // what is read here by the judge, without another copy
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Waits until `word` is no longer `old`, at most this long. May return before, for no reason.
void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t old, std::chrono::nanoseconds at_most);
void wake(std::atomic<std::uint32_t>& word);

class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Writer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put_bytes(&value, sizeof value);
  }
  void put_bytes(const void* from, std::size_t count) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + count);
  }
  void put_text(std::string_view text) {
    put(static_cast<std::int64_t>(text.size()));
    put_bytes(text.data(), text.size());
  }
  // Over what stands there.
  template <class T>
  void put_at(std::size_t at, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  // Null and empty differ.
  void put_text(const char* text) {
    if (text == nullptr) return put(std::int64_t{-1});
    put_text(std::string_view(text));
  }
  void put_text(const std::string& text) { put_text(std::string_view(text)); }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what a Writer wrote. Errors: Malformed where there is less, or more than makes sense.
class Reader {
 public:
  Reader(const std::byte* first, std::size_t count) : at_(first), end_(first + count) {}
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  const std::byte* take(std::size_t count) {
    if (count > static_cast<std::size_t>(end_ - at_)) throw Malformed("a message ends too early");
    const std::byte* first = at_;
    at_ += count;
    return first;
  }
  // Into `text`; false for null.
  bool get_text(std::string& text) {
    const auto length = get<std::int64_t>();
    if (length == -1) return false;
    if (length < 0) throw Malformed("a text has a negative length");
    text.assign(reinterpret_cast<const char*>(take(static_cast<std::size_t>(length))), static_cast<std::size_t>(length));
    return true;
  }
  std::string text() {
    std::string made;
    get_text(made);
    return made;
  }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

 private:
  const std::byte *at_, *end_;
};

// What a reply says before the answer itself.
enum class Fault : std::uint32_t {
  none,
  exception,   // a C++ exception came through the C interface
  float_mode,  // the call left another floating-point mode
  jump,        // the call did not return where it was made
  overrun,     // the call wrote more items than it was given room for
  refused,     // `load`: no such library, or no table that can be used
};

}  // namespace assay::conformance::worker
