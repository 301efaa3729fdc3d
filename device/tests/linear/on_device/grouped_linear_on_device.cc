// The module GroupedLinear on a device, bit for bit against the reference's layer: every recipe, through cuBLASLt where the
// library has it, through our own kernel where that has it and through the emulated GEMM always, eagerly and in graphs whose splits,
// data, weights and skip flag change between replays.
//
//   device_grouped_linear [GoogleTest options]     exit code 9 where there is no device
//
// Reports the paths that a recipe does not have here, with the reason.

#include <cstdio>
#include <numeric>
#include <string>

#include "device/linear/linear_kernels.h"
#include "device/linear/linear_product.h"
#include "device/tests/linear/on_device/device_buffers.h"

namespace assay::device_linear_suite {
namespace {

struct DeviceCase {
  LinearRecipe recipe;
  GemmPath path;
  Activation activation = Activation::off;
};
void PrintTo(const DeviceCase& c, std::ostream* out) {
  *out << name_of(c.recipe) << " " << device::name_of(c.path) << (c.activation == Activation::off ? "" : " swiglu");
}

std::vector<DeviceCase> every_case() {
  std::vector<DeviceCase> cases;
  for (const LinearRecipe recipe : kRecipes) {
    for (const GemmPath path : paths_of(recipe)) cases.push_back({recipe, path});
  }
  for (const GemmPath path : paths_of(LinearRecipe::block)) cases.push_back({LinearRecipe::block, path, Activation::swiglu});
  return cases;
}

class OnDevice : public testing::TestWithParam<DeviceCase> {
 protected:
  LinearRecipe recipe() const { return GetParam().recipe; }
  bool quantizes() const { return recipe() != LinearRecipe::none; }
  GemmPath path() const { return GetParam().path; }
  // Columns that the library and our own kernel take in every layout are multiples of 16; the emulated GEMM takes any that can be
  // packed. Rows: the library's are multiples of 16 here too.
  bool has_multiples_of_16() const { return path() != GemmPath::emulated; }
  static constexpr std::int64_t kRows = 416;
  std::vector<std::vector<std::int64_t>> splits() const { return splits(path() == GemmPath::cublaslt); }
  static std::vector<std::vector<std::int64_t>> splits(bool by_16) {
    if (by_16)
      return {{64, 0, 272, 48}, {0, 0, 0, 400},    {400, 0, 0, 0},  {0, 0, 0, 0},
              {16, 16, 16, 16}, {112, 96, 96, 96}, {0, 384, 16, 0}, {64, 0, 272, 48}};
    return {{6, 0, 134, 2}, {0, 0, 0, 46},       {386, 0, 0, 0}, {0, 0, 0, 0},
            {2, 2, 2, 2},   {130, 128, 126, 10}, {0, 46, 4, 0},  {6, 0, 134, 2}};
  }
  Case layer(const std::vector<std::int64_t>& of_groups) const {
    const std::int64_t used = std::accumulate(of_groups.begin(), of_groups.end(), std::int64_t{0});
    Case c = make_case(recipe(), of_groups, has_multiples_of_16() ? 272 : 138, has_multiples_of_16() ? 400 : 266, kRows - used);
    c.bias = true;
    c.config.activation = GetParam().activation;
    return c;
  }
  // Why this recipe does not run through this path here; empty: it does.
  std::string missing() const {
    const device::LinearKernels& kernels = device::device_kernels();
    if (const std::string why = kernels.missing_code(); !why.empty() || path() == GemmPath::emulated) return why;
    LinearConfig config;
    config.recipe = recipe();
    for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
      const device::GroupedGemmCall call =
          device::product_of(config, layout, layout == GemmLayout::NT ? Format::f32 : config.type);
      const std::string why =
          path() == GemmPath::assay ? kernels.assay_missing(call, {}) : kernels.missing(call, kernels.architecture());
      if (!why.empty()) return std::string(device::step_name(layout)) + ": " + why;
    }
    return "";
  }
  bool told_missing() const {
    const std::string why = missing();
    if (!why.empty())
      std::printf("%s does not run through %s here: %s\n", std::string(name_of(recipe())).c_str(), device::name_of(path()),
                  why.c_str());
    return !why.empty();
  }
};
INSTANTIATE_TEST_SUITE_P(GroupedLinear, OnDevice, testing::ValuesIn(every_case()));

TEST_P(OnDevice, Eager) {
  if (told_missing()) return;
  for (int options = 0; options < 16; ++options) {
    const bool lists = options % 2 != 0, defer = options / 2 % 2 != 0, wants_dx = options / 4 % 2 == 0;
    const bool promised = options / 8 != 0;  // without a promise wgrad of FP8 may copy, with it there is no memory for copies
    if (promised && !has_multiples_of_16()) continue;
    SCOPED_TRACE(std::string(lists ? "lists " : "") + (defer ? "defer " : "") + (wants_dx ? "dx" : "no dx") +
                 (promised ? " rows promised" : ""));
    DeviceBuffers b(layer(promised ? splits(true)[0] : splits()[0]), 1, lists);
    GroupedLinearOptions o = options_of(b.host.c, path());
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

// A broken promise is reported, and nothing of dw is written. Rowwise codes of block are written together with the columnwise ones,
// which rely on it.
TEST_P(OnDevice, RowsThatBreakTheirPromise) {
  if (told_missing() || !has_multiples_of_16()) return;
  DeviceBuffers b(layer({64, 0, 260, 60}), 1, false);
  GroupedLinearOptions o = options_of(b.host.c, path());
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
    GroupedLinearOptions o = options_of(b.host.c, path());
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
  GroupedLinear first(options_of(a.host.c, path())), second(options_of(b.host.c, path()));
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
