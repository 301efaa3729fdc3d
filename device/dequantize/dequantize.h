#pragma once
// Values of codes and scales on the device: reference/recipes/dequantize.h over device memory.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/support/error.h"
#include "device/support/stream.h"
#include "reference/recipes/dequantize.h"

namespace assay::device {

struct DequantizeCall {
  Recipe recipe = Recipe::tensor_current;
  Format data_type = Format::e4m3;
  Format output_type = Format::f32;
  Direction direction = Direction::rowwise;
  ScaleLayout scale_layout = ScaleLayout::compact;
  Rows rows;
  std::int64_t columns = 0;
  const void* data = nullptr;       // device
  const void* scale_inv = nullptr;  // device
  const float* amax = nullptr;      // device [G]: nvfp4
  float nvfp4_e4m3_max = 448;
  void* output = nullptr;  // device [rows.capacity, columns]
  std::uint32_t* status = nullptr;
};
void dequantize(const DequantizeCall& call, Stream stream);

}  // namespace assay::device
