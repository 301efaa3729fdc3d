// Quantization beside the vendor's: 1x128 and 128x128, rowwise and in both directions, of one tensor and of 8 groups of the same
// rows, 32768 x 7168, random normal bf16, e4m3 out. The vendor is TransformerEngine (transformer_engine.h), by its fastest
// route; every code of it is compared with that of this library first.
//
// Both are launched in turn, with the order reversed from pair to pair; `of_vendor` is the median of the vendor's time
// over that of this library in the same pair.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "bench/device/transformer_engine.h"
#include "device/quantize/quantize.h"

namespace assay::bench {
namespace {

struct Case {
  Recipe recipe;
  bool columnwise;  // besides rowwise
  int groups;       // 0: one tensor
  std::int64_t rows = 32768, columns = 7168;

  std::string kernel() const { return recipe == Recipe::block_1x128 ? "1x128" : "128x128"; }
  std::string name() const {
    return kernel() + (columnwise ? " both " : " rowwise ") + (groups == 0 ? "" : std::to_string(groups) + " groups ") +
           std::to_string(rows) + "x" + std::to_string(columns);
  }
  std::string label(const std::string& vendor) const {
    return "beside=" + kernel() + " direction=" + (columnwise ? "both" : "rowwise") +
           " input=bf16 groups=" + std::to_string(groups) + " rows=" + std::to_string(rows) +
           " columns=" + std::to_string(columns) + " vendor=" + vendor;
  }
};

void quantize_beside(benchmark::State& state, const Case& c) {
  const std::int64_t elements = c.rows * c.columns;
  const std::vector<std::int64_t> splits(static_cast<std::size_t>(std::max(c.groups, 1)), c.rows / std::max(c.groups, 1));
  const DeviceBuffer device_splits = on_device(splits);
  device::QuantizeCall call;
  call.config.recipe = c.recipe;
  call.config.columnwise = c.columnwise;
  call.x = shared_x(elements, 0).as();
  call.rows.capacity = c.rows;
  if (c.groups != 0) {
    call.rows.splits = device_splits.as<std::int64_t>();
    call.rows.groups = c.groups;
    call.rows_multiple = 128;  // as the vendor requires
  }
  call.columns = c.columns;
  const DeviceBuffer workspace(device::quantize_workspace_bytes(call));
  call.workspace = workspace.as();
  call.workspace_bytes = workspace.bytes();
  const QuantizedBuffers buffers(call, splits);
  call.output = buffers.output();
  const std::int64_t bytes = 2 * elements + buffers.rowwise_data.bytes() + buffers.rowwise_scale_inv.bytes() +
                             buffers.columnwise_data.bytes() + buffers.columnwise_scale_inv.bytes();

  std::unique_ptr<VendorQuantization> vendor;
  std::string vendor_label = "absent";
  try {
    if (const TransformerEngine* library = TransformerEngine::get(); library != nullptr) {
      const VendorRoute route = choose_route(*library, call, splits).route;
      vendor = std::make_unique<VendorQuantization>(*library, call, splits, route);
      vendor_label = name_of(route);
    }
  } catch (const std::exception& error) {
    vendor_label = "failed";
    std::fprintf(stderr, "%s: vendor: not measured, %s\n", c.name().c_str(), error.what());
  }

  constexpr int kInARow = 10;
  const auto ours = [&] { return seconds_per_launch(kInARow, [&](int) { device::quantize(call, stream()); }); };
  const auto theirs = [&] { return vendor ? seconds_per_launch(kInARow, [&](int) { vendor->launch(stream()); }) : 0; };
  const double before = copy_rate_now();
  ours(), theirs();
  std::vector<double> of_ours, of_theirs, ratios;
  bool ours_first = true;
  for (auto _ : state) {
    double a = 0;
    if (ours_first) a = ours();
    const double b = theirs();
    if (!ours_first) a = ours();
    ours_first = !ours_first;
    of_ours.push_back(a);
    of_theirs.push_back(b);
    ratios.push_back(b / a);
    state.SetIterationTime(a);
  }
  check(cudaGetLastError(), c.name().c_str());
  const double copy = (before + copy_rate_now()) / 2;
  report(state, {.name = c.name(), .bytes = bytes, .label = c.label(vendor_label), .copy_rate = copy}, of_ours);
  if (!vendor) return;
  const Figure theirs_alone{c.name() + ", vendor " + vendor_label, bytes, "", median(of_theirs), copy};
  state.counters["vendor_us"] = theirs_alone.seconds * 1e6;
  state.counters["vendor_of_copy"] = theirs_alone.of_copy();
  state.counters["of_vendor"] = median(ratios);
  record(theirs_alone);
}

void add_all() {
  for (const Recipe recipe : {Recipe::block_1x128, Recipe::block_128x128}) {
    for (const bool columnwise : {false, true}) {
      for (const int groups : {0, 8}) {
        const Case c{recipe, columnwise, groups};
        add(
            c.name(), [c](benchmark::State& state) { quantize_beside(state, c); }, 21);
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
