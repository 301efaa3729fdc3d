// An update of delayed scaling by other rules: the window, the order of the history, the scale.

#include <bit>
#include <cmath>
#include <vector>

#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/words.h"

namespace assay::conformance::diagnosis {
namespace {

// One tensor: its previous history, newest first, and its scale.
struct Update {
  std::vector<float> history;
  float scale = 1, newest = 0;  // newest: history[0], or its value reduced over ranks
  float max = 448, aim = 448;   // aim: max / 2^margin
  int margin = 0;
  bool most_recent = false, unused_stays = false;
  bool is_left_alone() const { return unused_stays && newest == 0; }
};

float largest(const std::vector<float>& values, std::size_t begin, std::size_t end, float start) {
  for (std::size_t i = begin; i < end && i < values.size(); ++i) start = values[i] > start ? values[i] : start;
  return start;
}
float amax_of(const Update& of) {
  if (of.most_recent) return of.newest;
  return of.is_left_alone() ? 0 : largest(of.history, 1, of.history.size(), of.newest > 0 ? of.newest : 0);
}
float capped(float scale) { return std::isinf(scale) ? std::bit_cast<float>(0x7f7f'ffffu) : scale; }
float scale_for(const Update& of, float amax) { return capped(std::isfinite(amax) && amax > 0 ? of.aim / amax : of.scale); }

std::vector<float> rolled(const Update& of) {
  std::vector<float> after(of.history);
  for (std::size_t i = 1; i + 1 < after.size(); ++i) after[i] = of.history[i + 1];
  if (after.size() > 1) after.back() = of.newest;
  after[0] = 0;
  return after;
}

struct Row {
  const char* text;
  float (*scale)(const Update&);                 // null: this row does not change it
  std::vector<float> (*history)(const Update&);  // of a tensor that is updated
};

constexpr Row kRows[] = {
    {"with amax of this step left out of the window",
     [](const Update& of) { return scale_for(of, largest(of.history, 1, of.history.size(), 0)); }, nullptr},
    {"with the oldest amax left out of the window",
     [](const Update& of) { return scale_for(of, largest(of.history, 1, of.history.size() - 1, of.newest > 0 ? of.newest : 0)); },
     nullptr},
    {"with the amax before this step's left out of the window",
     [](const Update& of) { return scale_for(of, largest(of.history, 2, of.history.size(), of.newest > 0 ? of.newest : 0)); },
     nullptr},
    {"with amax of this step alone", [](const Update& of) { return scale_for(of, of.newest); }, nullptr},
    {"with amax from the oldest of the history", [](const Update& of) { return scale_for(of, of.history.back()); }, nullptr},
    {"with history[0] in place of the reduced amax",
     [](const Update& of) { return scale_for(of, largest(of.history, 0, of.history.size(), 0)); }, nullptr},
    {"with the scale as MAX times 1 / amax, not MAX / amax",
     [](const Update& of) {
       const float amax = amax_of(of), inverse = 1 / amax;
       return capped(std::isfinite(amax) && amax > 0 ? of.aim * inverse : of.scale);
     },
     nullptr},
    {"with MAX / amax divided by 2^margin after it is rounded",
     [](const Update& of) {
       const float amax = amax_of(of);
       return capped(std::isfinite(amax) && amax > 0 ? std::ldexp(of.max / amax, -of.margin) : of.scale);
     },
     nullptr},
    {"with amax / MAX for the scale",
     [](const Update& of) {
       const float amax = amax_of(of);
       return std::isfinite(amax) && amax > 0 ? amax / of.aim : of.scale;
     },
     nullptr},
    {"with an infinite scale kept",
     [](const Update& of) {
       const float amax = amax_of(of);
       return std::isfinite(amax) && amax > 0 ? of.aim / amax : of.scale;
     },
     nullptr},
    {"with a scale of 1 where amax is 0 or not finite",
     [](const Update& of) {
       const float amax = amax_of(of);
       return std::isfinite(amax) && amax > 0 ? capped(of.aim / amax) : 1.0f;
     },
     nullptr},
    {"with the scale of unused tensors renewed too",
     [](const Update& of) { return scale_for(of, largest(of.history, 1, of.history.size(), of.newest > 0 ? of.newest : 0)); },
     nullptr},
    {"with scales left as they were", [](const Update& of) { return of.scale; }, nullptr},
    {"with the history not rolled", nullptr, [](const Update& of) { return of.history; }},
    {"with the history not rolled, but its first row cleared", nullptr,
     [](const Update& of) {
       std::vector<float> after = of.history;
       after[0] = 0;
       return after;
     }},
    {"with the first row of the history not cleared", nullptr,
     [](const Update& of) {
       std::vector<float> after = rolled(of);
       after[0] = of.history[0];
       return after;
     }},
    {"with the next row of the history in its first, which is not cleared", nullptr,
     [](const Update& of) {
       std::vector<float> after = rolled(of);
       if (of.history.size() > 1) after[0] = of.history[1];
       return after;
     }},
    {"with the history rolled the other way", nullptr,
     [](const Update& of) {
       std::vector<float> after = of.history;
       for (std::size_t i = 1; i < after.size(); ++i) after[i] = of.history[i - 1];
       after[0] = 0;
       return after;
     }},
    {"with amax of this step not kept in the history", nullptr,
     [](const Update& of) {
       std::vector<float> after = rolled(of);
       if (after.size() > 1) after.back() = of.history.back();
       return after;
     }},
    {"with 0 in place of this step's amax in the history", nullptr,
     [](const Update& of) {
       std::vector<float> after = rolled(of);
       if (after.size() > 1) after.back() = 0;
       return after;
     }},
    {"with history[0] in place of the reduced amax", nullptr,
     [](const Update& of) {
       std::vector<float> after = rolled(of);
       if (after.size() > 1) after.back() = of.history[0];
       return after;
     }},
    {"with this step's amax in the second row of the history", nullptr,
     [](const Update& of) {
       std::vector<float> after = of.history;
       if (after.size() > 1) after[1] = of.newest;
       after[0] = 0;
       return after;
     }},
};

}  // namespace

void try_update_rules(const Suspect& suspect, const SampledOutput& sample, Effort& effort, AcceptedHypotheses& accepted) {
  const Request& request = suspect.request;
  if (request.op() != "delayed_update") return;
  const TensorView& history = request.input("amax_history");
  const std::int64_t length = history.shape.at(0), count = history.shape.at(1);
  const DelayedScalingConfig config = delayed_scaling_config_of(request);
  const TensorView* reduced = request.find_input("reduced");
  std::vector<Update> updates(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    Update& of = updates[static_cast<std::size_t>(i)];
    for (std::int64_t step = 0; step < length; ++step) of.history.push_back(floats(&history)[step * count + i]);
    of.scale = floats(&request.input("scale"))[i];
    of.newest = reduced != nullptr && floats(reduced)[i] != 0 ? floats(reduced)[i] : of.history[0];
    of.max = max_finite(config.output);
    of.margin = config.margin;
    of.aim = of.max * std::ldexp(1.0f, -config.margin);
    of.most_recent = config.algorithm == AmaxAlgorithm::most_recent;
    of.unused_stays = request.flag("bulk");
  }
  const bool of_scales = suspect.output == "scale";
  for (const Row& row : kRows) {
    if ((of_scales ? row.scale == nullptr : row.history == nullptr) || !effort.spend(length * count)) continue;
    const Weight weight = weigh(sample, [&](std::int64_t at) -> std::optional<std::uint64_t> {
      const Update& of = updates[static_cast<std::size_t>(at % count)];
      if (of_scales) return std::bit_cast<std::uint32_t>(row.scale(of));
      const std::vector<float> after = of.is_left_alone() ? of.history : row.history(of);
      return std::bit_cast<std::uint32_t>(after[static_cast<std::size_t>(at / count)]);
    });
    if (!accepted.add(sample, weight, row.text)) return;
  }
}

std::vector<std::string> update_rule_texts() {
  std::vector<std::string> texts;
  for (const auto& row : kRows) texts.emplace_back(row.text);
  return texts;
}

}  // namespace assay::conformance::diagnosis
