#include "device/cublaslt/cublaslt_gemm.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "device/cublaslt/bias.h"
#include "device/cublaslt/entry_points.h"
#include "device/cublaslt/group_setup.h"
#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_rows.h"
#include "device/support/call_device.h"
#include "device/support/launch_check.h"
#include "device/support/multiprocessors.h"

namespace assay::device {
namespace {

using cublaslt::Algorithm;
using cublaslt::Descriptor;
using cublaslt::Handle;
using cublaslt::HeuristicResult;

std::int64_t round_to_256(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

// ---------------------------------------------------------------------------------------------------------------------
// The library on the current device

struct Device {
  int ordinal = 0;
  int architecture = 0;  // 90, 100, ...
  Handle handle = nullptr;
};

std::string version_of(const CublasLtLibrary& library) { return "cuBLASLt " + library.version_text() + " (" + library.path() + ")"; }

std::string described(const GroupedGemmCall& call) {
  const GemmSides sides = gemm_sides(call);
  std::string text = std::string("kind ") + kind_name(call.kind) + ", layout " + layout_name(call.layout) + ", " +
                     std::to_string(call.rows.groups) + " groups, " + std::to_string(call.rows.capacity) + " rows, N " +
                     std::to_string(call.N) + ", K " + std::to_string(call.K);
  for (const GemmSide* side : {&sides.rows, &sides.columns}) {
    text += std::string(", ") + side->name + " " + type_name(side->operand->type) + (side->operand->columnwise ? " columnwise" : "");
  }
  if (call.kind == GemmKind::block && call.layout != GemmLayout::NT) {
    text += call.weight_block == WeightBlock::b128x128 ? ", w scaled 128x128" : ", w scaled 1x128";
  }
  return text + ", D " + type_name(call.d_type);
}

void check_library(int status, const char* what, const CublasLtLibrary& library, const GroupedGemmCall* call = nullptr) {
  if (status == cublaslt::kSuccess) return;
  const char* name = library.entry_points().status_name(status);
  const std::string text = std::string(what) + " of " + version_of(library) + " answers " +
                           (name == nullptr ? "status " + std::to_string(status) : std::string(name)) +
                           (call == nullptr ? std::string() : " to " + described(*call));
  if (status == cublaslt::kNotSupported) throw NotSupported(text);
  throw CudaError(text);
}

// One handle a device for the life of the process: the library's own destruction at exit may come after CUDA's.
Device current_device(const CublasLtLibrary& library) {
  static std::mutex mutex;
  static std::map<int, Device> devices;
  int ordinal = 0;
  check_cuda(cudaGetDevice(&ordinal), "cudaGetDevice");
  const std::lock_guard<std::mutex> lock(mutex);
  const auto known = devices.find(ordinal);
  if (known != devices.end()) return known->second;
  Device device;
  device.ordinal = ordinal;
  int major = 0, minor = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal), "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal), "cudaDeviceGetAttribute");
  device.architecture = 10 * major + minor;
  check_library(library.entry_points().create(&device.handle), "cublasLtCreate", library);
  devices[ordinal] = device;
  return device;
}

// ---------------------------------------------------------------------------------------------------------------------
// What is asked of a call

bool per_group_scalars(const Device& device) { return device.architecture >= 100; }

// Whether D has elements that sums of products make.
bool has_products(const GroupedGemmCall& call) {
  return call.rows.groups > 0 && call.rows.capacity > 0 && call.N > 0 && call.K > 0;
}

void require_row_bytes(std::int64_t elements, Format type, const std::string& name, const std::string& what) {
  if (elements * type_bits(type) % 128 == 0) return;
  throw NotSupported(name + " is " + std::to_string(elements) + ": cuBLASLt's grouped kernels need rows of " + what + " (" +
                     type_name(type) + ") that are a multiple of 16 bytes");
}

// Arrays of scales, by blocks, are read 16 bytes at a time. One scale per tensor is copied by the set-up.
void require_aligned_scales(const GroupedGemmCall& call, const GemmSide& side) {
  if (call.kind != GemmKind::block && call.kind != GemmKind::mxfp8 && call.kind != GemmKind::nvfp4) return;
  const std::string name = std::string(side.name) + ".scale_inv";
  if (side.operand->scale_inv != nullptr) require_pointer(side.operand->scale_inv, name, 16);
  if (side.operand->scale_inv_list == nullptr) return;
  for (int t = 0; t < call.rows.groups; ++t) require_pointer(side.operand->scale_inv_list[t], name + "_list[" + std::to_string(t) + "]", 16);
}

void check_settings(const GroupedGemmCall& call, const CublasLtSettings& settings) {
  require(settings.workspace_bytes >= 0, "workspace_bytes of the settings", settings.workspace_bytes, "a value of at least 0");
  require(settings.multiprocessors >= 0, "multiprocessors of the settings", settings.multiprocessors, "a value of at least 0");
  require(settings.sm_target >= 0, "sm_target", settings.sm_target, "a value of at least 0");
  require(settings.average_rows >= -1, "average_rows", settings.average_rows, "a value of at least -1");
  require(settings.average_columns >= -1, "average_columns", settings.average_columns, "a value of at least -1");
  require(settings.average_depth >= -1, "average_depth", settings.average_depth, "a value of at least -1");
  if (settings.library_workspace != nullptr) require_pointer(settings.library_workspace, "library_workspace", 256);
  if (settings.group_arrays != nullptr) require_pointer(settings.group_arrays, "group_arrays", 256);
  if (settings.host_scalars) {
    require(settings.bare, "host_scalars", "1", "0, but for the bare library");
    require(call.alpha == nullptr && call.beta == nullptr, "host_scalars", "1", "0 with alpha or beta on the device");
  }
  if (settings.route == CublasLtRoute::expanded_scales) {
    const bool tiles = call.kind == GemmKind::block && call.layout != GemmLayout::NT && call.weight_block == WeightBlock::b128x128;
    require(tiles, "route", "expanded_scales", "direct, but for 128x128 scales of w");
  }
}

// Everything that can be said before the library is asked.
void check_call(const GroupedGemmCall& call, const CublasLtSettings& settings, const CublasLtLibrary& library, const Device& device) {
  check_grouped_gemm(call);
  check_settings(call, settings);
  const std::string missing = library.missing(call, device.architecture);
  if (!missing.empty()) throw NotSupported(missing);
  const GemmSides sides = gemm_sides(call);
  if (call.kind == GemmKind::tensor && device.architecture < 100) {
    for (const GemmSide* side : {&sides.rows, &sides.columns}) {
      require(side->k_major, std::string(side->name) + ".columnwise", side->operand->columnwise,
              std::string(side->along_rows ? "columnwise" : "rowwise") + " storage, which FP8 reads in layout " +
                  layout_name(call.layout) + " below SM100");
    }
  }
  if (settings.bare || !has_products(call)) return;
  require_aligned_operands(call);
  require_aligned_output(call);
}

// ---------------------------------------------------------------------------------------------------------------------
// Descriptors

// A descriptor of the library, destroyed with its owner.
class Owned {
 public:
  explicit Owned(int (*destroy)(Descriptor)) : destroy_(destroy) {}
  ~Owned() {
    if (descriptor_ != nullptr) destroy_(descriptor_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Descriptor* address() { return &descriptor_; }
  Descriptor get() const { return descriptor_; }

 private:
  int (*destroy_)(Descriptor);
  Descriptor descriptor_ = nullptr;
};

int library_type(Format type) {
  switch (type) {
    case Format::f32: return cublaslt::kF32;
    case Format::bf16: return cublaslt::kBf16;
    case Format::f16: return cublaslt::kF16;
    case Format::e4m3: return cublaslt::kE4m3;
    case Format::e5m2: return cublaslt::kE5m2;
    default: return cublaslt::kE2m1;
  }
}

std::int32_t scale_mode(const GroupedGemmCall& call, const GemmSide& side, CublasLtRoute route) {
  switch (call.kind) {
    case GemmKind::tensor: return cublaslt::kScaleOneAGroup;
    case GemmKind::mxfp8: return cublaslt::kScaleVector32E8m0;
    case GemmKind::nvfp4: return cublaslt::kScaleVector16E4m3;
    default: break;
  }
  const bool tiles = side.weight && call.weight_block == WeightBlock::b128x128 && route == CublasLtRoute::direct;
  return tiles ? cublaslt::kScaleTile128F32 : cublaslt::kScaleVector128F32;
}

// Block scaling has no fast accumulation (spec grouped-linear-1.3), and only FP8 has it at all.
bool fast_accumulation(const GroupedGemmCall& call) {
  return (call.kind == GemmKind::tensor || call.kind == GemmKind::mxfp8) && !call.split_accumulator;
}

struct Product {
  Owned product, a, b, c, d;

  explicit Product(const CublasLtLibrary::EntryPoints& entry)
      : product(entry.product_destroy), a(entry.layout_destroy), b(entry.layout_destroy), c(entry.layout_destroy),
        d(entry.layout_destroy) {}
};

void describe(const CublasLtLibrary& library, const Device& device, const GroupedGemmCall& call, const CublasLtSettings& settings,
              CublasLtRoute route, const GroupArrays& arrays, Product& product) {
  const CublasLtLibrary::EntryPoints& entry = library.entry_points();
  const GemmSides sides = gemm_sides(call);
  const auto layout = [&](Owned& owned, Format type, const std::int32_t* rows, const std::int32_t* columns, const std::int32_t* leading) {
    check_library(entry.grouped_layout_create(owned.address(), library_type(type), call.rows.groups, rows, columns, leading),
                  "cublasLtGroupedMatrixLayoutCreate", library, &call);
  };
  layout(product.a, sides.columns.operand->type, arrays.a_rows, arrays.a_columns, arrays.a_leading);
  layout(product.b, sides.rows.operand->type, arrays.b_rows, arrays.b_columns, arrays.b_leading);
  layout(product.c, call.d_type, arrays.d_rows, arrays.d_columns, arrays.d_leading);
  layout(product.d, call.d_type, arrays.d_rows, arrays.d_columns, arrays.d_leading);

  check_library(entry.product_create(product.product.address(), cublaslt::kComputeF32, cublaslt::kF32), "cublasLtMatmulDescCreate",
                library, &call);
  const auto set = [&](int attribute, auto value) {
    const int status = entry.product_set(product.product.get(), attribute, &value, sizeof value);
    if (status != cublaslt::kSuccess) {
      const std::string what = "cublasLtMatmulDescSetAttribute(" + std::to_string(attribute) + ", " + std::to_string(sizeof value) + " bytes)";
      check_library(status, what.c_str(), library, &call);
    }
  };
  set(cublaslt::kTransposeA, sides.columns.k_major ? cublaslt::kTransposed : cublaslt::kPlain);
  set(cublaslt::kTransposeB, sides.rows.k_major ? cublaslt::kPlain : cublaslt::kTransposed);
  set(cublaslt::kPointerMode, settings.host_scalars ? cublaslt::kScalarsOnHost : cublaslt::kScalarsOnDevice);
  if (per_group_scalars(device) && !settings.host_scalars) {
    set(cublaslt::kAlphaStride, std::int64_t{1});
    set(cublaslt::kBetaStride, std::int64_t{1});
  }
  set(cublaslt::kFastAccumulation, static_cast<std::int8_t>(fast_accumulation(call)));
  if (call.kind != GemmKind::bf16 && call.kind != GemmKind::f16) {
    set(cublaslt::kScaleModeA, scale_mode(call, sides.columns, route));
    set(cublaslt::kScaleModeB, scale_mode(call, sides.rows, route));
    set(cublaslt::kScalePointerA, static_cast<const void*>(arrays.a_scale));
    set(cublaslt::kScalePointerB, static_cast<const void*>(arrays.b_scale));
  }
  if (settings.sm_target != 0) set(cublaslt::kSmTarget, static_cast<std::int32_t>(settings.sm_target));
}

// ---------------------------------------------------------------------------------------------------------------------
// The heuristic

struct Hints {
  std::int64_t rows, columns, depth;  // of D_t and of its sums, row-major
};

Hints hints_of(const GroupedGemmCall& call, const CublasLtSettings& settings) {
  const GemmSides sides = gemm_sides(call);
  const std::int64_t of_group = std::max<std::int64_t>(1, call.rows.capacity / std::max(1, call.rows.groups));
  const auto choose = [&](std::int64_t given, std::int64_t size) {
    return given >= 0 ? given : size == GemmSide::kOfGroup ? of_group : size;
  };
  return {choose(settings.average_rows, sides.rows.extent), choose(settings.average_columns, sides.columns.extent),
          choose(settings.average_depth, sides.rows.depth)};
}

CublasLtAlgorithm read_algorithm(const CublasLtLibrary& library, const HeuristicResult& result) {
  const CublasLtLibrary::EntryPoints& entry = library.entry_points();
  CublasLtAlgorithm algorithm;
  static_assert(sizeof algorithm.opaque == sizeof result.algorithm.data);
  std::memcpy(algorithm.opaque, result.algorithm.data, sizeof algorithm.opaque);
  algorithm.workspace_bytes = static_cast<std::int64_t>(result.workspace_bytes);
  algorithm.waves = result.waves;
  const auto read = [&](int attribute, int& value, auto as) {
    decltype(as) stored = 0;
    std::size_t written = 0;
    const bool known = entry.algorithm_get(&result.algorithm, attribute, &stored, sizeof stored, &written) == cublaslt::kSuccess;
    if (known) value = static_cast<int>(stored);
  };
  read(cublaslt::kAlgorithmId, algorithm.id, std::int32_t{});
  read(cublaslt::kTile, algorithm.tile, std::uint32_t{});
  read(cublaslt::kStages, algorithm.stages, std::uint32_t{});
  read(cublaslt::kSplitK, algorithm.split_k, std::int32_t{});
  read(cublaslt::kReduction, algorithm.reduction, std::uint32_t{});
  read(cublaslt::kSwizzle, algorithm.swizzle, std::uint32_t{});
  read(cublaslt::kCustom, algorithm.custom, std::uint32_t{});
  read(cublaslt::kInnerShape, algorithm.inner_shape, std::uint16_t{});
  read(cublaslt::kClusterShape, algorithm.cluster_shape, std::uint16_t{});
  return algorithm;
}

std::vector<CublasLtAlgorithm> ask_heuristic(const CublasLtLibrary& library, const Device& device, const GroupedGemmCall& call,
                                             const CublasLtSettings& settings, const Product& product, int at_most) {
  const CublasLtLibrary::EntryPoints& entry = library.entry_points();
  Owned preference(entry.preference_destroy);
  check_library(entry.preference_create(preference.address()), "cublasLtMatmulPreferenceCreate", library, &call);
  const auto prefer = [&](int attribute, auto value) {
    check_library(entry.preference_set(preference.get(), attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute",
                  library, &call);
  };
  const Hints hints = hints_of(call, settings);
  prefer(cublaslt::kMostWorkspaceBytes, static_cast<std::uint64_t>(settings.workspace_bytes));
  if (hints.columns != 0) prefer(cublaslt::kAverageRows, hints.columns);  // rows of the column-major D
  if (hints.rows != 0) prefer(cublaslt::kAverageColumns, hints.rows);
  if (hints.depth != 0) prefer(cublaslt::kAverageDepth, hints.depth);

  std::vector<HeuristicResult> results(static_cast<std::size_t>(at_most));
  int count = 0;
  check_library(entry.heuristic(device.handle, product.product.get(), product.a.get(), product.b.get(), product.c.get(),
                                product.d.get(), preference.get(), at_most, results.data(), &count),
                "cublasLtMatmulAlgoGetHeuristic", library, &call);
  std::vector<CublasLtAlgorithm> algorithms;
  for (int i = 0; i < count && i < at_most; ++i) {
    HeuristicResult& result = results[static_cast<std::size_t>(i)];
    if (result.state != cublaslt::kSuccess) continue;
    if (settings.tile >= 0) {
      const auto tile = static_cast<std::uint32_t>(settings.tile);
      HeuristicResult checked{};
      if (entry.algorithm_set(&result.algorithm, cublaslt::kTile, &tile, sizeof tile) != cublaslt::kSuccess) continue;
      if (entry.algorithm_check(device.handle, product.product.get(), product.a.get(), product.b.get(), product.c.get(),
                                product.d.get(), &result.algorithm, &checked) != cublaslt::kSuccess) {
        continue;
      }
      result.workspace_bytes = checked.workspace_bytes;
      result.waves = checked.waves;
    }
    algorithms.push_back(read_algorithm(library, result));
  }
  if (algorithms.empty()) {
    throw NotSupported("the heuristic of " + version_of(library) + " has no algorithm for " + described(call) +
                       (settings.tile >= 0 ? " with tile " + std::to_string(settings.tile) : std::string()));
  }
  return algorithms;
}

// All that the heuristic sees.
struct AlgorithmKey {
  std::int64_t hints[3], workspace_bytes;
  std::int32_t device, kind, layout, a_type, b_type, d_type, a_major, b_major, weight_block, route, fast, groups, sm_target, tile,
      host_scalars;
  bool operator<(const AlgorithmKey& other) const { return std::memcmp(this, &other, sizeof *this) < 0; }
};

AlgorithmKey key_of(const Device& device, const GroupedGemmCall& call, const CublasLtSettings& settings, CublasLtRoute route) {
  const GemmSides sides = gemm_sides(call);
  const Hints hints = hints_of(call, settings);
  AlgorithmKey key;
  std::memset(&key, 0, sizeof key);  // padding is compared too
  key.hints[0] = hints.rows, key.hints[1] = hints.columns, key.hints[2] = hints.depth;
  key.workspace_bytes = settings.workspace_bytes;
  key.device = device.ordinal;
  key.kind = static_cast<std::int32_t>(call.kind), key.layout = static_cast<std::int32_t>(call.layout);
  key.a_type = static_cast<std::int32_t>(sides.columns.operand->type), key.b_type = static_cast<std::int32_t>(sides.rows.operand->type);
  key.d_type = static_cast<std::int32_t>(call.d_type);
  key.a_major = sides.columns.k_major, key.b_major = sides.rows.k_major;
  key.weight_block = static_cast<std::int32_t>(call.weight_block), key.route = static_cast<std::int32_t>(route);
  key.fast = fast_accumulation(call);
  key.groups = call.rows.groups;
  key.sm_target = settings.sm_target, key.tile = settings.tile, key.host_scalars = settings.host_scalars;
  return key;
}

CublasLtAlgorithm chosen_algorithm(const CublasLtLibrary& library, const Device& device, const GroupedGemmCall& call,
                                   const CublasLtSettings& settings, CublasLtRoute route, const Product& product) {
  static std::mutex mutex;
  static std::map<AlgorithmKey, CublasLtAlgorithm> chosen;
  const AlgorithmKey key = key_of(device, call, settings, route);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto known = chosen.find(key);
    if (known != chosen.end()) return known->second;
  }
  const CublasLtAlgorithm algorithm = ask_heuristic(library, device, call, settings, product, 1).front();
  constexpr std::size_t kMaxRemembered = 4096;  // the heuristic answers the same when it is asked again
  const std::lock_guard<std::mutex> lock(mutex);
  if (chosen.size() >= kMaxRemembered) chosen.clear();
  return chosen.emplace(key, algorithm).first->second;
}

// ---------------------------------------------------------------------------------------------------------------------
// Workspace: the arrays of the groups, then expanded scales or copies of unaligned groups, then the library's

struct Parts {
  std::int64_t expanded_at = 0, aligned_a_at = 0, aligned_b_at = 0, library_at = 0, bytes = 0;
  bool copies_a = false, copies_b = false;
};

Parts parts_of(const GroupedGemmCall& call, const CublasLtSettings& settings, CublasLtRoute route) {
  Parts parts;
  parts.expanded_at = settings.group_arrays == nullptr ? group_arrays_bytes(call.rows.groups) : 0;
  const std::int64_t expanded = route == CublasLtRoute::expanded_scales ? 4 * expanded_scale_floats(call) : 0;
  parts.aligned_a_at = parts.expanded_at + round_to_256(expanded);
  const GemmSides sides = gemm_sides(call);
  const std::int64_t a = settings.bare ? 0 : aligned_copy_bytes(call, sides.columns);
  const std::int64_t b = settings.bare ? 0 : aligned_copy_bytes(call, sides.rows);
  parts.copies_a = a != 0, parts.copies_b = b != 0;
  parts.aligned_b_at = parts.aligned_a_at + round_to_256(a);
  parts.library_at = parts.aligned_b_at + round_to_256(b);
  parts.bytes = parts.library_at + (settings.library_workspace == nullptr ? round_to_256(settings.workspace_bytes) : 0);
  return parts;
}

}  // namespace

void require_aligned_operands(const GroupedGemmCall& call) {
  const GemmSides sides = gemm_sides(call);
  for (const GemmSide* side : {&sides.rows, &sides.columns}) {
    if (pitch_is_of_group(*side)) {
      if (call.layout != GemmLayout::NT) {
        throw NotSupported(std::string(side->name) + ".columnwise is 1: cuBLASLt is given rowwise storage in layout " +
                           layout_name(call.layout) + ", whose pitch does not depend on the group");
      }
      // The groups of a transposed operand begin at multiples of a row of the matrix.
      require_row_bytes(side->columns, side->operand->type, side->columns == call.N ? "N" : "K", side->name);
    } else {
      const bool transposed = side->k_major == side->along_rows;
      const std::int64_t pitch = transposed ? call.N : side->columns;
      require_row_bytes(pitch, side->operand->type, pitch == call.N ? "N" : "K", side->name);
    }
    require_aligned_scales(call, *side);
  }
}

void require_aligned_output(const GroupedGemmCall& call) {
  const std::int64_t d_columns = call.layout == GemmLayout::TN ? call.N : call.K;
  require_row_bytes(d_columns, call.d_type, call.layout == GemmLayout::TN ? "N" : "K", "D");
  if (call.d_list != nullptr) {
    for (int t = 0; t < call.rows.groups; ++t) require_pointer(call.d_list[t], "d_list[" + std::to_string(t) + "]", 16);
  } else {
    require_pointer(call.d, "d", 16);
  }
  if (call.c != nullptr) require_pointer(call.c, "c", 16);
}

std::string CublasLtAlgorithm::description() const {
  return "id " + std::to_string(id) + ", tile " + std::to_string(tile) + ", stages " + std::to_string(stages) + ", split-K " +
         std::to_string(split_k) + ", reduction " + std::to_string(reduction) + ", swizzle " + std::to_string(swizzle) + ", custom " +
         std::to_string(custom) + ", inner shape " + std::to_string(inner_shape) + ", cluster shape " +
         std::to_string(cluster_shape) + ", workspace " + std::to_string(workspace_bytes);
}

bool reads_wrong_scales(const GroupedGemmCall& call, int multiprocessors) {
  constexpr std::int64_t kCluster = 128, kBlock = 128, kBlocksAtFault = 8, kMostClusters = 66;  // measured with 132 multiprocessors
  const bool squares = call.kind == GemmKind::block && call.layout != GemmLayout::NT && call.weight_block == WeightBlock::b128x128;
  if (!squares || call.d_type != Format::f32) return false;
  const auto parts = [](std::int64_t extent, std::int64_t size) { return extent / size + (extent % size != 0); };
  const bool fprop = call.layout == GemmLayout::TN;
  const std::int64_t columns = fprop ? call.N : call.K, depth = fprop ? call.K : call.N;
  if (parts(depth, kBlock) % kBlocksAtFault != 0 || columns == 0) return false;
  // The rows of a group are known on the device only: over groups with rows, of which there are no more than rows,
  // sum ceil(r / 128) <= sum (r + 127) / 128 <= (capacity + 127 groups) / 128.
  const std::int64_t groups = std::min<std::int64_t>(call.rows.groups, call.rows.capacity);
  const std::int64_t most_across_rows = (call.rows.capacity + (kCluster - 1) * groups) / kCluster;
  const std::int64_t at_a_time = std::min<std::int64_t>(multiprocessors / 2, kMostClusters);
  return most_across_rows > at_a_time / parts(columns, kCluster);  // their product > at_a_time
}

CublasLtRoute cublaslt_route(const GroupedGemmCall& call, const CublasLtSettings& settings) {
  if (settings.bare) return CublasLtRoute::direct;
  if (settings.route) return *settings.route;
  const bool usual_clusters = settings.tile < 0 && settings.sm_target == 0;
  const int available = settings.multiprocessors != 0 ? settings.multiprocessors : multiprocessors();
  return reads_wrong_scales(call, usual_clusters ? available : 0) ? CublasLtRoute::expanded_scales : CublasLtRoute::direct;
}

std::vector<CublasLtAlgorithm> cublaslt_algorithms(const GroupedGemmCall& call, const CublasLtSettings& settings, int at_most) {
  require(at_most >= 1, "at_most", at_most, "a value of at least 1");
  const CallDevice on(nullptr, {{"x.data", call.x.data}, {"w.data", call.w.data}, {"dy.data", call.dy.data}, {"d", call.d}});
  const CublasLtLibrary& library = CublasLtLibrary::get();
  const Device device = current_device(library);
  check_call(call, settings, library, device);
  require(call.rows.groups >= 1, "rows.groups", call.rows.groups, "a value of at least 1");
  const CublasLtRoute route = cublaslt_route(call, settings);
  // The heuristic looks at no memory, only at whether there are addresses and how they are aligned.
  void* memory = call.workspace != nullptr ? call.workspace : reinterpret_cast<void*>(std::uintptr_t{1} << 20);
  Product product(library.entry_points());
  describe(library, device, call, settings, route, group_arrays(memory, call.rows.groups), product);
  return ask_heuristic(library, device, call, settings, product, at_most);
}

std::int64_t cublaslt_gemm_workspace_bytes(const GroupedGemmCall& call, const CublasLtSettings& settings) {
  check_settings(call, settings);
  return parts_of(call, settings, cublaslt_route(call, settings)).bytes;
}

namespace {

// The route was chosen without the stream. On fewer multiprocessors than were counted the library may read wrong scales.
void check_multiprocessors(const GroupedGemmCall& call, const CublasLtSettings& settings, CublasLtRoute route, Stream stream) {
  if (settings.bare || settings.route || route == CublasLtRoute::expanded_scales || !reads_wrong_scales(call, 0)) return;
  const int available = multiprocessors_of(stream);
  require(!reads_wrong_scales(call, available), "multiprocessors of the settings", settings.multiprocessors,
          std::to_string(available) + ", the part of the device that the stream's green context gives");
}

}  // namespace

void cublaslt_prepare() { current_device(CublasLtLibrary::get()); }

void cublaslt_grouped_gemm(const GroupedGemmCall& call, const CublasLtSettings& settings, const CublasLtAlgorithm* algorithm,
                           Stream stream) {
  const CallDevice on(stream, {{"workspace", call.workspace}, {"x.data", call.x.data}, {"w.data", call.w.data}, {"dy.data", call.dy.data},
                               {"d", call.d}, {"rows.splits", call.rows.splits}, {"library_workspace", settings.library_workspace}});
  const CublasLtLibrary& library = CublasLtLibrary::get();
  const Device device = current_device(library);
  check_call(call, settings, library, device);
  if (call.rows.groups == 0) return;
  const CublasLtRoute route = cublaslt_route(call, settings);
  check_multiprocessors(call, settings, route, stream);
  const Parts parts = parts_of(call, settings, route);
  if (parts.bytes != 0) require_pointer(call.workspace, "workspace", 256);
  require(call.workspace_bytes >= parts.bytes, "workspace_bytes", call.workspace_bytes,
          "at least " + std::to_string(parts.bytes) + " (cublaslt_gemm_workspace_bytes)");
  char* memory = static_cast<char*>(call.workspace);
  const GroupArrays arrays = group_arrays(settings.group_arrays != nullptr ? settings.group_arrays : memory, call.rows.groups);

  // The library is asked for its algorithm before anything is launched.
  const bool asked = settings.bare || has_products(call);
  Product product(library.entry_points());
  CublasLtAlgorithm chosen;
  if (asked) {
    describe(library, device, call, settings, route, arrays, product);
    chosen = algorithm != nullptr ? *algorithm : chosen_algorithm(library, device, call, settings, route, product);
    require(chosen.workspace_bytes <= settings.workspace_bytes, "workspace_bytes of the settings", settings.workspace_bytes,
            "at least " + std::to_string(chosen.workspace_bytes) + ", which the algorithm needs");
  }

  GroupSetupOptions options;
  options.keep_empty = settings.bare;
  options.row_unit = settings.bare || call.layout != GemmLayout::NT ? 1 : call.rows_multiple;
  if (parts.copies_a) options.aligned_a = memory + parts.aligned_a_at;
  if (parts.copies_b) options.aligned_b = memory + parts.aligned_b_at;
  if (route == CublasLtRoute::expanded_scales) options.expanded_scales = reinterpret_cast<float*>(memory + parts.expanded_at);
  if (!settings.skip_set_up) set_up_groups(call, arrays, options, stream);

  if (asked) {
    static const float kOne = 1, kZero = 0;
    const void *alpha = arrays.alpha, *beta = arrays.beta;  // one pair for the call
    if (settings.host_scalars) {
      alpha = &kOne, beta = &kZero;
    } else if (per_group_scalars(device)) {
      alpha = arrays.alpha_of, beta = arrays.beta_of;
    }
    void* workspace = settings.library_workspace != nullptr ? settings.library_workspace : memory + parts.library_at;
    Algorithm opaque;
    std::memcpy(opaque.data, chosen.opaque, sizeof opaque.data);
    const int status = library.entry_points().matmul(
        device.handle, product.product.get(), alpha, arrays.a, product.a.get(), arrays.b, product.b.get(), beta, arrays.c,
        product.c.get(), arrays.d, product.d.get(), &opaque, workspace, static_cast<std::size_t>(settings.workspace_bytes), stream);
    if (status != cublaslt::kSuccess) {
      check_library(status, ("cublasLtMatmul (" + chosen.description() + ")").c_str(), library, &call);
    }
  }
  add_group_bias(call, stream);
}

}  // namespace assay::device
