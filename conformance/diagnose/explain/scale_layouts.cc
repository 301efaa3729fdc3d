// The right scales in another layout: other strides, tiles and starts of groups, padding that is not as it should be.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "conformance/diagnose/explain/candidate.h"
#include "reference/layout/swizzle.h"

namespace assay::conformance::explaining {
namespace {

// A scale of a group: row and column of its segment, and (i, j) of the 128x4 order.
struct Scale {
  std::int64_t group = 0;  // number of the segment
  std::int64_t row = 0, column = 0, i = 0, j = 0;
};

struct Group {
  Segment segment;
  std::int64_t used_before = 0, rows_before = 0, columns_before = 0;  // of the groups before, without padding
  bool flipped() const { return segment.swizzle == Swizzle::flipped; }
  std::int64_t used_i() const { return flipped() ? segment.used_columns : segment.used_rows; }
  std::int64_t used_j() const { return flipped() ? segment.used_rows : segment.used_columns; }
  std::int64_t i_before() const { return flipped() ? columns_before : rows_before; }
};

std::vector<Group> groups_of(const FailedOutput& output) {
  std::vector<Group> groups;
  std::int64_t used = 0, rows = 0, columns = 0;
  for (const Segment& segment : output.map.segments) {
    groups.push_back({segment, used, rows, columns});
    used += segment.used_rows * segment.used_columns;
    rows += segment.used_rows;
    columns += segment.used_columns;
  }
  return groups;
}

// Element of the output, or -1: the scale is left out.
using Where = std::function<std::int64_t(const Scale& scale, const Group& group)>;

bool is_of_scales(const FailedOutput& output) {
  return output.map.is_scale || output.name.ends_with("scale_inv") || output.name == "swizzled" || output.name == "compact";
}

void propose_layout(const Failure& failure, const FailedOutput& output, const std::string& text, const Propose& propose,
                    const Where& where) {
  Candidate candidate{"with " + output.name + " " + text, 14};
  candidate.all = [&failure, &output, where](Outputs& outputs) {
    Tensor& tensor = outputs[output.name];
    const Tensor before = tensor;
    const auto width = static_cast<std::size_t>(bits_of(tensor.type) / 8);
    const std::vector<Group> groups = groups_of(output);
    // What no scale reaches: 0 in swizzled scales, and what was there before in compact ones.
    for (const Group& group : groups) {
      const bool swizzled = group.segment.swizzle != Swizzle::none;
      std::memset(tensor.bytes.data() + static_cast<std::size_t>(group.segment.first) * width, swizzled ? 0 : failure.poison(),
                  static_cast<std::size_t>(group.segment.elements()) * width);
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const Segment& segment = groups[g].segment;
      for (std::int64_t row = 0; row < segment.used_rows; ++row) {
        for (std::int64_t column = 0; column < segment.used_columns; ++column) {
          const bool flipped = groups[g].flipped();
          const Scale scale{static_cast<std::int64_t>(g), row, column, flipped ? column : row, flipped ? row : column};
          const std::int64_t to = where(scale, groups[g]), from = segment.first + offset_of(segment, {row, column});
          if (to < 0 || to >= output.elements) continue;
          std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(to) * width,
                      before.bytes.data() + static_cast<std::size_t>(from) * width, width);
        }
      }
    }
    return true;
  };
  candidate.is_transform = true;
  propose(std::move(candidate));
}

std::int64_t within_tile(std::int64_t i, std::int64_t j) { return i % 32 * 16 + i % 128 / 32 * 4 + j % 4; }

void propose_swizzled(const Failure& failure, const FailedOutput& output, const Propose& propose) {
  const auto layout = [&](const char* text, const Where& where) { propose_layout(failure, output, text, propose, where); };
  const auto tiles = [](std::int64_t used) { return (used + 3) / 4; };
  layout("in tiles that follow one another down the rows first", [](const Scale& s, const Group& g) {
    const std::int64_t down = (g.used_i() + 127) / 128;
    return g.segment.first + (s.j / 4 * down + s.i / 128) * 512 + within_tile(s.i, s.j);
  });
  layout("in tiles whose groups of 32 rows and blocks are exchanged", [tiles](const Scale& s, const Group& g) {
    return g.segment.first + (s.i / 128 * tiles(g.used_j()) + s.j / 4) * 512 + s.i % 32 * 16 + s.j % 4 * 4 + s.i % 128 / 32;
  });
  layout("in tiles that are not interleaved: 128 rows of 4", [tiles](const Scale& s, const Group& g) {
    return g.segment.first + (s.i / 128 * tiles(g.used_j()) + s.j / 4) * 512 + s.i % 128 * 4 + s.j % 4;
  });
  layout("in tiles whose number along the blocks is rounded down", [](const Scale& s, const Group& g) {
    return g.segment.first + (s.i / 128 * std::max<std::int64_t>(g.used_j() / 4, 1) + s.j / 4) * 512 + within_tile(s.i, s.j);
  });
  layout("in compact order",
         [](const Scale& s, const Group& g) { return g.segment.first + s.row * g.segment.columns + s.column; });
  layout("swizzled as one matrix, not group by group",
         [tiles](const Scale& s, const Group& g) { return swizzled_index(g.i_before() + s.i, s.j, tiles(g.used_j())); });
  layout("without the last block of each row", [tiles](const Scale& s, const Group& g) {
    const std::int64_t at = g.segment.first + swizzled_index(s.i, s.j, tiles(g.used_j()));
    return s.j + 1 == g.used_j() ? -1 : at;
  });
}

void propose_compact(const Failure& failure, const FailedOutput& output, const Propose& propose) {
  const auto layout = [&](const char* text, const Where& where) { propose_layout(failure, output, text, propose, where); };
  layout("at a stride without padding",
         [](const Scale& s, const Group& g) { return g.segment.first + s.row * g.segment.used_columns + s.column; });
  layout("of each group where those before end without padding",
         [](const Scale& s, const Group& g) { return g.used_before + s.row * g.segment.columns + s.column; });
  layout("without padding, groups and rows alike",
         [](const Scale& s, const Group& g) { return g.used_before + s.row * g.segment.used_columns + s.column; });
  layout("at a stride of all groups, as one matrix", [](const Scale& s, const Group& g) {
    return s.row * (g.columns_before + g.segment.columns) + g.columns_before + s.column;
  });
  layout("in the other order of rows and columns, without padding",
         [](const Scale& s, const Group& g) { return g.segment.first + s.column * g.segment.used_rows + s.row; });
  layout("in the 128x4 order", [](const Scale& s, const Group& g) {
    return g.segment.first + swizzled_index(s.row, s.column, (g.segment.used_columns + 3) / 4);
  });
}

// Padding that holds what it should not: the poison in swizzled scales, 0 in compact ones.
void propose_padding(const Failure& failure, const FailedOutput& output, const Propose& propose) {
  for (const bool written : {false, true}) {
    Candidate candidate{fmt::format("with the padding of {} {}", output.name, written ? "written as 0" : "not written"), 13};
    candidate.is_fill = true;
    candidate.all = [&failure, &output, written](Outputs& outputs) {
      Tensor& tensor = outputs[output.name];
      const auto width = static_cast<std::size_t>(bits_of(tensor.type) / 8);
      for (std::int64_t at = 0; at < output.elements; ++at) {
        const Spot spot = output.spot_of(at);
        const bool used = spot.row >= 0 && spot.row < spot.rows && spot.column < spot.columns;
        if (!used) std::memset(tensor.bytes.data() + static_cast<std::size_t>(at) * width, written ? 0 : failure.poison(), width);
      }
      return true;
    };
    propose(std::move(candidate));
  }
}

}  // namespace

void propose_scale_layouts(const Failure& failure, const Propose& propose) {
  for (const FailedOutput& output : failure.outputs()) {
    if (output.wrong.empty() || !is_of_scales(output) || bits_of(output.want.type) < 8) continue;
    const auto& segments = output.map.segments;
    const bool swizzled =
        std::any_of(segments.begin(), segments.end(), [](const Segment& each) { return each.swizzle != Swizzle::none; });
    swizzled ? propose_swizzled(failure, output, propose) : propose_compact(failure, output, propose);
    propose_padding(failure, output, propose);
  }
}

}  // namespace assay::conformance::explaining
