#pragma once
// assay::device for callers without C++: device pointers in, an int out. bench/peers/device_calls.py calls it by ctypes.
//
// Every function returns 0, or 1 with the reason in assay_bench_error(). Calls are asynchronous on the stream. `workspace` null: nothing
// is launched, and *workspace_bytes becomes what the call needs.

#include <stdint.h>

#if defined(__GNUC__)
#define ASSAY_BENCH_API __attribute__((visibility("default")))
#else
#define ASSAY_BENCH_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct assay_bench_rows {
  int64_t rows;           // of the buffer
  const int64_t* splits;  // device, [groups]; null: one group of all rows
  int32_t groups;
};

// bf16 x [rows, columns] to e4m3 codes and f32 scales.
struct assay_bench_quantize_call {
  struct assay_bench_rows rows;
  int64_t columns;
  const char* preset;   // a scale rule by name; null: recipe block_1x128, whose scales are stored as spec layouts-2.1 says
  const char* block;    // with a preset: "1x128", "1xall"
  const char* storage;  // with a preset: "k_major", ...
  const void* x;
  void* data;
  void* scale_inv;
};

// D [rows, N] = x [rows, K] . w [N, K]^T for each group, FP8 blocks of 1x128 by 128x128, bf16 D. Scales as spec layouts-2.1 stores them.
struct assay_bench_product_call {
  struct assay_bench_rows rows;
  int64_t N, K;
  const void *x, *x_scales, *w, *w_scales;
  void* d;
};

ASSAY_BENCH_API const char* assay_bench_error(void);  // of this thread's last call that failed
// Uses this cuBLASLt instead of the loader's.
ASSAY_BENCH_API int assay_bench_use_cublaslt(const char* path);
ASSAY_BENCH_API int assay_bench_cublaslt_version(int* version);  // 131000: 13.10.0
ASSAY_BENCH_API int assay_bench_quantize(const struct assay_bench_quantize_call* call, void* workspace, int64_t* workspace_bytes,
                                         uint32_t* status, void* stream);
// `own` is the kernel of device/fp8_block_gemm; the others go through cuBLASLt. The bare library is without the production path; `alone` without the set-up too: an equal call of the bare
// library has left its arrays in the workspace.
enum assay_bench_route { assay_bench_production = 0, assay_bench_bare = 1, assay_bench_alone = 2, assay_bench_own = 3 };
ASSAY_BENCH_API int assay_bench_product(const struct assay_bench_product_call* call, int route, void* workspace,
                                        int64_t* workspace_bytes, uint32_t* status, void* stream);
// By the emulated tensor core, under a plan by name or line: the bits that another implementation of that plan must have.
ASSAY_BENCH_API int assay_bench_predict(const struct assay_bench_product_call* call, const char* plan, void* workspace,
                                        int64_t* workspace_bytes, uint32_t* status, void* stream);

#ifdef __cplusplus
}
#endif
