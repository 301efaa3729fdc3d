#pragma once
// Device memory of one tensor or workspace between two canaries.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"

namespace assay::conformance {

// Milliseconds for a copy with nothing else on its stream. A copy that takes longer waits for a hanging device.
constexpr std::int64_t kCopyLimit = 120'000;

// Throws BackendError unless `memory`, which the backend returned for `bytes` bytes, has the address that the interface promises.
void require_allocation(Backend& backend, const void* memory, std::int64_t bytes);

class GuardedBuffer {
 public:
  // `bytes` of device memory, 256-byte aligned, with kGuard canary bytes either side. `label` appears in messages. Throws
  // BackendError where memory is short, and for more bytes than any machine has.
  GuardedBuffer(Backend& backend, assay_stream* stream, std::string label, std::int64_t bytes);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  const std::string& label() const { return label_; }
  std::int64_t bytes() const { return bytes_; }
  void* data() const;  // null when there are no bytes

  void write(const void* from);
  void fill(std::uint8_t value);
  std::vector<std::byte> read() const;
  // The same into memory that may be used again; becomes as long as the buffer.
  void read(std::vector<std::byte>& into) const;
  // First byte that differs from `expected`, of the buffer's length, and what is there; nothing when none does.
  struct Change {
    std::int64_t at = 0;
    std::byte found{};
  };
  std::optional<Change> change_from(const std::byte* expected) const;
  // Empty when both canaries are whole, else "rowwise_data: 12 bytes written before its start (first at -4: 0x3f)".
  std::string damage() const;

  static constexpr std::int64_t kGuard = 1024;

 private:
  Backend& backend_;
  assay_stream* stream_;
  std::string label_;
  std::int64_t bytes_;
  std::int64_t padded_ = 0;  // the trailing canary starts right behind the data, to see a write of one byte too many
  std::uint8_t* base_ = nullptr;
};

}  // namespace assay::conformance
