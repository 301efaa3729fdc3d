#pragma once
// Memory of the cuBLASLt path that outlives its calls, for an owner that captures graphs: a module, say. The rule:
//
//   set-up buffer      the arrays that set_up_groups() writes and the library's kernels read, some KiB: one a device, stream
//                      and group count, and one for each capture on that stream, so that no graph writes into another's
//                      (requirements.md C18)
//   library workspace  the library's own part, 32 MiB: one a device and layout, since cuBLASLt up to 13.7 leaves descriptors
//                      behind that a product of another layout must not find (requirements.md C19, R1, R2)
//
// Everything is made before a capture and never within one (C20), stays where it is until the owner goes, which must be
// after its graphs, and two owners share nothing. Graphs of one owner that use the same layout are replayed one after another.

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "device/gemm/cublaslt_gemm.h"
#include "device/support/memory_source.h"

namespace assay::device {

class GemmWorkspaces {
 public:
  static constexpr std::int64_t kLibraryBytes = std::int64_t{32} << 20;
  static constexpr int kCapturesAhead = 4;  // that an eager call leaves room for: forward, backward and wgrad by themselves, and one

  // What `source` names must outlive this; `library_bytes` for each layout.
  explicit GemmWorkspaces(const MemorySource& source = device_memory(), std::int64_t library_bytes = kLibraryBytes);
  ~GemmWorkspaces();
  GemmWorkspaces(const GemmWorkspaces&) = delete;
  GemmWorkspaces& operator=(const GemmWorkspaces&) = delete;

  // The library's workspace of this layout on the current device; it does nothing where there is one. Errors: CudaError.
  void reserve_library(GemmLayout layout);
  // What products of `groups` groups on this stream of the current device need: the set-up buffer of eager calls, and one
  // for each of the next `captures` captures, so far as they are not there yet.
  // Errors: InvalidArgument, also while the stream is capturing; CudaError.
  void reserve_setup(Stream stream, int groups, int captures = kCapturesAhead);

  // Puts the memory of a call, launched on `stream` now, into its settings: group_arrays, library_workspace and
  // workspace_bytes. Within one capture it is always the same. Outside a capture what is missing is made, and room for the
  // next kCapturesAhead captures; inside one it is an error.
  // Errors: InvalidArgument, which says what to reserve; CudaError.
  void give(CublasLtSettings& settings, Stream stream, GemmLayout layout, int groups);

  std::int64_t allocated_bytes() const;

 private:
  struct Setup {
    void* eager = nullptr;
    std::vector<void*> spare;  // for captures to come
    std::map<std::uint64_t, void*> of_capture;
  };
  using SetupKey = std::tuple<int, Stream, int>;   // device, stream, groups
  using LibraryKey = std::tuple<int, GemmLayout>;  // device, layout

  void* allocate(std::int64_t bytes);
  void make_library(const LibraryKey& key);
  void make_setup(const SetupKey& key, int captures);
  void* taken_by_capture(const SetupKey& key, std::uint64_t capture);

  const MemorySource& source_;
  const std::int64_t library_bytes_;
  mutable std::mutex mutex_;
  std::map<SetupKey, Setup> setups_;
  std::map<LibraryKey, void*> libraries_;
  std::vector<void*> all_;
  std::int64_t allocated_bytes_ = 0;
};

}  // namespace assay::device
