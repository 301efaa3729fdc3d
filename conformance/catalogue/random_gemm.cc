#include "conformance/catalogue/random_gemm.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "conformance/support/counter_random.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kMaxWeights = std::int64_t{1} << 26;  // elements of all w, and of D in NT
constexpr std::int64_t kMaxRows = 32768;

// A sequence of random draws. Integers only, so that every machine draws the same.
class Draws {
 public:
  Draws(std::uint64_t seed, std::int64_t index) : random_(seed, "random_gemm/" + std::to_string(index)) {}

  std::int64_t below(std::int64_t bound) {
    const Words words = random_.words(next_++);
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(words[0]) << 16 | words[1] >> 16) %
                                     static_cast<std::uint64_t>(bound));
  }
  bool one_in(std::int64_t count) { return below(count) == 0; }
  template <class Value>
  Value of(std::initializer_list<Value> all) {
    return all.begin()[below(static_cast<std::int64_t>(all.size()))];
  }
  // Every octave of [low, high] with equal probability.
  std::int64_t log_uniform(std::int64_t low, std::int64_t high) {
    int octaves = 0;
    while (low << octaves < high) ++octaves;
    const std::int64_t from = low << below(std::max(octaves, 1));
    return std::min(from + below(from), high);
  }

 private:
  CounterRandom random_;
  std::uint64_t next_ = 0;
};

std::int64_t rounded(std::int64_t value, std::int64_t unit) {
  return std::max((value + unit / 2) / unit, std::int64_t{1}) * unit;
}

// Rows of each group: alike, at random, or nearly all in one; in half the cases about a quarter of the groups are empty.
std::vector<std::int64_t> draw_splits(Draws& draws, std::int64_t groups, std::int64_t rows, std::int64_t unit) {
  const std::int64_t style = draws.below(4);
  const bool some_empty = draws.one_in(2);
  const std::int64_t large = draws.below(groups);
  std::vector<std::int64_t> weights;
  std::int64_t sum = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    std::int64_t weight = style == 0   ? 1
                          : style == 3 ? (g == large ? 100 * groups : 1 + draws.below(100))
                                       : 1 + draws.below(1000);
    if (some_empty && draws.one_in(4)) weight = 0;
    weights.push_back(weight);
    sum += weight;
  }
  std::vector<std::int64_t> splits;
  for (const std::int64_t weight : weights) {
    const std::int64_t share = sum == 0 ? 0 : rows * weight / sum;
    splits.push_back(weight == 0 ? 0 : unit == 1 ? share : rounded(share, unit));
  }
  return splits;
}

}  // namespace

CaseLine random_gemm(std::uint64_t seed, std::int64_t index, std::string_view architecture) {
  Draws draws(seed, index);
  const bool hopper = architecture.starts_with("sm9"), blackwell = architecture.starts_with("sm1");
  const bool older = architecture.starts_with("sm8");
  const std::string kind =
      hopper      ? draws.of({"bf16", "f16", "fp8_per_tensor", "fp8_per_tensor", "fp8_block", "fp8_block", "fp8_block"})
      : blackwell ? draws.of({"bf16", "f16", "fp8_per_tensor", "mxfp8", "mxfp8", "nvfp4", "nvfp4"})
      : older     ? draws.of({"bf16", "f16"})
                  : draws.of({"bf16", "f16", "fp8_per_tensor", "fp8_per_tensor", "fp8_block", "fp8_block", "mxfp8", "nvfp4"});
  const std::string layout = draws.of({"TN", "NN", "NT"});
  const bool plain = kind == "bf16" || kind == "f16", fp8 = kind == "fp8_per_tensor" || kind == "fp8_block" || kind == "mxfp8";
  const std::string d_type = kind == "f16"    ? draws.of({"f32", "f16"})
                             : kind == "bf16" ? draws.of({"f32", "bf16"})
                                              : draws.of({"f32", "f32", "bf16", "f16"});
  std::string line = "grouped_gemm kind=" + kind + " layout=" + layout + " d_type=" + d_type;

  // One operand at most has the wide type.
  if (fp8 && draws.one_in(3)) {
    const std::string first = layout == "TN" ? "x" : "dy", second = layout == "NT" ? "x" : "w";
    line += " " + (draws.one_in(2) ? first : second) + "_type=e5m2";
  }
  if (kind == "fp8_block" && layout != "NT" && draws.one_in(3)) line += " weight_block=1x128";
  if (kind == "fp8_per_tensor" && draws.one_in(2)) line += " split_accumulator=1";
  if (draws.one_in(2)) line += std::string(" alpha=") + draws.of({"0.5", "-1.5", "0.3", "2", "-0.0625", "0"});
  if (draws.one_in(3)) line += std::string(" beta=") + draws.of({"1", "1", "0.5", "-0.7", "0.25"});

  // Rows of each matrix in storage, and where its groups begin, are multiples of 16 bytes. In one of 24 lines one size is not, which
  // some paths support and others must refuse.
  const std::int64_t operand = plain ? 8 : kind == "fp8_per_tensor" || kind == "fp8_block" ? 16 : 32;
  const std::int64_t output = d_type == "f32" ? 4 : 8;
  const std::int64_t unaligned = operand != 32 && draws.one_in(24) ? draws.below(3) : -1;  // N, K, the rows
  const std::int64_t n_unit = unaligned == 0 ? 1 : layout == "TN" ? std::max(output, operand == 32 ? operand : 1) : operand;
  const std::int64_t k_unit = unaligned == 1 ? 1 : layout == "NN" && !plain && operand != 32 ? output : operand;
  const std::int64_t row_unit = layout == "NT" && !plain && unaligned != 2 ? operand : 1;
  const std::int64_t products = draws.log_uniform(1 << 20, 12'000'000'000);
  const std::int64_t N = std::min<std::int64_t>(rounded(draws.log_uniform(16, 8192), n_unit), 8192);
  const std::int64_t K = std::min<std::int64_t>(rounded(draws.log_uniform(16, 8192), k_unit), 8192);
  const std::int64_t rows = std::clamp<std::int64_t>(products / (N * K), 1, kMaxRows);
  const std::int64_t most_groups = std::clamp<std::int64_t>(kMaxWeights / (N * K), 1, 64);
  const std::int64_t groups = draws.log_uniform(1, most_groups);
  line += " splits=" + splits_text(draw_splits(draws, groups, rows, row_unit)) + " N=" + std::to_string(N) +
          " K=" + std::to_string(K);
  if (draws.one_in(8)) line += " extra_rows=" + std::to_string(row_unit * (1 + draws.below(200)));

  if (!plain) line += std::string(" scales=") + draws.of({"plain", "plain", "plain", "plain", "plain", "plain", "pow2", "edge"});
  line += std::string(" data=") +
          draws.of({"uniform", "uniform", "uniform", "uniform", "uniform", "uniform", "normal", "normal", "clustered",
                    "full_exponent", "every_code", "specials", "sparse", "adversarial_alignment"});
  line += " seed=" + std::to_string(1 + draws.below(1'000'000));
  if (blackwell || older)
    line += " arch=" + std::string(older ? architecture : architecture.starts_with("sm12") ? "sm120" : "sm100");
  return parse_case_line(line);
}

}  // namespace assay::conformance
