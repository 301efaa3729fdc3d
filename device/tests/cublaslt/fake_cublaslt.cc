// The symbols of libcublasLt that are looked up when it is loaded. The version is that of FAKE_CUBLASLT_VERSION.

#include <cstddef>
#include <cstdlib>

namespace {
constexpr int kNotSupported = 15;
}

extern "C" {
std::size_t cublasLtGetVersion() {
  const char* version = std::getenv("FAKE_CUBLASLT_VERSION");
  return version == nullptr ? 0 : static_cast<std::size_t>(std::atoll(version));
}
const char* cublasLtGetStatusName(int) { return "FAKE_STATUS"; }
int cublasLtCreate(void**) { return kNotSupported; }
int cublasLtMatmulDescCreate() { return kNotSupported; }
int cublasLtMatmulDescDestroy() { return kNotSupported; }
int cublasLtMatmulDescSetAttribute() { return kNotSupported; }
int cublasLtMatrixLayoutDestroy() { return kNotSupported; }
int cublasLtMatmulPreferenceCreate() { return kNotSupported; }
int cublasLtMatmulPreferenceDestroy() { return kNotSupported; }
int cublasLtMatmulPreferenceSetAttribute() { return kNotSupported; }
int cublasLtMatmulAlgoGetHeuristic() { return kNotSupported; }
int cublasLtMatmulAlgoConfigGetAttribute() { return kNotSupported; }
int cublasLtMatmulAlgoConfigSetAttribute() { return kNotSupported; }
int cublasLtMatmulAlgoCheck() { return kNotSupported; }
int cublasLtMatmul() { return kNotSupported; }
#ifdef FAKE_GROUPED_LAYOUTS
int cublasLtGroupedMatrixLayoutCreate() { return kNotSupported; }
#endif
}
