#pragma once
// The matrix that op quantize makes codes of: x itself, or what its activation makes of gate and up.

#include "conformance/ops/request.h"
#include "reference/types/tensor.h"

namespace assay::conformance::diagnosis {

class QuantizedMatrix {
 public:
  // `x` as the input of this name: of the request, or of another call of the same attributes. Errors: those of an invalid call.
  QuantizedMatrix(const Request& request, const TensorView& x);
  const TensorView& view() const { return view_; }

 private:
  Tensor made_;
  TensorView view_;
};

}  // namespace assay::conformance::diagnosis
