#include "conformance/cases/scenario.h"

#include <algorithm>
#include <numeric>

#include "conformance/cases/case_schema.h"
#include "reference/layout/scale_shape.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay::conformance {
namespace {

// Seeds of layers and microbatches are further apart than the number of replays.
constexpr std::int64_t kModuleSeeds = 100'000'007, kMicrobatchSeeds = 1'000'003;

// Replays may go through as many orders of the groups as there are groups.
constexpr std::size_t kMostGroups = 1024;
constexpr std::int64_t kMostRows = std::int64_t{1} << 36;

bool makes_weight_gradient(const std::string& step) { return step == "wgrad" || step == "NT"; }
std::string pair(std::string_view key, std::string_view value) { return std::string(" ").append(key).append("=").append(value); }

// "pow2=1 eps=0.5" of the scenario, where the recipe has them.
std::string scaling_words(const CaseLine& line, const std::string& recipe) {
  if (recipe != "tensor_current" && recipe != "fp8_block") return "";
  return pair("pow2", line.text("pow2")) + pair("eps", line.text("eps"));
}

// Of a step that reads x.
std::string activation_words(const CaseLine& line, const std::string& step) {
  const bool reads_x = step == "quantize" || step == "forward" || step == "wgrad";
  return reads_x && line.text("activation") != "off" ? pair("activation", line.text("activation")) : "";
}

bool accumulates(const CaseLine& line, int microbatch) {
  const std::string accumulate = line.text("accumulate");
  return accumulate == "1" || (accumulate == "rest" && microbatch > 0);
}

std::string quantize_text(const CaseLine& line, const std::string& step) {
  const std::string recipe = line.text("recipe");
  require(recipe != "none", "steps", step, "no quantization with recipe=none");
  const bool weights = step == "weights";
  std::string text = "quantize recipe=" + (recipe != "fp8_block" ? recipe
                                           : weights             ? std::string("block_128x128")
                                                                 : std::string("block_1x128"));
  text += pair("x_type", line.text("x_type")) + pair("otype", line.text(step == "gradients" ? "grad_otype" : "otype"));
  text += scaling_words(line, recipe) + activation_words(line, step);
  if (recipe == "mxfp8" || recipe == "nvfp4") text += " scale_layout=swizzled";
  if (recipe == "nvfp4" && weights) text += " two_dimensional=1";
  if (recipe == "tensor_delayed") text += pair("scales", line.text("scales"));
  if (weights && line.has("noop")) text += pair("noop", line.text("noop"));
  if (step == "gradients" && line.integer("bias") == 1) text += " dbias=1";
  return text + pair("K", line.text(step == "gradients" ? "N" : "K"));
}

std::string linear_text(const CaseLine& line, const std::string& step, int microbatch) {
  const std::string recipe = line.text("recipe");
  std::string text = "linear_" + step + pair("recipe", recipe) + pair("x_type", line.text("x_type"));
  if (recipe != "none") {
    text += pair("otype", line.text("otype"));
    if (step != "forward") text += pair("grad_otype", line.text("grad_otype"));
  }
  text += scaling_words(line, recipe) + activation_words(line, step) + pair("bias", line.text("bias"));
  if (step == "forward" && line.has("noop")) text += pair("noop", line.text("noop"));
  if (step == "wgrad") {
    text += pair("d_type", line.text("d_type")) + pair("deferred", line.text("deferred"));
    text += accumulates(line, microbatch) ? " accumulate=1" : "";
  }
  return text + pair("N", line.text("N")) + pair("K", line.text("K"));
}

std::string product_text(const CaseLine& line, const std::string& step, int microbatch) {
  const std::string recipe = line.text("recipe");
  const bool tensor = recipe.starts_with("tensor");
  const std::string kind = recipe == "none" ? line.text("x_type") : tensor ? std::string("fp8_per_tensor") : recipe;
  std::string text = "grouped_gemm" + pair("kind", kind) + pair("layout", step);
  if (tensor || kind == "fp8_block" || kind == "mxfp8") {
    if (step != "NT") text += pair("w_type", line.text("otype"));
    if (step != "NN") text += pair("x_type", line.text("otype"));
    if (step != "TN") text += pair("dy_type", line.text("grad_otype"));
  }
  if (tensor && step != "TN") text += " split_accumulator=1";
  text += pair("d_type", step == "NT" ? line.text("d_type") : line.text("x_type"));
  if (recipe != "none") text += pair("scales", line.text("scales"));
  if (step == "NT" && accumulates(line, microbatch)) text += " beta=1";
  if (step == "TN") text += pair("bias", line.text("bias"));
  return text + pair("N", line.text("N")) + pair("K", line.text("K"));
}

}  // namespace

bool is_layer_step(const std::string& step) { return step == "forward" || step == "dgrad" || step == "wgrad"; }
bool is_product_step(const std::string& step) { return step == "TN" || step == "NN" || step == "NT"; }

CaseLine line_of_step(const CaseLine& line, const std::string& step, int microbatch, const std::vector<std::int64_t>& splits,
                      std::int64_t rows, std::int64_t seed) {
  std::string text = is_layer_step(step)     ? linear_text(line, step, microbatch)
                     : is_product_step(step) ? product_text(line, step, microbatch)
                                             : quantize_text(line, step);
  if (step == "weights") {
    text += pair("splits", splits_text(std::vector<std::int64_t>(splits.size(), line.integer("N"))));
  } else {
    const std::int64_t used = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
    text += pair("splits", splits_text(splits)) + pair("extra_rows", show(rows - used));
  }
  return parse_case_line(text + pair("data", line.text("data")) + pair("seed", show(seed)));
}

std::int64_t buffer_rows(const CaseLine& line) {
  std::int64_t rows = line.integer("extra_rows");
  for (const std::int64_t each : line.splits())
    require(!__builtin_add_overflow(rows, each, &rows), "splits", each, "rows that fit int64 together");
  require(rows <= kMostRows, "splits", rows, "at most 2^36 rows together, with extra_rows");
  return rows;
}

namespace {

// Whether the step accepts these splits with tensors of the same sizes as the line's own: contents may change from replay to
// replay, sizes may not.
bool fits(const CaseLine& line, const ScenarioCall& call, const std::vector<std::int64_t>& splits, std::int64_t rows) {
  if (call.step == "weights") return true;
  try {
    line_of_step(line, call.step, call.microbatch, splits, rows, 0);
  } catch (const InvalidArgument&) {
    return false;
  }
  const std::string recipe = line.text("recipe");
  if (is_layer_step(call.step) || recipe == "none" || recipe.starts_with("tensor")) return true;
  const Recipe scaled = *recipe_named(recipe == "fp8_block" ? "block_1x128" : recipe);
  for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
    for (const char* columns : {"N", "K"}) {
      const std::int64_t width = line.integer(columns);
      if (scale_offsets(scaled, direction, splits, width).back() != scale_offsets(scaled, direction, line.splits(), width).back())
        return false;
    }
  }
  return true;
}

// The splits of the replays, in turn.
std::vector<std::vector<std::int64_t>> turns_of(const CaseLine& line, const Scenario& scenario) {
  const std::vector<std::int64_t> own = line.splits();
  if (!scenario.replay.splits || own.empty()) return {own};
  std::vector<std::vector<std::int64_t>> turns;
  if (line.text("change") == "rotated") {
    for (std::size_t i = 0; i < own.size(); ++i) {
      turns.push_back(own);
      std::rotate(turns.back().begin(), turns.back().begin() + static_cast<std::ptrdiff_t>(i), turns.back().end());
    }
    return turns;
  }
  const std::int64_t rows = buffer_rows(line);
  std::int64_t unit = line.integer("extra_rows");
  for (const std::int64_t each : own) unit = std::gcd(unit, each);
  for (const std::vector<std::int64_t>& splits : scenario_splits(own, rows, std::max<std::int64_t>(unit, 1))) {
    const bool all = std::all_of(scenario.calls.begin(), scenario.calls.end(),
                                 [&](const ScenarioCall& call) { return call.module > 0 || fits(line, call, splits, rows); });
    if (all) turns.push_back(splits);
  }
  return turns;
}

}  // namespace

std::vector<std::vector<std::int64_t>> scenario_splits(const std::vector<std::int64_t>& splits, std::int64_t rows,
                                                       std::int64_t unit) {
  const std::size_t groups = splits.size();
  std::vector<std::vector<std::int64_t>> turns{splits};
  if (groups == 0) return turns;
  const std::int64_t units = rows / unit;
  const auto add = [&](const std::vector<std::int64_t>& each) {
    if (std::find(turns.begin(), turns.end(), each) == turns.end()) turns.push_back(each);
  };
  const auto one = [&](std::size_t group) {
    std::vector<std::int64_t> each(groups, 0);
    each[group] = units * unit;
    add(each);
  };
  // `amount` units over the groups that `takes` names, growing from the first to the last; one at least where they suffice.
  const auto distribute = [&](std::int64_t amount, auto takes) {
    std::vector<std::int64_t> each(groups, 0);
    std::size_t takers = 0;
    for (std::size_t g = 0; g < groups; ++g) takers += takes(g) ? 1 : 0;
    if (takers == 0) return;
    const auto count = static_cast<std::int64_t>(takers), weight = count * (count + 1) / 2;
    const std::int64_t sure = amount >= count ? 1 : 0, rest = amount - sure * count;
    std::int64_t left = amount, rank = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      if (!takes(g)) continue;
      const std::int64_t part = ++rank == count ? left : sure + rest * rank / weight;
      each[g] = part * unit;
      left -= part;
    }
    add(each);
  };
  const std::size_t middle = groups / 2;
  one(0);
  one(groups - 1);
  one(middle);
  if (groups > 1) {
    distribute(units, [&](std::size_t g) { return g != 0; });
    distribute(units, [&](std::size_t g) { return g != groups - 1; });
  }
  if (groups > 2) distribute(units, [&](std::size_t g) { return g != middle; });
  if (groups > 3) {
    distribute(units, [&](std::size_t g) { return g != middle && g != middle - 1; });
    distribute(units, [&](std::size_t g) { return g % 2 == 1; });
  }
  distribute(units / 2, [](std::size_t) { return true; });
  distribute(0, [](std::size_t) { return true; });
  add({splits.rbegin(), splits.rend()});
  return turns;
}

std::string Scenario::place(std::size_t index) const {
  const ScenarioCall& call = calls.at(index);
  const bool many = std::any_of(calls.begin(), calls.end(), [](const ScenarioCall& each) { return each.microbatch > 0; });
  return (modules > 1 ? "module " + std::to_string(call.module + 1) + ", " : "") +
         (many ? "microbatch " + std::to_string(call.microbatch + 1) + ", " : "") + "step " + call.step;
}

Scenario scenario_of(const CaseLine& line) {
  Scenario scenario;
  scenario.replay = replay_plan(line);
  scenario.modules = static_cast<int>(line.integer("modules"));
  const std::string order = line.text("order"), workspace = line.text("workspace");
  scenario.on_streams = order == "streams";
  scenario.workspace = workspace == "own"    ? ScenarioWorkspace::own
                       : workspace == "kept" ? ScenarioWorkspace::kept
                                             : ScenarioWorkspace::shared;
  scenario.warm = line.integer("warm") == 1;
  scenario.history = static_cast<std::uint64_t>(line.integer("history"));
  require(order == "in_turn" || scenario.modules > 1, "order", order, "in_turn with one module");
  const std::string steps = line.text("steps");
  const std::vector<std::int64_t> splits = line.splits();
  require(splits.size() <= kMostGroups, "splits", splits.size(), "at most 1024 groups in a scenario");
  const std::int64_t rows = buffer_rows(line), seed = line.integer("seed");
  for (int module = 0; module < scenario.modules; ++module) {
    std::map<std::string, int> seen;
    std::map<std::string, std::size_t> latest, first;  // calls of a step within this module
    for (const std::string_view graph : words_of(steps, '/')) {
      scenario.graphs.emplace_back();
      for (const std::string_view step : words_of(graph, ',')) {
        const std::size_t index = scenario.calls.size();
        scenario.graphs.back().push_back(index);
        ScenarioCall call;
        call.step = step;
        call.module = module;
        call.microbatch = seen[call.step]++;
        const std::int64_t own_seed = checked_sum(seed, module * kModuleSeeds + call.microbatch * kMicrobatchSeeds, "seed", seed);
        call.line = line_of_step(line, call.step, call.microbatch, splits, rows, own_seed);
        const auto before = latest.find(call.step);
        if (makes_weight_gradient(call.step) && accumulates(line, call.microbatch) && before != latest.end()) {
          call.chained.push_back(call.step == "NT" ? ScenarioLink{"c", before->second, "d"}
                                                   : ScenarioLink{"main_grad", before->second, "dw"});
        }
        latest[call.step] = index;
        first.emplace(call.step, index);
        scenario.calls.push_back(std::move(call));
      }
    }
    if (line.has("noop") && first.count("forward") != 0) {
      std::size_t before = latest.at("forward");
      for (std::size_t i = first.at("forward"); i < scenario.calls.size(); ++i) {
        ScenarioCall& call = scenario.calls[i];
        if (call.step != "forward") continue;
        std::vector<ScenarioLink>& links = i == first.at("forward") ? call.carried : call.chained;
        links = {{"w_rowwise_data", before, "w_rowwise_data"}, {"w_rowwise_scale_inv", before, "w_rowwise_scale_inv"}};
        if (line.text("recipe") == "nvfp4") links.push_back({"w_rowwise_amax", before, "w_rowwise_amax"});
        before = i;
      }
    }
  }
  scenario.turns = turns_of(line, scenario);
  const std::size_t each = scenario.graphs.size() / static_cast<std::size_t>(scenario.modules);
  for (std::size_t i = 0; i < scenario.graphs.size(); ++i) {
    const auto modules = static_cast<std::size_t>(scenario.modules);
    scenario.launches.push_back(order == "in_turn" ? i : i % modules * each + i / modules);
  }
  return scenario;
}

}  // namespace assay::conformance
