#include "reference/recipes/complete_call.h"
#include "reference/recipes/dbias.h"
#include "reference/recipes/fp8_block.h"
#include "reference/recipes/mxfp8.h"
#include "reference/recipes/nvfp4.h"
#include "reference/recipes/per_tensor.h"
#include "reference/recipes/quantize.h"

namespace assay::scalar {

void quantize(const QuantizeProblem& problem, const QuantizeOutput& output) {
  const QuantizeShapes shapes = check_quantize(problem, output);
  if (problem.noop != nullptr && *problem.noop == 1.0f) return;
  const CompleteCall call(problem, shapes, output);
  switch (problem.config.recipe) {
    case Recipe::tensor_current:
    case Recipe::tensor_delayed: scalar::quantize_per_tensor(call.problem, call.output); break;
    case Recipe::block_1x128:
    case Recipe::block_128x128: scalar::quantize_fp8_block(call.problem, call.output); break;
    case Recipe::mxfp8: scalar::quantize_mxfp8(call.problem, call.output); break;
    case Recipe::nvfp4: scalar::quantize_nvfp4(call.problem, call.output); break;
  }
  if (shapes.dbias.rank != 0 && output.dbias != nullptr) scalar::quantize_dbias(problem, output.dbias);
}

}  // namespace assay::scalar
