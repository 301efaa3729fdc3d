#pragma once
// What the recipes are given: a direction is either off, or has both its data and its scales to write. quantize() also
// takes calls that want only one of the two; the other then goes to memory of the call's own.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/recipes/quantize.h"

namespace assay {

struct CompleteCall {
  QuantizeProblem problem;
  QuantizeOutput output;

  CompleteCall(const QuantizeProblem& asked, const QuantizeShapes& shapes, const QuantizeOutput& wanted)
      : problem(asked), output(wanted) {
    const bool per_tensor =
        asked.config.recipe == Recipe::tensor_current || asked.config.recipe == Recipe::tensor_delayed;
    if (per_tensor) {  // the one scale_inv belongs to no direction
      problem.config.rowwise &= wanted.rowwise_data != nullptr;
      problem.config.columnwise &= wanted.columnwise_data != nullptr;
      return;
    }
    problem.config.rowwise &= wanted.rowwise_data != nullptr || wanted.rowwise_scale_inv != nullptr ||
                              (shapes.amax.rank != 0 && wanted.amax != nullptr);
    problem.config.columnwise &= wanted.columnwise_data != nullptr || wanted.columnwise_scale_inv != nullptr ||
                                 (shapes.columnwise_amax.rank != 0 && wanted.columnwise_amax != nullptr);
    if (problem.config.rowwise) {
      complete(output.rowwise_data, shapes.rowwise_data);
      complete(output.rowwise_scale_inv, shapes.rowwise_scale_inv);
    }
    if (problem.config.columnwise) {
      complete(output.columnwise_data, shapes.columnwise_data);
      complete(output.columnwise_scale_inv, shapes.columnwise_scale_inv);
    }
  }

 private:
  void complete(void*& buffer, const OutputShape& shape) {
    if (buffer != nullptr || shape.elements() == 0) return;
    own_.emplace_back(static_cast<std::size_t>(shape.bytes()) / sizeof(float) + 1);  // floats, for their alignment
    buffer = own_.back().data();
  }

  std::vector<std::vector<float>> own_;
};

}  // namespace assay
