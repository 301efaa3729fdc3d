#include "device/cublaslt/heuristic.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "device/cublaslt/group_setup.h"

namespace assay::device {
namespace cublaslt {
namespace {

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
    const bool known = entry.algorithm_get(&result.algorithm, attribute, &stored, sizeof stored, &written) == kSuccess;
    if (known) value = static_cast<int>(stored);
  };
  read(kAlgorithmId, algorithm.id, std::int32_t{});
  read(kTile, algorithm.tile, std::uint32_t{});
  read(kStages, algorithm.stages, std::uint32_t{});
  read(kSplitK, algorithm.split_k, std::int32_t{});
  read(kReduction, algorithm.reduction, std::uint32_t{});
  read(kSwizzle, algorithm.swizzle, std::uint32_t{});
  read(kCustom, algorithm.custom, std::uint32_t{});
  read(kInnerShape, algorithm.inner_shape, std::uint16_t{});
  read(kClusterShape, algorithm.cluster_shape, std::uint16_t{});
  return algorithm;
}

// Everything that the heuristic depends on.
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
  key.a_type = static_cast<std::int32_t>(sides.columns.operand->type),
  key.b_type = static_cast<std::int32_t>(sides.rows.operand->type);
  key.d_type = static_cast<std::int32_t>(call.d_type);
  key.a_major = sides.columns.k_major, key.b_major = sides.rows.k_major;
  key.weight_block = static_cast<std::int32_t>(call.weight_block), key.route = static_cast<std::int32_t>(route);
  key.fast = fast_accumulation(call);
  key.groups = call.rows.groups;
  key.sm_target = settings.sm_target, key.tile = settings.tile, key.host_scalars = settings.host_scalars;
  return key;
}

}  // namespace

std::vector<CublasLtAlgorithm> ask_heuristic(const CublasLtLibrary& library, const Device& device, const GroupedGemmCall& call,
                                             const CublasLtSettings& settings, const Product& product, int max_count) {
  const CublasLtLibrary::EntryPoints& entry = library.entry_points();
  Owned preference(entry.preference_destroy);
  check_library(entry.preference_create(preference.address()), "cublasLtMatmulPreferenceCreate", library, &call);
  const auto prefer = [&](int attribute, auto value) {
    check_library(entry.preference_set(preference.get(), attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute",
                  library, &call);
  };
  const Hints hints = hints_of(call, settings);
  prefer(kMaxWorkspaceBytes, static_cast<std::uint64_t>(settings.workspace_bytes));
  if (hints.columns != 0) prefer(kAverageRows, hints.columns);  // rows of the column-major D
  if (hints.rows != 0) prefer(kAverageColumns, hints.rows);
  if (hints.depth != 0) prefer(kAverageDepth, hints.depth);

  std::vector<HeuristicResult> results(static_cast<std::size_t>(max_count));
  int count = 0;
  check_library(entry.heuristic(device.handle, product.product.get(), product.a.get(), product.b.get(), product.c.get(),
                                product.d.get(), preference.get(), max_count, results.data(), &count),
                "cublasLtMatmulAlgoGetHeuristic", library, &call);
  std::vector<CublasLtAlgorithm> algorithms;
  for (int i = 0; i < count && i < max_count; ++i) {
    HeuristicResult& result = results[static_cast<std::size_t>(i)];
    if (result.state != kSuccess) continue;
    if (settings.tile >= 0) {
      const auto tile = static_cast<std::uint32_t>(settings.tile);
      HeuristicResult checked{};
      if (entry.algorithm_set(&result.algorithm, kTile, &tile, sizeof tile) != kSuccess) continue;
      if (entry.algorithm_check(device.handle, product.product.get(), product.a.get(), product.b.get(), product.c.get(),
                                product.d.get(), &result.algorithm, &checked) != kSuccess) {
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
  constexpr std::size_t kMaxRemembered = 4096;  // the heuristic would choose the same again
  const std::lock_guard<std::mutex> lock(mutex);
  if (chosen.size() >= kMaxRemembered) chosen.clear();
  return chosen.emplace(key, algorithm).first->second;
}

}  // namespace cublaslt

std::string CublasLtAlgorithm::description() const {
  return "id " + std::to_string(id) + ", tile " + std::to_string(tile) + ", stages " + std::to_string(stages) + ", split-K " +
         std::to_string(split_k) + ", reduction " + std::to_string(reduction) + ", swizzle " + std::to_string(swizzle) +
         ", custom " + std::to_string(custom) + ", inner shape " + std::to_string(inner_shape) + ", cluster shape " +
         std::to_string(cluster_shape) + ", workspace " + std::to_string(workspace_bytes);
}

}  // namespace assay::device
