// Tokens to the rows of their experts, and back.
//
//   traffic   permute reads each token's row once and writes it for each choice; unpermute reads the row of each choice once and
//             writes each token's row once. A small kernel reads the map before, 4 B an entry, so that an invalid entry is known
//             before anything is written
//   layout    consecutive threads hold consecutive 16 bytes of a row, or as many as rows and addresses are multiples of (unpermute:
//             or one element); a thread takes the same bytes of all choices of its token
//   order     choices upward from 0, in one thread
//   matches   reference/layout/token_permutation.h

#include <algorithm>
#include <string>

#include "device/layout/check_rows.h"
#include "device/layout/token_permutation.h"
#include "device/layout/token_sum.cuh"
#include "device/support/call_device.h"
#include "device/support/launch.cuh"

namespace assay::device {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(std::int64_t items) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  return static_cast<unsigned>(std::clamp<std::int64_t>((items + kThreads - 1) / kThreads, 1, kMost));
}

__device__ std::int64_t first_item() { return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; }
__device__ std::int64_t all_threads() { return static_cast<std::int64_t>(gridDim.x) * kThreads; }

__global__ void __launch_bounds__(kThreads) check_map(const TokenMap map, std::uint32_t* faulty, std::uint32_t* status) {
  bool good = true;
  for (std::int64_t i = first_item(); i < map.tokens * map.topk; i += all_threads()) {
    const std::int64_t row = map.rows[i];
    good = good && row >= -1 && row < map.permuted_rows;
  }
  if (good) return;
  atomicOr(faulty, 1u);
  if (status != nullptr) atomicOr(status, kStatusInvalidIndex);
}

template <class Word>
__global__ void __launch_bounds__(kThreads) copy_rows(const TokenMap map, const std::int64_t words, const Word* __restrict__ from,
                                                      Word* __restrict__ to, const std::uint32_t* faulty) {
  if (*faulty != 0) return;
  for (std::int64_t item = first_item(); item < map.tokens * words; item += all_threads()) {
    const std::int64_t token = item / words, at = item % words;
    const Word word = from[item];
    for (std::int64_t k = 0; k < map.topk; ++k) {
      const std::int64_t row = map.rows[token * map.topk + k];
      if (row >= 0) to[row * words + at] = word;
    }
  }
}

// kVector consecutive elements of a row.
template <Format type, int kVector>
struct Elements {
  using Stored = std::conditional_t<type == Format::f32, std::uint32_t, std::uint16_t>;
  alignas(sizeof(Stored) * kVector) Stored code[kVector];
};

template <Format type, TokenSums sums, int kVector>
__global__ void __launch_bounds__(kThreads) sum_rows(const UnpermuteCall call, const std::uint32_t* faulty) {
  using Part = Elements<type, kVector>;
  if (*faulty != 0) return;
  const std::int64_t parts = call.columns / kVector;
  for (std::int64_t item = first_item(); item < call.map.tokens * parts; item += all_threads()) {
    const std::int64_t token = item / parts, at = item % parts;
    float acc[kVector];
#pragma unroll
    for (float& each : acc) each = 0;
    for (std::int64_t k = 0; k < call.map.topk; ++k) {
      const std::int64_t entry = token * call.map.topk + k, row = call.map.rows[entry];
      if (row < 0) continue;
      const float weight = call.weights == nullptr ? 1.0f : call.weights[entry];
      const Part part = static_cast<const Part*>(call.permuted)[row * parts + at];
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        acc[i] = with_choice<type, sums>(acc[i], weight, Element<type>::widen_one(part.code[i]));
      }
    }
    Part made;
#pragma unroll
    for (int i = 0; i < kVector; ++i) made.code[i] = static_cast<typename Part::Stored>(code_of_sum<type>(acc[i]));
    static_cast<Part*>(call.x)[item] = made;
  }
}

template <Format type, TokenSums sums>
void launch_sums(const UnpermuteCall& call, const std::uint32_t* faulty, Stream stream) {
  constexpr int kWide = type == Format::f32 ? 4 : 8;
  const bool wide = call.columns % kWide == 0 && is_aligned(call.permuted, 16) && is_aligned(call.x, 16);
  const std::int64_t items = call.map.tokens * (wide ? call.columns / kWide : call.columns);
  launch_kernel("unpermute", wide ? sum_rows<type, sums, kWide> : sum_rows<type, sums, 1>, blocks_for(items), kThreads, 0, stream,
                call, faulty);
}

template <Format type>
void launch_type(const UnpermuteCall& call, const std::uint32_t* faulty, Stream stream) {
  switch (call.sums) {
    case TokenSums::fma_f32: return launch_sums<type, TokenSums::fma_f32>(call, faulty, stream);
    case TokenSums::f32: return launch_sums<type, TokenSums::f32>(call, faulty, stream);
    case TokenSums::in_type: return launch_sums<type, TokenSums::in_type>(call, faulty, stream);
    case TokenSums::fma_in_type: return launch_sums<type, TokenSums::fma_in_type>(call, faulty, stream);
  }
}

std::int64_t product(std::int64_t a, std::int64_t b, const std::string& name) {
  std::int64_t result = 0;
  require(!__builtin_mul_overflow(a, b, &result), name, b, "a size whose product with " + std::to_string(a) + " fits in 64 bits");
  return result;
}

void check_map_call(const TokenMap& map, const void* workspace, const std::uint32_t* status) {
  require(map.tokens >= 0, "map.tokens", map.tokens, "a value of at least 0");
  require(map.topk >= 0, "map.topk", map.topk, "a value of at least 0");
  require(map.permuted_rows >= 0, "map.permuted_rows", map.permuted_rows, "a value of at least 0");
  if (product(map.tokens, map.topk, "map.topk") > 0) require_pointer(map.rows, "map.rows", alignof(std::int32_t));
  require_pointer(workspace, "workspace", 256);
  if (status != nullptr) require_pointer(status, "status", alignof(std::uint32_t));
}

// Enqueues the check of the map; the result stands in the workspace.
const std::uint32_t* enqueue_check(const TokenMap& map, void* workspace, std::uint32_t* status, Stream stream) {
  auto* faulty = static_cast<std::uint32_t*>(workspace);
  check_cuda(cudaMemsetAsync(faulty, 0, sizeof *faulty, stream), "token map: clear the workspace");
  launch_kernel("token map", check_map, blocks_for(map.tokens * map.topk), kThreads, 0, stream, map, faulty, status);
  return faulty;
}

template <class Word>
void launch_copy(const TokenMap& map, std::int64_t row_bytes, const void* from, void* to, const std::uint32_t* faulty,
                 Stream stream) {
  const auto words = row_bytes / static_cast<std::int64_t>(sizeof(Word));
  launch_kernel("permute", copy_rows<Word>, blocks_for(map.tokens * words), kThreads, 0, stream, map, words,
                static_cast<const Word*>(from), static_cast<Word*>(to), faulty);
}

}  // namespace

void permute_rows(const TokenMap& map, std::int64_t row_bytes, const void* from, void* to, void* workspace, std::uint32_t* status,
                  Stream stream) {
  check_map_call(map, workspace, status);
  require(row_bytes >= 0, "row_bytes", row_bytes, "a value of at least 0");
  if (product(map.tokens, row_bytes, "row_bytes") > 0) require_pointer(from, "from");
  if (product(map.permuted_rows, row_bytes, "row_bytes") > 0) require_pointer(to, "to");
  const CallDevice device(stream,
                          {{"map.rows", map.rows}, {"from", from}, {"to", to}, {"workspace", workspace}, {"status", status}});
  const std::uint32_t* faulty = enqueue_check(map, workspace, status, stream);
  if (map.tokens == 0 || map.topk == 0 || map.permuted_rows == 0 || row_bytes == 0) return;
  const auto fits = [&](std::uintptr_t bytes) {
    return row_bytes % static_cast<std::int64_t>(bytes) == 0 && is_aligned(from, bytes) && is_aligned(to, bytes);
  };
  if (fits(16)) return launch_copy<uint4>(map, row_bytes, from, to, faulty, stream);
  if (fits(8)) return launch_copy<uint2>(map, row_bytes, from, to, faulty, stream);
  if (fits(4)) return launch_copy<std::uint32_t>(map, row_bytes, from, to, faulty, stream);
  if (fits(2)) return launch_copy<std::uint16_t>(map, row_bytes, from, to, faulty, stream);
  launch_copy<std::uint8_t>(map, row_bytes, from, to, faulty, stream);
}

void unpermute(const UnpermuteCall& call, Stream stream) {
  const TokenMap& map = call.map;
  check_map_call(map, call.workspace, call.status);
  const bool known = call.type == Format::bf16 || call.type == Format::f16 || call.type == Format::f32;
  require(known, "type", static_cast<std::int64_t>(call.type), "bf16, f16 or f32");
  require(call.sums <= TokenSums::fma_in_type, "sums", static_cast<std::int64_t>(call.sums), "a TokenSums (0 to 3)");
  require(call.columns >= 0, "columns", call.columns, "a value of at least 0");
  const std::uintptr_t width = call.type == Format::f32 ? 4 : 2;
  const std::int64_t elements = product(map.tokens, call.columns, "columns");
  product(elements, 4, "columns");
  if (product(product(map.permuted_rows, call.columns, "columns"), 4, "columns") > 0)
    require_pointer(call.permuted, "permuted", width);
  if (elements > 0) require_pointer(call.x, "x", width);
  if (call.weights != nullptr) require_pointer(call.weights, "weights", alignof(float));
  const CallDevice device(stream, {{"map.rows", map.rows},
                                   {"permuted", call.permuted},
                                   {"weights", call.weights},
                                   {"x", call.x},
                                   {"workspace", call.workspace},
                                   {"status", call.status}});
  const std::uint32_t* faulty = enqueue_check(map, call.workspace, call.status, stream);
  if (elements == 0) return;
  if (call.type == Format::bf16) return launch_type<Format::bf16>(call, faulty, stream);
  if (call.type == Format::f16) return launch_type<Format::f16>(call, faulty, stream);
  launch_type<Format::f32>(call, faulty, stream);
}

}  // namespace assay::device
