#pragma once
// What every step of a layer has on the device backend: attributes, splits, the activation, and the path of its product.

#include <cstdint>
#include <string>

#include "conformance/backends/device/call_parts.h"
#include "conformance/backends/device/cuda_backend.h"
#include "conformance/ops/linear_request.h"
#include "conformance/ops/named_plan.h"
#include "conformance/ops/words.h"
#include "device/emulated_gemm/emulated_gemm.h"
#include "device/gemm/plan_key.h"
#include "device/linear/linear_product.h"
#include "device/linear/linear_steps.h"

namespace assay::conformance {

// A placeholder for device memory whose address is not known yet.
inline void* later() { return reinterpret_cast<void*>(std::uintptr_t{1} << 20); }

// Common parts of every step: attributes, splits and the activation, whose rows are R.
struct Step {
  Parts parts;
  Splits splits;
  device::LinearCall call;
  std::string architecture;
  bool bias = false;
  const AccumulationPlan* asked = nullptr;  // the plan that the request names, if it names one

  Step(const Request& request, const char* activation) : splits(with_splits(request)) {
    call.config = linear_config_of(request);
    architecture = linear_architecture_of(request, call.config.recipe);
    bias = request.flag("bias");
    asked = named_plan(request);
    call.N = request.integer("N");
    call.K = request.integer("K");
    require(call.N >= 0, "attribute N", call.N, "0 or more");
    require(call.K >= 0, "attribute K", call.K, "0 or more");
    call.rows = splits.rows(matrix(request, activation, activation[0] == 'x' ? x_columns() : call.N).shape[0]);
  }

  std::int64_t groups() const { return splits.groups(); }
  std::int64_t weights() const { return groups() * call.N * call.K; }
  std::int64_t x_columns() const { return matrices_in_x(call.config.activation) * call.K; }

  const TensorView& matrix(const Request& request, const char* name, std::int64_t columns) const {
    const TensorView& tensor = request.input(name, call.config.type);
    if (tensor.shape.size() != 2 || tensor.shape[1] != columns) {
      throw InvalidArgument(std::string("in/") + name, describe(tensor), "a matrix with " + std::to_string(columns) + " columns");
    }
    return tensor;
  }
  const float* scales(const Request& request, const char* name) const {
    return call.config.recipe == LinearRecipe::tensor_delayed ? floats(&request.input(name, Format::f32, groups())) : nullptr;
  }

  // The plan of that product once its path is chosen; null where it is not known.
  const AccumulationPlan* plan_of(const GemmOptions& options, GemmLayout layout, Format d_type) const {
    switch (call.path.path) {
      case device::GemmPath::assay: return &assay_plan(device::product_of(call.config, layout, d_type), asked);
      case device::GemmPath::emulated: return find_accumulation_plan(call.path.forward.arithmetic.plan->name);
      case device::GemmPath::cublaslt: break;
    }
    return cublaslt_plan(options, layout, d_type);
  }
  const AccumulationPlan* cublaslt_plan(const GemmOptions& options, GemmLayout layout, Format d_type) const {
    const device::GroupedGemmCall product = sized(device::product_of(call.config, layout, d_type), layout);
    PlanKey key = device::plan_key_of(product, architecture);
    key.library = "cublaslt";
    key.version_from = key.version_to =
        options.assumed_version != 0 ? options.assumed_version : device::CublasLtLibrary::get().version();
    if (device::cublaslt_route(product, {}) == device::CublasLtRoute::expanded_scales) key.weight_block = WeightBlock::b1x128;
    return plan_for(key);
  }

  // The path that options, device and library allow for the product of this layout.
  void choose_path(const GemmOptions& options, GemmLayout layout, Format d_type) {
    const device::GroupedGemmCall product = device::product_of(call.config, layout, d_type);
    if (options.may_take_assay()) {
      const std::string why = why_not_assay(sized(product, layout), architecture, asked);
      if (why.empty()) {
        call.path.path = device::GemmPath::assay;
        call.column_alignment = device::column_alignment_of(call.config, call.path.path, 1);  // with a promise too
        for (device::LinearProduct* each : {&call.path.forward, &call.path.dgrad, &call.path.wgrad})
          each->fp8_block = assay_settings(asked);
        return;
      }
      if (options.path == GemmPath::assay) throw NotSupported(why);
    }
    std::string why = options.path == GemmPath::emulated ? "the emulated GEMM is requested" : cublaslt_missing(product, layout);
    if (why.empty() && asked != nullptr) {  // a named plan is followed by any path that can
      const AccumulationPlan* const followed = cublaslt_plan(options, layout, d_type);
      if (followed == nullptr || plan_line(*followed) != plan_line(*asked))
        why = "the request names the plan " + std::string(asked->name) + ", which cuBLASLt does not follow here";
    }
    if (why.empty()) {
      device::cublaslt_prepare();
      call.path.path = device::GemmPath::cublaslt;
      return;
    }
    if (options.path == GemmPath::cublaslt) throw NotSupported(why);
    const AccumulationPlan* plan = asked != nullptr ? asked : plan_for(device::plan_key_of(product, architecture));
    if (plan == nullptr) {
      throw NotSupported("no accumulation plan is known for kind " + std::string(assay::name_of(product.kind)) + ", layout " +
                         std::string(assay::name_of(layout)) + " on architecture \"" + architecture + "\"");
    }
    const std::string missing = device::emulation_missing(*find_tensor_core_unit(plan->unit));
    if (!missing.empty()) throw NotSupported(missing);
    call.path.path = device::GemmPath::emulated;
    for (device::LinearProduct* each : {&call.path.forward, &call.path.dgrad, &call.path.wgrad}) {
      each->arithmetic = {plan, find_tensor_core_unit(plan->unit)};
    }
  }

 private:
  // Why cuBLASLt cannot carry out a product of these sizes; empty where it can.
  std::string cublaslt_missing(const device::GroupedGemmCall& product, GemmLayout layout) const {
    return why_not_cublaslt(sized(product, layout), architecture);
  }

  // The product with the sizes of this call, and operands that are there.
  device::GroupedGemmCall sized(device::GroupedGemmCall product, GemmLayout layout) const {
    product.rows = call.rows;
    product.N = call.N;
    product.K = call.K;
    for (device::GemmOperand* operand : {&product.x, &product.w, &product.dy}) {
      operand->data = operand->scale_inv = later();
      operand->amax = static_cast<const float*>(later());
    }
    const bool quantized = call.config.recipe != LinearRecipe::none;
    product.x.columnwise = product.dy.columnwise = quantized && layout == GemmLayout::NT;
    product.w.columnwise = quantized && layout == GemmLayout::NN;
    product.d = later();
    return product;
  }
};

}  // namespace assay::conformance
