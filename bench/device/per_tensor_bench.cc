// FP8 with one scale per group on the device. Delayed scaling reads x once; current scaling reads it twice, and both reads
// count: its bound is the time of those bytes at the rate of the copy.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/quantize/quantize.h"

namespace assay::bench {
namespace {

constexpr std::int64_t kRows = 32768, kColumns = 7168;

struct Case {
  std::string name{};
  Recipe recipe = Recipe::tensor_delayed;
  Format x_type = Format::bf16;
  bool rowwise = true, columnwise = false, amax = false, dbias = false;
  int groups = 0;  // 0: one tensor
  std::int64_t unit = 1;

  Subject subject() const {
    std::string options = amax ? "+amax" : "";
    if (unit != 1) options += "+rows_of_" + std::to_string(unit);
    if (dbias) options += "+dbias";
    const char* const kernel = recipe == Recipe::tensor_current ? "current" : "delayed";
    return {kernel, options.empty() ? "" : options.substr(1), rowwise, columnwise, x_type, groups, kRows, kColumns};
  }
};

struct Buffers {
  DeviceBuffer x, rowwise, columnwise, splits, scale, outputs, dbias, workspace;
  device::QuantizeCall call;

  explicit Buffers(const Case& each) {
    const std::int64_t elements = kRows * kColumns, groups = each.groups == 0 ? 1 : each.groups;
    x = normal_values(each.x_type, elements);
    scale = on_device(std::vector<float>(static_cast<std::size_t>(groups), 64.0f));
    outputs = DeviceBuffer(groups * 12);
    call.config.recipe = each.recipe;
    call.config.rowwise = each.rowwise;
    call.config.columnwise = each.columnwise;
    call.config.dbias = each.dbias;
    call.x_type = each.x_type;
    call.x = x.as();
    call.rows.capacity = kRows;
    call.columns = kColumns;
    if (each.groups != 0) {
      splits = on_device(zipf_splits(each.groups, kRows, each.unit));
      call.rows.splits = splits.as<std::int64_t>();
      call.rows.groups = each.groups;
    }
    call.scale = scale.as<float>();
    if (each.rowwise) rowwise = DeviceBuffer(elements);
    if (each.columnwise) columnwise = DeviceBuffer(elements);
    if (each.dbias) dbias = DeviceBuffer(groups * kColumns * bytes_of(each.x_type, 1));
    call.output.rowwise_data = rowwise.as();
    call.output.columnwise_data = columnwise.as();
    call.output.dbias = dbias.as();
    call.output.rowwise_scale_inv = outputs.as();
    const bool current = each.recipe == Recipe::tensor_current;
    if (each.amax || current) call.output.amax = outputs.as<float>() + groups;
    if (current) call.output.scale = outputs.as<float>() + 2 * groups;
    workspace = DeviceBuffer(device::quantize_workspace_bytes(call));
    call.workspace = workspace.as();
    call.workspace_bytes = workspace.bytes();
  }
};

void quantize_case(benchmark::State& state, const Case& each) {
  const Buffers buffers(each);
  const std::int64_t read = bytes_of(each.x_type, 1) * (each.recipe == Recipe::tensor_current ? 2 : 1);
  const std::int64_t bytes = kRows * kColumns * (read + each.rowwise + each.columnwise);
  measure(state, {each.name, bytes, each.subject().label()}, [&](int) { device::quantize(buffers.call, stream()); });
}

void register_all() {
  const auto add_case = [](Case each) {
    const std::string recipe = each.recipe == Recipe::tensor_current ? "current" : "delayed";
    const std::string type = each.x_type == Format::bf16 ? "bf16" : each.x_type == Format::f16 ? "f16" : "f32";
    each.name = recipe + " " + type + (each.rowwise && each.columnwise ? " both" : each.rowwise ? " rowwise" : " columnwise");
    if (each.amax) each.name += " amax";
    if (each.dbias) each.name += " dbias";
    if (each.groups != 0) each.name += ", " + std::to_string(each.groups) + " groups";
    if (each.unit != 1) each.name += " of " + std::to_string(each.unit);
    add(each.name, [each](benchmark::State& state) { quantize_case(state, each); });
  };
  for (const Recipe recipe : {Recipe::tensor_delayed, Recipe::tensor_current}) {
    for (const bool columnwise : {false, true}) {
      add_case({.recipe = recipe, .columnwise = columnwise});
      for (const int groups : {8, 64, 256}) add_case({.recipe = recipe, .columnwise = columnwise, .groups = groups});
    }
    add_case({.recipe = recipe, .columnwise = true, .groups = 64, .unit = 16});
    add_case({.recipe = recipe, .columnwise = true, .dbias = true});
    add_case({.recipe = recipe, .columnwise = true, .dbias = true, .groups = 64});
  }
  add_case({.rowwise = false, .columnwise = true});
  add_case({.dbias = true});
  add_case({.amax = true});
  add_case({.columnwise = true, .amax = true});
  for (const Format type : {Format::f16, Format::f32}) {
    for (const bool columnwise : {false, true}) add_case({.x_type = type, .columnwise = columnwise});
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::register_all();
  return assay::bench::run_benchmarks(argc, argv);
}
