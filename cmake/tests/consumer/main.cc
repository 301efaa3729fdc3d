// A project outside the tree: two groups of 1 and 2 rows, [rows, 4] times the transpose of [2, 4].

#include <reference/gemm/grouped_gemm.h>
#include <reference/layout/offsets.h>

#include <cstdio>
#include <vector>

int main() {
  const std::vector<std::int64_t> splits = {1, 2};
  for (const std::int64_t offset : assay::splits_to_offsets(splits)) std::printf("%lld ", static_cast<long long>(offset));

  constexpr std::uint16_t one = 0x3F80, two = 0x4000, three = 0x4040;  // bf16
  const std::uint16_t x[] = {one, one, one, one, two, two, two, two, three, three, three, three};
  const std::uint16_t w[] = {one, one, one, one, one, one, one, one, two, two, two, two, one, one, one, one};
  assay::GroupedGemmProblem problem;
  problem.splits = splits;
  problem.rows = 3;
  problem.N = 2;
  problem.K = 4;
  problem.x.data = x;
  problem.w.data = w;
  float d[6];
  assay::grouped_gemm(problem, d);
  for (const float value : d) std::printf("%g ", value);
}
