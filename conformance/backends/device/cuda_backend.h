#pragma once
// Common parts of backends on CUDA: memory, streams, events, graphs, the status word. A backend on CUDA is a name and a
// CudaCalls; see device_backend.cc.
//
// Options, separated by commas: "device=N" (default 0), "pool=off" (every buffer is an allocation of its own, for
// compute-sanitizer), and those of the backend. A fault that only the device can detect is reported through the status word, and is an
// error of synchronize.

#include <memory>
#include <string>
#include <vector>

#include "conformance/backend.h"
#include "conformance/backends/device/device_call.h"

namespace assay::conformance {

// The calls of one open context. Its functions throw what device_call() throws; the context's device is the thread's.
class CudaCalls {
 public:
  virtual ~CudaCalls() = default;
  // Text after the versions of CUDA and the driver: "cuBLASLt 13.10.0 (/usr/lib/...)", or nothing.
  virtual std::string software() { return ""; }
  // Called before prepare() when the harness calls supports(): the inputs are in device memory.
  virtual void look(const assay_call&) {}
  virtual DeviceCall prepare(const assay_call& call) = 0;
  virtual void state(const assay_call& call, assay_numerics& numerics) = 0;
  virtual std::vector<assay_algorithm> algorithms(const assay_call&) { return {}; }
  virtual std::vector<assay_axis> axes() { return {}; }
  virtual void set_axis(const std::string& name, const std::string& value);
};

struct CudaBackend {
  const char* name;
  const char* description;
  const char* options;  // its own, as error messages name them: "gemm=auto|cublaslt|emulated"; "" for none
  // `options`: KEY=VALUE each, in the order given. Throws InvalidArgument for one that it does not know.
  std::unique_ptr<CudaCalls> (*open)(const std::vector<std::string>& options);
  bool has_algorithms = false, has_axes = false;
};

// The function table of `backend`, which must be a constant with static storage: cuda_table<kMine>().
assay_backend make_cuda_table(const CudaBackend& backend, assay_status (*open)(const char*, assay_context**));
assay_status open_cuda(const CudaBackend& backend, const char* options, assay_context** context);

template <const CudaBackend& backend>
const assay_backend* cuda_table() {
  static const assay_backend table =
      make_cuda_table(backend, [](const char* options, assay_context** context) { return open_cuda(backend, options, context); });
  return &table;
}

// The architecture of the thread's device in the words of the tensor-core table, "sm90", and as the library counts, 90.
struct Architecture {
  std::string name;
  int number = 0;
  int multiprocessors = 0;
};
Architecture current_architecture();

}  // namespace assay::conformance
