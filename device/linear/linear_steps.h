#pragma once
// The steps of a grouped linear layer over device memory: the calls of reference/linear/grouped_linear.h, bit for bit, with
// a workspace of the caller's. G groups; group t has m_t = splits[t] rows.
//
//   forward  y_t  [m_t, N] = q(x_t) . q(w_t)^T + bias_t          layout TN
//   dgrad    dx_t [m_t, K] = q(dy_t) . q(w_t)                    layout NN
//   wgrad    dw_t [N, K]  (+)= q(dy_t)^T . q(x_t)                layout NT
//   dbias_t  [N] = sum of the rows of dy_t                       dbias/dbias.h
//
// Each step is quantize() of its operands, then one grouped GEMM by the path that the call names (linear_path.h). Forward
// and dgrad can, in the same pass, quantize x and dy in the direction that wgrad reads, so that either is read once.
//
// The bias gradient is summed within the quantization of dy where the quantize kernel can do it: always
// for mxfp8 and the per-tensor recipes, for block only when dy is quantized rowwise (spec grouped-linear-1.4), never for nvfp4
// and none. Otherwise grouped_dbias() does it. The bits are the same; LinearReport says which it was.
//
// No call allocates, synchronises or reads device memory on the host; all may be captured in a graph. Splits, data, scales,
// and the skip flag may change between replays. A step throws before it launches anything, except for errors of CUDA or the
// library at a launch.
//
// Give each layout its own workspace, or use path.settings for memory that outlives a call: gemm_workspaces.h. Matrices that are
// read must be 16-byte aligned; on the path cublaslt also those that are written.
//
// config.architecture is not used: the path determines the arithmetic.
//
// With config.activation (block, on SM90) x is given as gate and up [R, 2K]; quantization computes silu(gate) * up as it reads them, in
// both directions at once where x_columnwise is given. dgrad gives the gradient of that product: the backward of the activation is the
// caller's.
//
// Errors: InvalidArgument, naming the member of the call; NotSupported where the path cannot run, with the reason; on the device,
// in the status word, as quantize() and the GEMM report them (bad splits; nvfp4 with an odd extent that is packed; rows of a
// group that the library does not take): the outputs of the step are then invalid.

#include <cstdint>
#include <string>

#include "device/layout/groups.h"
#include "device/linear/linear_kernels.h"
#include "device/linear/linear_path.h"
#include "device/linear/linear_storage.h"
#include "device/support/error.h"
#include "device/support/stream.h"
#include "reference/linear/linear_config.h"

namespace assay::device {

enum class DbiasRoute : std::uint32_t { none = 0, fused = 1, separate = 2 };

// Which kernels a call used. Every step returns one; members of work that it did not do keep the values below.
struct LinearReport {
  struct Quantized {
    int calls = 0;  // of quantize(): one per step, or one per group for a list of weights
    bool rowwise = false, columnwise = false;
  };
  struct Product {
    bool ran = false;
    GemmPath path = GemmPath::cublaslt;
    CublasLtRoute route = CublasLtRoute::direct;  // cublaslt
    CublasLtAlgorithm algorithm;                  // cublaslt; id -1 where there is nothing to multiply
    int library_version = 0;                      // cublaslt
    std::int64_t rows_multiple = 1;               // cublaslt, assay: the promise that the product relied on; NT only
    bool pow2_scales = false;                     // assay: the promise that scales are powers of two; NT only
    std::string plan, unit;                       // emulated, assay: names of the arithmetic
  };
  Quantized x, dy, w;
  DbiasRoute dbias = DbiasRoute::none;
  Product forward, dgrad, wgrad;

  // "x quantized rowwise+columnwise; forward by cublaslt 13.10.0 direct: id 66, ..."
  std::string description() const;
};

// Device values that never change; a step whose call does not have them creates them in its workspace.
struct LinearConstants {
  const std::int64_t* weight_splits = nullptr;  // [G], each N
  const float* one = nullptr;                   // [1]: 1.0
};

// The caller's weights: all in one buffer, or each in its own.
struct LinearWeights {
  const void* data = nullptr;         // device [G*N, K], 16-byte aligned
  const void* const* list = nullptr;  // in place of data: host array [G] of device pointers, each [N, K], 16-byte aligned
};

// The arguments of every step.
struct LinearCall {
  LinearConfig config;
  Rows rows;                       // of x, dy, y and dx; splits on the device
  std::int64_t rows_multiple = 1;  // promised: every group's rows are a multiple of this. wgrad by cublaslt or assay relies on it
                                   // (GroupedGemmCall::rows_multiple): 16, for nvfp4 32, saves the workspace and the time for
                                   // copies of q(x) and q(dy). So does columnwise quantization of block, which 16 makes
                                   // faster (QuantizeCall::rows_multiple). A broken promise is reported in the status word
                                   // (kStatusUnalignedRows): that quantization, or that wgrad, then writes nothing, and results
                                   // computed from codes that were not written are invalid
  // Of columnwise q(x) and q(dy), the same in all steps of a layer: 1, or for block by assay 16 (device/layout/column_layout.h), with which
  // wgrad copies nothing, whatever rows the groups have. quantized_storage() takes it too.
  std::int64_t column_alignment = 1;
  std::int64_t N = 0;  // output features
  std::int64_t K = 0;  // input features
  LinearPath path;
  LinearConstants constants;
  void* workspace = nullptr;  // device, 256-byte aligned, of the step's ..._workspace_bytes(); contents undefined
  std::int64_t workspace_bytes = 0;
  std::uint32_t* status = nullptr;  // device [1], or null
};

struct LinearForwardCall : LinearCall {
  const void* x = nullptr;                  // [R, K]; with an activation [R, 2K]
  LinearWeights w;                          // not read with a cache
  const QuantizedStorage* cache = nullptr;  // quantized weights, rowwise; null, or recipe none: w is quantized, or used, directly
  const void* bias = nullptr;               // [G, N] or null
  const float* x_scale = nullptr;           // [G]: tensor_delayed
  const float* w_scale = nullptr;           // [G]: tensor_delayed, without cache
  float* x_amax = nullptr;                  // [G], written: per-tensor recipes; null: not requested
  QuantizedDirection x_columnwise;          // where q(x) for wgrad goes as well; not for recipe none
  void* y = nullptr;                        // [R, N]
};

struct LinearDgradCall : LinearCall {
  const void* dy = nullptr;                 // [R, N]
  LinearWeights w;                          // as in forward
  const QuantizedStorage* cache = nullptr;  // columnwise
  const float* dy_scale = nullptr;
  const float* w_scale = nullptr;
  float* dy_amax = nullptr;
  QuantizedDirection dy_columnwise;  // where q(dy) for wgrad goes as well
  void* dbias = nullptr;             // [G, N] in config.type, overwritten; null: not requested
  void* dx = nullptr;                // [R, K]
};

struct LinearWgradCall : LinearCall {
  const void* dy = nullptr;  // [R, N]; with dy_columnwise not read, except for recipe none
  const void* x = nullptr;   // [R, K], with an activation [R, 2K]; with x_columnwise not read, except for recipe none
  // Quantized before, with this config: scales of block are powers of two where config.powers_of_two() says so (GroupedGemmCall::pow2_scales).
  QuantizedDirection dy_columnwise;  // null data: dy is quantized in this step
  QuantizedDirection x_columnwise;
  const float* dy_scale = nullptr;  // tensor_delayed, where dy is quantized in this step
  const float* x_scale = nullptr;
  float* dy_amax = nullptr;        // where dy is quantized in this step
  void* dbias = nullptr;           // only where dy is quantized in this step, or recipe none
  Format dw_type = Format::f32;    // f32 for a main gradient; bf16, f16
  bool accumulate = false;         // dw += ...; false: dw is not read
  void* dw = nullptr;              // [G*N, K]
  void* const* dw_list = nullptr;  // in place of dw: host array [G] of device pointers, each [N, K]
};

// Quantizes dy for a later wgrad, where dgrad is not requested.
struct LinearGradientCall : LinearCall {
  const void* dy = nullptr;
  const float* dy_scale = nullptr;
  float* dy_amax = nullptr;
  QuantizedDirection dy_columnwise;
  void* dbias = nullptr;
};

// Quantizes the weights of all groups into a cache, in each direction that it has. Skip flag exactly 1.0: all of it stays
// as it is, data, scales and amax of both directions. Recipe none: nothing is done.
struct LinearWeightsCall : LinearCall {  // rows.groups is G; splits and capacity are not used
  LinearWeights w;
  const float* w_scale = nullptr;  // [G]: tensor_delayed
  float* w_amax = nullptr;         // [G], written: per-tensor recipes
  const float* noop = nullptr;     // device [1]; null: always renewed
  QuantizedStorage cache;
};

struct LinearDbiasCall : LinearCall {
  const void* dy = nullptr;
  void* dbias = nullptr;
};

// Sizes of the workspaces. They depend on sizes, types, path and on which pointers are null, and not on what they point to;
// `splits` may be null too.
std::int64_t linear_forward_workspace_bytes(const LinearForwardCall& call, const LinearKernels& kernels = device_kernels());
std::int64_t linear_dgrad_workspace_bytes(const LinearDgradCall& call, const LinearKernels& kernels = device_kernels());
std::int64_t linear_wgrad_workspace_bytes(const LinearWgradCall& call, const LinearKernels& kernels = device_kernels());
std::int64_t linear_quantize_gradient_workspace_bytes(const LinearGradientCall& call,
                                                      const LinearKernels& kernels = device_kernels());
std::int64_t linear_quantize_weights_workspace_bytes(const LinearWeightsCall& call,
                                                     const LinearKernels& kernels = device_kernels());
std::int64_t linear_dbias_workspace_bytes(const LinearDbiasCall& call, const LinearKernels& kernels = device_kernels());

LinearReport linear_forward(const LinearForwardCall& call, Stream stream, const LinearKernels& kernels = device_kernels());
LinearReport linear_dgrad(const LinearDgradCall& call, Stream stream, const LinearKernels& kernels = device_kernels());
LinearReport linear_wgrad(const LinearWgradCall& call, Stream stream, const LinearKernels& kernels = device_kernels());
LinearReport linear_quantize_gradient(const LinearGradientCall& call, Stream stream,
                                      const LinearKernels& kernels = device_kernels());
LinearReport linear_quantize_weights(const LinearWeightsCall& call, Stream stream,
                                     const LinearKernels& kernels = device_kernels());
LinearReport linear_dbias(const LinearDbiasCall& call, Stream stream, const LinearKernels& kernels = device_kernels());

// Whether dbias is summed within the quantization of dy, in these directions.
bool fuses_dbias(LinearRecipe recipe, bool rowwise, bool columnwise);

}  // namespace assay::device
