// A backend that states no plan: the hint still names a fault that no order of summation explains, and does not report sums that
// are merely too narrow.

#include "conformance/tests/diagnose/planted.h"
#include "conformance/tests/diagnose/product_models.h"

namespace assay::conformance {
namespace {

using planted::hints_of;

struct Unplanned {
  const char* name;
  const char* line;
  std::function<void(models::Products&)> spoil;
  std::function<double(const double*, std::size_t)> sum;
  double times;
  const char* hint;  // null: none
};
void PrintTo(const Unplanned& fault, std::ostream* out) { *out << fault.name; }

class UnplannedProducts : public testing::TestWithParam<Unplanned> {};

TEST_P(UnplannedProducts, AreNamed) {
  const Unplanned& fault = GetParam();
  models::Model model;
  model.name = fault.name;
  model.sum = fault.sum;
  model.spoil = fault.spoil;
  model.times = fault.times;
  Rogue rogue;
  models::plant(rogue, model);
  const Judgement judged = judge_text(rogue, fault.line);
  EXPECT_EQ(judged.basis, CheckBasis::bound);
  EXPECT_EQ(judged.verdict, Verdict::failed);
  if (fault.hint == nullptr) {
    EXPECT_EQ(hints_of(judged.text), "") << judged.text;
  } else {
    EXPECT_TRUE(contains(hints_of(judged.text), fault.hint)) << judged.text;
  }
}

template <std::size_t count>
void without_last(models::Products& products) {
  products.value.resize(products.value.size() - count);
  products.scale.resize(products.value.size());
}
template <std::size_t count>
void without_first(models::Products& products) {
  products.value.erase(products.value.begin(), products.value.begin() + count);
  products.scale.resize(products.value.size());
}
double narrow(const double* p, std::size_t n) { return models::rounded_every_16(p, n, models::to_bf16); }

// clang-format off
const Unplanned kFaults[] = {
    {"tail_of_16", "grouped_gemm kind=bf16 splits=20,0,30 N=24 K=88 seed=1", without_last<8>, models::exact, 1, "without the last 8 of 88 along K"},
    {"tail_of_f32", "grouped_gemm kind=f16 d_type=f32 splits=20,0,30 N=24 K=77 seed=2", without_last<5>, models::chain, 1, "without the last 5 of 77 along K"},
    {"first_16", "grouped_gemm kind=bf16 d_type=f32 splits=20,0,30 N=24 K=96 seed=3", without_first<16>, models::chain, 1, "without the first 16 along K"},
    {"alpha_twice", "grouped_gemm kind=bf16 d_type=f32 alpha=0.5 splits=20,0,30 N=24 K=96 seed=4", {}, models::chain, 0.5, "with alpha=0.25 in place of 0.5"},
    {"alpha_ignored", "grouped_gemm kind=bf16 alpha=0.5 splits=20,0,30 N=24 K=96 seed=5", {}, models::exact, 2, "with alpha=1 in place of 0.5"},
    {"sign_lost", "grouped_gemm kind=bf16 alpha=0.5 splits=20,0,30 N=24 K=96 seed=6", {}, models::exact, -1, "with alpha=-0.5 in place of 0.5"},
    {"narrow_sums", "grouped_gemm kind=bf16 d_type=f32 splits=20,0,30 N=24 K=96 seed=7", {}, narrow, 1, nullptr},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Diagnosis, UnplannedProducts, testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::conformance
