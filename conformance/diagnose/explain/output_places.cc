// Right words at wrong places, words that were not written, and words of padding that were.

#include <fmt/format.h>

#include <cstring>

#include "conformance/diagnose/explain/candidate.h"

namespace assay::conformance::explaining {
namespace {

void put_word(Tensor& tensor, std::int64_t at, std::uint64_t bits) {
  if (tensor.type == Format::e2m1) {
    std::byte& byte = tensor.bytes[static_cast<std::size_t>(at / 2)];
    const auto code = static_cast<unsigned>(bits & 0xf);
    byte = at % 2 == 0 ? (byte & std::byte{0xf0}) | std::byte(code) : (byte & std::byte{0x0f}) | std::byte(code << 4);
    return;
  }
  const auto width = static_cast<std::size_t>(bits_of(tensor.type) / 8);
  std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(at) * width, &bits, width);
}

// Where the word at a place comes from; nothing: it is as expected.
using From = std::function<std::optional<std::int64_t>(const FailedOutput& output, const Spot& at)>;

void propose_from(const FailedOutput& output, const std::string& text, int cost, const Propose& propose, const From& from) {
  Candidate candidate{fmt::format("with {} {}", output.name, text), cost};
  candidate.all = [&output, from](Outputs& outputs) {
    Tensor& tensor = outputs[output.name];
    const Tensor before = tensor;
    const Elements want(before);
    for (std::int64_t at = 0; at < output.elements; ++at) {
      const Spot spot = output.spot_of(at);
      if (spot.row < 0 || spot.row >= spot.rows || spot.column >= spot.columns) continue;
      const auto source = from(output, spot);
      if (source && *source >= 0 && *source < output.elements) put_word(tensor, at, want[*source]);
    }
    return true;
  };
  candidate.is_transform = true;
  propose(std::move(candidate));
}

const Segment* segment_of(const FailedOutput& output, std::int64_t group) {
  for (const Segment& segment : output.map.segments) {
    if (segment.group == group) return &segment;
  }
  return nullptr;
}

// The element at another place of a group; nothing outside what is used.
std::optional<std::int64_t> at_place(const FailedOutput& output, std::int64_t group, std::int64_t row, std::int64_t column) {
  const Segment* segment = segment_of(output, group);
  if (segment == nullptr || row < 0 || column < 0 || row >= segment->used_rows || column >= segment->used_columns)
    return std::nullopt;
  return segment->first + offset_of(*segment, {row, column});
}

void propose_moves(const FailedOutput& output, const Propose& propose) {
  const std::string row = output.map.row_name.empty() ? "row" : output.map.row_name;
  const std::string column = output.map.column_name.empty() ? "column" : output.map.column_name;
  for (const std::int64_t by : {1, 2, 4, 8, 16, 32, 64, 128}) {
    for (const std::int64_t sign : {1, -1}) {
      const std::int64_t d = sign * by;
      const char* way = sign > 0 ? "further on" : "before";
      propose_from(output, fmt::format("of the {} {} {}", row, by, way), 15, propose,
                   [d](const FailedOutput& of, const Spot& at) { return at_place(of, at.group, at.row + d, at.column); });
      propose_from(output, fmt::format("of the {} {} {}", column, by, way), 15, propose,
                   [d](const FailedOutput& of, const Spot& at) { return at_place(of, at.group, at.row, at.column + d); });
      propose_from(output, fmt::format("of the element {} {} in memory", by, way), 16, propose,
                   [d](const FailedOutput&, const Spot& at) { return std::optional(at.element + d); });
    }
    propose_from(output, fmt::format("having {}s exchanged in blocks of {}", row, by), 15, propose,
                 [by](const FailedOutput& of, const Spot& at) { return at_place(of, at.group, at.row ^ by, at.column); });
    propose_from(output, fmt::format("having {}s exchanged in blocks of {}", column, by), 15, propose,
                 [by](const FailedOutput& of, const Spot& at) { return at_place(of, at.group, at.row, at.column ^ by); });
  }
  if (bits_of(output.want.type) == 8) {
    for (const std::int64_t word : {2, 4, 8, 16})
      propose_from(output, fmt::format("of bytes in reverse order in words of {}", word), 14, propose,
                   [word](const FailedOutput&, const Spot& at) {
                     return std::optional(at.element / word * word + word - 1 - at.element % word);
                   });
  }
  if (output.want.type == Format::e2m1)
    propose_from(output, "of the other code of each byte", 14, propose,
                 [](const FailedOutput&, const Spot& at) { return std::optional(at.element ^ 1); });
  propose_from(output, "transposed in each group", 14, propose,
               [](const FailedOutput& of, const Spot& at) -> std::optional<std::int64_t> {
                 const Segment* segment = segment_of(of, at.group);
                 const std::int64_t linear = at.row * at.columns + at.column;
                 return at_place(of, at.group, linear % segment->used_rows, linear / segment->used_rows);
               });
  propose_from(output, "read as if each group were transposed", 15, propose,
               [](const FailedOutput& of, const Spot& at) { return at_place(of, at.group, at.column, at.row); });
  // Columnwise storage is transposed group by group.
  propose_from(output, "transposed as a whole, not group by group", 14, propose,
               [](const FailedOutput& of, const Spot& at) -> std::optional<std::int64_t> {
                 std::int64_t all = 0;  // columns of the storage: rows of all groups
                 for (const Segment& segment : of.map.segments) all += segment.used_columns;
                 if (all == 0) return std::nullopt;
                 std::int64_t column = at.element % all;
                 for (const Segment& segment : of.map.segments) {
                   if (column < segment.used_columns) return at_place(of, segment.group, at.element / all, column);
                   column -= segment.used_columns;
                 }
                 return std::nullopt;
               });
  for (const std::int64_t d : {-1, 1}) {
    propose_from(output, fmt::format("of the group {}", d < 0 ? "before" : "after"), 15, propose,
                 [d](const FailedOutput& of, const Spot& at) { return at_place(of, at.group + d, at.row, at.column); });
  }
  propose_from(output, "of the first group for all", 15, propose,
               [](const FailedOutput& of, const Spot& at) { return at_place(of, 0, at.row, at.column); });
  propose_from(output, fmt::format("of the first {} for all", row), 16, propose,
               [](const FailedOutput& of, const Spot& at) { return at_place(of, at.group, 0, at.column); });
  propose_from(output, fmt::format("of the first {} for all", column), 16, propose,
               [](const FailedOutput& of, const Spot& at) { return at_place(of, at.group, at.row, 0); });
}

// Every word of one value.
void propose_filled(const FailedOutput& output, const std::string& text, int cost, std::uint64_t bits, const Propose& propose) {
  Candidate candidate{fmt::format("with {} {}", output.name, text), cost};
  candidate.is_fill = cost < 10;
  candidate.is_transform = true;
  candidate.all = [&output, bits](Outputs& outputs) {
    for (std::int64_t at = 0; at < output.elements; ++at) put_word(outputs[output.name], at, bits);
    return true;
  };
  propose(std::move(candidate));
}

// The two codes of a byte exchanged, in every output of such codes.
void propose_nibbles(const Failure& failure, const Propose& propose) {
  Candidate candidate{"with the two codes of each byte exchanged: the lower index in the high nibble", 12};
  candidate.all = [&failure](Outputs& outputs) {
    bool some = false;
    for (const FailedOutput& output : failure.outputs()) {
      if (output.want.type != Format::e2m1) continue;
      for (std::byte& byte : outputs[output.name].bytes) byte = byte << 4 | byte >> 4;
      some = true;
    }
    return some;
  };
  candidate.is_transform = true;
  propose(std::move(candidate));
}

}  // namespace

void propose_output_places(const Failure& failure, const Propose& propose) {
  propose_nibbles(failure, propose);
  for (const FailedOutput& output : failure.outputs()) {
    if (output.wrong.empty()) continue;
    std::uint64_t poison = 0;
    for (int byte = 0; byte < 8; ++byte) poison = poison << 8 | failure.poison();
    const int bits = bits_of(output.want.type);
    if (bits < 64) poison &= (std::uint64_t{1} << bits) - 1;
    propose_filled(output, "not written", 8, poison, propose);
    propose_filled(output, "written as 0", 9, 0, propose);
    const Elements got(output.got);
    const std::uint64_t first = got[output.wrong.front()];
    if (first != 0 && first != poison) {
      propose_filled(output, fmt::format("written as 0x{:X} everywhere", first), 17, first, propose);
    }
    propose_moves(output, propose);
  }
}

}  // namespace assay::conformance::explaining
