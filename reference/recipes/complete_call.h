#pragma once
// A call as the recipes take it: a direction is either off, or has buffers for both its data and its scales. quantize() also
// takes calls that request only one of the two; the other is then written to memory of this object.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/recipes/quantize.h"

namespace assay {

struct CompleteCall {
  QuantizeProblem problem;
  QuantizeOutput output;

  CompleteCall(const QuantizeProblem& of, const QuantizeShapes& shapes, const QuantizeOutput& requested)
      : problem(of), output(requested) {
    if (is_per_tensor(problem.config.recipe)) {  // the one scale_inv belongs to no direction
      problem.config.rowwise &= requested.rowwise_data != nullptr;
      problem.config.columnwise &= requested.columnwise_data != nullptr;
      return;
    }
    problem.config.rowwise &= requested.rowwise_data != nullptr || requested.rowwise_scale_inv != nullptr ||
                              (shapes.amax.rank != 0 && requested.amax != nullptr);
    problem.config.columnwise &= requested.columnwise_data != nullptr || requested.columnwise_scale_inv != nullptr ||
                                 (shapes.columnwise_amax.rank != 0 && requested.columnwise_amax != nullptr);
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
