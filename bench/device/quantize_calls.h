#pragma once
// A quantization with all its buffers, of one tensor or of ragged groups, for the benchmarks of the recipes.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/block_scales.h"
#include "bench/device/device_bench.h"
#include "device/quantize/quantize.h"

namespace assay::bench {

// Rows of the groups: all in one, or falling as 1/rank and multiples of `unit` (0 groups: one tensor).
inline std::vector<std::int64_t> splits_of(int groups, std::int64_t rows, std::int64_t unit = 1) {
  return groups == 0 ? std::vector<std::int64_t>{rows} : zipf_splits(groups, rows, unit);
}

class QuantizeCalls {
 public:
  // `call`: configuration, columns, and the inputs besides x. `groups`: 0, one tensor. `scale_block`: elements of a scale.
  QuantizeCalls(device::QuantizeCall call, int groups, const std::vector<std::int64_t>& splits, std::int64_t scale_block) {
    const QuantizeConfig& config = call.config;
    const auto parts = static_cast<std::int64_t>(splits.size());
    for (const std::int64_t rows : splits) call.rows.capacity += rows;
    elements_ = call.rows.capacity * call.columns;
    if (groups != 0) {
      splits_ = on_device(splits);
      call.rows.splits = splits_.as<std::int64_t>();
      call.rows.groups = groups;
    }
    const auto scales_of = [&](bool rowwise) {
      return block_scales(scale_block, config.scale_layout == ScaleLayout::swizzled, rowwise, call.columns, splits);
    };
    const bool fp4 = config.recipe == Recipe::nvfp4, finds_amax = fp4 && call.amax == nullptr;
    const std::int64_t data_bytes = bytes_of(config.output, elements_), amax_bytes = fp4 ? 4 * parts : 0;
    const std::int64_t dbias_bytes = config.dbias ? 2 * parts * call.columns : 0;
    bytes_ = (finds_amax ? 4 : 2) * elements_ + dbias_bytes;
    const bool reads_bytes = config.stochastic_rounding && call.draws.assignment == RandomDraws::given;
    for (const bool rowwise : {true, false}) {
      if (!(rowwise ? config.rowwise : config.columnwise)) continue;
      bytes_ += data_bytes + scales_of(rowwise).written + amax_bytes + (reads_bytes ? elements_ : 0);
    }

    // Of a small matrix several, so that none is still in L2 when its turn comes. Codes come first, then what differs in size
    // from case to case, so that the codes of one size lie in the same places in all of them.
    calls_.resize(elements_ >= 200'000'000 ? 1 : 4, call);
    const auto output = [&](std::int64_t size) { return buffers_.emplace_back(size).as(); };
    int copy = 0;
    for (device::QuantizeCall& each : calls_) {
      each.x = shared_x(elements_, copy++).as();
      if (config.rowwise) each.output.rowwise_data = output(data_bytes);
      if (config.columnwise) each.output.columnwise_data = output(data_bytes);
    }
    for (device::QuantizeCall& each : calls_) {
      if (config.rowwise) {
        each.output.rowwise_scale_inv = output(scales_of(true).stored);
        each.output.amax = static_cast<float*>(output(amax_bytes));
      }
      if (config.columnwise) {
        each.output.columnwise_scale_inv = output(scales_of(false).stored);
        each.output.columnwise_amax = static_cast<float*>(output(amax_bytes));
      }
      each.output.dbias = output(dbias_bytes);
    }
    const std::int64_t workspace_bytes = device::quantize_workspace_bytes(call);
    void* const workspace = output(workspace_bytes);
    for (device::QuantizeCall& each : calls_) {
      each.workspace = workspace;
      each.workspace_bytes = workspace_bytes;
    }
  }

  std::int64_t elements() const { return elements_; }
  std::int64_t bytes() const { return bytes_; }  // that a launch must move
  void launch(int i) const { device::quantize(calls_[static_cast<std::size_t>(i) % calls_.size()], stream()); }

  // The body of a benchmark of it.
  Figure measure(benchmark::State& state, const std::string& name, const Subject& subject) const {
    const Figure measured = bench::measure(state, {name, bytes_, subject.label()}, [&](int i) { launch(i); });
    state.counters["bytes_an_element"] = static_cast<double>(bytes_) / static_cast<double>(elements_);
    return measured;
  }

 private:
  std::int64_t elements_ = 0, bytes_ = 0;
  DeviceBuffer splits_;
  std::vector<DeviceBuffer> buffers_;
  std::vector<device::QuantizeCall> calls_;
};

}  // namespace assay::bench
