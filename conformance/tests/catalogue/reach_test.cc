// The sizes that standard reaches in each op and dimension, and how many elements full compares in each kind of output.

#include "conformance/catalogue/reach.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "reference/formats/encode.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

const std::map<std::string, Reach>& standard() {
  static const std::map<std::string, Reach> reach = reach_of(catalogue(Profile::standard));
  return reach;
}

// The three steps of a layer count as one op here: each covers the ends of the range, together they cover every size.
Reach layer() {
  Reach all;
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    for (const auto& [name, lengths] : standard().at(op).lengths) all.lengths[name].insert(lengths.begin(), lengths.end());
  }
  return all;
}

TEST(Reach, HasBothSidesOfEveryPowerOfTwo) {
  std::map<std::string, Reach> reach = standard();
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    for (const char* name : {"R", "N", "K"}) EXPECT_GE(*reach.at(op).lengths.at(name).rbegin(), 4096) << op << " " << name;
    reach.erase(op);
  }
  reach["a layer"] = layer();
  for (const auto& [op, each] : reach) {
    for (const auto& [name, lengths] : each.lengths) {
      if (!is_extent(name)) continue;
      for (std::int64_t power = 16; power <= 4096; power *= 2)
        EXPECT_TRUE(on_both_sides(lengths, power)) << op << " " << name << ": " << power;
    }
  }
}

TEST(Reach, HasEveryResidue) {
  std::map<std::string, Reach> reach = standard();
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) reach.erase(op);
  reach["a layer"] = layer();
  for (const auto& [op, each] : reach) {
    for (const char* name : {"R", "K", "N"}) {
      const auto lengths = each.lengths.find(name);
      if (lengths == each.lengths.end()) continue;
      for (const std::int64_t residue : {0, 1, 15, 16, 64, 112, 127}) {
        const bool met = std::any_of(lengths->second.begin(), lengths->second.end(),
                                     [&](std::int64_t length) { return length > 0 && length % 128 == residue; });
        EXPECT_TRUE(met) << op << " " << name << ": " << residue << " of 128";
      }
    }
  }
}

// One process makes more calls than 16 bits count.
TEST(Reach, OfFullIsManyCallsInOneProcess) {
  std::map<std::string, int> replays;
  for (const CaseLine& line : catalogue(Profile::full)) {
    if (line.op != "scenario") replays[line.op] = std::max(replays[line.op], replay_plan(line).count);
  }
  EXPECT_GT(replays["splits_to_offsets"], 1 << 16);
  EXPECT_GT(replays["quantize"], 20'000);
  EXPECT_GT(replays["grouped_gemm"], 20'000);
}

TEST(Reach, HasManyGroupsElementsScalesAndTiles) {
  for (const auto& [op, each] : standard()) {
    const auto largest = [&](const char* name) { return each.lengths.count(name) == 0 ? 0 : *each.lengths.at(name).rbegin(); };
    if (each.lengths.count("groups") != 0) {
      for (const std::int64_t groups : {17, 65, 1025})
        EXPECT_TRUE(each.lengths.at("groups").count(groups)) << op << ": " << groups << " groups";
    }
    const bool layer = op.starts_with("linear_"), product = layer || op == "grouped_gemm";
    if (each.lengths.count("elements") != 0 && !product) EXPECT_GT(largest("elements"), 1 << 20) << op;
    if (each.lengths.count("scales") != 0) EXPECT_GT(largest("scales"), 128) << op;
    if (each.lengths.count("tiles") != 0) EXPECT_GT(largest("tiles"), 16) << op;
  }
}

// Results of more than 2^18 elements in every kind of product and every step of a layer, of more than 2^20 in every layout.
TEST(Reach, HasLargeResultsOfProducts) {
  std::map<std::string, std::int64_t> of_kind, of_layout;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "grouped_gemm" && !line.op.starts_with("linear_")) continue;
    const std::vector<std::int64_t> splits = line.splits();
    const std::int64_t rows = std::accumulate(splits.begin(), splits.end(), std::int64_t{0}), N = line.integer("N"),
                       K = line.integer("K");
    const bool product = line.op == "grouped_gemm";
    const std::string layout = product                       ? line.text("layout")
                               : line.op == "linear_forward" ? "TN"
                               : line.op == "linear_dgrad"   ? "NN"
                                                             : "NT";
    const std::int64_t elements = layout == "TN"   ? rows * N
                                  : layout == "NN" ? rows * K
                                                   : static_cast<std::int64_t>(splits.size()) * N * K;
    for (std::int64_t* most : {&of_kind[product ? line.text("kind") : line.op], &of_layout[product ? layout : "a layer"]})
      *most = std::max(*most, elements);
  }
  EXPECT_EQ(of_kind.size(), 9u);
  for (const auto& [kind, most] : of_kind) EXPECT_GT(most, 1 << 18) << kind;
  EXPECT_EQ(of_layout.size(), 4u);
  for (const auto& [layout, most] : of_layout) EXPECT_GT(most, 1 << 20) << layout;
}

// One and zero rows, columns and products for each element, in every kind and layout that allows so few.
TEST(Reach, HasThinProducts) {
  std::set<std::string> met;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "grouped_gemm") continue;
    for (const char* size : {"N", "K"})
      met.insert(line.text("kind") + " " + line.text("layout") + " " + size + "=" + line.text(size));
  }
  int possible = 0;
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    for (const char* layout : {"TN", "NN", "NT"}) {
      for (const auto& [size, other] :
           {std::pair("N=0", "K=32"), std::pair("N=1", "K=32"), std::pair("K=0", "N=32"), std::pair("K=1", "N=32")}) {
        try {
          parse_case_line(std::string("grouped_gemm splits=16 kind=") + kind + " layout=" + layout + " " + size + " " + other);
        } catch (const InvalidArgument&) {
          continue;  // packed codes come in groups of 16
        }
        ++possible;
        EXPECT_TRUE(met.count(std::string(kind) + " " + layout + " " + size)) << kind << " " << layout << " " << size;
      }
    }
  }
  EXPECT_EQ(possible, 5 * 3 * 4 + 3 * 2);
}

bool has_key(const CaseLine& line, std::string_view key) { return find_key(*find_op(line.op), key) != nullptr; }

const std::vector<CaseLine>& standard_lines() {
  static const std::vector<CaseLine> lines = catalogue(Profile::standard);
  return lines;
}

// What selects the kernel for a line of an op: the recipe or kind, and the layout of a product.
std::string kernel_of(const CaseLine& line) {
  std::string name = line.op;
  for (const char* key : {"recipe", "kind", "layout"}) {
    if (has_key(line, key)) name += " " + line.text(key);
  }
  return name;
}

std::set<std::string> kernels_where(const std::function<bool(const CaseLine&, const std::vector<std::int64_t>& splits)>& meets) {
  std::set<std::string> found;
  for (const CaseLine& line : standard_lines()) {
    if (line.op != "scenario" && has_key(line, "splits") && line.has("splits") && meets(line, line.splits()))
      found.insert(kernel_of(line));
  }
  return found;
}

// More consecutive empty groups than a word has bits or a block has threads, twice, with other groups before, between and after.
TEST(Reach, HasLongRunsOfEmptyGroups) {
  const std::set<std::string> kernels = kernels_where([](const CaseLine&, const std::vector<std::int64_t>& splits) {
    std::vector<std::int64_t> runs;
    std::int64_t run = 0;
    bool begun = false;
    for (const std::int64_t rows : splits) {
      if (rows == 0) {
        ++run;
        continue;
      }
      if (begun && run > 0) runs.push_back(run);
      begun = true;
      run = 0;
    }
    return runs.size() > 1 && runs.front() > 64 && runs.back() > 256;
  });
  for (const char* op : {"quantize", "dequantize"}) {
    for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
      EXPECT_TRUE(kernels.count(std::string(op) + " " + recipe)) << op << " " << recipe;
    }
  }
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    for (const char* layout : {"TN", "NN", "NT"}) {
      EXPECT_TRUE(kernels.count(std::string("grouped_gemm ") + kind + " " + layout)) << kind << " " << layout;
    }
  }
  for (const char* op : {"swizzle mxfp8", "swizzle nvfp4", "unswizzle mxfp8", "unswizzle nvfp4", "grouped_dbias",
                         "splits_to_offsets", "splits_to_offsets_multi"}) {
    EXPECT_TRUE(kernels.count(op)) << op;
  }
}

// A group that ends one row before the end of a tile of 256 or 512 rows, and one that ends one row after it.
TEST(Reach, HasResiduesOfLargeTiles) {
  for (const std::int64_t tile : {256, 512}) {
    for (const std::int64_t residue : {std::int64_t{1}, tile - 1}) {
      const std::set<std::string> kernels = kernels_where([&](const CaseLine&, const std::vector<std::int64_t>& splits) {
        return splits.size() > 1 && std::any_of(splits.begin(), splits.end(),
                                                [&](std::int64_t rows) { return rows % tile == residue && rows + 1 >= tile; });
      });
      for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8"}) {
        EXPECT_TRUE(kernels.count(std::string("quantize ") + recipe)) << recipe << " " << residue << " of " << tile;
        EXPECT_TRUE(kernels.count(std::string("dequantize ") + recipe)) << recipe << " " << residue << " of " << tile;
      }
      for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block"}) {
        for (const char* layout : {"TN", "NN", "NT"}) {
          EXPECT_TRUE(kernels.count(std::string("grouped_gemm ") + kind + " " + layout))
              << kind << " " << layout << " " << residue << " of " << tile;
        }
      }
      EXPECT_TRUE(kernels.count("grouped_dbias")) << residue << " of " << tile;
    }
  }
}

TEST(Reach, HasManyGroupsInEveryStepOfALayer) {
  const std::set<std::string> kernels =
      kernels_where([](const CaseLine&, const std::vector<std::int64_t>& splits) { return splits.size() > 64; });
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    for (const char* recipe : {"mxfp8", "nvfp4"})
      EXPECT_TRUE(kernels.count(std::string(op) + " " + recipe)) << op << " " << recipe;
  }
}

// Options that select other kernels occur together with each large length, as far as the recipe allows.
TEST(Reach, HasEveryOptionBesideEveryLargeLength) {
  std::set<std::string> met;
  for (const CaseLine& line : standard_lines()) {
    if (line.op == "scenario" || !has_key(line, "splits") || line.has("replay")) continue;
    std::vector<std::int64_t> splits;
    if (line.has("splits")) splits = line.splits();
    std::int64_t rows = has_key(line, "R") && line.has("R") ? line.integer("R") : 0;
    for (const std::int64_t each : splits) rows = std::max(rows, each);
    const std::pair<const char*, bool> lengths[] = {{"rows", rows > 1000},
                                                    {"groups", splits.size() > 64},
                                                    {"K", has_key(line, "K") && line.integer("K") > 1000},
                                                    {"N", has_key(line, "N") && line.integer("N") > 1000}};
    for (const auto& [length, is_large] : lengths) {
      if (!is_large) continue;
      for (const char* key : {"noop", "dbias", "d_type", "scale_layout", "direction", "two_dimensional", "hadamard", "stochastic",
                              "four_over_six", "bias", "accumulate", "deferred", "layout", "split_accumulator", "weight_block",
                              "otype", "grad_otype", "pow2", "x_type"}) {
        if (has_key(line, key) && line.has(key))
          met.insert(kernel_of(line).substr(0, kernel_of(line).rfind(" TN")) + " " + key + "=" + line.text(key) + " " + length);
      }
    }
  }
  const auto expect = [&](const std::string& kernel, const std::string& word, bool has_n) {
    for (const char* length : {"rows", "K", "groups"})
      EXPECT_TRUE(met.count(kernel + " " + word + " " + length)) << kernel << " " << word << " " << length;
    if (has_n) EXPECT_TRUE(met.count(kernel + " " + word + " N")) << kernel << " " << word << " N";
  };
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    for (const char* word :
         {"noop=0", "noop=1", "dbias=1", "x_type=f16", "x_type=f32", "direction=rowwise", "direction=columnwise"}) {
      expect(std::string("quantize ") + recipe, word, false);
    }
    for (const char* word : {"d_type=f16", "d_type=bf16", "d_type=f32", "direction=columnwise"})
      expect(std::string("dequantize ") + recipe, word, false);
  }
  for (const char* word : {"stochastic=1", "hadamard=1", "two_dimensional=1", "four_over_six=mse", "scale_layout=swizzled"})
    expect("quantize nvfp4", word, false);
  for (const char* word : {"two_dimensional=1", "scale_layout=swizzled", "otype=e5m2"}) expect("quantize mxfp8", word, false);
  for (const char* recipe : {"none", "tensor_current", "tensor_delayed", "fp8_block", "mxfp8", "nvfp4"}) {
    for (const char* op : {"linear_forward ", "linear_dgrad ", "linear_wgrad "}) {
      expect(std::string(op) + recipe, "bias=1", true);
      const bool transforms = op == std::string("linear_wgrad ") && recipe == std::string("nvfp4");  // in bf16 alone
      if (!transforms) expect(std::string(op) + recipe, "x_type=f16", true);
    }
    for (const char* word : {"accumulate=1", "deferred=1", "d_type=bf16"})
      expect(std::string("linear_wgrad ") + recipe, word, true);
    if (recipe != std::string("none"))
      expect(std::string("linear_forward ") + recipe, "noop=0", true),
          expect(std::string("linear_forward ") + recipe, "noop=1", true);
  }
}

// A factor for each of many groups, in every kind that has factors per group.
TEST(Reach, HasFactorsOfManyGroups) {
  std::set<std::string> met;
  for (const CaseLine& line : standard_lines()) {
    if (line.op != "grouped_gemm") continue;
    for (const char* key : {"alpha", "beta"}) {
      const std::string text = line.text(key);
      if (std::count(text.begin(), text.end(), ',') >= 64) met.insert(line.text("kind") + " " + key);
    }
  }
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "mxfp8", "nvfp4"}) {
    for (const char* key : {" alpha", " beta"}) EXPECT_TRUE(met.count(std::string(kind) + key)) << kind << key;
  }
}

// A group of one element for every special value: NaN, -0, subnormal, the largest, infinity. Each is the only value of an amax or
// a sum.
TEST(Reach, HasEverySpecialValueAlone) {
  std::map<std::string, std::set<std::string>> met;
  for (const CaseLine& line : standard_lines()) {
    if (line.op != "quantize" && line.op != "grouped_dbias") continue;
    if (!line.has("splits") || line.text("K") != (line.op == "quantize" ? "1" : "3") || line.has("replay")) continue;
    Case problem = generate(line);
    const Tensor& x = problem.in.at(line.op == "quantize" ? "x" : "dy");
    std::vector<float> values(static_cast<std::size_t>(x.elements()));
    widen(x.type, x.bytes.data(), values);
    const float most = x.type == Format::f32 ? 3.40282347e38f : x.type == Format::bf16 ? 3.38953139e38f : 65504;
    std::set<std::string>& kinds = met[kernel_of(line) + " " + line.text("x_type")];
    for (const float value : values) {
      if (std::isnan(value)) kinds.insert("nan");
      if (std::isinf(value)) kinds.insert("infinity");
      if (value == 0 && std::signbit(value)) kinds.insert("-0");
      if (std::fabs(value) == most) kinds.insert("largest");
      if (value != 0 && std::fabs(value) < (x.type == Format::f16 ? 0x1p-14f : 0x1p-126f)) kinds.insert("subnormal");
    }
  }
  for (const char* kernel : {"quantize tensor_current", "quantize tensor_delayed", "quantize block_1x128",
                             "quantize block_128x128", "quantize mxfp8", "grouped_dbias"}) {
    for (const char* x_type : {"bf16", "f16", "f32"})
      EXPECT_EQ(met[std::string(kernel) + " " + x_type].size(), 5u) << kernel << " " << x_type;
  }
}

// Offsets whose sums exceed 32 bits, also from splits of 32 bits.
TEST(Reach, PassesTwoToTheThirtyFirst) {
  int lines = 0;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "splits_to_offsets_multi" || line.text("x_type") != "i32") continue;
    std::int64_t sum = 0;
    for (const std::int64_t each : line.splits()) sum += each;
    lines += sum > (std::int64_t{1} << 31);
  }
  EXPECT_GE(lines, 2);
}

// A fault in one element of 2^22 is found with a probability of 95%: full compares three times as many elements of each kind of
// output.
TEST(Reach, FullComparesEnoughWords) {
  const std::map<std::string, Reach> full = reach_of(catalogue(Profile::full));
  const std::int64_t enough = 3 * (std::int64_t{1} << 22);
  for (const char* codes : {"codes e4m3", "codes e5m2", "codes e2m1"})
    EXPECT_GE(full.at("quantize").elements.at(codes), enough) << codes;
  for (const char* scales : {"scales f32", "scales e8m0", "scales e4m3"})
    EXPECT_GE(full.at("quantize").elements.at(scales), enough) << scales;
  for (const char* op : {"swizzle", "unswizzle"}) {
    for (const char* scales : {"scales e8m0", "scales e4m3"})
      EXPECT_GE(full.at(op).elements.at(scales), enough) << op << " " << scales;
  }
  for (const char* op : {"quantize", "grouped_dbias"}) EXPECT_GE(full.at(op).elements.at("sums"), enough) << op;
  for (const char* op : {"dequantize", "delayed_update", "linear_forward", "linear_dgrad", "linear_wgrad"}) {
    EXPECT_GE(full.at(op).elements.at("values"), enough) << op;
  }
  for (const char* kind : {"d bf16", "d f16", "d fp8_per_tensor", "d fp8_block", "d mxfp8", "d nvfp4"})
    EXPECT_GE(full.at("grouped_gemm").elements.at(kind), enough) << kind;
}

TEST(Reach, IsDescribed) {
  const std::string text =
      describe_reach(reach_of({parse_case_line("quantize recipe=mxfp8 direction=rowwise splits=16,17,0 K=64"),
                               parse_case_line("splits_to_offsets splits=1,2,3")}));
  EXPECT_EQ(text,
            "quantize: 1 lines\n  elements codes e4m3 2112, scales e8m0 66\n  K: 1 values, to 64; not both sides of 16 32 64 128 "
            "256 512 1024 2048 4096\n"
            "  R: 3 values, to 17; not both sides of 32 64 128 256 512 1024 2048 4096\n  elements: 1 values, to 2112\n"
            "  groups: 1 values, to 3\n  rows: 1 values, to 33\n"
            "  scales: 4 values, to 17\n  tiles: 2 values, to 1\n"
            "splits_to_offsets: 1 lines\n  elements offsets 4\n  groups: 1 values, to 3\n");
}

}  // namespace
}  // namespace assay::conformance
