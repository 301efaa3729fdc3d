#include "conformance/diagnose/hints/scale_hint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "reference/formats/encode.h"
#include "reference/gemm/epilogue.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kTile = 128;
constexpr std::int64_t kSideBySide = 256;        // places that are tried side by side
constexpr std::int64_t kMaxTiles = 512;          // that are looked at
constexpr std::int64_t kEffort = 8'000'000'000;  // multiplications and additions that the search may take: a second or so
constexpr std::size_t kSamples = 4;              // elements of a tile that are looked at; all must agree

// One element of D in parts: the sum of each promotion interval before its scales.
struct Parts {
  const GroupView* group = nullptr;
  std::int64_t i = 0, j = 0;
  std::vector<float> t;                  // by interval
  std::vector<float> s_rows, s_columns;  // by interval; kind tensor: one
  std::uint32_t got = 0, want = 0;
};

std::uint32_t code_at(const Elements& elements, std::int64_t at) { return static_cast<std::uint32_t>(elements[at]); }

bool same(Format type, std::uint32_t a, std::uint32_t b) { return a == b || (is_nan(type, a) && is_nan(type, b)); }

// The value of a chain over [begin, end), as the bits of an f32.
float chain(const TensorCoreUnit& unit, const GroupView& group, std::int64_t i, std::int64_t j, std::int64_t begin,
            std::int64_t end) {
  std::array<std::uint32_t, 64> a, b;
  std::uint32_t accumulator = 0;
  for (std::int64_t k = begin; k < end; k += unit.products_per_step) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(unit.products_per_step, end - k));
    for (std::size_t p = 0; p < count; ++p) {
      a[p] = group.rows.element(i, k + static_cast<std::int64_t>(p));
      b[p] = group.columns.element(j, k + static_cast<std::int64_t>(p));
    }
    accumulator = tensor_core_step(unit, group.rows.type, {a.data(), count}, group.columns.type, {b.data(), count}, accumulator);
  }
  float value;
  std::memcpy(&value, &accumulator, sizeof value);
  return value;
}

Parts parts_of(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j) {
  Parts parts;
  parts.group = &group;
  parts.i = i, parts.j = j;
  const bool inside = view.kind == GemmKind::fp8_block;
  const std::int64_t interval =
      view.plan->promotion_interval == 0 ? std::max<std::int64_t>(group.depth, 1) : view.plan->promotion_interval;
  for (std::int64_t k = 0; k < group.depth; k += interval) {
    parts.t.push_back(chain(*view.unit, group, i, j, k, std::min(k + interval, group.depth)));
    if (!inside) continue;
    parts.s_rows.push_back(group.rows.scale.value(i, k));
    parts.s_columns.push_back(group.columns.scale.value(j, k));
  }
  if (!inside) {
    // The sum does not depend on scales: one interval from here on.
    float sum = 0;
    for (const float t : parts.t) sum = view.plan->promotion == Promotion::none ? t : sum + t;
    parts.t = {sum};
    parts.s_rows = {group.rows.scale.value(0, 0)};
    parts.s_columns = {group.columns.scale.value(0, 0)};
  }
  return parts;
}

// acc[n] for the scales `moving` of one operand at places from[n], from[n] + stride, ...; the other's stay.
ASSAY_CLONES
void accumulate(Promotion promotion, bool columns_move, const float* t, const float* fixed, std::int64_t intervals,
                const float* moving, std::int64_t stride, std::int64_t count, float* acc) {
  for (std::int64_t n = 0; n < count; ++n) acc[n] = 0;
  for (std::int64_t b = 0; b < intervals; ++b) {
    const float value = t[b], other = fixed[b];
    const float* at = moving + b * stride;
    // t times the scale that is applied first, if it is the fixed one.
    const bool first_moves = promotion == Promotion::fma_scales_first || (promotion == Promotion::fma_rows_first) != columns_move;
    const float kept = value * other;
    if (promotion == Promotion::fma_scales_first) {
      for (std::int64_t n = 0; n < count; ++n) acc[n] = std::fma(at[n] * other, value, acc[n]);
    } else if (first_moves) {
      for (std::int64_t n = 0; n < count; ++n) acc[n] = std::fma(value * at[n], other, acc[n]);
    } else {
      for (std::int64_t n = 0; n < count; ++n) acc[n] = std::fma(kept, at[n], acc[n]);
    }
  }
}

template <class Code>
void finish_as(const GroupedGemmView& view, const Parts& parts, bool columns_move, std::span<const float> acc,
               std::span<std::uint32_t> codes) {
  const GroupView& group = *parts.group;
  const std::int64_t at = group.d_offset + parts.i * group.n + parts.j;
  const bool has_c = group.beta != 0 && view.c != nullptr;
  std::array<Code, kSideBySide> c, bias, d;
  if (has_c) std::fill_n(c.data(), acc.size(), static_cast<const Code*>(view.c)[at]);
  if (group.bias != nullptr) std::fill_n(bias.data(), acc.size(), static_cast<const Code*>(group.bias)[parts.j]);
  gemm::Epilogue epilogue{view.d_type, group.alpha, group.beta};
  const auto store = [&](const float* sums, std::size_t n, std::size_t count) {
    gemm::store(epilogue, sums, has_c ? c.data() + n : nullptr, group.bias != nullptr ? bias.data() + n : nullptr, d.data() + n,
                0, static_cast<std::int64_t>(count));
  };
  if (view.kind == GemmKind::fp8_per_tensor) {
    for (std::size_t n = 0; n < acc.size(); ++n) {
      const float with_columns = group.alpha * (columns_move ? acc[n] : parts.s_columns[0]);
      epilogue.factor = with_columns * (columns_move ? parts.s_rows[0] : acc[n]);
      store(parts.t.data(), n, 1);
    }
  } else {
    store(acc.data(), 0, acc.size());
  }
  std::copy_n(d.data(), acc.size(), codes.data());
}

// The codes of D for at most kSideBySide sums `acc`, all at the place of `parts`. Kind tensor: `acc` are the moving scales.
void finish(const GroupedGemmView& view, const Parts& parts, bool columns_move, std::span<const float> acc,
            std::span<std::uint32_t> codes) {
  if (view.d_type == Format::f32) {
    finish_as<std::uint32_t>(view, parts, columns_move, acc, codes);
  } else {
    finish_as<std::uint16_t>(view, parts, columns_move, acc, codes);
  }
}

// Places whose scales give the wrong element, and how far they are from the place that is right.
struct Search {
  std::set<std::int64_t> places, distances;
  bool right_place_is_right = false;  // the right scales give the right value
};

Search search(const GroupedGemmView& view, const Parts& parts, bool columns_move, std::span<const float> all) {
  Search found;
  const ScaleView& scale = columns_move ? parts.group->columns.scale : parts.group->rows.scale;
  const auto intervals = static_cast<std::int64_t>(parts.t.size());
  const std::int64_t stride = view.kind == GemmKind::fp8_block ? scale.k_stride : 0;
  const std::int64_t own = static_cast<const float*>(scale.data) - all.data() + scale.index(columns_move ? parts.j : parts.i, 0);
  const std::int64_t places = static_cast<std::int64_t>(all.size()) - std::max<std::int64_t>(intervals - 1, 0) * stride;
  const std::vector<float>& fixed = columns_move ? parts.s_rows : parts.s_columns;
  std::array<float, kSideBySide> acc;
  std::array<std::uint32_t, kSideBySide> codes;
  for (std::int64_t begin = 0; begin < places; begin += kSideBySide) {
    const std::int64_t count = std::min(kSideBySide, places - begin);
    const auto used = static_cast<std::size_t>(count);
    if (view.kind == GemmKind::fp8_per_tensor) {
      std::copy_n(all.data() + begin, count, acc.data());
    } else {
      accumulate(view.plan->promotion, columns_move, parts.t.data(), fixed.data(), intervals, all.data() + begin, stride, count,
                 acc.data());
    }
    finish(view, parts, columns_move, {acc.data(), used}, {codes.data(), used});
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t place = begin + n;
      const std::uint32_t code = codes[static_cast<std::size_t>(n)];
      if (place == own) {
        found.right_place_is_right = same(view.d_type, code, parts.want);
      } else if (code == parts.got) {
        found.places.insert(place);
        found.distances.insert(place - own);
      }
    }
  }
  return found;
}

// Where a tile is, and some of its wrong elements.
struct Candidate {
  WrongTile tile;
  const GroupView* group = nullptr;
  std::vector<std::pair<std::int64_t, std::int64_t>> samples;  // (i, j)
};

// All wrong tiles of a group, each with the first few and the last of its wrong finite elements.
template <class Code>
std::vector<Candidate> wrong_tiles_as(const GroupedGemmView& view, const GroupView& group, std::int64_t number,
                                      const Elements& got, const Elements& want) {
  const std::int64_t tile_rows = (group.m + kTile - 1) / kTile, tile_columns = (group.n + kTile - 1) / kTile;
  std::vector<Candidate> all(static_cast<std::size_t>(tile_rows * tile_columns));
  const Code *is = reinterpret_cast<const Code*>(got.bytes) + group.d_offset,
             *wanted = reinterpret_cast<const Code*>(want.bytes) + group.d_offset;
  parallel_for(tile_rows * tile_columns, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t first_row = t / tile_columns * kTile, first_column = t % tile_columns * kTile;
      const std::int64_t end_row = std::min(group.m, first_row + kTile), end_column = std::min(group.n, first_column + kTile);
      Candidate& candidate = all[static_cast<std::size_t>(t)];
      const auto row_is_right = [&](std::int64_t i) {
        const std::int64_t at = i * group.n + first_column;
        return std::memcmp(is + at, wanted + at, static_cast<std::size_t>(end_column - first_column) * sizeof(Code)) == 0;
      };
      const auto is_sample = [&](std::int64_t i, std::int64_t j) {  // a wrong element that is finite
        const Code found = is[i * group.n + j];
        if (same(view.d_type, found, wanted[i * group.n + j])) return false;
        candidate.group = &group;
        return is_finite(view.d_type, found);
      };
      for (std::int64_t i = first_row; i < end_row && candidate.samples.size() < kSamples - 1; ++i) {
        if (row_is_right(i)) continue;
        for (std::int64_t j = first_column; j < end_column && candidate.samples.size() < kSamples - 1; ++j) {
          if (is_sample(i, j)) candidate.samples.emplace_back(i, j);
        }
      }
      bool looking = candidate.samples.size() == kSamples - 1;
      for (std::int64_t i = end_row - 1; i >= first_row && looking; --i) {
        if (row_is_right(i)) continue;
        for (std::int64_t j = end_column - 1; j >= first_column && looking; --j) {
          if (!is_sample(i, j)) continue;
          if (candidate.samples.back() != std::pair{i, j}) candidate.samples.emplace_back(i, j);
          looking = false;
        }
      }
      candidate.tile.group = number;
      candidate.tile.row = t / tile_columns, candidate.tile.column = t % tile_columns;
    }
  });
  std::erase_if(all, [](const Candidate& candidate) { return candidate.group == nullptr; });
  return all;
}

std::vector<Candidate> wrong_tiles(const GroupedGemmView& view, const GroupView& group, std::int64_t number, const Elements& got,
                                   const Elements& want) {
  return view.d_type == Format::f32 ? wrong_tiles_as<std::uint32_t>(view, group, number, got, want)
                                    : wrong_tiles_as<std::uint16_t>(view, group, number, got, want);
}

// Names of the coordinates of an operand's scales.
struct OperandNames {
  const char *operand, *free, *summed;
};
OperandNames names_of(GemmLayout layout, bool columns) {
  switch (layout) {
    case GemmLayout::TN: return columns ? OperandNames{"w", "n", "k"} : OperandNames{"x", "row", "k"};
    case GemmLayout::NN: return columns ? OperandNames{"w", "k", "n"} : OperandNames{"dy", "row", "n"};
    default: return columns ? OperandNames{"x", "k", "row"} : OperandNames{"dy", "n", "row"};
  }
}

// Where the scale `index` of an operand's whole array belongs.
std::string place_text(const GroupedGemmView& view, std::span<const std::int64_t> numbers, GemmLayout layout, bool columns,
                       std::span<const float> all, std::int64_t index) {
  std::size_t group = 0;
  std::int64_t base = -1;
  for (std::size_t g = 0; g < view.groups.size(); ++g) {
    const ScaleView& scale = columns ? view.groups[g].columns.scale : view.groups[g].rows.scale;
    const std::int64_t first = static_cast<const float*>(scale.data) - all.data();
    if (first <= index && first > base) base = first, group = g;
  }
  if (base < 0) return "scale " + show(index);
  std::string text = "group " + show(numbers[group]);
  if (view.kind == GemmKind::fp8_per_tensor) return text;
  const ScaleView& scale = columns ? view.groups[group].columns.scale : view.groups[group].rows.scale;
  const OperandNames names = names_of(layout, columns);
  const std::int64_t within = index - base;
  const bool k_inner = scale.k_stride < scale.i_stride || scale.i_stride == 0;
  const std::int64_t pitch = std::max<std::int64_t>(k_inner ? scale.i_stride : scale.k_stride, 1);
  const std::int64_t free = k_inner ? within / pitch : within % pitch, summed = k_inner ? within % pitch : within / pitch;
  text += std::string(", ") + names.free + (scale.i_block > 1 ? "-block " : " ") + show(free);
  return text + ", " + names.summed + "-block " + show(summed);
}

std::string share_text(std::int64_t part, std::int64_t all) {
  return part == all ? "all " + show(all) : show(part) + " of " + show(all);
}

std::string tile_text(const WrongTile& tile) {
  return "(group " + show(tile.group) + ", " + show(tile.row) + ", " + show(tile.column) + ")";
}

void tell(const GroupedGemmView& view, std::span<const std::int64_t> numbers, GemmLayout layout, const ScaleArrays& scales,
          ScaleFindings& findings) {
  for (const bool columns : {true, false}) {
    const std::span<const float> all = columns ? scales.columns : scales.rows;
    const char* operand = names_of(layout, columns).operand;
    std::int64_t tiles = 0;
    std::map<std::int64_t, std::int64_t> reads;  // place: tiles
    std::string examples;
    int listed = 0;
    for (const WrongTile& tile : findings.tiles) {
      if (!tile.is_explained || tile.of_columns != columns) continue;
      ++tiles;
      ++reads[tile.read];
      const std::string line = "tile " + tile_text(tile) + ": " + operand + " scale " + show(tile.wanted) + " (" +
                               place_text(view, numbers, layout, columns, all, tile.wanted) + ") read at " + show(tile.read) +
                               " (" + place_text(view, numbers, layout, columns, all, tile.read) + ")";
      findings.details.push_back(line);
      if (listed++ < 2) examples += "; " + line;
    }
    if (tiles == 0) continue;
    std::vector<std::pair<std::int64_t, std::int64_t>> often(reads.begin(), reads.end());
    std::stable_sort(often.begin(), often.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string places;
    for (std::size_t i = 0; i < often.size() && i < 6; ++i) {
      places += (places.empty() ? "" : ", ") + show(often[i].first) + " (" + show(often[i].second) +
                (often[i].second == 1 ? " tile)" : " tiles)");
    }
    if (often.size() > 6) places += " and " + show(often.size() - 6) + " more";
    findings.hints.push_back(std::string("scale of another block: scales of ") + operand + " explain " +
                             share_text(tiles, findings.looked_at) + " wrong tiles 128x128" +
                             (findings.looked_at < static_cast<std::int64_t>(findings.tiles.size())
                                  ? " sampled, of " + show(findings.tiles.size())
                                  : "") +
                             "; read from scale " + places + examples);
  }
}

}  // namespace

ScaleFindings find_wrong_scales(const GroupedGemmView& view, std::span<const std::int64_t> numbers, const ScaleArrays& scales,
                                GemmLayout layout, const Elements& got, const Elements& want) {
  ScaleFindings findings;
  const bool one_slice = view.plan->slices == 1;
  const bool promoted = view.plan->promotion != Promotion::none && view.plan->promotion != Promotion::add;
  const bool block = view.kind == GemmKind::fp8_block && promoted && view.plan->promotion_interval > 0;
  if (!one_slice || !(block || view.kind == GemmKind::fp8_per_tensor) || view.unit->accumulator == Accumulator::f16_nearest)
    return findings;

  std::vector<Candidate> candidates;
  for (std::size_t g = 0; g < view.groups.size(); ++g) {
    if (view.groups[g].depth == 0) continue;
    std::vector<Candidate> of_group = wrong_tiles(view, view.groups[g], numbers[g], got, want);
    candidates.insert(candidates.end(), std::make_move_iterator(of_group.begin()), std::make_move_iterator(of_group.end()));
  }
  if (candidates.empty()) return findings;

  std::int64_t depth = 1;
  for (const GroupView& group : view.groups) depth = std::max(depth, group.depth);
  const std::int64_t intervals = block ? (depth + view.plan->promotion_interval - 1) / view.plan->promotion_interval : 1;
  const auto count = static_cast<std::int64_t>(candidates.size());
  std::vector<std::uint8_t> looked(candidates.size(), 0);
  // Scales of the columns first; those of the rows, often many more, for the remaining tiles.
  for (const bool columns : {true, false}) {
    const std::span<const float> all = columns ? scales.columns : scales.rows;
    std::vector<std::int64_t> open;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (columns || (looked[at] != 0 && !candidates[at].tile.is_explained)) open.push_back(i);
    }
    const std::int64_t effort =
        static_cast<std::int64_t>(kSamples) * std::max<std::int64_t>(static_cast<std::int64_t>(all.size()) * (intervals + 4), 1);
    const std::int64_t most = std::clamp<std::int64_t>(kEffort / (columns ? 1 : 4) / effort, 4, kMaxTiles);
    const std::int64_t step = std::max<std::int64_t>((static_cast<std::int64_t>(open.size()) + most - 1) / most, 1);
    parallel_for((static_cast<std::int64_t>(open.size()) + step - 1) / step, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        // One of every `step` tiles, with a moving offset, so that all columns are sampled.
        const std::int64_t chosen = n * step + n % step < static_cast<std::int64_t>(open.size()) ? n * step + n % step : n * step;
        const auto at = static_cast<std::size_t>(open[static_cast<std::size_t>(chosen)]);
        Candidate& candidate = candidates[at];
        looked[at] = 1;
        // Fewer could agree by chance: an element of 16 bits does with one scale in a thousand.
        if (candidate.samples.size() < (view.d_type == Format::f32 ? 2 : kSamples)) continue;
        std::set<std::int64_t> places, distances;
        std::int64_t own = 0;
        bool usable = true;
        for (std::size_t s = 0; s < candidate.samples.size() && usable && (s == 0 || !places.empty() || !distances.empty());
             ++s) {
          const auto [i, j] = candidate.samples[s];
          Parts parts = parts_of(view, *candidate.group, i, j);
          const std::int64_t element = candidate.group->d_offset + i * candidate.group->n + j;
          parts.got = code_at(got, element), parts.want = code_at(want, element);
          const Search found = search(view, parts, columns, all);
          usable = found.right_place_is_right;
          const ScaleView& scale = columns ? candidate.group->columns.scale : candidate.group->rows.scale;
          if (s == 0) {
            places = found.places;
            distances = found.distances;
            own = static_cast<const float*>(scale.data) - all.data() + scale.index(columns ? j : i, 0);
          } else {
            std::erase_if(places, [&](std::int64_t each) { return found.places.count(each) == 0; });
            std::erase_if(distances, [&](std::int64_t each) { return found.distances.count(each) == 0; });
          }
        }
        if (!usable || (places.empty() && distances.empty())) continue;
        candidate.tile.is_explained = true;
        candidate.tile.of_columns = columns;
        candidate.tile.wanted = own;
        candidate.tile.read = places.empty() ? own + *distances.begin() : *places.begin();
      }
    });
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    findings.looked_at += looked[i];
    findings.explained += candidates[i].tile.is_explained;
    findings.tiles.push_back(candidates[i].tile);
  }
  tell(view, numbers, layout, scales, findings);
  return findings;
}

}  // namespace assay::conformance
