#pragma once
// Shared by the kernels of emulated_gemm.h: the call as kernel arguments, and the groups as the set-up kernel
// writes them to the workspace. Internal to this folder.
//
// Every operand of every group is addressed as rows along the contraction index, for any recipe, storage and layout:
//
//   D_t[i][j] = sum over k < depth of  rows(i, k) * columns(j, k)
//
//        D_t        `rows` operand    `columns` operand   depth
//   TN   [m_t, N]   x   (i = token)   w   (j = n)         K
//   NN   [m_t, K]   dy  (i = token)   w   (j = k)         N
//   NT   [N, K]     dy  (i = n)       x   (j = k)         m_t

#include <cstdint>
#include <vector>

#include "device/emulated_gemm/emulated_gemm.h"
#include "device/layout/scale_layout.cuh"

namespace assay::device::emulated {

// How the scales of an operand lie (spec fp8-block-2.1, mxfp8-2.1, nvfp4-2.1); `per_line`: f32, one for each row or column of D.
enum class Scales : std::uint32_t { none, one, f32_1x128, f32_128x128, e8m0, e4m3, per_line };

// One operand of all groups, before the splits are known.
struct OperandSource {
  Format type = Format::bf16;
  Scales scales = Scales::none;
  bool weight = false;      // its groups have N rows each; otherwise those of x and dy
  bool along_rows = false;  // the contraction runs over the rows of the matrix
  bool columnwise = false;  // which storage this is
  bool listed = false;      // pointers of the groups are in the workspace
  ScaleLayout scale_layout = ScaleLayout::compact;
  std::int64_t columns = 0;
  const void* data = nullptr;
  const void* scale_inv = nullptr;
  const float* amax = nullptr;
};

// One operand of one group. Element (i, k) has the index i * row_stride + k * k_stride from `data`, in elements; one of
// the strides is 1. Scale (i, k) has the index (i >> i_shift) * i_stride + (k >> k_shift) * block_stride, or the place of
// (i, k >> k_shift) in tiles of 128 x 4 where tiles > 0.
struct GroupOperand {
  const std::uint8_t* data;
  const void* scale;
  std::int64_t row_stride, k_stride;
  std::int64_t i_stride, block_stride;
  std::int64_t tiles;
  std::int32_t i_shift, k_shift;
};

// A span of rows of one group and its products (group_spans.cuh); NT: a group.
struct Group {
  GroupOperand rows, columns;
  std::int64_t m, n, depth;
  std::int64_t column_tiles;  // tiles of D_t across
  void* d;
  const void* c;
  const void* bias;  // null: none
  float factor;      // alpha, scales of the whole operands and nvfp4 amax in it
  float beta;
};

// The start of the workspace.
struct Header {
  std::int64_t tiles;  // of all spans; 0 when the splits are invalid
  std::int32_t spans;
};

// The parts of the workspace; offsets in bytes. `count` spans of `listed` groups. A merge program (merge_program.h) begins at
// `end`.
struct WorkspaceLayout {
  static constexpr std::int64_t kHeader = 256;
  std::int64_t groups, first_tile, d_scales, data_list, scale_list, d_list, scales, end;

  ASSAY_HD constexpr WorkspaceLayout(std::int64_t count, std::int64_t listed, std::int64_t scale_bytes = 0)
      : groups(kHeader),
        first_tile(groups + count * static_cast<std::int64_t>(sizeof(Group))),
        d_scales(first_tile + (count + 1) * 8),
        data_list(d_scales + count * 8),
        scale_list(data_list + listed * 8),
        d_list(scale_list + listed * 8),
        scales((d_list + listed * 8 + 255) / 256 * 256),  // of x or dy, not swizzled
        end(scales + scale_bytes) {}
  // For kernels that read spans.
  explicit ASSAY_HD constexpr WorkspaceLayout(std::int64_t count) : WorkspaceLayout(count, 0) {}
};

// What beta must be: 0 with a D in FP8, 1 where the plan adds onto C in memory.
enum class BetaRule : std::uint32_t { any, zero, one };

struct SetupCall {
  GemmKind kind;
  GemmLayout layout;
  Rows rows;
  GroupPlaces places;
  std::int64_t spans;
  std::int64_t N, K;
  OperandSource row_operand, column_operand;
  const float* alpha;
  const float* beta;
  bool scalars_per_group;
  Format d_type;
  const float* d_scale;  // of each group; null: D is not FP8
  BetaRule beta_rule;
  void* d;
  bool d_listed;
  const void* c;
  const void* bias;
  std::int64_t max_depth;  // products that the plan's slices cover
  std::int64_t tile_rows, tile_columns;
  std::uint8_t* workspace;
  std::uint32_t* status;
};

// The unit and the plan.
struct Arithmetic {
  int products;       // L
  int fraction_bits;  // F
  int zero_floor;
  Accumulator accumulator;
  StepScaling scaling;
  bool emulated;
  std::int64_t interval;  // products between promotions; 0: the whole slice
  Promotion promotion;
  std::int64_t slices, slice_length;
  SliceMerge merge;
};

// What the generic kernel alone follows.
struct GenericTerms {
  Format widen;  // f16, bf16: FP8 elements are converted to it; f32: they are not
  ScaleVectors scale_vectors;
  bool flushes;  // subnormals, in promotions and scale vectors
  GemmEpilogue epilogue;
  std::int32_t merge_steps;    // of the merge program; 0: slices are merged one after another
  std::int64_t merge_program;  // its offset in the workspace
};

struct GemmCall {
  Format row_type, column_type, d_type;
  Arithmetic arithmetic;
  std::int32_t groups;  // spans
  const std::uint8_t* workspace;
  GenericTerms terms;  // last, so that the other kernels find their members where they were
};

// The most tiles of any splits, which is the size of the launch. Errors: InvalidArgument for more than a launch can have.
std::int64_t max_tiles_of(const SetupCall& setup);

void launch_setup(const SetupCall& setup, const GroupedGemmCall& call, Stream stream);

// Puts a merge program into the workspace.
void launch_store(const std::vector<std::int16_t>& steps, std::uint8_t* out, Stream stream);

// One kernel: its tile of D, whether it takes a call, and its launch.
struct Kernel {
  const char* name;
  std::int64_t tile_rows, tile_columns;
  bool (*takes)(const GemmCall& call);
  void (*launch)(const GemmCall& call, std::int64_t tiles, Stream stream);
};

extern const Kernel kGenericKernel;  // takes everything
extern const Kernel kFp8Kernel;
extern const Kernel kWideSumKernel;
extern const Kernel kFp4Kernel;

// The kernel that a call uses.
enum class Route { fastest, generic };
const Kernel& kernel_for(const GemmCall& call, Route route);

// emulated_grouped_gemm() with a given kernel, for tests that compare kernels.
void grouped_gemm_by(Route route, const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic, Stream stream);

// "generic", "fp8", ...: the kernel that emulated_grouped_gemm() uses for this call.
const char* kernel_name(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic);

}  // namespace assay::device::emulated
