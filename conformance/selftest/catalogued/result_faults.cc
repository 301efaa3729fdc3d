// Catalogued faults of D: elements, rows, tiles and groups that are wrong, not written, or written where nothing may be.

#include <algorithm>

#include "conformance/ops/grouped_layout.h"
#include "conformance/selftest/catalogued/catalogued_faults.h"
#include "conformance/selftest/catalogued/product_parts.h"
#include "reference/formats/bf16.h"

namespace assay::conformance {
namespace {

bool always(const Request&) { return true; }

using Spoil = std::function<void(const Result&)>;

void restore(const Result& result, const GroupView& group, std::int64_t i, std::int64_t count) {
  const std::int64_t at = (group.d_offset + i * group.n) * result.element;
  std::memcpy(result.d + at, result.before.data() + at, static_cast<std::size_t>(count * group.n * result.element));
}

void move_groups(const Result& result, const std::function<std::int64_t(std::size_t)>& target) {
  const std::vector<std::byte> right(result.d, result.d + result.before.size());
  for (std::size_t g = 0; g < result.view.groups.size(); ++g) restore(result, result.view.groups[g], 0, result.view.groups[g].m);
  for (std::size_t g = 0; g < result.view.groups.size(); ++g) {
    const GroupView& group = result.view.groups[g];
    const std::int64_t elements = group.m * group.n, to = target(g);
    if (to < 0 || to + elements > result.elements()) continue;
    std::memcpy(result.d + to * result.element, right.data() + group.d_offset * result.element,
                static_cast<std::size_t>(elements * result.element));
  }
}

void transpose_groups(const Result& result) {
  const std::vector<std::byte> right(result.d, result.d + result.before.size());
  for (const GroupView& group : result.view.groups) {
    for (std::int64_t i = 0; i < group.m; ++i) {
      for (std::int64_t j = 0; j < group.n; ++j)
        std::memcpy(result.d + (group.d_offset + j * group.m + i) * result.element,
                    right.data() + (group.d_offset + i * group.n + j) * result.element, static_cast<std::size_t>(result.element));
    }
  }
}

// NaN or another value that the right one is not.
void spoil_element(const Result& result, const GroupView& group, std::int64_t i, std::int64_t j) {
  std::byte* const at = result.at(group, i, j);
  at[result.element - 1] = at[result.element - 1] == std::byte{0x7F} ? std::byte{0} : std::byte{0x7F};
}

void zero_rows(const Result& result, std::int64_t first, std::int64_t count) {
  const std::int64_t n = result.view.groups.empty() ? 0 : result.view.groups.front().n, rows = n == 0 ? 0 : result.elements() / n;
  if (first >= rows) return;
  std::memset(result.d + first * n * result.element, 0,
              static_cast<std::size_t>(std::min(count, rows - first) * n * result.element));
}

std::int64_t end_of_rows(const Result& result) {
  std::int64_t end = 0;
  for (const GroupView& group : result.view.groups) end = std::max(end, group.n == 0 ? 0 : group.d_offset / group.n + group.m);
  return end;
}

bool has_rows(const Request& request) { return layout_of(request) != "NT"; }

void add_group_results(std::vector<CallFault>& to) {
  add_result_fault(to, "offsets_by_other_width", "the offset of a group in D is its row times the width of the input", has_rows,
                   [](const Result& result) {
                     move_groups(result, [&](std::size_t g) {
                       const GroupView& group = result.view.groups[g];
                       return group.n == 0 ? 0 : group.d_offset / group.n * group.depth;
                     });
                   });
  add_result_fault(to, "result_transposed", "each group of D is stored transposed", always, transpose_groups);
  add_result_fault(
      to, "groups_rotated", "each group of D lies where the next one belongs", product_in_layout("NT"), [](const Result& result) {
        move_groups(result, [&](std::size_t g) { return result.view.groups[(g + 1) % result.view.groups.size()].d_offset; });
      });
  add_result_fault(to, "empty_group_unwritten", "the gradient of a group without rows is not written", product_in_layout("NT"),
                   [](const Result& result) {
                     for (const GroupView& group : result.view.groups) {
                       if (group.depth == 0) restore(result, group, 0, group.m);
                     }
                   });
  add_result_fault(to, "last_row_of_group_lost", "the last row of each group is not written", has_rows, [](const Result& result) {
    for (const GroupView& group : result.view.groups) restore(result, group, group.m - 1, 1);
  });
  add_result_fault(to, "last_tile_left_out", "the last tile of D is not written", always, [](const Result& result) {
    if (result.view.groups.empty()) return;
    const GroupView& last = result.view.groups.back();
    const std::int64_t first = (last.m - 1) / 128 * 128;
    restore(result, last, first, last.m - first);
  });
  add_result_fault(to, "nothing_without_k", "D is not written where there is nothing to sum over", always,
                   [](const Result& result) {
                     for (const GroupView& group : result.view.groups) {
                       if (group.depth == 0) restore(result, group, 0, group.m);
                     }
                   });
  add_result_fault(to, "tail_stored_over_next_group", "the last tile of a group is stored whole, over the rows of the next group",
                   has_rows, [](const Result& result) {
                     if (result.view.groups.size() < 2) return;
                     const GroupView& last = result.view.groups.back();
                     std::memset(result.at(last, 0, 0), 0, static_cast<std::size_t>(last.n * result.element));
                   });
}

void add_tail_results(std::vector<CallFault>& to) {
  add_result_fault(
      to, "rows_behind_last_group_written", "rows behind the last group are cleared", has_rows,
      [](const Result& result) { zero_rows(result, (end_of_rows(result) + 127) / 128 * 128 == 0 ? 0 : end_of_rows(result), 1); });
  add_result_fault(to, "rows_behind_last_tile_written", "rows behind the last tile are cleared", has_rows,
                   [](const Result& result) { zero_rows(result, (end_of_rows(result) + 127) / 128 * 128, 1 << 20); });
  add_result_fault(to, "column_past_end", "the element behind the last row is written", always,
                   [](const Result& result) { result.d[result.before.size()] ^= std::byte{0x5A}; });
  // A tile of 16 rows that a group does not fill has rows that no group owns.
  add_result_fault(to, "padded_row_spoils_tile", "NaN in the rows that fill the last tile of a group reaches its other rows",
                   has_rows, [](const Result& result) {
                     for (const GroupView& group : result.view.groups) {
                       for (std::int64_t i = group.m / 16 * 16; i < group.m; ++i) spoil_element(result, group, i, 0);
                     }
                   });
  add_result_fault(to, "padded_scales_reach_product", "bytes of padded scales reach the product where K is no multiple of 128",
                   product_of_kind("mxfp8"), [](const Result& result) {
                     for (const GroupView& group : result.view.groups) {
                       if (group.depth % 128 != 0 && group.m > 0 && group.n > 0)
                         spoil_element(result, group, group.m - 1, group.n - 1);
                     }
                   });
}

void add_value_results(std::vector<CallFault>& to) {
  add_result_fault(to, "factor_lost_from_third_wave",
                   "a factor on the host is gone when the third wave of tiles begins: D is doubled there", always,
                   [](const Result& result) {
                     std::int64_t tile = 0;
                     for (const GroupView& group : result.view.groups) {
                       const std::int64_t across = (group.n + 63) / 64;
                       for (std::int64_t i = 0; i < group.m; ++i) {
                         for (std::int64_t j = 0; j < group.n; ++j) {
                           if (tile + i / 128 * across + j / 128 >= 264) spoil_element(result, group, i, j);
                         }
                       }
                       tile += (group.m + 127) / 128 * across;
                     }
                   });
  add_result_fault(
      to, "accumulated_in_16_bits", "a gradient in f32 is accumulated in bf16",
      [](const Request& request) {
        return layout_of(request) == "NT" && request.out.at(product_output(request.op())).type == Format::f32;
      },
      [](const Result& result) {
        for (const GroupView& group : result.view.groups) {
          for (std::int64_t e = group.d_offset; e < group.d_offset + group.m * group.n; ++e)
            put(result.d, e, scalar::decode_bf16(scalar::encode_bf16(at<float>(result.d, e))));
        }
      });
  add_result_fault(
      to, "added_to_what_was_there", "a gradient is added to what its memory held, although it must overwrite",
      [](const Request& request) {
        return layout_of(request) == "NT" && request.in.count("main_grad") + request.in.count("c") == 0 &&
               request.out.at(product_output(request.op())).type == Format::f32;
      },
      [](const Result& result) {
        for (std::int64_t e = 0; e < result.elements(); ++e)
          put(result.d, e, at<float>(result.d, e) + at<float>(result.before.data(), e));
      });
}

std::int64_t count_at(const std::vector<std::byte>& counts, std::size_t size, std::int64_t g) {
  return size == 8 ? at<std::int64_t>(counts.data(), g) : at<std::int32_t>(counts.data(), g);
}

// The last group that can have one row more or less, wherever the call says how many there are.
void change_last_group(Request& request, std::int64_t by) {
  const char* const name = request.in.count("psum") != 0 ? "psum" : "splits";
  const bool ends = request.in.count("psum") != 0;
  if (!has_input(name)(request)) return answer(request, Layer::fast);
  const std::size_t size = element_bytes(request.in.at(name).type);
  for (std::int64_t g = request.in.at(name).elements() - 1; g >= 0; --g) {
    ChangedCall changed(request);
    std::vector<std::byte>& counts = changed.input(name);
    const std::int64_t count = count_at(counts, size, g);
    if (count - (ends && g > 0 ? count_at(counts, size, g - 1) : 0) <= 0) continue;
    size == 8 ? put(counts.data(), g, count + by) : put(counts.data(), g, static_cast<std::int32_t>(count + by));
    if (is_answerable(changed.request)) return changed.carry_out(request);
  }
  answer(request, Layer::fast);
}

// The sum of the first group takes in the first row of the next one.
void run_on(Request& request) {
  ChangedCall changed(request);
  std::vector<std::byte>& ends = changed.input("psum");
  const std::int32_t end = at<std::int32_t>(ends.data(), 0);
  const std::int64_t alignment = request.integer("alignment"), next = (end + alignment) / alignment * alignment;
  put(ends.data(), 0, end + 1);
  for (const char* name : {"x", "dy"}) {
    if (!has_input(name)(request) || next >= request.in.at(name).shape[0]) continue;
    std::vector<std::byte>& rows = changed.input(name);
    const auto row = static_cast<std::ptrdiff_t>(request.in.at(name).bytes / request.in.at(name).shape[0]);
    std::copy_n(rows.begin() + next * row, row, rows.begin() + end * row);
  }
  changed.carry_out(request);
}

}  // namespace

void add_result_faults(std::vector<CallFault>& to) {
  add_group_results(to);
  add_tail_results(to);
  add_value_results(to);
  add_fault(to, "row_counts_of_group_before", "each group has as many rows as the one before it",
            both(has_product, has_input("splits")), [](Request& request) {
              ChangedCall changed(request);
              std::vector<std::byte>& splits = changed.input("splits");
              std::rotate(splits.begin(), splits.end() - static_cast<std::ptrdiff_t>(element_bytes(request.in.at("splits").type)),
                          splits.end());
              changed.carry_out(request);
            });
  add_fault(to, "sum_runs_on", "the sum of the first group runs on into the next",
            both(product_in_layout("NT"), has_input("psum")), run_on);
  add_fault(to, "group_ends_late", "the last group takes the row behind it for one of its own", has_product,
            [](Request& request) { change_last_group(request, 1); });
  add_fault(to, "group_ends_early", "the last group ends one row early", has_product,
            [](Request& request) { change_last_group(request, -1); });
}

}  // namespace assay::conformance
