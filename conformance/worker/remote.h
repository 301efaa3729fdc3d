#pragma once
// A backend in a worker process, as the judge has it: a table whose functions send messages.
//
// Copies, fills and releases are sent with the next call that has an answer, so that a case takes few messages. Where
// such a call failed, the next one says so and names it. later() does the same for calls that have an answer, which is then read
// with the others: call_sequence.h.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/backends/questions.h"
#include "conformance/worker/wire.h"
#include "conformance/worker/worker.h"

namespace assay::conformance::worker {

class Remote {
 public:
  // Starts a worker or takes one that has room, loads the library and opens a context.
  // Errors: BackendFault; BackendError as Backend's constructor.
  Remote(const std::string& name, const std::string& options, std::int64_t limit_ms);
  ~Remote();
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  const assay_backend& table() const { return table_; }
  // False once this context takes no further calls.
  bool is_usable() const { return !lost_ && !worker_->process().has_ended(); }
  // It is not to be used for another case.
  bool is_spent() const { return !is_usable() || worker_->is_spent; }
  // "ended by signal 11 (SIGSEGV)"; empty while the worker runs, and where a call has thrown a BackendFault for it.
  std::string end_text() const { return is_told_ ? "" : worker_->process().end_text(); }
  // A case begins: which cases a fault may come from depends on it.
  void begin_case() { ++worker_->cases; }
  // Sends what is still to be sent. Errors: BackendFault, BackendError.
  void settle();
  // Closes the context. Errors: BackendFault.
  void close();
  // The context is left as it is, and its worker is ended unless others use it.
  void give_up();
  // "flush-to-zero on": the mode that the library set as it was loaded; empty for the default.
  const std::string& float_mode() const { return worker_->library.float_mode; }

  // For the table's functions.
  struct Answer {
    std::vector<std::byte> bytes;
    assay_status status = ASSAY_OK;
  };
  // Reads what a function gave. Errors: BackendFault where the worker has sent something else.
  void read(const Answer& answer, const std::function<void(Reader&)>& take);
  // Adds a command; it is sent with the next ask(), or before where there are many.
  void add(Function function, const std::function<void(Writer&)>& fill);
  // The same for a call whose answer `take` reads, with the status and the error, once flush() or ask() has sent it. It is not
  // called where the command was passed over.
  using Take = std::function<void(assay_status status, const std::string& error, Reader& from)>;
  void later(Function function, OnFailure on_failure, const std::function<void(Writer&)>& fill, Take take);
  void synchronize_later(assay_stream* stream, std::int64_t timeout_ms,
                         std::function<void(assay_status, const std::string&)> take);
  // Waits with the next message, and ignores the result. No memory of this process is written for copies from before.
  void drain(assay_stream* stream);
  // With the next message, once its copies are over.
  void destroy_stream(assay_stream* stream);
  void questions_later(const assay_call& call, Questions& questions);
  void create_stream_later(std::shared_ptr<assay_stream*> made);
  // Sends what was added, and reads the answers. Errors: BackendFault; BackendError for a command without an answer that failed.
  void flush(Function last = Function::none, std::int64_t limit_ms = 0);
  // The same for calls that release something: never sends, so never throws.
  void add_quietly(Function function, const std::function<void(Writer&)>& fill);
  Answer ask(Function function, const std::function<void(Writer&)>& fill, std::int64_t limit_ms = 0);
  assay_status copy_to_device(assay_stream* stream, void* device, const void* host, std::int64_t bytes);
  assay_status copy_to_host(assay_stream* stream, void* host, const void* device, std::int64_t bytes);
  assay_status synchronize(assay_stream* stream, std::int64_t timeout_ms);
  // Memory that copies to the host reach without a copy by the judge; null if it is too small. The worker may write there.
  std::byte* area(std::size_t bytes);
  assay_status allocate(std::int64_t bytes, void** data);
  void release(void* data);
  const char* last_error() const { return error_.c_str(); }
  // The backend broke a rule of the interface.
  [[noreturn]] void fault(const std::string& text, bool spent = false);

 private:
  void load();
  void open(const std::string& options);
  void make_table();
  void append(Function function, OnFailure on_failure, const std::function<void(Writer&)>& fill, bool answers);
  void post();
  std::vector<std::byte> wait_for_reply(Function last, std::int64_t limit_ms);
  void read_reply(Function last, const std::vector<std::byte>& bytes);
  [[noreturn]] void no_sense();
  void note_lost(Function function, assay_status status, const std::string& error);
  [[noreturn]] void ended(const std::string& what, assay_status status);
  bool is_alone() const { return worker_->cases <= 1; }
  assay_status make_room(std::int64_t bytes);

  const std::int64_t limit_ms_;
  int channel_ = -1;
  std::shared_ptr<Worker> worker_;
  assay_backend table_{};
  bool is_open_ = false, lost_ = false, is_told_ = false;

  Writer commands_;
  std::uint32_t command_count_ = 0, sequence_ = 0;
  struct Awaited {
    std::uint32_t command;
    Function function;
    Take take;
  };
  std::vector<Awaited> awaited_;      // answers to commands that were added
  std::int64_t longest_wait_ms_ = 0;  // of the synchronize() calls among them
  std::string error_;                 // what last_error gives

  // Staging memory is used from the front, and again once every stream with copies in it has been waited for.
  struct Read {
    assay_stream* stream;
    void* host;
    std::size_t at, bytes;
    std::uint64_t number;
  };
  struct Copying {
    assay_stream* stream;
    std::uint64_t number;  // of its last copy
  };
  void note_copy(assay_stream* stream);
  void put_wait(Writer& to, assay_stream* stream, std::int64_t timeout_ms);
  void end_copies(assay_stream* stream, std::uint64_t last, bool good);
  std::vector<Read> reads_;
  std::vector<Copying> copying_;
  std::size_t staged_ = 0;
  std::uint64_t copies_ = 0;
  std::map<std::uintptr_t, std::int64_t> allocated_;
};

// Calls on workers end early once this says that the program is to end.
void end_early_when(bool (*interrupted)());

}  // namespace assay::conformance::worker
