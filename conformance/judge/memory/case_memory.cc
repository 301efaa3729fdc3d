#include "conformance/judge/memory/case_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>

#include "conformance/judge/memory/canaries.h"
#include "conformance/judge/memory/guarded_buffer.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kReserve = std::int64_t{1} << 20;  // behind tensors, for workspaces
constexpr std::int64_t kSmall = std::int64_t{32} << 20;   // arenas that travel in one copy
constexpr std::int64_t kNear = std::int64_t{4} << 10;     // of a margin, beside a tensor
constexpr const char* kCopied = "wait for a copy to the host";
constexpr std::int64_t kPiece = std::int64_t{1} << 25, kPart = std::int64_t{1} << 21;

// Where `found` first differs from `expected`; `count` where it does not.
std::int64_t first_difference(const std::byte* found, const std::byte* expected, std::int64_t count) {
  std::atomic<bool> same = true;
  if (count <= kPart) {
    same = std::memcmp(found, expected, static_cast<std::size_t>(count)) == 0;
  } else {
    parallel_for(count, kPart, [&](std::int64_t from, std::int64_t to) {
      if (std::memcmp(found + from, expected + from, static_cast<std::size_t>(to - from)) != 0) same = false;
    });
  }
  return same ? count : std::mismatch(found, found + count, expected).first - found;
}

std::int64_t first_other_than(const std::byte* found, std::uint8_t value, std::int64_t count) {
  // All bytes are equal if each equals the one before it.
  const bool alike = count == 0 || std::memcmp(found, found + 1, static_cast<std::size_t>(count - 1)) == 0;
  if (alike && (count == 0 || found[0] == static_cast<std::byte>(value))) return count;
  return std::find_if(found, found + count, [&](std::byte each) { return each != static_cast<std::byte>(value); }) - found;
}

// The next odd multiple of 256 above `address`.
std::uint64_t aligned(std::uint64_t address) { return (address + 255) / 512 * 512 + 256; }

// Memory of the last case on this thread, for reuse.
constexpr std::size_t kMaxSpare = std::size_t{4} << 20;
std::vector<std::byte>& spare() {
  static thread_local std::vector<std::byte> bytes;
  return bytes;
}

// An unfinished copy in this process may still write there: it lives as long as the program.
void leave_behind(std::vector<std::byte> bytes) {
  static std::mutex mutex;
  static auto* const all = new std::list<std::vector<std::byte>>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(bytes));
}

}  // namespace

bool CaseMemory::Arena::is_small() const { return end() <= kSmall; }

CaseMemory::~CaseMemory() {
  if (backend_.is_given_up()) {
    if (!backend_.is_in_worker() && !read_.empty()) leave_behind(std::move(read_));
    return;
  }
  for (const Arena& each : arenas_) backend_.table().release(backend_.context(), each.base);
  if (read_.capacity() <= kMaxSpare) read_.swap(spare());
}

CaseMemory::Part CaseMemory::add(std::string label, Role role, std::int64_t bytes) {
  parts_.push_back({std::move(label), role, bytes, 0, nullptr, nullptr, true, 0});
  return parts_.size() - 1;
}

void CaseMemory::place() {
  // Outputs and inputs alternate: a write past an output then lands in an input, whose bytes are all known.
  std::vector<Part> inputs, others, all;
  for (; placed_ < parts_.size(); ++placed_) {
    const Tensor& each = parts_[placed_];
    if (each.bytes < 0 || each.bytes > kMaxBytes) {
      throw BackendError(ASSAY_OUT_OF_MEMORY, fmt::format("{} has {} bytes: expected 0 to 2^48", each.label, each.bytes));
    }
    if (each.bytes > 0) (each.role == Role::input ? inputs : others).push_back(placed_);
  }
  std::vector<Part>&first = placement_ % 2 == 0 ? others : inputs, &second = placement_ % 2 == 0 ? inputs : others;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) all.push_back(first[i]);
    if (i < second.size()) all.push_back(second[i]);
  }
  if (gaps_ == Gaps::none_reversed) std::reverse(all.begin(), all.end());
  std::vector<Part> together;
  std::int64_t bytes = 0;
  for (const Part part : all) {
    if (!together.empty() && bytes + parts_[part].bytes > kArenaBytes) {
      place_in_arena(together);
      together.clear();
      bytes = 0;
    }
    together.push_back(part);
    bytes += parts_[part].bytes;
  }
  if (!together.empty()) place_in_arena(together);
}

void CaseMemory::place_in_arena(const std::vector<Part>& parts) {
  const bool workspaces = parts_[parts[0]].role == Role::workspace;
  std::int64_t needed = kMargin;
  for (const Part part : parts) needed += parts_[part].bytes + 3 * kGap;
  const bool behind = workspaces && !arenas_.empty() && arenas_.back().end() + needed <= arenas_.back().capacity;
  if (!behind) {
    needed += 2 * kMargin + (workspaces ? 0 : kReserve);
    std::string labels;
    for (const Part part : parts) labels += (labels.empty() ? "" : ", ") + parts_[part].label;
    void* memory = nullptr;
    backend_.check(backend_.table().allocate(backend_.context(), needed, &memory),
                   fmt::format("allocate {} bytes for {}", needed, labels));
    require_allocation(backend_, memory, needed);
    Arena& arena = arenas_.emplace_back();
    arena.base = static_cast<std::uint8_t*>(memory);
    arena.capacity = needed;
  }
  Arena& arena = arenas_.back();
  Region region;
  region.workspaces = workspaces;
  std::int64_t cursor = arena.end();
  Part before = kNone;
  if (behind) {  // the margin behind the tensors is the one in front of the workspaces
    std::vector<Range>& ranges = arena.regions.back().ranges;
    before = ranges.back().before;
    for (std::size_t i = ranges.size() - 2; i < ranges.size(); ++i) ranges[i].behind = parts[0];
  }
  for (const Part part : parts) {
    Tensor& tensor = parts_[part];
    const std::int64_t gap = part != parts[0] ? kGap + static_cast<std::int64_t>((placement_ >> (part % 16 + 1)) % 8) * 512
                                              : (behind ? 0 : kMargin) + static_cast<std::int64_t>((placement_ >> 1) % 8) * 512;
    const auto base = reinterpret_cast<std::uintptr_t>(arena.base);
    const bool touches = gaps_ != Gaps::usual && part != parts[0];
    tensor.offset = touches ? (cursor + 255) / 256 * 256
                            : static_cast<std::int64_t>(aligned(base + static_cast<std::uint64_t>(cursor + gap)) - base);
    tensor.data = arena.base + tensor.offset;
    const std::int64_t middle = std::max(cursor, tensor.offset - kNear);
    if (part == parts[0] && middle > cursor) {
      region.ranges.push_back({cursor, middle, kNone, before, part, true});
      cursor = middle;
    }
    region.ranges.push_back({cursor, tensor.offset, kNone, before, part});
    cursor = tensor.offset + tensor.bytes;
    region.ranges.push_back({tensor.offset, cursor, part, kNone, kNone});
    before = part;
  }
  region.ranges.push_back({cursor, cursor + kNear, kNone, before, kNone});
  region.ranges.push_back({cursor + kNear, cursor + kMargin, kNone, before, kNone, true});
  arena.regions.push_back(std::move(region));
}

void CaseMemory::set(Part input, const std::byte* contents) {
  parts_[input].contents = contents;
  parts_[input].stale = true;
}

void CaseMemory::blank(assay_stream* stream, std::uint8_t poison) {
  for (Tensor& each : parts_) {
    if (each.role == Role::workspace || each.bytes == 0) continue;
    const std::uint8_t value = each.role == Role::input ? 0 : poison;
    backend_.check(backend_.table().fill(backend_.context(), stream, each.data, value, each.bytes), "fill " + each.label);
    each.stale = true;
  }
}

void CaseMemory::write(assay_stream* stream, std::uint8_t poison, std::optional<std::uint8_t> workspace, std::int64_t piece) {
  for (Tensor& each : parts_) {
    if (each.role == Role::output) each.poison = poison;
    if (each.role == Role::workspace && workspace) each.poison = *workspace;
  }
  for (Arena& arena : arenas_) {
    for (Region& region : arena.regions) {
      if (workspace || !region.workspaces) write_region(stream, arena, region, piece);
    }
  }
}

void CaseMemory::write_placed(assay_stream* stream, std::uint8_t poison) {
  for (Arena& arena : arenas_) {
    for (Region& region : arena.regions) {
      if (region.written) continue;
      for (const Range& each : region.ranges) {
        if (each.part != kNone) parts_[each.part].poison = poison;
      }
      write_region(stream, arena, region, 0);
    }
  }
}

void CaseMemory::write_region(assay_stream* stream, Arena& arena, Region& region, std::int64_t piece) {
  const assay_backend& table = backend_.table();
  region.written = true;
  for (Range& each : region.ranges) {
    if (each.part == kNone) {
      if (!each.far) each.inverted = !each.inverted;
      if (each.far && !each.stale) continue;
      for_canaries(each.begin, each.end, each.inverted, [&](std::int64_t from, std::int64_t some, const std::byte* bytes) {
        backend_.check(table.copy_to_device(backend_.context(), stream, arena.base + from, bytes, some), "write canaries");
      });
      each.stale = false;
      continue;
    }
    Tensor& tensor = parts_[each.part];
    if (tensor.role != Role::input) {
      backend_.check(table.fill(backend_.context(), stream, tensor.data, tensor.poison, tensor.bytes), "fill " + tensor.label);
    } else if (tensor.stale) {
      const std::int64_t most = piece == 0 ? tensor.bytes : piece;
      for (std::int64_t from = 0; from < tensor.bytes; from += most) {
        const std::int64_t count = std::min(most, tensor.bytes - from);
        auto* const to = static_cast<std::uint8_t*>(tensor.data) + from;
        backend_.check(table.copy_to_device(backend_.context(), stream, to, tensor.contents + from, count),
                       "copy " + tensor.label + " to the device");
      }
      tensor.stale = false;
    }
  }
}

void CaseMemory::wait(assay_stream* stream) const {
  backend_.check(backend_.table().synchronize(backend_.context(), stream, kCopyLimit), kCopied);
}

std::vector<std::string> CaseMemory::look(assay_stream* stream, const Outputs* outputs) {
  std::vector<std::string> damage;
  if (small_bytes() > 0) {
    fetch(stream);
    wait(stream);
    damage = compare(outputs);
  }
  for (Arena& arena : arenas_) {
    if (!arena.is_small()) read_large(stream, arena, outputs, damage);
  }
  return damage;
}

void CaseMemory::fetch(CallSequence& calls, assay_stream* stream, CallResult& fetched) {
  if (!is_small()) return;
  calls.enqueue([&] { fetch(stream); });
  calls.synchronize(stream, kCopyLimit, fetched);
}

std::vector<std::string> CaseMemory::look(assay_stream* stream, const CallResult& fetched, const Outputs* outputs) {
  if (!fetched.made) return look(stream, outputs);
  backend_.check(fetched, kCopied);
  return compare(outputs);
}

std::int64_t CaseMemory::small_bytes() const {
  std::int64_t bytes = 0;
  for (const Arena& arena : arenas_) bytes += arena.is_small() ? arena.end() : 0;
  return bytes;
}

bool CaseMemory::is_small() const {
  return small_bytes() <= kSmall &&
         std::all_of(arenas_.begin(), arenas_.end(), [](const Arena& each) { return each.is_small(); });
}

// All small arenas in one copy each.
void CaseMemory::fetch(assay_stream* stream) {
  const auto bytes = static_cast<std::size_t>(small_bytes());
  fetched_ = backend_.area(bytes);
  if (fetched_ == nullptr) {
    if (read_.empty()) read_.swap(spare());
    read_.resize(bytes);
    fetched_ = read_.data();
  }
  std::byte* to = fetched_;
  for (const Arena& arena : arenas_) {
    if (!arena.is_small()) continue;
    backend_.check(backend_.table().copy_to_host(backend_.context(), stream, to, arena.base, arena.end()),
                   "copy the tensors of the case to the host");
    to += arena.end();
  }
}

std::vector<std::string> CaseMemory::compare(const Outputs* outputs) {
  std::vector<std::string> damage;
  const std::byte* found = fetched_;
  for (Arena& arena : arenas_) {
    if (!arena.is_small()) continue;
    for (Region& region : arena.regions) {
      for (Range& each : region.ranges) {
        look_at(each, 0, found + each.begin, each.end - each.begin, outputs != nullptr, damage);
        if (outputs == nullptr || each.part == kNone || parts_[each.part].role != Role::output) continue;
        outputs->at(each.part)->assign(found + each.begin, found + each.end);
      }
    }
    found += arena.end();
  }
  // Cleared, so that a copy that is missing the next time does not look complete.
  const std::int64_t bytes = small_bytes();
  for (std::int64_t i = 0; i < bytes; i += 64) fetched_[i] = ~fetched_[i];
  return damage;
}

void CaseMemory::read_large(assay_stream* stream, Arena& arena, const Outputs* outputs, std::vector<std::string>& damage) {
  for (Region& region : arena.regions) {
    for (Range& each : region.ranges) {
      const bool free = outputs != nullptr && each.part != kNone;
      if (free && parts_[each.part].role == Role::workspace) continue;
      const bool output = free && parts_[each.part].role == Role::output;
      const std::int64_t all = each.end - each.begin, piece = output ? all : std::min(all, kPiece);
      std::vector<std::byte>& into = output ? *outputs->at(each.part) : read_;
      into.resize(static_cast<std::size_t>(piece));
      for (std::int64_t from = 0; from < all; from += piece) {
        const std::int64_t count = std::min(piece, all - from);
        backend_.check(
            backend_.table().copy_to_host(backend_.context(), stream, into.data(), arena.base + each.begin + from, count),
            "copy the tensors of the case to the host");
        wait(stream);
        look_at(each, from, into.data(), count, outputs != nullptr, damage);
      }
    }
  }
}

void CaseMemory::look_at(Range& range, std::int64_t from, const std::byte* found, std::int64_t count, bool outputs_may_differ,
                         std::vector<std::string>& damage) {
  if (range.part == kNone) return look_at_canary(range, found, damage);  // always in one piece
  Tensor& tensor = parts_[range.part];
  if (tensor.role == Role::input) {
    const std::int64_t at = first_difference(found, tensor.contents + from, count);
    if (at == count || tensor.stale) return;  // a stale tensor was reported already, and stays stale until the next write
    tensor.stale = true;
    damage.push_back(fmt::format("{}: the input was changed, first at byte {}: 0x{:02x} became 0x{:02x}{}", tensor.label,
                                 from + at, static_cast<unsigned>(tensor.contents[from + at]), static_cast<unsigned>(found[at]),
                                 neighbour_text(range.part, from + at)));
  } else if (!outputs_may_differ) {
    const std::int64_t at = first_other_than(found, tensor.poison, count);
    if (at == count) return;
    damage.push_back(
        fmt::format("{} was written, first at byte {}: 0x{:02x}", tensor.label, from + at, static_cast<unsigned>(found[at])));
  }
}

void CaseMemory::look_at_canary(Range& range, const std::byte* found, std::vector<std::string>& damage) const {
  struct Hit {
    std::int64_t count = 0, first = 0;
  } hits[2];  // nearer to the tensor in front, nearer to the one behind
  // In the arena; a margin in front of a workspace is two ranges.
  const std::int64_t front = range.before == kNone ? 0 : parts_[range.before].offset + parts_[range.before].bytes;
  const std::int64_t back = range.behind == kNone ? range.end : parts_[range.behind].offset;
  const std::int64_t middle = range.before == kNone ? 0 : range.behind == kNone ? back : front + (back - front) / 2;
  for_canaries(range.begin, range.end, range.inverted, [&](std::int64_t from, std::int64_t count, const std::byte* expected) {
    const std::byte* const there = found + (from - range.begin);
    if (std::memcmp(there, expected, static_cast<std::size_t>(count)) == 0) return;
    for (std::int64_t i = 0; i < count; ++i) {
      if (there[i] == expected[i]) continue;
      Hit& hit = hits[from + i < middle ? 0 : 1];
      if (hit.count++ == 0) hit.first = from + i;
    }
  });
  for (const bool behind : {false, true}) {
    const Hit& hit = hits[behind ? 1 : 0];
    if (hit.count == 0) continue;
    range.stale = true;
    const Part near = behind ? range.behind : range.before, far = behind ? range.before : range.behind;
    damage.push_back(fmt::format("{}: {} bytes written {} (first at {:+}: 0x{:02x}), {}", parts_[near].label, hit.count,
                                 behind ? "before its start" : "past its end", hit.first - (behind ? back : front),
                                 static_cast<unsigned>(found[hit.first - range.begin]),
                                 far == kNone ? "in the margin" : "between it and " + parts_[far].label));
  }
}

// Where a byte of an input lies relative to the outputs and workspaces beside it: " (5,000 bytes past the end of d)".
std::string CaseMemory::neighbour_text(Part part, std::int64_t at) const {
  std::string text;
  for (const Arena& arena : arenas_) {
    const auto* byte = static_cast<const std::uint8_t*>(parts_[part].data) + at;
    if (byte < arena.base || byte >= arena.base + arena.capacity) continue;
    std::int64_t past = kArenaBytes, ahead = kArenaBytes;
    Part front = kNone, behind = kNone;
    for (const Region& region : arena.regions) {
      for (const Range& each : region.ranges) {
        if (each.part == kNone || parts_[each.part].role == Role::input) continue;
        const std::int64_t from_end = byte - (arena.base + each.end), to_start = arena.base + each.begin - byte;
        if (from_end >= 0 && from_end < past) past = from_end, front = each.part;
        if (to_start > 0 && to_start < ahead) ahead = to_start, behind = each.part;
      }
    }
    if (front != kNone) text += fmt::format("{} bytes past the end of {}", past, parts_[front].label);
    if (behind != kNone)
      text += fmt::format("{}{} bytes before the start of {}", text.empty() ? "" : ", ", ahead, parts_[behind].label);
  }
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace assay::conformance
