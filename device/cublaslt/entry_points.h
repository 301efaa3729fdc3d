#pragma once
// The part of libcublasLt that this folder uses, declared without its header: older headers lack the grouped entry points, and
// descriptors are larger in newer ones, so the library creates them and they are held by pointer. Enumerations are passed as int.

#include <cstddef>
#include <cstdint>

#include "device/cublaslt/cublaslt_library.h"

namespace assay::device {

namespace cublaslt {

struct Algorithm {
  std::uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
using Handle = void*;
using Descriptor = void*;  // of a product, a layout or a preference

// cublasStatus_t
inline constexpr int kSuccess = 0, kNotSupported = 15;

// cudaDataType, cublasComputeType_t, cublasOperation_t
inline constexpr int kF32 = 0, kF16 = 2, kBf16 = 14, kE4m3 = 28, kE5m2 = 29, kE2m1 = 33;
inline constexpr int kComputeF32 = 68;
inline constexpr std::int32_t kPlain = 0, kTransposed = 1;

// Attributes of a product: int32 unless stated.
inline constexpr int kPointerMode = 2, kTransposeA = 3, kTransposeB = 4, kSmTarget = 15;
inline constexpr int kScalePointerA = 17, kScalePointerB = 18;  // pointer
inline constexpr int kFastAccumulation = 25;                    // int8
inline constexpr int kScaleModeA = 31, kScaleModeB = 32;
inline constexpr int kAlphaStride = 39, kBetaStride = 40;  // int64
inline constexpr std::int32_t kScalarsOnHost = 0, kScalarsOnDevice = 1;
inline constexpr std::int32_t kScaleVector16E4m3 = 1, kScaleVector32E8m0 = 2, kScaleVector128F32 = 4, kScaleTile128F32 = 5,
                              kScaleOneAGroup = 6;

// Attributes of a preference.
inline constexpr int kMaxWorkspaceBytes = 1;                                       // uint64
inline constexpr int kAverageDepth = 13, kAverageRows = 14, kAverageColumns = 15;  // int64

// Attributes of an algorithm: the first seven 32 bits wide, the last two 16.
inline constexpr int kAlgorithmId = 0, kTile = 1, kSplitK = 2, kReduction = 3, kSwizzle = 4, kCustom = 5, kStages = 6,
                     kInnerShape = 7, kClusterShape = 8;

}  // namespace cublaslt

struct CublasLtLibrary::EntryPoints {
  using Handle = cublaslt::Handle;
  using Descriptor = cublaslt::Descriptor;

  std::size_t (*version)();
  const char* (*status_name)(int status);
  int (*create)(Handle*);
  int (*product_create)(Descriptor*, int compute, int scale_type);
  int (*product_destroy)(Descriptor);
  int (*product_set)(Descriptor, int attribute, const void* value, std::size_t bytes);
  int (*layout_destroy)(Descriptor);
  int (*preference_create)(Descriptor*);
  int (*preference_destroy)(Descriptor);
  int (*preference_set)(Descriptor, int attribute, const void* value, std::size_t bytes);
  int (*heuristic)(Handle, Descriptor product, Descriptor a, Descriptor b, Descriptor c, Descriptor d, Descriptor preference,
                   int most, cublaslt::HeuristicResult* results, int* count);
  int (*algorithm_get)(const cublaslt::Algorithm*, int attribute, void* value, std::size_t bytes, std::size_t* written);
  int (*algorithm_set)(cublaslt::Algorithm*, int attribute, const void* value, std::size_t bytes);
  int (*algorithm_check)(Handle, Descriptor product, Descriptor a, Descriptor b, Descriptor c, Descriptor d,
                         const cublaslt::Algorithm*, cublaslt::HeuristicResult* result);
  int (*matmul)(Handle, Descriptor product, const void* alpha, const void* a_data, Descriptor a, const void* b_data, Descriptor b,
                const void* beta, const void* c_data, Descriptor c, void* d_data, Descriptor d, const cublaslt::Algorithm*,
                void* workspace, std::size_t workspace_bytes, Stream);

  // 13.2 and newer. The arrays are on the device, 32-bit integers unless the layout says otherwise.
  int (*grouped_layout_create)(Descriptor*, int type, int groups, const void* rows, const void* columns, const void* leading);
};

}  // namespace assay::device
