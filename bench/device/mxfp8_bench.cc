// MXFP8 on the device: each direction and both in one pass, with compact and with swizzled scales, with and without fused
// dbias, and ragged groups (rows falling as 1/rank, one group in eight empty, no multiple of anything). Random normal bf16,
// e4m3 out.

#include <cstdint>
#include <string>
#include <utility>

#include "bench/device/device_bench.h"
#include "bench/device/quantize_calls.h"

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
    if (groups != 0) text += std::string(" ") + std::to_string(groups) + " groups";
    return text + " " + std::to_string(rows) + "x" + std::to_string(columns);
  }
  Subject subject() const {
    const std::string options = swizzled ? dbias ? "swizzled+dbias" : "swizzled" : dbias ? "dbias" : "";
    return {"mxfp8", options, rowwise, columnwise, Format::bf16, groups, rows, columns};
  }
};

void quantize_mx(benchmark::State& state, const Case& c) {
  device::QuantizeCall call;
  call.config.recipe = Recipe::mxfp8;
  call.config.rowwise = c.rowwise;
  call.config.columnwise = c.columnwise;
  call.config.dbias = c.dbias;
  call.config.scale_layout = c.swizzled ? ScaleLayout::swizzled : ScaleLayout::compact;
  call.columns = c.columns;
  QuantizeCalls(call, c.groups, splits_of(c.groups, c.rows), 32).measure(state, c.name(), c.subject());
}

void add_all() {
  const auto register_case = [](const Case& c) { add(c.name(), [c](benchmark::State& state) { quantize_mx(state, c); }); };
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
