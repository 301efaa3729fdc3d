#include "conformance/judge/memory/guarded_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

// Canary bytes differ from place to place, so that a shifted copy of them is detected too.
std::byte canary(std::int64_t at) { return static_cast<std::byte>(0xC3 ^ (at * 37 & 0xff)); }

std::vector<std::byte> canaries(std::int64_t from, std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) bytes[static_cast<std::size_t>(i)] = canary(from + i);
  return bytes;
}

}  // namespace

void require_allocation(Backend& backend, const void* memory, std::int64_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (memory != nullptr && address % 256 == 0) return;
  throw BackendError(ASSAY_FAILED,
                     fmt::format("backend {} allocated {} bytes at address {:#x}: expected a multiple of 256 other than 0",
                                 backend.name(), bytes, address));
}

GuardedBuffer::GuardedBuffer(Backend& backend, assay_stream* stream, std::string label, std::int64_t bytes)
    : backend_(backend), stream_(stream), label_(std::move(label)), bytes_(bytes) {
  if (bytes < 0 || bytes > std::int64_t{1} << 48) {
    throw BackendError(ASSAY_OUT_OF_MEMORY, fmt::format("{} has {} bytes: expected 0 to 2^48", label_, bytes));
  }
  padded_ = (bytes + 255) / 256 * 256 - bytes;
  void* memory = nullptr;
  const std::int64_t all = kGuard + bytes_ + padded_ + kGuard;
  backend_.check(backend_.table().allocate(backend_.context(), all, &memory),
                 fmt::format("allocate {} bytes for {}", all, label_));
  require_allocation(backend_, memory, all);
  base_ = static_cast<std::uint8_t*>(memory);
  const std::vector<std::byte> before = canaries(0, kGuard);
  const std::vector<std::byte> after = canaries(kGuard, padded_ + kGuard);
  const auto put = [&](std::uint8_t* to, const std::vector<std::byte>& from) {
    backend_.check(
        backend_.table().copy_to_device(backend_.context(), stream_, to, from.data(), static_cast<std::int64_t>(from.size())),
        "write the canaries of " + label_);
  };
  try {
    put(base_, before);
    put(base_ + kGuard + bytes_, after);
    backend_.check(backend_.table().synchronize(backend_.context(), stream_, kCopyLimit), "wait for the canaries of " + label_);
  } catch (...) {
    if (!backend_.is_given_up()) backend_.table().release(backend_.context(), base_);
    throw;
  }
}

GuardedBuffer::~GuardedBuffer() {
  if (base_ != nullptr && !backend_.is_given_up()) backend_.table().release(backend_.context(), base_);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : backend_(other.backend_),
      stream_(other.stream_),
      label_(std::move(other.label_)),
      bytes_(other.bytes_),
      padded_(other.padded_),
      base_(std::exchange(other.base_, nullptr)) {}

void* GuardedBuffer::data() const { return bytes_ == 0 ? nullptr : base_ + kGuard; }

void GuardedBuffer::write(const void* from) {
  if (bytes_ == 0) return;
  backend_.check(backend_.table().copy_to_device(backend_.context(), stream_, data(), from, bytes_),
                 "copy " + label_ + " to the device");
}

void GuardedBuffer::fill(std::uint8_t value) {
  if (bytes_ == 0) return;
  backend_.check(backend_.table().fill(backend_.context(), stream_, data(), value, bytes_), "fill " + label_);
}

std::vector<std::byte> GuardedBuffer::read() const {
  std::vector<std::byte> bytes;
  read(bytes);
  return bytes;
}

void GuardedBuffer::read(std::vector<std::byte>& into) const {
  into.resize(static_cast<std::size_t>(bytes_));
  if (bytes_ == 0) return;
  backend_.check(backend_.table().copy_to_host(backend_.context(), stream_, into.data(), data(), bytes_),
                 "copy " + label_ + " to the host");
  backend_.check(backend_.table().synchronize(backend_.context(), stream_, kCopyLimit), "wait for the copy of " + label_);
}

std::optional<GuardedBuffer::Change> GuardedBuffer::change_from(const std::byte* expected) const {
  constexpr std::int64_t kPiece = std::int64_t{1} << 25, kPart = std::int64_t{1} << 21;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(bytes_, kPiece)));
  for (std::int64_t begin = 0; begin < bytes_; begin += kPiece) {
    const std::int64_t count = std::min(kPiece, bytes_ - begin);
    backend_.check(backend_.table().copy_to_host(backend_.context(), stream_, piece.data(),
                                                 static_cast<std::uint8_t*>(data()) + begin, count),
                   "copy " + label_ + " to the host");
    backend_.check(backend_.table().synchronize(backend_.context(), stream_, kCopyLimit), "wait for the copy of " + label_);
    std::atomic<bool> same = true;
    parallel_for(count, kPart, [&](std::int64_t from, std::int64_t to) {
      if (std::memcmp(piece.data() + from, expected + begin + from, static_cast<std::size_t>(to - from)) != 0) same = false;
    });
    if (same) continue;
    const auto differs = std::mismatch(piece.begin(), piece.begin() + count, expected + begin);
    return Change{begin + (differs.first - piece.begin()), *differs.first};
  }
  return std::nullopt;
}

std::string GuardedBuffer::damage() const {
  std::string text;
  const auto look = [&](std::int64_t from, std::int64_t count, std::int64_t canary_from, bool before) {
    std::vector<std::byte> found(static_cast<std::size_t>(count));
    backend_.check(backend_.table().copy_to_host(backend_.context(), stream_, found.data(), base_ + from, count),
                   "read the canaries of " + label_);
    backend_.check(backend_.table().synchronize(backend_.context(), stream_, kCopyLimit), "wait for the canaries of " + label_);
    std::int64_t wrong = 0, first = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (found[static_cast<std::size_t>(i)] == canary(canary_from + i)) continue;
      if (wrong++ == 0) first = i;
    }
    if (wrong == 0) return;
    text += fmt::format("{}{}: {} bytes written {} (first at {:+}: 0x{:02x})", text.empty() ? "" : "; ", label_, wrong,
                        before ? "before its start" : "past its end", before ? first - count : first,
                        static_cast<unsigned>(found[static_cast<std::size_t>(first)]));
  };
  look(0, kGuard, 0, true);
  look(kGuard + bytes_, padded_ + kGuard, kGuard, false);
  return text;
}

}  // namespace assay::conformance
