#include "conformance/catalogue/reach.h"

#include <algorithm>
#include <utility>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/scenario.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/tensors.h"
#include "reference/layout/scale_shape.h"
#include "reference/recipes/quantize.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

const char* type_of_scales(Recipe recipe) {
  return recipe == Recipe::mxfp8 ? "scales e8m0" : recipe == Recipe::nvfp4 ? "scales e4m3" : "scales f32";
}

// Scales of all groups in one direction, and the lengths of their rows and tiles.
std::int64_t add_scales(Recipe recipe, Direction direction, const inputs::Rows& rows, std::int64_t columns, Reach& reach) {
  if (is_per_tensor(recipe)) return static_cast<std::int64_t>(rows.splits.size());
  std::int64_t count = 0;
  for (const std::int64_t each : rows.splits) {
    const ScaleShape shape = scale_shape(recipe, direction, each, columns);
    count += shape.used_rows * shape.used_columns;
    reach.lengths["scales"].insert({shape.used_rows, shape.used_columns});
    if (recipe == Recipe::mxfp8 || recipe == Recipe::nvfp4) reach.lengths["tiles"].insert((shape.elements() + 511) / 512);
  }
  return count;
}

void add_rows(const inputs::Rows& rows, std::int64_t columns, Reach& reach) {
  reach.lengths["R"].insert(rows.splits.begin(), rows.splits.end());
  reach.lengths["rows"].insert(rows.active);
  if (rows.grouped) reach.lengths["groups"].insert(static_cast<std::int64_t>(rows.splits.size()));
  reach.lengths["K"].insert(columns);
  reach.lengths["elements"].insert(rows.active * columns);
}

void add_matrix(const CaseLine& line, Reach& reach) {
  const inputs::Rows rows = inputs::rows_of(line);
  const std::int64_t columns = line.integer("K"), elements = rows.active * columns;
  add_rows(rows, columns, reach);
  if (line.op == "grouped_dbias") {
    reach.elements["sums"] += static_cast<std::int64_t>(rows.splits.size()) * columns;
    return;
  }
  if (line.op == "quantize_by_rule") {
    reach.elements["codes"] += elements;
    return;
  }
  const Recipe recipe = *recipe_named(line.text("recipe"));
  const std::string direction = line.text("direction");
  for (const auto& [name, each] : {std::pair{"rowwise", Direction::rowwise}, std::pair{"columnwise", Direction::columnwise}}) {
    if (direction != "both" && direction != name) continue;
    const std::int64_t scales = add_scales(recipe, each, rows, columns, reach);
    if (line.op != "dequantize" && !(line.op == "quantize" && line.has("noop") && line.real("noop") == 1))
      reach.elements[type_of_scales(recipe)] += scales;
    if (line.op == "quantize") reach.elements["codes " + line.text("otype")] += elements;
  }
  if (line.op == "dequantize") reach.elements["values"] += elements;
  if (line.op == "quantize" && line.integer("dbias") == 1)
    reach.elements["sums"] += static_cast<std::int64_t>(rows.splits.size()) * columns;
}

void add_product(const CaseLine& line, Reach& reach) {
  const inputs::Rows rows = inputs::rows_of(line);
  const auto groups = static_cast<std::int64_t>(rows.splits.size());
  const std::int64_t N = line.integer("N"), K = line.integer("K");
  add_rows(rows, K, reach);
  reach.lengths["N"].insert(N);
  const std::string step = line.op == "grouped_gemm"     ? line.text("layout")
                           : line.op == "linear_forward" ? "TN"
                           : line.op == "linear_dgrad"   ? "NN"
                                                         : "NT";
  const std::string kind = line.op == "grouped_gemm" ? "d " + line.text("kind") : "values";
  reach.elements[kind] += step == "TN" ? rows.active * N : step == "NN" ? rows.active * K : groups * N * K;
}

void add(const CaseLine& line, std::map<std::string, Reach>& all) {
  if (line.op == "scenario") {
    for (const ScenarioCall& call : scenario_of(line).calls) add(call.line, all);
    return;
  }
  Reach& reach = all[line.op];
  ++reach.lines;
  if (leaves_outputs_out(line)) return;
  if (line.op == "grouped_gemm" || line.op.starts_with("linear_")) {
    add_product(line, reach);
  } else if (line.op == "delayed_update") {
    const std::int64_t tensors = line.integer("tensors"), length = line.integer("length");
    reach.lengths["tensors"].insert(tensors);
    reach.lengths["length"].insert(length);
    reach.lengths["elements"].insert(tensors * length);
    reach.elements["values"] += tensors * (length + 1);
  } else if (line.op == "permute" || line.op == "unpermute") {
    const std::int64_t tokens = line.integer("R"), columns = line.integer("K"),
                       elements = tokens * line.integer("topk") * columns;
    reach.lengths["R"].insert(tokens);
    reach.lengths["K"].insert(columns);
    reach.lengths["elements"].insert(elements);
    reach.elements["values"] += elements;
  } else if (line.op.starts_with("splits_to_offsets")) {
    const auto groups = static_cast<std::int64_t>(line.splits(line.op == "splits_to_offsets_2d" ? "first" : "splits").size());
    reach.lengths["groups"].insert(groups);
    reach.elements["offsets"] +=
        (groups + 1) * (line.op == "splits_to_offsets_multi" ? static_cast<std::int64_t>(offsets_outputs(line).size()) : 1);
  } else {
    add_matrix(line, reach);
  }
}

}  // namespace

std::map<std::string, Reach> reach_of(const std::vector<CaseLine>& lines) {
  std::map<std::string, Reach> all;
  for (const CaseLine& line : lines) add(line, all);
  return all;
}

bool is_extent(const std::string& name) {
  return name == "R" || name == "K" || name == "N" || name == "tensors" || name == "length";
}

bool on_both_sides(const std::set<std::int64_t>& lengths, std::int64_t power) {
  const auto above = lengths.upper_bound(power);
  return lengths.count(power) != 0 && above != lengths.end() && *above <= power + power / 8;
}

std::string describe_reach(const std::map<std::string, Reach>& reach) {
  std::string text;
  for (const auto& [op, each] : reach) {
    text += op + ": " + show(each.lines) + " lines\n  elements ";
    std::string separator;
    for (const auto& [what, count] : each.elements) text += std::exchange(separator, ", ") + what + " " + show(count);
    text += '\n';
    for (const auto& [name, lengths] : each.lengths) {
      text += "  " + name + ": " + show(lengths.size()) + " values, to " + show(*lengths.rbegin());
      if (!is_extent(name)) {
        text += '\n';
        continue;
      }
      std::string missing;
      for (std::int64_t power = 16; power <= 4096; power *= 2) {
        if (!on_both_sides(lengths, power)) missing += " " + show(power);
      }
      text += (missing.empty() ? "; both sides of 16 to 4096" : "; not both sides of" + missing) + "\n";
    }
  }
  return text;
}

}  // namespace assay::conformance
