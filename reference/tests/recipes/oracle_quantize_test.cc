// Both layers against outside oracles: what a vendor library wrote on an H200 (spec measured-1.1, measured-1.4), and what the vendor's Python
// reference of NVFP4 computed on a CPU. Every byte of every quantization, padding left out.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "golden/io/reader.h"
#include "reference/layout/scale_shape.h"
#include "reference/recipes/quantize.h"

namespace assay {
namespace {

const char* const kFiles[] = {"transformer_engine_quantize.h5", "transformer_engine_ops.h5",  "nvfp4_4over6_2d_bf16_mae.h5",
                              "nvfp4_4over6_2d_bf16_mse.h5",    "nvfp4_4over6_2d_f32_mae.h5", "nvfp4_4over6_2d_f32_mse.h5"};

// The quantizations of all files.
const std::vector<Case>& recorded() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    for (const char* file : kFiles) {
      golden::Fixture fixture = golden::read_fixture(std::string(ASSAY_GOLDEN_DIR "/") + file);
      for (Case& each : fixture.cases) {
        if (each.op == "quantize") all.push_back(std::move(each));
      }
    }
    return all;
  }();
  return cases;
}

FourOverSix four_over_six_named(const std::string& name) {
  if (name == "mae") return FourOverSix::mean_absolute_error;
  return name == "mse" ? FourOverSix::mean_squared_error : FourOverSix::off;
}

// Which elements of a scale tensor hold a scale; the others are padding.
std::vector<bool> scales_in_use(const QuantizeProblem& problem, Direction direction, std::size_t elements) {
  const Recipe recipe = problem.config.recipe;
  const std::vector<std::int64_t> groups = group_rows(problem);
  const auto offsets = scale_offsets(recipe, direction, groups, problem.columns);
  std::vector<bool> used(elements, false);
  for (std::size_t t = 0; t < groups.size(); ++t) {
    const ScaleShape shape = scale_shape(recipe, direction, groups[t], problem.columns);
    for (std::int64_t i = 0; i < shape.used_rows; ++i) {
      for (std::int64_t j = 0; j < shape.used_columns; ++j)
        used[static_cast<std::size_t>(offsets[t] + i * shape.columns + j)] = true;
    }
  }
  return used;
}

class RecordedQuantize : public ::testing::TestWithParam<std::size_t> {};

TEST_P(RecordedQuantize, EveryByte) {
  const Case& test = recorded()[GetParam()];
  SCOPED_TRACE(test.name);
  const auto text = [&](const char* name) { return std::get<std::string>(test.attributes.at(name)); };
  const auto number = [&](const char* name, double absent) {
    const auto found = test.attributes.find(name);
    if (found == test.attributes.end()) return absent;
    const auto* integer = std::get_if<std::int64_t>(&found->second);
    return integer != nullptr ? static_cast<double>(*integer) : std::get<double>(found->second);
  };

  QuantizeProblem problem;
  problem.config.recipe = recipe_named(text("recipe")).value();
  problem.config.output = format_named(text("otype")).value();
  problem.config.columnwise = true;
  problem.config.force_pow_2_scales = number("pow2", 0) != 0;
  problem.config.amax_epsilon = static_cast<float>(number("eps", 0));
  problem.config.two_dimensional = number("two_dimensional", 0) != 0;
  problem.config.nvfp4_e4m3_max = static_cast<float>(number("e4m3_max", 448));
  if (test.attributes.contains("four_over_six")) problem.config.four_over_six = four_over_six_named(text("four_over_six"));
  problem.config.dbias = test.out.contains("dbias");
  const Tensor& x = test.in.at("x");
  problem.x_type = x.type;
  problem.x = x.bytes.data();
  problem.rows = x.shape.at(0);
  problem.columns = x.shape.at(1);
  if (const auto scale = test.in.find("scale"); scale != test.in.end()) problem.scale = scale->second.as<float>();
  if (const auto splits = test.in.find("splits"); splits != test.in.end()) {
    problem.grouped = true;
    problem.splits = {splits->second.as<std::int64_t>(), static_cast<std::size_t>(splits->second.elements())};
  }

  const QuantizeShapes shapes = quantize_outputs(problem);
  const std::map<std::string, OutputShape> outputs = {{"rowwise_data", shapes.rowwise_data},
                                                      {"columnwise_data", shapes.columnwise_data},
                                                      {"rowwise_scale_inv", shapes.rowwise_scale_inv},
                                                      {"columnwise_scale_inv", shapes.columnwise_scale_inv},
                                                      {"amax", shapes.amax},
                                                      {"scale", shapes.scale},
                                                      {"dbias", shapes.dbias}};
  for (const auto& [name, want] : test.out) {
    ASSERT_TRUE(outputs.contains(name)) << name;
    const OutputShape& shape = outputs.at(name);
    EXPECT_EQ(want.type, shape.type) << name;
    EXPECT_EQ(want.shape, (std::vector<std::int64_t>{shape.shape, shape.shape + shape.rank})) << name;
  }

  const std::pair<const char*, void (*)(const QuantizeProblem&, const QuantizeOutput&)> layers[] = {{"scalar", scalar::quantize},
                                                                                                    {"fast", quantize}};
  for (const auto& [layer, call] : layers) {
    std::map<std::string, std::vector<std::byte>> got;
    for (const auto& [name, shape] : outputs) got[name].assign(static_cast<std::size_t>(shape.bytes()), std::byte{0xA5});
    QuantizeOutput output;
    output.rowwise_data = got["rowwise_data"].data();
    output.columnwise_data = got["columnwise_data"].data();
    output.rowwise_scale_inv = got["rowwise_scale_inv"].data();
    output.columnwise_scale_inv = got["columnwise_scale_inv"].data();
    output.amax = reinterpret_cast<float*>(got["amax"].data());
    output.scale = reinterpret_cast<float*>(got["scale"].data());
    output.dbias = got["dbias"].data();
    call(problem, output);
    for (const auto& [name, want] : test.out) {
      const std::size_t size =
          want.type == Format::e2m1 ? 1 : static_cast<std::size_t>(bits_of(want.type)) / 8;  // two codes a byte
      const std::vector<std::byte>& bytes = got.at(name);
      ASSERT_EQ(bytes.size(), want.bytes.size()) << layer << " " << name;
      std::vector<bool> compared(bytes.size() / size, true);
      if (name == "rowwise_scale_inv") compared = scales_in_use(problem, Direction::rowwise, compared.size());
      if (name == "columnwise_scale_inv") compared = scales_in_use(problem, Direction::columnwise, compared.size());
      std::int64_t differ = 0;
      for (std::size_t i = 0; i < compared.size(); ++i) {
        differ += compared[i] && std::memcmp(&bytes[i * size], &want.bytes[i * size], size) != 0;
      }
      EXPECT_EQ(differ, 0) << layer << " " << name << ": elements that differ";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TransformerEngine, RecordedQuantize, ::testing::Range(std::size_t{0}, recorded().size()));

TEST(RecordedQuantizations, AreAllOfThem) { EXPECT_EQ(recorded().size(), 184u + 37u + 4u); }

// The purpose of these four: one tile of each uses one scale by its rows and the other by its columns.
TEST(RecordedQuantizations, DirectionsOfATileDisagree) {
  int apart = 0;
  for (const Case& each : recorded()) {
    if (!each.attributes.contains("four_over_six")) continue;
    const auto& rowwise = each.out.at("rowwise_scale_inv");        // [128, 4], one tile of rows
    const auto& columnwise = each.out.at("columnwise_scale_inv");  // [128, 4]: tile t begins in row 16 t
    apart += rowwise.bytes[0] != columnwise.bytes[0];
    EXPECT_EQ(rowwise.bytes[1], columnwise.bytes[16 * 4]) << each.name << ": the other tile is far from a tie";
  }
  EXPECT_EQ(apart, 4);
}

}  // namespace
}  // namespace assay
