#include "device/tests/mutants/rooms/table_reader.h"

#include <cuda_runtime.h>

#include <array>
#include <cstddef>

#include "device/layout/group_table.cuh"
#include "device/support/launch.cuh"
#include "device/tests/mutants/shared_memory.h"

namespace assay::mutants {
namespace {

constexpr int kThreads = 64;
constexpr int kTileRows = 128, kUnit = 4;
using Table = device::GroupTable<device::Blocks<kTileRows>, device::RoundedUp<kUnit>>;
constexpr int kCounted = 3;  // rows, tiles, rows in fours

// What is looked up, and the answers, of which the table has those of groups 0, ..., groups.
struct Found {
  std::uint32_t first[kCounted], total[kCounted - 1], rows;
};
struct Asked {
  int counted, group;  // the group that holds the item
  std::uint32_t item;
};

__global__ void __launch_bounds__(kThreads)
    read_table(const device::Rows rows, const Asked* asked, int count, Found* found, int* group, bool* built) {
  static struct {
    Table table;
    SharedGuard guard;
  } shared;
  enter_shared(shared);
  Table& table = shared.table;
  const bool valid = table.build(rows, nullptr);
  if (threadIdx.x == 0) *built = valid;
  if (!valid) return;
  for (int t = static_cast<int>(threadIdx.x); t <= rows.groups; t += kThreads) {
    Found& own = found[t];
    own.first[0] = table.first_row(t);
    for (int i = 0; i + 1 < kCounted; ++i) {
      own.first[1 + i] = table.before(i, t);
      own.total[i] = table.total(i, rows.groups);
    }
    own.rows = t < rows.groups ? table.rows(t) : 0;
  }
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const Asked& each = asked[i];
    group[i] = each.counted == 0 ? table.find_row(each.item, rows.groups) : table.find(each.counted - 1, each.item, rows.groups);
  }
}

// Of a group of `rows` rows: rows, tiles, rows in fours.
std::array<std::int64_t, kCounted> counts(std::int64_t rows) {
  return {rows, (rows + kTileRows - 1) / kTileRows, (rows + kUnit - 1) / kUnit * kUnit};
}

}  // namespace

bool table_is_right(const device::Rows& rows, const std::vector<std::int64_t>& splits, bool valid) {
  std::vector<Asked> asked;
  std::vector<std::array<std::int64_t, kCounted>> first(1);
  for (std::size_t t = 0; valid && t < splits.size(); ++t) {
    const std::array<std::int64_t, kCounted> own = counts(splits[t]);
    first.push_back(first.back());
    for (int i = 0; i < kCounted; ++i) {
      std::int64_t& end = first.back()[static_cast<std::size_t>(i)];
      const std::int64_t items = own[static_cast<std::size_t>(i)];
      if (items > 0) {
        asked.push_back({i, static_cast<int>(t), static_cast<std::uint32_t>(end)});
        asked.push_back({i, static_cast<int>(t), static_cast<std::uint32_t>(end + items - 1)});
      }
      end += items;
    }
  }
  std::vector<Found> found(splits.size() + 1);
  std::vector<int> group(asked.size(), -1);
  bool built = !valid;
  device::launch_kernel("read_table", read_table, 1, kThreads, 0, nullptr, rows, static_cast<const Asked*>(asked.data()),
                        static_cast<int>(asked.size()), found.data(), group.data(), &built);
  bool right = built == valid;
  for (std::size_t t = 0; right && valid && t <= splits.size(); ++t) {
    for (std::size_t i = 0; i < kCounted; ++i) {
      right = right && found[t].first[i] == first[t][i];
      if (i > 0) right = right && found[t].total[i - 1] == first.back()[i];
    }
    right = right && found[t].rows == (t < splits.size() ? splits[t] : 0);
  }
  for (std::size_t i = 0; right && valid && i < asked.size(); ++i) right = group[i] == asked[i].group;
  return right;
}

}  // namespace assay::mutants
