#include "reference/rules/scale_storage.h"

#include <iterator>

#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

using Order = ScaleStorage::Order;

struct NamedOrder {
  Order order;
  std::string_view name;
};
constexpr NamedOrder kOrders[] = {
    {Order::k_major, "k_major"},
    {Order::mn_major, "mn_major"},
    {Order::tma_aligned, "tma_aligned"},
    {Order::packed, "packed"},
    {Order::swizzled_128x4, "swizzled_128x4"},
    {Order::swizzled_8x4, "swizzled_8x4"},
};
constexpr std::string_view kPerGroup = "_per_group";

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) { return ceil_div(value, multiple) * multiple; }

bool is_swizzled(Order order) { return order == Order::swizzled_128x4 || order == Order::swizzled_8x4; }

}  // namespace

std::string name_of(ScaleStorage storage) {
  for (const NamedOrder& each : kOrders) {
    if (each.order == storage.order) return std::string(each.name) + (storage.per_group ? std::string(kPerGroup) : "");
  }
  throw InvalidArgument("scale storage", show(static_cast<std::uint32_t>(storage.order)), "one of ScaleStorage::Order");
}

std::vector<std::string> scale_storage_names() {
  std::vector<std::string> names;
  for (const bool per_group : {false, true}) {
    for (const NamedOrder& each : kOrders) names.push_back(name_of({each.order, per_group}));
  }
  return names;
}

ScaleStorage parse_scale_storage(std::string_view argument, std::string_view name) {
  for (const bool per_group : {false, true}) {
    for (const NamedOrder& each : kOrders) {
      if (name_of({each.order, per_group}) == name) return {each.order, per_group};
    }
  }
  std::string known;
  for (const NamedOrder& each : kOrders) known += (known.empty() ? "" : ", ") + std::string(each.name);
  throw InvalidArgument(argument, "'" + std::string(name) + "'", known + ", or one of them with _per_group at its end");
}

StoredScales stored_scales(ScaleStorage storage, Format type, std::int64_t block_rows, std::int64_t block_columns) {
  const std::int64_t size = bytes_of(type, 1);
  StoredScales stored{block_rows, block_columns, block_rows, block_columns, 0};
  switch (storage.order) {
    case Order::k_major: break;
    case Order::mn_major: stored.rows = block_columns, stored.columns = block_rows; break;
    case Order::tma_aligned: stored.rows = block_columns, stored.columns = rounded_up(block_rows, 16 / size); break;
    case Order::packed:
      require(type == Format::e8m0, "scale_layout", name_of(storage), "another order: only e8m0 scales are packed");
      stored.rows = ceil_div(block_columns, 4), stored.columns = rounded_up(block_rows, 4);
      break;
    default:
      require(type == Format::e8m0 || type == Format::e4m3, "scale_layout", name_of(storage),
              "another order: only scales of one byte are swizzled");
      stored.rows = rounded_up(block_rows, storage.order == Order::swizzled_128x4 ? 128 : 8);
      stored.columns = rounded_up(block_columns, 4);
  }
  const std::int64_t elements = checked_product(stored.rows, stored.columns, "columns", block_columns);
  stored.bytes = checked_product(elements, storage.order == Order::packed ? 4 : size, "columns", block_columns);
  return stored;
}

std::int64_t scale_byte(ScaleStorage storage, Format type, const StoredScales& stored, std::int64_t i, std::int64_t j) {
  const std::int64_t size = bytes_of(type, 1);
  switch (storage.order) {
    case Order::k_major: return (i * stored.columns + j) * size;
    case Order::mn_major:
    case Order::tma_aligned: return (j * stored.columns + i) * size;
    case Order::packed: return (j / 4 * stored.columns + i) * 4 + j % 4;
    case Order::swizzled_128x4:
      // A tile of 128 x 4 is 512 bytes: row i lies at 16 (i mod 32) + 4 (i div 32), its four columns behind one another.
      return (i / 128 * (stored.columns / 4) + j / 4) * 512 + i % 32 * 16 + i % 128 / 32 * 4 + j % 4;
    case Order::swizzled_8x4: return (i / 8 * (stored.columns / 4) + j / 4) * 32 + i % 8 * 4 + j % 4;
  }
  return 0;
}

bool clears_padding(ScaleStorage storage) { return storage.order == Order::packed || is_swizzled(storage.order); }

}  // namespace assay
