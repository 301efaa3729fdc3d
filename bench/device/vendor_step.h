#pragma once
// A training step by the vendor's kernels, to be timed beside that of the layer (grouped_linear_bench.cc).

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/linear_layer.h"
#include "bench/device/transformer_engine.h"

namespace assay::bench {

// The launches of a step, in order, as recorded from the module. Each quantization has memory of its own here, and a product reads
// that: the module uses memory again (dy's codes lie where x's were), which a quantization that writes elsewhere would not refill.
struct Launches {
  struct Quantization {
    device::QuantizeCall call;  // output: of `operand`, which holds what the module's call wrote
    std::vector<std::int64_t> splits;
    std::unique_ptr<QuantizedBuffers> operand;
  };
  std::vector<Quantization> quantizations;
  std::vector<device::GroupedGemmCall> products;
  std::vector<bool> is_product;
  std::map<const void*, const void*> own_memory;  // of each pointer of the module's latest quantizations

  void note(const device::QuantizeCall& call) {
    std::vector<std::int64_t> splits{call.rows.capacity};
    if (call.rows.splits != nullptr) {
      splits.resize(static_cast<std::size_t>(call.rows.groups));
      check(cudaMemcpy(splits.data(), call.rows.splits, splits.size() * sizeof splits[0], cudaMemcpyDeviceToHost), "cudaMemcpy");
    }
    auto operand = std::make_unique<QuantizedBuffers>(call, splits);
    device::QuantizeCall own = call;
    own.output = operand->output();
    device::quantize(own, stream());
    own_memory[call.output.rowwise_data] = own.output.rowwise_data;
    own_memory[call.output.columnwise_data] = own.output.columnwise_data;
    own_memory[call.output.rowwise_scale_inv] = own.output.rowwise_scale_inv;
    own_memory[call.output.columnwise_scale_inv] = own.output.columnwise_scale_inv;
    quantizations.push_back({own, std::move(splits), std::move(operand)});
    is_product.push_back(false);
  }

  void note(device::GroupedGemmCall call) {
    for (device::GemmOperand* operand : {&call.x, &call.w, &call.dy}) {
      for (const void** pointer : {&operand->data, &operand->scale_inv}) {
        if (*pointer == nullptr) continue;
        const auto own = own_memory.find(*pointer);
        if (own == own_memory.end()) throw std::logic_error("a product reads what no quantization of the step wrote");
        *pointer = own->second;
      }
    }
    products.push_back(call);
    is_product.push_back(true);
  }
};
inline Launches& noted() {
  static Launches launches;
  return launches;
}
inline void note_product(const device::GroupedGemmCall& call, const device::CublasLtSettings& settings,
                         const device::CublasLtAlgorithm* algorithm, device::Stream stream) {
  noted().note(call);
  device::device_kernels().multiply_by_cublaslt(call, settings, algorithm, stream);
}
inline void note_own_product(const device::GroupedGemmCall& call, const device::Fp8BlockSettings& settings,
                             device::Stream stream) {
  noted().note(call);
  device::device_kernels().multiply_by_assay(call, settings, stream);
}
inline void note_quantization(const device::QuantizeCall& call, device::Stream stream) {
  device::device_kernels().quantize_with(call, stream);
  noted().note(call);
}

// The step of a layer by the vendor's kernels, with operands of its own.
class VendorStep {
 public:
  // Errors: std::exception, the vendor's; std::runtime_error for codes that differ.
  VendorStep(const TransformerEngine& library, Layer& layer) {
    noted() = {};
    active_kernels().multiply_by_cublaslt = note_product;
    active_kernels().multiply_by_assay = note_own_product;
    active_kernels().quantize_with = note_quantization;
    layer.step();
    active_kernels() = device::device_kernels();
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    launches_ = std::exchange(noted(), {});

    for (const Launches::Quantization& one : launches_.quantizations) {
      const VendorChoice choice = choose_route(library, one.call, one.splits);
      if (!routes_.empty()) routes_ += '+';
      routes_ += name_of(choice.route);
      device::QuantizeCall call = one.call;
      if (choice.route == VendorRoute::whole || !choice.same_scales) {  // the products keep their operands
        buffers_.push_back(std::make_unique<QuantizedBuffers>(call, one.splits));
        call.output = buffers_.back()->output();
      }
      quantizations_.emplace_back(library, call, one.splits, choice.route);
    }
    settings_.bare = true;
    for (device::GroupedGemmCall& product : launches_.products) {
      workspaces_.emplace_back(device::cublaslt_gemm_workspace_bytes(product, settings_));
      product.workspace = workspaces_.back().as();
      product.workspace_bytes = workspaces_.back().bytes();
      device::cublaslt_grouped_gemm(product, settings_, nullptr, stream());  // writes its arrays
    }
    settings_.skip_set_up = true;
    launch(true, true);
    check(cudaStreamSynchronize(stream()), "the vendor's step");
  }

  void launch(bool quantizations, bool products) const {
    std::size_t quantization = 0, product = 0;
    for (const bool is_product : launches_.is_product) {
      if (is_product) {
        const device::GroupedGemmCall& one = launches_.products[product++];
        if (products) device::cublaslt_grouped_gemm(one, settings_, nullptr, stream());
      } else {
        const VendorQuantization& one = quantizations_[quantization++];
        if (quantizations) one.launch(stream());
      }
    }
  }
  const std::string& routes() const { return routes_; }

 private:
  Launches launches_;
  device::CublasLtSettings settings_;
  std::vector<VendorQuantization> quantizations_;
  std::vector<std::unique_ptr<QuantizedBuffers>> buffers_;
  std::vector<DeviceBuffer> workspaces_;
  std::string routes_;
};

}  // namespace assay::bench
