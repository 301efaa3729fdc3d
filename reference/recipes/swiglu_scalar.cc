#include "reference/approximations/approximations.h"
#include "reference/recipes/element_scalar.h"
#include "reference/recipes/swiglu.h"

namespace assay::scalar {
namespace {

float rounded(Format type, float value) {
  return type == Format::bf16 ? decode_bf16(encode_bf16(value)) : decode_f16(encode_f16(value));
}

}  // namespace

float swiglu(Format type, float gate, float up) {
  const float h = rounded(type, div_full(gate, 1 + ex2_approx(-gate * 0x1.715476p0f)));
  return rounded(type, h * up);
}

std::vector<std::uint16_t> swiglu_rows(const QuantizeProblem& problem) {
  std::int64_t rows = 0;
  for (const std::int64_t each : group_rows(problem)) rows += each;
  std::vector<std::uint16_t> x(static_cast<std::size_t>(rows * problem.columns));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < problem.columns; ++c) {
      const std::int64_t gate = r * 2 * problem.columns + c, up = gate + problem.columns;
      const float value = swiglu(problem.x_type, load(problem.x_type, problem.x, gate), load(problem.x_type, problem.x, up));
      store(problem.x_type, x.data(), r * problem.columns + c, value);
    }
  }
  return x;
}

}  // namespace assay::scalar
