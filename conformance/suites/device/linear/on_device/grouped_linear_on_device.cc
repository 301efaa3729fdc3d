// The module GroupedLinear on a device, bit for bit against the reference's layer: every recipe, through cuBLASLt where the
// library has it and through the bring-up GEMM always, eagerly and in graphs whose splits, data, weights and skip flag change
// between replays.
//
//   device_grouped_linear [GoogleTest options]     exit code 9 where there is no device
//
// What is not run through cuBLASLt is told, with the reason.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "conformance/suites/device/linear/buffers.h"
#include "device/linear/linear_kernels.h"
#include "device/support/error.h"
#include "device/support/launch_check.h"

namespace assay::device_linear_suite {
namespace {

using device::check_cuda;
using device::GemmPath;
using device::GroupedLinear;

cudaStream_t stream() {
  static const cudaStream_t made = [] {
    cudaStream_t s = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return s;
  }();
  return made;
}
void wait() { check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize"); }

// Host buffers and their counterparts on the device.
class Mirror {
 public:
  Mirror() = default;
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  ~Mirror() {
    for (auto& [host, twin] : twins_) cudaFree(twin.on_device);
  }
  template <class Vector>
  void add(Vector& host) {
    Twin twin{nullptr, host.size() * sizeof(host[0])};
    check_cuda(cudaMalloc(&twin.on_device, std::max<std::size_t>(twin.bytes, 1)), "cudaMalloc");
    twins_.emplace(host.data(), twin);
  }
  template <class Pointer>
  Pointer of(Pointer host) const {
    if (host == nullptr) return nullptr;
    void* const at = twins_.at(const_cast<void*>(static_cast<const void*>(host))).on_device;
    return static_cast<Pointer>(at);
  }
  void up() const {
    wait();
    for (const auto& [host, twin] : twins_)
      check_cuda(cudaMemcpy(twin.on_device, host, twin.bytes, cudaMemcpyHostToDevice), "upload");
  }
  void down() const {
    wait();
    for (const auto& [host, twin] : twins_)
      check_cuda(cudaMemcpy(host, twin.on_device, twin.bytes, cudaMemcpyDeviceToHost), "download");
  }

 private:
  struct Twin {
    void* on_device;
    std::size_t bytes;
  };
  std::map<void*, Twin> twins_;
};

// A caller's buffers on the device; `host` is what they hold after down(), and what they get by up().
struct DeviceBuffers {
  Buffers host;
  std::vector<float> flag{0};
  std::vector<std::uint32_t> status{0};
  Mirror mirror;
  std::vector<const void*> w_list, bias_list;
  std::vector<void*> dbias_list, dw_list;

  DeviceBuffers(const Case& c, std::uint64_t seed, bool lists) : host(c, seed, lists) {
    if (host.splits.empty()) host.splits.reserve(1);
    for (Matrix* matrix : {&host.o.x, &host.o.dy, &host.o.w, &host.o.bias, &host.y, &host.dx, &host.dbias, &host.dw})
      mirror.add(matrix->bytes);
    for (auto* parts : {&host.w_parts, &host.bias_parts, &host.dbias_parts, &host.dw_parts}) {
      for (Matrix& part : *parts) mirror.add(part.bytes);
    }
    for (auto* scales : {&host.o.x_scale, &host.o.dy_scale, &host.o.w_scale}) mirror.add(*scales);
    mirror.add(host.splits);
    mirror.add(flag);
    mirror.add(status);
    for (const void* each : host.w_list) w_list.push_back(mirror.of(each));
    for (const void* each : host.bias_list) bias_list.push_back(mirror.of(each));
    for (void* each : host.dbias_list) dbias_list.push_back(mirror.of(each));
    for (void* each : host.dw_list) dw_list.push_back(mirror.of(each));
    mirror.up();
  }
  GroupedLinearForward forward() {
    GroupedLinearForward call = host.forward();
    call.x = mirror.of(call.x);
    call.rows.splits = mirror.of(call.rows.splits);
    if (call.w.list != nullptr) call.w.list = w_list.data();
    call.w.data = mirror.of(call.w.data);
    if (call.bias_list != nullptr) call.bias_list = bias_list.data();
    call.bias = mirror.of(call.bias);
    call.x_scale = mirror.of(call.x_scale);
    call.w_scale = mirror.of(call.w_scale);
    call.y = mirror.of(call.y);
    return call;
  }
  GroupedLinearBackward backward(int microbatch) {
    GroupedLinearBackward call = host.backward(microbatch);
    call.dy = mirror.of(call.dy);
    call.dy_scale = mirror.of(call.dy_scale);
    call.dx = mirror.of(call.dx);
    if (call.dbias_list != nullptr) call.dbias_list = dbias_list.data();
    call.dbias = mirror.of(call.dbias);
    if (call.dw_list != nullptr) call.dw_list = dw_list.data();
    call.dw = mirror.of(call.dw);
    return call;
  }
  void down() {
    mirror.down();
    host.collect();
    EXPECT_EQ(status[0], 0u) << device::describe_status(status[0]);
  }
};

class CudaGraph {
 public:
  explicit CudaGraph(const std::function<void()>& body) {
    check_cuda(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    try {
      body();
    } catch (...) {
      cudaStreamEndCapture(stream(), &graph_);
      throw;
    }
    check_cuda(cudaStreamEndCapture(stream(), &graph_), "cudaStreamEndCapture");
    std::size_t nodes = 0;
    check_cuda(cudaGraphGetNodes(graph_, nullptr, &nodes), "cudaGraphGetNodes");
    if (nodes > 0) check_cuda(cudaGraphInstantiate(&made_, graph_, 0), "cudaGraphInstantiate");
  }
  CudaGraph(const CudaGraph&) = delete;
  ~CudaGraph() {
    if (made_ != nullptr) cudaGraphExecDestroy(made_);
    cudaGraphDestroy(graph_);
  }
  void replay() const {
    if (made_ != nullptr) check_cuda(cudaGraphLaunch(made_, stream()), "cudaGraphLaunch");
    wait();
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t made_ = nullptr;
};

struct DeviceCase {
  LinearRecipe recipe;
  GemmPath path;
};
void PrintTo(const DeviceCase& c, std::ostream* out) { *out << name_of(c.recipe) << " " << device::name_of(c.path); }

std::vector<DeviceCase> every_case() {
  std::vector<DeviceCase> cases;
  for (const LinearRecipe recipe : kRecipes) {
    for (const GemmPath path : {GemmPath::cublaslt, GemmPath::bringup}) cases.push_back({recipe, path});
  }
  return cases;
}

class OnDevice : public testing::TestWithParam<DeviceCase> {
 protected:
  LinearRecipe recipe() const { return GetParam().recipe; }
  bool quantizes() const { return recipe() != LinearRecipe::none; }
  // Columns that the library takes in every layout are multiples of 16; the bring-up GEMM takes any that can be packed.
  bool aligned() const { return GetParam().path == GemmPath::cublaslt; }
  static constexpr std::int64_t kRows = 416;
  std::vector<std::vector<std::int64_t>> splits() const {
    if (aligned())
      return {{64, 0, 272, 48}, {0, 0, 0, 400},    {400, 0, 0, 0},  {0, 0, 0, 0},
              {16, 16, 16, 16}, {112, 96, 96, 96}, {0, 384, 16, 0}, {64, 0, 272, 48}};
    return {{6, 0, 134, 2}, {0, 0, 0, 46},       {386, 0, 0, 0}, {0, 0, 0, 0},
            {2, 2, 2, 2},   {130, 128, 126, 10}, {0, 46, 4, 0},  {6, 0, 134, 2}};
  }
  Case layer(const std::vector<std::int64_t>& of_groups) const {
    const std::int64_t used = std::accumulate(of_groups.begin(), of_groups.end(), std::int64_t{0});
    Case c = make_case(recipe(), of_groups, aligned() ? 272 : 138, aligned() ? 400 : 266, kRows - used);
    c.bias = true;
    return c;
  }
  // Why this recipe does not run through this path here; empty: it does.
  std::string missing() const {
    if (GetParam().path == GemmPath::bringup) return "";
    LinearConfig config;
    config.recipe = recipe();
    const device::LinearChoice choice = device::choose_linear_path(config, {}, device::device_kernels().architecture());
    return choice.verdict == device::LinearVerdict::cublaslt ? "" : choice.reason;
  }
  bool told_missing() const {
    const std::string why = missing();
    if (!why.empty())
      std::printf("%s does not run through cublaslt here: %s\n", std::string(name_of(recipe())).c_str(), why.c_str());
    return !why.empty();
  }
};
INSTANTIATE_TEST_SUITE_P(GroupedLinear, OnDevice, testing::ValuesIn(every_case()));

TEST_P(OnDevice, Eager) {
  if (told_missing()) return;
  for (int options = 0; options < 16; ++options) {
    const bool lists = options % 2 != 0, defer = options / 2 % 2 != 0, wants_dx = options / 4 % 2 == 0;
    const bool promised = options / 8 != 0;  // without a promise wgrad of FP8 may copy, with it there is no room for copies
    if (promised && !aligned()) continue;
    SCOPED_TRACE(std::string(lists ? "lists " : "") + (defer ? "defer " : "") + (wants_dx ? "dx" : "no dx") +
                 (promised ? " rows promised" : ""));
    DeviceBuffers b(layer(splits()[0]), 1, lists);
    GroupedLinearOptions o = options_of(b.host.c, GetParam().path);
    o.defer_wgrad = defer;
    o.status = b.mirror.of(b.status.data());
    if (promised) o.rows_multiple = 16;
    GroupedLinear module(o);
    const Case& c = b.host.c;
    const Matrix before = b.host.dw;
    const auto forward = module.forward(b.forward(), stream());
    GroupedLinearBackward call = b.backward(forward.microbatch);
    if (!wants_dx) call.dx = nullptr;
    const auto backward = module.backward(call, stream());
    std::string ran = forward.report.description() + " | " + backward.report.description();
    if (defer) ran += " | " + module.backward_dw(stream()).description();
    b.down();
    if (options % 8 == 0) std::printf("%s\n", ran.c_str());
    expect_same(b.host.y, y_of(c, b.host.o), "y");
    if (wants_dx) expect_same(b.host.dx, dx_of(c, b.host.o), "dx");
    expect_same(b.host.dbias, dbias_of(c, b.host.o), "dbias");
    expect_same(b.host.dw, dw_of(c, b.host.o, true, before), "dw");
  }
}

// A broken promise is told, and nothing of dw is written. Rowwise codes of block are written together with the columnwise ones,
// which rely on it.
TEST_P(OnDevice, RowsThatBreakTheirPromise) {
  if (told_missing() || !aligned()) return;
  DeviceBuffers b(layer({64, 0, 260, 60}), 1, false);
  GroupedLinearOptions o = options_of(b.host.c, GetParam().path);
  o.status = b.mirror.of(b.status.data());
  o.rows_multiple = 16;
  GroupedLinear module(o);
  const Matrix before = b.host.dw;
  module.backward(b.backward(module.forward(b.forward(), stream()).microbatch), stream());
  b.mirror.down();
  EXPECT_EQ(b.status[0], device::kStatusUnalignedRows) << device::describe_status(b.status[0]);
  if (b.host.c.config.recipe != LinearRecipe::block) {
    expect_same(b.host.y, y_of(b.host.c, b.host.o), "y");
    expect_same(b.host.dx, dx_of(b.host.c, b.host.o), "dx");
  }
  expect_same(b.host.dw, before, "dw");
}

TEST_P(OnDevice, Replay) {
  if (told_missing()) return;
  const float flags[] = {0, 1, 1, 0, 1};
  for (const bool defer : {false, true}) {
    const bool lists = defer;
    DeviceBuffers b(layer(splits()[0]), 1, lists);
    GroupedLinearOptions o = options_of(b.host.c, GetParam().path);
    o.defer_wgrad = defer;
    o.status = b.mirror.of(b.status.data());
    GroupedLinear module(o);
    GroupedLinearForward call = b.forward();
    call.skip_weight_update = b.mirror.of(b.flag.data());
    const auto step_of = [&](int microbatch) { module.backward(b.backward(microbatch), stream()); };
    step_of(module.forward(call, stream()).microbatch);  // loads the kernels
    if (defer) module.backward_dw(stream());
    module.reserve_setup(stream(), 3);
    wait();
    const Matrix start = b.host.dw;

    int microbatch = -1;
    const CudaGraph forward([&] { microbatch = module.forward(call, stream()).microbatch; });
    const CudaGraph backward([&] { step_of(microbatch); });
    const CudaGraph late([&] {
      if (defer) module.backward_dw(stream());
    });
    Operands taken;
    for (std::uint64_t replay = 0; replay < 16; ++replay) {
      SCOPED_TRACE("replay " + std::to_string(replay) + (defer ? " defer lists" : ""));
      b.host.fill(layer(splits()[replay % 8]), replay + 3);
      b.flag[0] = flags[replay % 5];
      if (b.flag[0] != 1 || !quantizes()) taken = b.host.o;
      b.host.clear();
      if (replay == 0) b.host.set_dw(start);
      const Matrix before = b.host.dw;
      b.mirror.up();
      forward.replay();
      backward.replay();
      late.replay();
      b.down();
      const Operands now = b.host.with_weights_of(taken);
      expect_same(b.host.y, y_of(b.host.c, now), "y");
      expect_same(b.host.dx, dx_of(b.host.c, now), "dx");
      expect_same(b.host.dbias, dbias_of(b.host.c, now), "dbias");
      expect_same(b.host.dw, dw_of(b.host.c, now, true, before), "dw");
    }
  }
}

// Two modules with the same groups and shapes, their graphs replayed in turn.
TEST_P(OnDevice, TwoModules) {
  if (told_missing()) return;
  DeviceBuffers a(layer(splits()[0]), 1, false), b(layer(splits()[5]), 2, false);
  GroupedLinear first(options_of(a.host.c, GetParam().path)), second(options_of(b.host.c, GetParam().path));
  const Matrix a_before = a.host.dw, b_before = b.host.dw;
  const auto cached = [](GroupedLinearForward call) {
    call.is_first_microbatch = true;  // dw is overwritten
    return call;
  };
  first.backward(a.backward(first.forward(cached(a.forward()), stream()).microbatch), stream());
  second.backward(b.backward(second.forward(cached(b.forward()), stream()).microbatch), stream());
  for (GroupedLinear* module : {&first, &second}) module->reserve_setup(stream(), 2);
  wait();
  int of_a = -1, of_b = -1;
  const CudaGraph a_forward([&] { of_a = first.forward(cached(a.forward()), stream()).microbatch; });
  const CudaGraph b_forward([&] { of_b = second.forward(cached(b.forward()), stream()).microbatch; });
  const CudaGraph a_backward([&] { first.backward(a.backward(of_a), stream()); });
  const CudaGraph b_backward([&] { second.backward(b.backward(of_b), stream()); });
  for (int replay = 0; replay < 3; ++replay) {
    for (const CudaGraph* graph : {&a_forward, &b_forward, &b_backward, &a_backward}) graph->replay();
  }
  for (DeviceBuffers* each : {&a, &b}) {
    each->down();
    const Case& c = each->host.c;
    expect_same(each->host.y, y_of(c, each->host.o), "y");
    expect_same(each->host.dx, dx_of(c, each->host.o), "dx");
    expect_same(each->host.dw, dw_of(c, each->host.o, false, each == &a ? a_before : b_before), "dw");
  }
}

}  // namespace
}  // namespace assay::device_linear_suite

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no CUDA device: nothing was compared\n");
    return 9;
  }
  return RUN_ALL_TESTS();
}
