#pragma once
// Memory of the cuBLASLt path that outlives its calls, for an owner that captures graphs: a module, say.
//
//   set-up buffer      what set_up_groups() writes, read by the library's kernels: one a device, stream and group count; and one
//                      for each capture on that stream, so that graphs of one owner do not write into each other's
//   library workspace  the library's own part, 32 MiB: one a device and layout, since cuBLASLt up to 13.7 leaves descriptors
//                      behind that a product of another layout must not find (requirements.md R1, R2)
//
// Two owners share nothing. Everything stays where it is until the owner goes, which must be after its graphs; graphs of one
// owner that use the same layout are replayed one after the other. Nothing is allocated while the stream is capturing.

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "device/gemm/cublaslt_gemm.h"

namespace assay::device {

// Where memory comes from; a test brings its own.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual void* allocate(std::int64_t bytes) = 0;  // on the current device, 256-byte aligned
  virtual void release(void* memory) = 0;
  virtual int current_device() = 0;
  virtual std::uint64_t capture_of(Stream stream) = 0;  // what the stream is capturing into; 0: it is not
};
MemorySource& cuda_memory();

class GemmWorkspaces {
 public:
  static constexpr std::int64_t kLibraryBytes = std::int64_t{32} << 20;

  explicit GemmWorkspaces(MemorySource& source = cuda_memory(), std::int64_t library_bytes = kLibraryBytes);
  ~GemmWorkspaces();
  GemmWorkspaces(const GemmWorkspaces&) = delete;
  GemmWorkspaces& operator=(const GemmWorkspaces&) = delete;

  // Makes what products of this layout and group count on this stream need: the library's workspace, a set-up buffer of at
  // least `setup_bytes`, and another one that the next capture takes. Call it before each capture; it does nothing where
  // all is there. Errors: InvalidArgument while the stream is capturing; CudaError.
  void reserve(Stream stream, GemmLayout layout, int groups, std::int64_t setup_bytes);

  struct Memory {
    void* setup = nullptr;
    std::int64_t setup_bytes = 0;
    void* library = nullptr;
    std::int64_t library_bytes = 0;
  };
  // The memory of a call now, eager or captured; the same each time within one capture. Outside a capture what is missing is
  // made; inside one it is an error (InvalidArgument) that says what to reserve.
  Memory get(Stream stream, GemmLayout layout, int groups, std::int64_t setup_bytes);

  // Both for a call: sets its workspace and the settings' library_workspace and workspace_bytes.
  void reserve(const GroupedGemmCall& call, const CublasLtSettings& settings, Stream stream);
  void apply(GroupedGemmCall& call, CublasLtSettings& settings, Stream stream);

  std::int64_t allocated_bytes() const;

 private:
  struct Buffer {
    void* memory = nullptr;
    std::int64_t bytes = 0;
  };
  struct Setup {
    Buffer eager, spare;
    std::map<std::uint64_t, Buffer> of_capture;
  };
  using SetupKey = std::tuple<int, Stream, int>;          // device, stream, groups
  using LibraryKey = std::tuple<int, GemmLayout>;         // device, layout

  Buffer allocate(std::int64_t bytes);
  void reserve_now(const SetupKey& setup, const LibraryKey& library, std::int64_t setup_bytes);

  MemorySource& source_;
  const std::int64_t library_bytes_;
  mutable std::mutex mutex_;
  std::map<SetupKey, Setup> setups_;
  std::map<LibraryKey, Buffer> libraries_;
  std::vector<Buffer> all_;  // in the order they were made
};

}  // namespace assay::device
