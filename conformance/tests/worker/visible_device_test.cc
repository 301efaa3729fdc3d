// Workers of built-in backends are shared by contexts that see the same device, and by no others.

#include "conformance/worker/visible_device.h"

#include <gtest/gtest.h>

#include "conformance/worker/worker.h"

namespace assay::conformance::worker {
namespace {

TEST(VisibleDevice, AWorkerIsSharedByThoseThatSeeItsDevice) {
  int channel = -1;
  const auto plain = worker_with_room("null", channel);
  const OnDevice first("0");
  const auto on_first = worker_with_room("null", channel);
  EXPECT_NE(on_first, plain);
  {
    const OnDevice second("1");
    EXPECT_NE(worker_with_room("null", channel), on_first);
    EXPECT_EQ(OnDevice::current(), "1");
  }
  EXPECT_EQ(OnDevice::current(), "0");
  EXPECT_EQ(worker_with_room("null", channel), on_first);
  const OnDevice none("");
  EXPECT_EQ(worker_with_room("null", channel), plain);
}

TEST(VisibleDevice, EnvironmentNamesTheDevice) {
  EXPECT_TRUE(environment_on("").empty());
  EXPECT_EQ(environment_on("GPU-1").back(), "CUDA_VISIBLE_DEVICES=GPU-1");
}

}  // namespace
}  // namespace assay::conformance::worker
