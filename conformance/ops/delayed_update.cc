// Op `delayed_update` (schema 2).

#include <algorithm>

#include "conformance/ops/op.h"
#include "conformance/ops/words.h"
#include "reference/recipes/delayed_scaling.h"

namespace assay::conformance {
namespace {

struct Parsed {
  DelayedScalingConfig config;
  bool bulk = false;
  std::int64_t length = 0, count = 0;
  const float* reduced = nullptr;
};

Parsed parse(const Request& request) {
  Parsed parsed;
  parsed.config = delayed_scaling_config_of(request);
  parsed.bulk = request.flag("bulk");
  const TensorView& history = request.input("amax_history", Format::f32);
  if (history.shape.size() != 2) throw InvalidArgument("in/amax_history", describe(history), "a matrix [length,count]");
  parsed.length = history.shape[0];
  parsed.count = history.shape[1];
  request.input("scale", Format::f32, parsed.count);
  if (const TensorView* reduced = request.find_input("reduced", Format::f32, parsed.count)) {
    require(parsed.bulk, "in/reduced", "given", "none: only the bulk form (bulk 1) takes it");
    parsed.reduced = floats(reduced);
  }
  request.refuse_unknown();
  return parsed;
}

std::vector<OutputSpec> outputs(const Request& request) {
  const Parsed parsed = parse(request);
  return {{"amax_history", Format::f32, {parsed.length, parsed.count}}, {"scale", Format::f32, {parsed.count}}};
}

void write_outputs(const Request& request, Layer layer) {
  const Parsed parsed = parse(request);
  const auto* old_history = floats(&request.input("amax_history"));
  const auto* old_scale = floats(&request.input("scale"));
  std::vector<float> history(old_history, old_history + parsed.length * parsed.count);
  std::vector<float> scale(old_scale, old_scale + parsed.count);
  const DelayedScalingState state{history.data(), scale.data(), parsed.length, parsed.count};
  if (parsed.bulk) {
    const std::span<const DelayedScalingState> states(&state, 1);
    layer == Layer::fast ? update_delayed_scaling_bulk(parsed.config, states, parsed.reduced)
                         : scalar::update_delayed_scaling_bulk(parsed.config, states, parsed.reduced);
  } else {
    layer == Layer::fast ? update_delayed_scaling(parsed.config, state) : scalar::update_delayed_scaling(parsed.config, state);
  }
  void* new_history = request.output("amax_history", Format::f32, parsed.length * parsed.count);
  void* new_scale = request.output("scale", Format::f32, parsed.count);
  if (new_history != nullptr) std::copy(history.begin(), history.end(), static_cast<float*>(new_history));
  if (new_scale != nullptr) std::copy(scale.begin(), scale.end(), static_cast<float*>(new_scale));
}

}  // namespace

DelayedScalingConfig delayed_scaling_config_of(const Request& request) {
  DelayedScalingConfig config;
  const std::string algorithm = request.text_or("algorithm", "max");
  if (algorithm != "max" && algorithm != "most_recent") {
    throw InvalidArgument("attribute algorithm", "'" + algorithm + "'", "max or most_recent");
  }
  config.algorithm = algorithm == "max" ? AmaxAlgorithm::max : AmaxAlgorithm::most_recent;
  config.output = request.format_or("otype", Format::e4m3);
  const std::int64_t margin = request.integer_or("margin", 0);
  require(margin >= -126 && margin <= 126, "attribute margin", margin, "-126 to 126");
  config.margin = static_cast<int>(margin);
  return config;
}

const Op kDelayedUpdate{"delayed_update", outputs, write_outputs};

}  // namespace assay::conformance
