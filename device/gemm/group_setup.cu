// Everything about the groups that a library wants in device memory, from the splits.
//
//   bound     latency: launch, one read of the splits, one scan, 19 values a group; the other blocks, where there are any,
//             write memory at its speed
//   layout    blocks 0 to 3 write the arrays, a thread a group (group_arrays.cuh). The others, where there are any, do one of
//             two things that do not wait for it: groups that are more than addresses (each such block scans the splits by
//             itself): those without products get +0 * factor + beta * C, those with a pitch that is no multiple of 16 bytes
//             are copied, 16 bytes a thread and step; or 128x128 scales are written out, a warp a tile: one scale read, up to
//             512 bytes written. From SM90 on it is launched while the kernel before it ends
//   matches   reference/gemm/problem.h (which memory belongs to which group), epilogue.h (without products)

#include "device/gemm/group_setup.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "device/formats/convert.cuh"
#include "device/gemm/group_arrays.cuh"
#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_rows.h"
#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/support/launch_check.h"

namespace assay::device {
namespace {

constexpr int kFewThreads = 256;
constexpr int kFillBlocks = 132, kExpandBlocks = 1056;

using namespace group_setup;
using Sums = GroupSums;

struct Side : TransposedStorage {
  const char* data;
  const char* scale;               // of the first group; null: none
  const float* amax;
  std::int64_t extent, depth;
};

// What the other blocks are told: that which needs no product, copies, expanded scales.
struct Arguments : GroupRows {
  Side a, b;
  char* d;
  const char* c;                   // d where the caller gave none
  const float* alpha;
  const float* beta;
  std::int64_t d_half_bytes;       // of an element
  bool scalars_per_group;
  bool list_is_d;                  // Lists::data holds D, not A
  bool fill;                       // groups without products, groups to be copied; else scales are written out
  bool whole_scales, whole_amax;   // what multiplies the sum of a group besides alpha
  Format d_type;
  std::int64_t scale_bytes;        // 128x128 scales of a group
  float* expanded;
  std::int64_t expanded_bytes;     // of a group
  std::int32_t extent_tiles, depth_blocks, scale_pitch;
};

__device__ std::int64_t of_group(std::int64_t size, std::uint32_t rows) { return size == GemmSide::kOfGroup ? rows : size; }

// Transposed storage: the rows of a group lie side by side.
__device__ const char* data_of(const Side& side, std::uint32_t first_row) {
  return side.data + static_cast<std::int64_t>(first_row) * side.columns * side.half_bytes / 2;
}

__device__ bool scan(const Arguments& arguments, GroupScratch& scratch, std::uint32_t& own, Sums& before) {
  return scan_groups<false>(arguments, {}, scratch, own, before) == 0;
}

// What multiplies the sum of a group without products (plan.h, GemmEpilogue): a scale that is not there is 1, an amax 0.
template <int kMost>
__device__ float sum_factor(const Arguments& arguments, const Lists<kMost>& lists, int group) {
  const float alpha = scalar(arguments.alpha, arguments.scalars_per_group, group, 1.0f);
  if (arguments.whole_scales) {
    const auto given = [&](const Side& side) { return side.scale == nullptr ? nullptr : side.scale + 4 * static_cast<std::int64_t>(group); };
    const void *columns = given(arguments.a), *rows = given(arguments.b);
    if constexpr (kMost != 0) {
      if (!arguments.list_is_d) columns = list_entry(lists, true, group);
    }
    const auto value = [](const void* scale) { return scale == nullptr ? 1.0f : *static_cast<const float*>(scale); };
    return multiply(multiply(alpha, value(columns)), value(rows));
  }
  if (arguments.whole_amax) {
    const auto amax = [&](const Side& side) { return side.amax != nullptr ? side.amax[group] : 0.0f; };
    return multiply(multiply(multiply(alpha, amax(arguments.a)), amax(arguments.b)), 1.0f / 7225344.0f);
  }
  return alpha;
}

// D = RN(product + RN(beta * C)) of one element; codes are as stored.
template <Format type>
__device__ std::uint32_t scaled(std::uint32_t code, float product, float beta) {
  const float value = beta == 0 ? add(product, 0.0f) : add(product, multiply(beta, Element<type>::widen_one(code)));
  if constexpr (type == Format::f32) {
    return bits_of_float(stored_float(value));
  } else if constexpr (type == Format::bf16) {
    return encode_bf16(value);
  } else {
    return encode_f16(value);
  }
}

// `count` elements of D, shared out over `threads` threads.
template <Format type>
__device__ void fill_elements(char* d, const char* c, std::int64_t count, float factor, float beta, std::int64_t thread,
                              std::int64_t threads) {
  constexpr int kBytes = Element<type>::kBytes, kPerWord = Element<type>::kPerWord, kPerVector = 16 / kBytes;
  const float product = multiply(0.0f, factor);  // exact: +0, -0 or NaN, so that adding C is what FMA(+0, factor, C) gives
  const std::uint32_t alone = scaled<type>(0, product, 0) * (kPerWord == 1 ? 1u : 0x10001u);
  const bool vectors = (reinterpret_cast<std::uintptr_t>(d) | reinterpret_cast<std::uintptr_t>(c)) % 16 == 0;
  const std::int64_t in_vectors = vectors ? count / kPerVector : 0;
  for (std::int64_t v = thread; v < in_vectors; v += threads) {
    uint4 words = make_uint4(alone, alone, alone, alone);
    if (beta != 0) {
      words = reinterpret_cast<const uint4*>(c)[v];
      const auto each = [&](std::uint32_t word) {
        if constexpr (kPerWord == 1) {
          return scaled<type>(word, product, beta);
        } else {
          return scaled<type>(word & 0xFFFFu, product, beta) | scaled<type>(word >> 16, product, beta) << 16;
        }
      };
      words = make_uint4(each(words.x), each(words.y), each(words.z), each(words.w));
    }
    reinterpret_cast<uint4*>(d)[v] = words;
  }
  for (std::int64_t i = in_vectors * kPerVector + thread; i < count; i += threads) {
    if constexpr (kBytes == 4) {
      const std::uint32_t code = beta != 0 ? scaled<type>(reinterpret_cast<const std::uint32_t*>(c)[i], product, beta) : alone;
      reinterpret_cast<std::uint32_t*>(d)[i] = code;
    } else {
      const std::uint32_t code = beta != 0 ? scaled<type>(reinterpret_cast<const std::uint16_t*>(c)[i], product, beta) : alone;
      reinterpret_cast<std::uint16_t*>(d)[i] = static_cast<std::uint16_t>(code);
    }
  }
}

// 16 bytes of a row of `bytes` bytes, from byte `at` of it on; past its end, zeros. Reads the aligned words that hold them.
__device__ uint4 read_unaligned(const char* row, std::uint32_t bytes, std::uint32_t at) {
  const auto from = reinterpret_cast<std::uintptr_t>(row + at);
  const auto* words = reinterpret_cast<const std::uint32_t*>(from & ~std::uintptr_t{3});
  const auto skipped = static_cast<std::uint32_t>(from & 3);
  const std::uint32_t left = min(bytes - at, 16u);  // of the row
  std::uint32_t word[5], made[4];
#pragma unroll
  for (std::uint32_t i = 0; i < 5; ++i) word[i] = 4 * i < skipped + left ? __ldg(words + i) : 0;
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t value = __funnelshift_r(word[i], word[i + 1], 8 * skipped);
    const std::uint32_t kept = left > 4 * i ? min(left - 4 * i, 4u) : 0;  // bytes
    made[i] = kept == 4 ? value : value & ((1u << 8 * kept) - 1);
  }
  return make_uint4(made[0], made[1], made[2], made[3]);
}

// A group of transposed storage, `columns` rows of M_t elements, with each row at a multiple of 16 bytes. Shared out over
// `threads` threads.
__device__ void copy_aligned(const Side& side, int group, std::uint32_t first_row, std::uint32_t rows, std::int64_t thread,
                             std::int64_t threads) {
  constexpr int kInFlight = 4;
  const auto bytes = static_cast<std::uint32_t>(row_bytes(side, rows));
  const std::int64_t vectors = (bytes + 15) / 16, all = vectors * side.columns;  // bytes is not 0
  const char* from = data_of(side, first_row);
  auto* to = reinterpret_cast<uint4*>(copy_of(side, group, first_row));
  std::int64_t row = thread / vectors, at = thread % vectors;
  const std::int64_t rows_on = threads / vectors, at_on = threads % vectors;
  for (std::int64_t v = thread; v < all; v += kInFlight * threads) {
    uint4 value[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (v + i * threads < all) value[i] = read_unaligned(from + row * bytes, bytes, static_cast<std::uint32_t>(16 * at));
      row += rows_on, at += at_on;
      if (at >= vectors) at -= vectors, ++row;
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (v + i * threads < all) to[v + i * threads] = value[i];
    }
  }
}

struct GroupsWithWork {
  unsigned count;
  struct Group {
    std::uint32_t group, first_row, rows;
  } list[kMaxGroups];
};

template <int kMost>
__device__ void prepare_groups(const Arguments& arguments, const Lists<kMost>& lists, group_detail::BlockScratch<Sums>& scratch,
                               GroupsWithWork& work) {
  if (threadIdx.x == 0) work.count = 0;
  std::uint32_t rows;
  Sums before;
  if (!scan(arguments, scratch, rows, before)) return;  // has barriers
  const int t = static_cast<int>(threadIdx.x);
  const auto is_empty = [&](std::uint32_t of) {
    return of_group(arguments.a.depth, of) == 0 && of_group(arguments.b.extent, of) != 0;
  };
  if (t < arguments.rows.groups && (is_empty(rows) || is_copied(arguments.a, rows) || is_copied(arguments.b, rows))) {
    work.list[atomicAdd(&work.count, 1u)] = {static_cast<std::uint32_t>(t), before.value[0], rows};  // in any order
  }
  __syncthreads();
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x - kArrayBlocks) * blockDim.x + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x - kArrayBlocks) * blockDim.x;
  const unsigned count = work.count;
  for (unsigned i = 0; i < count; ++i) {
    const int group = static_cast<int>(work.list[i].group);
    const std::uint32_t first_row = work.list[i].first_row, of = work.list[i].rows;
    if (is_copied(arguments.a, of)) copy_aligned(arguments.a, group, first_row, of, thread, threads);
    if (is_copied(arguments.b, of)) copy_aligned(arguments.b, group, first_row, of, thread, threads);
    if (!is_empty(of)) continue;
    const std::int64_t m = of_group(arguments.b.extent, of), n = of_group(arguments.a.extent, of);
    const bool d_by_rows = arguments.b.extent == GemmSide::kOfGroup;
    const std::int64_t d_row = d_by_rows ? first_row : group * m;
    const std::int64_t at = d_row * n * arguments.d_half_bytes / 2;
    char* d = arguments.d + at;
    const char* c = arguments.c + at;
    if constexpr (kMost != 0) {
      if (arguments.list_is_d) {
        d = static_cast<char*>(const_cast<void*>(list_entry(lists, false, group)));
        c = d;
      }
    }
    const float factor = sum_factor(arguments, lists, group);
    const float beta = scalar(arguments.beta, arguments.scalars_per_group, group, 0.0f);
    switch (arguments.d_type) {
      case Format::f32: fill_elements<Format::f32>(d, c, m * n, factor, beta, thread, threads); break;
      case Format::bf16: fill_elements<Format::bf16>(d, c, m * n, factor, beta, thread, threads); break;
      default: fill_elements<Format::f16>(d, c, m * n, factor, beta, thread, threads); break;
    }
  }
}

template <int kMost>
__device__ void expand_scales(const Arguments& arguments, const Lists<kMost>& lists) {
  const int lane = static_cast<int>(threadIdx.x % 32), warps = static_cast<int>(blockDim.x / 32);
  const std::int64_t tiles_of_group = static_cast<std::int64_t>(arguments.extent_tiles) * arguments.depth_blocks;
  const std::int64_t tiles = tiles_of_group * arguments.rows.groups;
  const std::int64_t pitch = round_up(arguments.a.extent, 4);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x - kArrayBlocks) * warps;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x - kArrayBlocks) * warps + threadIdx.x / 32; at < tiles; at += stride) {
    const int group = static_cast<int>(at / tiles_of_group);
    const auto tile = static_cast<std::int32_t>(at - group * tiles_of_group);
    const std::int32_t block = tile / arguments.extent_tiles, row_tile = tile - block * arguments.extent_tiles;
    const char* scales = arguments.a.scale + group * arguments.scale_bytes;
    if constexpr (kMost != 0) scales = static_cast<const char*>(list_entry(lists, true, group));
    const float scale = reinterpret_cast<const float*>(scales)[static_cast<std::int64_t>(row_tile) * arguments.scale_pitch + block];
    const std::int64_t row = static_cast<std::int64_t>(row_tile) * 128 + lane * 4;
    if (row >= pitch) continue;
    float* to = arguments.expanded + group * (arguments.expanded_bytes / 4) + block * pitch + row;
    *reinterpret_cast<float4*>(to) = make_float4(scale, scale, scale, scale);
  }
}

// The arrays, and nothing else.
template <int kMost>
__global__ void __launch_bounds__(kMaxGroups)
    set_up_arrays(const __grid_constant__ ArrayArguments arrays, const __grid_constant__ Lists<kMost> lists) {
  __shared__ GroupScratch scratch;
  write_arrays<false>(arrays, lists, scratch);
}

template <int kMost>
__global__ void __launch_bounds__(kMaxGroups) set_up(const __grid_constant__ ArrayArguments arrays, const __grid_constant__ Arguments arguments,
                                                     const __grid_constant__ Lists<kMost> lists) {
  __shared__ GroupScratch scratch;
  __shared__ GroupsWithWork work;
  if (blockIdx.x < kArrayBlocks) return write_arrays<true>(arrays, lists, scratch);
  wait_for_work_before();
  if (arguments.fill) {
    prepare_groups(arguments, lists, scratch, work);
  } else {
    expand_scales(arguments, lists);
  }
}

GroupRows group_rows(const GroupedGemmCall& call, const GroupSetupOptions& options) {
  GroupRows rows{};
  rows.rows = call.rows;
  rows.set_row_unit(static_cast<std::uint32_t>(options.row_unit));
  rows.odd_rows_refused = call.kind == GemmKind::nvfp4 && call.layout == GemmLayout::NT;
  rows.status = call.status;
  return rows;
}

// Expanded scales of a group.
std::int64_t expanded_bytes(const GemmSide& w) { return 4 * ceil_div(w.depth, 128) * round_up(w.extent, 4); }

// The scales of an operand.
struct Scales {
  const char* data = nullptr;      // null: none
  bool by_group = true;
  std::int64_t bytes = 0;          // of a group, or of what is measured
  ScaleMeasure measure;
};

Scales scales_of(const GroupedGemmCall& call, const GemmSide& from) {
  const bool columnwise = from.operand->columnwise;
  const std::int64_t rows = call.N;  // of w
  Scales scales;
  if (call.kind == GemmKind::bf16 || call.kind == GemmKind::f16) return scales;
  scales.data = static_cast<const char*>(from.operand->scale_inv);
  const auto set = [&](ScaleMeasure measure, std::int64_t unit_bytes) {
    const std::int64_t units_of_weight = round_up(ceil_div(rows, std::int64_t{1} << measure.block_bits), measure.unit);
    scales.by_group = from.weight;
    scales.bytes = from.weight ? unit_bytes * units_of_weight : unit_bytes;
    scales.measure = measure;
  };
  const std::int64_t columns = from.columns;
  switch (call.kind) {
    case GemmKind::tensor: scales.bytes = 4; break;
    case GemmKind::block:
      if (from.weight && call.weight_block == WeightBlock::b128x128) {
        scales.bytes = columnwise ? 4 * ceil_div(columns, 128) * round_up(ceil_div(rows, 128), 4)
                                  : 4 * round_up(ceil_div(columns, 128), 4) * ceil_div(rows, 128);
      } else if (columnwise) {
        set({7, 1}, 4 * round_up(columns, 4));
      } else {
        set({0, 4}, 4 * ceil_div(columns, 128));
      }
      break;
    case GemmKind::mxfp8:
      columnwise ? set({5, 4}, round_up(columns, 128)) : set({0, 128}, round_up(ceil_div(columns, 32), 4));
      break;
    default:
      columnwise ? set({4, 4}, round_up(columns, 128)) : set({0, 128}, round_up(ceil_div(columns, 16), 4));
      break;
  }
  return scales;
}

void set_dimension(GroupMatrix& matrix, Dimension dimension, std::int64_t size) {
  if (size == GemmSide::kOfGroup) {
    matrix.of_rows |= 1u << dimension;
  } else {
    matrix.number[dimension] = static_cast<std::int32_t>(size);
  }
}

// A or B. `extent` is what is shown of its extent: `hidden`, nothing in groups without products.
GroupMatrix operand_matrix(const GroupedGemmCall& call, const GemmSide& from, std::int64_t extent, bool hidden, void* aligned) {
  GroupMatrix matrix{};
  const Dimension of_extent = from.k_major ? kWidth : kHeight;
  set_dimension(matrix, of_extent, extent);
  set_dimension(matrix, from.k_major ? kHeight : kWidth, from.depth);
  set_dimension(matrix, kLeading, from.k_major ? from.depth : from.extent);
  if (hidden) matrix.hidden = 1u << of_extent;
  matrix.half_bytes = type_bits(from.operand->type) / 4;
  matrix.of_16_bytes = 32 / matrix.half_bytes;
  matrix.aligned = static_cast<char*>(aligned);
  matrix.columns = static_cast<std::int32_t>(from.columns);
  const std::int64_t row = from.columns * matrix.half_bytes;
  GroupAddresses &data = matrix.address[0], &scale = matrix.address[1];
  data.base = static_cast<const char*>(from.operand->data);
  data.half_bytes = static_cast<std::uint64_t>(from.weight ? call.N * row : row);
  matrix.counted[0] = from.weight ? Counted::groups : Counted::rows;
  const Scales scales = scales_of(call, from);
  scale.base = scales.data;
  scale.half_bytes = static_cast<std::uint64_t>(scales.data == nullptr ? 0 : 2 * scales.bytes);
  matrix.counted[1] = scales.by_group ? Counted::groups : Counted::scales;
  matrix.measure = scales.measure;
  return matrix;
}

// D and, with the same shapes, C. `rows` is what is shown of its rows.
GroupMatrix output_matrix(const GroupedGemmCall& call, const GemmSides& sides, std::int64_t rows, bool hidden) {
  GroupMatrix matrix{};
  const std::int64_t n = sides.columns.extent, all_rows = sides.rows.extent, row = n * (type_bits(call.d_type) / 4);
  set_dimension(matrix, kHeight, n);
  set_dimension(matrix, kWidth, rows);
  set_dimension(matrix, kLeading, n);
  if (hidden) matrix.hidden = 1u << kWidth;
  const bool by_rows = all_rows == GemmSide::kOfGroup;
  const void* const c = call.c == nullptr ? call.d : call.c;
  for (int i = 0; i < 2; ++i) {
    matrix.address[i].base = static_cast<const char*>(i == 0 ? call.d : c);
    matrix.address[i].half_bytes = static_cast<std::uint64_t>(by_rows ? row : all_rows * row);
    matrix.counted[i] = by_rows ? Counted::rows : Counted::groups;
  }
  return matrix;
}

// Groups without products may come, or there are no others, and they are not the library's.
bool fills(const GemmSides& sides, const GroupSetupOptions& options) {
  const std::int64_t depth = sides.columns.depth;
  return !options.keep_empty && (depth == GemmSide::kOfGroup || depth == 0);
}
// 128x128 scales are written out.
bool expands(const GemmSides& sides, const GroupSetupOptions& options) {
  return options.expanded_scales != nullptr && !fills(sides, options);
}

ArrayArguments array_arguments(const GroupedGemmCall& call, const GroupArrays& to, const GroupSetupOptions& options) {
  const GemmSides sides = gemm_sides(call);
  ArrayArguments arguments{};
  static_cast<GroupRows&>(arguments) = group_rows(call, options);
  arguments.keep_empty = options.keep_empty;
  arguments.list_is_d = call.d_list != nullptr;
  const bool hidden = sides.rows.depth == GemmSide::kOfGroup;
  const std::int64_t m = !options.keep_empty && sides.rows.depth == 0 ? 0 : sides.rows.extent;
  GroupMatrix &a = arguments.matrix[kA], &b = arguments.matrix[kB], &d = arguments.matrix[kD];
  a = operand_matrix(call, sides.columns, sides.columns.extent, false, options.aligned_a);
  b = operand_matrix(call, sides.rows, m, hidden, options.aligned_b);
  d = output_matrix(call, sides, m, hidden);
  if (expands(sides, options)) {
    arguments.expanded = true;
    a.address[1].base = reinterpret_cast<const char*>(options.expanded_scales);
    a.address[1].half_bytes = static_cast<std::uint64_t>(2 * expanded_bytes(sides.columns));
    a.counted[1] = Counted::groups;
  }
  const auto write_to = [](GroupMatrix& matrix, auto first, auto second, std::int32_t* rows, std::int32_t* columns, std::int32_t* leading) {
    matrix.address[0].to = const_cast<const void**>(first);
    matrix.address[1].to = const_cast<const void**>(second);
    matrix.to[kHeight] = rows, matrix.to[kWidth] = columns, matrix.to[kLeading] = leading;
  };
  write_to(a, to.a, to.a_scale, to.a_rows, to.a_columns, to.a_leading);
  write_to(b, to.b, to.b_scale, to.b_rows, to.b_columns, to.b_leading);
  write_to(d, to.d, to.c, to.d_rows, to.d_columns, to.d_leading);

  GroupScalars& scalars = arguments.scalars;
  scalars.alpha = call.alpha;
  scalars.beta = call.beta;
  scalars.per_group = call.scalars_per_group;
  const float *amax_a = sides.columns.operand->amax, *amax_b = sides.rows.operand->amax;
  if (call.kind == GemmKind::nvfp4 && amax_a != nullptr && amax_b != nullptr) scalars.amax_a = amax_a, scalars.amax_b = amax_b;
  scalars.to_alpha = to.alpha;
  scalars.to_beta = to.beta;
  scalars.to_alpha_of = to.alpha_of;
  scalars.to_beta_of = to.beta_of;
  return arguments;
}

Side side_arguments(const GemmSide& from, void* aligned) {
  Side side{};
  side.data = static_cast<const char*>(from.operand->data);
  side.scale = static_cast<const char*>(from.operand->scale_inv);
  side.amax = from.operand->amax;
  side.columns = static_cast<std::int32_t>(from.columns);
  side.extent = from.extent;
  side.depth = from.depth;
  side.half_bytes = type_bits(from.operand->type) / 4;
  side.aligned = static_cast<char*>(aligned);
  return side;
}

bool can_launch_early() {
  int device = 0, major = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  return major >= 9;
}

// `arguments` null: there are no blocks but those which write the arrays.
template <int kMost>
void launch(const GroupedGemmCall& call, const ArrayArguments& arrays, const Arguments* arguments, int helpers, Stream stream) {
  Lists<kMost> lists;
  if constexpr (kMost != 0) {
    std::memset(&lists, 0, sizeof lists);
    const void* const* data = arrays.list_is_d ? call.d_list : call.w.data_list;
    for (int t = 0; t < call.rows.groups; ++t) {
      lists.data[t] = data[t];
      if (!arrays.list_is_d && call.w.scale_inv_list != nullptr) lists.scale[t] = call.w.scale_inv_list[t];
    }
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  const int threads = static_cast<int>(round_up(call.rows.groups, 32));
  config.gridDim = dim3(static_cast<unsigned>(kArrayBlocks + helpers));
  config.blockDim = dim3(static_cast<unsigned>(arguments == nullptr ? threads : std::max(kFewThreads, threads)));
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = can_launch_early() ? 1 : 0;
  check_cuda(arguments == nullptr ? cudaLaunchKernelEx(&config, set_up_arrays<kMost>, arrays, lists)
                                  : cudaLaunchKernelEx(&config, set_up<kMost>, arrays, *arguments, lists),
             "set_up_groups");
  check_launch("set_up_groups");
}

template <class Value>
Value* take(char*& memory, int groups) {
  auto* array = reinterpret_cast<Value*>(memory);
  memory += round_up(static_cast<std::int64_t>(sizeof(Value)) * groups, 256);
  return array;
}

}  // namespace

GemmSides gemm_sides(const GroupedGemmCall& call) {
  const auto side = [&](const GemmOperand& operand, const char* name, std::int64_t columns, bool along_rows) {
    GemmSide result;
    result.operand = &operand;
    result.name = name;
    result.weight = *name == 'w';
    result.along_rows = along_rows;
    const bool transposed = operand.columnwise && call.kind != GemmKind::mxfp8;
    result.k_major = transposed == along_rows;
    result.columns = columns;
    const std::int64_t rows = result.weight ? call.N : GemmSide::kOfGroup;
    result.extent = along_rows ? columns : rows;
    result.depth = along_rows ? rows : columns;
    return result;
  };
  switch (call.layout) {
    case GemmLayout::TN: return {side(call.x, "x", call.K, false), side(call.w, "w", call.K, false)};
    case GemmLayout::NN: return {side(call.dy, "dy", call.N, false), side(call.w, "w", call.K, true)};
    default: return {side(call.dy, "dy", call.N, true), side(call.x, "x", call.K, true)};
  }
}

// The arrays of GroupArrays one after another: eight of addresses, eleven of 4 bytes.
std::int64_t group_arrays_bytes(int groups) { return 8 * round_up(8ll * groups, 256) + 11 * round_up(4ll * groups, 256); }

GroupArrays group_arrays(void* memory, int groups) {
  char* at = static_cast<char*>(memory);
  GroupArrays arrays;
  arrays.a = take<const void*>(at, groups);
  arrays.b = take<const void*>(at, groups);
  arrays.c = take<const void*>(at, groups);
  arrays.d = take<void*>(at, groups);
  arrays.a_scale = take<const void*>(at, groups);
  arrays.b_scale = take<const void*>(at, groups);
  arrays.alpha_of = take<float*>(at, groups);
  arrays.beta_of = take<float*>(at, groups);
  arrays.alpha = take<float>(at, groups);
  arrays.beta = take<float>(at, groups);
  for (std::int32_t** array : {&arrays.a_rows, &arrays.a_columns, &arrays.a_leading, &arrays.b_rows, &arrays.b_columns,
                               &arrays.b_leading, &arrays.d_rows, &arrays.d_columns, &arrays.d_leading}) {
    *array = take<std::int32_t>(at, groups);
  }
  return arrays;
}

std::int64_t expanded_scale_floats(const GroupedGemmCall& call) {
  const GemmSide w = gemm_sides(call).columns;
  return call.rows.groups * ceil_div(w.depth, 128) * round_up(w.extent, 4);
}

std::int64_t aligned_copy_bytes(const GroupedGemmCall& call, const GemmSide& side) {
  const int bits = type_bits(side.operand->type);
  if (call.layout != GemmLayout::NT || !pitch_is_of_group(side) || call.rows_multiple * bits % 128 == 0) return 0;
  if (call.rows.capacity == 0 || call.rows.groups == 0) return 0;
  const std::int64_t pitch = round_up(ceil_div(call.rows.capacity * bits, 8), 16) + 16ll * call.rows.groups;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(pitch, side.columns, &bytes)) {
    throw InvalidArgument("rows.capacity is " + std::to_string(call.rows.capacity) + ": expected copies of its groups to fit in 64 bits");
  }
  return bytes;
}

void set_up_groups(const GroupedGemmCall& call, const GroupArrays& arrays, const GroupSetupOptions& options, Stream stream) {
  const GemmSides sides = gemm_sides(call);
  const GemmSide& w = sides.columns;
  const ArrayArguments array_part = array_arguments(call, arrays, options);
  Arguments arguments{};
  static_cast<GroupRows&>(arguments) = array_part;
  arguments.a = side_arguments(sides.columns, options.aligned_a);
  arguments.b = side_arguments(sides.rows, options.aligned_b);
  arguments.d = static_cast<char*>(call.d);
  arguments.c = call.c == nullptr ? arguments.d : static_cast<const char*>(call.c);
  arguments.alpha = call.alpha;
  arguments.beta = call.beta;
  arguments.whole_scales = call.kind == GemmKind::tensor;
  arguments.whole_amax = call.kind == GemmKind::nvfp4;
  arguments.scalars_per_group = call.scalars_per_group;
  arguments.d_type = call.d_type;
  arguments.d_half_bytes = type_bits(call.d_type) / 4;
  arguments.list_is_d = call.d_list != nullptr;

  int helpers = 0;
  arguments.fill = fills(sides, options);
  if (arguments.fill) {
    helpers = kFillBlocks;
  } else if (expands(sides, options)) {
    const std::int64_t blocks = ceil_div(w.depth, 128), extent_tiles = ceil_div(w.extent, 128);
    arguments.scale_bytes = scales_of(call, w).bytes;
    arguments.expanded = options.expanded_scales;
    arguments.depth_blocks = static_cast<std::int32_t>(blocks);
    arguments.extent_tiles = static_cast<std::int32_t>(extent_tiles);
    arguments.scale_pitch = static_cast<std::int32_t>(round_up(blocks, 4));
    arguments.expanded_bytes = expanded_bytes(w);
    helpers = static_cast<int>(std::min<std::int64_t>(ceil_div(blocks * extent_tiles * call.rows.groups, kFewThreads / 32), kExpandBlocks));
  }
  const Arguments* others = helpers == 0 ? nullptr : &arguments;
  const bool listed = call.d_list != nullptr || (w.weight && call.w.data_list != nullptr);
  if (!listed) {
    launch<0>(call, array_part, others, helpers, stream);
  } else if (call.rows.groups <= 64) {
    launch<64>(call, array_part, others, helpers, stream);
  } else {
    launch<kMaxGroups>(call, array_part, others, helpers, stream);
  }
}

}  // namespace assay::device
