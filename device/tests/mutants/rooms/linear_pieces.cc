#include "device/tests/mutants/rooms/linear_pieces.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/linear/linear_moves.h"

namespace assay::mutants {
namespace {

constexpr std::int64_t kRows = 77;
constexpr std::uint16_t kOther = 0xC3C3;
constexpr std::size_t kBeside = 300;  // more than the threads of a block

bool constants_are_right(int groups, bool has_splits, bool has_one) {
  std::vector<std::int64_t> splits(static_cast<std::size_t>(groups) + kBeside, -1);
  float one[2] = {-1.0f, -1.0f};
  device::make_linear_constants(has_splits ? splits.data() : nullptr, groups, kRows, has_one ? one : nullptr, nullptr);
  bool right = one[0] == (has_one ? 1.0f : -1.0f) && one[1] == -1.0f;
  for (std::size_t t = 0; t < splits.size(); ++t) {
    right = right && splits[t] == (has_splits && t < static_cast<std::size_t>(groups) ? kRows : -1);
  }
  return right;
}

// One buffer of all pieces, one behind another, or each with others' words behind it.
struct Pieces {
  std::vector<std::uint16_t> words;
  std::vector<void*> address;

  Pieces(std::size_t count, std::size_t length, std::size_t apart) : words(count * apart + kBeside, kOther) {
    for (std::size_t i = 0; i < count; ++i) address.push_back(words.data() + i * apart);
    for (std::size_t i = 0; i < count * length; ++i) words[i / length * apart + i % length] = value(i);
  }
  static std::uint16_t value(std::size_t i) { return static_cast<std::uint16_t>(i % 0xC3C3); }
};

bool pieces_are_right(std::size_t count, std::size_t length) {
  const std::size_t apart = length + kBeside;
  const Pieces apart_ones(count, length, apart), together(count, length, length);
  const auto bytes = static_cast<std::int64_t>(2 * length);
  const int pieces = static_cast<int>(count);

  std::vector<std::uint16_t> gathered(together.words.size(), kOther);
  device::gather_pieces(apart_ones.address.data(), pieces, bytes, gathered.data(), nullptr);
  bool right = gathered == together.words && apart_ones.words == Pieces(count, length, apart).words;

  std::vector<std::uint16_t> scattered(apart_ones.words.size(), kOther);
  std::vector<void*> to;
  for (std::size_t i = 0; i < count; ++i) to.push_back(scattered.data() + i * apart);
  device::scatter_pieces(together.words.data(), to.data(), pieces, bytes, nullptr);
  right = right && scattered == apart_ones.words && together.words == Pieces(count, length, length).words;
  return right;
}

}  // namespace

bool linear_pieces_are_right(int groups) {
  const auto count = static_cast<std::size_t>(groups);
  return constants_are_right(groups, true, true) && constants_are_right(groups, true, false) &&
         constants_are_right(groups, false, true) && constants_are_right(groups, false, false) && pieces_are_right(count, 3) &&
         (groups > 3 || pieces_are_right(count, 64 * 256 + 5));  // more than a launch has threads
}

}  // namespace assay::mutants
