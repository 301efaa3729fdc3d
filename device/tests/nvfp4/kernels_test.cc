// Cases of NVFP4 through the kernels, as the host compiles them, against the reference's scalar layer; states of the generator that
// change between two runs of one call.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/backends/device/quantize_call.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "device/support/error.h"
#include "device/tests/emulated_gemm/poisoned_outputs.h"
#include "reference/types/tensor.h"

namespace assay::conformance {
namespace {

// A call that can be made again, with a workspace of its own.
class HostCall {
 public:
  explicit HostCall(Case& problem)
      : call_(quantize_call(Request::of(problem), 1)), workspace_(static_cast<std::size_t>(call_.workspace_bytes / 256 + 1)) {}
  std::uint32_t run() {
    for (Block& block : workspace_) std::fill(std::begin(block.bytes), std::end(block.bytes), std::byte{0x9C});
    std::uint32_t status = 0;
    call_.enqueue(nullptr, workspace_.data(), &status);
    return status;
  }

 private:
  struct alignas(256) Block {
    std::byte bytes[256];
  };
  DeviceCall call_;
  std::vector<Block> workspace_;
};

void expect_same(const CaseLine& line, const Case& got, const Case& want) {
  for (const auto& [name, tensor] : want.out) {
    const auto& bytes = got.out.at(name).bytes;
    const auto at = std::mismatch(tensor.bytes.begin(), tensor.bytes.end(), bytes.begin(), bytes.end());
    EXPECT_TRUE(at.first == tensor.bytes.end() && at.second == bytes.end())
        << to_text(line) << ": " << name << " byte " << at.first - tensor.bytes.begin() << " of " << tensor.bytes.size();
  }
}

void expect_reference(const CaseLine& line) {
  Case want = generate(line), got = generate(line);
  give_outputs(line, want);
  give_outputs(line, got);
  answer(Request::of(want), Layer::scalar);
  EXPECT_EQ(HostCall(got).run(), 0u) << to_text(line);
  expect_same(line, got, want);
}

bool is_drawn(const CaseLine& line) { return line.has("draws") && line.text("draws") != "given"; }

TEST(Nvfp4Kernels, GiveTheBytesOfTheReferenceForEveryCaseWithDraws) {
  int cases = 0;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "quantize" || !is_drawn(line)) continue;
    expect_reference(line);
    ++cases;
    if (HasFailure()) return;
  }
  EXPECT_GE(cases, 63);
}

// The other kernels of the folder, small cases: codes to nearest, given bytes, 4over6, the transform, squares of 16 x 16.
TEST(Nvfp4Kernels, GiveTheBytesOfTheReferenceForOthers) {
  int cases = 0;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "quantize" || line.text("recipe") != "nvfp4" || is_drawn(line)) continue;
    if ((line.has("fault") && line.text("fault") != "none") || line.integer("contract") != 0) continue;
    const Case problem = generate(line);
    const auto groups = problem.in.find("splits") == problem.in.end() ? 1 : problem.in.at("splits").elements();
    if (problem.in.at("x").elements() > 4096 || groups > 1024) continue;
    expect_reference(line);
    ++cases;
    if (HasFailure()) return;
  }
  EXPECT_GE(cases, 100);
}

// What is captured in a graph has the address of the states, not their values.
TEST(Nvfp4Kernels, ReadTheStateWhenTheyRun) {
  for (const char* text : {"quantize recipe=nvfp4 stochastic=1 draws=te_vector_blockwise splits=32,0,48 K=80 seed=1",
                           "quantize recipe=nvfp4 stochastic=1 draws=te_2d two_dimensional=1 R=64 K=48 seed=2"}) {
    const CaseLine line = parse_case_line(text);
    Case got = generate(line);
    give_outputs(line, got);
    HostCall call(got);
    EXPECT_EQ(call.run(), 0u);
    const auto before = got.out.at("rowwise_data").bytes;
    Case want = generate(line);
    for (Case* each : {&got, &want}) {
      for (int i = 0; i < 2; ++i) each->in.at("rng_state").as<std::uint64_t>()[i] += 0x1'0000'0003ull;
    }
    give_outputs(line, want);
    answer(Request::of(want), Layer::scalar);
    EXPECT_EQ(call.run(), 0u);
    expect_same(line, got, want);
    EXPECT_NE(got.out.at("rowwise_data").bytes, before) << text;
  }
}

// Splits at fault: nothing is drawn, and nothing is written.
TEST(Nvfp4Kernels, WriteNothingWhereSplitsAreAtFault) {
  const CaseLine line = parse_case_line("quantize recipe=nvfp4 stochastic=1 draws=te_tuned_1d splits=32,0,48 K=80 seed=3");
  Case problem = generate(line);
  give_outputs(line, problem);
  const std::map<std::string, Tensor> before = problem.out;
  problem.in.at("splits").as<std::int64_t>()[1] = 4000;
  EXPECT_EQ(HostCall(problem).run(), device::kStatusSplitsExceedRows);
  for (const auto& [name, tensor] : before) EXPECT_EQ(problem.out.at(name).bytes, tensor.bytes) << name;
}

// Splits of a call that has nothing to write are checked all the same.
TEST(Nvfp4Kernels, ReportWrongSplitsOfCallsThatWriteNothing) {
  for (const char* text :
       {"quantize recipe=nvfp4 noop=1 splits=32,0,64 K=64 seed=1", "quantize recipe=nvfp4 splits=32,0,64 K=0 seed=1",
        "quantize recipe=nvfp4 splits=32,0,64 K=64 seed=1"}) {
    SCOPED_TRACE(text);
    const CaseLine line = parse_case_line(text);
    Case problem = generate(line);
    if (line.integer("K") == 0 || line.has("noop")) give_outputs(line, problem);
    EXPECT_EQ(HostCall(problem).run(), 0u);
    auto* const splits = problem.in.at("splits").as<std::int64_t>();
    splits[1] = -2;
    EXPECT_EQ(HostCall(problem).run(), device::kStatusNegativeSplit);
    splits[1] = 2;
    EXPECT_EQ(HostCall(problem).run(), device::kStatusSplitsExceedRows);
  }
}

}  // namespace
}  // namespace assay::conformance
