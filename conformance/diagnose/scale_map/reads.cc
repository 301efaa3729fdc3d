#include "conformance/diagnose/scale_map/reads.h"

#include <bit>
#include <cmath>

#include "reference/support/parallel.h"

namespace assay::conformance {

void ScaleReads::look(std::int64_t block, const float* d) {
  parallel_for(product_.tiles, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      if (block < group_at(tile).blocks()) look_at_tile(tile, block, d);
    }
  });
  for (const MappedGroup& group : product_.groups) {
    if (block < group.blocks()) pairs_ += group.tile_rows * group.tile_columns;
  }
}

void ScaleReads::look_at_tile(std::int64_t tile, std::int64_t block, const float* d) {
  const std::int64_t g = group_of_[static_cast<std::size_t>(tile)];
  const MappedGroup& group = group_at(tile);
  const std::int64_t within = tile - group.first_tile, tile_row = within / group.tile_columns,
                     tile_column = within % group.tile_columns;
  const auto count = static_cast<float>(products_in(group, block));
  for (int q = 0; q < 4; ++q) {
    const Range rows = half(tile_row, q / 2, group.m), columns = half(tile_column, q % 2, group.n);
    if (rows.empty() || columns.empty()) continue;
    const float* first = d + group.d_offset + rows.begin * group.n + columns.begin;
    const Range lines = array_.of_columns ? columns : rows;
    float want[kHalf];
    for (std::int64_t i = lines.begin; i < lines.end; ++i) want[i - lines.begin] = count * value_of(array_.place(g, i, block));
    const std::int64_t wrong = count_wrong(first, rows, columns, group.n, want);
    if (wrong == 0) continue;
    std::vector<ScaleRead>& reads = quarters_[static_cast<std::size_t>(tile * 4 + q)];
    if (reads.empty()) {
      reads.resize(static_cast<std::size_t>(group.blocks()));
      for (std::int64_t b = 0; b < group.blocks(); ++b)
        reads[static_cast<std::size_t>(b)].place = array_.place(g, lines.begin, b);
    }
    reads[static_cast<std::size_t>(block)] = read_of(first, rows, columns, group.n, want, g, block, count);
    reads[static_cast<std::size_t>(block)].wrong = wrong;
  }
}

std::int64_t ScaleReads::count_wrong(const float* first, Range rows, Range columns, std::int64_t pitch, const float* want) const {
  const std::int64_t height = rows.end - rows.begin, width = columns.end - columns.begin;
  int wrong = 0;
  for (std::int64_t i = 0; i < height; ++i) {
    const float* words = first + i * pitch;
    if (array_.of_columns) {
      for (std::int64_t j = 0; j < width; ++j) wrong += words[j] != want[j];
    } else {
      const float wanted = want[i];
      for (std::int64_t j = 0; j < width; ++j) wrong += words[j] != wanted;
    }
  }
  return wrong;
}

ScaleRead ScaleReads::decode(float word, float count) const {
  ScaleRead read;
  const float value = word / count;  // exact: a power of two
  const auto most = static_cast<float>(kBefore + array_.elements() + kBehind);
  if (value >= 1 && value <= most && value == std::floor(value)) {
    read.place = static_cast<std::int64_t>(value) - kBefore - 1;
  } else {
    read.kind = ScaleRead::Kind::nothing;
    read.bits = std::bit_cast<std::uint32_t>(word);
  }
  return read;
}

ScaleRead ScaleReads::read_of(const float* first, Range rows, Range columns, std::int64_t pitch, const float* want,
                              std::int64_t g, std::int64_t block, float count) const {
  const Range lines = array_.of_columns ? columns : rows;
  const std::int64_t start = array_.place(g, lines.begin, block);
  ScaleRead all, wrong;
  bool agree = true, found = false;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      const float word = first[(i - rows.begin) * pitch + j - columns.begin];
      const std::int64_t line = array_.of_columns ? j : i;
      ScaleRead read = decode(word, count);
      if (read.kind == ScaleRead::Kind::place) read.place -= array_.place(g, line, block) - start;
      read.row = i, read.column = j;
      if (i == rows.begin && j == columns.begin) all = read;
      agree = agree && read.kind == all.kind && read.place == all.place && read.bits == all.bits;
      if (!found && word != want[line - lines.begin]) {
        found = true;
        wrong = read;
        wrong.bits = std::bit_cast<std::uint32_t>(word);
      }
    }
  }
  if (agree) return all;
  wrong.kind = ScaleRead::Kind::several;
  return wrong;
}

}  // namespace assay::conformance
