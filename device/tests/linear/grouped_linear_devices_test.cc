// The module GroupedLinear in a process with several devices: it works on its own device, whichever is current.

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/tests/linear/module.h"

namespace assay::device_linear_suite {
namespace {

device::Stream stream_of(int device) {
  const auto stream = reinterpret_cast<device::Stream>(static_cast<std::uintptr_t>(16 + device));
  host_device().device_of_stream[stream] = device;
  return stream;
}

TEST_P(EveryRecipe, AModuleWorksOnItsOwnDevice) {
  const Case c = layer();
  for (const GemmPath path : paths_of(GetParam())) {
    host_device().reset();
    Buffers b(c), other_b(c, 2);
    GroupedLinearOptions o = options_of(c, path);
    o.defer_wgrad = true;
    host_device().current_device = 1;
    Module module(o);
    host_device().current_device = 0;
    Module other(o);
    const int allocations = host_memory().allocations;
    host_memory().while_capturing = true;
    for (const bool graph : {false, true}) {
      // Device 0 is current; streams name the devices, and the null stream is the module's.
      for (const device::Stream stream : {stream_of(1), device::Stream{nullptr}}) {
        b.clear();
        host_device().launched_on.clear();
        const Matrix before = b.dw;
        const auto step = [&] {
          module.reserve_setup(stream, 0);
          module.backward(b.backward(module.forward(b.forward(), stream).microbatch), stream);
          module.backward_dw(stream);
          EXPECT_EQ(host_device().current_device, 0) << "the caller's device is current again";
        };
        if (graph) {
          Graph(step).replay();
        } else {
          step();
        }
        EXPECT_EQ(host_device().launched_on, (std::vector<int>{1, 1, 1}));
        expect_same(b.y, y_of(c, b.o), "y");
        expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
      }
    }
    host_device().launched_on.clear();
    other.drop(other.forward(other_b.forward(), stream_of(0)).microbatch);
    EXPECT_EQ(host_device().launched_on, std::vector<int>{0});

    // A stream of another device is refused before anything is launched.
    host_device().log.clear();
    try {
      module.forward(b.forward(), stream_of(0));
      ADD_FAILURE() << "a stream of another device was accepted";
    } catch (const device::InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).rfind("stream is of device 0: expected one of device 1", 0), 0u) << error.what();
    }
    EXPECT_TRUE(host_device().log.empty());
    EXPECT_EQ(host_device().current_device, 0);
    EXPECT_EQ(module.in_flight(), 0);
    EXPECT_GE(host_memory().allocations, allocations);
    host_memory().while_capturing = false;
  }
}

// The caller's device is current again after an error, too.
TEST_P(EveryRecipe, TheCallersDeviceAfterAnError) {
  const Case c = layer();
  Buffers b(c);
  host_device().current_device = 1;
  Module module(options_of(c));
  host_device().current_device = 0;
  GroupedLinearForward call = b.forward();
  call.rows.groups = 1000;
  EXPECT_THROW(module.forward(call, nullptr), device::InvalidArgument);
  EXPECT_EQ(host_device().current_device, 0);
  host_memory().refuse_after = 0;
  EXPECT_THROW(module.reserve(10'000), device::CudaError);
  EXPECT_EQ(host_device().current_device, 0);
  host_memory().refuse_after = -1;
}

}  // namespace
}  // namespace assay::device_linear_suite
