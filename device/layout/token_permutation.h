#pragma once
// Tokens to the rows of their experts, and back, on the device: reference/layout/token_permutation.h over device memory (spec
// token-permutation-1.1, token-permutation-1.2).
//
// An entry of the map outside [-1, permuted_rows) is reported in the status word (kStatusInvalidIndex), and nothing is written. A
// row that two choices name is the caller's fault: permute then gives it to either of them, byte by byte.

#include <cstdint>

#include "device/support/error.h"
#include "device/support/stream.h"
#include "reference/layout/token_permutation.h"

namespace assay::device {

struct TokenMap {
  const std::int32_t* rows = nullptr;  // device [tokens, topk]: the row of the permuted matrix for each choice; -1: dropped
  std::int64_t tokens = 0, topk = 0;
  std::int64_t permuted_rows = 0;
};

// Bytes of device memory, 256-byte aligned, that each call needs; contents undefined.
inline constexpr std::int64_t kTokenMapWorkspaceBytes = 256;

// Row map[t][k] of `to` becomes row t of `from`, byte by byte, in rows of `row_bytes`: elements, or scales of each token. Rows
// that the map does not name are not touched. Errors: InvalidArgument, before anything is launched.
void permute_rows(const TokenMap& map, std::int64_t row_bytes, const void* from, void* to, void* workspace, std::uint32_t* status,
                  Stream stream);

struct UnpermuteCall {
  TokenMap map;
  Format type = Format::bf16;  // bf16, f16 or f32
  std::int64_t columns = 0;
  const void* permuted = nullptr;  // device [permuted_rows, columns]
  const float* weights = nullptr;  // device [tokens, topk]; null: 1
  TokenSums sums = TokenSums::fma_f32;
  void* x = nullptr;  // device [tokens, columns]
  void* workspace = nullptr;
  std::uint32_t* status = nullptr;  // device [1], or null
};
// Each row of x becomes the sum over the choices of its token that are not dropped. Weights of dropped choices, and rows that the
// map does not name, are not read. Errors: as permute_rows().
void unpermute(const UnpermuteCall& call, Stream stream);

}  // namespace assay::device
