#include "device/gemm/gemm_workspaces.h"

#include <algorithm>
#include <string>

#include "device/gemm/group_setup.h"
#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_rows.h"

namespace assay::device {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& reservation) {
  throw InvalidArgument(what + " while the stream is capturing: expected " + reservation + " before the capture begins");
}

std::string setup_reservation(int groups) {
  return "reserve_setup() of this stream for " + std::to_string(groups) + " groups and as many captures as follow";
}

}  // namespace

GemmWorkspaces::GemmWorkspaces(const MemorySource& source, std::int64_t library_bytes)
    : source_(source), library_bytes_(library_bytes) {
  require(library_bytes >= 0, "library_bytes", library_bytes, "a value of at least 0");
}

GemmWorkspaces::~GemmWorkspaces() {
  for (void* memory : all_) source_.release(memory);
}

void* GemmWorkspaces::allocate(std::int64_t bytes) {
  bytes = std::max<std::int64_t>(bytes, 1);
  all_.reserve(all_.size() + 1);  // nothing is lost if this throws
  all_.push_back(source_.allocate(bytes));
  allocated_bytes_ += bytes;
  return all_.back();
}

void GemmWorkspaces::make_library(const LibraryKey& key) {
  void*& library = libraries_[key];
  if (library == nullptr) library = allocate(library_bytes_);
}

void GemmWorkspaces::make_setup(const SetupKey& key, int captures) {
  Setup& setup = setups_[key];
  const std::int64_t bytes = group_arrays_bytes(std::get<2>(key));
  if (setup.eager == nullptr) setup.eager = allocate(bytes);
  setup.spare.reserve(static_cast<std::size_t>(captures));
  while (setup.spare.size() < static_cast<std::size_t>(captures)) setup.spare.push_back(allocate(bytes));
}

void* GemmWorkspaces::taken_by_capture(const SetupKey& key, std::uint64_t capture) {
  const int groups = std::get<2>(key);
  const auto found = setups_.find(key);
  if (found == setups_.end()) {
    refuse("there are no set-up buffers for " + std::to_string(groups) + " groups on this stream", setup_reservation(groups));
  }
  Setup& setup = found->second;
  if (const auto own = setup.of_capture.find(capture); own != setup.of_capture.end()) return own->second;
  if (setup.spare.empty()) {
    refuse("every set-up buffer for " + std::to_string(groups) + " groups on this stream belongs to another capture",
           setup_reservation(groups));
  }
  void* const taken = setup.of_capture[capture] = setup.spare.back();
  setup.spare.pop_back();
  return taken;
}

void GemmWorkspaces::reserve_library(GemmLayout layout) {
  const LibraryKey key{source_.current_device(), layout};
  const std::lock_guard<std::mutex> lock(mutex_);
  make_library(key);
}

void GemmWorkspaces::reserve_setup(Stream stream, int groups, int captures) {
  require(groups >= 0, "groups", groups, "a value of at least 0");
  require(captures >= 0, "captures", captures, "a value of at least 0");
  if (source_.capture_of(stream) != 0) refuse("nothing can be reserved", setup_reservation(groups));
  const SetupKey key{source_.current_device(), stream, groups};
  const std::lock_guard<std::mutex> lock(mutex_);
  make_setup(key, captures);
}

void GemmWorkspaces::give(CublasLtSettings& settings, Stream stream, GemmLayout layout, int groups) {
  require(groups >= 0, "groups", groups, "a value of at least 0");
  const std::uint64_t capture = source_.capture_of(stream);
  const int device = source_.current_device();
  const LibraryKey library{device, layout};
  const SetupKey setup{device, stream, groups};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (capture == 0) {
    make_library(library);
    make_setup(setup, kCapturesAhead);
  }
  const auto made = libraries_.find(library);
  if (made == libraries_.end() || made->second == nullptr) {
    const std::string name = layout_name(layout);
    refuse("there is no library workspace for layout " + name, "reserve_library(" + name + ")");
  }
  settings.group_arrays = capture == 0 ? setups_.at(setup).eager : taken_by_capture(setup, capture);
  settings.library_workspace = made->second;
  settings.workspace_bytes = library_bytes_;
}

std::int64_t GemmWorkspaces::allocated_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return allocated_bytes_;
}

}  // namespace assay::device
