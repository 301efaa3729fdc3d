#pragma once
// Allocates pieces of a buffer, each on a boundary of 256 bytes. Without a buffer the same code counts bytes: the addresses are
// then not null, but must not be read.

#include <cstdint>

namespace assay::device {

class Parts {
 public:
  static constexpr std::int64_t kAlignment = 256;

  explicit Parts(void* memory) : base_(memory == nullptr ? kAlignment : reinterpret_cast<std::uintptr_t>(memory)) {}

  template <class Type = void>
  Type* take(std::int64_t bytes) {
    const std::uintptr_t at = base_ + static_cast<std::uintptr_t>(bytes_);
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<Type*>(at);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::uintptr_t base_;
  std::int64_t bytes_ = 0;
};

}  // namespace assay::device
