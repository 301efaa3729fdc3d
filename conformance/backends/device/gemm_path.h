#pragma once
// Which of the device library's paths carries out a grouped GEMM, and what is stated about its numbers.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/backends/device/device_call.h"
#include "conformance/backends/device/gemm_request.h"
#include "device/cublaslt/cublaslt_gemm.h"
#include "device/fp8_block_gemm/fp8_block_gemm.h"

namespace assay::conformance {

enum class GemmPath {
  automatic,  // the first of the others that has the path and the requested arithmetic, in their order
  assay,      // the kernel of device/fp8_block_gemm
  cublaslt,
  emulated,
};

struct GemmOptions {
  GemmPath path = GemmPath::automatic;
  // Not 0: plans are stated as though cuBLASLt were this version (131000), and its algorithm, workspace and multiprocessors
  // those under which that version was measured; `automatic` is then cuBLASLt before all others. For tests of a statement.
  int assumed_version = 0;
  // Backend `device`: quantizations, products and layers are made with these promises, where what supports() saw keeps them. A graph whose
  // splits or scales change to others breaks a promise, which is reported: of scales where BF16 cannot hold them. Layers promise
  // powers of two by themselves.
  PromiseOptions promises;
  // Backend `device`: w of a grouped GEMM, and D of layout NT, are passed as lists of the matrices of the groups.
  bool passes_lists = false;

  bool may_take_assay() const { return path == GemmPath::assay || (path == GemmPath::automatic && assumed_version == 0); }
};

inline constexpr const char* kGemmOptionsHelp =
    "gemm=auto|assay|cublaslt|emulated, assume_plan=VERSION (13.10), rows_multiple=N (16), pow2_scales=on|off, lists=on|off";

// Errors: InvalidArgument, for another key or value; `with_path` false: only `assume_plan` is known.
GemmOptions gemm_options(const std::vector<std::string>& options, bool with_path);

// Errors: InvalidArgument, NotSupported.
DeviceCall gemm_call(const Request& request, const GemmOptions& options);
void state_gemm(const Request& request, const GemmOptions& options, assay_numerics& numerics);

// One line: the path that option and machine allow, and why.
std::string describe_gemm_path(const GemmOptions& options);

// The settings under which the FP8 block GEMM follows `plan`, and the name that this has among its own plans. Null: those of its choice.
device::Fp8BlockSettings assay_settings(const AccumulationPlan* plan);
const AccumulationPlan& assay_plan(const device::GroupedGemmCall& call, const AccumulationPlan* plan);
// Empty if the FP8 block GEMM takes this call on this device, in the arithmetic of `architecture` and under `plan`, if that is not null;
// else why not.
std::string why_not_assay(const device::GroupedGemmCall& call, const std::string& architecture, const AccumulationPlan* plan);

// Empty if cuBLASLt has the path of this call on this device, in the arithmetic of `architecture`; else why not.
std::string cublaslt_missing(const device::GroupedGemmCall& call, const std::string& architecture);
// The same, and why it has no algorithm for a call of these sizes.
std::string why_not_cublaslt(const device::GroupedGemmCall& call, const std::string& architecture);
// Empty if the library's kernels can write D as it lies; else why not. Sums without terms count too (a wgrad without any row):
// why_not_cublaslt() leaves them out, since the production path fills such D by itself.
std::string why_not_written(const device::GroupedGemmCall& call);

// The request's key with the present library, version and device, or those that `options` assumes.
PlanKey cublaslt_key(const GemmRequest& request, const GemmOptions& options);

// Puts plan and unit into the statement; null: unknown, not stated.
void state_plan(const AccumulationPlan* plan, assay_numerics& numerics);

}  // namespace assay::conformance
