// Graphs of the module GroupedLinear, whose splits, data, scales, weights and skip flag change between replays.
//
// Faults of conformance/cases/faults.md that die here:
//   A21, D5 accumulation                                                                         Replay
//   A23, C20 memory allocated while capturing                                                    Replay
//   A24 splits, data or weights kept by a graph                                                  Replay
//   D1, D3, D4 the skip flag frozen at capture                                                   Replay

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "device/tests/linear/module.h"

namespace assay::device_linear_suite {
namespace {

// Forward and backward in separate graphs, captured once; 16 replays with splits, data, scales, master weights and the skip flag
// changed between them. Main gradients add up (D5). The graphs are the only users of the module.
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
        if (quantizes() && !defer) std::fill(b.splits.begin(), b.splits.end(), 1);  // backward has a copy
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

// A capture has the same launches as an eager call.
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

}  // namespace
}  // namespace assay::device_linear_suite
