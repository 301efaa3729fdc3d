// The part of the catalogue that is about sizes: both sides of every power of two to 4096 in every length of every op,
// every residue class of a tile, a block and a step, many groups, many elements. Long in one length and short in the others.

#include <utility>

#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/covering.h"
#include "conformance/catalogue/size_lines.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

void quantize_sizes(Lines& lines) {
  const Axis input{"x_type=bf16", "x_type=f32", "x_type=f16"}, codes{"", "otype=e5m2"},
      data{"data=uniform", "data=normal", "data=full_exponent"};
  const Axis any_recipe{"recipe=mxfp8", "recipe=block_1x128", "recipe=block_128x128", "recipe=tensor_current"};
  const Axis fp8{"", "pow2=1", "eps=0.01"}, layout{"", "scale_layout=swizzled"}, dbias{"", "dbias=1"};
  struct Recipe {
    const char* words;
    std::vector<Axis> options;
    std::int64_t unit = 1;
  };
  const Recipe recipes[] = {
      {"recipe=block_1x128", {input, codes, fp8, data, dbias}},
      {"recipe=block_128x128", {input, codes, fp8, data, dbias}},
      {"recipe=tensor_current", {input, codes, fp8, data, dbias}},
      {"recipe=tensor_delayed", {input, codes, data, {"scales=plain", "scales=pow2"}, dbias, {"", "outputs=all"}}},
      {"recipe=mxfp8", {input, codes, layout, data, dbias}},
      {"recipe=mxfp8 two_dimensional=1", {input, codes, layout, data}},
      {"recipe=nvfp4", {input, layout, data, {"", "stochastic=1", "four_over_six=mse"}, dbias}, 2},
      {"recipe=nvfp4 two_dimensional=1", {input, layout, data}, 16},
      {"recipe=nvfp4 hadamard=1 sign_mask=45576", {layout, data, {"", "stochastic=1"}}, 16},
  };
  std::size_t turn = 0;
  for (const Recipe& recipe : recipes) {
    const std::string prefix = std::string("quantize ") + recipe.words;
    const bool is_slow = prefix.find("hadamard") != std::string::npos;
    for (const Pair& each : pairs(turn++, 3, recipe.unit))
      lines.add(prefix + words("R", each.length, "K", is_slow ? 16 : each.beside), recipe.options);
    for (const Pair& each : pairs(turn++, 3, recipe.unit))
      lines.add(prefix + words("K", each.length, "R", is_slow ? 16 : each.beside), recipe.options);
    // Rows of groups: each residue, and where the next group then starts. Many groups.
    const bool any = recipe.unit == 1;
    lines.add(prefix + (any                ? " splits=1,15,16,17,0,64,65,112,127,129,128 K=79"
                        : recipe.unit == 2 ? " splits=2,14,16,18,0,64,66,112,126,130,128 K=80"
                                           : " splits=16,48,0,64,112,128 K=80"),
              recipe.options);
    lines.add(prefix + (any                ? " splits=1025x1 K=17"
                        : recipe.unit == 2 ? " splits=1025x2 K=18"
                                           : " splits=17x16,1008x0 K=16"),
              recipe.options);
    lines.add(prefix + " splits=17x32 K=64", recipe.options);
    lines.add(prefix + " splits=65x16 K=48", recipe.options);
    // Past 2^18 elements: long rows, many of them for the tiles of mxfp8.
    const bool many = prefix.find("mxfp8 two_dimensional") != std::string::npos;
    if (!is_slow)
      lines.add(prefix + (recipe.unit == 16 ? " R=1040 K=272" : many ? " R=2066 K=130" : " R=130 K=2066"), recipe.options);
  }
  small_sizes("quantize", "R", {any_recipe, input, codes}, lines);
  lines.add("quantize recipe=block_1x128 R=3 K=16641", {input});  // 131 scales in a row, and in a column
  lines.add("quantize recipe=block_1x128 R=16641 K=3", {input});
  lines.add("quantize recipe=block_128x128 R=3 K=16641", {input});
  lines.add("quantize recipe=block_128x128 R=16641 K=3", {input});
  lines.add("quantize recipe=block_1x128 pow2=1 R=4097 K=257", {});  // past 2^20 elements
  lines.add("quantize recipe=tensor_current R=4097 K=257", {});
  lines.add("quantize recipe=mxfp8 scale_layout=swizzled R=4097 K=257", {});
}

void layout_sizes(Lines& lines) {
  std::size_t turn = 0;
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    const bool packed = recipe == std::string("nvfp4");
    const std::vector<Axis> options{{"", "direction=columnwise"},
                                    {"d_type=f32", "d_type=bf16", "d_type=f16"},
                                    {"", "otype=e5m2"},
                                    {"", "scale_layout=swizzled"}};
    const std::string prefix = std::string("dequantize recipe=") + recipe;
    for (const Pair& each : pairs(turn++, 2, packed ? 2 : 1))
      lines.add(prefix + words("R", each.length, "K", each.beside), options);
    for (const Pair& each : pairs(turn++, 2, packed ? 2 : 1))
      lines.add(prefix + words("K", each.length, "R", each.beside), options);
    lines.add(
        prefix + (packed ? " splits=2,14,16,18,0,64,66,112,126,130,128 K=80" : " splits=1,15,16,17,0,64,65,112,127,129,128 K=79"),
        options);
    lines.add(prefix + (packed ? " splits=1025x2 K=16" : " splits=1025x1 K=17"), options);
    lines.add(prefix + (packed ? " splits=17x32 K=32" : " splits=65x16 K=32"), options);
  }
  small_sizes(
      "dequantize", "R",
      {{"recipe=block_1x128", "recipe=mxfp8", "recipe=tensor_current", "recipe=block_128x128"}, {"", "direction=columnwise"}},
      lines);
  for (const char* op : {"swizzle", "unswizzle"})
    small_sizes(op, "R", {{"recipe=mxfp8", "recipe=nvfp4"}, {"", "direction=columnwise"}}, lines);
  lines.add("dequantize recipe=block_1x128 d_type=bf16 R=4097 K=257", {});
  lines.add("dequantize recipe=mxfp8 R=1025 K=257", {});
  for (const char* op : {"swizzle", "unswizzle"}) {
    for (const char* recipe : {"mxfp8", "nvfp4"}) {
      const std::string prefix = std::string(op) + " recipe=" + recipe;
      const std::vector<Axis> options{{"", "direction=columnwise"}};
      for (const Pair& each : pairs(turn, 5, 1, 1)) lines.add(prefix + words("R", each.length, "K", each.beside), options);
      for (const Pair& each : pairs(turn, 5, 1, 1)) lines.add(prefix + words("K", each.length, "R", each.beside), options);
      turn += 5;
      lines.add(prefix + " splits=1,15,16,17,0,64,65,112,127,129,128 K=79", options);
      lines.add(prefix + " splits=1025x1 K=17", options);
      lines.add(prefix + " splits=17x32 K=32", options);
      lines.add(prefix + " splits=65x16 K=32", options);
      lines.add(prefix + " R=1025 K=1025", options);
    }
  }
  const std::vector<Axis> dbias{{"x_type=bf16", "x_type=f32", "x_type=f16"},
                                {"", "accumulate=1"},
                                {"data=uniform", "data=adversarial_dbias", "data=normal"}};
  for (const Pair& each : pairs(turn++, 8)) lines.add("grouped_dbias" + words("splits", each.length, "K", each.beside), dbias);
  for (const Pair& each : pairs(turn++, 8)) lines.add("grouped_dbias" + words("K", each.length, "splits", each.beside), dbias);
  lines.add("grouped_dbias splits=1,15,16,17,0,64,65,112,127,129,128 K=79", dbias);
  small_sizes("grouped_dbias", "splits", dbias, lines);
  lines.add("grouped_dbias splits=1025x1 K=17", dbias);
  lines.add("grouped_dbias splits=17x32 K=32", dbias);
  lines.add("grouped_dbias splits=65x16 K=32", dbias);
  lines.add("grouped_dbias splits=1026 K=258", dbias);
  lines.add("grouped_dbias splits=4097 K=257", dbias);
  const std::vector<Axis> update{
      {"", "algorithm=most_recent"}, {"", "bulk=0"}, {"data=uniform", "data=sparse"}, {"", "reduced=1"}};
  for (const Pair& each : pairs(turn++, 8))
    lines.add("delayed_update" + words("tensors", each.length, "length", each.beside), update);
  for (const Pair& each : pairs(turn++, 8))
    lines.add("delayed_update" + words("length", each.length, "tensors", each.beside), update);
  for (const auto& [one, other] : kBeside) lines.add("delayed_update" + words("tensors", one, "length", other), update);
  lines.add("delayed_update tensors=1026 length=1026", update);
}

// Lengths of a product: rows of the groups, N and K, one long and two short.
struct Product {
  std::string words;
  std::vector<Axis> options;
  std::int64_t unit = 1;
  bool any_rows = true;  // groups need not be multiples of the unit
};

// `longest` sizes of the end of the range in one of the three lengths, the next one with every turn; `others` others in each.
void product_sizes(const Product& product, std::size_t turn, std::size_t longest, std::size_t others, Lines& lines) {
  const auto up = [&](std::int64_t length) { return (length + product.unit - 1) / product.unit * product.unit; };
  const std::int64_t shorts[] = {up(9), up(16), up(5), up(12)};
  const std::int64_t few = product.any_rows ? 5 : product.unit;
  for (std::size_t length = 0; length < 3; ++length) {
    const std::size_t ends = turn / 3 % 3 == length ? longest : 0;
    std::size_t i = 0;
    for (const Pair& each : pairs(turn + length, others, product.unit, ends)) {
      const std::int64_t a = shorts[(turn + i) % 4], b = shorts[(turn + i + 1) % 4];
      ++i;
      if (length == 0)
        lines.add(product.words + " splits=" + show(product.unit) + ",0," + show(each.length) + words("N", a, "K", b),
                  product.options);
      if (length == 1) lines.add(product.words + " splits=" + show(few) + words("N", each.length, "K", b), product.options);
      if (length == 2) lines.add(product.words + " splits=" + show(few) + words("K", each.length, "N", b), product.options);
    }
  }
}

void gemm_sizes(Lines& lines) {
  const Axis layout{"layout=TN", "layout=NN", "layout=NT"}, d{"d_type=f32", "d_type=bf16", "d_type=f16"}, beta{"", "beta=1"};
  const std::vector<Axis> options{layout, d, beta};
  const Product products[] = {
      {"grouped_gemm kind=bf16", options},
      {"grouped_gemm kind=fp8_per_tensor", options, 16},
      {"grouped_gemm kind=fp8_per_tensor split_accumulator=1", options, 16},
      {"grouped_gemm kind=fp8_block", options, 16},
      {"grouped_gemm kind=mxfp8", options, 16, false},
      {"grouped_gemm kind=nvfp4", options, 16, false},
      {"grouped_gemm kind=f16", options},
      {"grouped_gemm kind=fp8_per_tensor", options},
      {"grouped_gemm kind=fp8_block", options},
  };
  std::size_t turn = 0;
  for (const Product& each : products) {
    if (turn < 18) product_sizes(each, turn, 1, 3, lines);
    turn += 3;
    // Residues of a tile and of a step in every length, and many groups.
    const bool any = each.unit == 1;
    lines.add(each.words + (any ? " splits=1,15,0,17 N=127 K=65" : " splits=16,0,48 N=112 K=144"), options);
    lines.add(each.words + (any ? " splits=65,127 N=15 K=112" : " splits=64,112 N=16 K=80"), options);
    lines.add(each.words + (any ? " splits=112 N=65 K=127" : " splits=48 N=144 K=112"), options);
    lines.add(each.words + (any ? " splits=65x3 N=9 K=15" : " splits=17x16 N=16 K=16"), options);
  }
  for (const char* kind : {"grouped_gemm kind=bf16", "grouped_gemm kind=fp8_per_tensor"}) {
    lines.add(std::string(kind) + " splits=5 N=128 K=16", options);
    lines.add(std::string(kind) + " splits=5 N=129 K=17", options);
    lines.add(std::string(kind) + " splits=5 N=32 K=128", options);
    lines.add(std::string(kind) + " splits=5 N=33 K=129", options);
    lines.add(std::string(kind) + " splits=5 N=64 K=32", options);
    lines.add(std::string(kind) + " splits=5 N=65 K=33", options);
  }
  lines.add("grouped_gemm kind=bf16 splits=1025x1 N=5 K=8", {layout, d});
  lines.add("grouped_gemm kind=fp8_per_tensor splits=1025x1 N=16 K=16", {layout, d});
  lines.add("grouped_gemm kind=fp8_block splits=1025x1 N=8 K=8", {layout, d});
  lines.add("grouped_gemm kind=bf16 d_type=f32 splits=1026 N=258 K=8", {});  // past 2^18 elements of D
}

// Products of one row, column or product an element, and of none.
void thin_products(Lines& lines) {
  const Axis d{"d_type=f32", "d_type=bf16", "d_type=f16"}, beta{"", "beta=1"};
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    const bool any = kind != std::string("nvfp4");
    for (const char* layout : {"TN", "NN", "NT"}) {
      const std::string text = std::string("grouped_gemm kind=") + kind + " layout=" + layout + " splits=32,0,16";
      for (const char* sizes : {" N=32 K=0", " N=0 K=32"}) lines.add(text + sizes, {d, beta});
      if (!any) continue;
      for (const char* sizes : {" N=1 K=32", " N=32 K=1"}) lines.add(text + sizes, {d, beta});
    }
  }
}

void linear_sizes(Lines& lines) {
  const Axis bias{"", "bias=1"}, type{"x_type=bf16", "x_type=f16"},
      any{"recipe=none", "recipe=tensor_current", "recipe=tensor_delayed", "recipe=fp8_block"};
  const Axis mx{"recipe=mxfp8", "recipe=nvfp4"};
  std::size_t turn = 0;
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    for (const std::size_t length : {0, 1, 2})
      product_sizes({op, {any, type, bias}, 16}, turn + 3 * length, length == turn / 3 % 3 ? 2 : 1, length == 0 ? 3 : 0, lines);
    product_sizes({op, {mx, type, bias}, 16, false}, turn, 1, 0, lines);
    turn += 11;
    lines.add(std::string(op) + " splits=1,15,0,17 N=127 K=65", {any, bias});
    lines.add(std::string(op) + " splits=112,127 N=16 K=129", {any, bias});
    lines.add(std::string(op) + " splits=17x3 N=15 K=16", {any, bias});
    lines.add(std::string(op) + " splits=65x2 N=15 K=16", {any, bias});
    lines.add(std::string(op) + " splits=32,33 N=32 K=17", {any, bias});
    lines.add(std::string(op) + " splits=128,0 N=17 K=32", {any, bias});
    lines.add(std::string(op) + " splits=64,65 N=33 K=33", {any, bias});
    lines.add(std::string(op) + " splits=5 N=64 K=128", {any, bias});
    lines.add(std::string(op) + " splits=16 N=128 K=16", {any, bias});
    lines.add(std::string(op) + " splits=129 N=129 K=15", {any, bias});
    lines.add(std::string(op) + " splits=127 N=65 K=112", {any, bias});
    lines.add(std::string(op) + " splits=5 N=112 K=127", {any, bias});
    lines.add(std::string(op) + " splits=1025x1 N=8 K=8", {any, bias});
  }
}

// Groups of one row and column: each special value is an amax, a scale, a sum by itself.
void single_values(Lines& lines) {
  const Axis codes{"", "otype=e5m2"}, dbias{"", "dbias=1"};
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    const std::string columns = recipe == std::string("nvfp4") ? " direction=rowwise splits=65x1 K=2" : " splits=65x1 K=1";
    for (const char* x_type : {"bf16", "f16", "f32"}) {
      lines.add(std::string("quantize recipe=") + recipe + " x_type=" + x_type + columns + " data=every_special", {dbias, codes});
    }
  }
  for (const char* x_type : {"bf16", "f16", "f32"})
    lines.add(std::string("grouped_dbias x_type=") + x_type + " splits=65x1 K=3 data=every_special", {});
  for (const char* op : {"linear_dgrad", "linear_wgrad"}) {
    for (const char* x_type : {"bf16", "f16"})
      lines.add(std::string(op) + " recipe=none x_type=" + x_type + " splits=65x1 N=3 K=8 bias=1 data=every_special", {});
  }
}

// Two runs of empty groups between others, longer than a warp, a block of threads or a word of flags has places.
void empty_runs(Lines& lines) {
  const std::string any = " splits=5,66x0,7,257x0,9", packed = " splits=6,66x0,8,257x0,10", tiles = " splits=16,66x0,32,257x0,48";
  const Axis direction{"", "direction=columnwise"}, layout{"layout=TN", "layout=NN", "layout=NT"},
      type{"x_type=bf16", "x_type=f16"};
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    const std::string& splits = recipe == std::string("nvfp4") ? packed : any;
    lines.add(std::string("quantize recipe=") + recipe + splits + " K=40", {{"", "dbias=1"}});
    lines.add(std::string("dequantize recipe=") + recipe + splits + " K=40", {direction});
  }
  for (const char* op : {"swizzle", "unswizzle"}) {
    for (const char* recipe : {"mxfp8", "nvfp4"}) lines.add(std::string(op) + " recipe=" + recipe + any + " K=40", {direction});
  }
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    const bool by_16 = kind == std::string("mxfp8") || kind == std::string("nvfp4");
    for (const std::string& each : layout) {
      lines.add(std::string("grouped_gemm kind=") + kind + " " + each + (by_16 ? tiles + " N=16 K=16" : any + " N=3 K=8"),
                {{"d_type=f32", "d_type=bf16"}});
    }
  }
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    lines.add(std::string(op) + tiles + " N=16 K=16",
              {{"recipe=none", "recipe=tensor_current", "recipe=fp8_block"}, type, {"", "bias=1"}});
  }
  lines.add("grouped_dbias" + any + " K=40", {type});
}

// One row short of a tile of 256 or 512 rows, and one past it; as many columns.
void large_tiles(Lines& lines) {
  const Axis layout{"layout=TN", "layout=NN", "layout=NT"}, d{"d_type=f32", "d_type=bf16"}, codes{"", "otype=e5m2"};
  const std::string any = " splits=255,0,511,257,513", packed = " splits=254,0,510,258,514", tiles = " splits=240,0,496,272";
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    const bool by_2 = recipe == std::string("nvfp4");
    const std::string quantize = std::string("quantize recipe=") + recipe,
                      dequantize = std::string("dequantize recipe=") + recipe;
    lines.add(quantize + (by_2 ? packed : any) + (by_2 ? " K=18" : " K=17"), {codes});
    lines.add(quantize + (by_2 ? " R=6 K=1022" : " R=5 K=1023"), {codes});
    lines.add(quantize + (by_2 ? " R=6 K=510" : " R=5 K=511"), {codes});
    lines.add(dequantize + (by_2 ? packed : any) + (by_2 ? " K=18" : " K=17"), {{"", "direction=columnwise"}});
  }
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    const std::string gemm = std::string("grouped_gemm kind=") + kind;
    const bool by_16 = kind == std::string("mxfp8") || kind == std::string("nvfp4");
    for (const std::string& each : layout) lines.add(gemm + " " + each + (by_16 ? tiles + " N=16 K=16" : any + " N=7 K=9"), {d});
    for (const char* sizes : {" N=511 K=8", " N=8 K=511", " N=8 K=1023"})
      lines.add(gemm + (by_16 ? " splits=16 N=496 K=48" : std::string(" splits=5") + sizes), {layout, d});
  }
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    lines.add(std::string(op) + any + " N=8 K=8", {{"recipe=none", "recipe=tensor_current", "recipe=fp8_block"}, {"", "bias=1"}});
    for (const char* recipe : {"mxfp8", "nvfp4"})
      lines.add(std::string(op) + " recipe=" + recipe + " splits=65x16 N=16 K=16", {{"", "bias=1"}});
  }
  lines.add("grouped_dbias" + any + " K=17", {});
}

// Results of more than 2^20 elements, of few products each, in every layout; of more than 2^18 in every kind and step.
void large_results(Lines& lines) {
  for (const char* words :
       {"grouped_gemm kind=bf16 splits=1040 N=1040 K=1", "grouped_gemm kind=f16 layout=NN d_type=f32 splits=1040 N=2 K=1040",
        "grouped_gemm kind=fp8_per_tensor layout=NT splits=1 N=1040 K=1040",
        "grouped_gemm kind=fp8_block layout=NN splits=528 N=3 K=528", "grouped_gemm kind=mxfp8 splits=528 N=528 K=16",
        "grouped_gemm kind=nvfp4 layout=NT d_type=f32 splits=16 N=528 K=528",
        "linear_forward recipe=tensor_current bias=1 splits=1040 N=1040 K=1", "linear_dgrad recipe=none splits=528 N=2 K=528",
        "linear_wgrad recipe=fp8_block splits=1 N=528 K=528"}) {
    lines.add(words, {});
  }
}

}  // namespace

std::vector<CaseLine> size_lines() {
  Lines lines(60000);
  quantize_sizes(lines);
  layout_sizes(lines);
  gemm_sizes(lines);
  linear_sizes(lines);
  thin_products(lines);
  single_values(lines);
  empty_runs(lines);
  large_tiles(lines);
  large_results(lines);
  rule_sizes(lines);
  return lines.take();
}

}  // namespace assay::conformance
