#pragma once
// The grouped GEMM that computes the products of a grouped linear layer. The caller chooses the path: exactly that path runs, or
// an error says why it cannot. There is no fallback.

#include <string>
#include <string_view>

#include "device/cublaslt/cublaslt_gemm.h"
#include "device/emulated_gemm/emulated_gemm.h"
#include "device/fp8_block_gemm/fp8_block_gemm.h"
#include "reference/linear/linear_config.h"

namespace assay::device {

struct LinearKernels;
const LinearKernels& device_kernels();  // linear_kernels.h

enum class GemmPath : std::uint32_t { cublaslt = 0, emulated = 1, assay = 2 };  // assay: fp8_block_grouped_gemm()
const char* name_of(GemmPath path);

// How one product is computed.
struct LinearProduct {
  const CublasLtAlgorithm* algorithm = nullptr;  // cublaslt; null: the heuristic's first
  EmulatedArithmetic arithmetic;                 // emulated
  Fp8BlockSettings fp8_block;                    // assay
};

// A layer's three products share a path; each has its own algorithm, arithmetic or settings. The objects that the pointers name
// must outlive every call with this path.
struct LinearPath {
  GemmPath path = GemmPath::cublaslt;
  CublasLtSettings settings;            // cublaslt
  LinearProduct forward, dgrad, wgrad;  // TN, NN, NT
};

// Whether the path takes columns that begin at multiples of 16 bytes (LinearCall::column_alignment).
bool takes_aligned_columns(const LinearConfig& config, GemmPath path);

// LinearCall::column_alignment with which wgrad by this path copies nothing. `rows_multiple`: LinearCall's promise.
std::int64_t column_alignment_of(const LinearConfig& config, GemmPath path, std::int64_t rows_multiple);

// What a layer will compute, as far as the choice of the path depends on it.
struct LinearNeeds {
  bool dgrad = true, wgrad = true;
  Format dw_type = Format::f32;
};

enum class LinearVerdict : std::uint32_t { cublaslt = 0, emulated = 1, refused = 2, assay = 3 };

// A choice and its reason, in one line that begins with it: "emulated: cuBLASLt 13.1.0 has no grouped layouts (13.3 is needed)".
struct LinearChoice {
  LinearVerdict verdict = LinearVerdict::refused;
  std::string reason;
  std::string_view arithmetic;  // emulated: the architecture whose plans fit, "sm90" or "sm100"; else empty
};

// assay for block scaling on SM90, unless its kernel lacks a product that is needed; else cublaslt if the library has all of them, else
// emulated; refused where no path can run, also because this build has no code for the current device. `architecture` is the device's:
// 80, 90, 100, ... The choice depends on types only. A size that the path does not take (assay: K of forward or N of dgrad that is
// no multiple of 16; cublaslt: mostly rows of a matrix that are not a multiple of 16 bytes) is reported by the step, as NotSupported.
// Errors: InvalidArgument for a configuration that no path takes.
LinearChoice choose_linear_path(const LinearConfig& config, const LinearNeeds& needs, int architecture,
                                const LinearKernels& kernels = device_kernels());

// The path of a choice, for a layer's options: for emulated with the plan of each product on choice.arithmetic.
// Errors: NotSupported with the reason where the choice is refused, or where a product has no known plan.
LinearPath linear_path_of(const LinearChoice& choice, const LinearConfig& config, const LinearNeeds& needs);

}  // namespace assay::device
