#include "conformance/ops/output_map.h"

#include <algorithm>
#include <optional>

#include "conformance/ops/grouped_layout.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::int64_t elements_of(const Tensor& tensor) { return tensor.elements() * (tensor.type == Format::e2m1 ? 2 : 1); }

std::optional<std::string> text_of(const Case& problem, const std::string& key) {
  const auto found = problem.attributes.find(key);
  if (found == problem.attributes.end() || !std::holds_alternative<std::string>(found->second)) return std::nullopt;
  return std::get<std::string>(found->second);
}

std::int64_t integer_of(const Case& problem, const std::string& key) {
  const auto found = problem.attributes.find(key);
  if (found == problem.attributes.end() || !std::holds_alternative<std::int64_t>(found->second)) return 0;
  return std::get<std::int64_t>(found->second);
}

std::optional<std::vector<std::int64_t>> splits_of(const Case& problem) {
  const auto found = problem.in.find("splits");
  if (found == problem.in.end() || found->second.type != Format::i64) return std::nullopt;
  const Tensor& tensor = found->second;
  return std::vector<std::int64_t>(tensor.as<std::int64_t>(), tensor.as<std::int64_t>() + tensor.elements());
}

void add(OutputMap& map, std::int64_t group, const ScaleShape& shape, Swizzle swizzle = Swizzle::none) {
  const std::int64_t first = map.segments.empty() ? 0 : map.segments.back().first + map.segments.back().elements();
  map.segments.push_back({group, first, shape.rows, shape.columns, shape.used_rows, shape.used_columns, swizzle});
}

// One matrix a group, all in use.
void add_matrices(OutputMap& map, const std::vector<std::int64_t>& rows, std::int64_t columns, bool transposed = false) {
  for (std::size_t g = 0; g < rows.size(); ++g) {
    const ScaleShape whole =
        transposed ? ScaleShape{columns, rows[g], columns, rows[g]} : ScaleShape{rows[g], columns, rows[g], columns};
    add(map, static_cast<std::int64_t>(g), whole);
  }
}

// The ranges of rows of each group, each with the rows of no group that follow it.
void add_ranges(OutputMap& map, const GroupRows& rows, std::int64_t columns) {
  if (rows.open_rows > 0 && (rows.ranges.empty() || rows.ranges[0].first > 0)) {
    const std::int64_t before = rows.ranges.empty() ? rows.open_rows : rows.ranges[0].first;
    add(map, 0, {before, columns, 0, columns});
  }
  for (std::size_t i = 0; i < rows.ranges.size(); ++i) {
    const RowRange& range = rows.ranges[i];
    const std::int64_t end =
        i + 1 < rows.ranges.size() ? rows.ranges[i + 1].first : std::max(rows.open_rows, range.first + range.rows);
    add(map, range.group, {end - range.first, columns, range.rows, columns});
  }
}

// Names of the two indices of a scale matrix in storage: scale_shape.h.
void name_scale(OutputMap& map, Recipe recipe, Direction direction) {
  const bool rowwise = direction == Direction::rowwise;
  switch (recipe) {
    case Recipe::block_1x128: map.row_name = rowwise ? "k-block" : "row-block", map.column_name = rowwise ? "row" : "k"; break;
    case Recipe::block_128x128:
      map.row_name = rowwise ? "row-block" : "k-block", map.column_name = rowwise ? "k-block" : "row-block";
      break;
    case Recipe::mxfp8: map.row_name = rowwise ? "row" : "row-block", map.column_name = rowwise ? "k-block" : "k"; break;
    default: map.row_name = rowwise ? "row" : "k", map.column_name = rowwise ? "k-block" : "row-block"; break;
  }
}

void add_scales(OutputMap& map, Recipe recipe, Direction direction, const std::vector<std::int64_t>& rows, std::int64_t columns,
                bool swizzled) {
  map.is_scale = true;
  if (is_per_tensor(recipe)) {
    map.row_name = "", map.column_name = "";
    for (std::size_t g = 0; g < rows.size(); ++g) add(map, static_cast<std::int64_t>(g), {1, 1, 1, 1});
    return;
  }
  name_scale(map, recipe, direction);
  const Swizzle swizzle = !swizzled                                                       ? Swizzle::none
                          : recipe == Recipe::mxfp8 && direction == Direction::columnwise ? Swizzle::flipped
                                                                                          : Swizzle::straight;
  for (std::size_t g = 0; g < rows.size(); ++g)
    add(map, static_cast<std::int64_t>(g), scale_shape(recipe, direction, rows[g], columns), swizzle);
}

// One value a group.
void add_values(OutputMap& map, std::size_t groups) {
  map.row_name = "", map.column_name = "";
  for (std::size_t g = 0; g < groups; ++g) add(map, static_cast<std::int64_t>(g), {1, 1, 1, 1});
}

void map_quantized(OutputMap& map, const Case& problem, const std::string& name, Recipe recipe,
                   const std::vector<std::int64_t>& rows, std::int64_t columns) {
  const bool columnwise = name.find("columnwise") != std::string::npos;
  const Direction direction = columnwise ? Direction::columnwise : Direction::rowwise;
  if (name.ends_with("scale_inv")) {
    add_scales(map, recipe, direction, rows, columns, text_of(problem, "scale_layout") == "swizzled");
  } else if (name.ends_with("data")) {
    const bool transposed = columnwise && recipe != Recipe::mxfp8;
    map.row_name = transposed ? "k" : "row", map.column_name = transposed ? "row" : "column";
    add_matrices(map, rows, columns, transposed);
  } else if (name == "dbias") {
    map.row_name = "";
    add_matrices(map, std::vector<std::int64_t>(rows.size(), 1), columns);
  } else {
    add_values(map, rows.size());
  }
}

// Adds the segments that this op's output has; leaves none when it knows none.
void map_known(OutputMap& map, const Case& problem, const std::string& name, const Tensor& tensor) {
  const auto splits = splits_of(problem);
  const std::int64_t N = integer_of(problem, "N"), K = integer_of(problem, "K");
  const std::int64_t last = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (problem.op == "quantize") {
    const auto x = problem.in.find("x");
    const auto recipe = recipe_named(text_of(problem, "recipe").value_or(""));
    if (x == problem.in.end() || x->second.shape.size() != 2 || !recipe) return;
    const auto activation = activation_named(text_of(problem, "activation").value_or("off"));
    map_quantized(map, problem, name, *recipe, splits.value_or(std::vector<std::int64_t>{x->second.shape[0]}),
                  x->second.shape[1] / matrices_in_x(activation.value_or(Activation::off)));
  } else if (problem.op == "grouped_gemm" && (splits || text_of(problem, "grouped_layout"))) {
    const bool weights = text_of(problem, "layout") == "NT", placed = text_of(problem, "grouped_layout").has_value();
    const GroupRows rows = placed ? group_rows_of(Request::read_only(problem)) : GroupRows{};
    const std::int64_t columns = text_of(problem, "layout") == "TN" ? N : K;
    if (placed && !weights) return add_ranges(map, rows, columns);
    const std::size_t groups = placed ? rows.splits.size() : splits->size();
    add_matrices(map, weights ? std::vector<std::int64_t>(groups, N) : *splits, columns);
  } else if (problem.op == "dequantize") {
    add_matrices(map, splits.value_or(std::vector<std::int64_t>{tensor.shape.empty() ? 0 : tensor.shape[0]}), last);
  } else if (problem.op == "swizzle" || problem.op == "unswizzle") {
    const auto recipe = recipe_named(text_of(problem, "recipe").value_or(""));
    if (!recipe) return;
    const Direction direction = text_of(problem, "direction") == "columnwise" ? Direction::columnwise : Direction::rowwise;
    add_scales(map, *recipe, direction, splits.value_or(std::vector<std::int64_t>{integer_of(problem, "R")}), K,
               name == "swizzled");
  } else if (problem.op.starts_with("splits_to_offsets")) {
    map.row_name = "", map.column_name = "index", map.grouped = false;
    add(map, 0, {1, elements_of(tensor), 1, elements_of(tensor)});
  } else if (problem.op == "delayed_update") {
    map.row_name = name == "scale" ? "" : "row", map.column_name = "tensor";
    const std::int64_t rows = name == "scale" || tensor.shape.empty() ? 1 : tensor.shape[0];
    add(map, 0, {rows, last, rows, last});
  } else if (problem.op == "grouped_dbias" && splits) {
    map.row_name = "";
    add_matrices(map, std::vector<std::int64_t>(splits->size(), 1), last);
  } else if (problem.op.starts_with("linear_") && splits) {
    const std::vector<std::int64_t> weights(splits->size(), N);
    const std::string recipe = text_of(problem, "recipe").value_or("");
    if (name == "dbias") {
      map.row_name = "";
      add_matrices(map, std::vector<std::int64_t>(splits->size(), 1), last);
    } else if (name == "dw") {
      add_matrices(map, weights, K);
    } else if (name.starts_with("w_")) {
      const auto named = recipe_named(recipe == "block" ? "block_128x128" : recipe);
      if (named) map_quantized(map, problem, name, *named, weights, K);
    } else {
      add_matrices(map, *splits, last);
    }
  }
}

}  // namespace

Coordinates coordinates_of(const Segment& segment, std::int64_t offset) {
  if (segment.swizzle == Swizzle::none) return {offset / segment.columns, offset % segment.columns};
  const std::int64_t tiles = (segment.swizzle == Swizzle::straight ? segment.columns : segment.rows) / 4;
  const std::int64_t tile = offset / 512, within = offset % 512;
  const std::int64_t i = tile / tiles * 128 + within % 16 / 4 * 32 + within / 16, j = tile % tiles * 4 + within % 4;
  return segment.swizzle == Swizzle::straight ? Coordinates{i, j} : Coordinates{j, i};
}

std::int64_t offset_of(const Segment& segment, Coordinates at) {
  if (segment.swizzle == Swizzle::none) return at.row * segment.columns + at.column;
  return segment.swizzle == Swizzle::straight ? swizzled_index(at.row, at.column, segment.columns / 4)
                                              : swizzled_index(at.column, at.row, segment.rows / 4);
}

OutputMap map_output(const Case& problem, const std::string& name, const Tensor& tensor) {
  OutputMap map;
  map.elements = elements_of(tensor);
  map.grouped = problem.in.count("splits") != 0 || problem.attributes.count("grouped_layout") != 0;
  try {
    map_known(map, problem, name, tensor);
  } catch (const InvalidArgument&) {
    map.segments.clear();  // an invalid case: the plain matrix below
  }
  const bool fits = !map.segments.empty() && map.segments.back().first + map.segments.back().elements() <= map.elements;
  const bool no_groups = map.segments.empty() && map.grouped && splits_of(problem) && splits_of(problem)->empty();
  if (fits || no_groups) return map;

  OutputMap plain;
  plain.elements = map.elements;
  const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back() * (tensor.type == Format::e2m1 ? 2 : 1);
  const std::int64_t rows = columns == 0 ? 0 : plain.elements / columns;
  if (tensor.shape.size() < 2) plain.row_name = "", plain.column_name = "index";
  add(plain, 0, {rows, columns, rows, columns});
  return plain;
}

}  // namespace assay::conformance
