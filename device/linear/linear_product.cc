#include "device/linear/linear_product.h"

#include <cstdint>

#include "device/layout/check_rows.h"
#include "device/support/call_checks.h"

namespace assay::device {

void check_linear_config(const LinearConfig& config) {
  require(config.recipe <= LinearRecipe::nvfp4, "config.recipe", static_cast<std::int64_t>(config.recipe),
          "a LinearRecipe (0 to 5)");
  const auto check_type = [](bool holds, const char* argument, Format type, const char* expected) {
    if (!holds) require(false, argument, format_name(type), expected);
  };
  check_type(config.type == Format::bf16 || config.type == Format::f16, "config.type", config.type, "bf16 or f16");
  if (quantizes(config) && config.recipe != LinearRecipe::nvfp4) {
    check_type(is_fp8(config.forward_code), "config.forward_code", config.forward_code, "e4m3 or e5m2");
    check_type(is_fp8(config.backward_code), "config.backward_code", config.backward_code, "e4m3 or e5m2");
  }
  if (config.recipe == LinearRecipe::tensor_current || config.recipe == LinearRecipe::block) {
    if (!(config.amax_epsilon >= 0)) require(false, "config.amax_epsilon", shown(config.amax_epsilon), "a value of at least 0");
  }
  const bool known = config.activation <= Activation::swiglu;
  require(known, "config.activation", static_cast<std::int64_t>(config.activation), "off (0) or swiglu (1)");
  require(config.activation == Activation::off || config.recipe == LinearRecipe::block, "config.activation",
          std::string(assay::name_of(config.activation)), "off for recipe " + std::string(assay::name_of(config.recipe)));
}

GemmKind product_kind(const LinearConfig& config) {
  switch (config.recipe) {
    case LinearRecipe::none: return config.type == Format::bf16 ? GemmKind::bf16 : GemmKind::f16;
    case LinearRecipe::block: return GemmKind::fp8_block;
    case LinearRecipe::mxfp8: return GemmKind::mxfp8;
    case LinearRecipe::nvfp4: return GemmKind::nvfp4;
    case LinearRecipe::tensor_current:
    case LinearRecipe::tensor_delayed: break;
  }
  return GemmKind::fp8_per_tensor;
}

Format code_of(const LinearConfig& config, LinearTensor tensor) {
  if (!quantizes(config)) return config.type;
  if (config.recipe == LinearRecipe::nvfp4) return Format::e2m1;
  return tensor == LinearTensor::gradient ? config.backward_code : config.forward_code;
}

GroupedGemmCall product_of(const LinearConfig& config, GemmLayout layout, Format d_type) {
  GroupedGemmCall call;
  call.kind = product_kind(config);
  call.layout = layout;
  call.d_type = d_type;
  const bool swizzled = config.recipe == LinearRecipe::mxfp8 || config.recipe == LinearRecipe::nvfp4;
  call.scale_layout = swizzled ? ScaleLayout::swizzled : ScaleLayout::compact;
  // Block scaling never has fast accumulation (spec grouped-linear-1.3); per-tensor has it in forward.
  call.split_accumulator =
      call.kind == GemmKind::fp8_block || (call.kind == GemmKind::fp8_per_tensor && layout != GemmLayout::TN);
  call.pow2_scales = config.recipe == LinearRecipe::block && config.powers_of_two();
  call.x.type = code_of(config, LinearTensor::activation);
  call.w.type = code_of(config, LinearTensor::weight);
  call.dy.type = code_of(config, LinearTensor::gradient);
  const bool quantized = quantizes(config);
  call.x.columnwise = call.dy.columnwise = quantized && layout == GemmLayout::NT;
  call.w.columnwise = quantized && layout == GemmLayout::NN;
  return call;
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

const char* step_name(GemmLayout layout) {
  return layout == GemmLayout::TN ? "forward" : layout == GemmLayout::NN ? "dgrad" : "wgrad";
}

const LinearProduct& product_settings(const LinearPath& path, GemmLayout layout) {
  return layout == GemmLayout::TN ? path.forward : layout == GemmLayout::NN ? path.dgrad : path.wgrad;
}

namespace {

void check_path(const LinearPath& path, GemmLayout layout) {
  require(path.path <= GemmPath::assay, "path.path", static_cast<std::int64_t>(path.path),
          "cublaslt (0), emulated (1) or assay (2)");
  if (path.path != GemmPath::emulated) return;
  const EmulatedArithmetic& arithmetic = product_settings(path, layout).arithmetic;
  const std::string name = std::string("path.") + step_name(layout) + ".arithmetic.";
  require(arithmetic.plan != nullptr, name + "plan", "null", "the plan that the emulated GEMM is to follow");
  require(arithmetic.unit != nullptr, name + "unit", "null", "the unit that the plan names");
}

}  // namespace

std::int64_t product_workspace_bytes(const LinearPath& path, const GroupedGemmCall& call, const LinearKernels& kernels) {
  check_path(path, call.layout);
  const LinearProduct& product = product_settings(path, call.layout);
  switch (path.path) {
    case GemmPath::cublaslt: return kernels.cublaslt_bytes(call, path.settings);
    case GemmPath::emulated: return kernels.emulated_bytes(call, product.arithmetic);
    case GemmPath::assay: break;
  }
  return kernels.assay_bytes(call, product.fp8_block);
}

PreparedProduct::PreparedProduct(const LinearPath& path, const GroupedGemmCall& call, const LinearKernels& kernels)
    : path_(path), call_(call), kernels_(kernels) {
  check_path(path, call.layout);
  if (path.path == GemmPath::cublaslt) {
    const std::string missing = kernels.missing(call, kernels.architecture());
    if (!missing.empty()) throw NotSupported(std::string(step_name(call.layout)) + " through cuBLASLt: " + missing);
  }
  const LinearProduct& product = product_settings(path, call.layout);
  if (path.path == GemmPath::assay) {
    const std::string missing = kernels.assay_missing(call, product.fp8_block);
    if (!missing.empty()) throw NotSupported(std::string(step_name(call.layout)) + ": " + missing);
  }
  kernels.check_product(call);
  if (path.path == GemmPath::emulated) kernels.check_emulated(call, product.arithmetic);
  if (path.path == GemmPath::assay) kernels.check_assay(call, product.fp8_block);
  // Without a product the library is not called; an empty group of wgrad is still cleared.
  const bool has_products = call.rows.groups > 0 && call.rows.capacity > 0 && call.N > 0 && call.K > 0;
  if (path.path != GemmPath::cublaslt || !has_products) return;
  has_algorithm_ = true;
  if (product.algorithm != nullptr) {
    algorithm_ = *product.algorithm;
    return;
  }
  const std::vector<CublasLtAlgorithm> best = kernels.algorithms(call, path.settings, 1);
  if (best.empty()) throw NotSupported(std::string(step_name(call.layout)) + " through cuBLASLt: the heuristic has no candidate");
  algorithm_ = best.front();
}

void PreparedProduct::launch(Stream stream) const {
  const LinearProduct& product = product_settings(path_, call_.layout);
  switch (path_.path) {
    case GemmPath::cublaslt:
      return kernels_.multiply_by_cublaslt(call_, path_.settings, has_algorithm_ ? &algorithm_ : nullptr, stream);
    case GemmPath::emulated: return kernels_.multiply_by_emulated(call_, product.arithmetic, stream);
    case GemmPath::assay: return kernels_.multiply_by_assay(call_, product.fp8_block, stream);
  }
}

LinearReport::Product PreparedProduct::report() const {
  LinearReport::Product report;
  report.ran = true;
  report.path = path_.path;
  if (path_.path == GemmPath::cublaslt) {
    report.route = kernels_.route(call_, path_.settings);
    report.algorithm = algorithm_;
    report.library_version = kernels_.library_version();
  } else {
    const LinearProduct& product = product_settings(path_, call_.layout);
    const AccumulationPlan* const plan = path_.path == GemmPath::emulated
                                             ? product.arithmetic.plan
                                             : find_accumulation_plan(kernels_.assay_plan(call_, product.fp8_block));
    report.plan = plan->name;
    report.unit = plan->unit;
  }
  if (path_.path != GemmPath::emulated && call_.layout == GemmLayout::NT) report.rows_multiple = call_.rows_multiple;
  report.pow2_scales =
      path_.path == GemmPath::assay && relies_on_pow2_scales(call_, product_settings(path_, call_.layout).fp8_block);
  return report;
}

}  // namespace assay::device
