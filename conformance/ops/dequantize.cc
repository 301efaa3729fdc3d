// Op `dequantize` (schema 2).

#include "reference/recipes/dequantize.h"
#include "conformance/ops/op.h"
#include "conformance/ops/words.h"

namespace assay::conformance {
namespace {

struct Parsed {
  std::vector<std::int64_t> splits;
  DequantizeProblem problem;
};

void parse(const Request& request, Parsed& parsed) {
  DequantizeProblem& problem = parsed.problem;
  problem.recipe = recipe_of(request);
  problem.data_type = request.format_or("otype", problem.recipe == Recipe::nvfp4 ? Format::e2m1 : Format::e4m3);
  problem.output_type = request.format_or("dtype_d", Format::f32);
  problem.direction = direction_of(request);
  problem.scale_layout = scale_layout_of(request);
  problem.rows = request.integer("R");
  problem.columns = request.integer("K");
  problem.grouped = request.find_input("splits") != nullptr;
  if (problem.grouped) parsed.splits = request.splits();
  problem.splits = parsed.splits;
  problem.nvfp4_e4m3_max = static_cast<float>(request.real_or("e4m3_max", 448));

  // The tensors must be what quantize() would have written for this matrix.
  QuantizeProblem quantized;
  quantized.config.recipe = problem.recipe;
  quantized.config.output = problem.data_type;
  quantized.config.rowwise = problem.direction == Direction::rowwise;
  quantized.config.columnwise = !quantized.config.rowwise;
  quantized.x_type = Format::f32;
  const float one = 1;
  quantized.x = &one;  // only checked for presence
  quantized.scale = &one;
  quantized.rows = problem.rows;
  quantized.columns = problem.columns;
  quantized.grouped = problem.grouped;
  quantized.splits = problem.splits;
  const QuantizeShapes shapes = quantize_outputs(quantized);
  const bool per_tensor = is_per_tensor(problem.recipe);
  const bool rowwise = quantized.config.rowwise;
  const OutputShape& data = rowwise ? shapes.rowwise_data : shapes.columnwise_data;
  const OutputShape& scales = rowwise || per_tensor ? shapes.rowwise_scale_inv : shapes.columnwise_scale_inv;
  const std::string prefix = rowwise ? "rowwise_" : "columnwise_";
  problem.data = request.input(prefix + "data", data.type, data.elements()).data;
  problem.scale_inv =
      request.input(prefix + "scale_inv", scale_format(problem.recipe), scales.rank == 0 ? -1 : scales.elements()).data;
  const auto groups = static_cast<std::int64_t>(problem.grouped ? parsed.splits.size() : 1);
  if (problem.recipe == Recipe::nvfp4) problem.amax = floats(&request.input("amax", Format::f32, groups));
}

std::vector<OutputSpec> outputs(const Request& request) {
  Parsed parsed;
  parse(request, parsed);
  request.refuse_unknown();
  return {{"x", parsed.problem.output_type, {parsed.problem.rows, parsed.problem.columns}}};
}

void write_outputs(const Request& request, Layer layer) {
  Parsed parsed;
  parse(request, parsed);
  request.refuse_unknown();
  void* x = request.output("x", parsed.problem.output_type, parsed.problem.rows * parsed.problem.columns);
  if (x == nullptr) return;
  layer == Layer::fast ? dequantize(parsed.problem, x) : scalar::dequantize(parsed.problem, x);
}

}  // namespace

const Op kDequantize{"dequantize", outputs, write_outputs};

}  // namespace assay::conformance
