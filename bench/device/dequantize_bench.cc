// Values of codes and scales on the device: every recipe, both directions, of what quantize() made of random normal bf16.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/dequantize/dequantize.h"
#include "device/quantize/quantize.h"
#include "reference/layout/scale_shape.h"

namespace assay::bench {
namespace {

constexpr std::int64_t kRows = 32768, kColumns = 7168;

struct Case {
  Recipe recipe;
  Direction direction;
  Format output = Format::bf16;
  int groups = 0;  // 0: one tensor
  ScaleLayout scale_layout = ScaleLayout::compact;

  bool rowwise() const { return direction == Direction::rowwise; }
  std::string recipe_name() const {
    constexpr const char* kNames[] = {"tensor", "tensor", "1x128", "128x128", "mxfp8", "nvfp4"};
    return kNames[static_cast<int>(recipe)] + std::string(scale_layout == ScaleLayout::swizzled ? " swizzled" : "");
  }
  std::string name() const {
    std::string text = "dequantize " + recipe_name() + (rowwise() ? " rowwise" : " columnwise");
    text += output == Format::bf16 ? " to bf16" : output == Format::f16 ? " to f16" : " to f32";
    return groups == 0 ? text : text + ", " + std::to_string(groups) + " groups";
  }
  Subject subject() const {  // `input` is what the values become
    Subject subject{.kernel = "dequantize", .options = recipe_name(), .rowwise = rowwise(), .columnwise = !rowwise()};
    for (char& letter : subject.options) letter = letter == ' ' ? '+' : letter;
    subject.input = output;
    subject.groups = groups;
    subject.rows = kRows;
    subject.columns = kColumns;
    return subject;
  }
};

void dequantize_case(benchmark::State& state, const Case& each) {
  const bool fp4 = each.recipe == Recipe::nvfp4, per_tensor = each.recipe == Recipe::tensor_current;
  std::vector<std::int64_t> splits{kRows};
  if (each.groups != 0) splits = zipf_splits(each.groups, kRows, fp4 ? 2 : 1);  // NVFP4 down the rows: two codes per byte
  const auto groups = static_cast<std::int64_t>(splits.size());
  const std::int64_t code_bytes = bytes_of(fp4 ? Format::e2m1 : Format::e4m3, kRows * kColumns);
  std::int64_t scale_bytes = groups * 4;
  if (!per_tensor) {
    scale_bytes = bytes_of(scale_format(each.recipe), scale_offsets(each.recipe, each.direction, splits, kColumns).back());
  }

  const DeviceBuffer x = normal_values(Format::bf16, kRows * kColumns), device_splits = on_device(splits);
  const DeviceBuffer data(code_bytes), scales(scale_bytes), amax(groups * 4);
  device::QuantizeCall made;
  made.config.recipe = each.recipe;
  made.config.output = fp4 ? Format::e2m1 : Format::e4m3;
  made.config.rowwise = each.rowwise();
  made.config.columnwise = !each.rowwise();
  made.config.scale_layout = each.scale_layout;
  made.x = x.as();
  made.rows.capacity = kRows;
  if (each.groups != 0) {
    made.rows.splits = device_splits.as<std::int64_t>();
    made.rows.groups = each.groups;
  }
  made.columns = kColumns;
  (each.rowwise() ? made.output.rowwise_data : made.output.columnwise_data) = data.as();
  (each.rowwise() || per_tensor ? made.output.rowwise_scale_inv : made.output.columnwise_scale_inv) = scales.as();
  if (fp4) (each.rowwise() ? made.output.amax : made.output.columnwise_amax) = amax.as<float>();
  const DeviceBuffer workspace(device::quantize_workspace_bytes(made));
  made.workspace = workspace.as();
  made.workspace_bytes = workspace.bytes();
  device::quantize(made, stream());

  const DeviceBuffer output(bytes_of(each.output, kRows * kColumns));
  device::DequantizeCall call;
  call.recipe = each.recipe;
  call.data_type = made.config.output;
  call.output_type = each.output;
  call.direction = each.direction;
  call.scale_layout = each.scale_layout;
  call.rows = made.rows;
  call.columns = kColumns;
  call.data = data.as();
  call.scale_inv = scales.as();
  call.amax = amax.as<float>();
  call.output = output.as();
  measure(state, {each.name(), code_bytes + scale_bytes + output.bytes(), each.subject().label()},
          [&](int) { device::dequantize(call, stream()); });
}

void register_all() {
  const auto add_case = [](const Case& each) {
    add(each.name(), [each](benchmark::State& state) { dequantize_case(state, each); });
  };
  for (const Recipe recipe : {Recipe::tensor_current, Recipe::block_1x128, Recipe::block_128x128, Recipe::mxfp8, Recipe::nvfp4}) {
    for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
      for (const Format output : {Format::bf16, Format::f32}) add_case({recipe, direction, output});
      for (const int groups : {8, 64, 256}) add_case({recipe, direction, Format::bf16, groups});
      if (recipe == Recipe::mxfp8 || recipe == Recipe::nvfp4) {
        add_case({recipe, direction, Format::bf16, 0, ScaleLayout::swizzled});
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
