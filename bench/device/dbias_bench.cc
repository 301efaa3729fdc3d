// Column sums and amaxes of groups on the device: x is read, and little is written.

#include <cstdint>
#include <string>

#include "bench/device/device_bench.h"
#include "device/dbias/dbias.h"
#include "device/quantize/delayed_scaling.h"

namespace assay::bench {
namespace {

constexpr std::int64_t kRows = 32768, kColumns = 7168;

std::string with_groups(const std::string& name, int groups) {
  return groups == 0 ? name : name + ", " + std::to_string(groups) + " groups";
}

struct Ragged {
  DeviceBuffer x, splits;
  device::Rows rows;

  Ragged(Format type, int groups) : x(normal_values(type, kRows * kColumns)) {
    rows.capacity = kRows;
    if (groups == 0) return;
    splits = on_device(zipf_splits(groups, kRows));
    rows.splits = splits.as<std::int64_t>();
    rows.groups = groups;
  }
};

void sum_columns(benchmark::State& state, Format type, int groups) {
  const Ragged ragged(type, groups);
  device::DbiasCall call;
  call.x_type = type;
  call.x = ragged.x.as();
  call.rows = ragged.rows;
  call.columns = kColumns;
  const DeviceBuffer dbias(std::int64_t{ragged.rows.groups} * kColumns * 4), workspace(device::dbias_workspace_bytes(call));
  call.dbias = dbias.as();
  call.workspace = workspace.as();
  call.workspace_bytes = workspace.bytes();
  const std::string name = std::string("dbias ") + (type == Format::bf16 ? "bf16" : "f32");
  const Subject subject{.kernel = "dbias", .input = type, .groups = groups, .rows = kRows, .columns = kColumns};
  measure(state, {with_groups(name, groups), ragged.x.bytes() + dbias.bytes(), subject.label()},
          [&](int) { device::grouped_dbias(call, stream()); });
}

void find_amax(benchmark::State& state, int groups) {
  const Ragged ragged(Format::bf16, groups);
  const DeviceBuffer amax(std::int64_t{ragged.rows.groups} * 4);
  const Subject subject{.kernel = "amax", .groups = groups, .rows = kRows, .columns = kColumns};
  measure(state, {with_groups("amax bf16", groups), ragged.x.bytes(), subject.label()}, [&](int) {
    device::grouped_amax(Format::bf16, ragged.x.as(), ragged.rows, kColumns, nullptr, amax.as<float>(), nullptr, stream());
  });
}

void register_all() {
  for (const int groups : {0, 8, 64, 256}) {
    add(with_groups("dbias bf16", groups), [groups](benchmark::State& state) { sum_columns(state, Format::bf16, groups); });
    add(with_groups("amax bf16", groups), [groups](benchmark::State& state) { find_amax(state, groups); });
  }
  add("dbias f32", [](benchmark::State& state) { sum_columns(state, Format::f32, 0); });
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::register_all();
  return assay::bench::run_benchmarks(argc, argv);
}
