#pragma once
// Shared by tests of the module GroupedLinear on a device: a caller's buffers with their counterparts on the current device, and
// graphs.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "device/support/error.h"
#include "device/support/launch_check.h"
#include "device/tests/linear/buffers.h"

namespace assay::device_linear_suite {

using device::check_cuda;
using device::GemmPath;
using device::GroupedLinear;

// One a device; that of the current one. A stream of a device that is made while another thread captures disturbs neither.
inline cudaStream_t stream() {
  static std::mutex mutex;
  static std::map<int, cudaStream_t> made;
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard<std::mutex> lock(mutex);
  cudaStream_t& of_device = made[device];
  if (of_device == nullptr) check_cuda(cudaStreamCreateWithFlags(&of_device, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return of_device;
}
inline void wait() { check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize"); }

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

}  // namespace assay::device_linear_suite
