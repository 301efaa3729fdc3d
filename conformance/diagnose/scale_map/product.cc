#include "conformance/diagnose/scale_map/product.h"

#include <algorithm>
#include <bit>

#include "conformance/cases/former_words.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kMaxPlaces = std::int64_t{1} << 24;  // f32 holds each of them exactly

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  std::int64_t sum = 0;
  for (const std::int64_t value : values) sum = checked_sum(sum, value, "splits", value);
  return sum;
}

void require_mappable(const CaseLine& line) {
  require(line.op == "grouped_gemm", "op", line.op, "grouped_gemm: scale-map follows the scales of products");
  const std::string kind = line.text("kind");
  if (kind != "fp8_block")
    throw NotSupported("scale-map follows f32 scales of kind=fp8_block; it cannot distinguish those of kind=" + kind + " yet");
  const std::string type = line.text("d_type");
  if (type != "f32") throw NotSupported("scale-map reads places of scales out of D exactly, which takes d_type=f32, not " + type);
  require(line.text("alpha") == "1", "alpha", line.text("alpha"), "1 for scale-map");
  require(line.text("beta") == "0", "beta", line.text("beta"), "0 for scale-map");
  require(line.integer("bias") == 0, "bias", line.integer("bias"), "0 for scale-map");
  require(!line.has("replay"), "replay", "given", "a plain call for scale-map");
}

ScaleArray array_of(const CaseLine& line, const std::string& operand, bool of_columns,
                    const std::vector<std::int64_t>& group_rows, std::int64_t columns, bool along_rows) {
  const std::string layout = line.text("layout");
  const bool squares = operand == "w" && line.text("weight_block") == "128x128";
  const Recipe recipe = squares ? Recipe::block_128x128 : Recipe::block_1x128;
  const Direction direction = along_rows ? Direction::columnwise : Direction::rowwise;
  ScaleArray array;
  array.operand = operand;
  array.tensor = operand + (along_rows ? "_columnwise_scale_inv" : "_rowwise_scale_inv");
  array.of_columns = of_columns;
  array.line_block = squares ? kBlock : 1;
  const char* line_name = layout == "TN"   ? (of_columns ? "n" : "row")
                          : layout == "NN" ? (of_columns ? "k" : "row")
                                           : (of_columns ? "k" : "n");
  array.line = std::string(line_name) + (squares ? "-block" : "");
  array.summed = layout == "TN" ? "k-block" : layout == "NN" ? "n-block" : "row-block";
  for (const std::int64_t rows : group_rows) array.shapes.push_back(scale_shape(recipe, direction, rows, columns));
  array.first = scale_offsets(recipe, direction, group_rows, columns);
  const bool fits = array.elements() + kBefore + kBehind < kMaxPlaces;
  if (!fits)
    throw NotSupported("scale-map distinguishes fewer than 2^24 places, and " + array.tensor + " has " + show(array.elements()));
  return array;
}

}  // namespace

MappedProduct product_of(const CaseLine& line) {
  require_mappable(line);
  MappedProduct product;
  const std::string layout = line.text("layout");
  const std::int64_t N = line.integer("N"), K = line.integer("K");
  product.splits = line.splits();
  const auto groups = static_cast<std::int64_t>(product.splits.size());
  const std::int64_t used = sum_of(product.splits),
                     rows = checked_sum(used, line.integer("extra_rows"), "extra_rows", line.integer("extra_rows"));
  const std::vector<std::int64_t> weight_rows(product.splits.size(), N);
  const std::int64_t all_weight_rows = checked_product(groups, N, "N", N);

  product.attributes = {{"kind", std::string(former_value(line.op, "kind", line.text("kind")))},
                        {"layout", layout},
                        {"split_accumulator", line.integer("split_accumulator")},
                        {"N", N},
                        {"K", K},
                        {std::string(former_key(line.op, "d_type")), line.text("d_type")},
                        {"arch", line.text("arch")},
                        {"alpha", 1.0},
                        {"beta", 0.0}};
  if (layout != "NT") product.attributes["weight_block"] = line.text("weight_block");
  const bool wgrad = layout == "NT";
  const std::string of_rows = layout == "TN" ? "x" : "dy", of_columns = wgrad ? "x" : "w";
  product.rows_type = *format_named(line.text(of_rows + "_type"));
  product.columns_type = *format_named(line.text(of_columns + "_type"));
  const std::int64_t width = layout == "TN" ? K : N;  // of the operand of the rows, as named
  product.rows = array_of(line, of_rows, false, product.splits, width, wgrad);
  product.columns =
      wgrad ? array_of(line, "x", true, product.splits, K, true) : array_of(line, "w", true, weight_rows, K, layout == "NN");
  product.rows_data = of_rows + (wgrad ? "_columnwise_data" : "_rowwise_data");
  product.columns_data = of_columns + (layout == "TN" ? "_rowwise_data" : "_columnwise_data");
  // Transposed storage is flat, as quantize() gives it.
  const std::int64_t columns_rows = wgrad ? rows : all_weight_rows;
  product.rows_shape = wgrad ? std::vector{checked_product(rows, width, "N", N)} : std::vector{rows, width};
  product.columns_shape = layout == "TN" ? std::vector{columns_rows, K} : std::vector{checked_product(columns_rows, K, "K", K)};
  product.d_rows = wgrad ? all_weight_rows : rows;
  product.d_columns = layout == "TN" ? N : K;
  checked_product(checked_product(product.d_rows, product.d_columns, "rows of D", product.d_rows), 4, "rows of D",
                  product.d_rows);
  checked_product(rows, width, "rows", rows);

  std::int64_t row = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t here = product.splits[static_cast<std::size_t>(g)];
    MappedGroup group;
    group.m = wgrad ? N : here;
    group.n = product.d_columns;
    group.depth = layout == "TN" ? K : layout == "NN" ? N : here;
    group.d_offset = (wgrad ? g * N : row) * group.n;
    group.data_offset = row * width;
    group.tile_rows = ceil_div(group.m, kTile), group.tile_columns = ceil_div(group.n, kTile);
    if (group.depth == 0) group.tile_rows = 0;  // no product: no scale is used
    group.first_tile = product.tiles;
    product.tiles += group.tile_rows * group.tile_columns;
    if (group.tile_rows * group.tile_columns > 0) product.blocks = std::max(product.blocks, group.blocks());
    row += here;
    product.groups.push_back(group);
  }
  return product;
}

std::int64_t products_in(const MappedGroup& group, std::int64_t block) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::min(kBlock, group.depth - block * kBlock))));
}

}  // namespace assay::conformance
