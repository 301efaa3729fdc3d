// Wrong calls of products whose parts do not go together, on the reference. Which of them are right is written from the pages on
// grouped-gemm and plans, not from the code.

#include "conformance/judge/calls/wrong_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/call_runner.h"
#include "conformance/judge/judge_parts.h"

namespace assay::conformance {
namespace {

class OneProduct {
 public:
  explicit OneProduct(const std::string& line)
      : line_(parse_case_line(line)),
        problem_(generate(line_)),
        specs_(specs()),
        runner_(backend_, problem_, specs_, -1, 60'000) {
    add_wrong_products(runner_.call(), all_);
  }

  bool has(const std::string& what) const { return find(what) != nullptr; }
  assay_status status_with(const std::string& what) {
    const WrongCall* const wrong = find(what);
    if (wrong == nullptr) throw std::runtime_error(what + ": not made");
    CallParts parts(runner_.call());
    wrong->change(parts);
    return runner_.refused(parts.call(), 0xa5).status;
  }
  std::size_t count() const { return all_.size(); }

 private:
  std::vector<OutputSpec> specs() const {
    const std::vector<std::string> wanted = wanted_outputs(line_);
    return wanted_specs(problem_, nullptr, &wanted);
  }
  const WrongCall* find(const std::string& what) const {
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const WrongCall& each) { return each.what == what; });
    return found == all_.end() ? nullptr : &*found;
  }

  Backend backend_{*reference_backend()};
  CaseLine line_;
  Case problem_;
  std::vector<OutputSpec> specs_;
  CallRunner runner_;
  std::vector<WrongCall> all_;
};

struct Row {
  const char* line;
  const char* what;
  bool right;
};
constexpr const char* kBf16 = "grouped_gemm kind=bf16 splits=5,0,17 N=24 K=40 seed=1";
constexpr const char* kAdded = "grouped_gemm kind=bf16 beta=1 splits=5,0,17 N=24 K=40 seed=1";
constexpr const char* kRows = "grouped_gemm kind=bf16 layout=NN splits=5,0,17 N=24 K=40 seed=1";
constexpr const char* kHopper = "grouped_gemm kind=fp8_per_tensor splits=16,0,32 N=32 K=48 seed=1";
constexpr const char* kBlackwell = "grouped_gemm kind=fp8_per_tensor arch=sm100 splits=16,0,32 N=32 K=48 seed=1";
constexpr const char* kFp8 = "grouped_gemm kind=fp8_per_tensor d_type=e4m3 splits=16,0,32 N=32 K=48 seed=1";
constexpr const char* kFp4 = "grouped_gemm kind=mxfp8 w_type=e2m1 splits=32 N=32 K=32 seed=1";
constexpr Row kCalls[] = {
    {kBf16, "the plan unit=sm90.wgmma.f16.to_f16", false},  // takes f16 alone
    {kBf16, "the plan unit=cdna1.mfma.bf16", true},
    {kBf16, "the plan cublaslt.sm90.bf16", true},
    {kBf16, "the plan unit=sm90.wgmma.fp8,promote=128", false},
    {kBf16, "the plan unit=sm90.wgmma.f16,promote=128,association=rows_first", false},  // no scales of blocks
    {kBf16, "the plan unit=sm90.wgmma.f16,slices=2x1,merge=sequential_f32", false},     // 2 of 40 products
    {kBf16, "the plan unit=sm90.wgmma.f16,slices=2x4096,merge=sequential_output", true},
    {kBf16, "the plan unit=sm90.wgmma.f16,scale_vectors=rows_first and scales of rows and columns", false},
    {kBf16, "the plan unit=sm90.wgmma.f16,epilogue=reduce_add", false},  // beta is 0
    {kBf16, "an input c and its parameter", true},
    {kBf16, "an input bias and its parameter", true},
    {kAdded, "the plan unit=sm90.wgmma.f16,epilogue=reduce_add", false},  // D in bf16
    {kRows, "an input bias and its parameter", false},                    // only TN has a bias
    {kHopper, "x in its other storage", false},
    {kHopper, "w in its other storage", false},
    {kBlackwell, "x in its other storage", true},
    {kBlackwell, "w in its other storage", true},
    {kFp8, "an input c and its parameter", false},
    {kFp8, "an input bias and its parameter", false},
    {kFp8, "the plan unit=sm90.wgmma.fp8,slices=2x4096,merge=sequential_output", false},
    {kFp4, "the plan unit=sm100.tcgen05.mxf4", false},  // x is E4M3
    {kFp4, "x in its other storage", false},
};

TEST(WrongProducts, AreThoseThatThePagesRefuse) {
  for (const Row& row : kCalls) {
    const assay_status status = OneProduct(row.line).status_with(row.what);
    EXPECT_EQ(status == ASSAY_OK, row.right) << row.line << " with " << row.what << ": " << name_of(status);
    EXPECT_TRUE(row.right || is_documented(Refusal::either, status)) << row.line << " with " << row.what;
  }
}

// Whether slices cover the rows of every group is a fault of contents in layout NT: only splits that no shape allows to be longer than
// the slices make no such call.
TEST(WrongProducts, LeaveFaultsOfContentsOut) {
  const std::string two = "the plan unit=sm90.wgmma.f16,slices=2x1,merge=sequential_f32";
  const std::string many = "the plan unit=sm90.wgmma.f16,slices=2x4096,merge=sequential_output";
  const OneProduct longer("grouped_gemm kind=bf16 layout=NT d_type=f32 splits=5,0,17 N=24 K=40 seed=1");
  EXPECT_FALSE(longer.has(two));
  EXPECT_TRUE(longer.has(many));
  EXPECT_TRUE(longer.has("the plan unit=sm90.wgmma.f16.to_f16"));
  EXPECT_FALSE(OneProduct("grouped_gemm kind=bf16 layout=NT splits=1,0,0 N=24 K=40 extra_rows=2 seed=1").has(two));
  EXPECT_TRUE(OneProduct("grouped_gemm kind=bf16 layout=NT splits=1,0,1 N=24 K=40 seed=1").has(two));
  EXPECT_FALSE(OneProduct("grouped_gemm kind=fp8_per_tensor layout=NT splits=16,0,32 N=32 K=48 seed=1")
                   .has("the plan unit=sm90.wgmma.fp8,slices=2x1,merge=tree_f32"));
  EXPECT_TRUE(OneProduct(kRows).has(two));  // N is contracted
}

TEST(WrongProducts, AreMadeOfWhatTheCallLacks) {
  EXPECT_FALSE(OneProduct(kAdded).has("an input c and its parameter"));
  EXPECT_FALSE(OneProduct(kBf16).has("x in its other storage"));
  EXPECT_EQ(OneProduct("splits_to_offsets splits=3,0,5 stride=7").count(), 0u);
}

}  // namespace
}  // namespace assay::conformance
