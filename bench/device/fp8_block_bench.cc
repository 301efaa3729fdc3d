// FP8 block scaling on the device: 1x128 and 128x128, each direction and both in one pass, with and without fused dbias, and
// ragged groups (rows falling as 1/rank, one group in eight empty; no multiple of anything, or promised multiples of 16); and of x that
// is computed from gate and up, two matrices of its size; and groups of 32 and of 33 rows. Random normal bf16, e4m3 out.
//
// A single case: --benchmark_filter='^1x128 both 32768x7168/'.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/layout/column_layout.h"
#include "device/quantize/quantize.h"

namespace assay::bench {
namespace {

struct Case {
  Recipe recipe;
  bool rowwise, columnwise, dbias;
  int groups;  // 0: one tensor
  std::int64_t rows, columns;
  std::int64_t multiple = 1;  // of the rows of every group, which is promised
  bool swiglu = false;
  std::int64_t each = 0;  // rows of every group but the last; 0: they fall as 1/rank
  std::int64_t column_alignment = 1;

  std::string name() const {
    std::string text = recipe == Recipe::block_1x128 ? "1x128" : "128x128";
    text += rowwise && columnwise ? " both" : rowwise ? " rowwise" : " columnwise";
    if (dbias) text += " dbias";
    if (swiglu) text += " swiglu";
    if (groups != 0) text += std::string(" ") + std::to_string(groups) + " groups";
    if (multiple != 1) text += " of " + std::to_string(multiple) + "s";
    if (each != 0) text += " of " + std::to_string(each) + " rows";
    if (column_alignment != 1) text += " aligned";
    return text + " " + std::to_string(rows) + "x" + std::to_string(columns);
  }
  Subject subject() const {
    const char* const kernel = recipe == Recipe::block_1x128 ? "1x128" : "128x128";
    std::string options = multiple != 1 ? "rows_of_" + std::to_string(multiple) : "";
    const auto add_option = [&](bool given, const std::string& option) {
      if (given) options += options.empty() ? option : "+" + option;
    };
    add_option(dbias, "dbias");
    add_option(swiglu, "swiglu");
    add_option(each != 0, "groups_of_" + std::to_string(each));
    add_option(column_alignment != 1, "columns_of_" + std::to_string(column_alignment));
    return {kernel, options, rowwise, columnwise, Format::bf16, groups, rows, columns};
  }
};

// Scales that are written, and floats that their buffer has, padding included.
struct Scales {
  std::int64_t written = 0, stored = 0;
  void add(std::int64_t rows, std::int64_t columns, std::int64_t padded) {
    written += rows * columns;
    stored += rows * padded;
  }
};
Scales scales_of(const Case& c, bool rowwise, const std::vector<std::int64_t>& splits) {
  Scales scales;
  const std::int64_t column_blocks = ceil_div(c.columns, 128);
  for (const std::int64_t rows : splits) {
    const std::int64_t row_blocks = ceil_div(rows, 128);
    if (c.recipe == Recipe::block_1x128) {
      rowwise ? scales.add(column_blocks, rows, round_up(rows, 4)) : scales.add(row_blocks, c.columns, round_up(c.columns, 4));
    } else {
      rowwise ? scales.add(row_blocks, column_blocks, round_up(column_blocks, 4))
              : scales.add(column_blocks, row_blocks, round_up(row_blocks, 4));
    }
  }
  return scales;
}

std::vector<std::int64_t> splits_of(const Case& c) {
  if (c.groups == 0) return {c.rows};
  if (c.each == 0) return zipf_splits(c.groups, c.rows, c.multiple);
  std::vector<std::int64_t> splits(static_cast<std::size_t>(c.groups), c.each);
  splits.back() = c.rows - (c.groups - 1) * c.each;
  return splits;
}

void quantize_blocks(benchmark::State& state, const Case& c) {
  const std::int64_t elements = c.rows * c.columns;
  const std::vector<std::int64_t> splits = splits_of(c);
  const DeviceBuffer device_splits = on_device(splits);

  device::QuantizeCall call;
  call.config.recipe = c.recipe;
  call.config.rowwise = c.rowwise;
  call.config.columnwise = c.columnwise;
  call.config.dbias = c.dbias;
  call.config.activation = c.swiglu ? Activation::swiglu : Activation::off;
  call.rows.capacity = c.rows;
  call.rows_multiple = c.multiple;
  call.column_alignment = c.column_alignment;
  call.columns = c.columns;
  if (c.groups != 0) {
    call.rows.splits = device_splits.as<std::int64_t>();
    call.rows.groups = c.groups;
  }
  const DeviceBuffer workspace(device::quantize_workspace_bytes(call));
  call.workspace = workspace.as();
  call.workspace_bytes = workspace.bytes();

  // Of a small matrix several, so that none is still in L2 when its turn comes.
  const int copies = elements >= 200'000'000 ? 1 : 4;
  const std::int64_t given = matrices_in_x(call.config.activation) * elements;
  std::int64_t bytes = 2 * given;
  std::vector<DeviceBuffer> buffers;
  std::vector<device::QuantizeCall> calls;
  for (int copy = 0; copy < copies; ++copy) {
    const auto output = [&](std::int64_t size) {
      buffers.emplace_back(size);
      return buffers.back().as();
    };
    call.x = shared_x(given, copy).as();
    if (c.rowwise) {
      call.output.rowwise_data = output(elements);
      call.output.rowwise_scale_inv = output(4 * scales_of(c, true, splits).stored);
    }
    if (c.columnwise) {
      call.output.columnwise_data =
          output(device::column_bytes(c.rows, static_cast<int>(splits.size()), c.columns, c.column_alignment));
      call.output.columnwise_scale_inv = output(4 * scales_of(c, false, splits).stored);
    }
    if (c.dbias) call.output.dbias = output(2 * static_cast<std::int64_t>(splits.size()) * c.columns);
    calls.push_back(call);
  }
  if (c.rowwise) bytes += elements + 4 * scales_of(c, true, splits).written;
  if (c.columnwise) bytes += elements + 4 * scales_of(c, false, splits).written;
  if (c.dbias) bytes += 2 * static_cast<std::int64_t>(splits.size()) * c.columns;

  measure(state, {c.name(), bytes, c.subject().label()},
          [&](int i) { device::quantize(calls[static_cast<std::size_t>(i % copies)], stream()); });
}

void add_all() {
  const auto register_case = [](const Case& c) { add(c.name(), [c](benchmark::State& state) { quantize_blocks(state, c); }); };
  constexpr std::pair<bool, bool> kDirections[] = {{true, false}, {false, true}, {true, true}};
  for (const std::int64_t rows : {32768, 8192}) {
    for (const Recipe recipe : {Recipe::block_1x128, Recipe::block_128x128}) {
      for (const auto& [rowwise, columnwise] : kDirections) {
        for (const bool dbias : {false, true}) register_case({recipe, rowwise, columnwise, dbias, 0, rows, 7168});
      }
      for (const int groups : {8, 64, 256}) {
        register_case({recipe, true, false, false, groups, rows, 7168});
        for (const bool dbias : {false, true}) register_case({recipe, true, true, dbias, groups, rows, 7168});
        for (const bool rowwise : {false, true}) {
          for (const bool dbias : {false, true}) register_case({recipe, rowwise, true, dbias, groups, rows, 7168, 16});
        }
      }
      for (const auto& [rowwise, columnwise] : kDirections) {
        register_case({recipe, rowwise, columnwise, false, 0, rows, 7168, 1, true});
      }
      for (const std::int64_t multiple : {1, 16}) {
        register_case({recipe, true, true, false, 8, rows, 7168, multiple, true});
      }
      register_case({recipe, true, false, false, 8, rows, 7168, 1, true});
      for (const std::int64_t alignment : {1, 16}) {
        for (const std::int64_t each : {32, 33}) {
          register_case(
              {recipe, true, true, false, static_cast<int>(ceil_div(rows, each)), rows, 7168, 1, false, each, alignment});
        }
      }
      for (const int groups : {8, 64, 256}) register_case({recipe, true, true, false, groups, rows, 7168, 1, false, 0, 16});
    }
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::add_all();
  return assay::bench::run_benchmarks(argc, argv);
}
