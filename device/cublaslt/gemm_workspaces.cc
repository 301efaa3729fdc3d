#include "device/cublaslt/gemm_workspaces.h"

#include <memory>

#include "device/cublaslt/group_setup.h"
#include "device/layout/check_rows.h"

namespace assay::device {

// Releases a graph's buffer when the graph has ended.
struct GemmWorkspaces::Taken {
  std::weak_ptr<Setups> setups;
  SetupKey key;
  std::uint64_t capture;

  static void give_back(void* argument) {
    const std::unique_ptr<Taken> taken(static_cast<Taken*>(argument));
    const std::shared_ptr<Setups> setups = taken->setups.lock();
    if (setups == nullptr) return;  // the owner was destroyed, and its memory with it
    const std::lock_guard<std::mutex> lock(setups->mutex);
    Setup& setup = setups->of.at(taken->key);
    const auto held = setup.of_capture.find(taken->capture);
    setup.spare.push_back(held->second);  // taken_by_capture() has reserved room
    setup.of_capture.erase(held);
  }
};

GemmWorkspaces::GemmWorkspaces(const MemorySource& source, std::int64_t library_bytes, const Allocator& allocator)
    : source_(source), allocator_(allocator), library_bytes_(library_bytes) {
  require(library_bytes >= 0, "library_bytes", library_bytes, "a value of at least 0");
}

void* GemmWorkspaces::allocate(std::int64_t bytes, Stream stream) {
  all_.emplace_back(source_, allocator_, stream, bytes);
  allocated_bytes_ += all_.back().bytes();
  return all_.back().data();
}

void* GemmWorkspaces::make_library(const LibraryKey& key, Stream stream) {
  void*& library = libraries_[key];
  if (library == nullptr) library = allocate(library_bytes_, stream);
  return library;
}

void GemmWorkspaces::make_setup(const SetupKey& key, int captures) {
  Setup& setup = setups_->of[key];
  const std::int64_t bytes = group_arrays_bytes(std::get<2>(key));
  const Stream stream = std::get<1>(key);
  if (setup.eager == nullptr) setup.eager = allocate(bytes, stream);
  setup.spare.reserve(static_cast<std::size_t>(captures) + setup.of_capture.size());
  while (setup.spare.size() < static_cast<std::size_t>(captures)) setup.spare.push_back(allocate(bytes, stream));
}

void* GemmWorkspaces::taken_by_capture(const SetupKey& key, Stream stream, std::uint64_t capture) {
  Setup& setup = setups_->of[key];
  if (const auto own = setup.of_capture.find(capture); own != setup.of_capture.end()) return own->second;
  if (setup.spare.empty()) setup.spare.push_back(allocate(group_arrays_bytes(std::get<2>(key)), stream));
  setup.spare.reserve(setup.spare.size() + setup.of_capture.size() +
                      1);  // so that the buffers can be released without allocation
  const auto taken = setup.of_capture.emplace(capture, setup.spare.back()).first;
  setup.spare.pop_back();
  auto until = std::make_unique<Taken>(Taken{setups_, key, capture});
  try {
    source_.when_graph_ends(stream, Taken::give_back, until.get());
  } catch (...) {
    setup.spare.push_back(taken->second);
    setup.of_capture.erase(taken);
    throw;
  }
  static_cast<void>(until.release());  // it belongs to the graph now
  return taken->second;
}

void GemmWorkspaces::reserve_library(GemmLayout layout, Stream stream) {
  const LibraryKey key{source_.current_device(), layout};
  const std::lock_guard<std::mutex> lock(setups_->mutex);
  make_library(key, stream);
}

void GemmWorkspaces::reserve_setup(Stream stream, int groups, int captures) {
  require(groups >= 0, "groups", groups, "a value of at least 0");
  require(captures >= 0, "captures", captures, "a value of at least 0");
  const SetupKey key{source_.current_device(), stream, groups};
  const std::lock_guard<std::mutex> lock(setups_->mutex);
  make_setup(key, captures);
}

void GemmWorkspaces::give(CublasLtSettings& settings, Stream stream, GemmLayout layout, int groups) {
  require(groups >= 0, "groups", groups, "a value of at least 0");
  const std::uint64_t capture = source_.capture_of(stream);
  const int device = source_.current_device();
  const SetupKey setup{device, stream, groups};
  const std::lock_guard<std::mutex> lock(setups_->mutex);
  void* const library = make_library({device, layout}, stream);
  if (capture == 0) make_setup(setup, kCapturesAhead);
  settings.group_arrays = capture == 0 ? setups_->of.at(setup).eager : taken_by_capture(setup, stream, capture);
  settings.library_workspace = library;
  settings.workspace_bytes = library_bytes_;
}

std::int64_t GemmWorkspaces::allocated_bytes() const {
  const std::lock_guard<std::mutex> lock(setups_->mutex);
  return allocated_bytes_;
}

}  // namespace assay::device
