#pragma once
// A grouped linear layer as a module: the steps of linear_steps.h with the memory that they need, the quantized weights cached
// from one microbatch to the next, and the tensors that forward saves for backward.
//
//   GroupedLinear layer(options);                       // allocates; so do reserve(), reserve_setup() and a first call on a stream
//   auto forward = layer.forward({...}, stream);        // y
//   layer.backward({.microbatch = forward.microbatch, ...}, stream);  // dx, dbias, dw, each if requested
//   layer.backward_dw(stream);                          // with defer_wgrad: dw, later
//
// Memory. Without options.pool all of it belongs to the module, two modules share none, and its addresses stay until reserve()
// has to enlarge it. With a pool (linear_pool.h) the modules of one stream share the memory that a call needs while it runs;
// tensors that live from forward to backward or longer belong to the module. Sizes depend on rows_capacity, never on splits.
// Memory that the cuBLASLt path keeps from call to call follows the rule of gemm_workspaces.h: a library workspace for each
// layout, set-up buffers for each stream and each capture. Calls of a module, and replays of graphs of them, run in stream
// order; on several streams the caller orders them. Without a pool backward_dw() may run at the same time as forward() and
// backward() of other microbatches that were in flight before it. The host reuses the buffers that backward_dw() frees at once:
// the stream of the next forward(), which may write to them, must wait for backward_dw().
//
// Device. A module belongs to the device that was current when it was made, and works there with any current device when
// it is called. Streams and tensors must be of that device; a stream that is not is refused.
//
// Threads. One thread calls a module at a time. Modules that share nothing may be called from several threads at once.
//
// Capture. Any call may be captured, forward and backward into separate graphs. Eager calls on a stream allocate set-up buffers
// for a few captures on it, and reserve_setup() for more; a capture that still lacks one allocates it outside the graph.
// Splits, data, scales and the skip flag may change between replays. A graph keeps using the buffers of the microbatch that
// its capture took: replay graphs in the order of their captures, backward after its forward. After a reserve() that enlarges
// memory, earlier graphs must not be replayed. Run a step before the first capture: CUDA and the library load kernels when
// they are first used.
//
// Splits. forward() copies them: backward uses those of its forward, even if the caller's have changed (spec grouped-linear-2.5).
//
// Weights (spec grouped-linear-2.1). With is_first_microbatch given, the first microbatch quantizes w into the cache, in both
// directions in one pass, and the others use the cache. Without it, w is quantized for this forward and its backward, and
// the cache does not change: each microbatch in flight keeps the codes that its dgrad reads. The cache may not be renewed
// before the dgrad of every microbatch that reads it. A captured forward fills the cache when its graph is replayed, which
// the module cannot detect: call note_cache_filled() before an eager call that uses it. With a skip flag the device decides at
// each run: exactly 1.0 keeps the cache, anything else renews it; the first run must renew, and no run may renew before a
// pending dgrad. Recipe none uses w itself, and backward reads it again.
//
// Main gradients (spec grouped-linear-2.3). dw += ... unless: fuse_accumulation is off, overwrite_main_grad is on, or it is the
// first microbatch and no skip flag is given. With a skip flag every microbatch adds, and the caller clears dw before a step.
//
// Deferred weight gradients (spec grouped-linear-2.4). With defer_wgrad, backward() keeps what wgrad needs and backward_dw()
// computes the oldest one; each once. x and dy may be reused after backward(). backward() itself computes bias gradients.
//
// Errors: InvalidArgument and NotSupported as the steps throw them; a call that throws does not change the module.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "device/cublaslt/gemm_workspaces.h"
#include "device/linear/linear_pool.h"
#include "device/linear/linear_steps.h"
#include "device/support/memory_source.h"
#include "reference/linear/microbatch.h"

namespace assay::device {

class Parts;  // linear_parts.h

struct GroupedLinearOptions {
  LinearConfig config;              // config.architecture is not used: the path has its own arithmetic
  int groups = 0;                   // G, 0 to 1024
  std::int64_t N = 0, K = 0;        // output and input features
  std::int64_t rows_capacity = 0;   // the largest rows.capacity of a call
  std::int64_t rows_multiple = 1;   // promised: LinearCall::rows_multiple. 16 (nvfp4: 32) saves wgrad of FP8 by cublaslt its
                                    // copies, and time for columnwise codes of block
  LinearPath path;                  // its pointers must outlive the module; settings.library_workspace and
                                    // settings.group_arrays null: the module or the pool has them
  LinearPool* pool = nullptr;       // shares scratch and workspaces with other modules, outlives this one; null: its own.
                                    // With a pool settings.workspace_bytes is the pool's
  bool dgrad = true, wgrad = true;  // what calls of backward() may request
  Format dw_type = Format::f32;
  bool fuse_accumulation = true;  // dw is a main gradient; false: wgrad overwrites it
  bool overwrite_main_grad = false;
  bool defer_wgrad = false;
  int microbatches = 1;             // forwards whose weight gradient may be outstanding at the same time
  bool cache_weights = true;        // calls may give is_first_microbatch or a skip flag
  bool fresh_weights = true;        // calls may give neither
  std::uint32_t* status = nullptr;  // device [1]: faults in device memory; null: not reported
};

struct GroupedLinearForward {
  const void* x = nullptr;     // [rows.capacity, K]; with config.activation gate and up, [rows.capacity, 2K]; recipe none:
                               // backward reads it again
  Rows rows;                   // groups as in the options
  LinearWeights w;             // always given: a skip flag may renew the cache
  const void* bias = nullptr;  // [G, N], or
  const void* const* bias_list = nullptr;  // host array [G] of device pointers, each [N]; both null: none
  const float* x_scale = nullptr;          // [G]: tensor_delayed
  const float* w_scale = nullptr;
  float* x_amax = nullptr;  // [G], written: per-tensor recipes; null: not requested
  float* w_amax = nullptr;  // where w is quantized
  std::optional<bool> is_first_microbatch = {};
  const float* skip_weight_update = nullptr;  // device [1]: 1.0 keeps the cached weights
  bool keep = true;                           // backward will follow
  void* y = nullptr;                          // [rows.capacity, N]
};
struct GroupedLinearForwardResult {
  int microbatch = -1;  // for backward(); -1: nothing was kept
  WeightUse weights = WeightUse::fresh;
  LinearReport report;
};

struct GroupedLinearBackward {
  int microbatch = -1;
  const void* dy = nullptr;         // [rows.capacity, N]
  const float* dy_scale = nullptr;  // [G]: tensor_delayed
  float* dy_amax = nullptr;
  void* dx = nullptr;     // [rows.capacity, K]: with config.activation the gradient of what that makes of gate and up;
                          // null: dgrad is not requested
  void* dbias = nullptr;  // [G, N], or
  void* const* dbias_list = nullptr;  // host array [G] of device pointers, each [N]; both null: not requested
  void* dw = nullptr;                 // [G*N, K], or
  void* const* dw_list = nullptr;     // host array [G] of device pointers, each [N, K]; both null: not requested
};
struct GroupedLinearBackwardResult {
  bool deferred = false;     // the weight gradient is deferred
  bool accumulated = false;  // it is added to dw (later, if deferred)
  LinearReport report;
};

class GroupedLinear {
 public:
  // `kernels` and `memory` must outlive the module. Errors: InvalidArgument, NotSupported, CudaError; nothing is kept.
  explicit GroupedLinear(const GroupedLinearOptions& options, const LinearKernels& kernels = device_kernels(),
                         const MemorySource& memory = device_memory());
  GroupedLinear(const GroupedLinear&) = delete;
  GroupedLinear& operator=(const GroupedLinear&) = delete;
  ~GroupedLinear();

  // Allocates memory for `rows` rows per call; a smaller number changes nothing. Not allowed while a microbatch is in flight or a
  // stream is captured.
  void reserve(std::int64_t rows);
  // Allocates set-up buffers for eager calls on this stream and for the next `captures` captures on it, some KiB each; only path
  // cublaslt needs any. An eager call does it too, for kCapturesAhead captures.
  // Errors: InvalidArgument; CudaError.
  void reserve_setup(Stream stream, int captures = GemmWorkspaces::kCapturesAhead);

  GroupedLinearForwardResult forward(const GroupedLinearForward& call, Stream stream);
  // Ends the microbatch, unless its weight gradient is deferred.
  GroupedLinearBackwardResult backward(const GroupedLinearBackward& call, Stream stream);
  // Computes the oldest deferred weight gradient. Errors: InvalidArgument if there is none.
  LinearReport backward_dw(Stream stream);
  // Call this when a graph whose forward renews the cache has been replayed. Errors: InvalidArgument if no such forward was
  // captured.
  void note_cache_filled();
  // Ends a microbatch without its backward. Errors: InvalidArgument if it is not in flight, or deferred.
  void drop(int microbatch);

  const GroupedLinearOptions& options() const { return options_; }  // with the current rows_capacity
  int in_flight() const;                                            // microbatches between forward and the end of their backward
  std::int64_t pending() const { return static_cast<std::int64_t>(deferred_.size()); }  // deferred weight gradients
  std::int64_t memory_bytes() const;                                                    // of the module, without its pool
  // The cached quantized weights, for inspection: device memory; null if there are none.
  const QuantizedStorage& weight_cache() const { return cache_; }

 private:
  enum class State : std::uint32_t { free = 0, forwarded = 1, deferred = 2 };
  // One place between forward and the end of wgrad.
  struct Microbatch {
    State state = State::free;
    // Memory.
    std::int64_t* splits = nullptr;
    QuantizedStorage fresh;                      // weights of this microbatch alone: columnwise its own, rowwise in the scratch
    QuantizedDirection x, dy;                    // columnwise; dy with defer_wgrad
    void *x_copy = nullptr, *dy_copy = nullptr;  // recipe none with defer_wgrad
    // From forward.
    Rows rows;
    const void* x_given = nullptr;  // recipe none
    LinearWeights w;                // recipe none
    std::vector<const void*> w_list;
    WeightUse weights = WeightUse::fresh;
    bool accumulate = false;
    // From backward.
    void* dw = nullptr;
    bool dw_is_list = false;
    std::vector<void*> dw_list;
  };
  struct Workspace {
    void* memory = nullptr;
    std::int64_t bytes = 0;
  };

  template <class Call>
  Call start(const Rows& rows) const;
  template <class Call>
  void give(Call& call, const Workspace& workspace) const;
  void give_path(LinearPath& path, GemmLayout layout, Stream stream);
  GemmWorkspaces& workspaces() { return options_.pool != nullptr ? options_.pool->workspaces() : *workspaces_; }
  // Each of these three hands out its memory or, if that is null, counts it.
  std::int64_t lay_out_lasting(void* memory);
  std::int64_t column_alignment() const {
    return column_alignment_of(options_.config, options_.path.path, options_.rows_multiple);
  }
  // Memory of x or dy, quantized columnwise; none for recipe none.
  QuantizedDirection take_columnwise(Parts& parts, LinearTensor tensor, std::int64_t capacity, std::int64_t columns) const;
  std::int64_t lay_out_rows(void* memory, std::int64_t rows);
  std::int64_t lay_out_scratch(void* memory, std::int64_t rows);
  void size_spaces(std::int64_t rows);
  void check_options() const;
  DeviceMemory allocate(std::int64_t bytes) const;
  // The beginning of every call: makes the device current, checks the stream, and finds the scratch memory.
  DeviceScope begin(Stream stream);
  void check_forward(const GroupedLinearForward& call, WeightUse use, bool capturing) const;
  LinearWeightsCall weights_call(const GroupedLinearForward& call, WeightUse use) const;
  Microbatch& at(int microbatch, State state);
  void check_backward(const GroupedLinearBackward& call) const;
  void defer(const GroupedLinearBackward& call, Microbatch& of, Stream stream);
  LinearDgradCall dgrad_call(const GroupedLinearBackward& call, const Microbatch& of, const QuantizedDirection& dy_columnwise,
                             void* dbias, Stream stream);
  LinearWgradCall wgrad_call(const Microbatch& of, const QuantizedDirection& dy, const void* plain_dy, const void* plain_x) const;

  // The heuristic is called once for each key.
  using AlgorithmKey = std::tuple<GemmLayout, std::int64_t, bool, bool>;  // layout, rows, accumulating, lists
  static AlgorithmKey dgrad_key(const Microbatch& of) { return {GemmLayout::NN, of.rows.capacity, false, of.w.list != nullptr}; }
  const CublasLtAlgorithm* known_algorithm(const AlgorithmKey& key, const CublasLtAlgorithm* pinned) const;
  void learn_algorithm(const AlgorithmKey& key, const LinearReport::Product& product);

  GroupedLinearOptions options_;
  std::string architecture_;  // of options_.config
  const LinearKernels& kernels_;
  const MemorySource& memory_;
  const int device_;
  std::optional<GemmWorkspaces> workspaces_;  // without a pool

  DeviceMemory lasting_;  // memory that does not depend on rows
  LinearConstants constants_;
  QuantizedStorage cache_;
  bool cache_filled_ = false, cache_filled_by_graph_ = false;
  void *bias_ = nullptr, *dbias_ = nullptr;  // [G, N], for lists

  DeviceMemory of_rows_;      // memory that does, and lives longer than a call
  DeviceMemory own_scratch_;  // without a pool
  void* scratch_ = nullptr;   // the current address of the following
  QuantizedStorage fresh_;    // weights of a forward without backward: rowwise
  QuantizedDirection dy_;     // columnwise, where wgrad follows at once
  Workspace weights_space_, forward_space_, dgrad_space_, gradient_space_;
  Workspace wgrad_space_;  // deferred: in of_rows_, as it may run at the same time as other calls; else in the scratch
  std::vector<Microbatch> microbatches_;
  std::deque<int> deferred_;
  std::map<AlgorithmKey, CublasLtAlgorithm> algorithms_;
};

}  // namespace assay::device
