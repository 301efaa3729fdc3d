// The table behind tensor_schema.h, by op.

#include <algorithm>
#include <cctype>
#include <utility>

#include "conformance/ops/tensor_schema.h"
#include "reference/types/error.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

using List = std::vector<TensorSchema>;

void append(List& to, List more) {
  for (TensorSchema& each : more) to.push_back(std::move(each));
}

std::string both(std::string first, const std::string& second) {
  if (!first.empty() && !second.empty()) first += ' ';
  return first + second;
}

// A matrix of scales, by the rows `r` and the columns `k` of what it scales: layout/scale_shape.h.
struct BlockScales {
  std::string recipe;
  bool rowwise;
  std::string type;
  std::string rows, columns;            // as stored
  std::string used_rows, used_columns;  // without padding
};
const BlockScales kBlockScales[] = {
    {"block_1x128", true, "f32", "blocks(k,128)", "up(r,4)", "blocks(k,128)", "r"},
    {"block_1x128", false, "f32", "blocks(r,128)", "up(k,4)", "blocks(r,128)", "k"},
    {"block_128x128", true, "f32", "blocks(r,128)", "up(blocks(k,128),4)", "blocks(r,128)", "blocks(k,128)"},
    {"block_128x128", false, "f32", "blocks(k,128)", "up(blocks(r,128),4)", "blocks(k,128)", "blocks(r,128)"},
    {"mxfp8", true, "e8m0", "up(r,128)", "up(blocks(k,32),4)", "r", "blocks(k,32)"},
    {"mxfp8", false, "e8m0", "up(blocks(r,32),4)", "up(k,128)", "blocks(r,32)", "k"},
    {"nvfp4", true, "e4m3", "up(r,128)", "up(blocks(k,16),4)", "r", "blocks(k,16)"},
    {"nvfp4", false, "e4m3", "up(k,128)", "up(blocks(r,16),4)", "k", "blocks(r,16)"},
};

const BlockScales& block_scales(std::string_view recipe, bool rowwise) {
  const auto found = std::find_if(std::begin(kBlockScales), std::end(kBlockScales),
                                  [&](const BlockScales& each) { return each.recipe == recipe && each.rowwise == rowwise; });
  require(found != std::end(kBlockScales), "recipe", recipe, "a recipe with a row in kBlockScales");
  return *found;
}

// The formula with other names for r and k.
std::string in_terms_of(const std::string& formula, const std::string& r, const std::string& k) {
  std::string made;
  for (std::size_t at = 0; at < formula.size();) {
    std::size_t end = at;
    while (end < formula.size() && std::isalpha(static_cast<unsigned char>(formula[end])) != 0) ++end;
    const std::string word = formula.substr(at, std::max<std::size_t>(end - at, 1));
    made += word == "r" ? r : word == "k" ? k : word;
    at += word.size();
  }
  return made;
}

// Scales of one tensor of R rows, or of its groups, each padded by itself, in flat order.
TensorSchema scales_of_rows(std::string name, const BlockScales& scales, const std::string& columns, std::string when, bool may_be_single) {
  const std::string rows = in_terms_of(scales.rows, "r", columns), across = in_terms_of(scales.columns, "r", columns);
  TensorSchema tensor{.name = std::move(name), .type = scales.type, .when = std::move(when), .compared = Compared::unpadded};
  tensor.grouped_shape = "sum(" + rows + "*" + across + ")";
  tensor.shape = may_be_single ? in_terms_of(rows, "R", columns) + "," + in_terms_of(across, "R", columns) : std::exchange(tensor.grouped_shape, "");
  tensor.written = "sum(" + in_terms_of(scales.used_rows, "r", columns) + "*" + in_terms_of(scales.used_columns, "r", columns) + ")";
  return tensor;
}

// Scales of G weights of N rows each.
TensorSchema scales_of_weights(std::string name, const BlockScales& scales, std::string when) {
  TensorSchema tensor{.name = std::move(name), .type = scales.type, .when = std::move(when), .compared = Compared::unpadded};
  tensor.shape = "G*" + in_terms_of(scales.rows, "N", "K") + "*" + in_terms_of(scales.columns, "N", "K");
  tensor.written = "G*" + in_terms_of(scales.used_rows, "N", "K") + "*" + in_terms_of(scales.used_columns, "N", "K");
  return tensor;
}

const std::string kInputs = "bf16|f16|f32", kPerTensor = "recipe=tensor_current|tensor_delayed";
const TensorSchema kSplits{.name = "splits", .type = "i64|i32", .shape = "G", .help = "rows of each group"};
TensorSchema optional_splits() {
  TensorSchema tensor = kSplits;
  tensor.need = Need::optional;
  tensor.help += "; without it one tensor of R rows, and G is 1";
  return tensor;
}

// Codes and scales that quantization writes and dequantization reads, of one direction.
List quantized(bool rowwise, const std::string& when) {
  const std::string prefix = rowwise ? "rowwise_" : "columnwise_";
  List list;
  const auto data = [&](std::string type, std::string shape, std::string grouped, const std::string& recipe, std::string written) {
    list.push_back({.name = prefix + "data", .type = std::move(type), .shape = std::move(shape), .grouped_shape = std::move(grouped),
                    .when = both(recipe, when), .compared = Compared::group_rows, .written = std::move(written)});
  };
  if (rowwise) {
    data("e2m1", "R,K/2", "", "recipe=nvfp4", "sum(r)*(K/2)");
    data("otype", "R,K", "", "recipe!=nvfp4", "sum(r)*K");
  } else {
    data("e2m1", "K,R/2", "R/2*K", "recipe=nvfp4", "sum(r/2)*K");
    data("otype", "R,K", "", "recipe=mxfp8", "sum(r)*K");
    data("otype", "K,R", "R*K", "recipe!=mxfp8|nvfp4", "sum(r)*K");
    list.front().help = list.back().help = "grouped: each group transposed at its own place";
  }
  list.push_back({.name = prefix + "scale_inv", .type = "f32", .shape = "G", .when = both(kPerTensor, when), .help = "one serves both directions"});
  for (const BlockScales& scales : kBlockScales) {
    if (scales.rowwise == rowwise) list.push_back(scales_of_rows(prefix + "scale_inv", scales, "K", both("recipe=" + scales.recipe, when), true));
  }
  return list;
}

OpTensors quantize() {
  OpTensors op{"quantize",
               {"recipe", "otype", "pow2", "eps", "scale_layout", "two_dimensional", "hadamard", "sign_mask", "stochastic", "draws", "direction", "four_over_six",
                "e4m3_max", "zero_sign", "dbias", "activation"},
               {}, {}};
  op.in = {{.name = "x", .type = kInputs, .shape = "R,K*H", .help = "H is 2 with an activation, gate then up, else 1"},
           optional_splits(),
           {.name = "scale", .type = "f32", .shape = "G", .when = "recipe=tensor_delayed"},
           {.name = "amax", .type = "f32", .shape = "G or 1", .when = "recipe=nvfp4", .need = Need::optional, .help = "without it that of x"},
           {.name = "columnwise_amax", .type = "f32", .shape = "G or 1", .when = "recipe=nvfp4", .need = Need::optional, .help = "without it that of what is quantized"},
           {.name = "noop", .type = "f32", .shape = "1", .need = Need::optional, .help = "exactly 1: nothing is written"},
           {.name = "rowwise_random", .type = "e8m0", .shape = "R*K", .when = "stochastic=1", .need = Need::optional,
            .help = "plain bytes, one an element; without it the direction is not written"},
           {.name = "columnwise_random", .type = "e8m0", .shape = "R*K", .when = "stochastic=1", .need = Need::optional,
            .help = "as rowwise_random, in the order in which columnwise_data is stored"},
           {.name = "rng_state", .type = "i64", .shape = "G,2", .when = "draws=te_vector_blockwise|te_tuned_1d|te_2d",
            .help = "seed and offset of each group, 64 bits without a sign, in place of random bytes"}};
  append(op.out, quantized(true, ""));
  append(op.out, quantized(false, ""));
  append(op.out, {{.name = "amax", .type = "f32", .shape = "G", .when = kPerTensor},
                  {.name = "amax", .type = "f32", .shape = "G", .when = "recipe=nvfp4"},
                  {.name = "columnwise_amax", .type = "f32", .shape = "G", .when = "recipe=nvfp4"},
                  {.name = "scale", .type = "f32", .shape = "G", .when = kPerTensor},
                  {.name = "dbias", .type = "as x", .shape = "G,K", .need = Need::depends, .help = "where it is requested, or dbias is 1"}});
  for (TensorSchema& each : op.out) {  // two codes a byte need an even extent, random rounding random bytes
    if (!each.when.starts_with("recipe=nvfp4")) continue;
    const bool columnwise = each.name.starts_with("columnwise");
    each.need = Need::depends;
    each.help += each.help.empty() ? "" : "; ";
    each.help += columnwise ? "where every group has an even number of rows" : "where K is even";
    each.help += std::string("; if stochastic=1 where in/") + (columnwise ? "columnwise" : "rowwise") + "_random is given, or draws are made for it";
  }
  return op;
}

OpTensors dequantize() {
  OpTensors op{"dequantize", {"recipe", "otype", "dtype_d", "direction", "scale_layout", "e4m3_max", "R", "K"}, {optional_splits()}, {}};
  append(op.in, quantized(true, "direction!=columnwise"));
  append(op.in, quantized(false, "direction=columnwise"));
  op.in.push_back({.name = "amax", .type = "f32", .shape = "G", .when = "recipe=nvfp4"});
  op.out = {{.name = "x", .type = "dtype_d", .shape = "R,K", .compared = Compared::group_rows, .written = "sum(r)*K"}};
  return op;
}

OpTensors swizzle(bool from_compact) {
  OpTensors op{from_compact ? "swizzle" : "unswizzle", {"recipe", "direction", "R", "K"}, {optional_splits()}, {}};
  for (const BlockScales& scales : kBlockScales) {
    if (scales.recipe != "mxfp8" && scales.recipe != "nvfp4") continue;
    const std::string when = "recipe=" + scales.recipe + (scales.rowwise ? " direction!=columnwise" : " direction=columnwise");
    TensorSchema compact = scales_of_rows("compact", scales, "K", when, true), swizzled = compact;
    swizzled.name = "swizzled", swizzled.compared = Compared::all, swizzled.written = "";
    op.in.push_back(from_compact ? compact : swizzled);
    op.out.push_back(from_compact ? swizzled : compact);
  }
  for (TensorSchema& each : op.out) each.help = from_compact ? "padding is 0" : "";
  return op;
}

OpTensors offsets() {
  return {"splits_to_offsets", {"stride"}, {kSplits}, {{.name = "offsets", .type = "i64", .shape = "G+1"}}};
}

OpTensors offsets_multi() {
  return {"splits_to_offsets_multi", {"outputs"}, {kSplits},
          {{.name = "offsets_#", .type = "i64|i32", .shape = "G+1 or G", .help = "one for each word of `outputs`, from 0 on; G where it says inclusive"}}};
}

OpTensors offsets_2d() {
  return {"splits_to_offsets_2d", {},
          {{.name = "first", .type = "i64|i32", .shape = "G"}, {.name = "last", .type = "as first", .shape = "G"}},
          {{.name = "offsets", .type = "as first", .shape = "G+1"}}};
}

OpTensors delayed_update() {
  const TensorSchema history{.name = "amax_history", .type = "f32", .shape = "length,n", .help = "newest in row 0"}, scale{.name = "scale", .type = "f32", .shape = "n"};
  return {"delayed_update", {"algorithm", "bulk", "otype", "margin"},
          {history, scale, {.name = "reduced", .type = "f32", .shape = "n", .when = "bulk=1", .need = Need::optional}}, {history, scale}};
}

OpTensors quantize_by_rule() {
  const auto data = [](std::string type, std::string shape, std::string when, std::string written) {
    return TensorSchema{.name = "data", .type = std::move(type), .shape = std::move(shape), .when = std::move(when),
                        .compared = Compared::group_rows, .written = std::move(written)};
  };
  return {"quantize_by_rule",
          {"preset", "rule", "outer", "scale_type", "otype", "block", "storage", "transposed"},
          {{.name = "x", .type = kInputs, .shape = "R,K*H", .help = "H is 2 where the rule has an activation, gate then up, else 1"},
           optional_splits(),
           {.name = "amax", .type = "f32", .shape = "A", .need = Need::optional, .help = "of each group, or of each row: what the rule has"}},
          {data("e2m1", "R,K/2", "otype=e2m1 transposed=0", "sum(r)*(K/2)"), data("e2m1", "R*K/2", "otype=e2m1 transposed=1", "sum(r/2)*K"),
           data("e8m0", "R,K*3/4", "otype=e3m2|e2m3 transposed=0", "sum(r)*(K*3/4)"),
           data("e8m0", "R*K*3/4", "otype=e3m2|e2m3 transposed=1", "sum(r*3/4)*K"),
           data("otype", "R,K", "otype=e4m3|e5m2 transposed=0", "sum(r)*K"), data("otype", "R*K", "otype=e4m3|e5m2 transposed=1", "sum(r)*K"),
           {.name = "scale_inv", .type = "scale_type", .shape = "S", .compared = Compared::unpadded, .written = "s",
            .help = "S elements as the storage has them, of which s are written"},
           {.name = "amax", .type = "f32", .shape = "A", .when = "outer=tensor|row", .compared = Compared::group_rows, .written = "a"}}};
}

OpTensors grouped_dbias() {
  const TensorSchema dbias{.name = "dbias", .type = "f32", .shape = "G,K"};
  TensorSchema before = dbias;
  before.when = "accumulate=1";
  return {"grouped_dbias", {"accumulate"}, {{.name = "dy", .type = kInputs, .shape = "R,K"}, kSplits, before}, {dbias}};
}

const TensorSchema kRowMap{.name = "row_map", .type = "i32", .shape = "R,T", .help = "row of each choice of each token, -1: dropped"};

OpTensors permute() {
  const auto output = [](const char* name, const char* type, const char* shape, const char* when, const char* written) {
    return TensorSchema{.name = name, .type = type, .shape = shape, .when = when, .compared = Compared::group_rows, .written = written,
                        .help = "rows that row_map does not name are unchanged"};
  };
  return {"permute", {"permuted_rows"},
          {{.name = "x", .type = "bf16|f16|f32|e4m3|e5m2", .shape = "R,K"}, kRowMap,
           {.name = "scale_inv", .type = "f32|e8m0", .shape = "R,S", .need = Need::optional}},
          {output("permuted", "as x", "P,K", "", "U*K"), output("permuted_scale_inv", "as scale_inv", "P,S", "in/scale_inv", "U*S")}};
}

OpTensors unpermute() {
  return {"unpermute", {"sums"},
          {{.name = "permuted", .type = kInputs, .shape = "P,K"}, kRowMap,
           {.name = "weights", .type = "f32", .shape = "R,T", .need = Need::optional}},
          {{.name = "x", .type = "as permuted", .shape = "R,K"}}};
}

// An operand of a product: plain, or quantized in one of its two storages, with its scales.
List operand(const std::string& name, const std::string& layout, const std::string& rows, const std::string& width) {
  const bool weight = name == "w";
  List list{{.name = name, .type = "kind", .shape = rows + "," + width, .when = both("kind=bf16|f16", layout)}};
  for (const bool rowwise : {true, false}) {
    const std::string prefix = name + (rowwise ? "_rowwise_" : "_columnwise_"), given = both("in/" + prefix + "data", layout);
    const auto data = [&](const char* type, const char* kind, std::string shape) {
      list.push_back({.name = prefix + "data", .type = type, .shape = std::move(shape), .when = both(std::string("kind=") + kind, layout),
                      .need = Need::depends, .help = "one of the two storages"});
    };
    data("e2m1", "nvfp4", rowwise ? rows + "," + width + "/2" : rows + "*" + width + "/2");
    if (rowwise && weight) {
      data("e4m3|e5m2", "tensor|block", rows + "," + width);
      data("e4m3|e5m2|e2m1", "mxfp8", rows + "," + width + " or " + rows + "," + width + "/2");
    } else if (rowwise) {
      data("e4m3|e5m2", "tensor|block|mxfp8", rows + "," + width);
    } else {
      data("e4m3|e5m2", "mxfp8", rows + "," + width);
      data("e4m3|e5m2", "tensor|block", rows + "*" + width);
    }
    list.push_back({.name = prefix + "scale_inv", .type = "f32", .shape = "G", .when = both("kind=tensor scaling!=per_row_column", given)});
    // A scale for each row of the operand as the contraction sees it.
    const std::string vectors = both("kind=tensor scaling=per_row_column", "in/" + prefix + "data");
    const char* const contracted = rowwise ? (name == "dy" ? "layout=NN" : "layout=TN") : weight ? "layout=NN" : "layout=NT";
    list.push_back({.name = prefix + "scale_inv", .type = "f32", .shape = rowwise ? rows : "G*" + width, .when = both(vectors, contracted)});
    const auto scales = [&](const char* recipe, const std::string& kind) {
      const BlockScales& of = block_scales(recipe, rowwise);
      list.push_back(weight ? scales_of_weights(prefix + "scale_inv", of, both(kind, given)) : scales_of_rows(prefix + "scale_inv", of, width, both(kind, given), false));
    };
    if (weight) {
      scales("block_1x128", "kind=block weight_block=1x128");
      scales("block_128x128", "kind=block weight_block!=1x128");
    } else {
      scales("block_1x128", "kind=block");
    }
    scales("mxfp8", "kind=mxfp8");
    scales("nvfp4", "kind=nvfp4");
    list.push_back({.name = prefix + "amax", .type = "f32", .shape = "G", .when = both("kind=nvfp4", given), .need = Need::depends,
                    .help = "needed where the operand has elements"});
  }
  return list;
}

OpTensors grouped_gemm() {
  OpTensors op{"grouped_gemm",
               {"kind", "layout", "N", "K", "weight_block", "scale_layout", "split_accumulator", "dtype_d", "alpha", "beta", "bias", "arch", "plan", "scaling",
                "grouped_layout", "alignment", "groups", "max_m"},
               {}, {}};
  TensorSchema splits = kSplits;
  splits.when = "grouped_layout!=m_indices|psum";
  op.in = {splits, {.name = "m_indices", .type = "i32", .shape = "R", .when = "grouped_layout=m_indices", .help = "group of each row, -1: none"},
           {.name = "psum", .type = "i32", .shape = "G", .when = "grouped_layout=psum", .help = "end of each group"}};
  append(op.in, operand("x", "layout!=NN", "R", "K"));
  append(op.in, operand("dy", "layout!=TN", "R", "N"));
  append(op.in, operand("w", "layout!=NT", "G*N", "K"));
  struct Result { const char* layout; const char* shape; const char* written; };
  for (const Result& d : {Result{"TN", "R,N", "W*N"}, Result{"NN", "R,K", "W*K"}, Result{"NT", "G*N,K", ""}}) {
    const std::string when = std::string("layout=") + d.layout;
    op.in.push_back({.name = "c", .type = "dtype_d", .shape = d.shape, .when = when, .need = Need::depends, .help = "needed where a beta is not 0"});
    op.out.push_back({.name = "d", .type = "dtype_d", .shape = d.shape, .when = when,
                      .compared = d.written[0] == '\0' ? Compared::all : Compared::group_rows, .written = d.written});
  }
  append(op.in, {{.name = "bias", .type = "dtype_d", .shape = "G,N", .when = "bias=1"},
                 {.name = "d_scale", .type = "f32", .shape = "G", .when = "dtype_d=e4m3|e5m2"},
                 {.name = "alpha", .type = "f32", .shape = "G", .need = Need::optional, .help = "in place of the attribute"},
                 {.name = "beta", .type = "f32", .shape = "G", .need = Need::optional, .help = "in place of the attribute"}});
  return op;
}

const std::vector<std::string_view> kLinearAttributes{"recipe", "itype", "otype", "grad_otype", "pow2", "eps", "sign_mask", "arch", "plan", "bias", "N", "K", "activation"};

TensorSchema rows_by(const char* name, const char* width) {
  return {.name = name, .type = "itype", .shape = std::string("R,") + width, .compared = Compared::group_rows, .written = std::string("sum(r)*") + width};
}
TensorSchema given_x() {
  TensorSchema x = rows_by("x", "K*H");
  x.help = "H is 2 with an activation, gate then up, else 1";
  return x;
}
TensorSchema scale_of(const char* name) { return {.name = name, .type = "f32", .shape = "G", .when = "recipe=tensor_delayed"}; }
const TensorSchema kWeights{.name = "w", .type = "itype", .shape = "G*N,K"};
const TensorSchema kBiasGradient{.name = "dbias", .type = "itype", .shape = "G,N", .when = "bias=1"};

OpTensors linear_forward() {
  OpTensors op{"linear_forward", kLinearAttributes, {given_x(), kWeights, kSplits}, {rows_by("y", "N")}};
  op.attributes.push_back("scale_layout");
  List cache{{.name = "w_rowwise_data", .type = "e2m1", .shape = "G*N,K/2", .when = "in/noop recipe=nvfp4"},
             {.name = "w_rowwise_data", .type = "otype", .shape = "G*N,K", .when = "in/noop recipe!=nvfp4"},
             {.name = "w_rowwise_scale_inv", .type = "f32", .shape = "G", .when = both("in/noop", kPerTensor)},
             scales_of_weights("w_rowwise_scale_inv", block_scales("block_128x128", true), "in/noop recipe=block"),
             scales_of_weights("w_rowwise_scale_inv", block_scales("mxfp8", true), "in/noop recipe=mxfp8"),
             scales_of_weights("w_rowwise_scale_inv", block_scales("nvfp4", true), "in/noop recipe=nvfp4"),
             {.name = "w_rowwise_amax", .type = "f32", .shape = "G", .when = "in/noop recipe=nvfp4"}};
  for (TensorSchema& each : cache) each.help = "the weight cache";
  append(op.in, {{.name = "bias", .type = "itype", .shape = "G,N", .need = Need::optional},
                 scale_of("x_scale"), scale_of("w_scale"),
                 {.name = "noop", .type = "f32", .shape = "1", .when = "recipe!=none", .need = Need::optional, .help = "exactly 1: the cache is used as it is; else it is renewed"}});
  append(op.in, cache);
  append(op.out, cache);
  return op;
}

OpTensors linear_dgrad() {
  return {"linear_dgrad", kLinearAttributes, {rows_by("dy", "N"), kWeights, kSplits, scale_of("dy_scale"), scale_of("w_scale")},
          {rows_by("dx", "K"), kBiasGradient}};
}

OpTensors linear_wgrad() {
  OpTensors op{"linear_wgrad", kLinearAttributes, {rows_by("dy", "N"), given_x(), kSplits, scale_of("dy_scale"), scale_of("x_scale")},
               {{.name = "dw", .type = "dtype_d", .shape = "G*N,K"}, kBiasGradient}};
  for (const char* each : {"dtype_d", "accumulate", "deferred"}) op.attributes.push_back(each);
  op.in.push_back({.name = "main_grad", .type = "dtype_d", .shape = "G*N,K", .when = "accumulate=1"});
  return op;
}

}  // namespace

std::span<const OpTensors> tensor_schema() {
  static const std::vector<OpTensors> table{quantize(),      quantize_by_rule(), dequantize(),     swizzle(true),   swizzle(false), offsets(),        offsets_multi(), offsets_2d(),
                                            delayed_update(), grouped_dbias(), permute(), unpermute(), grouped_gemm(), linear_forward(), linear_dgrad(), linear_wgrad()};
  return table;
}

const OpTensors& tensors_of(std::string_view op) {
  for (const OpTensors& each : tensor_schema()) {
    if (each.op == op) return each;
  }
  throw InvalidArgument("op", std::string(op), "an op that has tensors");
}

}  // namespace assay::conformance
