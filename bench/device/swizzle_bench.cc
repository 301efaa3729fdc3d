// Block scales between compact and 128x4 order on the device: those of a matrix so large that its scales do not fit in L2.
// Counted are the scales in use and the whole swizzled matrix, whose padding is written.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/layout/swizzle.h"
#include "reference/layout/scale_shape.h"

namespace assay::bench {
namespace {

constexpr std::int64_t kRows = std::int64_t{1} << 20, kColumns = 7168;

struct Case {
  bool to_swizzled;
  Recipe recipe;
  Direction direction;
  int groups;  // 0: one tensor

  Subject subject() const {
    const bool rowwise = direction == Direction::rowwise;
    return {to_swizzled ? "swizzle" : "unswizzle",
            recipe == Recipe::mxfp8 ? "mxfp8" : "nvfp4",
            rowwise,
            !rowwise,
            scale_format(recipe),
            groups,
            kRows,
            kColumns};
  }
  std::string name() const {
    const Subject s = subject();
    const std::string text = s.kernel + " " + s.options + (s.rowwise ? " rowwise" : " columnwise");
    return groups == 0 ? text : text + " " + std::to_string(groups) + " groups";
  }
};

void move_scales(benchmark::State& state, const Case& c) {
  const std::vector<std::int64_t> splits = c.groups == 0 ? std::vector<std::int64_t>{kRows} : zipf_splits(c.groups, kRows);
  std::int64_t stored = 0, used = 0;
  for (const std::int64_t rows : splits) {
    const ScaleShape shape = scale_shape(c.recipe, c.direction, rows, kColumns);
    stored += shape.elements();
    used += shape.used_rows * shape.used_columns;
  }
  const DeviceBuffer device_splits = on_device(splits), from = normal_values(Format::bf16, (stored + 1) / 2), to(stored);
  device::Rows rows;
  rows.capacity = kRows;
  if (c.groups != 0) {
    rows.splits = device_splits.as<std::int64_t>();
    rows.groups = c.groups;
  }
  const auto move = c.to_swizzled ? device::swizzle_scales : device::unswizzle_scales;
  measure(state, {c.name(), stored + used, c.subject().label()}, [&](int) {
    move(c.recipe, c.direction, rows, kColumns, from.as<std::uint8_t>(), to.as<std::uint8_t>(), nullptr, stream());
  });
}

void register_all() {
  for (const Recipe recipe : {Recipe::mxfp8, Recipe::nvfp4}) {
    for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
      for (const bool to_swizzled : {true, false}) {
        for (const int groups : {0, 8, 64, 256}) {
          const Case c{to_swizzled, recipe, direction, groups};
          add(c.name(), [c](benchmark::State& state) { move_scales(state, c); });
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::register_all();
  return assay::bench::run_benchmarks(argc, argv);
}
