#include "conformance/diagnose/other_calls/quantized_matrix.h"

#include "conformance/ops/words.h"
#include "reference/recipes/element_scalar.h"
#include "reference/recipes/swiglu.h"

namespace assay::conformance::diagnosis {

QuantizedMatrix::QuantizedMatrix(const Request& request, const TensorView& x) : view_(x) {
  const QuantizeConfig config = quantize_config_of(request);
  if (config.activation == Activation::off) return;
  const std::int64_t rows = x.shape.at(0), columns = code_columns(config, x);
  made_.type = x.type;
  made_.shape = {rows, columns};
  made_.bytes.resize(static_cast<std::size_t>(rows * columns * bits_of(x.type) / 8));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t gate = r * 2 * columns + c;
      const float value =
          scalar::swiglu(x.type, scalar::load(x.type, x.data, gate), scalar::load(x.type, x.data, gate + columns));
      scalar::store(x.type, made_.bytes.data(), r * columns + c, value);
    }
  }
  view_ = {made_.type, made_.shape, made_.bytes.data(), static_cast<std::int64_t>(made_.bytes.size())};
}

}  // namespace assay::conformance::diagnosis
