#include "conformance/backends/device/device_call.h"

#include <string>
#include <string_view>
#include <vector>

#include "conformance/backends/device/call_parts.h"
#include "conformance/backends/device/quantize_call.h"
#include "conformance/backends/device/rule_call.h"
#include "conformance/backends/device/token_call.h"
#include "conformance/ops/words.h"
#include "device/dbias/dbias.h"
#include "device/dequantize/dequantize.h"
#include "device/layout/offsets.h"
#include "device/layout/swizzle.h"
#include "device/quantize/delayed_scaling.h"

namespace assay::conformance {
namespace {

DeviceCall dequantize_call(const Request& request) {
  Parts parts;
  device::DequantizeCall call;
  call.recipe = recipe_of(request);
  call.data_type = request.format_or("otype", call.recipe == Recipe::nvfp4 ? Format::e2m1 : Format::e4m3);
  call.output_type = request.format_or("dtype_d", Format::f32);
  call.direction = direction_of(request);
  call.scale_layout = scale_layout_of(request);
  call.columns = request.integer("K");
  call.nvfp4_e4m3_max = static_cast<float>(request.real_or("e4m3_max", 448));
  const Splits splits(request);
  const std::int64_t rows = request.integer("R");
  require(rows >= 0, "attribute R", rows, "0 or more");
  require(call.columns >= 0, "attribute K", call.columns, "0 or more");
  std::int64_t elements = 0;
  require(!__builtin_mul_overflow(rows, call.columns, &elements), "attribute R", rows, "R * K within int64");
  call.rows = splits.rows(rows);
  const std::string prefix = call.direction == Direction::rowwise ? "rowwise_" : "columnwise_";
  call.data = request.input(prefix + "data", call.data_type, code_bytes(call.recipe, elements)).data;
  const TensorView scale_inv =
      request.input(prefix + "scale_inv", scale_format(call.recipe), is_per_tensor(call.recipe) ? splits.groups() : -1);
  if (call.recipe == Recipe::nvfp4) call.amax = floats(&request.input("amax", Format::f32, splits.groups()));
  request.refuse_unknown();
  refuse_other_outputs(request, {"x"});
  call.output = request.output("x", call.output_type, elements);
  return {parts.bytes(), [=](device::Stream stream, void*, std::uint32_t* status) {
            if (call.output == nullptr || elements == 0) {
              splits.check(rows, status, stream);
              if (elements > 0) return;  // not requested
            }
            device::DequantizeCall ready = call;
            splits.bind(ready.rows, status);
            ready.scale_inv = splits.address(scale_inv, status);
            ready.status = status;
            device::dequantize(ready, stream);
          }};
}

DeviceCall swizzle_call(const Request& request) {
  Parts parts;
  const bool to_swizzled = request.op() == "swizzle";
  const Recipe recipe = recipe_of(request);
  const Direction direction = direction_of(request);
  const std::int64_t columns = request.integer("K");
  if (recipe != Recipe::mxfp8 && recipe != Recipe::nvfp4) {
    throw InvalidArgument("attribute recipe", name_of(recipe), "mxfp8 or nvfp4: only their scales are swizzled");
  }
  const Splits splits(request);
  const TensorView input = request.input(to_swizzled ? "compact" : "swizzled", scale_format(recipe));
  const std::string name = to_swizzled ? "swizzled" : "compact";
  const std::int64_t capacity = request.integer("R");
  require(capacity >= 0, "attribute R", capacity, "0 or more");
  require(columns >= 0, "attribute K", columns, "0 or more");
  request.refuse_unknown();
  refuse_other_outputs(request, {name});
  void* output = request.output(name, scale_format(recipe), input.elements());
  return {parts.bytes(), [=](device::Stream stream, void*, std::uint32_t* status) {
            if (output == nullptr) return splits.check(capacity, status, stream);
            device::Rows rows = splits.rows(capacity);
            splits.bind(rows, status);
            const auto* from = static_cast<const std::uint8_t*>(splits.address(input, status));
            auto* to = static_cast<std::uint8_t*>(output);
            to_swizzled ? device::swizzle_scales(recipe, direction, rows, columns, from, to, status, stream)
                        : device::unswizzle_scales(recipe, direction, rows, columns, from, to, status, stream);
          }};
}

// "splits" and the like: i64 or i32, of a length that an int holds.
const TensorView& integers(const Request& request, const char* name) {
  const TensorView& tensor = request.input(name);
  if (tensor.type != Format::i64 && tensor.type != Format::i32)
    throw InvalidArgument(std::string("in/") + name, describe(tensor), "type i64 or i32");
  require(tensor.elements() <= 0x7fff'ffff, std::string("in/") + name, describe(tensor), "at most 2^31 - 1 elements");
  return tensor;
}

DeviceCall offsets_multi_call(const Request& request) {
  const bool single = request.op() == "splits_to_offsets";
  std::vector<OffsetsOutput> all;
  if (single) {
    const std::int64_t stride = request.integer_or("stride", 1);
    require(stride >= 1, "attribute stride", stride, "1 or more");
    all.push_back({stride, true, false, nullptr});
  } else {
    all = offsets_outputs_of(request);
  }
  const TensorView& splits = integers(request, "splits");
  const auto groups = static_cast<int>(splits.elements());
  request.refuse_unknown();
  std::vector<std::string> names;
  std::vector<device::OffsetsOutput> wanted;
  for (const OffsetsOutput& each : all) {
    const std::string& name = names.emplace_back(single ? "offsets" : "offsets_" + std::to_string(names.size()));
    const std::int64_t count = std::int64_t{groups} + (each.leading_zero ? 1 : 0);
    void* values = request.output(name, each.is_int32 ? Format::i32 : Format::i64, count);
    if (values != nullptr) wanted.push_back({each.stride, each.leading_zero, each.is_int32, values});
  }
  refuse_other_outputs(request, names);
  if (wanted.size() > device::kMaxOffsetsOutputs) {
    throw NotSupported(std::to_string(wanted.size()) + " outputs in one pass: at most " +
                       std::to_string(device::kMaxOffsetsOutputs));
  }
  Parts parts;
  const bool none = wanted.empty() && !all.empty();  // the first goes to the workspace, so that the splits are checked
  if (none) {
    wanted.push_back({all[0].stride, all[0].leading_zero, all[0].is_int32, nullptr});
    parts.add((std::int64_t{groups} + 1) * 8);
  }
  return {parts.bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
            std::vector<device::OffsetsOutput> ready = wanted;
            if (none) ready[0].values = workspace;
            if (single && splits.type == Format::i64) {
              device::splits_to_offsets(static_cast<const std::int64_t*>(splits.data), groups, ready[0].stride,
                                        static_cast<std::int64_t*>(ready[0].values), status, stream);
            } else {
              device::splits_to_offsets_multi(splits.data, splits.type == Format::i32, groups, ready, status, stream);
            }
          }};
}

DeviceCall offsets_2d_call(const Request& request) {
  const TensorView first = integers(request, "first");
  const TensorView last = request.input("last", first.type, first.elements());
  request.refuse_unknown();
  refuse_other_outputs(request, {"offsets"});
  void* offsets = request.output("offsets", first.type, first.elements() + 1);
  Parts parts;
  if (offsets == nullptr) parts.add((first.elements() + 1) * 8);  // not requested: the factors are checked all the same
  return {parts.bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
            device::splits_to_offsets_2d(first.data, last.data, first.type == Format::i32, static_cast<int>(first.elements()),
                                         offsets != nullptr ? offsets : workspace, status, stream);
          }};
}

DeviceCall delayed_update_call(const Request& request) {
  Parts parts;
  device::DelayedUpdateCall call;
  call.config = delayed_scaling_config_of(request);
  call.bulk = request.flag("bulk");
  const TensorView& history = request.input("amax_history", Format::f32);
  if (history.shape.size() != 2) throw InvalidArgument("in/amax_history", describe(history), "a matrix [length,count]");
  call.length = history.shape[0];
  call.count = history.shape[1];
  call.history = floats(&history);
  call.scale = floats(&request.input("scale", Format::f32, call.count));
  if (const TensorView* reduced = request.find_input("reduced", Format::f32, call.count)) {
    require(call.bulk, "in/reduced", "given", "none: only the bulk form (bulk 1) takes it");
    call.reduced = floats(reduced);
  }
  request.refuse_unknown();
  refuse_other_outputs(request, {"amax_history", "scale"});
  call.new_history = static_cast<float*>(request.output("amax_history", Format::f32, history.elements()));
  call.new_scale = static_cast<float*>(request.output("scale", Format::f32, call.count));
  // An output that was not requested goes to the workspace.
  const bool keep_history = call.new_history != nullptr, keep_scale = call.new_scale != nullptr;
  const std::int64_t spare_history = keep_history ? 0 : parts.add(history.elements() * 4);
  const std::int64_t spare_scale = keep_scale ? 0 : parts.add(call.count * 4);
  return {parts.bytes(), [=](device::Stream stream, void* workspace, std::uint32_t*) {
            device::DelayedUpdateCall ready = call;
            if (!keep_history) ready.new_history = part<float>(workspace, spare_history);
            if (!keep_scale) ready.new_scale = part<float>(workspace, spare_scale);
            device::update_delayed_scaling(ready, stream);
          }};
}

DeviceCall grouped_dbias_call(const Request& request) {
  Parts parts;
  device::DbiasCall call;
  const TensorView& dy = request.input("dy");
  if (dy.shape.size() != 2) throw InvalidArgument("in/dy", describe(dy), "a matrix [R,K]");
  request.input("splits");
  const Splits splits(request);
  call.x_type = dy.type;
  call.x = dy.data;
  call.columns = dy.shape[1];
  call.rows = splits.rows(dy.shape[0]);
  call.output_type = Format::f32;
  const std::int64_t elements = splits.groups() * call.columns;
  if (request.flag("accumulate")) call.added_to = floats(&request.input("dbias", Format::f32, elements));
  request.refuse_unknown();
  refuse_other_outputs(request, {"dbias"});
  call.dbias = request.output("dbias", Format::f32, elements);
  call.workspace_bytes = device::dbias_workspace_bytes(call);
  const std::int64_t own = parts.add(call.workspace_bytes);
  return {parts.bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
            if (call.dbias == nullptr || elements == 0) return splits.check(call.rows.capacity, status, stream);
            device::DbiasCall ready = call;
            splits.bind(ready.rows, status);
            ready.workspace = ready.workspace_bytes == 0 ? nullptr : part<void>(workspace, own);
            ready.status = status;
            device::grouped_dbias(ready, stream);
          }};
}

constexpr struct {
  std::string_view op;
  DeviceCall (*make)(const Request&);
} kCalls[] = {
    {"quantize_by_rule", rule_call},
    {"dequantize", dequantize_call},
    {"swizzle", swizzle_call},
    {"unswizzle", swizzle_call},
    {"splits_to_offsets", offsets_multi_call},
    {"splits_to_offsets_multi", offsets_multi_call},
    {"splits_to_offsets_2d", offsets_2d_call},
    {"delayed_update", delayed_update_call},
    {"grouped_dbias", grouped_dbias_call},
    {"permute", permute_call},
    {"unpermute", unpermute_call},
};

}  // namespace

DeviceCall device_call(const Request& request, std::int64_t rows_multiple) {
  if (request.op() == "quantize") return quantize_call(request, rows_multiple);
  for (const auto& [op, make] : kCalls) {
    if (op == request.op()) return make(request);
  }
  throw NotSupported("op '" + request.op() + "' is unknown to the device backend");
}

}  // namespace assay::conformance
