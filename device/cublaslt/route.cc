// The route of a call: around the library's defect with 128x128 scales of w (spec measured-3.1).

#include <algorithm>
#include <cstdint>

#include "device/cublaslt/cublaslt_gemm.h"
#include "device/support/multiprocessors.h"

namespace assay::device {

bool reads_wrong_scales(const GroupedGemmCall& call, int multiprocessors) {
  constexpr std::int64_t kCluster = 128, kBlock = 128, kBlocksAtFault = 8,
                         kMaxClusters = 66;  // measured with 132 multiprocessors
  const bool squares =
      call.kind == GemmKind::fp8_block && call.layout != GemmLayout::NT && call.weight_block == WeightBlock::b128x128;
  if (!squares || call.d_type != Format::f32) return false;
  const auto parts = [](std::int64_t extent, std::int64_t size) { return extent / size + (extent % size != 0); };
  const bool fprop = call.layout == GemmLayout::TN;
  const std::int64_t columns = fprop ? call.N : call.K, depth = fprop ? call.K : call.N;
  if (parts(depth, kBlock) % kBlocksAtFault != 0 || columns == 0) return false;
  // The rows of a group are known on the device only: the sum is over groups with rows, at most as many as rows:
  // sum ceil(r / 128) <= sum (r + 127) / 128 <= (capacity + 127 groups) / 128.
  const std::int64_t groups = std::min<std::int64_t>(call.rows.groups, call.rows.capacity);
  const std::int64_t max_across_rows = (call.rows.capacity + (kCluster - 1) * groups) / kCluster;
  const std::int64_t per_wave = std::min<std::int64_t>(multiprocessors / 2, kMaxClusters);
  return max_across_rows > per_wave / parts(columns, kCluster);  // their product > per_wave
}

CublasLtRoute cublaslt_route(const GroupedGemmCall& call, const CublasLtSettings& settings) {
  if (settings.bare) return CublasLtRoute::direct;
  if (settings.route) return *settings.route;
  const bool usual_clusters = settings.tile < 0 && settings.sm_target == 0;
  const int available = settings.multiprocessors != 0 ? settings.multiprocessors : multiprocessors();
  return reads_wrong_scales(call, usual_clusters ? available : 0) ? CublasLtRoute::expanded_scales : CublasLtRoute::direct;
}

}  // namespace assay::device
