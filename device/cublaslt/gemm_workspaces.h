#pragma once
// Memory of the cuBLASLt path that outlives its calls, for an owner that captures graphs: a module, say. The rule:
//
//   set-up buffer      the arrays that set_up_groups() writes and the library's kernels read, some KiB: one a device, stream
//                      and group count, and one for each graph captured on that stream, so that no graph writes into
//                      another's (fault C18). A graph's buffer serves a later capture once the graph and all
//                      executable graphs made of it have been destroyed
//   library workspace  the library's own part, 32 MiB: one a device and layout, since cuBLASLt up to 13.7 leaves descriptors
//                      behind that a product of another layout must not find (fault C19)
//
// Memory stays where it is until the owner goes, which must be after its graphs, and two owners share nothing. It never comes
// from a graph's own memory pool: what a capture finds missing is allocated beside the graph (fault C20), and eager calls
// allocate ahead, so that captures rarely have to. Graphs of one owner that use the same layout are replayed one after another.

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
  static constexpr int kCapturesAhead = 4;  // that an eager call allocates for: forward, backward and wgrad by themselves, and one

  // `source` must outlive this; `library_bytes` for each layout. What `allocator` allocates is for the stream of the call, and
  // the library's workspaces for the stream that needs them first: with an allocator, use one stream.
  explicit GemmWorkspaces(const MemorySource& source = device_memory(), std::int64_t library_bytes = kLibraryBytes,
                          const Allocator& allocator = {});
  GemmWorkspaces(const GemmWorkspaces&) = delete;
  GemmWorkspaces& operator=(const GemmWorkspaces&) = delete;

  // The library's workspace of this layout on the current device; it does nothing where there is one. Errors: CudaError.
  void reserve_library(GemmLayout layout, Stream stream = nullptr);
  // What products of `groups` groups on this stream of the current device need: the set-up buffer of eager calls, and one
  // for each of the next `captures` captures, so far as they are not there yet.
  // Errors: InvalidArgument; CudaError.
  void reserve_setup(Stream stream, int groups, int captures = kCapturesAhead);

  // Puts the memory of a call, launched on `stream` now, into its settings: group_arrays, library_workspace and
  // workspace_bytes. Within one capture it is always the same. What is missing is allocated, outside a capture with room for
  // the next kCapturesAhead captures.
  // Errors: InvalidArgument; CudaError.
  void give(CublasLtSettings& settings, Stream stream, GemmLayout layout, int groups);

  std::int64_t allocated_bytes() const;

 private:
  using SetupKey = std::tuple<int, Stream, int>;   // device, stream, groups
  using LibraryKey = std::tuple<int, GemmLayout>;  // device, layout
  struct Setup {
    void* eager = nullptr;
    std::vector<void*> spare;  // for captures to come
    std::map<std::uint64_t, void*> of_capture;
  };
  // What the end of a graph changes, which may come after the end of the owner.
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
