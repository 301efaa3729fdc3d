#pragma once
// The product of each step, without its operands, and how a path computes it.

#include <string>

#include "device/gemm/grouped_gemm.h"
#include "device/linear/linear_kernels.h"
#include "device/linear/linear_path.h"
#include "device/linear/linear_steps.h"

namespace assay::device {

// Errors: InvalidArgument for an invalid recipe, type or epsilon; options of other recipes are ignored.
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

// Checks the call and finds the algorithm; launch() then only fails if CUDA or the library does.
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
