// One large dimension with small ones, in every op, kind and layout of standard; scales of both signs.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"

namespace assay::conformance {
namespace {

// The dimensions that are above 2048 while all others are at most 8, or 16 where the kind allows no fewer.
void look(const CaseLine& line, std::set<std::string>& met) {
  std::vector<std::pair<std::string, std::int64_t>> lengths;
  for (const char* name : {"R", "N", "K", "tensors", "length"}) {
    if (find_key(*find_op(line.op), name) != nullptr && line.has(name)) lengths.emplace_back(name, line.integer(name));
  }
  if (find_key(*find_op(line.op), "splits") != nullptr && line.has("splits")) {
    const std::vector<std::int64_t> splits = line.splits();
    if (!splits.empty()) lengths.emplace_back("R", *std::max_element(splits.begin(), splits.end()));
  }
  std::string of = line.op;
  for (const char* key : {"recipe", "kind", "layout", "direction"}) {
    if (find_key(*find_op(line.op), key) == nullptr || line.op.starts_with("linear")) continue;
    of += " " + line.text(key);
  }
  const bool by_16 = line.op == "grouped_gemm" && (line.text("kind") == "mxfp8" || line.text("kind") == "nvfp4");
  for (const auto& [name, length] : lengths) {
    const bool thin = std::all_of(lengths.begin(), lengths.end(),
                                  [&](const auto& other) { return other.first == name || other.second <= (by_16 ? 16 : 8); });
    if (length > 2048 && thin) met.insert(of + " " + name);
  }
}

TEST(Standard, MeetsEveryLengthLongAlone) {
  std::set<std::string> met;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "scenario" && !line.op.starts_with("splits_to")) look(line, met);
  }
  std::set<std::string> expected;
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    for (const char* length : {"R", "K"}) {
      expected.insert(std::string("quantize ") + recipe + " both " + length);
      for (const char* direction : {"rowwise", "columnwise"})
        expected.insert(std::string("dequantize ") + recipe + " " + direction + " " + length);
    }
  }
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
    for (const char* layout : {"TN", "NN", "NT"}) {
      for (const char* length : {"R", "N", "K"})
        expected.insert(std::string("grouped_gemm ") + kind + " " + layout + " " + length);
    }
  }
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    for (const char* length : {"R", "N", "K"}) expected.insert(std::string(op) + " " + length);
  }
  for (const char* of : {"swizzle mxfp8 rowwise", "swizzle nvfp4 rowwise", "unswizzle mxfp8 rowwise", "unswizzle nvfp4 rowwise",
                         "grouped_dbias"}) {
    for (const char* length : {"R", "K"}) expected.insert(std::string(of) + " " + length);
  }
  for (const char* length : {"tensors", "length"}) expected.insert(std::string("delayed_update ") + length);
  for (const std::string& each : expected) EXPECT_TRUE(met.count(each)) << each << " beyond 2048, the other lengths at most 8";
}

// Scales that are inputs have both signs, in every operand, in some case of each op and kind whose scales have a sign.
TEST(Standard, GivesScalesOfBothSigns) {
  std::set<std::string> met;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario" || find_key(*find_op(line.op), "scales") == nullptr || !line.has("scales") ||
        line.text("scales") != "negative")
      continue;
    const Case made = generate(line);
    for (const auto& [name, tensor] : made.in) {
      if (!name.ends_with("scale_inv") && name != "scale") continue;
      bool plus = false, minus = false;
      for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        const std::uint32_t code =
            tensor.type == Format::f32 ? tensor.as<std::uint32_t>()[i] : std::uint32_t{tensor.as<std::uint8_t>()[i]} << 24;
        if ((code & 0x7fff'ffff) == 0 || (code & 0x7f00'0000) == 0x7f00'0000) continue;  // zeros and NaN in padding
        (code >> 31 != 0 ? minus : plus) = true;
      }
      const std::string of = line.op == "grouped_gemm" ? line.text("kind") : line.text("recipe");
      if (plus && minus) met.insert(line.op + " " + of + " " + name);
    }
  }
  for (const char* kind : {"fp8_per_tensor", "fp8_block", "nvfp4"}) {
    for (const char* scales : {"x_rowwise", "x_columnwise", "w_rowwise", "w_columnwise", "dy_rowwise", "dy_columnwise"}) {
      EXPECT_TRUE(met.count(std::string("grouped_gemm ") + kind + " " + scales + "_scale_inv")) << kind << " " << scales;
    }
  }
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "nvfp4"}) {
    for (const char* scales : {"rowwise", "columnwise"}) {
      EXPECT_TRUE(met.count(std::string("dequantize ") + recipe + " " + scales + "_scale_inv")) << recipe << " " << scales;
    }
  }
  EXPECT_TRUE(met.count("quantize tensor_delayed scale"));
}

}  // namespace
}  // namespace assay::conformance
