// The report of `assay doctor` on cuBLASLt.

#include <cuda_runtime_api.h>

#include <map>

#include "conformance/backends/built_in.h"
#include "device/cublaslt/cublaslt_library.h"

namespace assay::conformance {
namespace {

// Kinds that the library lacks, by reason; with their layouts if it has others.
std::map<std::string, std::string> lacks(const device::CublasLtLibrary& library, int architecture) {
  std::map<std::string, std::string> by_reason;
  for (const GemmKind kind :
       {GemmKind::bf16, GemmKind::f16, GemmKind::fp8_per_tensor, GemmKind::fp8_block, GemmKind::mxfp8, GemmKind::nvfp4}) {
    std::map<std::string, std::string> layouts;  // by the reason
    for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
      device::GroupedGemmCall call;
      call.kind = kind;
      call.layout = layout;
      call.d_type = kind == GemmKind::f16 ? Format::f16 : Format::bf16;
      const Format type = kind == GemmKind::bf16    ? Format::bf16
                          : kind == GemmKind::f16   ? Format::f16
                          : kind == GemmKind::nvfp4 ? Format::e2m1
                                                    : Format::e4m3;
      call.x.type = call.w.type = call.dy.type = type;
      const std::string why = library.missing(call, architecture);
      if (why.empty()) continue;
      layouts[why] += " " + std::string(assay::name_of(layout));
    }
    for (const auto& [why, missing] : layouts) {
      std::string& names = by_reason[why];
      names += (names.empty() ? "" : ", ") + std::string(assay::name_of(kind)) + (missing == " TN NN NT" ? "" : missing);
    }
  }
  return by_reason;
}

}  // namespace

std::vector<std::string> cublaslt_findings() {
  std::vector<std::string> lines;
  try {
    const device::CublasLtLibrary& library = device::CublasLtLibrary::get();
    const int version = library.version();
    lines.push_back(std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
                    std::to_string(version % 100) + ", " + library.path() +
                    (library.has_grouped_layouts() ? "" : ", without grouped layouts") + " (ASSAY_CUBLASLT names another)");
    std::vector<int> architectures{90, 100};
    int device = 0, major = 0, minor = 0;
    if (cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess) {
      architectures = {major * 10 + minor};
    }
    cudaGetLastError();
    for (const int architecture : architectures) {
      const std::map<std::string, std::string> missing = lacks(library, architecture);
      const std::string where = "sm" + std::to_string(architecture);
      if (missing.empty()) lines.push_back("has every grouped product on " + where);
      for (const auto& [why, names] : missing) lines.push_back("lacks on " + where + ": " + names + ": " + why);
    }
  } catch (const device::NotSupported& error) {
    lines.push_back(std::string(error.what()) + "; grouped products run by the emulated GEMM");
  }
  return lines;
}

}  // namespace assay::conformance
