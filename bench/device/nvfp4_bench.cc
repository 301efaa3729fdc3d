// NVFP4 on the device: rowwise, both directions, 2-D tiles, Hadamard transform, stochastic rounding by bytes that are given or
// drawn, with the amax given (one reading of x) and found (two), dense and ragged (rows falling as 1/rank, one group in eight empty, even:
// codes are packed down the columns too). Random normal bf16.
//
// An H200 has no conversion to E2M1, so each case has two bounds, and the larger is its bound:
//
//   memory   bytes that must move, at the rate of the copy of this run. The second reading of x counts in full (what
//            the L2 still holds of the first can save up to a tenth of it at 32768 x 7168)
//   issue    instructions of an element (kSlots) over 4 schedulers a multiprocessor at kClock, the clock that an H200
//            keeps under load

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "bench/device/quantize_calls.h"

namespace assay::bench {
namespace {

enum class Kind { plain, two_dimensional, hadamard, stochastic, drawn };
constexpr const char* kNames[] = {"", " 2-D", " hadamard", " stochastic", " drawn"};

struct Case {
  Kind kind;
  bool rowwise, columnwise, amax_given;
  bool swizzled;
  int groups;  // 0: one tensor
  std::int64_t rows, columns;

  std::string name() const {
    std::string text = std::string("nvfp4") + (rowwise && columnwise ? " both" : rowwise ? " rowwise" : " columnwise");
    text += kNames[static_cast<int>(kind)];
    text += amax_given ? " amax given" : "";
    if (swizzled) text += " swizzled";
    if (groups != 0) text += std::string(" ") + std::to_string(groups) + " groups";
    return text + " " + std::to_string(rows) + "x" + std::to_string(columns);
  }
  Subject subject() const {
    constexpr const char* kOptions[] = {"", "+2-D", "+hadamard", "+stochastic", "+drawn"};
    std::string options = kOptions[static_cast<int>(kind)];
    if (amax_given) options += "+amax_given";
    if (swizzled) options += "+swizzled";
    return {"nvfp4", options.empty() ? "" : options.substr(1), rowwise, columnwise, Format::bf16, groups, rows, columns};
  }
};

// Instructions that a thread issues for an element: to read it and to find its code in one direction or in two, and to
// find the amax of the group. Counted in the machine code for SM90 (SASS) along the main path: one tensor, full tiles,
// compact scales, codes that are cut; both directions as a profiler counts them. Those of columns alone, of the Hadamard transform, of
// stochastic rounding and of draws are estimates, without the extra instructions of ragged groups. They are counts of these kernels,
// not of the recipe: fewer instructions give another bound. Measured on an H200 at 32768 x 7168 with the amax given, "of bound" is
// 0.91 rowwise (memory) and 0.74 for both (issue).
struct Slots {
  double rowwise, columnwise, both, amax;
};
constexpr Slots kSlots[] = {
    {16.0, 14.0, 23.1, 1.5}, {16.0, 14.0, 23.1, 1.5}, {16.0, 18.0, 27.0, 8.5}, {24.0, 32.0, 58.0, 1.5}, {38.0, 38.0, 70.0, 1.5}};
constexpr double kClock = 1.7e9;

struct Bound {
  std::string name;
  double memory, issue, measured;  // seconds
};
std::vector<Bound>& bounds() {
  static std::vector<Bound> all;
  return all;
}

double issue_seconds(const Case& c) {
  const Slots& slots = kSlots[static_cast<int>(c.kind)];
  const double codes = c.rowwise && c.columnwise ? slots.both : c.rowwise ? slots.rowwise : slots.columnwise;
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
  const double instructions = (codes + (c.amax_given ? 0 : slots.amax)) * static_cast<double>(c.rows * c.columns) / 32;
  return instructions / (4.0 * multiprocessors * kClock);
}

void quantize_nv(benchmark::State& state, const Case& c) {
  const std::vector<std::int64_t> splits = splits_of(c.groups, c.rows, 2);
  device::QuantizeCall call;
  call.config.recipe = Recipe::nvfp4;
  call.config.output = Format::e2m1;
  call.config.rowwise = c.rowwise;
  call.config.columnwise = c.columnwise;
  call.config.two_dimensional = c.kind == Kind::two_dimensional;
  call.config.hadamard = c.kind == Kind::hadamard;
  call.config.hadamard_sign_mask = c.kind == Kind::hadamard ? 0x5AC3 : 0;
  call.config.stochastic_rounding = c.kind == Kind::stochastic || c.kind == Kind::drawn;
  call.config.scale_layout = c.swizzled ? ScaleLayout::swizzled : ScaleLayout::compact;
  call.columns = c.columns;
  const DeviceBuffer amaxes = on_device(std::vector<float>(splits.size(), 5.75f));
  if (c.amax_given) call.amax = call.columnwise_amax = amaxes.as<float>();
  DeviceBuffer random;
  if (c.kind == Kind::stochastic) {
    random = normal_values(Format::bf16, ceil_div(c.rows * c.columns, 2), 99);
    call.rowwise_random = call.columnwise_random = random.as<std::uint8_t>();
  }
  const DeviceBuffer state_of_groups = on_device(std::vector<std::int64_t>(2 * splits.size(), 77));
  if (c.kind == Kind::drawn) {
    call.draws = {RandomDraws::te_vector_blockwise, c.rowwise, c.columnwise, state_of_groups.as<std::int64_t>()};
  }

  const Figure figure = QuantizeCalls(call, c.groups, splits, 16).measure(state, c.name(), c.subject());
  const Bound bound{c.name(), figure.of_copy() * figure.seconds, issue_seconds(c), figure.seconds};
  state.counters["memory_us"] = bound.memory * 1e6;
  state.counters["issue_us"] = bound.issue * 1e6;
  state.counters["of_bound"] = std::max(bound.memory, bound.issue) / bound.measured;
  std::erase_if(bounds(), [&](const Bound& known) { return known.name == bound.name; });
  bounds().push_back(bound);
}

void print_bounds() {
  if (bounds().empty()) return;
  std::printf("\n| %-58s | %9s | %9s | %9s | %8s |\n", "kernel", "us", "memory us", "issue us", "of bound");
  std::printf("|%s|%s:|%s:|%s:|%s:|\n", std::string(60, '-').c_str(), std::string(10, '-').c_str(), std::string(10, '-').c_str(),
              std::string(10, '-').c_str(), std::string(9, '-').c_str());
  for (const Bound& bound : bounds()) {
    std::printf("| %-58s | %9.2f | %9.2f | %9.2f | %8.3f |\n", bound.name.c_str(), bound.measured * 1e6, bound.memory * 1e6,
                bound.issue * 1e6, std::max(bound.memory, bound.issue) / bound.measured);
  }
}

void add_all() {
  const auto register_case = [](const Case& c) { add(c.name(), [c](benchmark::State& state) { quantize_nv(state, c); }); };
  for (const std::int64_t rows : {32768, 8192}) {
    for (const bool given : {true, false}) {
      register_case({Kind::plain, true, false, given, false, 0, rows, 7168});
      register_case({Kind::plain, false, true, given, false, 0, rows, 7168});
      register_case({Kind::plain, true, true, given, false, 0, rows, 7168});
      register_case({Kind::plain, true, true, given, true, 0, rows, 7168});
      register_case({Kind::two_dimensional, true, true, given, false, 0, rows, 7168});
      register_case({Kind::hadamard, false, true, given, false, 0, rows, 7168});
      register_case({Kind::hadamard, true, true, given, false, 0, rows, 7168});
      register_case({Kind::stochastic, true, false, given, false, 0, rows, 7168});
      register_case({Kind::stochastic, true, true, given, false, 0, rows, 7168});
      register_case({Kind::drawn, true, false, given, false, 0, rows, 7168});
      register_case({Kind::drawn, true, true, given, false, 0, rows, 7168});
      for (const int groups : {8, 64, 256}) {
        register_case({Kind::plain, true, false, given, false, groups, rows, 7168});
        register_case({Kind::plain, true, true, given, false, groups, rows, 7168});
        register_case({Kind::hadamard, true, true, given, false, groups, rows, 7168});
      }
    }
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::add_all();
  const int result = assay::bench::run_benchmarks(argc, argv);
  assay::bench::print_bounds();
  return result;
}
