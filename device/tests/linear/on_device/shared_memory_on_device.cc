// The module GroupedLinear on real devices where several things share it: microbatches in flight with weights of their own,
// modules of a pool, more captures than were reserved for, another thread's capture, and two devices with a thread each.
// By the emulated GEMM, which every library and architecture has.

#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/linear/linear_kernels.h"
#include "device/quantize/quantize.h"
#include "device/tests/linear/on_device/device_buffers.h"

namespace assay::device_linear_suite {
namespace {

class Shared : public testing::TestWithParam<LinearRecipe> {
 protected:
  Case layer(std::vector<std::int64_t> splits, std::int64_t beyond) const {
    Case c = make_case(GetParam(), std::move(splits), 138, 266, beyond);
    c.bias = true;
    return c;
  }
  static GroupedLinearOptions options(const DeviceBuffers& b) { return options_of(b.host.c, GemmPath::emulated); }
};
INSTANTIATE_TEST_SUITE_P(GroupedLinear, Shared, testing::ValuesIn(kRecipes));

void expect_right(DeviceBuffers& b, const Matrix& dw_before, const std::string& of) {
  b.down();
  const Case& c = b.host.c;
  expect_same(b.host.y, y_of(c, b.host.o), "y " + of);
  expect_same(b.host.dx, dx_of(c, b.host.o), "dx " + of);
  expect_same(b.host.dw, dw_of(c, b.host.o, true, dw_before), "dw " + of);
}

// Two layers of a pool, two microbatches each, interleaved as a pipeline does it; eagerly, then in graphs.
TEST_P(Shared, MicrobatchesOfModulesOfAPool) {
  for (const bool graphs : {false, true}) {
    device::LinearPool pool(stream());
    std::vector<std::unique_ptr<DeviceBuffers>> b;
    std::vector<std::unique_ptr<GroupedLinear>> modules;
    for (int i = 0; i < 4; ++i) {
      const Case c = i % 2 == 0 ? layer({6, 0, 134, 2}, 4) : layer({130, 128, 126, 10}, 4);
      b.push_back(std::make_unique<DeviceBuffers>(c, static_cast<std::uint64_t>(i + 1), false));
    }
    for (int i = 0; i < 2; ++i) {
      GroupedLinearOptions o = options(*b[static_cast<std::size_t>(i)]);
      o.pool = &pool;
      o.microbatches = 2;
      modules.push_back(std::make_unique<GroupedLinear>(o));
    }
    std::vector<Matrix> before;
    for (const auto& each : b) before.push_back(each->host.dw);
    std::vector<int> place(4, -1);
    std::vector<std::unique_ptr<CudaGraph>> made;
    const auto run = [&](auto body) {
      if (!graphs) return body();
      made.push_back(std::make_unique<CudaGraph>(body));
    };
    const auto module_of = [&](std::size_t i) -> GroupedLinear& { return *modules[i % 2]; };
    for (const std::size_t i : {0, 1, 2, 3})
      run([&, i] { place[i] = module_of(i).forward(b[i]->forward(), stream()).microbatch; });
    for (const std::size_t i : {1, 0, 3, 2}) run([&, i] { module_of(i).backward(b[i]->backward(place[i]), stream()); });
    for (const auto& graph : made) graph->replay();
    for (std::size_t i = 0; i < 4; ++i)
      expect_right(*b[i], before[i], (graphs ? "in graphs, " : "eagerly, ") + std::to_string(i));
  }
}

// Twelve graphs at the same time, on the production path where there is one; no memory was reserved for them.
TEST_P(Shared, AnyNumberOfCaptures) {
  DeviceBuffers b(layer({64, 0, 272, 48}, 16), 1, false);
  Case aligned = make_case(GetParam(), {64, 0, 272, 48}, 272, 400, 16);
  const device::LinearChoice choice = device::choose_linear_path(aligned.config, {}, device::device_kernels().architecture());
  const GemmPath path = device::linear_path_of(choice, aligned.config, {}).path;
  DeviceBuffers of_production(aligned, 2, false);
  DeviceBuffers& buffers = path == GemmPath::emulated ? b : of_production;
  GroupedLinearOptions o = options_of(buffers.host.c, path);
  GroupedLinear module(o);
  module.drop(module.forward(buffers.forward(), stream()).microbatch);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<CudaGraph>> graphs;
    for (int i = 0; i < 12; ++i) {
      graphs.push_back(std::make_unique<CudaGraph>([&] { module.drop(module.forward(buffers.forward(), stream()).microbatch); }));
    }
    const std::int64_t bytes = module.memory_bytes();
    for (const auto& graph : graphs) {
      buffers.host.clear();
      buffers.mirror.up();
      graph->replay();
      buffers.down();
      expect_same(buffers.host.y, y_of(buffers.host.c, buffers.host.o), "y");
    }
    static std::int64_t first = 0;
    if (round == 0) first = bytes;
    EXPECT_EQ(bytes, first) << "destroyed graphs leave nothing";
  }
}

// Another thread captures in the strictest mode while this one makes modules and calls them for the first time on a stream.
TEST_P(Shared, BesideAnotherThreadsCapture) {
  DeviceBuffers b(layer({6, 0, 134, 2}, 4), 1, false);
  const Matrix before = b.host.dw;
  {
    GroupedLinear warm(options(b));  // kernels are loaded before
    warm.drop(warm.forward(b.forward(), stream()).microbatch);
    b.mirror.up();
  }
  std::promise<void> begun, done;
  cudaGraph_t graph = nullptr;
  std::thread capturing([&] {
    cudaStream_t other = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal), cudaSuccess);
    begun.set_value();
    done.get_future().wait();
    EXPECT_EQ(cudaStreamEndCapture(other, &graph), cudaSuccess) << "the other thread's capture was broken";
    cudaStreamDestroy(other);
  });
  begun.get_future().wait();
  std::unique_ptr<GroupedLinear> module;
  try {
    module = std::make_unique<GroupedLinear>(options(b));
    module->backward(b.backward(module->forward(b.forward(), stream()).microbatch), stream());
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  done.set_value();
  capturing.join();
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (module != nullptr) expect_right(b, before, "beside a capture");
}

// The error of an earlier call of the program is not reported for a launch, and an error of the library is not left for later
// calls.
TEST_P(Shared, ErrorsAreReportedWhereTheyArise) {
  DeviceBuffers b(layer({6, 0, 134, 2}, 4), 1, false);
  const Matrix before = b.host.dw;
  GroupedLinear module(options(b));
  void* memory = nullptr;
  EXPECT_NE(cudaMalloc(&memory, std::size_t{1} << 50), cudaSuccess);
  module.backward(b.backward(module.forward(b.forward(), stream()).microbatch), stream());
  static_cast<void>(cudaGetLastError());
  expect_right(b, before, "after an error of the caller");

  EXPECT_THROW(module.reserve(std::int64_t{1} << 40), std::exception);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// ---- Two devices -----------------------------------------------------------------------------------------------------

bool two_devices() {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (count < 2) std::printf("there is one device: what needs two was not run\n");
  return count >= 2;
}

struct Current {
  explicit Current(int device) { check_cuda(cudaSetDevice(device), "cudaSetDevice"); }
  ~Current() { static_cast<void>(cudaSetDevice(0)); }
};

TEST_P(Shared, AModuleOfAnotherDevice) {
  if (!two_devices()) return;
  std::unique_ptr<DeviceBuffers> b;
  std::unique_ptr<GroupedLinear> module;
  cudaStream_t of_one = nullptr;
  Matrix before;
  {
    const Current one(1);
    b = std::make_unique<DeviceBuffers>(layer({6, 0, 134, 2}, 4), 1, false);
    before = b->host.dw;
    module = std::make_unique<GroupedLinear>(options(*b));
    of_one = stream();
  }
  int current = -1;
  module->backward(b->backward(module->forward(b->forward(), of_one).microbatch), of_one);  // device 0 is current
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  EXPECT_THROW(module->forward(b->forward(), stream()), device::InvalidArgument) << "a stream of device 0";
  {
    const Current one(1);
    expect_right(*b, before, "on device 1");
    module.reset();
    b.reset();
  }
}

// quantize() on tensors of device 1 while device 0 is current, on a stream of device 1 and on the null stream.
TEST_P(Shared, ACallOnTensorsOfAnotherDevice) {
  if (!two_devices() || GetParam() != LinearRecipe::block) return;
  constexpr std::int64_t kRows = 130, kColumns = 272;
  std::vector<std::uint16_t> x(kRows * kColumns, 0x3F80);
  std::vector<std::uint8_t> codes(x.size());
  void *x_at = nullptr, *codes_at = nullptr, *scales_at = nullptr, *on_zero = nullptr;
  cudaStream_t of_one = nullptr;
  {
    const Current one(1);
    of_one = stream();
    check_cuda(cudaMalloc(&x_at, x.size() * 2), "cudaMalloc");
    check_cuda(cudaMalloc(&codes_at, codes.size()), "cudaMalloc");
    check_cuda(cudaMalloc(&scales_at, 4 * 3 * 132), "cudaMalloc");
    check_cuda(cudaMemcpy(x_at, x.data(), x.size() * 2, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  check_cuda(cudaMalloc(&on_zero, codes.size()), "cudaMalloc");
  device::QuantizeCall call;
  call.config.recipe = Recipe::block_1x128;
  call.x = x_at;
  call.rows = {kRows, nullptr, 1};
  call.columns = kColumns;
  call.output.rowwise_scale_inv = scales_at;
  for (const cudaStream_t to : {of_one, cudaStream_t{nullptr}}) {
    call.output.rowwise_data = codes_at;
    device::quantize(call, to);
    const Current one(1);
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check_cuda(cudaMemcpy(codes.data(), codes_at, codes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    check_cuda(cudaMemset(codes_at, 0, codes.size()), "cudaMemset");
    for (const std::uint8_t code : codes) ASSERT_EQ(code, codes[0]);
    EXPECT_NE(codes[0], 0);
  }
  EXPECT_THROW(device::quantize(call, stream()), device::InvalidArgument) << "a stream of device 0";
  call.output.rowwise_data = on_zero;
  EXPECT_THROW(device::quantize(call, of_one), device::InvalidArgument) << "tensors of two devices";
  for (void* each : {x_at, codes_at, scales_at, on_zero}) cudaFree(each);
}

// One device and one thread each, at the same time.
TEST_P(Shared, TwoThreadsOnTwoDevices) {
  if (!two_devices()) return;
  const auto work = [&](int device) {
    const Current current(device);
    DeviceBuffers b(layer({130, 128, 126, 10}, 4), static_cast<std::uint64_t>(device + 1), false);
    GroupedLinear module(options(b));
    for (int step = 0; step < 20; ++step) {
      const Matrix before = b.host.dw;
      b.host.clear();
      b.mirror.up();
      module.backward(b.backward(module.forward(b.forward(), stream()).microbatch), stream());
      expect_right(b, before, "of device " + std::to_string(device));
    }
  };
  std::thread zero(work, 0), one(work, 1);
  zero.join();
  one.join();
}

}  // namespace
}  // namespace assay::device_linear_suite
