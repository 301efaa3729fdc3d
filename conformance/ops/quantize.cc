// Op `quantize`: fixture schema 1, and the NVFP4 and MXFP8 modes of schema 2.

#include <algorithm>
#include <cstring>
#include <utility>

#include "conformance/ops/op.h"
#include "conformance/ops/quantize_input.h"
#include "conformance/ops/words.h"
#include "reference/recipes/quantize.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

ZeroSign zero_sign_of(const Request& request) {
  const std::string name = request.text_or("zero_sign", "kept");
  if (name == "kept" || name == "free") return ZeroSign::kept;  // free: the comparison allows both
  if (name == "positive") return ZeroSign::positive;
  throw InvalidArgument("attribute zero_sign", "'" + name + "'", "kept, positive or free");
}

FourOverSix four_over_six_of(const Request& request) {
  const std::string name = request.text_or("four_over_six", "off");
  if (name == "off") return FourOverSix::off;
  if (name == "mae") return FourOverSix::mean_absolute_error;
  if (name == "mse") return FourOverSix::mean_squared_error;
  throw InvalidArgument("attribute four_over_six", "'" + name + "'", "off, mae or mse");
}

const std::uint8_t* bytes(const TensorView* tensor) {
  return tensor == nullptr ? nullptr : static_cast<const std::uint8_t*>(tensor->data);
}

struct Parsed {
  std::vector<std::int64_t> splits;
  std::vector<float> amax, columnwise_amax;
  QuantizeProblem problem;
};

// An input f32[G], or f32[1] that holds for every group; null where absent.
const float* one_a_group(const Request& request, const std::string& name, std::int64_t groups, std::vector<float>& held) {
  const TensorView* tensor = request.find_input(name, Format::f32);
  if (tensor == nullptr) return nullptr;
  if (tensor->elements() != 1) request.input(name, Format::f32, groups);
  held.assign(static_cast<std::size_t>(groups), 0.0f);
  for (std::size_t t = 0; t < held.size(); ++t) held[t] = floats(tensor)[tensor->elements() == 1 ? 0 : t];
  return held.data();
}

// NVFP4 codes are packed two a byte along the direction: one with an odd extent has no storage.
void drop_odd_directions(QuantizeProblem& problem) {
  if (problem.config.recipe != Recipe::nvfp4) return;
  problem.config.rowwise &= problem.columns % 2 == 0;
  if (problem.grouped) {
    for (const std::int64_t rows : problem.splits) problem.config.columnwise &= rows % 2 == 0;
  } else {
    problem.config.columnwise &= problem.rows % 2 == 0;
  }
}

// Both directions are on: the requested outputs determine what is computed.
void parse(const Request& request, Parsed& parsed) {
  QuantizeProblem& problem = parsed.problem;
  QuantizeConfig& config = problem.config;
  config = quantize_config_of(request);
  read_x_and_splits(request, problem, parsed.splits);
  problem.columns = code_columns(config, request.input("x"));
  const std::int64_t groups = problem.grouped ? static_cast<std::int64_t>(parsed.splits.size()) : 1;
  const std::int64_t elements = request.input("x").elements();
  if (config.recipe == Recipe::tensor_delayed) problem.scale = floats(&request.input("scale", Format::f32, groups));
  problem.amax = one_a_group(request, "amax", groups, parsed.amax);
  problem.columnwise_amax = one_a_group(request, "columnwise_amax", groups, parsed.columnwise_amax);
  problem.noop = floats(request.find_input("noop", Format::f32, 1));
  problem.rowwise_random = bytes(request.find_input("rowwise_random"));
  problem.columnwise_random = bytes(request.find_input("columnwise_random"));
  for (const char* name : {"rowwise_random", "columnwise_random"}) {
    const TensorView* random = request.find_input(name);
    if (random != nullptr && random->bytes < elements) {
      throw InvalidArgument(std::string("in/") + name, describe(*random), "one byte for each element of x");
    }
  }
  problem.draws = quantize_draws_of(request, groups);
}

// Directions that have random bytes, given or drawn; their data are null where x has no elements.
bool has_random(const Request& request, const QuantizeProblem& problem, const char* given, bool drawn) {
  return problem.draws.assignment == RandomDraws::given ? request.find_input(given) != nullptr : drawn;
}

struct NamedShape {
  const char* name;
  OutputShape QuantizeShapes::*shape;
};
constexpr NamedShape kOutputs[] = {
    {"rowwise_data", &QuantizeShapes::rowwise_data},
    {"columnwise_data", &QuantizeShapes::columnwise_data},
    {"rowwise_scale_inv", &QuantizeShapes::rowwise_scale_inv},
    {"columnwise_scale_inv", &QuantizeShapes::columnwise_scale_inv},
    {"amax", &QuantizeShapes::amax},
    {"columnwise_amax", &QuantizeShapes::columnwise_amax},
    {"scale", &QuantizeShapes::scale},
    {"dbias", &QuantizeShapes::dbias},
};

std::vector<OutputSpec> outputs(const Request& request) {
  Parsed parsed;
  parse(request, parsed);
  if (parsed.problem.config.stochastic_rounding) {
    QuantizeProblem& problem = parsed.problem;
    problem.config.rowwise = has_random(request, problem, "rowwise_random", problem.draws.rowwise);
    problem.config.columnwise = has_random(request, problem, "columnwise_random", problem.draws.columnwise);
  }
  drop_odd_directions(parsed.problem);
  request.refuse_unknown();
  const QuantizeShapes shapes = quantize_outputs(parsed.problem);
  std::vector<OutputSpec> specs;
  for (const auto& [name, member] : kOutputs) {
    const OutputShape& shape = shapes.*member;
    if (shape.rank != 0) specs.push_back({name, shape.type, {shape.shape, shape.shape + shape.rank}});
  }
  if (parsed.problem.config.recipe == Recipe::tensor_delayed) {
    specs.push_back({"scale", Format::f32, {shapes.rowwise_scale_inv.shape[0]}});
  }
  // One scale_inv serves both directions of a per-tensor recipe, and has both names.
  const OutputShape& one = shapes.rowwise_scale_inv;
  if (is_per_tensor(parsed.problem.config.recipe)) specs.push_back({"columnwise_scale_inv", one.type, {one.shape[0]}});
  return specs;
}

void write_outputs(const Request& request, Layer layer) {
  Parsed parsed;
  parse(request, parsed);
  QuantizeConfig& config = parsed.problem.config;
  config.rowwise = request.wants("rowwise_data") || request.wants("rowwise_scale_inv");
  config.columnwise = request.wants("columnwise_data") || request.wants("columnwise_scale_inv");
  if (config.recipe == Recipe::nvfp4) {  // each direction has an amax of its own
    config.rowwise |= request.wants("amax");
    config.columnwise |= request.wants("columnwise_amax");
  }
  request.refuse_unknown();
  // Shapes of both directions, whichever is requested: per-tensor recipes have one scale_inv for the two.
  QuantizeProblem both = parsed.problem;
  both.config.rowwise = both.config.columnwise = true;
  if (config.stochastic_rounding) {
    both.config.rowwise = config.rowwise;
    both.config.columnwise = config.columnwise;
  }
  drop_odd_directions(both);
  const QuantizeShapes shapes = quantize_outputs(both);
  const auto to = [&](const char* name, const OutputShape& shape) { return request.output(name, shape.type, shape.elements()); };
  QuantizeOutput output;
  output.rowwise_data = to("rowwise_data", shapes.rowwise_data);
  output.columnwise_data = to("columnwise_data", shapes.columnwise_data);
  output.rowwise_scale_inv = to("rowwise_scale_inv", shapes.rowwise_scale_inv);
  if (shapes.columnwise_scale_inv.rank != 0)
    output.columnwise_scale_inv = to("columnwise_scale_inv", shapes.columnwise_scale_inv);
  output.amax = static_cast<float*>(to("amax", shapes.amax));
  output.columnwise_amax = static_cast<float*>(to("columnwise_amax", shapes.columnwise_amax));
  if (shapes.scale.rank != 0) output.scale = static_cast<float*>(to("scale", shapes.scale));
  output.dbias = to("dbias", shapes.dbias);
  const bool one_scale = is_per_tensor(config.recipe);
  void* twin = one_scale ? to("columnwise_scale_inv", shapes.rowwise_scale_inv) : nullptr;
  if (twin != nullptr && output.rowwise_scale_inv == nullptr) output.rowwise_scale_inv = std::exchange(twin, nullptr);
  const bool delayed = config.recipe == Recipe::tensor_delayed;  // its scale is an input, and is written unchanged
  float* given_scale =
      delayed ? static_cast<float*>(request.output("scale", Format::f32, shapes.rowwise_scale_inv.elements())) : nullptr;
  const bool skipped = parsed.problem.noop != nullptr && *parsed.problem.noop == 1.0f;
  layer == Layer::fast ? quantize(parsed.problem, output) : scalar::quantize(parsed.problem, output);
  if (given_scale != nullptr && !skipped) std::copy_n(parsed.problem.scale, shapes.rowwise_scale_inv.elements(), given_scale);
  if (twin != nullptr && !skipped)
    std::memcpy(twin, output.rowwise_scale_inv, static_cast<std::size_t>(shapes.rowwise_scale_inv.bytes()));
}

}  // namespace

Activation activation_of(const Request& request) {
  const std::string name = request.text_or("activation", "off");
  const auto activation = activation_named(name);
  if (!activation) throw InvalidArgument("attribute activation", "'" + name + "'", "off or swiglu");
  return *activation;
}

QuantizeConfig quantize_config_of(const Request& request) {
  QuantizeConfig config;
  config.recipe = recipe_of(request);
  config.output = request.format_or("otype", config.recipe == Recipe::nvfp4 ? Format::e2m1 : Format::e4m3);
  config.force_pow_2_scales = request.flag("pow2");
  config.amax_epsilon = static_cast<float>(request.real_or("eps", 0));
  config.scale_layout = scale_layout_of(request);
  config.zero_sign = zero_sign_of(request);
  config.two_dimensional = request.flag("two_dimensional");
  config.hadamard = request.flag("hadamard");
  const std::int64_t mask = request.integer_or("sign_mask", 0);
  require(mask >= 0 && mask <= 0xffff, "attribute sign_mask", mask, "0 to 65535");
  config.hadamard_sign_mask = static_cast<std::uint16_t>(mask);
  config.stochastic_rounding = request.flag("stochastic");
  config.four_over_six = four_over_six_of(request);
  config.nvfp4_e4m3_max = static_cast<float>(request.real_or("e4m3_max", 448));
  config.dbias = request.flag("dbias") || request.wants("dbias");
  config.activation = activation_of(request);
  config.rowwise = config.columnwise = true;
  return config;
}

std::int64_t code_columns(const QuantizeConfig& config, const TensorView& x) {
  if (x.shape.size() != 2) throw InvalidArgument("in/x", describe(x), "a matrix [R,K]");
  const int matrices = matrices_in_x(config.activation);
  require(x.shape[1] % matrices == 0, "in/x", describe(x), "as many columns for gate as for up");
  return x.shape[1] / matrices;
}

QuantizeDraws quantize_draws_of(const Request& request, std::int64_t groups) {
  QuantizeDraws draws;
  const std::string name = request.text_or("draws", "given");
  const auto assignment = random_draws_named(name);
  if (!assignment) throw InvalidArgument("attribute draws", "'" + name + "'", "given, te_vector_blockwise, te_tuned_1d or te_2d");
  draws.assignment = *assignment;
  if (draws.assignment == RandomDraws::given) return draws;
  const std::string direction = request.text_or("direction", "both");
  if (direction != "both" && direction != "rowwise" && direction != "columnwise")
    throw InvalidArgument("attribute direction", "'" + direction + "'", "both, rowwise or columnwise");
  draws.rowwise = direction != "columnwise";
  draws.columnwise = direction != "rowwise";
  draws.state = static_cast<const std::int64_t*>(request.input("rng_state", Format::i64, 2 * groups).data);
  return draws;
}

const Op kQuantize{"quantize", outputs, write_outputs};

}  // namespace assay::conformance
