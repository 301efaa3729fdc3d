#pragma once
// Memory that the layers of a model share, because their calls run one after another on one stream: the scratch of a call, as
// large as the largest layer needs, and the memory that the cuBLASLt path keeps (gemm_workspaces.h).
//
//   LinearPool pool(stream);
//   options.pool = &pool;              // of each GroupedLinear, whose calls all go to this stream
//
// A layer without a pool, with 8 groups, 32768 rows, 4096 x 7168 and block scaling, needs several hundred MiB of scratch and
// 96 MiB for the library; a hundred layers with a pool need that once.
//
// Rules. All calls of the modules of a pool, and all replays of graphs of them, run on the pool's stream, or are ordered by the
// caller as if they did. One thread uses the modules of a pool at a time. The pool outlives its modules and their graphs.
// A module that needs more scratch enlarges it in its constructor or in reserve(); graphs captured before keep the
// old scratch, which is released with the pool.

#include <cstdint>
#include <vector>

#include "device/cublaslt/gemm_workspaces.h"
#include "device/support/memory_source.h"

namespace assay::device {

class LinearPool {
 public:
  // On the current device, which must be the stream's. `source` must outlive the pool. `library_bytes` for each layout. With an
  // allocator all memory of the pool and of its modules comes from it. Allocates nothing. Errors: InvalidArgument; CudaError.
  explicit LinearPool(Stream stream, const MemorySource& source = device_memory(),
                      std::int64_t library_bytes = GemmWorkspaces::kLibraryBytes, const Allocator& allocator = {});
  LinearPool(const LinearPool&) = delete;
  LinearPool& operator=(const LinearPool&) = delete;

  Stream stream() const { return stream_; }
  int device() const { return device_; }
  std::int64_t library_bytes() const { return library_bytes_; }
  const Allocator& allocator() const { return allocator_; }
  // Of scratch, of the library and of set-up buffers; without the memory that belongs to modules.
  std::int64_t memory_bytes() const;

  // Enlarges the scratch to at least `bytes`. Errors: those of the allocation; the pool is then unchanged.
  void reserve_scratch(std::int64_t bytes);
  // The scratch for a call that is launched now. Within a capture the graph keeps using it.
  void* scratch();
  GemmWorkspaces& workspaces() { return workspaces_; }

 private:
  Stream stream_;
  const MemorySource& source_;
  const std::int64_t library_bytes_;
  const Allocator allocator_;
  const int device_;
  GemmWorkspaces workspaces_;
  DeviceMemory scratch_;
  bool captured_ = false;              // a graph may use scratch_
  std::vector<DeviceMemory> retired_;  // smaller ones that graphs may use
};

}  // namespace assay::device
