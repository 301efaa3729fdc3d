#pragma once
// The description of every group that the vendor library reads, written on the device from the splits by one kernel: shapes,
// leading dimensions, addresses, scales, alpha and beta. Column-major, as the library addresses row-major memory:
//
//   D_t [m,n] row-major is n x m column-major = op(A_t) [n,depth] . op(B_t) [depth,m]
//
// so A is the operand that supplies the columns of D_t, and B the one that supplies its rows. An operand whose memory runs
// along the contraction (`k_major`) is `depth` x `extent`, any other `extent` x `depth`.
//
// The kernel also completes groups without products, with the library's result for a product of +0 (plan.h, GemmEpilogue); the
// library then skips them. With invalid splits the library skips every group, and nothing is written.
//
// The pitch of transposed storage of x or dy is the rows of its group. Where that is not a multiple of 16 bytes, as the
// library's kernels require, the group is copied with a pitch that is, and the library reads the copy.

#include <cstdint>

#include "device/gemm/grouped_gemm.h"

namespace assay::device {

// One operand of a call. Extent and depth of a group; kOfGroup: its rows.
struct GemmSide {
  static constexpr std::int64_t kOfGroup = -1;
  const GemmOperand* operand = nullptr;
  const char* name = "";  // "x", "w", "dy"
  bool weight = false;
  bool along_rows = false;  // the contraction runs over the rows of the matrix
  bool k_major = false;
  std::int64_t columns = 0;  // of the matrix
  std::int64_t extent = 0, depth = 0;
};
struct GemmSides {
  GemmSide rows, columns;  // of D: B and A
};
GemmSides gemm_sides(const GroupedGemmCall& call);
// Whether its storage has the rows of each group as its pitch: x and dy, transposed.
inline bool pitch_is_of_group(const GemmSide& side) { return !side.weight && side.k_major == side.along_rows; }

// Device arrays with one entry per group, each at a multiple of 256 bytes.
struct GroupArrays {
  const void** a = nullptr;
  const void** b = nullptr;
  const void** c = nullptr;
  void** d = nullptr;
  const void** a_scale = nullptr;
  const void** b_scale = nullptr;
  float** alpha_of = nullptr;  // addresses of the entries of alpha
  float** beta_of = nullptr;
  float* alpha = nullptr;  // 1 where the call has none; nvfp4: with both amax multiplied in (spec grouped-gemm-2.2)
  float* beta = nullptr;
  std::int32_t *a_rows = nullptr, *a_columns = nullptr, *a_leading = nullptr;
  std::int32_t *b_rows = nullptr, *b_columns = nullptr, *b_leading = nullptr;
  std::int32_t *d_rows = nullptr, *d_columns = nullptr, *d_leading = nullptr;  // of C too
};
std::int64_t group_arrays_bytes(int groups);
GroupArrays group_arrays(void* memory, int groups);

struct GroupSetupOptions {
  bool keep_empty = false;           // groups without products are passed to the library, and not written here
  std::int64_t row_unit = 1;         // rows of every group must be a multiple (kStatusUnalignedRows, unless splits are wrong)
  void* aligned_a = nullptr;         // where unaligned groups are copied to, aligned_copy_bytes() at a multiple of 16; null:
  void* aligned_b = nullptr;         // they are passed to the library as they are
  float* expanded_scales = nullptr;  // kind block: 128x128 scales of w are written here as scales of 1x128, for A
};

// Floats of expanded_scales for all groups, and the scales of a group: [depth / 128, up][extent, up to 4].
std::int64_t expanded_scale_floats(const GroupedGemmCall& call);

// The most bytes that copies of the unaligned groups of an operand take for any splits. 0 where there are none: layouts other
// than NT, storage that is not transposed, or call.rows_multiple rows that are a multiple of 16 bytes.
//   columns * (ru(bytes of `capacity` rows, 16) + 16 * groups)
std::int64_t aligned_copy_bytes(const GroupedGemmCall& call, const GemmSide& side);

// One launch. check_grouped_gemm() has accepted the call, which has groups.
void set_up_groups(const GroupedGemmCall& call, const GroupArrays& arrays, const GroupSetupOptions& options, Stream stream);

}  // namespace assay::device
