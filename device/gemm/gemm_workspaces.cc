#include "device/gemm/gemm_workspaces.h"

#include <cuda_runtime_api.h>

#include <string>

#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_rows.h"
#include "device/support/launch_check.h"

namespace assay::device {
namespace {

class CudaMemory final : public MemorySource {
 public:
  void* allocate(std::int64_t bytes) override {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "cudaMalloc of a workspace of grouped GEMM");
    return memory;
  }
  void release(void* memory) override { cudaFree(memory); }  // nobody is left to be told, at exit least of all
  int current_device() override {
    int device = 0;
    check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    return device;
  }
  std::uint64_t capture_of(Stream stream) override {
    cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    check_cuda(cudaStreamGetCaptureInfo(stream, &state, &id), "cudaStreamGetCaptureInfo");
    return state == cudaStreamCaptureStatusActive ? id : 0;
  }
};

std::string wanted(GemmLayout layout, int groups, std::int64_t setup_bytes) {
  return std::string("GemmWorkspaces::reserve(stream, ") + layout_name(layout) + ", " + std::to_string(groups) + ", " +
         std::to_string(setup_bytes) + ")";
}

// Of a call, without the library's part.
std::int64_t setup_bytes_of(const GroupedGemmCall& call, CublasLtSettings settings) {
  settings.library_workspace = reinterpret_cast<void*>(std::uintptr_t{256});  // elsewhere
  return cublaslt_gemm_workspace_bytes(call, settings);
}

}  // namespace

MemorySource& cuda_memory() {
  static CudaMemory memory;
  return memory;
}

GemmWorkspaces::GemmWorkspaces(MemorySource& source, std::int64_t library_bytes) : source_(source), library_bytes_(library_bytes) {
  require(library_bytes >= 0, "library_bytes", library_bytes, "a value of at least 0");
}

GemmWorkspaces::~GemmWorkspaces() {
  for (const Buffer& buffer : all_) source_.release(buffer.memory);
}

GemmWorkspaces::Buffer GemmWorkspaces::allocate(std::int64_t bytes) {
  Buffer buffer;
  buffer.bytes = bytes == 0 ? 256 : (bytes + 255) / 256 * 256;
  all_.reserve(all_.size() + 1);  // nothing is lost if this throws
  buffer.memory = source_.allocate(buffer.bytes);
  all_.push_back(buffer);
  return buffer;
}

void GemmWorkspaces::reserve_now(const SetupKey& setup_key, const LibraryKey& library_key, std::int64_t setup_bytes) {
  Setup& setup = setups_[setup_key];
  // A buffer that is too small is replaced, not freed: work that is under way may still read it.
  if (setup.eager.memory == nullptr || setup.eager.bytes < setup_bytes) setup.eager = allocate(setup_bytes);
  if (setup.spare.memory == nullptr || setup.spare.bytes < setup_bytes) setup.spare = allocate(setup_bytes);
  Buffer& library = libraries_[library_key];
  if (library.memory == nullptr) library = allocate(library_bytes_);
}

void GemmWorkspaces::reserve(Stream stream, GemmLayout layout, int groups, std::int64_t setup_bytes) {
  require(groups >= 0, "groups", groups, "a value of at least 0");
  require(setup_bytes >= 0, "setup_bytes", setup_bytes, "a value of at least 0");
  if (source_.capture_of(stream) != 0) {
    throw InvalidArgument("stream is capturing: expected " + wanted(layout, groups, setup_bytes) + " before the capture begins");
  }
  const int device = source_.current_device();
  const std::lock_guard<std::mutex> lock(mutex_);
  reserve_now({device, stream, groups}, {device, layout}, setup_bytes);
}

GemmWorkspaces::Memory GemmWorkspaces::get(Stream stream, GemmLayout layout, int groups, std::int64_t setup_bytes) {
  const std::uint64_t capture = source_.capture_of(stream);
  if (capture == 0) reserve(stream, layout, groups, setup_bytes);
  const int device = source_.current_device();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto refuse = [&](const std::string& what) {
    throw InvalidArgument(what + " is missing while the stream is capturing: expected " + wanted(layout, groups, setup_bytes) +
                          " before the capture begins");
  };
  const auto setup = setups_.find({device, stream, groups});
  const auto library = libraries_.find({device, layout});
  if (library == libraries_.end()) refuse(std::string("the library's workspace of layout ") + layout_name(layout));
  if (setup == setups_.end()) refuse("a set-up buffer for " + std::to_string(groups) + " groups on this stream");

  Buffer given = setup->second.eager;
  if (capture != 0) {
    Buffer& own = setup->second.of_capture[capture];
    if (own.memory == nullptr || own.bytes < setup_bytes) {
      Buffer& spare = setup->second.spare;
      if (spare.memory == nullptr) refuse("a set-up buffer that no other capture has");
      if (spare.bytes < setup_bytes) refuse("a set-up buffer of " + std::to_string(setup_bytes) + " bytes");
      own = spare;
      spare = Buffer{};
    }
    given = own;
  }
  return {given.memory, given.bytes, library->second.memory, library_bytes_};
}

void GemmWorkspaces::reserve(const GroupedGemmCall& call, const CublasLtSettings& settings, Stream stream) {
  reserve(stream, call.layout, call.rows.groups, setup_bytes_of(call, settings));
}

void GemmWorkspaces::apply(GroupedGemmCall& call, CublasLtSettings& settings, Stream stream) {
  const Memory memory = get(stream, call.layout, call.rows.groups, setup_bytes_of(call, settings));
  call.workspace = memory.setup;
  call.workspace_bytes = memory.setup_bytes;
  settings.library_workspace = memory.library;
  settings.workspace_bytes = memory.library_bytes;
}

std::int64_t GemmWorkspaces::allocated_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::int64_t bytes = 0;
  for (const Buffer& buffer : all_) bytes += buffer.bytes;
  return bytes;
}

}  // namespace assay::device
