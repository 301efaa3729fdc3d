// Both layers against the outputs that cuBLASLt wrote on an H200 (spec measured-1.2): every word of every case.

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <string>

#include "golden/io/reader.h"
#include "reference/gemm/grouped_gemm.h"

namespace assay {
namespace {

const golden::Fixture& recorded() {
  static const golden::Fixture fixture = golden::read_fixture(ASSAY_GOLDEN_DIR "/cublaslt_grouped_gemm.h5");
  return fixture;
}

std::string text(const Case& recorded_case, const std::string& name) {
  return std::get<std::string>(recorded_case.attributes.at(name));
}
std::int64_t integer(const Case& recorded_case, const std::string& name) {
  return std::get<std::int64_t>(recorded_case.attributes.at(name));
}

// The operand `name` in whichever storage the case has it.
GemmOperand operand(const Case& recorded_case, const std::string& name) {
  const auto plain = recorded_case.in.find(name);
  if (plain != recorded_case.in.end()) return {plain->second.type, plain->second.bytes.data(), nullptr, false, nullptr};
  for (const bool columnwise : {false, true}) {
    const std::string prefix = name + (columnwise ? "_columnwise_" : "_rowwise_");
    const auto data = recorded_case.in.find(prefix + "data");
    if (data == recorded_case.in.end()) continue;
    return {data->second.type, data->second.bytes.data(), recorded_case.in.at(prefix + "scale_inv").bytes.data(), columnwise,
            nullptr};
  }
  return {};
}

class Recorded : public testing::TestWithParam<std::size_t> {};

TEST_P(Recorded, words_are_predicted) {
  const Case& test = recorded().cases.at(GetParam());
  SCOPED_TRACE(test.name);
  ASSERT_EQ(test.op, "grouped_gemm");
  const Tensor& splits = test.in.at("splits");
  const Tensor& want = test.out.at("d");
  const auto alpha = static_cast<float>(std::get<double>(test.attributes.at("alpha")));
  const auto beta = static_cast<float>(std::get<double>(test.attributes.at("beta")));

  GroupedGemmProblem problem;
  problem.kind = gemm_kind_named(text(test, "kind")).value();
  problem.layout = gemm_layout_named(text(test, "layout")).value();
  problem.splits = {splits.as<std::int64_t>(), static_cast<std::size_t>(splits.elements())};
  for (const std::int64_t rows : problem.splits) problem.rows += rows;
  problem.N = integer(test, "N");
  problem.K = integer(test, "K");
  problem.x = operand(test, "x");
  problem.w = operand(test, "w");
  problem.dy = operand(test, "dy");
  problem.split_accumulator = integer(test, "split_accumulator") != 0;
  if (test.attributes.contains("weight_block") && text(test, "weight_block") == "1x128")
    problem.weight_block = WeightBlock::b1x128;
  problem.alpha = {&alpha, 1};
  problem.beta = {&beta, 1};
  problem.d_type = want.type;
  problem.c = beta != 0 ? test.in.at("c").bytes.data() : nullptr;
  const std::string architecture = text(test, "arch");
  problem.architecture = architecture;

  const std::pair<const char*, void (*)(const GroupedGemmProblem&, void*)> layers[] = {{"scalar", scalar::grouped_gemm},
                                                                                       {"fast", grouped_gemm}};
  for (const auto& [name, call] : layers) {
    std::vector<std::byte> got(want.bytes.size(), std::byte{0xA5});
    call(problem, got.data());
    const std::size_t size = static_cast<std::size_t>(bits_of(want.type)) / 8;
    std::int64_t differ = 0;
    for (std::size_t at = 0; at < got.size(); at += size) differ += std::memcmp(&got[at], &want.bytes[at], size) != 0;
    EXPECT_EQ(differ, 0) << name << ": words of " << want.elements() << " that differ";
  }
}

INSTANTIATE_TEST_SUITE_P(cublaslt, Recorded, testing::Range<std::size_t>(0, 15));

TEST(recorded, are_all_of_them) { EXPECT_EQ(recorded().cases.size(), 15u); }

}  // namespace
}  // namespace assay
