#include "device/linear/linear_path.h"

#include "device/gemm/plan_key.h"
#include "device/layout/check_rows.h"
#include "device/layout/column_layout.h"
#include "device/linear/linear_kernels.h"
#include "device/linear/linear_product.h"
#include "device/support/call_checks.h"

namespace assay::device {

const char* name_of(GemmPath path) {
  return path == GemmPath::cublaslt ? "cublaslt" : path == GemmPath::emulated ? "emulated" : "assay";
}

namespace {

// What a path lacks of the products that are needed, in the form in which they will run: the first reason, after the step's name; empty:
// nothing. `lacks`: why the path does not have this one.
template <class Lacks>
std::string first_missing(const LinearConfig& config, const LinearNeeds& needs, const Lacks& lacks) {
  static constexpr float kOnDevice = 1;  // placeholder for an address that is given; not read
  std::string missing;
  const auto ask = [&](bool needed, GemmLayout layout, Format d_type) {
    if (!needed || !missing.empty()) return;
    GroupedGemmCall call = product_of(config, layout, d_type);
    if (layout == GemmLayout::NT) call.beta = &kOnDevice;
    missing = lacks(call);
    if (!missing.empty()) missing = std::string(step_name(layout)) + ": " + missing;
  };
  ask(true, GemmLayout::TN, config.type);
  ask(needs.dgrad, GemmLayout::NN, config.type);
  ask(needs.wgrad, GemmLayout::NT, needs.dw_type);
  return missing;
}

}  // namespace

LinearChoice choose_linear_path(const LinearConfig& config, const LinearNeeds& needs, int architecture,
                                const LinearKernels& kernels) {
  check_linear_config(config);
  if (needs.wgrad) {
    check_wide(needs.dw_type, "needs.dw_type");
    if (config.recipe == LinearRecipe::nvfp4 && config.type != Format::bf16) {
      require(false, "config.type", format_name(config.type),
              "bf16 for wgrad with nvfp4, whose Hadamard transform takes no other");
    }
  }
  if (architecture < 80) {
    return {LinearVerdict::refused,
            "refused: the device is sm" + std::to_string(architecture) + ", and quantization and the emulated GEMM need sm80",
            {}};
  }
  if (config.activation != Activation::off && architecture != 90) {
    return {LinearVerdict::refused,
            "refused: the device is sm" + std::to_string(architecture) + ", and the instructions of activation " +
                std::string(assay::name_of(config.activation)) + " were measured on sm90 alone",
            {}};
  }
  if (const std::string why = kernels.missing_code(); !why.empty()) return {LinearVerdict::refused, "refused: " + why, {}};
  std::string own_missing;
  if (config.recipe == LinearRecipe::block && architecture == 90) {
    own_missing = first_missing(config, needs, [&](const GroupedGemmCall& call) { return kernels.assay_missing(call, {}); });
    if (own_missing.empty()) return {LinearVerdict::assay, "assay: one kernel of our own for every product on sm90", {}};
    own_missing = "; not assay: " + own_missing;
  }
  const std::string missing =
      first_missing(config, needs, [&](const GroupedGemmCall& call) { return kernels.missing(call, architecture); });
  if (missing.empty()) {
    return {LinearVerdict::cublaslt,
            "cublaslt: cuBLASLt " + version_text(kernels.library_version()) + " has every product on sm" +
                std::to_string(architecture) + own_missing,
            {}};
  }
  // The architecture whose arithmetic the emulated GEMM uses: only Hopper has block scaling, only later ones MXFP8 and NVFP4.
  const bool later = config.recipe == LinearRecipe::mxfp8 || config.recipe == LinearRecipe::nvfp4;
  return {LinearVerdict::emulated, "emulated: " + missing + own_missing, later ? "sm100" : "sm90"};
}

bool takes_aligned_columns(const LinearConfig& config, GemmPath path) {
  return config.recipe == LinearRecipe::block && path == GemmPath::assay;
}

std::int64_t column_alignment_of(const LinearConfig& config, GemmPath path, std::int64_t rows_multiple) {
  return takes_aligned_columns(config, path) && rows_multiple % kAlignedColumns != 0 ? kAlignedColumns : 1;
}

LinearPath linear_path_of(const LinearChoice& choice, const LinearConfig& config, const LinearNeeds& needs) {
  if (choice.verdict == LinearVerdict::refused) throw NotSupported(choice.reason);
  LinearPath made;
  made.path = choice.verdict == LinearVerdict::cublaslt   ? GemmPath::cublaslt
              : choice.verdict == LinearVerdict::emulated ? GemmPath::emulated
                                                          : GemmPath::assay;
  if (made.path != GemmPath::emulated) return made;
  const auto arithmetic = [&](GemmLayout layout, Format d_type) -> EmulatedArithmetic {
    const AccumulationPlan* const plan = plan_for(plan_key_of(product_of(config, layout, d_type), choice.arithmetic));
    if (plan == nullptr) {
      throw NotSupported(std::string(step_name(layout)) + ": no accumulation plan is known for recipe " +
                         std::string(assay::name_of(config.recipe)) + " on " + std::string(choice.arithmetic));
    }
    return {plan, find_tensor_core_unit(plan->unit)};
  };
  made.forward.arithmetic = arithmetic(GemmLayout::TN, config.type);
  if (needs.dgrad) made.dgrad.arithmetic = arithmetic(GemmLayout::NN, config.type);
  if (needs.wgrad) made.wgrad.arithmetic = arithmetic(GemmLayout::NT, needs.dw_type);
  return made;
}

}  // namespace assay::device
