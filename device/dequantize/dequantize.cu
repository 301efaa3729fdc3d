// Values of codes and scales, for every recipe and both directions: the call, its checks, and the choice of the kernel.
//
//   matches   reference/recipes/dequantize.h

#include "device/dequantize/dequantize.h"

#include <cstdint>
#include <string>

#include "device/dequantize/kernels.h"
#include "device/layout/group_table.cuh"
#include "device/support/call_checks.h"
#include "device/support/call_device.h"

namespace assay::device {
namespace {

void check_call(const DequantizeCall& call) {
  const auto refuse = [](bool holds, const char* argument, const std::string& value, const std::string& expected) {
    if (!holds) require(false, argument, value, expected);
  };
  check_recipe(call.recipe);
  const std::string name(name_of(call.recipe));
  const bool nvfp4 = call.recipe == Recipe::nvfp4, small_blocks = nvfp4 || call.recipe == Recipe::mxfp8;
  refuse(call.direction <= Direction::columnwise, "direction", std::to_string(static_cast<std::uint32_t>(call.direction)),
         "rowwise (0) or columnwise (1)");
  check_wide(call.output_type, "output_type");
  if (nvfp4) {
    refuse(call.data_type == Format::e2m1, "data_type", format_name(call.data_type), "e2m1 for nvfp4");
  } else {
    refuse(is_fp8(call.data_type), "data_type", format_name(call.data_type), "e4m3 or e5m2 for " + name);
  }
  refuse(call.scale_layout == ScaleLayout::compact || (call.scale_layout == ScaleLayout::swizzled && small_blocks),
         "scale_layout", std::to_string(static_cast<std::uint32_t>(call.scale_layout)), "compact (0) for " + name);
  refuse(call.nvfp4_e4m3_max == 448 || (nvfp4 && call.nvfp4_e4m3_max == 256), "nvfp4_e4m3_max", shown(call.nvfp4_e4m3_max),
         nvfp4 ? "448 or 256" : "448 for " + name);

  check_matrix(call.rows, call.columns);
  if (nvfp4 && call.direction == Direction::rowwise && call.columns % 2 != 0) {
    require(false, "columns", call.columns, "an even number for rowwise nvfp4");
  }
  if (nvfp4 && call.direction == Direction::columnwise && call.rows.splits == nullptr && call.rows.capacity % 2 != 0) {
    require(false, "rows.capacity", call.rows.capacity, "an even number for columnwise nvfp4");
  }
  check_alignment(call.status, "status", 4);
  if (call.rows.capacity == 0 || call.columns == 0 || call.rows.groups == 0) return;
  require_pointer(call.data, "data");
  require_pointer(call.scale_inv, "scale_inv", small_blocks ? 1 : 4);
  if (nvfp4) require_pointer(call.amax, "amax", 4);
  require_pointer(call.output, "output", static_cast<std::uintptr_t>(wide_bytes(call.output_type)));
}

}  // namespace

void dequantize(const DequantizeCall& call, Stream stream) {
  check_call(call);
  if (max_tiles(call.rows, 1) == 0 || call.columns == 0) return;
  const CallDevice device(stream, {{"data", call.data},
                                   {"scale_inv", call.scale_inv},
                                   {"output", call.output},
                                   {"rows.splits", call.rows.splits},
                                   {"status", call.status}});
  using namespace dequantization;
  const bool transposed = is_transposed(call.recipe, call.direction);
  const int values = call.output_type == Format::f32 ? 4 : 8;  // of 16 bytes
  const int code_bytes = call.recipe == Recipe::nvfp4 ? values / 2 : values;
  if (call.columns % values != 0 || !is_aligned(call.output, 16) || (!transposed && !is_aligned(call.data, code_bytes))) {
    return launch_elements(call, stream);
  }
  transposed ? launch_columns(call, stream) : launch_rows(call, stream);
}

}  // namespace assay::device
