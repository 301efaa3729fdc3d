// Grouped GEMM through cuBLASLt: the production path beside the bare library, for the shapes whose rates are known for the
// vendor's own framework, with even groups and with ragged ones (rows falling as 1/rank, one group in eight empty).
//
//   production  cublaslt_grouped_gemm(): the set-up kernel, then the library's, from a graph
//   library     the library's kernels alone, from a graph: the arrays of the groups were written beforehand
//   set-up      the set-up kernel alone, as a node of a graph
//
// A case is a series of pairs of replays, production and library in turn, with the order reversed from pair to pair, as
// clocks drift with power. "of library" is the median over the pairs of library time / production time: goal 0.99. A replay
// is several calls that alternate between two sets of operands; x and w of one call together are larger than L2.
//
// Block scaling with 128x128 scales of w and f32 output has three lines: `expanded`, the production path, which writes the
// scales out as 1x128 first; its library time is that of the 1x128 by 1x128 kernel; and `faulty`, the bare library, which
// multiplies by scales of other blocks, for its time only.
//
// x, w and dy are random normal bf16, or e4m3 made of it by the kernels of this library; D is bf16 unless stated. Rows of
// ragged groups are any, but multiples of 16 in NT, whose FP8 operands have them as their pitch, and that is promised; lines
// `copied` have any rows there, and the set-up copies the groups first. The output of production is compared with that of the
// library alone.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "bench/device/grouped_gemm_cases.h"
#include "bench/device/grouped_gemm_subjects.h"

namespace assay::bench {
namespace {

// One row of the table.
struct Line {
  std::string name, remark;  // remark: what was wrong, or the algorithm
  double production = 0, library = 0, ratio = 0, set_up = 0, flops = 0;
};
std::vector<Line>& lines() {
  static std::vector<Line> all;
  return all;
}

void compare(benchmark::State& state, const Case& c, Line& line) {
  const Subjects subjects(c);
  const int calls = calls_of(c);
  line.remark = subjects.algorithm();
  const GraphOf production(calls, [&](int i) { subjects.run_production(i); });
  const GraphOf library(calls, [&](int i) { subjects.run_library(i); });
  const auto output_of = [&](const GraphOf& graph) {
    subjects.clear();
    graph.seconds_per_node();
    return subjects.output();
  };
  const bool differs = output_of(production) != output_of(library);

  std::vector<double> of_production, of_library, ratios;
  bool production_first = true;
  for (auto _ : state) {
    double a = 0, b = 0;
    if (production_first) a = production.seconds_per_node();
    b = library.seconds_per_node();
    if (!production_first) a = production.seconds_per_node();
    production_first = !production_first;
    of_production.push_back(a);
    of_library.push_back(b);
    ratios.push_back(b / a);
    state.SetIterationTime(a);
  }
  constexpr int kSetUps = 32;
  const DeviceBuffer scratch(subjects.scratch_bytes());
  const GraphOf set_up(kSetUps, [&](int i) { subjects.run_set_up(i, scratch.as<char>()); });
  std::vector<double> of_set_up;
  for (int i = 0; i < 7; ++i) of_set_up.push_back(set_up.seconds_per_node());
  subjects.check_status("the replays");

  line.production = median(of_production);
  line.library = median(of_library);
  line.ratio = median(ratios);
  line.set_up = median(of_set_up);
  if (differs && !c.faulty) throw std::runtime_error("production writes other bytes than the library alone: " + line.remark);
  state.SetLabel(c.label());
  state.counters["flops"] = c.flops();
  state.counters["median_us"] = line.production * 1e6;
  state.counters["library_us"] = line.library * 1e6;
  state.counters["of_library"] = line.ratio;
  state.counters["set_up_us"] = line.set_up * 1e6;
  state.counters["TFLOP/s"] = c.flops() / line.production * 1e-12;
}

void run(benchmark::State& state, const Case& c) {
  Line line;
  line.name = c.name();
  line.flops = c.flops();
  try {
    compare(state, c, line);
  } catch (const std::exception& error) {
    end_capture();
    line.remark = error.what();
    line.production = 0;
    state.SkipWithError(error.what());
  }
  lines().push_back(line);
}

void add_all() {
  constexpr int kPairs = 21;
  const auto add_case = [](const Case& c) {
    add(
        c.name(), [c](benchmark::State& state) { run(state, c); }, kPairs);
  };
  constexpr int kWithAllLayouts = 2;         // shapes
  for (const bool faulty : {false, true}) {  // the faulty kernel last: it reads memory of other blocks
    int shapes = 0;
    for (const Shape& shape : kShapes) {
      ++shapes;
      for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
        if (layout != GemmLayout::TN && shapes > kWithAllLayouts) continue;
        if (faulty && layout == GemmLayout::NT) continue;
        for (const Kind& kind : kKinds) {
          if (faulty && !(kind.kind == GemmKind::fp8_block && kind.d_type == Format::f32)) continue;
          for (const bool ragged : {false, true}) add_case({kind, layout, shape, ragged, faulty});
          if (layout == GemmLayout::NT && kind.kind != GemmKind::bf16) add_case({kind, layout, shape, true, false, true});
        }
      }
    }
  }
}

void print_lines() {
  std::printf("\nGrouped GEMM, us per call; of library: library / production, goal 0.99\n\n");
  std::printf("| %-62s | %10s | %8s | %10s | %10s | %8s |\n", "case", "production", "TFLOP/s", "library", "of library", "set-up");
  std::printf("|%s|%s:|%s:|%s:|%s:|%s:|\n", std::string(64, '-').c_str(), std::string(11, '-').c_str(),
              std::string(9, '-').c_str(), std::string(11, '-').c_str(), std::string(11, '-').c_str(),
              std::string(9, '-').c_str());
  for (const Line& line : lines()) {
    if (line.production == 0) {
      std::printf("| %-62s | not measured: %s\n", line.name.c_str(), line.remark.c_str());
    } else {
      std::printf("| %-62s | %10.1f | %8.0f | %10.1f | %8.4f%s | %8.2f |\n", line.name.c_str(), line.production * 1e6,
                  line.flops / line.production * 1e-12, line.library * 1e6, line.ratio, line.ratio >= 0.99 ? "  " : " *",
                  line.set_up * 1e6);
    }
  }
  std::printf("\n");
  for (const Line& line : lines()) {
    if (line.production != 0) std::printf("%s: %s\n", line.name.c_str(), line.remark.c_str());
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::add_all();
  const int code = assay::bench::run_benchmarks(argc, argv);
  if (code == 0) assay::bench::print_lines();
  return code;
}
