// Whether D of the FP8 block GEMM depends on anything but its operands: multiprocessors, clusters, neighbours, the place of a group, a
// list of places of D or of w, repetition, other work on the device. Needs a GPU of SM90.
//
//   device_fp8_block_independence [--calls N]
//
// Prints what was compared. Exit codes: 0; 1 D differed, or a call failed; 2 wrong usage; 9 there is no such device.

#include <cuda_runtime.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "device/support/error.h"
#include "device/tests/fp8_block_gemm/on_device/product_on_device.h"

namespace assay::device {
namespace {

class Comparison {
 public:
  void expect(bool equal, const std::string& what) {
    ++made_;
    if (equal) return;
    ++failed_;
    std::printf("DIFFERENT: %s\n", what.c_str());
  }
  int made() const { return made_; }
  int failed() const { return failed_; }

 private:
  int made_ = 0, failed_ = 0;
};

struct Kind {
  const char* name;
  GemmLayout layout;
  WeightBlock block;
  DrawnScales scales = DrawnScales::any;
};

Fp8BlockSettings on_multiprocessors(int count) {
  Fp8BlockSettings settings;
  settings.multiprocessors = count;
  return settings;
}
Fp8BlockSettings in_clusters(int blocks) {
  Fp8BlockSettings settings;
  settings.cluster = blocks;
  return settings;
}

void compare_settings(const Kind& kind, const Product& product, const std::vector<std::uint32_t>& expected, Comparison& result) {
  const bool squares = kind.layout != GemmLayout::NT && kind.block == WeightBlock::b128x128;
  for (const int multiprocessors : {1, 2, 3, 5, 31, 66, 97, 131}) {
    result.expect(product.run(on_multiprocessors(multiprocessors)) == expected,
                  std::string(kind.name) + " on " + std::to_string(multiprocessors) + " multiprocessors");
  }
  if (!squares) return;
  for (const int cluster : {1, 2})
    result.expect(product.run(in_clusters(cluster)) == expected,
                  std::string(kind.name) + " in clusters of " + std::to_string(cluster));
}

// The same group between others, at other places.
void compare_neighbours(const Kind& kind, const Group& group, Comparison& result) {
  const Product alone(kind.layout, kind.block, {group}, kind.scales);
  const std::vector<std::uint32_t> expected = alone.of_group(alone.run(), 0);
  const std::vector<std::vector<Group>> all = {{group, {91, 130}},
                                               {{92, 1}, group, {93, 500}},
                                               {{94, 0}, {95, 77}, {96, 16}, group},
                                               {{97, 3000}, {98, 5}, group, {99, 0}, {100, 129}}};
  for (const std::vector<Group>& groups : all) {
    const Product among(kind.layout, kind.block, groups, kind.scales);
    const std::vector<std::uint32_t> words = among.run();
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (groups[i].seed == group.seed)
        result.expect(among.of_group(words, i) == expected,
                      std::string(kind.name) + ": group " + std::to_string(i) + " of " + std::to_string(groups.size()));
  }
}

void compare_lists(const Kind& kind, const Product& product, const std::vector<std::uint32_t>& expected, std::size_t groups,
                   Comparison& result) {
  const std::vector<std::uint32_t> words = product.run_in_list();
  for (std::size_t i = 0; i < groups; ++i)
    result.expect(product.of_group(words, groups - 1 - i) == product.of_group(expected, i),
                  std::string(kind.name) + ", group " + std::to_string(i) + " of a list");
}

// D is aligned as its elements are: at each remainder of 16 bytes, and where other numbers divide the address.
void compare_places(const Kind& kind, const Product& product, const std::vector<std::uint32_t>& expected, Comparison& result) {
  for (const std::int64_t on : {1, 2, 3, 15, 17, 30, 34, 45, 51})
    result.expect(product.run_at(on) == expected, std::string(kind.name) + ", D " + std::to_string(on) + " elements on");
}

// Calls whose splits are wrong, or that break their promise: the status word says so, and D keeps its bytes.
void compare_refusals(const Kind& kind, const Product& product, Comparison& result) {
  const auto refused = [&](const std::vector<std::int64_t>& splits, std::int64_t rows_multiple, std::uint32_t status,
                           const char* what) {
    const auto [written, reported] = product.run_refused(splits, rows_multiple);
    result.expect(!written, std::string(kind.name) + " writes D: " + what);
    result.expect(reported == status, std::string(kind.name) + ", status " + std::to_string(reported) + ": " + what);
  };
  refused({300, -1, 77, 1040, 16, 129}, 1, kStatusNegativeSplit, "a negative split");
  refused({300, 0, 77, 1040, 16, 130}, 1, kStatusSplitsExceedRows, "a row too many");
  if (kind.layout == GemmLayout::NT)
    refused({304, 0, 64, 1040, 16, 20}, 16, kStatusUnalignedRows, "a promise that one group breaks");
}

// The promise that scales are powers of two changes no bit, and one scale that is none is reported: the first, the last, and some between.
// Extents are multiples of 4, so that no scale is padding.
void compare_scales(const Kind& kind, const Product& product, const std::vector<std::uint32_t>& expected, Comparison& result) {
  static_assert(kN % 4 == 0 && kK % 4 == 0);
  result.expect(product.run_without_promise() == expected, std::string(kind.name) + ", without the promise");
  for (const bool of_a : {true, false}) {
    const std::size_t last = product.scale_count(of_a) - 1;
    for (std::size_t i = 0; i <= 20; ++i)
      result.expect(product.status_with_other_scale(of_a, last * i / 20) == kStatusOtherScales,
                    std::string(kind.name) + ", " + (of_a ? "dy" : "x") + ": another scale is reported");
  }
}

void compare_calls(const Kind& kind, const Product& product, const std::vector<std::uint32_t>& expected, int calls,
                   Comparison& result) {
  for (int i = 0; i < calls; ++i)
    result.expect(product.run() == expected, std::string(kind.name) + ", call " + std::to_string(i));
}

// Beside another product on a second stream, and replayed from a graph.
void compare_streams(const Kind& kind, const Product& product, const Product& other, const std::vector<std::uint32_t>& expected,
                     const std::vector<std::uint32_t>& expected_of_other, Comparison& result) {
  cudaStream_t streams[2];
  for (cudaStream_t& each : streams) check(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking), "cudaStreamCreate");
  for (int i = 0; i < 20; ++i) {
    product.clear(), other.clear();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    product.enqueue(on_multiprocessors(60), streams[0]);
    other.enqueue(on_multiprocessors(60), streams[1]);
    result.expect(product.output() == expected, std::string(kind.name) + " beside another stream");
    result.expect(other.output() == expected_of_other, std::string(kind.name) + " on the other stream");
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  check(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  product.enqueue({}, streams[0]);
  check(cudaStreamEndCapture(streams[0], &graph), "cudaStreamEndCapture");
  std::size_t nodes = 0;
  check(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
  result.expect(nodes == 1, std::string(kind.name) + ": " + std::to_string(nodes) + " nodes in a graph, 1 expected");
  check(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < 20; ++i) {
    product.clear();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaGraphLaunch(replay, streams[0]), "cudaGraphLaunch");
    result.expect(product.output() == expected, std::string(kind.name) + ", replay " + std::to_string(i));
  }
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  for (const cudaStream_t each : streams) cudaStreamDestroy(each);
}

int compare(int calls) {
  Comparison result;
  const std::vector<Group> groups = {{1, 300}, {2, 0}, {3, 77}, {4, 1040}, {5, 16}, {6, 129}};
  const std::vector<Group> others = {{7, 640}, {8, 33}, {9, 256}};
  for (const Kind& kind :
       {Kind{"TN, 128x128", GemmLayout::TN, WeightBlock::b128x128}, Kind{"TN, 1x128", GemmLayout::TN, WeightBlock::b1x128},
        Kind{"NT", GemmLayout::NT, WeightBlock::b128x128},
        Kind{"NT, powers of two", GemmLayout::NT, WeightBlock::b128x128, DrawnScales::pow2}}) {
    const int before = result.made();
    const Product product(kind.layout, kind.block, groups, kind.scales), other(kind.layout, kind.block, others, kind.scales);
    const std::vector<std::uint32_t> expected = product.run(), expected_of_other = other.run();
    compare_settings(kind, product, expected, result);
    for (const Group& group : {Group{21, 300}, Group{22, 128}, Group{23, 1}}) compare_neighbours(kind, group, result);
    if (kind.layout == GemmLayout::NT)
      compare_lists(kind, product, expected, groups.size(), result);
    else
      result.expect(product.run_with_listed_w() == expected, std::string(kind.name) + ", w in a list");
    compare_places(kind, product, expected, result);
    compare_refusals(kind, product, result);
    if (kind.scales == DrawnScales::pow2) compare_scales(kind, product, expected, result);
    compare_calls(kind, product, expected, calls, result);
    compare_streams(kind, product, other, expected, expected_of_other, result);
    std::printf("%s: %d outputs compared\n", kind.name, result.made() - before);
  }
  std::printf("%d of %d differed\n", result.failed(), result.made());
  return result.failed() == 0 ? 0 : 1;
}

int main_of(int argc, char** argv) {
  int calls = 1000;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = word == "--calls" && i + 1 < argc;
    const char* const value = has_value ? argv[++i] : "";
    if (!has_value || std::from_chars(value, value + std::strlen(value), calls).ec != std::errc{} || calls < 0) {
      std::fprintf(stderr, "usage: device_fp8_block_independence [--calls N]\n");
      return 2;
    }
  }
  int devices = 0, major = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0 ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess || major != 9) {
    std::fprintf(stderr, "device_fp8_block_independence: there is no device of SM90\n");
    return 9;
  }
  return compare(calls);
}

}  // namespace
}  // namespace assay::device

int main(int argc, char** argv) {
  try {
    return assay::device::main_of(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_fp8_block_independence: %s\n", error.what());
    return 1;
  }
}
