// MXFP8 on the device: each direction and both in one pass, with compact and with swizzled scales, with and without fused
// dbias, and ragged groups (rows falling as 1/rank, one group in eight empty, no multiple of anything). Random normal bf16,
// e4m3 out.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/block_scales.h"
#include "bench/device/device_bench.h"
#include "device/recipes/quantize.h"

namespace assay::bench {
namespace {

struct Case {
  bool rowwise, columnwise, dbias, swizzled;
  int groups;  // 0: one tensor
  std::int64_t rows, columns;

  std::string name() const {
    std::string text = "mxfp8";
    text += rowwise && columnwise ? " both" : rowwise ? " rowwise" : " columnwise";
    if (dbias) text += " dbias";
    text += swizzled ? " swizzled" : " compact";
    if (groups != 0) text += " " + std::to_string(groups) + " groups";
    return text + " " + std::to_string(rows) + "x" + std::to_string(columns);
  }
  Subject subject() const {
    const std::string options = swizzled ? dbias ? "swizzled+dbias" : "swizzled" : dbias ? "dbias" : "";
    return {"mxfp8", options, rowwise, columnwise, Format::bf16, groups, rows, columns};
  }
};

Scales scales_of(const Case& c, bool rowwise, const std::vector<std::int64_t>& splits) {
  return block_scales(32, c.swizzled, rowwise, c.columns, splits);
}

void quantize_mx(benchmark::State& state, const Case& c) {
  const std::int64_t elements = c.rows * c.columns;
  const std::vector<std::int64_t> splits = c.groups == 0 ? std::vector<std::int64_t>{c.rows} : zipf_splits(c.groups, c.rows);
  const DeviceBuffer device_splits = on_device(splits);

  device::QuantizeCall call;
  call.config.recipe = Recipe::mxfp8;
  call.config.rowwise = c.rowwise;
  call.config.columnwise = c.columnwise;
  call.config.dbias = c.dbias;
  call.config.scale_layout = c.swizzled ? ScaleLayout::swizzled : ScaleLayout::compact;
  call.rows.capacity = c.rows;
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
  const std::int64_t bias_bytes = 2 * static_cast<std::int64_t>(splits.size()) * c.columns;
  std::vector<DeviceBuffer> buffers;
  std::vector<device::QuantizeCall> calls;
  for (int copy = 0; copy < copies; ++copy) {
    const auto output = [&](std::int64_t size) {
      buffers.emplace_back(size);
      return buffers.back().as();
    };
    call.x = shared_x(elements, copy).as();
    if (c.rowwise) {
      call.output.rowwise_data = output(elements);
      call.output.rowwise_scale_inv = output(scales_of(c, true, splits).stored);
    }
    if (c.columnwise) {
      call.output.columnwise_data = output(elements);
      call.output.columnwise_scale_inv = output(scales_of(c, false, splits).stored);
    }
    if (c.dbias) call.output.dbias = output(bias_bytes);
    calls.push_back(call);
  }
  std::int64_t bytes = 2 * elements;
  if (c.rowwise) bytes += elements + scales_of(c, true, splits).written;
  if (c.columnwise) bytes += elements + scales_of(c, false, splits).written;
  if (c.dbias) bytes += bias_bytes;

  measure(state, {c.name(), bytes, c.subject().label()},
          [&](int i) { device::quantize(calls[static_cast<std::size_t>(i % copies)], stream()); });
  state.counters["bytes_an_element"] = static_cast<double>(bytes) / static_cast<double>(elements);
}

void add_all() {
  const auto register_case = [](const Case& c) {
    add(c.name(), [c](benchmark::State& state) { quantize_mx(state, c); });
  };
  constexpr std::pair<bool, bool> kDirections[] = {{true, false}, {false, true}, {true, true}};
  for (const std::int64_t rows : {32768, 8192}) {
    for (const bool swizzled : {false, true}) {
      for (const auto& [rowwise, columnwise] : kDirections) {
        for (const bool dbias : {false, true}) register_case({rowwise, columnwise, dbias, swizzled, 0, rows, 7168});
      }
      for (const int groups : {8, 64, 256}) {
        register_case({true, false, false, swizzled, groups, rows, 7168});
        for (const bool dbias : {false, true}) register_case({true, true, dbias, swizzled, groups, rows, 7168});
      }
    }
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::add_all();
  return assay::bench::run_benchmarks(argc, argv);
}
