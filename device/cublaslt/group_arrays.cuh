#pragma once
// The 19 arrays that the library reads (GroupArrays), written by four blocks side by side: one for each matrix, A, B and D,
// and one for the scalars. A block's part of the arguments is one or two lines of the constant cache, and the differences
// between matrices are data, not code: neither code nor arguments are cached when a launch begins, so both are kept short.

#include <cstdint>
#include <cstring>

#include "device/cublaslt/group_copies.cuh"
#include "device/cublaslt/group_scan.cuh"
#include "device/cublaslt/group_setup.h"
#include "device/formats/convert.cuh"

namespace assay::device::group_setup {

// The unit of the addresses of an array.
enum class Counted : std::uint32_t { groups = 0, rows = 1, scales = 2 };

// base + half_bytes * (groups, rows or scales before) / 2; half bytes, since elements may be as small.
struct GroupAddresses {
  const void** to;
  const char* base;
  std::uint64_t half_bytes;
};

// Rows, columns and leading dimension of a matrix in each group: a number, or the rows of the group.
enum Dimension : int { kHeight = 0, kWidth = 1, kLeading = 2 };
struct GroupMatrix : TransposedStorage {
  GroupAddresses address[2];  // of data and scales; of D and C
  std::int32_t* to[3];
  std::int32_t number[3];
  Counted counted[2];
  std::uint32_t of_rows;     // bit i: dimension i is the rows of the group
  std::uint32_t hidden;      // bit i: dimension i is 0 in groups without products
  std::int32_t of_16_bytes;  // its elements; the leading dimension where it would be 0. D: 0
  ScaleMeasure measure;
};

struct GroupScalars {
  const float* alpha;   // null: 1
  const float* beta;    // null: 0
  const float* amax_a;  // null: alpha is taken as it is
  const float* amax_b;
  float *to_alpha, *to_beta;
  float **to_alpha_of, **to_beta_of;
  bool per_group;
};

static_assert(sizeof(GroupMatrix) == 128, "two lines of the constant cache");

enum MatrixNumber : int { kA = 0, kB = 1, kD = 2, kMatrices = 3 };
constexpr int kArrayBlocks = kMatrices + 1;

struct ArrayArguments : GroupRows {
  bool keep_empty;  // groups without products are shown as they are
  bool list_is_d;   // Lists::data holds D, not A
  bool expanded;    // the scales of A are expanded ones, regardless of the lists
  GroupMatrix matrix[kMatrices];
  GroupScalars scalars;
};

// Addresses that the caller holds on the host.
template <int kCapacity>
struct Lists {
  const void* data[kCapacity];
  const void* scale[kCapacity];
};
template <>
struct Lists<0> {};

#if defined(__CUDACC__)

template <int kCapacity>
__device__ const void* list_entry(const Lists<kCapacity>& lists, bool scale, int group) {
  if constexpr (kCapacity == 0) {
    return nullptr;
  } else {
    return scale ? lists.scale[group] : lists.data[group];
  }
}

__device__ inline float scalar(const float* values, bool per_group, int group, float absent) {
  return values == nullptr ? absent : values[per_group ? group : 0];
}

// Launched early, the kernel reads and writes nothing before the preceding kernels have finished. It does not start the next
// kernel early: that is the library's, which reads the arrays.
__device__ inline void wait_for_work_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ inline void write_scalars(const GroupScalars& scalars, int groups) {
  const int t = static_cast<int>(threadIdx.x);
  wait_for_work_before();
  if (t >= groups) return;
  float alpha = scalar(scalars.alpha, scalars.per_group, t, 1.0f);
  const float beta = scalar(scalars.beta, scalars.per_group, t, 0.0f);
  if (scalars.amax_a != nullptr) {  // spec grouped-gemm-2.2
    alpha = multiply(multiply(multiply(alpha, scalars.amax_a[t]), scalars.amax_b[t]), 1.0f / 7225344.0f);
  }
  scalars.to_alpha[t] = alpha;
  scalars.to_beta[t] = beta;
  scalars.to_alpha_of[t] = scalars.to_alpha + t;
  scalars.to_beta_of[t] = scalars.to_beta + t;
}

// Loads the arguments of a matrix into registers here: otherwise the compiler reads them after the scan, and waits for the
// constant cache after the splits instead of at the same time.
__device__ inline GroupMatrix read_now(const GroupMatrix& matrix) {
  constexpr int kWords = sizeof(GroupMatrix) / 8;
  unsigned long long words[kWords];
  memcpy(words, &matrix, sizeof words);
#if defined(__CUDA_ARCH__)
#pragma unroll
  for (int i = 0; i < kWords; ++i) asm volatile("mov.b64 %0, %0;" : "+l"(words[i]));
#endif
  GroupMatrix read;
  memcpy(&read, words, sizeof words);
  return read;
}

template <bool kOneWarp, bool kCopies, int kCapacity>
__device__ void write_matrix(const ArrayArguments& arguments, const Lists<kCapacity>& lists, GroupScratch& scratch) {
  const int t = static_cast<int>(threadIdx.x), which = static_cast<int>(blockIdx.x);
  const GroupMatrix matrix = read_now(arguments.matrix[which]);
  prefetch_splits(arguments);
  wait_for_work_before();
  std::uint32_t rows;
  GroupSums before;
  const unsigned faults = scan_groups<kOneWarp>(arguments, matrix.measure, scratch, rows, before);
  if (faults != 0) {
    rows = 0;
    before = GroupSums{};
  }

  const bool kept = arguments.keep_empty && faults == 0;
  const bool copied = kCopies && is_copied(matrix, rows);
  const std::uint32_t hidden = rows == 0 && !kept ? matrix.hidden : 0;
  std::int32_t value[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    value[i] = (matrix.of_rows >> i & 1) != 0 ? static_cast<std::int32_t>(rows) : matrix.number[i];
    if ((hidden >> i & 1) != 0) value[i] = 0;
  }
  if (copied) value[kLeading] = static_cast<std::int32_t>((row_bytes(matrix, rows) + 15) / 16) * matrix.of_16_bytes;
  if (value[kLeading] == 0) value[kLeading] = matrix.of_16_bytes;

  const void* address[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Counted counted = matrix.counted[i];
    const std::uint32_t count = counted == Counted::groups ? t : counted == Counted::rows ? before.value[0] : before.value[1];
    address[i] = matrix.address[i].base + count * matrix.address[i].half_bytes / 2;
  }
  if (copied) address[0] = copy_of(matrix, t, before.value[0]);

  if (t < arguments.rows.groups) {
    if constexpr (kCapacity != 0) {
      if (which == (arguments.list_is_d ? kD : kA)) {
        address[0] = list_entry(lists, false, t);
        if (arguments.list_is_d) address[1] = address[0];
        if (!arguments.list_is_d && !arguments.expanded) address[1] = list_entry(lists, true, t);
      }
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) matrix.to[i][t] = value[i];
#pragma unroll
    for (int i = 0; i < 2; ++i) matrix.address[i].to[t] = address[i];
  }
  if (faults != 0 && t == 0) group_detail::tell(arguments.status, faults);
}

// Blocks 0 to kArrayBlocks - 1, with a thread for each group. They wait for the earlier kernels themselves, after reading
// their arguments.
template <bool kCopies, int kCapacity>
__device__ void write_arrays(const ArrayArguments& arguments, const Lists<kCapacity>& lists, GroupScratch& scratch) {
  if (blockIdx.x == kMatrices) return write_scalars(arguments.scalars, arguments.rows.groups);
  if (arguments.rows.groups > 32) return write_matrix<false, kCopies>(arguments, lists, scratch);
  if (threadIdx.x < 32) write_matrix<true, kCopies>(arguments, lists, scratch);
}

#endif  // __CUDACC__

}  // namespace assay::device::group_setup
