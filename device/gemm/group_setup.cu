// Everything about the groups that a library wants in device memory, from the splits.
//
//   bound     latency: launch, one read of the splits, one scan, 19 values a group; the other blocks, where there are any,
//             write memory at its speed
//   layout    block 0 writes the arrays, a thread a group. Blocks 1 and on do one of two things that do not wait for it:
//             groups that are more than addresses (each such block scans the splits by itself): those without products get
//             +0 * factor + beta * C, those with a pitch that is no multiple of 16 bytes are copied, 16 bytes a thread and step; or
//             128x128 scales are written out, a warp a tile: one scale read, up to 512 bytes written
//             From SM90 on it is launched while the kernel before it ends
//   matches   reference/gemm/problem.h (which memory belongs to which group), epilogue.h (without products)

#include "device/gemm/group_setup.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "device/formats/convert.cuh"
#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_rows.h"
#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/support/launch_check.h"

namespace assay::device {
namespace {

constexpr int kFewThreads = 256;
constexpr int kFillBlocks = 132, kExpandBlocks = 1056;

// How the scales of x and dy are counted over groups (scale_layout.cuh), all in one scan.
using Sums = group_detail::Sums<RoundedUp<4>, Blocks<128>, RoundedUp<128>, BlocksRoundedUp<32, 4>, BlocksRoundedUp<16, 4>>;
enum Measure : int { kByGroup = 0, kRows4 = 1, kBlocks128 = 2, kRows128 = 3, kBlocks32 = 4, kBlocks16 = 5 };

__device__ std::uint32_t measured(const Sums& sums, int measure) {
  std::uint32_t value = 0;
#pragma unroll
  for (int i = 1; i < Sums::kCount; ++i) {
    if (i == measure) value = sums.value[i];
  }
  return value;
}

struct Side {
  const char* data;
  const char* scale;               // null: none
  std::int64_t columns;            // elements of a row
  std::int64_t rows_of_group;      // w: its rows; else kOfGroup
  std::int64_t scale_bytes;        // of one unit of the measure
  std::int64_t extent, depth;
  const float* amax;
  int half_bytes;                  // of an element
  int measure;
  bool k_major;
  char* aligned;                   // copies of groups whose pitch is no multiple of 16 bytes; null: none are made
};

// Addresses that the caller holds on the host.
template <int kMost>
struct Lists {
  const void* data[kMost];
  const void* scale[kMost];
};
template <>
struct Lists<0> {};

struct Arguments {
  Rows rows;
  Side a, b;
  GroupArrays to;
  char* d;
  const char* c;                   // d where the caller gave none
  const float* alpha;
  const float* beta;
  std::int64_t row_unit;
  std::int64_t d_half_bytes;       // of an element
  bool scalars_per_group;
  bool list_is_d;                  // Lists::data holds D, not A
  bool keep_empty;
  bool fill;                       // blocks 1 and on: groups without products, groups to be copied
  bool odd_rows_refused;           // nvfp4, contraction over the rows
  bool with_amax;
  bool whole_scales, whole_amax;   // what multiplies the sum of a group besides alpha
  Format d_type;
  float* expanded;                 // blocks 1 and on: scales written out
  std::int64_t expanded_bytes;     // of a group
  std::int32_t extent_tiles, depth_blocks, scale_pitch;
  std::uint32_t* status;
};

__device__ std::int64_t of_group(std::int64_t size, std::uint32_t rows) { return size == GemmSide::kOfGroup ? rows : size; }

__device__ const char* data_of(const Side& side, int group, std::uint32_t first_row) {
  const std::int64_t row = side.rows_of_group == GemmSide::kOfGroup ? first_row : group * side.rows_of_group;
  return side.data + row * side.columns * side.half_bytes / 2;
}

// Bytes of `rows` rows in transposed storage; of nvfp4 they are even.
__device__ std::uint64_t row_bytes(const Side& side, std::uint32_t rows) { return static_cast<std::uint64_t>(rows) * side.half_bytes / 2; }
__device__ bool is_copied(const Side& side, std::uint32_t rows) { return side.aligned != nullptr && row_bytes(side, rows) % 16 != 0; }
// Each group begins 16 bytes a row later than the rows before it ask for, so that rounding up never meets the next group.
__device__ char* copy_of(const Side& side, int group, std::uint32_t first_row) {
  const std::int64_t at = (row_bytes(side, first_row) + 15) / 16 * 16 + 16 * static_cast<std::uint64_t>(group);
  return side.aligned + side.columns * at;
}

__device__ const char* scale_of(const Side& side, int group, const Sums& before) {
  if (side.scale == nullptr) return nullptr;
  const std::int64_t units = side.measure == kByGroup ? group : measured(before, side.measure);
  return side.scale + units * side.scale_bytes;
}

__device__ float scalar(const float* values, bool per_group, int group, float absent) {
  return values == nullptr ? absent : values[per_group ? group : 0];
}

template <int kMost>
__device__ const void* list_entry(const Lists<kMost>& lists, bool scale, int group) {
  if constexpr (kMost == 0) {
    return nullptr;
  } else {
    return scale ? lists.scale[group] : lists.data[group];
  }
}

// Rows of each group and the sums before it, for this thread's group. False in every thread: faults; told by block 0.
__device__ bool scan(const Arguments& arguments, group_detail::BlockScratch<Sums>& scratch, std::uint32_t& own, Sums& before) {
  const Rows& rows = arguments.rows;
  const int t = static_cast<int>(threadIdx.x);
  before = Sums::zero();
  own = 0;
  unsigned faults = 0;
  bool sound = true;
  if (rows.splits == nullptr) {
    own = t == 0 ? static_cast<std::uint32_t>(rows.capacity) : 0;
  } else {
    int first, last;
    Sums total;
    sound = group_detail::scan_block(rows, scratch, arguments.status, first, last, before, total);
    if (sound && t < rows.groups) own = group_detail::read_split(rows, t, faults);
  }
  const bool odd = arguments.odd_rows_refused && own % 2 != 0;
  const bool unaligned = own % static_cast<std::uint32_t>(arguments.row_unit) != 0;
  faults = (__syncthreads_or(odd) ? kStatusOddPackedExtent : 0u) | (__syncthreads_or(unaligned) ? kStatusUnalignedRows : 0u);
  if (t == 0) group_detail::tell(arguments.status, faults);
  return sound && faults == 0;
}

template <int kMost>
__device__ void write_arrays(const Arguments& arguments, const Lists<kMost>& lists, group_detail::BlockScratch<Sums>& scratch) {
  std::uint32_t rows;
  Sums before;
  const bool sound = scan(arguments, scratch, rows, before);
  const int t = static_cast<int>(threadIdx.x);
  if (t >= arguments.rows.groups) return;
  if (!sound) {
    rows = 0;
    before = Sums::zero();
  }

  const GroupArrays& to = arguments.to;
  const Side &a = arguments.a, &b = arguments.b;
  const std::int64_t n = of_group(a.extent, rows), depth = of_group(a.depth, rows), m = of_group(b.extent, rows);
  const bool shown = sound && (arguments.keep_empty || depth != 0);
  const auto write_shape = [&](const Side& side, std::int64_t extent, std::int32_t* height, std::int32_t* width, std::int32_t* leading) {
    height[t] = static_cast<std::int32_t>(side.k_major ? depth : extent);
    width[t] = static_cast<std::int32_t>(side.k_major ? extent : depth);
    std::int64_t pitch = side.k_major ? depth : of_group(side.extent, rows);
    if (is_copied(side, rows)) pitch = static_cast<std::int64_t>((row_bytes(side, rows) + 15) / 16 * 16) * 2 / side.half_bytes;
    leading[t] = static_cast<std::int32_t>(pitch == 0 ? 32 / side.half_bytes : pitch);
  };
  const std::int64_t shown_m = shown ? m : 0;
  write_shape(a, n, to.a_rows, to.a_columns, to.a_leading);
  write_shape(b, shown_m, to.b_rows, to.b_columns, to.b_leading);
  to.d_rows[t] = static_cast<std::int32_t>(n);
  to.d_columns[t] = static_cast<std::int32_t>(shown_m);
  to.d_leading[t] = static_cast<std::int32_t>(n);

  const bool d_by_rows = b.extent == GemmSide::kOfGroup;
  const std::int64_t d_row = d_by_rows ? before.value[0] : t * m;
  const std::int64_t d_byte = d_row * n * arguments.d_half_bytes / 2;
  char* d = arguments.d + d_byte;
  const char* c = arguments.c + d_byte;
  const auto shown_data = [&](const Side& side) -> const void* {
    return is_copied(side, rows) ? copy_of(side, t, before.value[0]) : data_of(side, t, before.value[0]);
  };
  const void* a_data = shown_data(a);
  const void* a_scale = scale_of(a, t, before);
  if constexpr (kMost != 0) {
    if (arguments.list_is_d) {
      d = static_cast<char*>(const_cast<void*>(list_entry(lists, false, t)));
      c = d;
    } else {
      a_data = list_entry(lists, false, t);
      a_scale = list_entry(lists, true, t);
    }
  }
  if (arguments.expanded != nullptr) {
    a_scale = reinterpret_cast<const char*>(arguments.expanded) + t * arguments.expanded_bytes;
  }
  to.a[t] = a_data;
  to.b[t] = shown_data(b);
  to.c[t] = c;
  to.d[t] = d;
  to.a_scale[t] = a_scale;
  to.b_scale[t] = scale_of(b, t, before);

  float alpha = scalar(arguments.alpha, arguments.scalars_per_group, t, 1.0f);
  if (arguments.with_amax) {  // recipes.md 8.6
    alpha = multiply(multiply(multiply(alpha, a.amax[t]), b.amax[t]), 1.0f / 7225344.0f);
  }
  to.alpha[t] = alpha;
  to.beta[t] = scalar(arguments.beta, arguments.scalars_per_group, t, 0.0f);
  to.alpha_of[t] = to.alpha + t;
  to.beta_of[t] = to.beta + t;
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
  const char* from = data_of(side, group, first_row);
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
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x - 1) * blockDim.x + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x - 1) * blockDim.x;
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
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x - 1) * warps;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x - 1) * warps + threadIdx.x / 32; at < tiles; at += stride) {
    const int group = static_cast<int>(at / tiles_of_group);
    const auto tile = static_cast<std::int32_t>(at - group * tiles_of_group);
    const std::int32_t block = tile / arguments.extent_tiles, row_tile = tile - block * arguments.extent_tiles;
    const char* scales = arguments.a.scale + group * arguments.a.scale_bytes;
    if constexpr (kMost != 0) scales = static_cast<const char*>(list_entry(lists, true, group));
    const float scale = reinterpret_cast<const float*>(scales)[static_cast<std::int64_t>(row_tile) * arguments.scale_pitch + block];
    const std::int64_t row = static_cast<std::int64_t>(row_tile) * 128 + lane * 4;
    if (row >= pitch) continue;
    float* to = arguments.expanded + group * (arguments.expanded_bytes / 4) + block * pitch + row;
    *reinterpret_cast<float4*>(to) = make_float4(scale, scale, scale, scale);
  }
}

// Launched early, the kernel reads nothing, and writes nothing, before what came before it is done. It does not let the next
// one come early: that is the library's, which reads the arrays.
__device__ void wait_for_work_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <int kMost>
__global__ void __launch_bounds__(kMaxGroups)
    set_up(const __grid_constant__ Arguments arguments, const __grid_constant__ Lists<kMost> lists) {
  __shared__ group_detail::BlockScratch<Sums> scratch;
  __shared__ GroupsWithWork work;
  wait_for_work_before();
  if (blockIdx.x == 0) {
    write_arrays(arguments, lists, scratch);
  } else if (arguments.fill) {
    prepare_groups(arguments, lists, scratch, work);
  } else {
    expand_scales(arguments, lists);
  }
}

// Scale layout of an operand: measure and bytes of its unit.
void describe_scales(const GroupedGemmCall& call, const GemmSide& from, Side& side) {
  const bool columnwise = from.operand->columnwise;
  const std::int64_t rows = call.N;  // of w
  side.scale = static_cast<const char*>(from.operand->scale_inv);
  side.measure = kByGroup;
  const auto set = [&](int measure, std::int64_t unit_bytes, std::int64_t units_of_weight) {
    side.measure = from.weight ? kByGroup : measure;
    side.scale_bytes = from.weight ? unit_bytes * units_of_weight : unit_bytes;
  };
  const std::int64_t columns = from.columns;
  switch (call.kind) {
    case GemmKind::bf16:
    case GemmKind::f16: side.scale = nullptr; return;
    case GemmKind::tensor: side.scale_bytes = 4; return;
    case GemmKind::block:
      if (from.weight && call.weight_block == WeightBlock::b128x128) {
        side.scale_bytes = columnwise ? 4 * ceil_div(columns, 128) * round_up(ceil_div(rows, 128), 4)
                                      : 4 * round_up(ceil_div(columns, 128), 4) * ceil_div(rows, 128);
        return;
      }
      if (columnwise) return set(kBlocks128, 4 * round_up(columns, 4), ceil_div(rows, 128));
      return set(kRows4, 4 * ceil_div(columns, 128), round_up(rows, 4));
    case GemmKind::mxfp8:
      if (columnwise) return set(kBlocks32, round_up(columns, 128), round_up(ceil_div(rows, 32), 4));
      return set(kRows128, round_up(ceil_div(columns, 32), 4), round_up(rows, 128));
    case GemmKind::nvfp4:
      if (columnwise) return set(kBlocks16, round_up(columns, 128), round_up(ceil_div(rows, 16), 4));
      return set(kRows128, round_up(ceil_div(columns, 16), 4), round_up(rows, 128));
  }
}

Side side_arguments(const GroupedGemmCall& call, const GemmSide& from) {
  Side side{};
  side.data = static_cast<const char*>(from.operand->data);
  side.columns = from.columns;
  side.rows_of_group = from.weight ? call.N : GemmSide::kOfGroup;
  side.extent = from.extent;
  side.depth = from.depth;
  side.half_bytes = static_cast<int>(type_bits(from.operand->type) / 4);
  side.k_major = from.k_major;
  side.amax = from.operand->amax;
  describe_scales(call, from, side);
  return side;
}

bool can_launch_early() {
  int device = 0, major = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  return major >= 9;
}

template <int kMost>
void launch(const GroupedGemmCall& call, const Arguments& arguments, int blocks, int threads, Stream stream) {
  Lists<kMost> lists;
  if constexpr (kMost != 0) {
    std::memset(&lists, 0, sizeof lists);
    const void* const* data = arguments.list_is_d ? call.d_list : call.w.data_list;
    for (int t = 0; t < call.rows.groups; ++t) {
      lists.data[t] = data[t];
      if (!arguments.list_is_d && call.w.scale_inv_list != nullptr) lists.scale[t] = call.w.scale_inv_list[t];
    }
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = can_launch_early() ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, set_up<kMost>, arguments, lists), "set_up_groups");
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
  Arguments arguments{};
  arguments.rows = call.rows;
  arguments.a = side_arguments(call, sides.columns);
  arguments.b = side_arguments(call, sides.rows);
  arguments.a.aligned = static_cast<char*>(options.aligned_a);
  arguments.b.aligned = static_cast<char*>(options.aligned_b);
  arguments.to = arrays;
  arguments.d = static_cast<char*>(call.d);
  arguments.c = call.c == nullptr ? arguments.d : static_cast<const char*>(call.c);
  arguments.alpha = call.alpha;
  arguments.beta = call.beta;
  arguments.scalars_per_group = call.scalars_per_group;
  arguments.row_unit = options.row_unit;
  arguments.d_type = call.d_type;
  arguments.d_half_bytes = type_bits(call.d_type) / 4;
  arguments.list_is_d = call.d_list != nullptr;
  arguments.keep_empty = options.keep_empty;
  arguments.odd_rows_refused = call.kind == GemmKind::nvfp4 && call.layout == GemmLayout::NT;
  arguments.with_amax = call.kind == GemmKind::nvfp4 && sides.rows.operand->amax != nullptr && sides.columns.operand->amax != nullptr;
  arguments.whole_scales = call.kind == GemmKind::tensor;
  arguments.whole_amax = call.kind == GemmKind::nvfp4;
  arguments.status = call.status;

  int helpers = 0;
  const bool ragged_depth = sides.columns.depth == GemmSide::kOfGroup;
  arguments.fill = !options.keep_empty && (ragged_depth || sides.columns.depth == 0);
  if (arguments.fill) {
    helpers = kFillBlocks;
  } else if (options.expanded_scales != nullptr) {
    const GemmSide& w = sides.columns;
    arguments.expanded = options.expanded_scales;
    arguments.depth_blocks = static_cast<std::int32_t>(ceil_div(w.depth, 128));
    arguments.extent_tiles = static_cast<std::int32_t>(ceil_div(w.extent, 128));
    arguments.scale_pitch = static_cast<std::int32_t>(round_up(ceil_div(w.depth, 128), 4));
    arguments.expanded_bytes = 4 * ceil_div(w.depth, 128) * round_up(w.extent, 4);
    const std::int64_t tiles = ceil_div(w.depth, 128) * ceil_div(w.extent, 128) * call.rows.groups;
    helpers = static_cast<int>(std::min<std::int64_t>(ceil_div(tiles, kFewThreads / 32), kExpandBlocks));
  }
  const int threads = std::max(helpers == 0 ? 32 : kFewThreads, static_cast<int>(round_up(call.rows.groups, 32)));
  const bool listed = call.d_list != nullptr || (sides.columns.weight && call.w.data_list != nullptr);
  if (!listed) {
    launch<0>(call, arguments, 1 + helpers, threads, stream);
  } else if (call.rows.groups <= 64) {
    launch<64>(call, arguments, 1 + helpers, threads, stream);
  } else {
    launch<kMaxGroups>(call, arguments, 1 + helpers, threads, stream);
  }
}

}  // namespace assay::device
