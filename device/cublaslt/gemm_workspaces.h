#pragma once
// Memory of the cuBLASLt path that outlives its calls, for an owner that captures graphs, such as a module. The rule:
//
//   set-up buffer      the arrays that set_up_groups() writes and the library's kernels read, some KiB: one per device, stream
//                      and group count, and one for each graph captured on that stream, so that no graph writes into
//                      another's (fault C18). A graph's buffer serves a later capture once the graph and all
//                      executable graphs made of it have been destroyed
//   library workspace  the library's own part, 32 MiB: one per device and layout, since cuBLASLt up to 13.7 leaves descriptors
//                      there that a product of another layout must not read (fault C19)
//
// Memory keeps its address until the owner is destroyed, which must be after its graphs; two owners share nothing. It never
// comes from a graph's own memory pool: memory that is missing during a capture is allocated outside the graph (fault C20), and
// eager calls allocate in advance, so that captures rarely have to. Replay graphs of one owner that use the same layout one
// after another.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "device/cublaslt/cublaslt_gemm.h"
#include "device/support/memory_source.h"

namespace assay::device {

class GemmWorkspaces {
 public:
  static constexpr std::int64_t kLibraryBytes = std::int64_t{32} << 20;
  static constexpr int kCapturesAhead = 4;  // captures that an eager call allocates for: forward, backward, wgrad, and one

  // `source` must outlive this; `library_bytes` for each layout. What `allocator` allocates is for the stream of the call, and
  // the library's workspaces for the stream that needs them first: with an allocator, use one stream.
  explicit GemmWorkspaces(const MemorySource& source = device_memory(), std::int64_t library_bytes = kLibraryBytes,
                          const Allocator& allocator = {});
  GemmWorkspaces(const GemmWorkspaces&) = delete;
  GemmWorkspaces& operator=(const GemmWorkspaces&) = delete;

  // Allocates the library's workspace of this layout on the current device, if it is missing. Errors: CudaError.
  void reserve_library(GemmLayout layout, Stream stream = nullptr);
  // Allocates what products of `groups` groups on this stream of the current device need, if it is missing: the set-up buffer
  // of eager calls, and one for each of the next `captures` captures.
  // Errors: InvalidArgument; CudaError.
  void reserve_setup(Stream stream, int groups, int captures = kCapturesAhead);

  // Sets the memory of a call that is launched on `stream` now in its settings: group_arrays, library_workspace and
  // workspace_bytes. Within one capture it is always the same. Missing memory is allocated; outside a capture also for the
  // next kCapturesAhead captures.
  // Errors: InvalidArgument; CudaError.
  void give(CublasLtSettings& settings, Stream stream, GemmLayout layout, int groups);

  std::int64_t allocated_bytes() const;

 private:
  using SetupKey = std::tuple<int, Stream, int>;   // device, stream, groups
  using LibraryKey = std::tuple<int, GemmLayout>;  // device, layout
  struct Setup {
    void* eager = nullptr;
    std::vector<void*> spare;  // for later captures
    std::map<std::uint64_t, void*> of_capture;
  };
  // The state that the end of a graph changes; a graph may outlive the owner.
  struct Setups {
    std::mutex mutex;
    std::map<SetupKey, Setup> of;
  };
  struct Taken;  // a buffer that a graph holds

  void* allocate(std::int64_t bytes, Stream stream);
  void* make_library(const LibraryKey& key, Stream stream);
  void make_setup(const SetupKey& key, int captures);
  void* taken_by_capture(const SetupKey& key, Stream stream, std::uint64_t capture);

  const MemorySource& source_;
  const Allocator allocator_;
  const std::int64_t library_bytes_;
  const std::shared_ptr<Setups> setups_ = std::make_shared<Setups>();  // its mutex guards what follows too
  std::map<LibraryKey, void*> libraries_;
  std::vector<DeviceMemory> all_;
  std::int64_t allocated_bytes_ = 0;
};

}  // namespace assay::device
