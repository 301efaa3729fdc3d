#include "device/support/copy.h"

#include "device/support/launch.cuh"
#include "device/support/noop.cuh"

namespace assay::device {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) copy_floats(const float* noop, const float* from, float* to, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count && !is_skipped(noop)) to[i] = from[i];
}

}  // namespace

void copy_unless_skipped(const float* noop, const float* from, float* to, std::int64_t count, Stream stream) {
  if (count <= 0) return;
  launch_kernel("copy_floats", copy_floats, static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0, stream, noop,
                from, to, count);
}

}  // namespace assay::device
