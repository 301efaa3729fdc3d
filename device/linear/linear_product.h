#pragma once
// The product of each step but for its operands, and how a path carries it out.

#include <string>

#include "device/gemm/grouped_gemm.h"
#include "device/linear/linear_kernels.h"
#include "device/linear/linear_path.h"
#include "device/linear/linear_steps.h"

namespace assay::device {

// Errors: InvalidArgument for a recipe, a type or an epsilon that is none; options of other recipes are not looked at.
void check_linear_config(const LinearConfig& config);

GemmKind product_kind(const LinearConfig& config);
Format code_of(const LinearConfig& config, LinearTensor tensor);

// Kind, layout, types, scale layout and accumulation of a step; f32, bf16 or f16 out. No sizes, no pointers.
GroupedGemmCall product_of(const LinearConfig& config, GemmLayout layout, Format d_type);

// "13.10.0" of 131000.
std::string version_text(int version);

const char* step_name(GemmLayout layout);  // "forward", "dgrad", "wgrad"
const LinearProduct& product_settings(const LinearPath& path, GemmLayout layout);

// Bytes of the path's own workspace. Errors: InvalidArgument for an arithmetic that is missing.
std::int64_t product_workspace_bytes(const LinearPath& path, const GroupedGemmCall& call, const LinearKernels& kernels);

// Checks the call, finds the algorithm, and can then launch without a further reason to refuse.
class PreparedProduct {
 public:
  // Errors: InvalidArgument, NotSupported with the reason; nothing is launched.
  PreparedProduct(const LinearPath& path, const GroupedGemmCall& call, const LinearKernels& kernels);
  void launch(Stream stream) const;
  LinearReport::Product report() const;

 private:
  const LinearPath& path_;
  const GroupedGemmCall& call_;
  const LinearKernels& kernels_;
  bool has_algorithm_ = false;
  CublasLtAlgorithm algorithm_;
};

}  // namespace assay::device
