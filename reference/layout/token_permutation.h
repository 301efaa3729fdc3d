#pragma once
// Tokens to the rows of their experts, and back (spec token-permutation-1.1).
//
// row_map [tokens, topk]: the row of the permuted matrix that has choice k of token t; -1: that choice is dropped. No row has two.

#include <cstdint>
#include <span>

#include "reference/types/format.h"

namespace assay {

struct RowMap {
  std::span<const std::int32_t> rows;  // [tokens, topk]
  std::int64_t tokens = 0, topk = 0;
  std::int64_t permuted_rows = 0;
};

// Row row_map[t][k] of `to` becomes row t of `from`, byte by byte, in rows of `row_bytes`: elements, or scales of each token. Rows of
// `to` that the map does not name keep what they hold.
// Errors (InvalidArgument): a negative size, a map of another size than tokens * topk, an entry outside [-1, permuted_rows), a row
// that is named twice, a null pointer to what is not empty.
void permute_rows(const RowMap& map, std::int64_t row_bytes, const void* from, void* to);

// How the choices of a token are summed, k upward from +0 (spec token-permutation-1.2).
enum class TokenSums {
  fma_f32,      // acc = fma(w, v, acc)
  f32,          // acc = RN(acc + RN(w * v))
  in_type,      // as f32, with w, each product and each sum rounded to the type of the elements
  fma_in_type,  // as fma_f32, with w and each fused sum rounded to the type of the elements
};

struct UnpermuteProblem {
  RowMap map;
  Format type = Format::bf16;  // bf16, f16 or f32
  std::int64_t columns = 0;
  const void* permuted = nullptr;  // [permuted_rows, columns]
  const float* weights = nullptr;  // [tokens, topk]; null: v is added as it is
  TokenSums sums = TokenSums::fma_f32;
};

// x [tokens, columns]: the sum over the choices of each token that are not dropped, rounded to `type` at last; +0 without any.
// Errors: as permute_rows(); another type.
void unpermute(const UnpermuteProblem& problem, void* x);

// The checks of both. Errors: as above.
void check_row_map(const RowMap& map);
void check_permute(const RowMap& map, std::int64_t row_bytes, const void* from, const void* to);
void check_unpermute(const UnpermuteProblem& problem, const void* x);

namespace scalar {
void permute_rows(const RowMap& map, std::int64_t row_bytes, const void* from, void* to);
void unpermute(const UnpermuteProblem& problem, void* x);
}  // namespace scalar

}  // namespace assay
