#pragma once
// A backend in the harness's hands: loaded, opened, and its calls as C++ that throws BackendError.

#include <memory>
#include <string>
#include <vector>

#include "conformance/backend.h"

namespace assay::conformance {

// A call that failed. `status` decides what the harness makes of it.
class BackendError : public std::exception {
 public:
  BackendError(assay_status status, std::string text) : status_(status), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  assay_status status() const { return status_; }

 private:
  assay_status status_;
  std::string text_;
};

std::string_view name_of(assay_status status);

// Built-in backends, in a fixed order. "device", "bringup" and "cublaslt" are among them if the build has CUDA.
std::vector<const assay_backend*> built_in_backends();

class Backend {
 public:
  // `name` is a built-in backend or the path of a shared library. Errors: BackendError with ASSAY_FAILED for a library
  // that does not load, lacks the entry point, speaks another version or leaves a required function out; whatever `open` says.
  explicit Backend(const std::string& name, const std::string& options = "");
  // A backend that is linked in. `table` must live as long as this. Errors: as above.
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

  // A call of this context has not finished in time: what it does is not known, and all that may wait for it (copies,
  // release, streams, graphs, close) may wait for ever. From here on the harness calls none of that: memory, streams and
  // context are left behind.
  void give_up() { given_up_ = true; }
  // The same for every context on a device, now and later: one that hangs keeps the others waiting too.
  static void give_up_all();
  bool is_given_up() const;

  // Throws unless `status` is ASSAY_OK, and gives the context up at ASSAY_TIMEOUT; `doing` is what was attempted: "allocate 4096 bytes".
  void check(assay_status status, const std::string& doing);
  std::string last_error();

 private:
  void open(const std::string& options);

  void* library_ = nullptr;
  const assay_backend* table_ = nullptr;
  assay_context* context_ = nullptr;
  bool given_up_ = false;
};

}  // namespace assay::conformance
