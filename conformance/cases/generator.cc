#include "conformance/cases/generator.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/compose.h"
#include "conformance/cases/counter_random.h"
#include "conformance/cases/patterns.h"
#include "conformance/cases/scenario.h"
#include "reference/formats/encode.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/support/error.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

using golden::Case;
using golden::Tensor;

constexpr std::int64_t kMostElements = std::int64_t{1} << 36;
constexpr std::uint32_t kScalePoison = 0x7FC0'DEAD;

Tensor make(Format type, std::vector<std::int64_t> shape) {
  Tensor tensor{type, std::move(shape), {}};
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.shape) {
    require(!__builtin_mul_overflow(elements, extent, &elements) && elements <= kMostElements, "size", extent,
            "tensors of at most 2^36 elements");
  }
  const std::int64_t width = type == Format::e2m1 ? 8 : bits_of(type);  // e2m1 counts bytes
  tensor.bytes.resize(static_cast<std::size_t>(elements * width / 8));
  return tensor;
}

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  std::int64_t sum = 0;
  for (const std::int64_t each : values) {
    require(!__builtin_add_overflow(sum, each, &sum) && sum <= kMostElements, "splits", each, "at most 2^36 rows together");
  }
  return sum;
}

std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& splits) {
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t each : splits) starts.push_back(starts.back() + each);
  return starts;
}

Format format_of(const std::string& name) {
  const auto format = format_named(name);
  require(format.has_value(), "type", name, "the name of a format");
  return *format;
}

std::uint32_t nan_code(Format type) {
  switch (type) {
    case Format::f32: return 0x7FC0'0000;
    case Format::bf16: return 0x7FC0;
    case Format::f16: return 0x7E00;
    case Format::e8m0: return 0xFF;
    case Format::e2m1: return 0x7;
    default: return 0x7F;
  }
}

// Row-major codes into storage of their type.
void store(std::span<const std::uint32_t> codes, Tensor& tensor, std::int64_t first = 0) {
  switch (tensor.type == Format::e2m1 ? 4 : bits_of(tensor.type)) {
    case 32:
      std::memcpy(tensor.as<std::uint32_t>() + first, codes.data(), codes.size_bytes());
      break;
    case 16:
      std::copy(codes.begin(), codes.end(), tensor.as<std::uint16_t>() + first);
      break;
    case 8:
      std::copy(codes.begin(), codes.end(), tensor.as<std::uint8_t>() + first);
      break;
    default:  // two codes a byte, the lower index in the low nibble
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::int64_t at = first + static_cast<std::int64_t>(i);
        std::uint8_t& byte = tensor.as<std::uint8_t>()[at / 2];
        byte = static_cast<std::uint8_t>(at % 2 == 0 ? (byte & 0xF0) | codes[i] : (byte & 0x0F) | codes[i] << 4);
      }
  }
}

std::vector<std::uint32_t> pattern_bits(const PatternRequest& request) {
  std::int64_t elements = 0;
  require(!__builtin_mul_overflow(request.rows, request.columns, &elements) && elements <= kMostElements, "size",
          request.columns, "tensors of at most 2^36 elements");
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(elements));
  fill_pattern(request, bits);
  return bits;
}

// Rows from `active` on become NaN.
void poison_tail(std::vector<std::uint32_t>& bits, std::int64_t active, std::int64_t columns, Format type) {
  std::fill(bits.begin() + active * columns, bits.end(), nan_code(type));
}

// Groups of rows that are stored transposed, each at its own place; null: row after row.
using Transposed = const std::vector<std::int64_t>*;

// The pattern in storage, rows from `active` on as NaN, piece by piece on all processors.
void store_pattern(const PatternRequest& request, std::int64_t active, Tensor& tensor, Transposed splits = nullptr) {
  const std::int64_t columns = request.columns;
  const std::vector<std::int64_t> starts = splits == nullptr ? std::vector<std::int64_t>{0} : starts_of(*splits);
  // Chunks of rows begin on multiples of 64 within their group; what is past the groups is one more.
  struct Chunk {
    std::int64_t first, rows, group_first, group_rows;  // group_rows 0: not transposed
  };
  constexpr std::int64_t kRows = 64;
  std::vector<Chunk> chunks;
  const auto cut = [&](std::int64_t first, std::int64_t rows, bool transposed) {
    for (std::int64_t at = 0; at < rows; at += kRows) {
      chunks.push_back({first + at, std::min(kRows, rows - at), first, transposed ? rows : 0});
    }
  };
  for (std::size_t g = 0; g + 1 < starts.size(); ++g) cut(starts[g], starts[g + 1] - starts[g], true);
  cut(starts.back(), request.rows - starts.back(), false);
  parallel_for(static_cast<std::int64_t>(chunks.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint32_t> bits, column;
    for (std::int64_t i = begin; i < end; ++i) {
      const Chunk& chunk = chunks[static_cast<std::size_t>(i)];
      bits.resize(static_cast<std::size_t>(chunk.rows * columns));
      fill_pattern_rows(request, chunk.first, bits);
      const std::int64_t kept = std::clamp<std::int64_t>(active - chunk.first, 0, chunk.rows);
      std::fill(bits.begin() + kept * columns, bits.end(), nan_code(request.type));
      if (chunk.group_rows == 0) {
        store(bits, tensor, chunk.first * columns);
        continue;
      }
      column.resize(static_cast<std::size_t>(chunk.rows));
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = 0; r < chunk.rows; ++r) column[static_cast<std::size_t>(r)] = bits[static_cast<std::size_t>(r * columns + c)];
        store(column, tensor, chunk.group_first * columns + c * chunk.group_rows + (chunk.first - chunk.group_first));
      }
    }
  });
}

Tensor matrix(const PatternRequest& request, std::int64_t active_rows) {
  Tensor tensor = make(request.type, {request.rows, request.type == Format::e2m1 ? request.columns / 2 : request.columns});
  store_pattern(request, active_rows, tensor);
  return tensor;
}

Tensor integers_tensor(const std::vector<std::int64_t>& values, Format type, std::string_view name) {
  Tensor tensor = make(type, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == Format::i64) {
      tensor.as<std::int64_t>()[i] = values[i];
    } else {
      require(values[i] <= std::numeric_limits<std::int32_t>::max(), name, values[i], "values that fit i32");
      tensor.as<std::int32_t>()[i] = static_cast<std::int32_t>(values[i]);
    }
  }
  return tensor;
}

Tensor floats_tensor(const std::vector<double>& values) {
  Tensor tensor = make(Format::f32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.as<float>()[i] = static_cast<float>(values[i]);
  return tensor;
}

// Rows of a matrix and how they are grouped.
struct Rows {
  bool grouped = false;
  std::vector<std::int64_t> splits;  // one entry, all rows, when not grouped
  std::int64_t active = 0, total = 0;
};

Rows rows_of(const CaseLine& line) {
  Rows rows;
  rows.grouped = line.has("splits");
  rows.splits = rows.grouped ? line.splits() : std::vector<std::int64_t>{line.integer("R")};
  rows.active = sum_of(rows.splits);
  rows.total = rows.active;
  if (rows.grouped) {
    const OpSchema* op = find_op(line.op);
    if (find_key(*op, "extra_rows") != nullptr) rows.total += line.integer("extra_rows");
  }
  return rows;
}

// ---- scales -------------------------------------------------------------------------------------------------------

enum class ScaleKind { plain, pow2, edge, ones };
ScaleKind scale_kind_of(const std::string& word) {
  return word == "plain" ? ScaleKind::plain : word == "pow2" ? ScaleKind::pow2 : word == "edge" ? ScaleKind::edge : ScaleKind::ones;
}

struct ScaleRequest {
  ScaleKind kind = ScaleKind::plain;
  Format type = Format::f32;
  std::uint64_t seed = 0;
  std::string tensor;
  int centre = -8;      // exponent around which scales lie
  bool narrow = false;  // neighbours differ by two, all within two: keeps sums of integers order-free
  bool level = false;   // all the same
  bool with_nan = true; // edge: E8M0 and E4M3 have a code for NaN
};

// The scale of block (i, j) of group g. Neighbours along i, j and g always differ in exponent, so a scale taken from
// another block shows.
std::uint32_t scale_code(const ScaleRequest& r, const CounterRandom& random, std::int64_t g, std::int64_t i, std::int64_t j,
                         std::uint64_t index) {
  const Words w = random.words(index);
  const int wave = r.level ? 0 : static_cast<int>(r.narrow ? (g + i + j) % 2 : (g + 2 * i + 3 * j) % 5);
  const int exponent = r.kind == ScaleKind::ones ? 0 : r.centre + wave - (r.narrow ? 0 : 2);
  const bool edge = r.kind == ScaleKind::edge && w[2] % 4 == 0;
  const std::uint32_t chosen = w[3] % 6;
  switch (r.type) {
    case Format::e8m0: {
      constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0xFE, 0xFD, 0x7F, 0xFF};
      if (edge) return chosen == 5 && (!r.with_nan || w[1] % 16 != 0) ? 0x7F : kEdges[chosen];
      return static_cast<std::uint32_t>(exponent + 127);
    }
    case Format::e4m3: {
      constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7E, 0x07, 0x08, 0x7F};
      if (edge) return chosen == 5 && (!r.with_nan || w[1] % 16 != 0) ? 0x38 : kEdges[chosen];
      const std::uint32_t mantissa = r.kind == ScaleKind::plain || r.kind == ScaleKind::edge ? w[0] >> 29 : 0;
      const int at = r.kind == ScaleKind::ones ? 0 : exponent + 8 + 2;  // d8 lies high in its range
      return static_cast<std::uint32_t>(at + 7) << 3 | mantissa;
    }
    default: {
      constexpr std::uint32_t kEdges[] = {0x0040'0000, 0x0020'0000, 0x7B00'0000, 0x0080'0000, 0x3F80'0000, 0x0020'4081};
      if (edge) return kEdges[chosen];
      const bool plain = r.kind == ScaleKind::plain || r.kind == ScaleKind::edge;
      return compose(fields_of(Format::f32), false, plain ? 0x80'0000 | w[0] >> 9 : 0x80'0000, exponent - 23);
    }
  }
}

// Scales of all groups, group after group, each padded by itself. Shape: 2-D for a single tensor, else flat.
Tensor block_scales_tensor(const ScaleRequest& request, Recipe recipe, Direction direction, const std::vector<std::int64_t>& splits,
                           std::int64_t columns, bool grouped, ScaleLayout layout) {
  ScaleRequest r = request;
  r.type = scale_format(recipe);
  const CounterRandom random(r.seed, r.tensor);
  const std::vector<std::int64_t> offsets = scale_offsets(recipe, direction, splits, columns);
  const bool one = recipe == Recipe::tensor_current || recipe == Recipe::tensor_delayed;

  Tensor tensor = make(r.type, {offsets.back()});
  const std::uint32_t poison = r.type == Format::f32 ? kScalePoison : nan_code(r.type);
  store(std::vector<std::uint32_t>(static_cast<std::size_t>(offsets.back()), poison), tensor);
  for (std::size_t g = 0; g < splits.size(); ++g) {
    const ScaleShape shape = scale_shape(recipe, direction, splits[g], columns);
    for (std::int64_t i = 0; i < shape.used_rows; ++i) {
      for (std::int64_t j = 0; j < shape.used_columns; ++j) {
        const std::int64_t at = offsets[g] + i * shape.columns + j;
        const std::uint32_t code = scale_code(r, random, static_cast<std::int64_t>(g), i, j, static_cast<std::uint64_t>(at));
        store(std::span(&code, 1), tensor, at);
      }
    }
  }
  if (layout == ScaleLayout::swizzled) {
    Tensor swizzled = make(r.type, tensor.shape);
    for (std::size_t g = 0; g < splits.size(); ++g) {
      const auto size = static_cast<std::size_t>(offsets[g + 1] - offsets[g]);
      swizzle_scales(recipe, direction, splits[g], columns, {tensor.as<std::uint8_t>() + offsets[g], size},
                     {swizzled.as<std::uint8_t>() + offsets[g], size});
    }
    tensor = std::move(swizzled);
  }
  if (!grouped && !one) {
    const ScaleShape shape = scale_shape(recipe, direction, splits[0], columns);
    tensor.shape = {shape.rows, shape.columns};
  }
  return tensor;
}

// One f32 a group: scales that are given, tensor amaxes.
Tensor group_floats(ScaleRequest request, std::size_t groups) {
  request.type = Format::f32;
  const CounterRandom random(request.seed, request.tensor);
  Tensor tensor = make(Format::f32, {static_cast<std::int64_t>(groups)});
  for (std::size_t g = 0; g < groups; ++g) {
    const std::uint32_t code = scale_code(request, random, static_cast<std::int64_t>(g), 0, 0, g);
    store(std::span(&code, 1), tensor, static_cast<std::int64_t>(g));
  }
  return tensor;
}

// ---- operands of products -----------------------------------------------------------------------------------------

// Codes of one operand in one storage, and its scales.
struct OperandRequest {
  std::string name;  // x, w, dy
  Format type = Format::bf16;
  bool scaled = false;
  Recipe recipe = Recipe::tensor_current;
  bool columnwise = false;
  std::vector<std::int64_t> splits;  // rows of each group
  std::int64_t columns = 0;
  std::int64_t total_rows = 0;
  ScaleLayout scale_layout = ScaleLayout::compact;
  PatternRequest pattern;  // pattern, role, contraction ...
  ScaleRequest scale;
};

// Each group [M,K] of row-major codes becomes [K,M] at its own place; what is past the groups stays.
std::vector<std::uint32_t> transpose_groups(const std::vector<std::uint32_t>& bits, const std::vector<std::int64_t>& splits,
                                            std::int64_t columns) {
  std::vector<std::uint32_t> out = bits;
  std::int64_t base = 0;
  for (const std::int64_t rows : splits) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        out[static_cast<std::size_t>(base + c * rows + r)] = bits[static_cast<std::size_t>(base + r * columns + c)];
      }
    }
    base += rows * columns;
  }
  return out;
}

void add_operand(Case& result, const OperandRequest& operand) {
  PatternRequest pattern = operand.pattern;
  pattern.type = operand.type;
  pattern.tensor = operand.name;
  pattern.rows = operand.total_rows;
  pattern.columns = operand.columns;
  const bool packed = operand.type == Format::e2m1;
  const bool transposed = operand.columnwise && operand.recipe != Recipe::mxfp8;
  const std::int64_t active = sum_of(operand.splits);
  Tensor data = make(operand.type, {operand.total_rows, packed ? operand.columns / 2 : operand.columns});
  if (transposed && packed) {  // two rows share a byte
    std::vector<std::uint32_t> bits = pattern_bits(pattern);
    poison_tail(bits, active, operand.columns, operand.type);
    store(transpose_groups(bits, operand.splits, operand.columns), data);
  } else {
    store_pattern(pattern, active, data, transposed ? &operand.splits : nullptr);
  }
  if (transposed) data.shape = {data.elements()};
  if (!operand.scaled) {
    result.in[operand.name] = std::move(data);
    return;
  }
  const std::string prefix = operand.name + (operand.columnwise ? "_columnwise_" : "_rowwise_");
  ScaleRequest scale = operand.scale;
  scale.tensor = prefix + "scale_inv";
  result.in[prefix + "data"] = std::move(data);
  result.in[prefix + "scale_inv"] =
      block_scales_tensor(scale, operand.recipe, operand.columnwise ? Direction::columnwise : Direction::rowwise,
                          operand.splits, operand.columns, true, operand.scale_layout);
  if (operand.recipe == Recipe::nvfp4) {
    ScaleRequest amax = operand.scale;
    amax.tensor = prefix + "amax";
    amax.centre = 2;
    amax.level = amax.kind == ScaleKind::ones;
    result.in[prefix + "amax"] = group_floats(amax, operand.splits.size());
  }
}

// Largest amplitude whose sums stay below 2^13 units with scales that differ by up to `spread` on each side.
int amplitude_for(std::int64_t length, std::int64_t spread) {
  for (const int amplitude : {4, 2}) {
    if (amplitude * amplitude * spread * spread * std::max<std::int64_t>(length, 1) <= 8192) return amplitude;
  }
  return 1;
}

// ---- one function an op -------------------------------------------------------------------------------------------

Recipe recipe_of(const CaseLine& line) { return *recipe_named(line.text("recipe")); }

std::int64_t block_of(Recipe recipe) { return recipe == Recipe::mxfp8 ? 32 : recipe == Recipe::nvfp4 ? 16 : 128; }

// Twice the largest magnitude of each group, as f32.
Tensor doubled_amax(const std::vector<std::uint32_t>& bits, Format type, const Rows& rows, std::int64_t columns) {
  const FormatFields f = fields_of(type);
  Tensor tensor = make(Format::f32, {static_cast<std::int64_t>(rows.splits.size())});
  std::int64_t base = 0;
  for (std::size_t g = 0; g < rows.splits.size(); ++g) {
    std::uint32_t largest = 0;  // magnitudes sort as their codes do
    for (std::int64_t i = 0; i < rows.splits[g] * columns; ++i) {
      const std::uint32_t magnitude = bits[static_cast<std::size_t>(base + i)] & (sign_bit(f) - 1);
      if (magnitude <= f.infinity) largest = std::max(largest, magnitude);
    }
    base += rows.splits[g] * columns;
    const std::uint32_t field = largest >> f.mantissa, mantissa = largest & ((1u << f.mantissa) - 1);
    const std::uint32_t significand = field == 0 ? mantissa : mantissa | 1u << f.mantissa;
    const int exponent = static_cast<int>(std::max(field, 1u)) - f.bias - f.mantissa;
    tensor.as<std::uint32_t>()[g] = largest == f.infinity ? 0x7f80'0000 : compose(fields_of(Format::f32), false, significand, exponent + 1);
  }
  return tensor;
}

// Plain bytes. No format is "a byte", so the tensor says e8m0.
Tensor random_bytes(std::uint64_t seed, const std::string& name, std::vector<std::int64_t> shape) {
  Tensor tensor = make(Format::e8m0, std::move(shape));
  const CounterRandom random(seed, name);
  for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
    tensor.bytes[i] = static_cast<std::byte>(random.words(i / 16)[i / 4 % 4] >> (i % 4 * 8));
  }
  return tensor;
}

void generate_quantize(const CaseLine& line, Case& result) {
  const Recipe recipe = recipe_of(line);
  const bool per_tensor = recipe == Recipe::tensor_current || recipe == Recipe::tensor_delayed;
  const bool fp8_scaled = per_tensor || recipe == Recipe::block_1x128 || recipe == Recipe::block_128x128;
  auto& attributes = result.attributes;
  attributes["recipe"] = line.text("recipe");
  attributes["otype"] = line.text("otype");
  if (fp8_scaled) {
    attributes["pow2"] = line.integer("pow2");
    attributes["eps"] = line.real("eps");
  } else {
    attributes["scale_layout"] = line.text("scale_layout");
  }
  // Beyond schema 1, and therefore only where they say something.
  for (const std::string_view key : {"two_dimensional", "hadamard", "stochastic", "dbias"}) {
    if (line.integer(key) != 0) attributes[std::string(key)] = line.integer(key);
  }
  if (line.integer("hadamard") == 1) attributes["sign_mask"] = line.integer("sign_mask");
  if (line.text("four_over_six") != "off") attributes["four_over_six"] = line.text("four_over_six");
  if (line.integer("e4m3_max") != 448) attributes["e4m3_max"] = line.integer("e4m3_max");
  if (line.text("zero_sign") != "kept") attributes["zero_sign"] = line.text("zero_sign");

  const Rows rows = rows_of(line);
  const std::int64_t columns = line.integer("K");
  const auto seed = static_cast<std::uint64_t>(line.integer("seed"));
  PatternRequest pattern;
  const std::string name = line.text("data");
  pattern.pattern = name;
  pattern.type = format_of(line.text("itype"));
  pattern.seed = seed;
  pattern.tensor = "x";
  pattern.rows = rows.total;
  pattern.columns = columns;
  pattern.target = format_of(line.text("otype"));
  pattern.block = block_of(recipe);
  pattern.one_scale = per_tensor || recipe == Recipe::nvfp4;
  pattern.eps = static_cast<float>(line.real("eps"));
  pattern.amplitude = 15;
  std::vector<std::uint32_t> bits = pattern_bits(pattern);
  poison_tail(bits, rows.active, columns, pattern.type);
  if (line.text("amax") == "given") result.in["amax"] = doubled_amax(bits, pattern.type, rows, columns);
  Tensor x = make(pattern.type, {rows.total, columns});
  store(bits, x);
  result.in["x"] = std::move(x);

  if (rows.grouped) result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");
  if (recipe == Recipe::tensor_delayed) {
    result.in["scale"] = group_floats({.kind = scale_kind_of(line.text("scales")), .seed = seed, .tensor = "scale", .centre = 6},
                                      rows.splits.size());
  }
  if (line.has("noop")) result.in["noop"] = floats_tensor({line.real("noop")});
  if (line.integer("stochastic") == 1) {
    const std::string direction = line.text("direction");
    if (direction != "columnwise") result.in["rowwise_random"] = random_bytes(seed, "rowwise_random", {rows.total * columns});
    if (direction != "rowwise") result.in["columnwise_random"] = random_bytes(seed, "columnwise_random", {rows.total * columns});
  }
}

// The two operands of a product, its lengths and what its steps are like.
struct Product {
  std::string layout, kind;
  std::vector<std::int64_t> splits;
  std::int64_t rows = 0, N = 0, K = 0;
  std::int64_t longest() const {
    return layout == "TN" ? K : layout == "NN" ? N : splits.empty() ? 0 : *std::max_element(splits.begin(), splits.end());
  }
};

void generate_grouped_gemm(const CaseLine& line, Case& result) {
  Product product{line.text("layout"), line.text("kind"), line.splits(), 0, line.integer("N"), line.integer("K")};
  product.rows = sum_of(product.splits) + line.integer("extra_rows");
  const std::string kind = product.kind, layout = product.layout, data = line.text("data");
  const auto groups = static_cast<std::int64_t>(product.splits.size());
  const bool scaled = kind != "bf16" && kind != "f16";
  const bool block_scaled = kind == "block" || kind == "mxfp8" || kind == "nvfp4";
  const Format d_type = format_of(line.text("dtype_d"));
  const auto seed = static_cast<std::uint64_t>(line.integer("seed"));

  auto& attributes = result.attributes;
  attributes["kind"] = kind;
  attributes["layout"] = layout;
  attributes["split_accumulator"] = line.integer("split_accumulator");
  attributes["N"] = product.N;
  attributes["K"] = product.K;
  if (kind == "block" && layout != "NT") attributes["weight_block"] = line.text("weight_block");
  if (kind == "mxfp8" || kind == "nvfp4") attributes["scale_layout"] = line.text("scale_layout");
  attributes["dtype_d"] = line.text("dtype_d");
  attributes["arch"] = line.text("arch");
  for (const std::string key : {"alpha", "beta"}) {
    const std::vector<double> values = line.reals(key);
    if (values.size() == 1) {
      attributes[key] = values[0];
    } else {
      result.in[key] = floats_tensor(values);
    }
  }
  result.in["splits"] = integers_tensor(product.splits, Format::i64, "splits");

  // Sums of integers stay order-free with scales that differ by two, if the sum is short enough for that.
  const std::int64_t longest = product.longest();
  const bool level = longest * 2 * 2 > 8192;
  const std::int64_t spread = block_scaled && line.text("scales") == "pow2" && !level ? 2 : 1;

  OperandRequest operand;
  operand.scaled = scaled;
  operand.scale_layout = scaled && (kind == "mxfp8" || kind == "nvfp4") && line.text("scale_layout") == "swizzled"
                             ? ScaleLayout::swizzled : ScaleLayout::compact;
  operand.pattern.pattern = data;
  operand.pattern.seed = seed;
  operand.pattern.contraction = longest;
  operand.pattern.output = d_type;
  operand.pattern.step = scaled && kind != "nvfp4" ? 32 : 16;
  operand.pattern.fraction_bits = scaled && line.text("arch") != "sm100" && line.text("arch") != "sm120" ? 13 : 25;
  operand.pattern.amplitude = amplitude_for(longest, spread);
  operand.scale.kind = scaled ? scale_kind_of(line.text("scales")) : ScaleKind::ones;
  operand.scale.seed = seed;
  if (data == "integers") {
    operand.scale.centre = kind == "nvfp4" ? -10 : 0;  // d8 counts from 2^-10 on: scale_code
    operand.scale.narrow = true;
    operand.scale.level = block_scaled && level;
  }

  // A group's k counts from its own first row where rows are summed over.
  const std::vector<std::int64_t> starts = starts_of(product.splits);
  const auto within_group = [&starts](std::int64_t row) {
    const auto after = std::upper_bound(starts.begin(), starts.end(), row);
    return row - *(after - 1);
  };
  const auto add = [&](std::string name, std::int64_t columns, bool weights, bool contract_rows, Role role) {
    OperandRequest each = operand;
    each.name = name;
    each.type = kind == "bf16" ? Format::bf16 : kind == "f16" ? Format::f16 : kind == "nvfp4" ? Format::e2m1
                                                              : format_of(line.text(name + "_type"));
    each.recipe = kind == "mxfp8" ? Recipe::mxfp8 : kind == "nvfp4" ? Recipe::nvfp4 : kind == "tensor" ? Recipe::tensor_current
                  : weights && line.text("weight_block") == "128x128" ? Recipe::block_128x128 : Recipe::block_1x128;
    // Rows that are summed over are read in the columnwise storage, but by FP8 per-tensor products of sm100 on, which
    // take any storage.
    const bool any_storage = kind == "tensor" && line.text("arch").size() > 4;
    each.columnwise = scaled && contract_rows && !any_storage;
    each.splits = weights ? std::vector<std::int64_t>(static_cast<std::size_t>(groups), product.N) : product.splits;
    each.columns = columns;
    each.total_rows = weights ? groups * product.N : product.rows;
    each.pattern.contract_rows = contract_rows;
    each.pattern.role = role;
    if (contract_rows && weights) {
      const std::int64_t period = product.N;
      each.pattern.position = [period](std::int64_t row) { return row % period; };
    } else if (contract_rows) {
      each.pattern.position = within_group;
    }
    add_operand(result, each);
  };
  if (layout == "TN") {
    add("x", product.K, false, false, Role::first);
    add("w", product.K, true, false, Role::second);
  } else if (layout == "NN") {
    add("dy", product.N, false, false, Role::first);
    add("w", product.K, true, true, Role::second);
  } else {
    add("dy", product.N, false, true, Role::first);
    add("x", product.K, false, true, Role::second);
  }

  PatternRequest plain;
  plain.pattern = data == "integers" ? "integers" : "uniform";
  plain.type = d_type;
  plain.seed = seed;
  plain.amplitude = 15;
  const std::vector<double> beta = line.reals("beta");
  if (std::any_of(beta.begin(), beta.end(), [](double each) { return each != 0; })) {
    plain.tensor = "c";
    plain.rows = layout == "NT" ? groups * product.N : product.rows;
    plain.columns = layout == "TN" ? product.N : product.K;
    result.in["c"] = matrix(plain, layout == "NT" ? plain.rows : sum_of(product.splits));
  }
  if (line.integer("bias") == 1) {
    attributes["bias"] = std::int64_t{1};
    plain.tensor = "bias";
    plain.rows = groups;
    plain.columns = product.N;
    result.in["bias"] = matrix(plain, groups);
  }
}

void generate_offsets(const CaseLine& line, Case& result) {
  if (line.op == "splits_to_offsets_2d") {
    const Format type = format_of(line.text("itype"));
    result.in["first"] = integers_tensor(line.splits("first"), type, "first");
    result.in["last"] = integers_tensor(line.splits("last"), type, "last");
    return;
  }
  const bool multi = line.op == "splits_to_offsets_multi";
  result.in["splits"] = integers_tensor(line.splits(), multi ? format_of(line.text("itype")) : Format::i64, "splits");
  if (multi) {
    result.attributes["outputs"] = line.text("outputs");
  } else {
    result.attributes["stride"] = line.integer("stride");
  }
}

void generate_delayed_update(const CaseLine& line, Case& result) {
  result.attributes["algorithm"] = line.text("algorithm");
  result.attributes["bulk"] = line.integer("bulk");
  result.attributes["otype"] = line.text("otype");
  result.attributes["margin"] = line.integer("margin");
  const std::string data = line.text("data");
  PatternRequest pattern;
  pattern.pattern = data;
  pattern.type = Format::f32;
  pattern.seed = static_cast<std::uint64_t>(line.integer("seed"));
  pattern.target = format_of(line.text("otype"));
  pattern.block = 8;
  pattern.columns = line.integer("tensors");
  // Magnitudes: the history holds amaxes.
  const auto amaxes = [&](std::string name, std::int64_t rows) {
    pattern.tensor = name;
    pattern.rows = rows;
    std::vector<std::uint32_t> bits = pattern_bits(pattern);
    for (std::uint32_t& each : bits) each &= 0x7fff'ffff;
    Tensor tensor = make(Format::f32, {rows, pattern.columns});
    store(bits, tensor);
    return tensor;
  };
  result.in["amax_history"] = amaxes("amax_history", line.integer("length"));
  if (line.integer("reduced") == 1) {
    result.in["reduced"] = amaxes("reduced", 1);
    result.in["reduced"].shape = {pattern.columns};
  }
  result.in["scale"] = group_floats({.kind = ScaleKind::plain, .seed = pattern.seed, .tensor = "scale", .centre = 6},
                                    static_cast<std::size_t>(pattern.columns));
}

void generate_dequantize(const CaseLine& line, Case& result) {
  const Recipe recipe = recipe_of(line);
  const Rows rows = rows_of(line);
  const std::int64_t columns = line.integer("K");
  const bool columnwise = line.text("direction") == "columnwise";
  const Format type = format_of(line.text("otype"));
  const auto seed = static_cast<std::uint64_t>(line.integer("seed"));
  result.attributes["recipe"] = line.text("recipe");
  result.attributes["otype"] = line.text("otype");
  result.attributes["dtype_d"] = line.text("dtype_d");
  result.attributes["direction"] = line.text("direction");
  result.attributes["R"] = rows.total;
  result.attributes["K"] = columns;
  const bool swizzled = line.text("scale_layout") == "swizzled";
  if (recipe == Recipe::mxfp8 || recipe == Recipe::nvfp4) result.attributes["scale_layout"] = line.text("scale_layout");
  if (line.integer("e4m3_max") != 448) result.attributes["e4m3_max"] = line.integer("e4m3_max");
  if (rows.grouped) result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");

  const std::string data = line.text("data"), prefix = line.text("direction") + "_";
  PatternRequest pattern;
  pattern.pattern = data;
  pattern.type = type;
  pattern.seed = seed;
  pattern.tensor = "x";
  pattern.rows = rows.total;
  pattern.columns = columns;
  std::vector<std::uint32_t> bits = pattern_bits(pattern);
  poison_tail(bits, rows.active, columns, type);
  const std::int64_t halves = type == Format::e2m1 ? 2 : 1;
  Tensor codes = make(type, {rows.total, columns / halves});
  if (columnwise && recipe != Recipe::mxfp8) {
    bits = transpose_groups(bits, rows.splits, columns);
    codes.shape = rows.grouped ? std::vector<std::int64_t>{codes.elements()} : std::vector<std::int64_t>{columns, rows.total / halves};
  }
  store(bits, codes);
  result.in[prefix + "data"] = std::move(codes);

  const ScaleKind kind = scale_kind_of(line.text("scales"));
  result.in[prefix + "scale_inv"] =
      block_scales_tensor({.kind = kind, .seed = seed, .tensor = prefix + "scale_inv"}, recipe,
                          columnwise ? Direction::columnwise : Direction::rowwise, rows.splits, columns, rows.grouped,
                          swizzled ? ScaleLayout::swizzled : ScaleLayout::compact);
  if (recipe == Recipe::nvfp4) {
    result.in["amax"] = group_floats({.kind = kind, .seed = seed, .tensor = "amax", .centre = 2}, rows.splits.size());
  }
}

// Scale bytes in turn, so that no two neighbours are alike.
void generate_swizzle(const CaseLine& line, Case& result) {
  const Recipe recipe = recipe_of(line);
  const Rows rows = rows_of(line);
  const std::int64_t columns = line.integer("K");
  const Direction direction = line.text("direction") == "columnwise" ? Direction::columnwise : Direction::rowwise;
  result.attributes["recipe"] = line.text("recipe");
  result.attributes["direction"] = line.text("direction");
  result.attributes["R"] = rows.total;
  result.attributes["K"] = columns;
  if (rows.grouped) result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");

  const bool from_compact = line.op == "swizzle";
  Tensor scales = block_scales_tensor({.kind = ScaleKind::ones, .tensor = "scales"}, recipe, direction, rows.splits, columns,
                                      rows.grouped, ScaleLayout::compact);
  const std::vector<std::int64_t> offsets = scale_offsets(recipe, direction, rows.splits, columns);
  const CounterRandom random(static_cast<std::uint64_t>(line.integer("seed")), "scales");
  Tensor swizzled = make(scales.type, scales.shape);
  for (std::size_t g = 0; g < rows.splits.size(); ++g) {
    const ScaleShape shape = scale_shape(recipe, direction, rows.splits[g], columns);
    std::uint8_t* group = scales.as<std::uint8_t>() + offsets[g];
    for (std::int64_t i = 0; i < shape.used_rows; ++i) {
      for (std::int64_t j = 0; j < shape.used_columns; ++j) {
        const std::int64_t at = i * shape.columns + j;
        group[at] = static_cast<std::uint8_t>(1 + random.below(static_cast<std::uint64_t>(offsets[g] + at), 254));
      }
    }
    const auto size = static_cast<std::size_t>(shape.elements());
    swizzle_scales(recipe, direction, rows.splits[g], columns, {group, size},
                   {swizzled.as<std::uint8_t>() + offsets[g], size});
  }
  result.in[from_compact ? "compact" : "swizzled"] = from_compact ? std::move(scales) : std::move(swizzled);
}

void generate_grouped_dbias(const CaseLine& line, Case& result) {
  const Rows rows = rows_of(line);
  const std::string data = line.text("data");
  PatternRequest pattern;
  pattern.pattern = data;
  pattern.type = format_of(line.text("itype"));
  pattern.seed = static_cast<std::uint64_t>(line.integer("seed"));
  pattern.tensor = "dy";
  pattern.rows = rows.total;
  pattern.columns = line.integer("K");
  pattern.amplitude = 15;
  result.in["dy"] = matrix(pattern, rows.active);
  result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");
  result.attributes["accumulate"] = line.integer("accumulate");
  if (line.integer("accumulate") == 1) {
    pattern.pattern = data == "integers" ? "integers" : "uniform";
    pattern.type = Format::f32;
    pattern.tensor = "dbias";
    pattern.rows = static_cast<std::int64_t>(rows.splits.size());
    result.in["dbias"] = matrix(pattern, pattern.rows);
  }
}

void generate_linear(const CaseLine& line, Case& result) {
  const std::string recipe = line.text("recipe"), data = line.text("data");
  const bool forward = line.op == "linear_forward", wgrad = line.op == "linear_wgrad";
  const Rows rows = rows_of(line);
  const auto groups = static_cast<std::int64_t>(rows.splits.size());
  const std::int64_t N = line.integer("N"), K = line.integer("K");
  const auto seed = static_cast<std::uint64_t>(line.integer("seed"));
  result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");
  auto& attributes = result.attributes;
  attributes["recipe"] = recipe;
  attributes["N"] = N;
  attributes["K"] = K;
  attributes["arch"] = line.text("arch");
  attributes["bias"] = line.integer("bias");
  attributes["itype"] = line.text("itype");
  if (recipe != "none") {
    attributes["otype"] = line.text("otype");
    if (!forward) attributes["grad_otype"] = line.text("grad_otype");
  }
  if (recipe == "nvfp4") attributes["sign_mask"] = line.integer("sign_mask");
  if (recipe == "tensor_current" || recipe == "block") {
    attributes["pow2"] = line.integer("pow2");
    attributes["eps"] = line.real("eps");
  }

  PatternRequest pattern;
  pattern.pattern = data;
  pattern.type = format_of(line.text("itype"));
  pattern.seed = seed;
  pattern.amplitude = amplitude_for(wgrad ? rows.total : std::max(N, K), 1);
  const auto add = [&](std::string name, std::int64_t total, std::int64_t active, std::int64_t columns, Role role) {
    pattern.tensor = name;
    pattern.rows = total;
    pattern.columns = columns;
    pattern.role = role;
    result.in[name] = matrix(pattern, active);
  };
  const auto add_scale = [&](std::string name) {
    if (recipe != "tensor_delayed") return;
    result.in[name + "_scale"] = group_floats({.kind = ScaleKind::plain, .seed = seed, .tensor = name + "_scale", .centre = 6},
                                              rows.splits.size());
  };
  if (!forward) {
    add("dy", rows.total, rows.active, N, Role::first);
    add_scale("dy");
  }
  if (forward || wgrad) {
    add("x", rows.total, rows.active, K, forward ? Role::first : Role::second);
    add_scale("x");
  }
  if (!wgrad) {
    add("w", groups * N, groups * N, K, Role::second);
    add_scale("w");
  }
  if (forward && line.integer("bias") == 1) add("bias", groups, groups, N, Role::value);
  if (wgrad) {
    attributes["dtype_d"] = line.text("dtype_d");
    attributes["accumulate"] = line.integer("accumulate");
    attributes["deferred"] = line.integer("deferred");
    if (line.integer("accumulate") == 1) {
      pattern.type = format_of(line.text("dtype_d"));
      add("main_grad", groups * N, groups * N, K, Role::value);
    }
  }
  if (forward && line.has("noop")) {
    require(recipe != "none", "noop", line.text("noop"), "to be given only with a recipe that quantizes weights");
    result.in["noop"] = floats_tensor({line.real("noop")});
    // The cache holds other weights than `w`, so that using it shows.
    OperandRequest cached;
    cached.name = "w";
    cached.type = format_of(line.text("otype"));
    cached.scaled = true;
    cached.recipe = recipe == "block" ? Recipe::block_128x128 : *recipe_named(recipe);
    if (recipe == "mxfp8" || recipe == "nvfp4") cached.scale_layout = ScaleLayout::swizzled;  // as the layer keeps them
    cached.splits.assign(static_cast<std::size_t>(groups), N);
    cached.columns = K;
    cached.total_rows = groups * N;
    cached.pattern.pattern = "uniform";
    cached.pattern.seed = seed + 1;
    cached.pattern.role = Role::second;
    cached.scale.seed = seed + 1;
    if (recipe == "mxfp8" || recipe == "nvfp4") {  // the order in which the layer keeps them
      cached.scale_layout = ScaleLayout::swizzled;
      attributes["scale_layout"] = std::string("swizzled");
    }
    add_operand(result, cached);
  }
}

}  // namespace

Case generate(const CaseLine& line) {
  require(line.op != "scenario", "op", line.op, "one call: a scenario has several");
  Case result;
  result.name = name_of(line);
  result.op = line.op;
  if (line.op == "quantize") {
    generate_quantize(line, result);
  } else if (line.op == "grouped_gemm") {
    generate_grouped_gemm(line, result);
  } else if (line.op.starts_with("splits_to_offsets")) {
    generate_offsets(line, result);
  } else if (line.op == "delayed_update") {
    generate_delayed_update(line, result);
  } else if (line.op == "dequantize") {
    generate_dequantize(line, result);
  } else if (line.op == "swizzle" || line.op == "unswizzle") {
    generate_swizzle(line, result);
  } else if (line.op == "grouped_dbias") {
    generate_grouped_dbias(line, result);
  } else {
    generate_linear(line, result);
  }
  return result;
}

std::vector<std::string> wanted_outputs(const CaseLine& line) {
  std::vector<std::string> outputs;
  if (line.op == "quantize") {
    const std::string recipe = line.text("recipe"), direction = line.text("direction");
    const bool per_tensor = recipe.starts_with("tensor");
    const bool rowwise = direction != "columnwise", columnwise = direction != "rowwise";
    if (rowwise) outputs.insert(outputs.end(), {"rowwise_data", "rowwise_scale_inv"});
    if (columnwise) outputs.push_back("columnwise_data");
    if (columnwise && !(per_tensor && rowwise)) outputs.push_back("columnwise_scale_inv");  // one serves both directions
    if (recipe == "tensor_current") outputs.insert(outputs.end(), {"amax", "scale"});
    if (recipe == "nvfp4" && line.text("amax") == "own") {
      if (rowwise) outputs.push_back("amax");
      if (columnwise) outputs.push_back("columnwise_amax");
    }
    if (line.integer("dbias") == 1) outputs.push_back("dbias");
  } else if (line.op == "grouped_gemm") {
    outputs = {"d"};
  } else if (line.op == "splits_to_offsets_multi") {
    for (std::size_t i = 0; i < offsets_outputs(line).size(); ++i) outputs.push_back("offsets_" + show(i));
  } else if (line.op.starts_with("splits_to_offsets")) {
    outputs = {"offsets"};
  } else if (line.op == "delayed_update") {
    outputs = {"amax_history", "scale"};
  } else if (line.op == "dequantize") {
    outputs = {"x"};
  } else if (line.op == "swizzle") {
    outputs = {"swizzled"};
  } else if (line.op == "unswizzle") {
    outputs = {"compact"};
  } else if (line.op == "grouped_dbias") {
    outputs = {"dbias"};
  } else if (line.op == "linear_forward") {
    outputs = {"y"};
    if (line.has("noop")) outputs.insert(outputs.end(), {"w_rowwise_data", "w_rowwise_scale_inv"});
  } else if (line.op == "linear_dgrad") {
    outputs = {"dx"};
    if (line.integer("bias") == 1) outputs.push_back("dbias");
  } else if (line.op == "linear_wgrad") {
    outputs = {"dw"};
    if (line.integer("bias") == 1) outputs.push_back("dbias");
  }
  return outputs;
}

CaseCost cost_of(const CaseLine& line) {
  CaseCost cost;
  if (line.op == "scenario") {
    for (const ScenarioCall& call : scenario_of(line).calls) {
      const CaseCost each = cost_of(call.line);
      cost.macs += each.macs * (replay_plan(line).count + 1);
      cost.elements += each.elements * (replay_plan(line).count + 1);
    }
    return cost;
  }
  if (line.op == "grouped_gemm" || line.op.starts_with("linear_")) {
    const std::int64_t N = line.integer("N"), K = line.integer("K");
    const std::vector<std::int64_t> splits = line.splits();
    const std::int64_t rows = sum_of(splits);
    cost.macs = rows * N * K;
    cost.elements = rows * (N + K) + static_cast<std::int64_t>(splits.size()) * N * K;
  } else if (line.op == "delayed_update") {
    cost.elements = line.integer("tensors") * line.integer("length");
  } else if (line.op.starts_with("splits_to_offsets")) {
    cost.elements = static_cast<std::int64_t>(line.splits(line.op == "splits_to_offsets_2d" ? "first" : "splits").size());
  } else {
    cost.elements = rows_of(line).active * line.integer("K");
  }
  return cost;
}

}  // namespace assay::conformance
