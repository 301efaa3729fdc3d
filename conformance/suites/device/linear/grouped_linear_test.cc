// The module GroupedLinear with the reference in place of kernels: memory, weight cache, microbatches, deferred weight
// gradients, lists, and graphs whose splits, data, weights and skip flag change between replays. Expected values come from the
// reference's own layer (grouped_linear.h, microbatch.h), which is given each microbatch by itself.
//
// Mutants of requirements.md that die here:
//   A13 splits of backward read again from the caller's buffer                                   SplitsAreThoseOfForward
//   A14, A18, C7 gradients that were not asked for, or lost with one that was not                EveryGradient
//   A19 put off work done at once, twice, in another order, from buffers that are used again     Deferred
//   A20 gradients of biases in a list lost with deferred work                                    EveryGradient, Deferred
//   A21, D5 accumulation                                                                         Accumulates, Replay
//   A23, C20 memory allocated by a call, or while capturing                                      NothingIsAllocated, Memory, Replay
//   C18 set-up buffers that graphs, streams or modules share, or that each call makes            SetUpBuffers, GraphsHave
//   A24 splits, data or weights kept by a graph                                                  Replay
//   C19 workspaces of two layouts, or of two modules, that overlap                               AWorkspaceForEachLayout, TwoModules
//   D1, D3, D4 the skip flag frozen at capture, inverted, cleared by another use of the weights  Weights, Replay

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "conformance/suites/device/linear/buffers.h"
#include "conformance/suites/device/linear/layer.h"
#include "device/gemm/group_setup.h"
#include "reference/linear/microbatch.h"

namespace assay::device_linear_suite {
namespace {

using device::DbiasRoute;
using device::GemmPath;
using device::GroupedLinear;
using device::GroupedLinearBackwardResult;
using device::GroupedLinearForwardResult;

// ---- Memory of the modules -------------------------------------------------------------------------------------------

struct HostMemory {
  std::map<void*, std::unique_ptr<GuardedMemory>> live;
  int allocations = 0;
  int refuse_after = -1;  // allocations that still succeed; -1: all
};
HostMemory& host_memory() {
  static HostMemory memory;
  return memory;
}

const device::MemorySource kHostMemory{
    [](std::int64_t bytes) -> void* {
      EXPECT_EQ(host_device().capture, nullptr) << "memory was asked for during a capture";
      if (host_memory().refuse_after == 0) throw device::CudaError("out of memory");
      if (host_memory().refuse_after > 0) --host_memory().refuse_after;
      auto made = std::make_unique<GuardedMemory>(bytes, std::uint8_t{0});
      void* const at = made->data();
      host_memory().live.emplace(at, std::move(made));
      ++host_memory().allocations;
      return at;
    },
    [](void* memory) { EXPECT_EQ(host_memory().live.erase(memory), memory == nullptr ? 0u : 1u); },
    [](void* to, const void* from, std::int64_t bytes) { std::memcpy(to, from, static_cast<std::size_t>(bytes)); },
    [] { return host_device().current_device; },
    [](device::Stream) { return host_device().capture == nullptr ? 0 : host_device().captures; }};

constexpr int kCapturesAhead = device::GemmWorkspaces::kCapturesAhead;

// With less for the library than it has, as a few thousand modules are made. Room for `captures` captures on the null stream.
struct Module : GroupedLinear {
  explicit Module(const GroupedLinearOptions& options, int captures = kCapturesAhead)
      : GroupedLinear(with_small_library(options), host_kernels(), kHostMemory) {
    reserve_setup(nullptr, captures);
  }
  static GroupedLinearOptions with_small_library(GroupedLinearOptions options) {
    options.path.settings.workspace_bytes = 8192;
    return options;
  }
};
constexpr int kModuleAllocations = 2 + 3 + 1 + kCapturesAhead;  // of the module, of each layout, of the stream and of each capture on it

class EveryRecipe : public testing::TestWithParam<LinearRecipe> {
 protected:
  void SetUp() override {
    host_device().reset();
    ASSERT_TRUE(host_memory().live.empty());
    host_memory().allocations = 0;
    host_memory().refuse_after = -1;
  }
  void TearDown() override { EXPECT_TRUE(host_memory().live.empty()) << "memory was not given back"; }
  Case layer(std::vector<std::int64_t> splits = {6, 0, 34, 2}, std::int64_t beyond = 4) const {
    Case c = make_case(GetParam(), std::move(splits), 18, 34, beyond);
    c.bias = true;
    return c;
  }
  bool quantizes() const { return GetParam() != LinearRecipe::none; }
};

std::string recipe_of(const testing::TestParamInfo<LinearRecipe>& info) { return std::string(name_of(info.param)); }
INSTANTIATE_TEST_SUITE_P(GroupedLinear, EveryRecipe, testing::ValuesIn(kRecipes), recipe_of);

// ---- One microbatch --------------------------------------------------------------------------------------------------

// Each gradient by itself and all together, at once and put off, in lists and in one buffer, on both paths.
TEST_P(EveryRecipe, EveryGradient) {
  for (int options = 0; options < 64; ++options) {
    const bool wants_dx = options % 2 != 0, wants_dw = options / 2 % 2 != 0, wants_dbias = options / 4 % 2 != 0;
    const bool defer = options / 8 % 2 != 0, lists = options / 16 % 2 != 0;
    const GemmPath path = options / 32 != 0 ? GemmPath::bringup : GemmPath::cublaslt;
    SCOPED_TRACE("dx " + std::to_string(wants_dx) + " dw " + std::to_string(wants_dw) + " dbias " +
                 std::to_string(wants_dbias) + " defer " + std::to_string(defer) + " lists " + std::to_string(lists) + " " +
                 device::name_of(path));
    const Case c = layer();
    Buffers b(c, 1, lists);
    GroupedLinearOptions o = options_of(c, path);
    o.defer_wgrad = defer;
    Module module(o);
    const int allocations = host_memory().allocations;

    const GroupedLinearForwardResult forward = module.forward(b.forward(), nullptr);
    EXPECT_EQ(forward.weights, WeightUse::fresh);
    EXPECT_EQ(forward.microbatch, 0);
    expect_same(b.y, y_of(c, b.o), "y");
    EXPECT_TRUE(forward.report.forward.ran);
    EXPECT_FALSE(forward.report.dgrad.ran);
    EXPECT_FALSE(forward.report.wgrad.ran);
    EXPECT_EQ(forward.report.forward.path, path);
    EXPECT_EQ(forward.report.x.calls, quantizes() ? 1 : 0) << "both directions in one pass";
    EXPECT_EQ(forward.report.x.rowwise && forward.report.x.columnwise, quantizes());
    EXPECT_EQ(forward.report.w.calls, !quantizes() ? 0 : lists ? 4 : 1);
    EXPECT_EQ(forward.report.w.rowwise && forward.report.w.columnwise, quantizes());

    GroupedLinearBackward call = b.backward(forward.microbatch);
    if (!wants_dx) call.dx = nullptr;
    if (!wants_dbias) call.dbias = nullptr, call.dbias_list = nullptr;
    if (!wants_dw) call.dw = nullptr, call.dw_list = nullptr;
    const Matrix before = b.dw;
    const GroupedLinearBackwardResult backward = module.backward(call, nullptr);
    EXPECT_EQ(backward.deferred, defer && wants_dw);
    EXPECT_EQ(backward.accumulated, wants_dw) << "nothing said about microbatches means add";
    EXPECT_EQ(backward.report.dgrad.ran, wants_dx);
    EXPECT_EQ(backward.report.wgrad.ran, wants_dw && !defer);
    EXPECT_EQ(backward.report.dy.calls, quantizes() && (wants_dx || wants_dw) ? 1 : 0) << "dy is read once";
    EXPECT_EQ(backward.report.dy.rowwise, quantizes() && wants_dx);
    EXPECT_EQ(backward.report.dy.columnwise, quantizes() && wants_dw);
    const bool fused = GetParam() == LinearRecipe::block                                       ? wants_dx
                       : GetParam() == LinearRecipe::none || GetParam() == LinearRecipe::nvfp4 ? false
                                                                                               : wants_dx || wants_dw;
    EXPECT_EQ(backward.report.dbias, !wants_dbias ? DbiasRoute::none : fused ? DbiasRoute::fused : DbiasRoute::separate);
    b.collect();
    expect_same(b.dx, wants_dx ? dx_of(c, b.o) : Matrix(c.config.type, c.layout.rows() * c.layout.K, kPoison), "dx");
    expect_same(b.dbias, wants_dbias ? dbias_of(c, b.o) : Matrix(c.config.type, c.layout.groups() * c.layout.N, kPoison),
                "dbias");
    if (defer && wants_dw) {
      expect_same(b.dw, before, "dw before backward_dw");
      EXPECT_EQ(module.pending(), 1);
      EXPECT_EQ(module.in_flight(), 1);
      const device::LinearReport late = module.backward_dw(nullptr);
      EXPECT_TRUE(late.wgrad.ran);
      EXPECT_EQ(late.wgrad.path, path);
      EXPECT_EQ(late.dy.calls + late.x.calls, 0) << "what is put off is quantized already";
      b.collect();
    }
    expect_same(b.dw, wants_dw ? dw_of(c, b.o, true, before) : before, "dw");
    EXPECT_EQ(module.pending(), 0);
    EXPECT_EQ(module.in_flight(), 0);
    EXPECT_THROW(module.backward_dw(nullptr), device::InvalidArgument);
    EXPECT_EQ(host_memory().allocations, allocations) << "a call allocated memory";
  }
}

TEST_P(EveryRecipe, ForwardAlone) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  Module module(o);
  GroupedLinearForward call = b.forward();
  call.keep = false;
  const GroupedLinearForwardResult result = module.forward(call, nullptr);
  expect_same(b.y, y_of(c, b.o), "y");
  EXPECT_EQ(result.microbatch, -1);
  EXPECT_EQ(module.in_flight(), 0);
  EXPECT_FALSE(result.report.x.columnwise) << "nobody will read it";

  // Without gradients there is no direction for them either.
  o.dgrad = o.wgrad = false;
  Module inference(o);
  b.clear();
  const GroupedLinearForwardResult other = inference.forward(b.forward(), nullptr);
  expect_same(b.y, y_of(c, b.o), "y");
  EXPECT_EQ(other.microbatch, -1);
  EXPECT_FALSE(other.report.w.columnwise);
  EXPECT_LT(inference.memory_bytes(), module.memory_bytes());
}

TEST_P(EveryRecipe, ShapesWithNothingInThem) {
  for (const std::vector<std::int64_t>& splits : {std::vector<std::int64_t>{}, {0}, {0, 0, 0}, {2}, {0, 4}}) {
    for (const auto& [N, K] : {std::pair<std::int64_t, std::int64_t>{4, 6}, {0, 6}, {4, 0}}) {
      for (const bool defer : {false, true}) {
        Case c = make_case(GetParam(), splits, N, K, 2);
        c.bias = true;
        Buffers b(c);
        if (b.splits.empty()) b.splits.reserve(1);
        GroupedLinearOptions o = options_of(c);
        o.defer_wgrad = defer;
        Module module(o);
        const Matrix before = b.dw;
        const auto forward = module.forward(b.forward(), nullptr);
        const auto backward = module.backward(b.backward(forward.microbatch), nullptr);
        if (backward.deferred) module.backward_dw(nullptr);
        expect_same(b.y, y_of(c, b.o), "y");
        expect_same(b.dx, dx_of(c, b.o), "dx");
        if (!splits.empty()) expect_same(b.dbias, dbias_of(c, b.o), "dbias");
        expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
      }
    }
  }
}

// A13: backward goes by the splits of its forward.
TEST_P(EveryRecipe, SplitsAreThoseOfForward) {
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c));
  const Matrix before = b.dw;
  const auto forward = module.forward(b.forward(), nullptr);
  std::fill(b.splits.begin(), b.splits.end(), 2);
  module.backward(b.backward(forward.microbatch), nullptr);
  expect_same(b.dx, dx_of(c, b.o), "dx");
  expect_same(b.dbias, dbias_of(c, b.o), "dbias");
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

// A single group needs no splits.
TEST_P(EveryRecipe, OneGroupWithoutSplits) {
  Case c = layer({40}, 0);
  Buffers b(c);
  Module module(options_of(c));
  const Matrix before = b.dw;
  GroupedLinearForward call = b.forward();
  call.rows.splits = nullptr;
  const auto forward = module.forward(call, nullptr);
  module.backward(b.backward(forward.microbatch), nullptr);
  expect_same(b.y, y_of(c, b.o), "y");
  expect_same(b.dx, dx_of(c, b.o), "dx");
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

// ---- Weights ---------------------------------------------------------------------------------------------------------

// The weights change before every forward, so that what is used shows.
TEST_P(EveryRecipe, Weights) {
  struct Use {
    std::optional<bool> first;
    std::optional<float> flag;
    WeightUse expected;
    int taken;  // which earlier forward's weights: 0 is this one, 1 the one before, ...
  };
  const Use kUses[] = {
      {true, {}, WeightUse::renewed, 0},
      {false, {}, WeightUse::kept, 1},
      {{}, {}, WeightUse::fresh, 0},
      {false, {}, WeightUse::kept, 3},
      {{}, 0.0f, WeightUse::by_flag, 0},
      {{}, 1.0f, WeightUse::by_flag, 1},
      {true, 1.0f, WeightUse::by_flag, 2},
      {{}, {}, WeightUse::fresh, 0},
      {false, 1.0f, WeightUse::by_flag, 4},
      {{}, 0.5f, WeightUse::by_flag, 0},
      {{}, std::nanf(""), WeightUse::by_flag, 0},
      {false, {}, WeightUse::kept, 1},
  };
  for (const bool lists : {false, true}) {
    const Case c = layer();
    Buffers b(c, 1, lists);
    Module module(options_of(c));
    std::vector<Operands> weights;
    float flag = 0;
    for (const Use& use : kUses) {
      const auto number = weights.size();
      SCOPED_TRACE("use " + std::to_string(number));
      weights.push_back(make_operands(c, 20 + number));
      b.fill_weights(weights.back());
      b.clear();
      GroupedLinearForward call = b.forward();
      call.is_first_microbatch = use.first;
      if (use.flag) {
        flag = *use.flag;
        call.skip_weight_update = &flag;
      }
      const auto forward = module.forward(call, nullptr);
      EXPECT_EQ(forward.weights, use.expected);
      EXPECT_EQ(forward.report.w.calls, !quantizes() || use.expected == WeightUse::kept ? 0 : lists ? 4 : 1);
      module.backward(b.backward(forward.microbatch), nullptr);
      const Operands taken =
          b.with_weights_of(quantizes() ? weights[number - static_cast<std::size_t>(use.taken)] : weights.back());
      expect_same(b.y, y_of(c, taken), "y");
      expect_same(b.dx, dx_of(c, taken), "dx");
    }
  }
}

TEST_P(EveryRecipe, WeightsThatAreNotThere) {
  if (!quantizes()) return;
  const Case c = layer();
  Buffers b(c);
  const auto expect_refused = [&](Module& module, const char* argument, std::optional<bool> first, const float* flag) {
    GroupedLinearForward call = b.forward();
    call.is_first_microbatch = first;
    call.skip_weight_update = flag;
    host_device().log.clear();
    try {
      module.forward(call, nullptr);
      ADD_FAILURE() << "no error about " << argument;
    } catch (const device::InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).rfind(argument, 0), 0u) << error.what();
    }
    EXPECT_TRUE(host_device().log.empty()) << host_device().log.front();
    EXPECT_EQ(module.in_flight(), 0);
  };
  const float flag = 0;
  GroupedLinearOptions o = options_of(c);
  Module both(o);
  expect_refused(both, "is_first_microbatch is false", false, nullptr);
  GroupedLinearForward unkept = b.forward();
  unkept.keep = false;
  both.forward(unkept, nullptr);
  expect_refused(both, "is_first_microbatch is false", false, nullptr);  // what is used once is not kept
  o.fresh_weights = false;
  Module cached(o);
  expect_refused(cached, "is_first_microbatch is not given", {}, nullptr);
  o.fresh_weights = true;
  o.cache_weights = false;
  Module fresh(o);
  expect_refused(fresh, "is_first_microbatch is given", true, nullptr);
  expect_refused(fresh, "is_first_microbatch is given", false, nullptr);
  expect_refused(fresh, "skip_weight_update is given", {}, &flag);
  EXPECT_LT(cached.memory_bytes(), both.memory_bytes());
  EXPECT_LT(fresh.memory_bytes(), both.memory_bytes());
}

// ---- Main gradients --------------------------------------------------------------------------------------------------

TEST_P(EveryRecipe, Accumulates) {
  const Case c = layer({6, 4}, 0);
  const float flag = 0;
  for (const bool fused : {true, false}) {
    for (const bool overwrite : {false, true}) {
      for (const bool flagged : {false, true}) {
        for (const bool defer : {false, true}) {
          for (const std::optional<bool> first :
               {std::optional<bool>(), std::optional<bool>(true), std::optional<bool>(false)}) {
            Buffers b(c);
            GroupedLinearOptions o = options_of(c);
            o.fuse_accumulation = fused;
            o.overwrite_main_grad = overwrite;
            o.defer_wgrad = defer;
            Module module(o);
            GroupedLinearForward call = b.forward();
            if (first == false && !flagged) {
              call.is_first_microbatch = true;
              call.keep = false;
              module.forward(call, nullptr);
              call.keep = true;
            }
            call.is_first_microbatch = first;
            call.skip_weight_update = flagged ? &flag : nullptr;
            const bool want = accumulates({fused, overwrite, first, flagged});
            const Matrix before = b.dw;
            const auto result = module.backward(b.backward(module.forward(call, nullptr).microbatch), nullptr);
            if (defer) module.backward_dw(nullptr);
            EXPECT_EQ(result.accumulated, want);
            expect_same(b.dw, dw_of(c, b.o, want, before), want ? "added" : "overwritten");
          }
        }
      }
    }
  }
}

TEST_P(EveryRecipe, TypesOfTheWeightGradient) {
  for (const Format type : {Format::f32, Format::bf16, Format::f16}) {
    Case c = layer();
    c.dw_type = type;
    Buffers b(c);
    Module module(options_of(c));
    const Matrix before = b.dw;
    module.backward(b.backward(module.forward(b.forward(), nullptr).microbatch), nullptr);
    expect_same(b.dw, dw_of(c, b.o, true, before), std::string(name_of(type)));
  }
}

// ---- Several microbatches --------------------------------------------------------------------------------------------

// Three forwards, their backwards in another order, and their weight gradients put off: all that was handed over is spoilt
// before they run, and every one is added to the same gradient, in the order of the backwards.
TEST_P(EveryRecipe, Deferred) {
  for (const bool lists : {false, true}) {
    const Case shapes[] = {layer({6, 0, 34, 2}, 4), layer({0, 20, 4, 10}, 12), layer({2, 2, 2, 40}, 0)};
    GroupedLinearOptions o = options_of(shapes[0]);
    o.defer_wgrad = true;
    o.microbatches = 3;
    Module module(o);
    std::vector<std::unique_ptr<Buffers>> all;
    std::vector<int> places;
    Buffers gradient(shapes[0], 50, lists);  // whose dw all share
    const Matrix start = gradient.dw;
    for (std::uint64_t i = 0; i < 3; ++i) {
      all.push_back(std::make_unique<Buffers>(shapes[i], i + 1, lists));
      all[i]->fill_weights(gradient.o);
      GroupedLinearForward call = all[i]->forward();
      call.is_first_microbatch = i == 0;
      places.push_back(module.forward(call, nullptr).microbatch);
      expect_same(all[i]->y, y_of(shapes[i], all[i]->o), "y");
    }
    EXPECT_EQ(std::set<int>(places.begin(), places.end()).size(), 3u);
    EXPECT_THROW(module.forward(all[0]->forward(), nullptr), device::InvalidArgument) << "every place is taken";

    const std::size_t order[] = {1, 0, 2};
    std::vector<Matrix> want;
    Matrix sum = start;
    for (const std::size_t i : order) {
      Buffers& b = *all[i];
      GroupedLinearBackward call = b.backward(places[i]);
      call.dw = lists ? nullptr : gradient.dw.data();
      call.dw_list = lists ? gradient.dw_list.data() : nullptr;
      const auto result = module.backward(call, nullptr);
      EXPECT_TRUE(result.deferred);
      EXPECT_THROW(module.backward(call, nullptr), device::InvalidArgument) << "twice";
      b.collect();
      expect_same(b.dx, dx_of(b.c, b.o), "dx");
      expect_same(b.dbias, dbias_of(b.c, b.o), "dbias");
      sum = dw_of(b.c, b.o, i != 0, sum);
      want.push_back(sum);
    }
    for (auto& b : all) {
      for (Matrix* matrix : {&b->o.x, &b->o.dy}) std::fill(matrix->bytes.begin(), matrix->bytes.end(), 0xff);
      std::fill(b->splits.begin(), b->splits.end(), -1);
      std::fill(b->dw_list.begin(), b->dw_list.end(), nullptr);
    }
    std::fill(gradient.dw_list.begin(), gradient.dw_list.end(), nullptr);  // the list itself may go as well
    gradient.collect();
    expect_same(gradient.dw, start, "dw before any backward_dw");
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(module.pending(), 3 - i);
      module.backward_dw(nullptr);
      gradient.collect();
      expect_same(gradient.dw, want[static_cast<std::size_t>(i)], "dw after backward_dw " + std::to_string(i));
    }
    EXPECT_THROW(module.backward_dw(nullptr), device::InvalidArgument);
    gradient.collect();
    expect_same(gradient.dw, want[2], "dw after one call too many");
    EXPECT_EQ(module.in_flight(), 0);
  }
}

TEST_P(EveryRecipe, MicrobatchesThatAreNotInFlight) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  o.microbatches = 2;
  Module module(o);
  const auto refused = [&](int microbatch) {
    EXPECT_THROW(module.backward(b.backward(microbatch), nullptr), device::InvalidArgument) << microbatch;
    EXPECT_THROW(module.drop(microbatch), device::InvalidArgument) << microbatch;
  };
  for (const int microbatch : {-1, 0, 1, 2, 1 << 30}) refused(microbatch);
  EXPECT_EQ(module.forward(b.forward(), nullptr).microbatch, 0);
  EXPECT_EQ(module.forward(b.forward(), nullptr).microbatch, 1);
  EXPECT_THROW(module.forward(b.forward(), nullptr), device::InvalidArgument);
  module.drop(0);
  refused(0);
  EXPECT_EQ(module.forward(b.forward(), nullptr).microbatch, 0) << "the lowest place that is free";
  module.backward(b.backward(1), nullptr);
  refused(1);
}

// ---- Graphs ----------------------------------------------------------------------------------------------------------

// Forward and backward in graphs of their own, captured once; 16 replays with splits, data, scales, master weights and the
// skip flag changed between them. Main gradients add up (D5). The graphs are the only users of the module.
TEST_P(EveryRecipe, Replay) {
  const std::vector<std::int64_t> kSplits[] = {{6, 0, 34, 2}, {0, 0, 0, 46},    {46, 0, 0, 0}, {0, 0, 0, 0},
                                               {2, 2, 2, 2},  {12, 12, 12, 10}, {0, 46, 0, 0}, {6, 0, 34, 2}};
  const float kFlags[] = {0, 1, 1, 0, 1};
  for (const bool defer : {false, true}) {
    for (const bool lists : {false, true}) {
      Case c = layer(kSplits[0], 4);
      Buffers b(c, 1, lists);
      GroupedLinearOptions o = options_of(c);
      o.defer_wgrad = defer;
      Module module(o);
      const int allocations = host_memory().allocations;
      float flag = -1;
      int microbatch = -1;
      GroupedLinearForward call = b.forward();
      call.skip_weight_update = &flag;
      const Graph forward([&] { microbatch = module.forward(call, nullptr).microbatch; });
      const Graph backward([&] { module.backward(b.backward(microbatch), nullptr); });
      const Graph late([&] {
        if (defer) module.backward_dw(nullptr);
      });
      EXPECT_EQ(module.in_flight(), 0);
      EXPECT_EQ(late.nodes() > 0, defer);

      Operands taken;
      for (std::uint64_t replay = 0; replay < 16; ++replay) {
        SCOPED_TRACE("replay " + std::to_string(replay) + (defer ? " defer" : "") + (lists ? " lists" : ""));
        const std::vector<std::int64_t>& splits = kSplits[replay % 8];
        const std::int64_t used = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
        b.fill(layer(splits, 46 - used), replay + 3);
        flag = kFlags[replay % 5];
        if (flag != 1 || !quantizes()) taken = b.o;
        b.clear();
        const Matrix before = b.dw;
        forward.replay();
        const Operands now = b.with_weights_of(taken);
        expect_same(b.y, y_of(b.c, now), "y");
        const Matrix nothing(b.c.config.type, b.c.layout.rows() * b.c.layout.K, kPoison);
        expect_same(b.dx, nothing, "dx before backward");
        if (quantizes() && !defer) std::fill(b.splits.begin(), b.splits.end(), 1);  // backward has its own
        backward.replay();
        if (quantizes() && !defer) std::copy(splits.begin(), splits.end(), b.splits.begin());
        b.collect();
        expect_same(b.dx, dx_of(b.c, now), "dx");
        expect_same(b.dbias, dbias_of(b.c, now), "dbias");
        if (defer) {
          expect_same(b.dw, before, "dw before backward_dw");
          late.replay();
          b.collect();
        }
        expect_same(b.dw, dw_of(b.c, now, true, before), "dw");
      }
      EXPECT_EQ(host_memory().allocations, allocations);
    }
  }
}

// What is captured is what runs eagerly, launch for launch.
TEST_P(EveryRecipe, EagerAndCapturedLaunchTheSame) {
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c));
  const auto step = [&] { module.backward(b.backward(module.forward(b.forward(), nullptr).microbatch), nullptr); };
  host_device().log.clear();
  step();
  const std::vector<std::string> eager = host_device().log;
  host_device().log.clear();
  const Graph graph(step);
  EXPECT_EQ(host_device().log, eager);
  EXPECT_EQ(graph.nodes(), eager.size());
}

// ---- Memory ----------------------------------------------------------------------------------------------------------

// The addresses that calls are given: those of one module keep off one another, and off another module's.
TEST_P(EveryRecipe, TwoModulesShareNothing) {
  const Case c = layer();
  Buffers a(c, 1), b(c, 2);
  GroupedLinearOptions o = options_of(c);
  Module first(o), second(o);
  EXPECT_EQ(host_memory().live.size(), 2u * kModuleAllocations);
  const Matrix a_before = a.dw, b_before = b.dw;
  int a_place = -1, b_place = -1;
  const auto cached = [](GroupedLinearForward call, bool is_first) {
    call.is_first_microbatch = is_first;
    return call;
  };
  // Graphs of both, replayed in turn.
  const Graph a_forward([&] { a_place = first.forward(cached(a.forward(), true), nullptr).microbatch; });
  const Graph b_forward([&] { b_place = second.forward(cached(b.forward(), true), nullptr).microbatch; });
  const Graph a_backward([&] { first.backward(a.backward(a_place), nullptr); });
  const Graph b_backward([&] { second.backward(b.backward(b_place), nullptr); });
  for (int replay = 0; replay < 2; ++replay) {
    a_forward.replay();
    b_forward.replay();
    b_backward.replay();
    a_backward.replay();
    expect_same(a.y, y_of(c, a.o), "y of the first");
    expect_same(b.y, y_of(c, b.o), "y of the second");
    expect_same(a.dx, dx_of(c, a.o), "dx of the first");
    expect_same(b.dx, dx_of(c, b.o), "dx of the second");
    expect_same(a.dw, dw_of(c, a.o, false, a_before), "dw of the first");
    expect_same(b.dw, dw_of(c, b.o, false, b_before), "dw of the second");
  }
}

TEST_P(EveryRecipe, MemoryGrowsWithRowsAndNothingElse) {
  const Case c = layer();
  GroupedLinearOptions o = options_of(c);
  Module module(o);
  EXPECT_EQ(host_memory().allocations, kModuleAllocations);
  const std::int64_t small = module.memory_bytes();
  module.reserve(10);
  EXPECT_EQ(module.memory_bytes(), small);
  EXPECT_EQ(host_memory().allocations, kModuleAllocations);

  Case larger = layer({100, 0, 90, 10}, 2);
  Buffers b(larger);
  const auto forward = [&] { return module.forward(b.forward(), nullptr); };
  try {
    forward();
    ADD_FAILURE() << "more rows than there is room for";
  } catch (const device::InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).rfind("rows.capacity is 202: ", 0), 0u) << error.what();
  }
  module.reserve(202);
  EXPECT_GE(module.memory_bytes() - small,
            quantizes() ? 2 * 156 * 18 : 0);  // codes of dy, rowwise and columnwise, at the least
  EXPECT_EQ(module.options().rows_capacity, 202);
  EXPECT_EQ(host_memory().live.size(), static_cast<std::size_t>(kModuleAllocations));
  const Matrix before = b.dw;
  const auto result = forward();
  EXPECT_THROW(module.reserve(300), device::InvalidArgument) << "a microbatch is in flight";
  module.backward(b.backward(result.microbatch), nullptr);
  expect_same(b.y, y_of(larger, b.o), "y");
  expect_same(b.dw, dw_of(larger, b.o, true, before), "dw");
  module.reserve(300);
  EXPECT_EQ(module.options().rows_capacity, 300);
}

// Where memory is short the module is not made, or stays as it was.
TEST_P(EveryRecipe, MemoryThatIsNotThere) {
  const Case c = layer();
  const GroupedLinearOptions o = options_of(c);
  for (int allocations = 0; allocations < kModuleAllocations; ++allocations) {
    host_memory().refuse_after = allocations;
    EXPECT_THROW(Module module(o), device::CudaError);
    EXPECT_TRUE(host_memory().live.empty());
  }
  host_memory().refuse_after = -1;
  Module module(o);
  const std::int64_t bytes = module.memory_bytes();
  host_memory().refuse_after = 0;
  EXPECT_THROW(module.reserve(1000), device::CudaError);
  EXPECT_EQ(module.memory_bytes(), bytes);
  EXPECT_EQ(module.options().rows_capacity, o.rows_capacity);
  Buffers b(c);
  const Matrix before = b.dw;
  module.backward(b.backward(module.forward(b.forward(), nullptr).microbatch), nullptr);
  expect_same(b.y, y_of(c, b.o), "y");
  expect_same(b.dx, dx_of(c, b.o), "dx");
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

// The memory of the products of a step: forward, dgrad, wgrad.
using Products = std::vector<HostDevice::ProductMemory>;
Products products_of_step(Module& module, Buffers& b, device::Stream stream = nullptr) {
  host_device().products.clear();
  if (module.backward(b.backward(module.forward(b.forward(), stream).microbatch), stream).deferred) module.backward_dw(stream);
  return host_device().products;
}

bool overlap(const HostDevice::Extent& a, const HostDevice::Extent& b) {
  const auto *first = static_cast<const std::byte*>(a.begin), *second = static_cast<const std::byte*>(b.begin);
  return first < second + b.bytes && second < first + a.bytes;
}

// C19, R2: each layout's product has memory of its own, the same in every call and, but for set-up buffers, in every graph.
TEST_P(EveryRecipe, AWorkspaceForEachLayout) {
  for (const bool defer : {false, true}) {
    const Case c = layer();
    Buffers b(c);
    GroupedLinearOptions o = options_of(c);
    o.defer_wgrad = defer;
    Module module(o), other(o);
    const Products eager = products_of_step(module, b);
    EXPECT_EQ(products_of_step(module, b), eager);
    Products captured;
    const Graph graph([&] { captured = products_of_step(module, b); });
    ASSERT_EQ(eager.size(), 3u);
    ASSERT_EQ(captured.size(), 3u);
    Products all = eager;
    for (const HostDevice::ProductMemory& each : products_of_step(other, b)) all.push_back(each);
    std::vector<HostDevice::Extent> apart;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].layout, static_cast<GemmLayout>(i % 3));
      EXPECT_EQ(all[i].library.bytes, 8192);
      apart.push_back(all[i].workspace);
      apart.push_back(all[i].library);
      if (i % 3 == 0) apart.push_back(all[i].setup);
      EXPECT_EQ(all[i].setup, all[i / 3 * 3].setup) << "written anew before each product";
      if (i >= 3) continue;
      EXPECT_EQ(captured[i].workspace, eager[i].workspace);
      EXPECT_EQ(captured[i].library, eager[i].library);
    }
    for (std::size_t i = 0; i < apart.size(); ++i) {
      EXPECT_GT(apart[i].bytes, 0);
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(apart[i], apart[j])) << i << " and " << j;
    }
  }
}

TEST_P(EveryRecipe, TheLibraryHas32MiBForEachLayout) {
  const auto blocks = [&](bool dgrad, bool wgrad, GemmPath path) {
    GroupedLinearOptions o = options_of(layer(), path);
    o.dgrad = dgrad;
    o.wgrad = wgrad;
    const GroupedLinear module(o, host_kernels(), kHostMemory);
    std::int64_t bytes = 0;
    for (const auto& [at, memory] : host_memory().live) bytes += memory->bytes();
    EXPECT_EQ(module.memory_bytes(), bytes);
    return std::count_if(host_memory().live.begin(), host_memory().live.end(),
                         [](const auto& each) { return each.second->bytes() == std::int64_t{32} << 20; });
  };
  EXPECT_EQ(blocks(true, true, GemmPath::cublaslt), 3);
  EXPECT_EQ(blocks(false, true, GemmPath::cublaslt), 2);
  EXPECT_EQ(blocks(true, false, GemmPath::cublaslt), 2);
  EXPECT_EQ(blocks(false, false, GemmPath::cublaslt), 1);
  EXPECT_EQ(blocks(true, true, GemmPath::bringup), 0);
}

// C18: a set-up buffer for each device, stream and group count, used again by every eager call there.
TEST_P(EveryRecipe, SetUpBuffersByDeviceStreamAndGroups) {
  std::set<void*> seen;
  std::vector<std::unique_ptr<Module>> modules;
  for (const std::vector<std::int64_t>& splits : {std::vector<std::int64_t>{6, 0, 34, 2}, {6, 36}}) {
    Buffers b(layer(splits));
    modules.push_back(std::make_unique<Module>(options_of(b.c)));
    for (int device = 0; device < 2; ++device) {
      host_device().current_device = device;
      for (std::uintptr_t number = 1; number <= 2; ++number) {
        const auto stream = reinterpret_cast<device::Stream>(number);
        const Products first = products_of_step(*modules.back(), b, stream);
        const int allocations = host_memory().allocations;
        EXPECT_EQ(products_of_step(*modules.back(), b, stream), first);
        EXPECT_EQ(host_memory().allocations, allocations);
        EXPECT_TRUE(seen.insert(first[0].setup.begin).second) << "device " << device << " stream " << number;
        EXPECT_EQ(first[0].setup.bytes, device::group_arrays_bytes(static_cast<int>(splits.size())));
        for (const HostDevice::ProductMemory& each : first) EXPECT_EQ(each.setup, first[0].setup);
      }
    }
    host_device().current_device = 0;
  }
  EXPECT_EQ(seen.size(), 8u);
}

// C18: no graph writes where another one, or an eager call, has its set-up; neither does another module.
TEST_P(EveryRecipe, GraphsHaveSetUpBuffersOfTheirOwn) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  o.defer_wgrad = true;
  Module module(o, 4), other(o, 1);
  std::vector<HostDevice::Extent> seen;
  const auto add = [&](const Products& products, std::size_t count) {
    ASSERT_EQ(products.size(), count);
    for (const HostDevice::ProductMemory& each : products) EXPECT_EQ(each.setup, products[0].setup) << "within one graph";
    for (const HostDevice::Extent& each : seen) EXPECT_FALSE(overlap(each, products[0].setup)) << seen.size();
    seen.push_back(products[0].setup);
  };
  const auto captured = [&](auto body) {
    host_device().products.clear();
    const Graph graph(body);
    return host_device().products;
  };
  int microbatch = -1;
  add(products_of_step(module, b), 3);
  const int allocations = host_memory().allocations;
  add(captured([&] { microbatch = module.forward(b.forward(), nullptr).microbatch; }), 1);
  add(captured([&] { module.backward(b.backward(microbatch), nullptr); }), 1);
  add(captured([&] { module.backward_dw(nullptr); }), 1);
  add(captured([&] { products_of_step(module, b); }), 3);
  add(captured([&] { products_of_step(other, b); }), 3);
  EXPECT_EQ(host_memory().allocations, allocations) << "memory was made for a capture";
}

// C20: what a capture lacks is told, with what would have made it, before anything is launched or allocated.
TEST_P(EveryRecipe, NothingIsAllocatedWhileCapturing) {
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c), 0);
  const int allocations = host_memory().allocations;
  const auto capture = [&] { const Graph graph([&] { module.drop(module.forward(b.forward(), nullptr).microbatch); }); };
  const auto refused = [&](const std::string& why, auto body) {
    host_device().log.clear();
    try {
      body();
      ADD_FAILURE() << "no error: " << why;
    } catch (const device::InvalidArgument& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.rfind(why, 0), 0u) << text;
      EXPECT_NE(text.find("reserve_setup() of this stream for 4 groups"), std::string::npos) << text;
    }
    EXPECT_TRUE(host_device().log.empty()) << host_device().log.front();
    EXPECT_EQ(module.in_flight(), 0);
    EXPECT_EQ(host_memory().allocations, allocations);
  };
  refused("every set-up buffer for 4 groups on this stream belongs to another capture", capture);
  refused("there are no set-up buffers for 4 groups on this stream", [&] {
    const Graph graph([&] { module.forward(b.forward(), reinterpret_cast<device::Stream>(std::uintptr_t{8})); });
  });
  refused("nothing can be reserved", [&] { const Graph graph([&] { module.reserve_setup(nullptr, 5); }); });
  EXPECT_THROW(module.reserve_setup(nullptr, -1), device::InvalidArgument);

  module.reserve_setup(nullptr, 2);
  EXPECT_EQ(host_memory().allocations, allocations + 2);
  capture();
  capture();
  EXPECT_EQ(host_memory().allocations, allocations + 2);
  EXPECT_THROW(capture(), device::InvalidArgument);
  // An eager call leaves room for some.
  module.drop(module.forward(b.forward(), nullptr).microbatch);
  for (int i = 0; i < kCapturesAhead; ++i) capture();
  EXPECT_THROW(capture(), device::InvalidArgument);
}

// ---- Promised rows ---------------------------------------------------------------------------------------------------

// The promise goes with every product and every quantization of rows, saves wgrad memory, is reported where it is relied on, and
// looked at there. Of weights it is known what their rows are.
TEST_P(EveryRecipe, RowsMultiple) {
  for (const bool defer : {false, true}) {
    const Case c = layer({16, 0, 32, 16}, 4);
    Buffers b(c);
    std::uint32_t status = 0;
    GroupedLinearOptions o = options_of(c);
    o.defer_wgrad = defer;
    o.status = &status;
    const std::int64_t without = Module(o).memory_bytes();
    o.rows_multiple = 16;
    Module module(o);
    EXPECT_EQ(module.options().rows_multiple, 16);
    EXPECT_LT(module.memory_bytes(), without);
    const auto step = [&] {
      host_device().products.clear();
      host_device().quantizations.clear();
      const auto forward = module.forward(b.forward(), nullptr);
      device::LinearReport report = module.backward(b.backward(forward.microbatch), nullptr).report;
      EXPECT_EQ(forward.report.forward.rows_multiple, 1) << "nothing relies on it";
      EXPECT_EQ(report.dgrad.rows_multiple, 1);
      if (defer) report = module.backward_dw(nullptr);
      EXPECT_EQ(report.wgrad.rows_multiple, 16);
      EXPECT_NE(report.description().find("groups of 16 rows or multiples"), std::string::npos) << report.description();
      EXPECT_EQ(host_device().products.size(), 3u);
      for (const HostDevice::ProductMemory& each : host_device().products) EXPECT_EQ(each.rows_multiple, 16);
      for (const HostDevice::Quantization& each : host_device().quantizations) {
        const bool of_weights = each.rows == static_cast<std::int64_t>(c.layout.splits.size()) * c.layout.N;
        EXPECT_EQ(each.rows_multiple, of_weights ? c.layout.N : 16) << each.rows << " rows";
      }
      EXPECT_EQ(host_device().quantizations.empty(), c.config.recipe == LinearRecipe::none);
    };
    const Matrix before = b.dw;
    step();
    EXPECT_EQ(status, device::kStatusOk);
    const Matrix added = dw_of(c, b.o, true, before);
    expect_same(b.dw, added, "dw");

    b.fill(layer({16, 0, 30, 18}, 4), 2);
    step();
    EXPECT_EQ(status, device::kStatusUnalignedRows);
    expect_same(b.dw, added, "dw, of which nothing is written");
  }
}

// The cache is no part of what reserve() makes anew.
TEST_P(EveryRecipe, CachedWeightsOutliveReserve) {
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c));
  const Operands taken = b.o;
  GroupedLinearForward call = b.forward();
  call.keep = false;
  call.is_first_microbatch = true;
  module.forward(call, nullptr);
  module.reserve(1000);
  b.fill_weights(make_operands(c, 9));
  b.clear();
  call.is_first_microbatch = false;
  module.forward(call, nullptr);
  expect_same(b.y, y_of(c, b.with_weights_of(quantizes() ? taken : b.o)), "y");
}

// ---- The heuristic, and what is refused ------------------------------------------------------------------------------

TEST_P(EveryRecipe, TheHeuristicIsAskedOnce) {
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c));
  EXPECT_EQ(host_device().log, std::vector<std::string>{"prepare"});
  for (int step = 0; step < 3; ++step) {
    const auto forward = module.forward(b.forward(), nullptr);
    const auto backward = module.backward(b.backward(forward.microbatch), nullptr);
    EXPECT_EQ(forward.report.forward.algorithm.id, 60);
    EXPECT_EQ(backward.report.dgrad.algorithm.id, 61);
    EXPECT_EQ(backward.report.wgrad.algorithm.id, 62);
    EXPECT_EQ(forward.report.forward.library_version, 131000);
    EXPECT_EQ(host_device().heuristic_calls, 3);
  }
}

TEST_P(EveryRecipe, ARefusedCallChangesNothing) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  Module module(o);
  const auto refused = [&](const std::string& expected, auto call) {
    host_device().log.clear();
    try {
      call();
      ADD_FAILURE() << "no error: " << expected;
    } catch (const device::NotSupported& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    } catch (const device::InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).rfind(expected, 0), 0u) << error.what();
    }
    EXPECT_TRUE(host_device().log.empty()) << expected << ": " << host_device().log.front();
  };
  const auto forward = [&](auto change) {
    return [&, change] {
      GroupedLinearForward call = b.forward();
      change(call);
      module.forward(call, nullptr);
    };
  };
  using F = GroupedLinearForward;
  refused("x is null", forward([](F& call) { call.x = nullptr; }));
  refused("x is misaligned", forward([](F& call) { call.x = static_cast<const char*>(call.x) + 2; }));
  refused("y is null", forward([](F& call) { call.y = nullptr; }));
  refused("w.data is null", forward([](F& call) { call.w = {}; }));
  refused("w.data is a pointer", forward([&](F& call) { call.w.list = b.w_list.data(); }));
  refused("rows.groups is 3", forward([](F& call) { call.rows.groups = 3; }));
  refused("rows.capacity is 47", forward([](F& call) { call.rows.capacity = 47; }));
  refused("rows.capacity is -1", forward([](F& call) { call.rows.capacity = -1; }));
  refused("rows.splits is null", forward([](F& call) { call.rows.splits = nullptr; }));
  refused("bias is a pointer", forward([&](F& call) { call.bias_list = b.bias_list.data(); }));
  refused("bias is misaligned", forward([](F& call) { call.bias = static_cast<const char*>(call.bias) + 1; }));
  refused("skip_weight_update is misaligned", forward([&](F& call) {
            call.skip_weight_update = reinterpret_cast<const float*>(static_cast<const char*>(b.o.x.data()) + 1);
          }));
  if (GetParam() == LinearRecipe::tensor_delayed) {
    refused("x_scale is null", forward([](F& call) { call.x_scale = nullptr; }));
    refused("w_scale is null", forward([](F& call) { call.w_scale = nullptr; }));
  } else if (GetParam() != LinearRecipe::tensor_current) {
    refused("x_amax is a pointer", forward([&](F& call) { call.x_amax = b.o.x_scale.data(); }));
  }
  EXPECT_EQ(module.in_flight(), 0);

  const int microbatch = module.forward(b.forward(), nullptr).microbatch;
  const auto backward = [&](auto change) {
    return [&, change] {
      GroupedLinearBackward call = b.backward(microbatch);
      change(call);
      module.backward(call, nullptr);
    };
  };
  using B = GroupedLinearBackward;
  refused("dy is null", backward([](B& call) { call.dy = nullptr; }));
  refused("dw is a pointer", backward([&](B& call) { call.dw_list = b.dw_list.data(); }));
  refused("dbias is a pointer", backward([&](B& call) { call.dbias_list = b.dbias_list.data(); }));
  refused("dw is misaligned", backward([](B& call) { call.dw = static_cast<char*>(call.dw) + 8; }));
  refused("dx is misaligned", backward([](B& call) { call.dx = static_cast<char*>(call.dx) + 2; }));
  std::vector<void*> hole = b.dw_list;
  hole[2] = nullptr;
  refused("dw_list[2] is null", backward([&](B& call) { call.dw = nullptr, call.dw_list = hole.data(); }));
  if (GetParam() == LinearRecipe::tensor_delayed)
    refused("dy_scale is null", backward([](B& call) { call.dy_scale = nullptr; }));
  EXPECT_EQ(module.in_flight(), 1);

  // A library that lacks a product: refused with its reason, nothing else is tried.
  host_device().missing = [](const device::GroupedGemmCall& call, int architecture) {
    return call.layout == GemmLayout::NT ? "cuBLASLt 13.4.0 has no such thing on sm" + std::to_string(architecture)
                                         : std::string();
  };
  refused("wgrad through cuBLASLt: cuBLASLt 13.4.0 has no such thing on sm90", backward([](B&) {}));
  host_device().missing = nullptr;
  host_device().no_candidate = true;
  refused("wgrad through cuBLASLt: the heuristic has no candidate", backward([](B& call) { call.dx = nullptr; }));
  host_device().no_candidate = false;

  const Matrix before = b.dw;
  module.backward(b.backward(microbatch), nullptr);
  expect_same(b.dx, dx_of(c, b.o), "dx");
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

// What is put off is looked at when it is put off.
TEST_P(EveryRecipe, ARefusedCallIsNotPutOff) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  o.defer_wgrad = true;
  Module module(o);
  const int microbatch = module.forward(b.forward(), nullptr).microbatch;
  const auto refused = [&](auto change) {
    GroupedLinearBackward call = b.backward(microbatch);
    change(call);
    host_device().log.clear();
    EXPECT_ANY_THROW(module.backward(call, nullptr));
    EXPECT_TRUE(host_device().log.empty()) << host_device().log.front();
    EXPECT_EQ(module.pending(), 0);
  };
  std::vector<void*> hole = b.dw_list;
  hole[1] = nullptr;
  using B = GroupedLinearBackward;
  refused([](B& call) { call.dw = static_cast<char*>(call.dw) + 4; });
  refused([&](B& call) { call.dw = nullptr, call.dw_list = hole.data(); });
  refused([](B& call) { call.dy = nullptr; });
  refused([](B& call) { call.dy = nullptr, call.dx = nullptr; });
  host_device().missing = [](const device::GroupedGemmCall& call, int) {
    return std::string(call.layout == GemmLayout::NT ? "not there" : "");
  };
  refused([](B&) {});
  host_device().missing = nullptr;
  const Matrix before = b.dw;
  module.backward(b.backward(microbatch), nullptr);
  module.backward_dw(nullptr);
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

TEST_P(EveryRecipe, OptionsThatMakeNoSense) {
  const Case c = layer();
  const auto refused = [&](const std::string& expected, auto change) {
    GroupedLinearOptions o = options_of(c);
    change(o);
    try {
      Module module(o);
      ADD_FAILURE() << "no error: " << expected;
    } catch (const device::InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).rfind(expected, 0), 0u) << error.what();
    }
    EXPECT_TRUE(host_memory().live.empty());
  };
  using O = GroupedLinearOptions;
  refused("options.groups is -1", [](O& o) { o.groups = -1; });
  refused("options.groups is 1025", [](O& o) { o.groups = 1025; });
  refused("N is -1", [](O& o) { o.N = -1; });
  refused("K is -1", [](O& o) { o.K = -1; });
  refused("options.rows_capacity is -1", [](O& o) { o.rows_capacity = -1; });
  refused("options.microbatches is 0", [](O& o) { o.microbatches = 0; });
  refused("rows_multiple is 0", [](O& o) { o.rows_multiple = 0; });
  refused("rows_multiple is -16", [](O& o) { o.rows_multiple = -16; });
  refused("options.path.settings.library_workspace is a pointer", [&](O& o) { o.path.settings.library_workspace = &o; });
  refused("options.path.settings.group_arrays is a pointer", [&](O& o) { o.path.settings.group_arrays = &o; });
  refused("options.defer_wgrad is true", [](O& o) { o.wgrad = false, o.defer_wgrad = true; });
  refused("options.fresh_weights is false", [](O& o) { o.cache_weights = o.fresh_weights = false; });
  refused("options.dw_type is e4m3", [](O& o) { o.dw_type = Format::e4m3; });
  refused("config.recipe is 6", [](O& o) { o.config.recipe = static_cast<LinearRecipe>(6); });
  refused("config.type is f32", [](O& o) { o.config.type = Format::f32; });
  refused("path.path is 2", [](O& o) { o.path.path = static_cast<GemmPath>(2); });
  refused("path.forward.arithmetic.plan is null", [](O& o) { o.path.path = GemmPath::bringup; });
  if (quantizes() && GetParam() != LinearRecipe::nvfp4) {
    refused("config.forward_code is e2m1", [](O& o) { o.config.forward_code = Format::e2m1; });
    refused("config.backward_code is bf16", [](O& o) { o.config.backward_code = Format::bf16; });
  }
  if (GetParam() == LinearRecipe::nvfp4) {
    refused("K is 33", [](O& o) { o.K = 33; });
    refused("N is 17", [](O& o) { o.N = 17; });
    refused("config.type is f16", [](O& o) { o.config.type = Format::f16; });
    refused("rows.capacity is 45", [](O& o) { o.rows_capacity = 45; });
  }
}

}  // namespace
}  // namespace assay::device_linear_suite
