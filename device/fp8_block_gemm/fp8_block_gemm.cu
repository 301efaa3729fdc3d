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
#include "device/layout/group_table.cuh"
#include "device/support/call_checks.h"
#include "device/support/call_device.h"
#include "device/support/launch_check.h"
#include "device/support/multiprocessors.h"

namespace assay::device {
namespace {

using namespace fp8_block;

// The call as kernel.cuh has it: sizes of D and of the contraction, operands of its rows and of its columns.
struct Shape {
  std::int64_t n, depth;
  const GemmOperand &a, &b;
  bool squares;
};

Shape shape_of(const GroupedGemmCall& call) {
  const bool fprop = call.layout == GemmLayout::TN;
  return {fprop ? call.N : call.K, fprop ? call.K : call.N, fprop ? call.x : call.dy, call.w,
          call.weight_block == WeightBlock::b128x128};
}

Fp8BlockOrder order_of(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  return settings.order.value_or(shape_of(call).squares ? Fp8BlockOrder::scales_first : Fp8BlockOrder::rows_first);
}

Scaling scaling_of(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  if (shape_of(call).squares) return Scaling::squares;
  return order_of(call, settings) == Fp8BlockOrder::scales_first ? Scaling::vectors : Scaling::vectors_rows_first;
}

// Two tiles of rows share what they read of w, where groups are expected to have more than one.
int cluster_of(const GroupedGemmCall& call, const Fp8BlockSettings& settings, Scaling scaling) {
  if (settings.cluster != 0) return settings.cluster;
  return scaling == Scaling::squares && call.rows.capacity / call.rows.groups >= 2 * kTileRows ? 2 : 1;
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

Kernel kernel_of(Format a, Format b, Scaling scaling, int cluster) {
  if (a == Format::e4m3) return b == Format::e4m3 ? kernel_of_e4m3_e4m3(scaling, cluster) : kernel_of_e4m3_e5m2(scaling, cluster);
  return b == Format::e4m3 ? kernel_of_e5m2_e4m3(scaling, cluster) : kernel_of_e5m2_e5m2(scaling, cluster);
}

// A kernel may take more than 48 KiB once the device has been told so.
void allow_shared_memory(const Kernel& kernel) {
  static std::mutex mutex;
  static std::set<std::pair<int, const void*>> done;
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  if (!done.insert({device, reinterpret_cast<const void*>(kernel.function)}).second) return;
  check_cuda(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.shared_bytes),
             "cudaFuncSetAttribute of the FP8 block GEMM");
}

void launch(const Kernel& kernel, int blocks, int cluster, const Problem& problem, Stream stream) {
  allow_shared_memory(kernel);
  cudaLaunchAttribute in_clusters{};
  in_clusters.id = cudaLaunchAttributeClusterDimension;
  in_clusters.val.clusterDim.x = static_cast<unsigned>(cluster);
  in_clusters.val.clusterDim.y = in_clusters.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned>(blocks);
  config.blockDim = kThreads;
  config.dynamicSmemBytes = static_cast<std::size_t>(kernel.shared_bytes);
  config.stream = stream;
  config.attrs = &in_clusters;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel.function, problem), "FP8 block GEMM");
}

void check_settings(const Fp8BlockSettings& settings, bool squares) {
  require(!settings.order || *settings.order <= Fp8BlockOrder::rows_first, "order of the settings",
          static_cast<std::int64_t>(settings.order.value_or(Fp8BlockOrder::scales_first)), "scales_first (0) or rows_first (1)");
  require(settings.multiprocessors >= 0, "multiprocessors of the settings", settings.multiprocessors, "a value of at least 0");
  require(settings.cluster >= 0 && settings.cluster <= (squares ? 2 : 1), "cluster of the settings", settings.cluster,
          squares ? "0, 1 or 2" : "0 or 1 with 1x128 scales of w");
}

// The copy engine takes runs of scales at multiples of 16 bytes; others that multiply FP8 blocks do without.
void check_scales(const GroupedGemmCall& call, const Shape& shape) {
  const char* const rows = call.layout == GemmLayout::TN ? "x.scale_inv" : "dy.scale_inv";
  check_alignment(shape.a.scale_inv, rows, 16);
  check_alignment(shape.b.scale_inv, "w.scale_inv", 16);
}

// Blocks of the grid: as many as there can be tiles, or multiprocessors. Errors: InvalidArgument, for more tiles than are counted.
int blocks_for(const GroupedGemmCall& call, const Fp8BlockSettings& settings, Scaling scaling, int cluster, Stream stream) {
  const std::int64_t n = shape_of(call).n, columns = tile_columns(scaling), across = (n + columns - 1) / columns;
  const std::int64_t tiles = max_tiles(call.rows, std::int64_t{cluster} * kTileRows) * across;
  require(tiles < (std::int64_t{1} << 32), "tiles of D", tiles, "fewer than 4294967296");
  const int all = multiprocessors_of(stream),
            used = settings.multiprocessors == 0 ? all : std::min(settings.multiprocessors, all);
  return static_cast<int>(std::min<std::int64_t>(tiles, std::max(used / cluster, 1))) * cluster;
}

}  // namespace

std::string fp8_block_gemm_plan(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  return order_of(call, settings) == Fp8BlockOrder::scales_first ? "assay.sm90.fp8_block.scales_first"
                                                                 : "assay.sm90.fp8_block.rows_first";
}

std::string fp8_block_gemm_missing(const GroupedGemmCall& call, const Fp8BlockSettings& settings) {
  if (call.kind != GemmKind::fp8_block) return "the FP8 block GEMM has no products of kind " + kind_name(call.kind);
  if (call.layout == GemmLayout::NT) return "the FP8 block GEMM has no layout NT";
  if (call.places.layout != GroupedLayout::splits) return "the FP8 block GEMM takes groups that follow one another";
  if (call.w.data_list != nullptr) return "the FP8 block GEMM takes w in one buffer";
  if (is_fp8(call.d_type)) return "the FP8 block GEMM writes no D in FP8";
  const Shape shape = shape_of(call);
  if (shape.depth % 16 != 0)
    return "the FP8 block GEMM takes a contraction of a multiple of 16; " +
           std::string(call.layout == GemmLayout::TN ? "K" : "N") + " is " + std::to_string(shape.depth);
  std::int64_t b_rows = 0;  // TMA counts them in 32 bits
  if (__builtin_mul_overflow(std::int64_t{call.rows.groups}, shape.n, &b_rows) || b_rows > kMaxRows)
    return "the FP8 block GEMM takes w of at most " + std::to_string(kMaxRows) + " rows; " + std::to_string(call.rows.groups) +
           " groups have " + std::to_string(shape.n) + " each";
  if (shape.squares && settings.order == Fp8BlockOrder::rows_first)
    return "the FP8 block GEMM has no plan rows_first for 128x128 scales of w";
  int device = 0, major = 0, minor = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return "the FP8 block GEMM is for SM90; there is no device";
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  if (major != 9 || minor != 0) return "the FP8 block GEMM is for SM90; this device is SM" + std::to_string(10 * major + minor);
  return "";
}

void fp8_block_grouped_gemm(const GroupedGemmCall& call, const Fp8BlockSettings& settings, Stream stream) {
  const CallDevice on(stream, {{"x.data", call.x.data},
                               {"w.data", call.w.data},
                               {"dy.data", call.dy.data},
                               {"d", call.d},
                               {"rows.splits", call.rows.splits}});
  check_grouped_gemm(call);
  const Shape shape = shape_of(call);
  check_settings(settings, shape.squares);
  check_scales(call, shape);
  const std::string missing = fp8_block_gemm_missing(call, settings);
  if (!missing.empty()) throw NotSupported(missing);
  if (call.rows.groups == 0 || shape.n == 0 || (call.rows.splits == nullptr && call.rows.capacity == 0)) return;
  const Scaling scaling = scaling_of(call, settings);
  const int cluster = cluster_of(call, settings, scaling);

  Problem problem{};
  problem.rows = call.rows;
  problem.n = shape.n, problem.depth = shape.depth;
  problem.a_scales = static_cast<const float*>(shape.a.scale_inv),
  problem.b_scales = static_cast<const float*>(shape.b.scale_inv);
  problem.d = call.d, problem.c = call.c, problem.bias = call.bias;
  problem.alpha = call.alpha, problem.beta = call.beta, problem.scalars_per_group = call.scalars_per_group;
  problem.d_type = call.d_type;
  problem.status = call.status;
  if (call.rows.capacity > 0 && shape.depth > 0) {
    problem.a_map = map_of(shape.a.data, call.rows.capacity, shape.depth, kTileRows);
    problem.b_map = map_of(shape.b.data, call.rows.groups * shape.n, shape.depth, tile_columns(scaling) / cluster);
  }
  launch(kernel_of(shape.a.type, shape.b.type, scaling, cluster), blocks_for(call, settings, scaling, cluster, stream), cluster,
         problem, stream);
}

}  // namespace assay::device
