#pragma once
// Where buffers lie in one range of device memory.
//
// The time of a kernel varies by a few percent with the pages of its buffers. A place is therefore a function of the buffers
// that are in the range already, and of nothing else: a case that takes the same buffers in the same order gets the same
// places, regardless of earlier cases, as every case releases its buffers.
//
//   | small ->      | large ->                                              <- kept |
//
// Small buffers (less than a page) have a part of their own, so that large ones do not move when a case has one more of them.
// Buffers kept for the whole process (inputs that many cases share) are placed at the end. Each buffer begins on a page.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace assay::bench {

enum class Lifetime { one_case, process };

class BufferPlaces {
 public:
  static constexpr std::int64_t kPage = std::int64_t{2} << 20;

  // Of a range of `bytes` bytes, counted in whole pages.
  explicit BufferPlaces(std::int64_t bytes)
      : end_(bytes / kPage * kPage), large_begin_(std::min(kMaxSmall, end_ / 8 / kPage * kPage)) {}

  std::int64_t bytes() const { return end_; }

  // Offset of a new buffer of `bytes` > 0 bytes, a multiple of the page; none where no gap is large enough.
  std::optional<std::int64_t> take(std::int64_t bytes, Lifetime lifetime) {
    if (bytes > end_) return std::nullopt;
    const std::int64_t size = (bytes + kPage - 1) / kPage * kPage;
    std::optional<std::int64_t> place;
    if (lifetime == Lifetime::process) {
      place = last_gap(size);
    } else {
      if (bytes < kPage) place = first_gap(0, large_begin_, size);
      if (!place) place = first_gap(large_begin_, end_, size);
    }
    if (place) end_of_[*place] = *place + size;
    return place;
  }

  // False for an offset that take() did not give, or that was given back already.
  bool give_back(std::int64_t offset) { return end_of_.erase(offset) == 1; }

 private:
  static constexpr std::int64_t kMaxSmall = std::int64_t{256} << 20;

  // The first `size` free bytes within [begin, end).
  std::optional<std::int64_t> first_gap(std::int64_t begin, std::int64_t end, std::int64_t size) const {
    for (auto taken = end_of_.lower_bound(begin); taken != end_of_.end() && taken->first < end; ++taken) {
      if (taken->first - begin >= size) return begin;
      begin = taken->second;
    }
    return end - begin >= size ? std::optional(begin) : std::nullopt;
  }
  // The last ones of the large part.
  std::optional<std::int64_t> last_gap(std::int64_t size) const {
    std::int64_t end = end_;
    for (auto taken = end_of_.rbegin(); taken != end_of_.rend() && taken->first >= large_begin_; ++taken) {
      if (end - taken->second >= size) break;
      end = taken->first;
    }
    return end - large_begin_ >= size ? std::optional(end - size) : std::nullopt;
  }

  std::int64_t end_, large_begin_;
  std::map<std::int64_t, std::int64_t> end_of_;  // of the buffers that begin at these offsets
};

}  // namespace assay::bench
