#pragma once
// The calls of a scale map: operands for which D shows the place of a scale, in the backend's memory.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/diagnose/scale_map/product.h"
#include "conformance/diagnose/scale_map/scale_map.h"
#include "conformance/judge/memory/given_back.h"
#include "conformance/judge/memory/guarded_buffer.h"

namespace assay::conformance {

// A stream; abandoned, like all resources, if its context was abandoned.
struct OwnStream {
  explicit OwnStream(Backend& of) : backend(of) {
    backend.check(backend.table().stream_create(backend.context(), &handle), "create a stream");
  }
  ~OwnStream() {
    if (!backend.is_given_up()) backend.table().stream_destroy(backend.context(), handle);
  }
  void drain() { backend.drain(handle); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  Backend& backend;
  assay_stream* handle = nullptr;
};

struct CallTrouble {
  Verdict verdict;
  std::string text;
};

class ScaleCalls {
 public:
  // Allocates everything. All three must outlive the calls. Throws BackendError when the backend's own memory, copies or
  // streams fail.
  ScaleCalls(Backend& backend, const MappedProduct& product, const ScaleMapOptions& options);

  // Throws CallTrouble where the call cannot be made.
  void open();

  // From here on the scales of this operand encode their places.
  void look_at(bool of_columns);

  // D with products in this block alone. Errors: CallTrouble, BackendError.
  const std::vector<std::byte>& ask(std::int64_t block);

  // A call that changes scales looks like one that reads other scales.
  void require_scales_kept();

 private:
  struct Scales {
    std::vector<float> host;  // with the memory around the array
    GuardedBuffer* buffer = nullptr;
  };

  GuardedBuffer& add_input(const std::string& name, Format type, const std::vector<std::int64_t>& shape);
  void wait(const char* what);

  // The codes of the operand of the rows in one block of every group that has it.
  void put(std::int64_t block, std::byte code);

  Backend& backend_;
  const MappedProduct& product_;
  const ScaleMapOptions& options_;
  OwnStream stream_;
  const std::string op_ = "grouped_gemm", d_name_ = "d";
  std::deque<std::string> names_;
  std::vector<assay_parameter> parameters_;
  std::vector<assay_tensor> inputs_;
  std::deque<GuardedBuffer> buffers_;
  GuardedBuffer *moving_ = nullptr, *d_ = nullptr, *workspace_ = nullptr;
  Scales rows_, columns_;
  std::vector<std::byte> moved_, read_;
  assay_tensor output_{};
  std::string workspace_fault_;
  assay_call call_{};
  Drained<OwnStream> drained_{stream_};
};

}  // namespace assay::conformance
