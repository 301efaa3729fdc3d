#pragma once
// The reference in place of the device: the entry points of a grouped linear layer over host memory. A call is executed at once
// or, while capturing, recorded with everything that a graph would keep (addresses and sizes, not contents) and executed at each
// replay. Every call with a workspace fills it with arbitrary bytes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/linear/linear_kernels.h"

namespace assay::device_linear_suite {

// The calls of the table, and its answers.
struct HostDevice {
  std::vector<std::string> log;  // "quantize x 1x128 rowwise+columnwise dbias", "gemm TN cublaslt", ...
  struct Extent {
    void* begin = nullptr;
    std::int64_t bytes = 0;
    bool operator==(const Extent&) const = default;
  };
  struct ProductMemory {
    GemmLayout layout;
    Extent workspace, setup, library;
    std::int64_t rows_multiple;
    bool operator==(const ProductMemory&) const = default;
  };
  std::vector<ProductMemory> products;  // the arguments of each
  struct Quantization {
    Recipe recipe;
    std::int64_t rows, rows_multiple;
    bool operator==(const Quantization&) const = default;
  };
  std::vector<Quantization> quantizations;
  std::vector<std::function<void()>>* capture = nullptr;
  std::vector<std::function<void()>>* capture_ended = nullptr;  // called when the graph is destroyed
  std::uint64_t captures = 0;                                   // begun so far
  int current_device = 0;
  std::map<device::Stream, int> device_of_stream;  // of others: the current device
  std::vector<int> launched_on;                    // the current device of each product
  int architecture = 90;
  int version = 131000;
  std::string missing_code;                                                 // why this build cannot run here
  std::string missing_library;                                              // why there is no library at all
  std::function<std::string(const device::GroupedGemmCall&, int)> missing;  // null: the library has everything
  bool no_candidate = false;
  std::string wrong_plan;      // why the emulated GEMM refuses its plan; empty: it does not
  std::string wrong_settings;  // why the FP8 block GEMM refuses its settings; empty: it does not
  // null: the FP8 block GEMM has every product of FP8 blocks, on SM90
  std::function<std::string(const device::GroupedGemmCall&)> assay_missing;
  int heuristic_calls = 0;
  void reset() { *this = {}; }
};
HostDevice& host_device();

const device::LinearKernels& host_kernels();

// A recorded sequence of calls.
class Graph {
 public:
  template <class Body>
  explicit Graph(Body body) {
    host_device().capture = &calls_;
    host_device().capture_ended = &ended_;
    ++host_device().captures;
    try {
      body();
    } catch (...) {
      end_capture();
      end();
      throw;
    }
    end_capture();
  }
  ~Graph() { end(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void replay() const {
    for (const auto& call : calls_) call();
  }
  std::size_t nodes() const { return calls_.size(); }

 private:
  static void end_capture() { host_device().capture = host_device().capture_ended = nullptr; }
  void end() {
    for (const auto& call : ended_) call();
    ended_.clear();
  }
  std::vector<std::function<void()>> calls_, ended_;
};

// Memory of exactly `bytes`, 256-byte aligned, filled with arbitrary bytes, with guards that are checked at its destruction.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::int64_t bytes, std::uint8_t fill = 0xEE);
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();
  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> all_;
  std::uint8_t* data_;
  std::int64_t bytes_;
};

}  // namespace assay::device_linear_suite
