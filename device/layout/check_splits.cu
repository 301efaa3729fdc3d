#include "device/layout/check_splits.h"

#include <cuda_runtime.h>

#include "device/layout/check_rows.h"
#include "device/support/call_device.h"
#include "device/support/launch.cuh"

namespace assay::device {
namespace {

constexpr int kThreads = 256;

// One block: the sums of group_table.cuh, of which only the faults are used.
__global__ void __launch_bounds__(kThreads) check(const Rows rows, std::uint32_t* status) {
  using Sums = group_detail::Sums<>;
  __shared__ group_detail::BlockScratch<Sums> scratch;
  int first = 0, last = 0;
  Sums before, total;
  group_detail::scan_block(rows, scratch, status, first, last, before, total);
}

}  // namespace

void check_splits(const Rows& rows, std::uint32_t* status, Stream stream) {
  check_rows(rows);
  if (rows.splits == nullptr || rows.groups == 0) return;
  require_pointer(status, "status", alignof(std::uint32_t));
  const CallDevice device(stream, {{"rows.splits", rows.splits}, {"status", status}});
  launch_kernel("check_splits", check, 1, kThreads, 0, stream, rows, status);
}

}  // namespace assay::device
