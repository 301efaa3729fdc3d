// Memory of a backend in a worker process: what is allocated, and copies through the memory that both processes share.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "conformance/worker/remote.h"
#include "reference/support/parallel.h"

namespace assay::conformance::worker {
namespace {

constexpr std::size_t kPiece = std::size_t{8} << 20;

// Large pieces by all threads.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  parallel_for(static_cast<std::int64_t>(bytes), std::int64_t{1} << 20, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

assay_status Remote::allocate(std::int64_t bytes, void** data) {
  *data = nullptr;
  const Answer answer = ask(Function::allocate, [&](Writer& to) { to.put(bytes); });
  if (answer.status != ASSAY_OK) return answer.status;
  std::uintptr_t address = 0;
  read(answer, [&](Reader& from) { address = static_cast<std::uintptr_t>(from.get<std::uint64_t>()); });
  if (bytes > 0) {
    if (address == 0) fault(fmt::format("allocate() returned 'ok' and no address for {} bytes", bytes));
    if (address % 256 != 0) fault(fmt::format("allocate() gave the address 0x{:x}: expected a multiple of 256", address));
    if (address + static_cast<std::uintptr_t>(bytes) < address)
      fault(fmt::format("allocate() gave the address 0x{:x}: {} bytes do not fit behind it", address, bytes));
    const auto next = allocated_.lower_bound(address);
    const auto overlaps = [&](auto each) {
      return each->first < address + static_cast<std::uintptr_t>(bytes) &&
             address < each->first + static_cast<std::uintptr_t>(each->second);
    };
    if ((next != allocated_.end() && overlaps(next)) || (next != allocated_.begin() && overlaps(std::prev(next)))) {
      fault(fmt::format("allocate() gave {} bytes at 0x{:x}, which overlap with memory that it gave before", bytes, address));
    }
    allocated_[address] = bytes;
  }
  *data = reinterpret_cast<void*>(address);
  return ASSAY_OK;
}

void Remote::release(void* data) {
  if (!is_usable()) return;
  allocated_.erase(reinterpret_cast<std::uintptr_t>(data));
  add_quietly(Function::release, [&](Writer& to) { to.put(number_of(data)); });
}

// Waits for all streams with unfinished copies if there is no space for `bytes` more.
assay_status Remote::make_room(std::int64_t bytes) {
  if (staged_ + static_cast<std::size_t>(bytes) <= Channel::kStagingBytes) return ASSAY_OK;
  while (!copying_.empty()) {
    const assay_status status = synchronize(copying_.back().stream, limit_ms_);
    if (status != ASSAY_OK) return status;
  }
  return ASSAY_OK;
}

assay_status Remote::copy_to_device(assay_stream* stream, void* device, const void* host, std::int64_t bytes) {
  const auto all = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
  for (std::size_t begin = 0; begin < all; begin += kPiece) {
    const std::size_t count = std::min(kPiece, all - begin);
    const assay_status status = make_room(static_cast<std::int64_t>(count));
    if (status != ASSAY_OK) return status;
    copy_bytes(worker_->channel(channel_).staging + staged_, static_cast<const std::byte*>(host) + begin, count);
    add(Function::copy_to_device, [&](Writer& to) {
      to.put(number_of(stream));
      to.put(number_of(static_cast<std::byte*>(device) + begin));
      to.put(static_cast<std::int64_t>(count));
      to.put(static_cast<std::uint64_t>(staged_));
    });
    staged_ += (count + 63) / 64 * 64;
    note_copy(stream);
  }
  return ASSAY_OK;
}

std::byte* Remote::area(std::size_t bytes) { return bytes <= Channel::kAreaBytes ? worker_->channel(channel_).area : nullptr; }

void Remote::note_copy(assay_stream* stream) {
  ++copies_;
  for (Copying& each : copying_) {
    if (each.stream != stream) continue;
    each.number = copies_;
    return;
  }
  copying_.push_back({stream, copies_});
}

assay_status Remote::copy_to_host(assay_stream* stream, void* host, const void* device, std::int64_t bytes) {
  const auto all = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
  const Channel& channel = worker_->channel(channel_);
  const auto in_area = reinterpret_cast<std::uintptr_t>(host) - reinterpret_cast<std::uintptr_t>(channel.area);
  if (in_area < Channel::kAreaBytes && all > 0 && all <= Channel::kAreaBytes - in_area) {
    add(Function::copy_to_host, [&](Writer& to) {
      to.put(number_of(stream));
      to.put(number_of(device));
      to.put(bytes);
      to.put(static_cast<std::uint64_t>(channel.area - channel.staging) + in_area);
    });
    return ASSAY_OK;
  }
  for (std::size_t begin = 0; begin < all; begin += kPiece) {
    const std::size_t count = std::min(kPiece, all - begin);
    const assay_status status = make_room(static_cast<std::int64_t>(count));
    if (status != ASSAY_OK) return status;
    add(Function::copy_to_host, [&](Writer& to) {
      to.put(number_of(stream));
      to.put(number_of(static_cast<const std::byte*>(device) + begin));
      to.put(static_cast<std::int64_t>(count));
      to.put(static_cast<std::uint64_t>(staged_));
    });
    note_copy(stream);
    reads_.push_back({stream, static_cast<std::byte*>(host) + begin, staged_, count, copies_});
    staged_ += (count + 63) / 64 * 64;
  }
  return ASSAY_OK;
}

void Remote::put_wait(Writer& to, assay_stream* stream, std::int64_t timeout_ms) {
  // No wait is longer than a call may take: what a judge gives a copy is more than enough.
  const std::int64_t timeout = timeout_ms < 0 ? limit_ms_ : std::min(timeout_ms, limit_ms_);
  longest_wait_ms_ = std::max(longest_wait_ms_, timeout + 1'000);
  to.put(number_of(stream));
  to.put(timeout);
}

// What was copied to or from shared memory before a wait that is over.
void Remote::end_copies(assay_stream* stream, std::uint64_t last, bool good) {
  const auto is_over = [&](const auto& each) { return each.stream == stream && each.number <= last; };
  for (const Read& each : reads_) {
    if (is_over(each) && good)
      copy_bytes(static_cast<std::byte*>(each.host), worker_->channel(channel_).staging + each.at, each.bytes);
  }
  std::erase_if(reads_, is_over);
  std::erase_if(copying_, is_over);
  if (copying_.empty()) staged_ = 0;
}

void Remote::synchronize_later(assay_stream* stream, std::int64_t timeout_ms,
                               std::function<void(assay_status, const std::string&)> take) {
  const auto fill = [&](Writer& to) { put_wait(to, stream, timeout_ms); };
  later(Function::synchronize, OnFailure::stop, fill,
        [this, stream, last = copies_, take = std::move(take)](assay_status status, const std::string& error, Reader&) {
          end_copies(stream, last, status == ASSAY_OK);
          take(status, error);
        });
}

void Remote::drain(assay_stream* stream) {
  if (!is_usable()) return;
  std::erase_if(reads_, [&](const Read& each) { return each.stream == stream; });  // their memory may be gone by then
  awaited_.push_back(
      {command_count_, Function::synchronize, [this, stream, last = copies_](assay_status status, const std::string&, Reader&) {
         end_copies(stream, last, status == ASSAY_OK);
       }});
  append(
      Function::synchronize, OnFailure::go_on, [&](Writer& to) { put_wait(to, stream, -1); }, true);
}

// A later wait for its copies would wait for a stream that no longer exists, or for another one in its place.
void Remote::destroy_stream(assay_stream* stream) {
  if (!is_usable()) return;
  if (std::any_of(copying_.begin(), copying_.end(), [&](const Copying& each) { return each.stream == stream; })) drain(stream);
  add_quietly(Function::stream_destroy, [&](Writer& to) { to.put(number_of(stream)); });
}

assay_status Remote::synchronize(assay_stream* stream, std::int64_t timeout_ms) {
  assay_status waited = ASSAY_FAILED;
  synchronize_later(stream, timeout_ms, [&](assay_status status, const std::string& error) {
    waited = status;
    error_ = error;
  });
  flush();
  return waited;
}

}  // namespace assay::conformance::worker
