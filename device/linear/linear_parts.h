#pragma once
// Memory handed out piece by piece, each on a boundary of 256 bytes. Without memory the same code counts: its addresses then
// are not null and may be looked at, but not read.

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
