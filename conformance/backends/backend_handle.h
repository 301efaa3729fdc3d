#pragma once
// A handle of a loaded and opened backend: the calls of its C interface (conformance/backend.h) as C++ functions that throw
// BackendError.

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/backend.h"

namespace assay::conformance {

// A call that failed. The verdict depends on `status`.
class BackendError : public std::exception {
 public:
  BackendError(assay_status status, std::string text) : status_(status), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  assay_status status() const { return status_; }

 private:
  assay_status status_;
  std::string text_;
};

// A fault that no call excuses: the process of the backend ended or hung, or it broke a rule of the interface. It is always a
// verdict on the backend; what() names the call. Status ASSAY_TIMEOUT: a call did not return in time.
class BackendFault : public BackendError {
 public:
  BackendFault(assay_status status, std::string text, std::string printed, bool spent, bool alone)
      : BackendError(status, std::move(text)), printed_(std::move(printed)), spent_(spent), alone_(alone) {}
  // The end of what the process printed; may be empty.
  const std::string& printed() const { return printed_; }
  // The context cannot be used any more.
  bool is_spent() const { return spent_; }
  // No other case has run in that process, so this one is the cause.
  bool is_alone() const { return alone_; }

 private:
  std::string printed_;
  bool spent_, alone_;
};

std::string_view name_of(assay_status status);

// Checks that all required functions are there, groups of optional ones are complete or absent, and the sizes that
// it states are possible. Returns the fault of the table, "leaves out the required function open", or empty.
std::string fault_of(const assay_backend& table);

class CallSequence;
struct CallResult;
namespace worker {
class Remote;
}

// Built-in backends, in a fixed order. "device", "emulated" and "cublaslt" are among them if the build has CUDA.
std::vector<const assay_backend*> built_in_backends();
bool is_built_in(const std::string& name);

// Default limit of a call in milliseconds.
constexpr std::int64_t kCallLimit = 60'000;

// A shared library, and the built-in backends on devices, are loaded in a process of their own (conformance/worker/): the table
// below then sends each call there. No call takes longer than its limit: if it would, the process is ended,
// and the call throws BackendFault, as it does where the process ends or breaks a rule. Functions that only release something
// do not throw; settle() does.
class Backend {
 public:
  // `name` is a built-in backend, the path of a shared library, python:MODULE:NAME or ffi:LIBRARY:SYMBOL; `limit_ms` is the time limit of a call. Errors: BackendError
  // with ASSAY_FAILED for a library that does not load, lacks the entry point, speaks another version or leaves a required
  // function out; the error of `open`; BackendFault.
  explicit Backend(const std::string& name, const std::string& options = "", std::int64_t limit_ms = kCallLimit);
  // A backend that is linked in, called in this process. `table` must live as long as this. Errors: as above.
  explicit Backend(const assay_backend& table, const std::string& options = "");
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const assay_backend& table() const { return *table_; }
  assay_context* context() const { return context_; }
  std::string name() const { return table_->name; }
  assay_device_info device_info();
  // Algorithms that can serve `call`; empty where the backend lists none.
  std::vector<assay_algorithm> algorithms(const assay_call& call);
  // Settings that change how calls are carried out, not what they mean; empty where the backend has none.
  std::vector<assay_axis> axes();
  // Errors: ASSAY_INVALID_ARGUMENT for a name or value that the backend does not have.
  void set_axis(const std::string& name, const std::string& value);
  bool can_capture() const { return table_->capture_begin != nullptr; }

  // A call of this context has not finished in time: its state is unknown, and everything that may wait for it (copies,
  // release, streams, graphs, close) may wait for ever. From then on the harness calls none of these: memory, streams and
  // context are abandoned.
  void give_up();
  // The context cannot serve another case: it was abandoned, its process has ended, its device is lost.
  bool is_given_up() const;
  // Its calls are made in another process, which writes to no memory of this one.
  bool is_in_worker() const { return remote_ != nullptr; }

  // A case begins; see BackendFault::is_alone.
  void begin_case();
  // Waits until all requests are carried out, releases included. Errors: BackendFault, BackendError.
  void settle();
  // Closes the context; afterwards nothing may be called. Errors: BackendFault. The destructor does the same without errors.
  void close();
  // Creates a stream, at once or with the next call that returns a result; null until then. Errors: BackendError, here or there.
  std::shared_ptr<assay_stream*> create_stream();
  // Waits for the stream, at once or with the next release, without errors: before memory that enqueued work may use, or the
  // stream, is released. Null: nothing to wait for.
  void drain(assay_stream* stream);
  // Memory of this process that copy_to_host reaches with the fewest copies, at least `bytes` of it, or null; the same for all
  // callers. A backend in a worker may write there at any time.
  std::byte* area(std::size_t bytes);
  // How a backend's process ended, if it ended by itself: "ended by signal 11 (SIGSEGV)"; empty for all others.
  std::string end_text() const;
  // A note that is not a fault: the library set another floating-point mode when it was loaded.
  std::string note() const;

  // Throws unless `status` is ASSAY_OK, and abandons the context at ASSAY_TIMEOUT; `doing` names the attempt: "allocate 4096 bytes".
  void check(assay_status status, const std::string& doing);
  void check(const CallResult& result, const std::string& doing);
  std::string last_error();

 private:
  friend class CallSequence;
  void open(const std::string& options);

  std::unique_ptr<worker::Remote> remote_;  // null where the table is called in this process
  std::unique_ptr<assay_backend> known_;    // the table, where it was compiled with a shorter one
  const assay_backend* table_ = nullptr;
  assay_context* context_ = nullptr;
  bool given_up_ = false;
};

}  // namespace assay::conformance
