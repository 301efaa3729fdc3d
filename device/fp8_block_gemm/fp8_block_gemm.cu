#include "device/fp8_block_gemm/fp8_block_gemm.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "device/fp8_block_gemm/kernels.h"
#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_splits.h"
#include "device/layout/group_table.cuh"
#include "device/support/call_checks.h"
#include "device/support/call_device.h"
#include "device/support/compute_capability.h"
#include "device/support/launch.cuh"
#include "device/support/multiprocessors.h"

namespace assay::device {
namespace {

using namespace fp8_block;

// The call as kernel.cuh has it (problem.h): operands of D's rows and columns, and the sizes that are the same in all groups.
struct Shape {
  const char *a_name, *b_name;
  const GemmOperand &a, &b;
  std::int64_t m, n, depth;  // 0: what the splits say
  bool squares;
};

Shape shape_of(const GroupedGemmCall& call) {
  const bool squares = call.weight_block == WeightBlock::b128x128;
  if (call.layout == GemmLayout::TN) return {"x", "w", call.x, call.w, 0, call.N, call.K, squares};
  if (call.layout == GemmLayout::NN) return {"dy", "w", call.dy, call.w, 0, call.K, call.N, squares};
  return {"dy", "x", call.dy, call.x, call.N, call.K, 0, false};
}

Fp8BlockOrder order_of(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  return settings.order.value_or(call.layout == GemmLayout::NT || shape_of(call).squares ? Fp8BlockOrder::scales_first
                                                                                         : Fp8BlockOrder::rows_first);
}

// Two tiles of rows share what they read of B, where groups of D are expected to have more than one.
Choice choice_of(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  Choice choice;
  if (!shape_of(call).squares)
    choice.scaling = order_of(call, settings) == Fp8BlockOrder::scales_first ? Scaling::vectors : Scaling::vectors_rows_first;
  if (call.layout == GemmLayout::NT) {
    choice.contraction = Contraction::ragged, choice.cluster = 2;
    if (relies_on_pow2_scales(call, settings)) choice.scaling = Scaling::pow2_vectors;
  } else if (settings.cluster != 0) {
    choice.cluster = settings.cluster;
  } else if (choice.scaling == Scaling::squares && call.rows.capacity / call.rows.groups >= 2 * kTileRows) {
    choice.cluster = 2;
  }
  return choice;
}

decltype(&cuTensorMapEncodeTiled) encoder() {
  static const auto function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result),
               "cudaGetDriverEntryPointByVersion");
    if (found == nullptr) throw NotSupported("the driver has no cuTensorMapEncodeTiled: FP8 block GEMM needs one of CUDA 12");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  return function;
}

// A matrix [rows, depth] of bytes in boxes of 128 columns.
CUtensorMap map_of(const void* matrix, std::int64_t rows, std::int64_t depth, int box_rows) {
  CUtensorMap map{};
  const cuuint64_t extents[2] = {static_cast<cuuint64_t>(depth), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[1] = {static_cast<cuuint64_t>(depth)};
  const cuuint32_t box[2] = {kBlockK, static_cast<cuuint32_t>(box_rows)}, steps[2] = {1, 1};
  const CUresult result = encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(matrix), extents, pitch, box, steps,
                                    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw CudaError("cuTensorMapEncodeTiled of [" + std::to_string(rows) + ", " + std::to_string(depth) + "]: error " +
                    std::to_string(result));
  return map;
}

// Of no group yet: loads.cuh fills in where a group's matrix lies and how large it is.
CUtensorMap map_of_groups(const void* matrices, int box_rows) { return map_of(matrices, kTileRows, kBlockK, box_rows); }

// Parts of the workspace: maps that blocks make, lists (NT: of D; TN and NN: of w and its scales), and NT's copies of groups
// (aligned_copies.cuh).
struct Parts {
  std::int64_t list, scale_list, a_copies, b_copies, bytes;  // first bytes, and all
};

bool makes_maps(const GroupedGemmCall& call) { return call.layout == GemmLayout::NT || call.w.data_list != nullptr; }

bool has_copies(const GroupedGemmCall& call) {
  return call.layout == GemmLayout::NT && call.rows_multiple % 16 != 0 && call.column_alignment == 1;
}

// Of `multiprocessors` blocks.
Parts parts_of(const GroupedGemmCall& call, int multiprocessors) {
  const auto rounded = [](std::int64_t bytes) { return (bytes + 255) / 256 * 256; };
  const std::int64_t runs = has_copies(call) ? call.rows.capacity / 16 + call.rows.groups : 0;  // of a row, all groups
  Parts parts{};
  const std::int64_t list = rounded(call.rows.groups * static_cast<std::int64_t>(sizeof(void*)));
  parts.list = rounded(std::max(multiprocessors, 2) * static_cast<std::int64_t>(kMapsOfBlock * sizeof(CUtensorMap)));
  parts.scale_list = parts.list + list;
  parts.a_copies = parts.scale_list + (call.w.data_list != nullptr ? list : 0);
  parts.b_copies = parts.a_copies + rounded(runs * 16 * call.N);
  parts.bytes = parts.b_copies + rounded(runs * 16 * call.K);
  return parts;
}

void put_operands(const Shape& shape, const GroupedGemmCall& call, const Choice& choice, int multiprocessors, Problem& problem) {
  const int b_rows = tile_columns(choice.scaling, choice.contraction) / choice.cluster;
  if (choice.contraction == Contraction::even) {
    problem.a_map = map_of(shape.a.data, call.rows.capacity, shape.depth, kTileRows);
    if (shape.b.data_list == nullptr) {
      problem.b_map = map_of(shape.b.data, call.rows.groups * shape.n, shape.depth, b_rows);
    } else {
      problem.b_map = map_of_groups(shape.b.data_list[0], b_rows);
      problem.maps = static_cast<CUtensorMap*>(call.workspace);
    }
    return;
  }
  const Parts parts = parts_of(call, multiprocessors);
  auto* const workspace = static_cast<std::uint8_t*>(call.workspace);
  const auto copies = [&](std::int64_t at) { return has_copies(call) ? workspace + at : nullptr; };
  problem.a_map = map_of_groups(shape.a.data, kTileRows);
  problem.b_map = map_of_groups(shape.b.data, b_rows);
  const bool aligned = call.column_alignment != 1;
  problem.a = {static_cast<const std::uint8_t*>(shape.a.data), copies(parts.a_copies), aligned};
  problem.b = {static_cast<const std::uint8_t*>(shape.b.data), copies(parts.b_copies), aligned};
  problem.maps = static_cast<CUtensorMap*>(call.workspace);
}

// Lists of the host as an argument of a kernel: a captured launch keeps them.
struct ListsOfHost {
  const void* of_group[2][kMaxGroups];
};

__global__ void store_lists(const __grid_constant__ ListsOfHost lists, int groups, const void** to, const void** to_second) {
  const int group = static_cast<int>(threadIdx.x);
  if (group >= groups) return;
  to[group] = lists.of_group[0][group];
  if (to_second != nullptr) to_second[group] = lists.of_group[1][group];
}

// The call's lists go into its workspace: those of w, or of D.
void put_lists(const Shape& shape, const GroupedGemmCall& call, int multiprocessors, Stream stream, Problem& problem) {
  const bool of_d = call.d_list != nullptr, of_b = shape.b.data_list != nullptr && shape.depth > 0;
  if (!of_d && !of_b) return;
  const Parts parts = parts_of(call, multiprocessors);
  std::uint8_t* const list = static_cast<std::uint8_t*>(call.workspace) + parts.list;
  std::uint8_t* const scale_list = static_cast<std::uint8_t*>(call.workspace) + parts.scale_list;
  ListsOfHost lists{};
  const void* const* const first = of_d ? call.d_list : shape.b.data_list;
  std::copy_n(first, call.rows.groups, lists.of_group[0]);
  if (of_b) std::copy_n(shape.b.scale_inv_list, call.rows.groups, lists.of_group[1]);
  launch_kernel("FP8 block GEMM: store_lists", store_lists, 1, kMaxGroups, 0, stream, lists, call.rows.groups,
                reinterpret_cast<const void**>(list), of_b ? reinterpret_cast<const void**>(scale_list) : nullptr);
  if (of_d) {
    problem.d_list = reinterpret_cast<void* const*>(list);
  } else {
    problem.b_list = reinterpret_cast<const std::uint8_t* const*>(list);
    problem.b_scale_list = reinterpret_cast<const float* const*>(scale_list);
  }
}

Kernel kernel_of(const Shape& shape, const Choice& choice) {
  const bool b_e4m3 = shape.b.type == Format::e4m3;
  if (shape.a.type == Format::e4m3) return b_e4m3 ? kernel_of_e4m3_e4m3(choice) : kernel_of_e4m3_e5m2(choice);
  return b_e4m3 ? kernel_of_e5m2_e4m3(choice) : kernel_of_e5m2_e5m2(choice);
}

// A kernel may take more than 48 KiB once the device has been told so.
void allow_shared_memory(const Kernel& kernel) {
  static std::mutex mutex;
  static std::set<std::pair<int, const void*>> done;
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  const std::pair key(device, reinterpret_cast<const void*>(kernel.function));
  if (done.count(key) != 0) return;
  check_cuda(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.shared_bytes),
             "cudaFuncSetAttribute of the FP8 block GEMM");
  done.insert(key);
}

void launch(const Kernel& kernel, int blocks, int cluster, const Problem& problem, Stream stream) {
  allow_shared_memory(kernel);
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = static_cast<unsigned>(cluster);
  attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
  attributes[1].id = cudaLaunchAttributeCooperative;  // all blocks run at once: they wait for one another's copies
  attributes[1].val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned>(blocks);
  config.blockDim = kThreads;
  config.dynamicSmemBytes = static_cast<std::size_t>(kernel.shared_bytes);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = problem.a.copies != nullptr ? 2 : 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel.function, problem), "FP8 block GEMM");
}

void check_settings(const Fp8BlockSettings& settings, const GroupedGemmCall& call) {
  require(!settings.order || *settings.order <= Fp8BlockOrder::rows_first, "order of the settings",
          static_cast<std::int64_t>(settings.order.value_or(Fp8BlockOrder::scales_first)), "scales_first (0) or rows_first (1)");
  require(settings.multiprocessors >= 0, "multiprocessors of the settings", settings.multiprocessors, "a value of at least 0");
  if (call.layout == GemmLayout::NT)
    return require(settings.cluster == 0 || settings.cluster == 2, "cluster of the settings", settings.cluster,
                   "0 or 2 in layout NT");
  const bool squares = shape_of(call).squares;
  require(settings.cluster >= 0 && settings.cluster <= (squares ? 2 : 1), "cluster of the settings", settings.cluster,
          squares ? "0, 1 or 2" : "0 or 1 with 1x128 scales of w");
}

// The copy engine needs scales at multiples of 16 bytes; the other kernels for FP8 blocks do not.
void check_scales(const Shape& shape, int groups) {
  check_alignment(shape.a.scale_inv, (std::string(shape.a_name) + ".scale_inv").c_str(), 16);
  check_alignment(shape.b.scale_inv, (std::string(shape.b_name) + ".scale_inv").c_str(), 16);
  for (int group = 0; shape.b.scale_inv_list != nullptr && group < groups; ++group)
    check_alignment(shape.b.scale_inv_list[group],
                    (std::string(shape.b_name) + ".scale_inv_list[" + std::to_string(group) + "]").c_str(), 16);
}

int device_multiprocessors() {
  int device = 0, all = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&all, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  return all;
}

int multiprocessors_for(const Fp8BlockSettings& settings, int all) {
  return settings.multiprocessors == 0 ? all : std::min(settings.multiprocessors, all);
}

// Blocks of the grid: as many as there can be tiles, or multiprocessors. Errors: InvalidArgument, for more tiles than are counted.
int blocks_for(const GroupedGemmCall& call, const Fp8BlockSettings& settings, const Choice& choice, Stream stream) {
  const Shape shape = shape_of(call);
  const std::int64_t columns = tile_columns(choice.scaling, choice.contraction), across = (shape.n + columns - 1) / columns;
  const std::int64_t rows = std::int64_t{choice.cluster} * kTileRows;
  const std::int64_t down =
      choice.contraction == Contraction::ragged ? (shape.m + rows - 1) / rows * call.rows.groups : max_tiles(call.rows, rows);
  std::int64_t tiles = 0;
  const bool fits = !__builtin_mul_overflow(down, across, &tiles) && tiles < (std::int64_t{1} << 32);
  require(fits, "tiles of D", down, "fewer than 4294967296 / " + std::to_string(across));
  const int used = multiprocessors_for(settings, multiprocessors_of(stream));
  return static_cast<int>(std::min<std::int64_t>(tiles, std::max(used / choice.cluster, 1))) * choice.cluster;
}

// This kernel tells code for 90a from code for 90, which has no TMA and no wgmma: its largest block differs, and the host can read that
// without a launch.
constexpr int kThreadsFor90a = 32;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ASSAY_THREADS_OF_PROBE kThreadsFor90a
#else
#define ASSAY_THREADS_OF_PROBE (2 * kThreadsFor90a)
#endif
__global__ void __launch_bounds__(ASSAY_THREADS_OF_PROBE) built_for() {}
#undef ASSAY_THREADS_OF_PROBE

// The current device must be SM90.
bool is_built_for_90a() {
  static const bool is = [] {
    cudaFuncAttributes attributes{};
    check_cuda(cudaFuncGetAttributes(&attributes, built_for), "cudaFuncGetAttributes of the FP8 block GEMM");
    return attributes.maxThreadsPerBlock == kThreadsFor90a;
  }();
  return is;
}

std::string ragged_missing(const GroupedGemmCall& call) {
  const std::int64_t runs = call.rows.capacity / 16 + call.rows.groups, wider = std::max(call.N, call.K);
  if (has_copies(call) && wider > 0 && runs > (std::int64_t{1} << 31) / wider)  // counted in 32 bits
    return "the FP8 block GEMM takes rows.capacity / 16 + rows.groups of at most " +
           std::to_string((std::int64_t{1} << 31) / wider) + " in layout NT with N and K of at most " + std::to_string(wider) +
           "; it is " + std::to_string(runs);
  std::int64_t rows = 0;
  if (__builtin_mul_overflow(std::int64_t{call.rows.groups}, call.N, &rows) || rows > kMaxRows)
    return "the FP8 block GEMM takes D of at most " + std::to_string(kMaxRows) + " rows; " + std::to_string(call.rows.groups) +
           " groups have " + std::to_string(call.N) + " each";
  return "";
}

std::string even_missing(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  const Shape shape = shape_of(call);
  if (shape.depth % 16 != 0)
    return "the FP8 block GEMM takes a contraction of a multiple of 16; " +
           std::string(call.layout == GemmLayout::TN ? "K" : "N") + " is " + std::to_string(shape.depth);
  // One map is of so many groups of w, whose rows TMA counts in 32 bits.
  const std::int64_t in_one = call.w.data_list != nullptr ? 1 : call.rows.groups;
  std::int64_t b_rows = 0;
  if (__builtin_mul_overflow(in_one, shape.n, &b_rows) || b_rows > kMaxRows)
    return "the FP8 block GEMM takes w of at most " + std::to_string(kMaxRows) + " rows; " + std::to_string(in_one) +
           " groups have " + std::to_string(shape.n) + " each";
  if (shape.squares && settings.order == Fp8BlockOrder::rows_first)
    return "the FP8 block GEMM has no plan rows_first for 128x128 scales of w";
  return "";
}

}  // namespace

std::string fp8_block_gemm_plan(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  return order_of(call, settings) == Fp8BlockOrder::scales_first ? "assay.sm90.fp8_block.scales_first"
                                                                 : "assay.sm90.fp8_block.rows_first";
}

std::string fp8_block_gemm_missing(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  if (call.kind != GemmKind::fp8_block) return "the FP8 block GEMM has no products of kind " + kind_name(call.kind);
  if (call.places.layout != GroupedLayout::splits) return "the FP8 block GEMM takes groups that follow one another";
  if (is_fp8(call.d_type)) return "the FP8 block GEMM writes no D in FP8";
  const std::string missing = call.layout == GemmLayout::NT ? ragged_missing(call) : even_missing(call, settings);
  if (!missing.empty()) return missing;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return "the FP8 block GEMM is for SM90; there is no device";
  const int found = compute_capability();
  if (found != 90) return "the FP8 block GEMM is for SM90; this device is SM" + std::to_string(found);
  if (!is_built_for_90a())
    return "the FP8 block GEMM needs a build for 90a (ASSAY_CUDA_ARCHITECTURES=90a-real); this one is for 90";
  return "";
}

std::int64_t fp8_block_gemm_workspace_bytes(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  if (!makes_maps(call)) return 0;
  return parts_of(call, multiprocessors_for(settings, device_multiprocessors())).bytes;
}

void check_fp8_block_gemm(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  check_grouped_gemm(call);
  check_settings(settings, call);
  check_scales(shape_of(call), call.rows.groups);
  const std::string missing = fp8_block_gemm_missing(call, settings);
  if (!missing.empty()) throw NotSupported(missing);
}

void fp8_block_grouped_gemm(const GroupedGemmCall& call, const Fp8BlockSettings& settings, Stream stream) {
  const CallDevice on(stream, {{"x.data", call.x.data},
                               {"w.data", call.w.data},
                               {"dy.data", call.dy.data},
                               {"d", call.d},
                               {"rows.splits", call.rows.splits}});
  check_fp8_block_gemm(call, settings);
  const Shape shape = shape_of(call);
  const bool ragged = call.layout == GemmLayout::NT;
  if (makes_maps(call)) check_workspace(call.workspace, call.workspace_bytes, fp8_block_gemm_workspace_bytes(call, settings));
  const bool no_rows = ragged ? shape.m == 0 : call.rows.splits == nullptr && call.rows.capacity == 0;
  if (call.rows.groups == 0 || shape.n == 0 || no_rows) return check_splits(call.rows, call.status, stream);

  const Choice choice = choice_of(call, settings);
  Problem problem{};
  problem.rows = call.rows;
  problem.rows_multiple = static_cast<std::uint32_t>(call.rows_multiple);
  problem.m = shape.m, problem.n = shape.n, problem.depth = shape.depth;
  problem.a_scales = static_cast<const float*>(shape.a.scale_inv);
  problem.b_scales = static_cast<const float*>(shape.b.scale_inv);
  problem.d = call.d, problem.c = call.c, problem.bias = call.bias;
  problem.alpha = call.alpha, problem.beta = call.beta, problem.scalars_per_group = call.scalars_per_group;
  problem.d_type = call.d_type;
  problem.status = call.status;
  const int multiprocessors = multiprocessors_for(settings, device_multiprocessors());
  if (call.rows.capacity > 0 && (ragged || shape.depth > 0)) put_operands(shape, call, choice, multiprocessors, problem);
  put_lists(shape, call, multiprocessors, stream, problem);
  launch(kernel_of(shape, choice), blocks_for(call, settings, choice, stream), choice.cluster, problem, stream);
}

}  // namespace assay::device
