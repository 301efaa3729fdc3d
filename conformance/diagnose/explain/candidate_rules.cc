// Quantization by other rules and presets, and outputs changed word by word.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <exception>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/diagnose/other_calls/nvfp4_rules.h"
#include "conformance/diagnose/other_calls/quantize_rules.h"
#include "conformance/ops/words.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/rules/scale_rule.h"

namespace assay::conformance::explaining {
namespace {

// Every output of op quantize by rules that `make` follows.
template <class Make>
Candidate by_rules(const Failure& failure, const std::string& text, int cost, Make make) {
  Candidate candidate{text, cost};
  candidate.all = [&failure, make](Outputs& outputs) {
    bool made = false;
    for (const FailedOutput& output : failure.outputs()) {
      const Suspect suspect{failure.request(), output.name, output.got, output.want, {}, {}};
      std::optional<Tensor> tensor = make(suspect);
      if (tensor) outputs[output.name].bytes = std::move(tensor->bytes), made = true;
    }
    return made;
  };
  return candidate;
}

void propose_quantize_rules(const Failure& failure, const Propose& propose) {
  if (is_skipped(failure.request())) return;  // it writes nothing by any rule
  const QuantizeConfig config = quantize_config_of(failure.request());
  const diagnosis::QuantizeCall call{config.recipe, config.output, failure.request().input("x").type, config.force_pow_2_scales,
                                     config.amax_epsilon};
  if (config.recipe == Recipe::nvfp4) {
    for (const diagnosis::NamedNvfp4Rules& named : diagnosis::nvfp4_rules()) {
      if (!named.applies(config)) continue;
      propose(by_rules(failure, named.text, 11,
                       [&named](const Suspect& suspect) { return diagnosis::quantized_nvfp4_by(named.rules, suspect); }));
    }
    return;
  }
  for (const diagnosis::NamedRules& named : diagnosis::quantize_rules()) {
    if (!named.applies(call)) continue;
    Candidate candidate{named.text, 11};
    candidate.all = [&failure, &named](Outputs& outputs) { return write_by_rules(failure, named.rules, outputs); };
    candidate.rules = &named;
    propose(std::move(candidate));
  }
}

// Rules of other libraries whose outputs have the same shapes.
void propose_presets(const Failure& failure, const Propose& propose) {
  for (const ScaleRule& rule : scale_rules()) {
    Candidate candidate{fmt::format("with the rule of preset {}", rule.name), 13};
    candidate.all = [&failure, &rule](Outputs& outputs) {
      Request request = failure.request();
      request.attributes.erase("rule");
      request.attributes["preset"] = std::string(rule.name);
      for (auto& [name, tensor] : failure.answered(request)) outputs[name].bytes = std::move(tensor.bytes);
      return true;
    };
    propose(std::move(candidate));
  }
}

std::uint64_t of_float(Format type, double value) {
  const auto single = static_cast<float>(value);
  if (type == Format::bf16) return scalar::encode_bf16(single);
  if (type == Format::f16) return scalar::encode_f16(single);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  return bits;
}

void put_result(Tensor& tensor, std::int64_t at, std::uint64_t bits) {
  const auto width = static_cast<std::size_t>(bits_of(tensor.type) / 8);
  std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(at) * width, &bits, width);
}

// Every word of one output changed alike.
void propose_changed(const FailedOutput& output, const std::string& text, int cost, const Propose& propose,
                     const std::function<std::uint64_t(std::uint64_t)>& change) {
  Candidate candidate{text + " in " + output.name, cost};
  candidate.all = [&output, change](Outputs& outputs) {
    Tensor& tensor = outputs[output.name];
    const Elements given(tensor);
    for (std::int64_t at = 0; at < output.elements; ++at) put_result(tensor, at, change(given[at]));
    return true;
  };
  candidate.is_transform = true;
  propose(std::move(candidate));
}

void propose_words(const FailedOutput& output, const Propose& propose) {
  const Format type = output.want.type;
  if (output.wrong.empty() || bits_of(type) < 8) return;
  const Elements got(output.got), want(output.want);
  const std::int64_t first = output.wrong.front();
  const std::uint64_t sign = std::uint64_t{1} << (bits_of(type) - 1);
  if (type == Format::i32 || type == Format::i64) {
    const std::uint64_t delta = got[first] - want[first];
    const auto shown = static_cast<std::int64_t>(delta);
    propose_changed(output, fmt::format("with {} added", type == Format::i32 ? static_cast<std::int32_t>(shown) : shown), 16,
                    propose, [delta](std::uint64_t bits) { return bits + delta; });
    propose_changed(output, "with results cut to 32 bits", 15, propose, [](std::uint64_t bits) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(bits)));
    });
    return;
  }
  if (type == Format::e8m0) {
    const auto delta = static_cast<int>(got[first]) - static_cast<int>(want[first]);
    propose_changed(output, fmt::format("with codes {} {}", std::abs(delta), delta < 0 ? "lower" : "higher"), 16, propose,
                    [delta](std::uint64_t bits) { return static_cast<std::uint64_t>(static_cast<int>(bits) + delta) & 0xff; });
    return;
  }
  propose_changed(output, "with the sign flipped", 15, propose, [sign](std::uint64_t bits) { return bits ^ sign; });
  propose_changed(output, "with the sign left out", 15, propose, [sign](std::uint64_t bits) { return bits & ~sign; });
  if (bits_of(type) < 16) {
    const std::int64_t delta = static_cast<std::int64_t>(got[first]) - static_cast<std::int64_t>(want[first]);
    propose_changed(output, fmt::format("with codes {} {}", std::abs(delta), delta < 0 ? "lower" : "higher"), 17, propose,
                    [delta](std::uint64_t bits) { return (bits + static_cast<std::uint64_t>(delta)) & 0xff; });
    return;
  }
  const double ratio = value_of(type, got[first]) / value_of(type, want[first]);
  if (std::isfinite(ratio) && ratio != 0 && ratio != 1) {
    int exponent = 0;
    if (std::fabs(std::frexp(ratio, &exponent)) == 0.5) {
      propose_changed(output, fmt::format("with results multiplied by {}", ratio), 16, propose,
                      [type, ratio](std::uint64_t bits) {
                        return is_finite(type, bits) ? of_float(type, value_of(type, bits) * ratio) : bits;
                      });
    }
  }
  const std::int64_t steps = static_cast<std::int64_t>(got[first]) - static_cast<std::int64_t>(want[first]);
  if (std::abs(steps) <= 2) {
    propose_changed(output,
                    fmt::format("with results {} unit{} {} in the last place", std::abs(steps), std::abs(steps) == 1 ? "" : "s",
                                steps < 0 ? "smaller" : "larger"),
                    18, propose, [steps](std::uint64_t bits) { return bits + static_cast<std::uint64_t>(steps); });
  }
  propose_changed(output, "with results rounded to bf16 on the way", 15, propose, [type](std::uint64_t bits) {
    if (!is_finite(type, bits)) return bits;
    const auto value = static_cast<float>(value_of(type, bits));
    return of_float(type, scalar::decode_bf16(scalar::encode_bf16(value)));
  });
  propose_changed(output, "with results rounded to f16 on the way", 15, propose, [type](std::uint64_t bits) {
    if (!is_finite(type, bits)) return bits;
    return of_float(type, scalar::decode_f16(scalar::encode_f16(static_cast<float>(value_of(type, bits)))));
  });
  if (type == Format::f32) {
    propose_changed(output, "with the low half of f32 dropped", 15, propose,
                    [](std::uint64_t bits) { return bits & 0xffff0000u; });
    propose_changed(output, "cut to powers of two", 15, propose, [](std::uint64_t bits) { return bits & 0xff800000u; });
  }
}

}  // namespace

bool write_by_rules(const Failure& failure, const diagnosis::QuantizeRules& rules, Outputs& outputs) {
  bool made = false;
  for (const FailedOutput& output : failure.outputs()) {
    const Suspect suspect{failure.request(), output.name, output.got, output.want, {}, {}};
    std::optional<Tensor> tensor = diagnosis::quantized_by(rules, suspect);
    if (tensor) outputs[output.name].bytes = std::move(tensor->bytes), made = true;
  }
  return made;
}

void propose_rules(const Failure& failure, const Propose& propose) {
  if (failure.call().op == "quantize") propose_quantize_rules(failure, propose);
  if (failure.call().op == "quantize_by_rule") propose_presets(failure, propose);
  for (const FailedOutput& output : failure.outputs()) propose_words(output, propose);
}

}  // namespace assay::conformance::explaining
