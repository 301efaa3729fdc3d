// Layer (a): one byte or element at a time.

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/layout/token_permutation.h"
#include "reference/recipes/element_scalar.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {

void check_row_map(const RowMap& map) {
  require(map.tokens >= 0, "tokens", map.tokens, "0 or more");
  require(map.topk >= 0, "topk", map.topk, "0 or more");
  require(map.permuted_rows >= 0, "permuted_rows", map.permuted_rows, "0 or more");
  const std::int64_t entries = checked_product(map.tokens, map.topk, "topk", map.topk);
  require(entries == static_cast<std::int64_t>(map.rows.size()), "row_map", map.rows.size(), show(entries) + " entries");
  std::vector<bool> named(static_cast<std::size_t>(map.permuted_rows));
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    const std::int64_t row = map.rows[i];
    require(row >= -1 && row < map.permuted_rows, "row_map", row, "-1, or a row below " + show(map.permuted_rows));
    if (row < 0) continue;
    require(!named[static_cast<std::size_t>(row)], "row_map", row, "a row that no other choice has");
    named[static_cast<std::size_t>(row)] = true;
  }
}

void check_permute(const RowMap& map, std::int64_t row_bytes, const void* from, const void* to) {
  check_row_map(map);
  require(row_bytes >= 0, "row_bytes", row_bytes, "0 or more");
  checked_product(std::max(map.tokens, map.permuted_rows), row_bytes, "row_bytes", row_bytes);
  require(from != nullptr || map.tokens == 0 || row_bytes == 0, "from", from, "a pointer to the rows");
  require(to != nullptr || map.permuted_rows == 0 || row_bytes == 0, "to", to, "a pointer to the output");
}

void check_unpermute(const UnpermuteProblem& problem, const void* x) {
  check_row_map(problem.map);
  const Format type = problem.type;
  require(type == Format::bf16 || type == Format::f16 || type == Format::f32, "type", name_of(type), "bf16, f16 or f32");
  require(problem.columns >= 0, "columns", problem.columns, "0 or more");
  checked_product(checked_product(problem.map.permuted_rows, problem.columns, "columns", problem.columns), 4, "columns",
                  problem.columns);
  const std::int64_t elements = checked_product(problem.map.tokens, problem.columns, "columns", problem.columns);
  checked_product(elements, 4, "columns", problem.columns);
  require(x != nullptr || elements == 0, "x", x, "a pointer to the output");
  const bool reads = problem.map.permuted_rows > 0 && problem.columns > 0;
  require(problem.permuted != nullptr || !reads, "permuted", problem.permuted, "a pointer to the rows");
}

namespace scalar {

void permute_rows(const RowMap& map, std::int64_t row_bytes, const void* from, void* to) {
  check_permute(map, row_bytes, from, to);
  const auto* source = static_cast<const std::uint8_t*>(from);
  auto* target = static_cast<std::uint8_t*>(to);
  for (std::int64_t t = 0; t < map.tokens; ++t) {
    for (std::int64_t k = 0; k < map.topk; ++k) {
      const std::int64_t row = map.rows[static_cast<std::size_t>(t * map.topk + k)];
      for (std::int64_t i = 0; row >= 0 && i < row_bytes; ++i) target[row * row_bytes + i] = source[t * row_bytes + i];
    }
  }
}

namespace {

float rounded_to(Format type, float value) {
  return type == Format::bf16 ? decode_bf16(encode_bf16(value)) : type == Format::f16 ? decode_f16(encode_f16(value)) : value;
}

// |code| of a 16-bit type; the code of infinity counts as the number that would follow the largest.
double magnitude_of(Format type, std::uint16_t code) {
  if (type == Format::bf16) return code == 0x7F80 ? std::ldexp(1.0, 128) : decode_bf16(code);
  return code == 0x7C00 ? 65536.0 : decode_f16(code);
}

// w * v + acc, rounded once to the type. Of the two codes around the sum the nearer one is taken, by comparison with their middle.
float fused_in(Format type, float weight, float value, float acc) {
  if (type == Format::f32) return std::fma(weight, value, acc);
  const double product = static_cast<double>(weight) * value;  // exact: at most 22 bits
  const double sum = product + acc;
  if (!std::isfinite(sum)) return static_cast<float>(sum);
  const double part = sum - product, lost = (product - (sum - part)) + (acc - part);  // what the addition lost, exact
  const double size = std::fabs(sum), rest = std::signbit(sum) ? -lost : lost;
  const std::uint16_t infinity = type == Format::bf16 ? 0x7F80 : 0x7C00;
  const auto close = static_cast<float>(size);
  std::uint16_t below = type == Format::bf16 ? encode_bf16(close) : encode_f16(close);
  while (below > 0 && magnitude_of(type, below) > size) --below;
  if (below < infinity) {
    const double middle = (magnitude_of(type, below) + magnitude_of(type, static_cast<std::uint16_t>(below + 1))) / 2;
    const bool at_tie = size == middle;
    below = static_cast<std::uint16_t>(below + (size > middle || (at_tie && (rest > 0 || (rest == 0 && below % 2 == 1)))));
  }
  const float made = type == Format::bf16 ? decode_bf16(below) : decode_f16(below);
  return std::signbit(sum) ? -made : made;
}

}  // namespace

void unpermute(const UnpermuteProblem& problem, void* x) {
  check_unpermute(problem, x);
  const RowMap& map = problem.map;
  const Format type = problem.type;
  for (std::int64_t t = 0; t < map.tokens; ++t) {
    for (std::int64_t c = 0; c < problem.columns; ++c) {
      float acc = 0;
      for (std::int64_t k = 0; k < map.topk; ++k) {
        const std::int64_t row = map.rows[static_cast<std::size_t>(t * map.topk + k)];
        if (row < 0) continue;
        const float value = load(type, problem.permuted, row * problem.columns + c);
        const float weight = problem.weights == nullptr ? 1 : problem.weights[t * map.topk + k];
        switch (problem.sums) {
          case TokenSums::fma_f32: acc = std::fma(weight, value, acc); break;
          case TokenSums::f32: {
            const float product = weight * value;
            acc = acc + product;
            break;
          }
          case TokenSums::in_type: {
            const float product = rounded_to(type, rounded_to(type, weight) * value);
            acc = rounded_to(type, acc + product);
            break;
          }
          case TokenSums::fma_in_type: acc = fused_in(type, rounded_to(type, weight), value, acc); break;
        }
      }
      store(type, x, t * problem.columns + c, acc);
    }
  }
}

}  // namespace scalar
}  // namespace assay
