// Conditions on sizes, counts and factors under which a fault may appear: each holds in some line.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "conformance/cases/case_line.h"
#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

const std::vector<CaseLine>& standard() {
  static const std::vector<CaseLine> lines = catalogue(Profile::standard);
  return lines;
}
const std::vector<CaseLine>& full() {
  static const std::vector<CaseLine> lines = catalogue(Profile::full);
  return lines;
}

std::int64_t sum(const std::vector<std::int64_t>& splits) {
  std::int64_t all = 0;
  for (const std::int64_t each : splits) all += each;
  return all;
}
std::int64_t largest(const std::vector<std::int64_t>& splits) {
  return splits.empty() ? 0 : *std::max_element(splits.begin(), splits.end());
}
std::int64_t rows_of(const CaseLine& line) { return line.has("splits") ? sum(line.splits()) : line.integer("R"); }

bool any_line(const std::vector<CaseLine>& lines, const std::string& op, const std::function<bool(const CaseLine&)>& meets) {
  return std::any_of(lines.begin(), lines.end(), [&](const CaseLine& line) { return line.op == op && meets(line); });
}

TEST(Remaining, QuantizeMeetsEveryResidueInBothDirections) {
  std::map<std::string, std::set<std::int64_t>> columns, rows;
  for (const CaseLine& line : standard()) {
    if (line.op != "quantize" || line.text("direction") != "both" || (line.has("noop") && line.real("noop") == 1)) continue;
    columns[line.text("recipe")].insert(line.integer("K") % 128);
    if (line.has("splits") && line.splits().size() > 1)
      rows[line.text("recipe")].insert((rows_of(line) + line.integer("extra_rows")) % 128);
  }
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    const bool packed = recipe == std::string("nvfp4");  // two codes a byte, in both directions
    for (std::int64_t residue = 0; residue < 128; residue += packed ? 2 : 1) {
      EXPECT_TRUE(columns[recipe].count(residue)) << recipe << ": K of " << residue << " modulo 128";
      EXPECT_TRUE(rows[recipe].count(residue)) << recipe << ": rows of " << residue << " modulo 128";
    }
  }
}

TEST(Remaining, QuantizeMeetsLargeBesideLarge) {
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    const auto is = [&](const CaseLine& line, std::int64_t rows, std::int64_t columns) {
      return line.text("recipe") == recipe && line.text("direction") == "both" && rows_of(line) > rows &&
             line.integer("K") > columns;
    };
    EXPECT_TRUE(any_line(standard(), "quantize", [&](const CaseLine& line) { return is(line, 128, 2048); })) << recipe;
    EXPECT_TRUE(any_line(standard(), "quantize", [&](const CaseLine& line) { return is(line, 2048, 128); })) << recipe;
  }
  EXPECT_TRUE(any_line(standard(), "quantize", [](const CaseLine& line) {
    return line.text("recipe") == "nvfp4" && rows_of(line) * line.integer("K") / 2 > 1 << 18;
  }));
}

TEST(Remaining, ProductsMeetEveryResidue) {
  std::set<std::int64_t> rows, N, K;
  for (const CaseLine& line : standard()) {
    if (line.op != "grouped_gemm") continue;
    if (line.text("layout") != "NT") rows.insert((rows_of(line) + line.integer("extra_rows")) % 128);
    N.insert(line.integer("N") % 128), K.insert(line.integer("K") % 128);
  }
  EXPECT_EQ(rows.size(), 128u);
  EXPECT_EQ(N.size(), 128u);
  EXPECT_EQ(K.size(), 128u);
}

// The number of products of an element: a whole tile and each eighth of another, and more than 4096.
TEST(Remaining, ProductsMeetEveryDepth) {
  std::map<std::string, std::set<std::int64_t>> eighths;
  std::set<std::string> deep;
  for (const CaseLine& line : standard()) {
    if (line.op != "grouped_gemm") continue;
    const std::string layout = line.text("layout"), of = line.text("kind") + " " + layout;
    std::vector<std::int64_t> depths{line.integer(layout == "TN" ? "K" : "N")};
    if (layout == "NT") depths = line.splits();
    for (const std::int64_t depth : depths) {
      if (depth >= 128) eighths[of + " " + line.text("d_type")].insert(depth % 128 / 16);
      if (depth > 4096 && line.text("d_type") == "f32") deep.insert(of);
    }
  }
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    for (const char* layout : {"TN", "NN", "NT"}) {
      const std::string of = std::string(kind) + " " + layout;
      EXPECT_TRUE(deep.count(of)) << of;
      std::set<std::int64_t> any;
      for (const char* d : {"f32", "bf16", "f16"}) {
        const std::set<std::int64_t>& met = eighths[of + " " + d];
        if (layout != std::string("NN")) EXPECT_EQ(met.size(), 8u) << of << " " << d;
        any.insert(met.begin(), met.end());
      }
      EXPECT_EQ(any.size(), 8u) << of;
    }
  }
}

TEST(Remaining, ProductsMeetLargeBesideLarge) {
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    const auto met =
        [&](const std::function<bool(std::int64_t groups, std::int64_t rows, std::int64_t N, std::int64_t K)>& large) {
          return any_line(standard(), "grouped_gemm", [&](const CaseLine& line) {
            const std::vector<std::int64_t> splits = line.splits();
            return line.text("kind") == kind &&
                   large(static_cast<std::int64_t>(splits.size()), largest(splits), line.integer("N"), line.integer("K"));
          });
        };
    using I = std::int64_t;
    EXPECT_TRUE(met([](I, I, I N, I K) { return K > 1024 && N > 256; })) << kind;
    EXPECT_TRUE(met([](I, I, I N, I K) { return N > 1024 && K > 256; })) << kind;
    EXPECT_TRUE(met([](I groups, I, I, I K) { return groups >= 16 && K >= 512; })) << kind;
    EXPECT_TRUE(met([](I groups, I, I N, I) { return groups >= 16 && N >= 512; })) << kind;
    if (kind != std::string("bf16") && kind != std::string("fp8_block")) continue;
    EXPECT_TRUE(met([](I, I rows, I N, I) { return rows > 1024 && N > 256; })) << kind;
    EXPECT_TRUE(met([](I, I rows, I, I K) { return rows > 1024 && K > 256; })) << kind;
    EXPECT_TRUE(met([](I, I rows, I N, I) { return N > 1024 && rows > 256; })) << kind;
    EXPECT_TRUE(met([](I, I rows, I, I K) { return K > 1024 && rows > 256; })) << kind;
    EXPECT_TRUE(met([](I groups, I rows, I, I) { return groups >= 16 && rows >= 512; })) << kind;
  }
}

TEST(Remaining, LayersMeetEachLargeLengthWithEachRecipe) {
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    for (const char* recipe : {"none", "tensor_current", "tensor_delayed", "fp8_block", "mxfp8", "nvfp4"}) {
      const auto met = [&](const auto& length) {
        return any_line(standard(), op,
                        [&](const CaseLine& line) { return line.text("recipe") == recipe && length(line) > 512; });
      };
      EXPECT_TRUE(met([](const CaseLine& line) { return rows_of(line); })) << op << " " << recipe;
      EXPECT_TRUE(met([](const CaseLine& line) { return line.integer("N"); })) << op << " " << recipe;
      EXPECT_TRUE(met([](const CaseLine& line) { return line.integer("K"); })) << op << " " << recipe;
    }
  }
}

// Tensors beyond 2^20 and 2^22 elements and beyond 8 MiB take long, and are in full.
TEST(Remaining, FullMeetsLargeTensors) {
  const auto elements = [](const CaseLine& line) { return rows_of(line) * line.integer("K"); };
  EXPECT_TRUE(any_line(full(), "quantize", [&](const CaseLine& line) { return elements(line) > 1 << 22; }));
  EXPECT_TRUE(any_line(full(), "dequantize", [&](const CaseLine& line) { return elements(line) > 1 << 22; }));
  EXPECT_TRUE(any_line(full(), "quantize",
                       [&](const CaseLine& line) { return line.text("x_type") == "f32" && elements(line) * 4 > 8 << 20; }));
  EXPECT_TRUE(any_line(full(), "grouped_gemm", [](const CaseLine& line) {
    return line.text("layout") == "TN" && rows_of(line) * line.integer("N") > 1 << 20;
  }));
}

TEST(Remaining, OffsetsMeetManyGroupsAndSumsThatNoDoubleHolds) {
  std::map<std::string, std::int64_t> groups;
  std::set<std::string> beyond;
  for (const CaseLine& line : standard()) {
    if (!line.op.starts_with("splits_to_offsets")) continue;
    const bool products = line.op == "splits_to_offsets_2d";
    const std::vector<std::int64_t> first = line.splits(products ? "first" : "splits");
    groups[line.op] = std::max(groups[line.op], static_cast<std::int64_t>(first.size()));
    const std::vector<std::int64_t> last = products ? line.splits("last") : std::vector<std::int64_t>(first.size(), 1);
    __int128 offset = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      offset += static_cast<__int128>(first[i]) * last[i];
      if (offset < INT64_MAX && static_cast<__int128>(static_cast<double>(static_cast<std::int64_t>(offset))) != offset)
        beyond.insert(line.op);
    }
  }
  for (const char* op : {"splits_to_offsets", "splits_to_offsets_multi", "splits_to_offsets_2d"}) {
    EXPECT_GT(groups[op], 8192) << op;
    EXPECT_TRUE(beyond.count(op)) << op;
  }
}

TEST(Remaining, GraphsAreLaunchedMoreThan32Times) {
  for (const char* op : {"grouped_gemm", "quantize", "splits_to_offsets", "scenario"}) {
    EXPECT_TRUE(any_line(standard(), op, [](const CaseLine& line) { return line.has("replay") && replay_plan(line).count > 32; }))
        << op;
  }
}

TEST(Remaining, FactorsAreSubnormalAndDifferFromGroupToGroup) {
  const auto subnormal = [](double value) { return value != 0 && std::fabs(value) < 0x1p-126; };
  for (const char* recipe : {"tensor_current", "block_1x128", "block_128x128"}) {
    EXPECT_TRUE(any_line(standard(), "quantize",
                         [&](const CaseLine& line) { return line.text("recipe") == recipe && subnormal(line.real("eps")); }));
  }
  for (const char* key : {"alpha", "beta"}) {
    for (const bool one_a_group : {false, true}) {
      EXPECT_TRUE(any_line(standard(), "grouped_gemm", [&](const CaseLine& line) {
        const std::vector<double> values = line.reals(key);
        return (values.size() > 1) == one_a_group && std::any_of(values.begin(), values.end(), subnormal);
      })) << key;
    }
  }
  for (const std::size_t groups : {std::size_t{5}, std::size_t{33}}) {
    EXPECT_TRUE(any_line(standard(), "grouped_gemm", [&](const CaseLine& line) {
      const std::vector<double> alpha = line.reals("alpha");
      return alpha.size() >= groups && alpha[alpha.size() - 1] != alpha[alpha.size() - 2] && line.splits().back() > 0;
    }));
  }
}

// A skip flag of 1 with every option, and so with every optional input and output.
TEST(Remaining, TheSkipFlagMeetsEveryOptionOfQuantize) {
  for (const char* key :
       {"recipe", "x_type", "otype", "pow2", "direction", "outputs", "scale_layout", "two_dimensional", "hadamard", "stochastic",
        "draws", "rng_state", "four_over_six", "e4m3_max", "amax", "scales", "dbias"}) {
    for (const std::string_view value : words_of(find_key(*find_op("quantize"), key)->allowed)) {
      EXPECT_TRUE(any_line(standard(), "quantize",
                           [&](const CaseLine& line) {
                             return line.has("noop") && line.real("noop") == 1 && line.has(key) && line.text(key) == value;
                           }))
          << key << "=" << value;
    }
  }
  // Random bytes of each direction, which are separate inputs.
  for (const char* other : {"rowwise", "columnwise"}) {
    EXPECT_TRUE(any_line(standard(), "quantize", [&](const CaseLine& line) {
      return line.has("noop") && line.real("noop") == 1 && line.integer("stochastic") == 1 && line.text("draws") == "given" &&
             line.text("direction") != other;
    })) << other;
  }
}

TEST(Remaining, ABiasIsAddedToNoProducts) {
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    EXPECT_TRUE(any_line(standard(), "grouped_gemm", [&](const CaseLine& line) {
      return line.text("kind") == kind && line.integer("K") == 0 && line.integer("bias") == 1 && rows_of(line) > 0;
    })) << kind;
  }
}

}  // namespace
}  // namespace assay::conformance
