#include "conformance/suites/device_lanes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

namespace assay::conformance {
namespace {

using namespace std::chrono_literals;

TEST(DeviceLanes, EachCaseIsJudgedOnceAndEachDeviceTakesSome) {
  constexpr std::int64_t kCases = 200;
  std::vector<std::atomic<int>> judged(kCases), by_device(3);
  DeviceLanes lanes(kCases, 3, [&](std::int64_t index, std::size_t device, std::string&) {
    ++judged[static_cast<std::size_t>(index)];
    ++by_device[device];
    std::this_thread::sleep_for(1ms);
    return true;
  });
  lanes.judge_all(7);
  for (const auto& each : judged) EXPECT_EQ(each, 1);
  for (const auto& each : by_device) EXPECT_GT(each, 0);
  EXPECT_TRUE(lanes.left().empty());
  EXPECT_EQ(lanes.usable().size(), 3u);
}

// The device that fails gives its case back after the other one has found nothing left.
TEST(DeviceLanes, ACaseThatComesBackLateIsJudged) {
  std::atomic<int> judged = 0;
  std::atomic<bool> is_taken = false;
  DeviceLanes lanes(2, 2, [&](std::int64_t, std::size_t device, std::string& why) {
    while (device == 0 && !is_taken) std::this_thread::sleep_for(1ms);
    if (device == 0) return ++judged, true;
    is_taken = true;
    std::this_thread::sleep_for(100ms);
    why = "lost";
    return false;
  });
  lanes.judge_all(0);
  EXPECT_EQ(judged, 2);
  EXPECT_TRUE(lanes.left().empty());
  EXPECT_EQ(lanes.gone()[0], "");
}

TEST(DeviceLanes, WithoutADeviceCasesAreLeft) {
  std::atomic<int> judged = 0;
  DeviceLanes lanes(5, 2, [&](std::int64_t index, std::size_t, std::string& why) {
    if (index == 0) return ++judged, true;
    why = "lost";
    return false;
  });
  lanes.judge_all(0);
  EXPECT_EQ(judged, 1);
  const std::vector<std::int64_t> left = lanes.left();
  EXPECT_EQ(std::set<std::int64_t>(left.begin(), left.end()), (std::set<std::int64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(lanes.usable().empty());
  EXPECT_EQ(lanes.gone(), (std::vector<std::string>{"lost", "lost"}));
}

TEST(DeviceLanes, AnErrorEndsThemAll) {
  DeviceLanes lanes(1000, 2, [](std::int64_t index, std::size_t, std::string&) -> bool {
    if (index == 10) throw std::runtime_error("out of luck");
    return true;
  });
  EXPECT_THROW(lanes.judge_all(4), std::runtime_error);
}

}  // namespace
}  // namespace assay::conformance
