#pragma once
// Grouped GEMM through cuBLASLt. Shapes, pointers and scales of the groups are set up on the device from the splits by one
// kernel before the library's; the host reads nothing from the device.
//
// The library has a defect (spec measured-3.1): FP8 block scaling with 128x128 weights and f32 output multiplies by
// scales of other blocks where reads_wrong_scales() holds. The production path (`bare` false) avoids it by the routes of
// CublasLtRoute. `bare` passes the call to the library unchanged, to judge the library itself.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/cublaslt/cublaslt_library.h"
#include "device/gemm/grouped_gemm.h"

namespace assay::device {

// The kernels of a call of the production path. They apply the scales of a block in different orders (plan.h, Promotion), so
// the bits of D (f32) depend on the route, and through it on rows.capacity, groups and multiprocessors: padding rows may
// change them. Set CublasLtSettings::route to fix the bits.
enum class CublasLtRoute : std::uint32_t {
  direct = 0,           // set-up, the library
  expanded_scales = 1,  // 128x128 weight scales written out as 1x128 first, then the library's 1x128 by 1x128 kernel: where
                        // reads_wrong_scales() holds. The plan is then that of 1x128 by 1x128
};
// Options that change how a call runs, not what it means.
struct CublasLtSettings {
  std::int64_t workspace_bytes = std::int64_t{32} << 20;  // the library's own part of the workspace
  void* library_workspace = nullptr;  // where that part is, 256-byte aligned; null: the end of the call's workspace
  void* group_arrays = nullptr;  // where the set-up arrays are, group_arrays_bytes(groups), 256-byte aligned; null: its beginning
  int sm_target = 0;             // SMs to use; 0: all
  int multiprocessors = 0;       // those of the call's stream, if a green context restricts them; 0: those of the
                                 // current context
  std::int64_t average_rows = -1, average_columns = -1,
               average_depth = -1;     // hints for the heuristic, of D and of the sum; -1: derived
                                       // from capacity, N, K and groups; 0: not given
  bool host_scalars = false;           // alpha and beta passed by pointer to the host (bare only; both must be 1 and 0)
  bool bare = false;                   // the library without the production path around it
  int tile = -1;                       // for experiments: this tile instead of the heuristic's, where the library accepts it
  std::optional<CublasLtRoute> route;  // for experiments: this route instead of cublaslt_route()'s (not bare)
  bool skip_set_up = false;            // to measure the library alone: the workspace still holds the arrays of an equal call
};

// One candidate of the heuristic.
struct CublasLtAlgorithm {
  std::uint64_t opaque[8] = {};  // cublasLtMatmulAlgo_t
  std::int64_t workspace_bytes = 0;
  float waves = 0;
  int id = -1, tile = -1, stages = -1, split_k = 1, reduction = 0, swizzle = 0, custom = 0, inner_shape = 0, cluster_shape = 0;
  std::string description() const;  // "id 66, tile 20, stages 36, split-K 1, ..."
};

// Whether the library's own kernel for FP8 blocks with 128x128 scales of w and f32 output, on `multiprocessors` of SM90, may
// take scales of other blocks for some splits of call.rows.capacity rows. D's clusters of tiles are counted from 0 over all
// groups in order, and are
//   wrong where   ceil(depth / 128) % 8 = 0   and   a cluster's number >= multiprocessors / 2   (the second wave on)
//   clusters      sum over groups of ceil(rows / 128) * ceil(columns / 128)
// where D has N columns in TN and K in NN, and depth is K in TN and N in NN. Measured with cuBLASLt 13.10.0 on the 132
// multiprocessors of an H200, without exception; assumed for other versions, with at most 66 clusters on any device.
bool reads_wrong_scales(const GroupedGemmCall& call, int multiprocessors);

// The route of a call on the current device. Not bare: expanded_scales where reads_wrong_scales() holds; if the settings choose
// the tile or the SMs, so that clusters may differ from those of the rule, for every depth that can be wrong.
CublasLtRoute cublaslt_route(const GroupedGemmCall& call, const CublasLtSettings& settings);

// Candidates for the call, best first. Needs a device, reads no device memory, launches nothing; call.workspace may be null.
// Errors: InvalidArgument; NotSupported where the library or the architecture lacks the path, or the heuristic has no candidate.
std::vector<CublasLtAlgorithm> cublaslt_algorithms(const GroupedGemmCall& call, const CublasLtSettings& settings,
                                                   int at_most = 64);

// The checks that cublaslt_grouped_gemm() makes first: of the call, the settings, and what the library has. call.workspace may be null.
// Errors: InvalidArgument, NotSupported.
void check_cublaslt_gemm(const GroupedGemmCall& call, const CublasLtSettings& settings);

// Bytes for the set-up arrays, the library's workspace, the memory of the route, and, not bare, for copies of groups that the
// library cannot read in place: NT, transposed x and dy (FP8 per tensor and by blocks, NVFP4), rows of a group that are not a
// multiple of 16 bytes. The copies take about the bytes of R * (K + N) elements; a call with rows_multiple 16 (NVFP4: 32) needs
// none. Depends only on sizes, types, rows_multiple, settings and the number of multiprocessors.
std::int64_t cublaslt_gemm_workspace_bytes(const GroupedGemmCall& call, const CublasLtSettings& settings);

// Checks what the library's kernels assume of operands: rows at multiples of 16 bytes, and the same for arrays of block scales,
// in lists too. Errors: NotSupported for storages and rows, InvalidArgument for addresses.
void require_aligned_operands(const GroupedGemmCall& call);

// Checks what the library's kernels assume of D and C: they and their rows begin at multiples of 16 bytes. Otherwise a kernel
// may fault or leave parts of D unwritten, also without products: callers of the bare library should check first.
// Errors: NotSupported for rows, InvalidArgument for addresses.
void require_aligned_output(const GroupedGemmCall& call);

// Creates what must exist before a capture (the library's handle for the current device). Called by the functions above too.
void cublaslt_prepare();

// `algorithm` null: the heuristic's first candidate, cached for calls of the same kind, types, groups and hints. Errors: as
// cublaslt_algorithms(); CudaError, with the library's status and the call. Not bare: groups may have any number of rows that
// keeps the promise of rows_multiple (else kStatusUnalignedRows, and nothing is written), and operands, C and D and their rows
// must begin at multiples of 16 bytes, which the library's kernels assume.
void cublaslt_grouped_gemm(const GroupedGemmCall& call, const CublasLtSettings& settings, const CublasLtAlgorithm* algorithm,
                           Stream stream);

}  // namespace assay::device
