// Whether D of the FP8 block GEMM depends on anything but its operands: multiprocessors, clusters, neighbours, the place of a group, a
// list of places of D, repetition, other work on the device. Needs a GPU of SM90.
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
#include <random>
#include <string>
#include <vector>

#include "device/fp8_block_gemm/fp8_block_gemm.h"
#include "device/support/error.h"

namespace assay::device {
namespace {

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw CudaError(std::string(call) + ": " + cudaGetErrorString(error));
}

class Memory {
 public:
  explicit Memory(std::size_t bytes) { check(cudaMalloc(&at_, bytes + 256), "cudaMalloc"); }
  template <class T>
  explicit Memory(const std::vector<T>& values) : Memory(values.size() * sizeof(T)) {
    check(cudaMemcpy(at_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  Memory(const Memory&) = delete;
  ~Memory() { cudaFree(at_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  void* at_ = nullptr;
};

struct Group {
  std::uint32_t seed;  // of its codes and scales
  std::int64_t rows;
};

constexpr std::int64_t kN = 400, kK = 1040;
std::int64_t blocks(std::int64_t size) { return (size + 127) / 128; }
std::int64_t by4(std::int64_t size) { return (size + 3) / 4 * 4; }

// Finite E4M3 codes, and scales that round in products. What a group has depends on its seed and rows alone.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : bits_(seed) {}
  void codes(std::vector<std::uint8_t>& to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto code = static_cast<std::uint8_t>(bits_());
      to.push_back((code & 0x7F) == 0x7F ? std::uint8_t{0x40} : code);
    }
  }
  void scales(std::vector<float>& to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to.push_back(0.5f + static_cast<float>(bits_() >> 8) * 0x1p-24f);
  }

 private:
  std::mt19937 bits_;
};

// A product on the device, with D of its own.
class Product {
 public:
  Product(GemmLayout layout, WeightBlock block, const std::vector<Group>& groups)
      : layout_(layout),
        groups_(groups),
        host_(made(layout, block, groups)),
        a_(host_.a),
        b_(host_.b),
        a_scales_(host_.a_scales),
        b_scales_(host_.b_scales),
        splits_(host_.splits),
        d_(elements() * sizeof(float)),
        status_(std::vector<std::uint32_t>{0}) {
    call_.kind = GemmKind::fp8_block;
    call_.layout = layout;
    call_.weight_block = block;
    call_.split_accumulator = true;
    call_.rows = {rows(), splits_.as<std::int64_t>(), static_cast<int>(groups.size())};
    call_.N = kN, call_.K = kK;
    const bool wgrad = layout == GemmLayout::NT;
    const auto operand = [&](const Memory& data, const Memory& scales) {
      GemmOperand made;
      made.type = Format::e4m3;
      made.data = data.as<void>(), made.scale_inv = scales.as<void>();
      made.columnwise = wgrad;
      return made;
    };
    (wgrad ? call_.dy : call_.x) = operand(a_, a_scales_);
    (wgrad ? call_.x : call_.w) = operand(b_, b_scales_);
    call_.d_type = Format::f32;
    call_.d = d_.as<void>();
    call_.status = status_.as<std::uint32_t>();
    workspace_ = std::make_unique<Memory>(static_cast<std::size_t>(fp8_block_gemm_workspace_bytes(call_, {})));
    call_.workspace = workspace_->as<void>();
    call_.workspace_bytes = fp8_block_gemm_workspace_bytes(call_, {});
  }

  void enqueue(const Fp8BlockSettings& settings, Stream stream) const { fp8_block_grouped_gemm(call_, settings, stream); }

  void clear() const { check(cudaMemset(d_.as<void>(), 0xA5, elements() * sizeof(float)), "cudaMemset"); }
  std::vector<std::uint32_t> output() const {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<std::uint32_t> words(elements());
    check(cudaMemcpy(words.data(), d_.as<void>(), words.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    std::uint32_t status = 0;
    check(cudaMemcpy(&status, status_.as<void>(), sizeof status, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (status != 0) throw CudaError("status " + describe_status(status));
    return words;
  }
  std::vector<std::uint32_t> run(const Fp8BlockSettings& settings = {}) const {
    clear();
    enqueue(settings, nullptr);
    return output();
  }

  // NT: D as a list, in which each group has the place of another one: the first that of the last.
  std::vector<std::uint32_t> run_in_list() const {
    std::vector<void*> list;
    for (std::size_t i = groups_.size(); i-- > 0;) list.push_back(d_.as<float>() + static_cast<std::int64_t>(i) * kN * kK);
    GroupedGemmCall listed = call_;
    listed.d = nullptr, listed.d_list = list.data();
    clear();
    fp8_block_grouped_gemm(listed, {}, nullptr);
    return output();
  }

  // The words of group `index` in the output.
  std::vector<std::uint32_t> of_group(const std::vector<std::uint32_t>& words, std::size_t index) const {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < index; ++i) first += words_of(groups_[i]);
    return {words.begin() + first, words.begin() + first + words_of(groups_[index])};
  }

 private:
  struct Host {
    std::vector<std::uint8_t> a, b;
    std::vector<float> a_scales, b_scales;
    std::vector<std::int64_t> splits;
  };
  static Host made(GemmLayout layout, WeightBlock block, const std::vector<Group>& groups) {
    Host host;
    for (const Group& group : groups) {
      Draw draw(group.seed);
      host.splits.push_back(group.rows);
      if (layout == GemmLayout::NT) {
        draw.codes(host.a, kN * group.rows), draw.scales(host.a_scales, blocks(group.rows) * by4(kN));
        draw.codes(host.b, kK * group.rows), draw.scales(host.b_scales, blocks(group.rows) * by4(kK));
      } else {
        draw.codes(host.a, group.rows * kK), draw.scales(host.a_scales, blocks(kK) * by4(group.rows));
        draw.codes(host.b, kN * kK);
        draw.scales(host.b_scales, block == WeightBlock::b128x128 ? blocks(kN) * by4(blocks(kK)) : blocks(kK) * by4(kN));
      }
    }
    return host;
  }

  std::int64_t words_of(const Group& group) const { return layout_ == GemmLayout::NT ? kN * kK : group.rows * kN; }
  std::int64_t rows() const {
    std::int64_t sum = 0;
    for (const Group& group : groups_) sum += group.rows;
    return sum;
  }
  std::size_t elements() const {
    std::int64_t sum = 0;
    for (const Group& group : groups_) sum += words_of(group);
    return static_cast<std::size_t>(sum);
  }

  GemmLayout layout_;
  std::vector<Group> groups_;
  Host host_;
  Memory a_, b_, a_scales_, b_scales_, splits_, d_, status_;
  std::unique_ptr<Memory> workspace_;
  GroupedGemmCall call_;
};

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
  const Product alone(kind.layout, kind.block, {group});
  const std::vector<std::uint32_t> expected = alone.of_group(alone.run(), 0);
  const std::vector<std::vector<Group>> all = {{group, {91, 130}},
                                               {{92, 1}, group, {93, 500}},
                                               {{94, 0}, {95, 77}, {96, 16}, group},
                                               {{97, 3000}, {98, 5}, group, {99, 0}, {100, 129}}};
  for (const std::vector<Group>& groups : all) {
    const Product among(kind.layout, kind.block, groups);
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
        Kind{"NT", GemmLayout::NT, WeightBlock::b128x128}}) {
    const int before = result.made();
    const Product product(kind.layout, kind.block, groups), other(kind.layout, kind.block, others);
    const std::vector<std::uint32_t> expected = product.run(), expected_of_other = other.run();
    compare_settings(kind, product, expected, result);
    for (const Group& group : {Group{21, 300}, Group{22, 128}, Group{23, 1}}) compare_neighbours(kind, group, result);
    if (kind.layout == GemmLayout::NT) compare_lists(kind, product, expected, groups.size(), result);
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
