// Backend `cublaslt`: the vendor's library as it is, to be judged. Op grouped_gemm only; every candidate of its heuristic
// is an algorithm, and each setting of the library beside the call is an axis.
//
// The library reads only rows of 16-byte multiples. It does not check that where sizes lie on the device, and a kernel that
// faults makes every later case fail: such calls are declared absent, unless option "unaligned=on" has them made.

#include <cuda_runtime_api.h>

#include <charconv>
#include <cstdio>
#include <sstream>

#include "conformance/backends/built_in.h"
#include "conformance/backends/device/cuda_backend.h"
#include "conformance/backends/device/gemm_path.h"
#include "conformance/ops/request.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr int kMaxAlgorithms = 256;

struct Axis {
  const char* name;
  const char* description;
  const char* values;  // the first is the default
};
// clang-format off
constexpr Axis kAxes[] = {
    {"workspace", "Bytes of workspace that the library may use", "33554432 0 1048576 4194304 67108864"},
    {"sm_target", "Multiprocessors that the library may use; 0: all", "0 132 66 1"},
    {"average_hints", "Average sizes of groups, as a hint to the heuristic: derived from capacity, none, half and twice those", "derived none half twice one"},
    {"pointer_mode", "Where alpha and beta are; host takes only 1 and 0", "device host"},
};
// clang-format on

std::int64_t number_of(const std::string& name, const std::string& value, std::int64_t most) {
  std::int64_t number = -1;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool good = read.ec == std::errc{} && read.ptr == value.data() + value.size() && number >= 0 && number <= most;
  if (!good) throw InvalidArgument("axis " + name, "'" + value + "'", "a number from 0 to " + std::to_string(most));
  return number;
}

// The same for the same configuration, in every process: 31 bits of FNV-1a.
std::int64_t id_of(const std::string& configuration, int twin) {
  std::uint32_t hash = 2166136261u;
  for (const char letter : configuration + "#" + std::to_string(twin))
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash & 0x7fff'ffffu;
}

struct Candidate {
  std::int64_t id = 0;
  device::CublasLtAlgorithm algorithm;
};

class CublasLtCalls : public CudaCalls {
 public:
  CublasLtCalls(GemmOptions options, bool unaligned) : options_(options), unaligned_(unaligned) { settings_.bare = true; }

  std::string software() override { return describe_gemm_path(options_); }

  // Reads the splits: no caller of the library could, but the harness has them there, and here they only decide whether the
  // call is made.
  void look(const assay_call& call) override {
    fault_of_splits_.clear();
    splits_ = nullptr;
    if (unaligned_ || call.op == nullptr || call.op != std::string("grouped_gemm")) return;
    const Request request = Request::of(call);
    const GemmRequest parsed(request);
    const device::GroupedGemmCall& shape = parsed.shape();
    const GemmKind kind = shape.kind;
    if (shape.layout != GemmLayout::NT ||
        (kind != GemmKind::fp8_per_tensor && kind != GemmKind::fp8_block && kind != GemmKind::nvfp4))
      return;
    const TensorView* tensor = request.find_input("splits");
    if (tensor == nullptr || tensor->data == nullptr || tensor->type != Format::i64) return;
    std::vector<std::int64_t> splits(static_cast<std::size_t>(tensor->elements()));
    device::check_cuda(cudaMemcpy(splits.data(), tensor->data, splits.size() * 8, cudaMemcpyDeviceToHost), "read the splits");
    const std::int64_t unit = kind == GemmKind::nvfp4 ? 32 : 16;
    for (std::size_t g = 0; g < splits.size() && fault_of_splits_.empty(); ++g) {
      if (splits[g] % unit == 0) continue;
      splits_ = tensor->data;
      fault_of_splits_ = "group " + std::to_string(g) + " has " + std::to_string(splits[g]) +
                         " rows; in layout NT the library reads " + std::string(assay::name_of(kind)) +
                         " operands in rows of that length, which must be a multiple of " + std::to_string(unit);
    }
  }

  DeviceCall prepare(const assay_call& call) override {
    GemmRequest request = parse(call);
    const device::CublasLtSettings settings = settings_for(request);
    device::cublaslt_prepare();
    device::check_cublaslt_gemm(request.shape(), settings);
    const bool pinned = call.algorithm != -1;
    const device::CublasLtAlgorithm algorithm =
        pinned ? candidate(request, settings, call.algorithm).algorithm : device::CublasLtAlgorithm{};
    // What the heuristic refuses is refused before the constants of the call are written to its workspace.
    if (!pinned && request.is_wanted() && request.shape().rows.groups > 0) {
      static_cast<void>(device::cublaslt_algorithms(request.shape(), settings, 1));
    }
    const std::int64_t bytes = device::cublaslt_gemm_workspace_bytes(request.shape(), settings);
    const std::int64_t own = request.parts().add(bytes);
    return {request.parts().bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
              if (!request.is_wanted()) return request.check_contents(status, stream);
              device::GroupedGemmCall ready = request.bind(workspace, status, stream);
              ready.workspace = bytes == 0 ? nullptr : part<void>(workspace, own);
              ready.workspace_bytes = bytes;
              device::cublaslt_grouped_gemm(ready, settings, pinned ? &algorithm : nullptr, stream);
            }};
  }

  void state(const assay_call& call, assay_numerics& numerics) override {
    numerics.deterministic = -1;
    numerics.batch_invariant = -1;
    const GemmRequest request = parse(call);
    if (!request.is_wanted()) return;
    const device::CublasLtSettings settings = settings_for(request);
    const std::vector<Candidate> all = candidates(request, settings);
    if (all.empty()) return;
    const Candidate chosen = call.algorithm == -1 ? all.front() : candidate(request, settings, call.algorithm);
    PlanKey key = cublaslt_key(request, options_);
    key.split_k = chosen.algorithm.split_k;
    if (options_.assumed_version == 0) {
      if (settings.sm_target != 0) key.sm_count = settings.sm_target;
      key.workspace = settings.workspace_bytes;
      key.algorithm = chosen.algorithm.id;
      key.tile = chosen.algorithm.tile;
    }
    state_plan(plan_for(key), numerics);
  }

  std::vector<assay_algorithm> algorithms(const assay_call& call) override {
    const GemmRequest request = parse(call);
    std::vector<assay_algorithm> all;
    if (!request.is_wanted()) return all;
    for (const Candidate& each : candidates(request, settings_for(request))) {
      assay_algorithm made{};
      made.id = each.id;
      std::snprintf(made.description, sizeof made.description, "%s", each.algorithm.description().c_str());
      made.workspace_bytes = each.algorithm.workspace_bytes;
      all.push_back(made);
    }
    return all;
  }

  std::vector<assay_axis> axes() override {
    std::vector<assay_axis> all;
    for (const Axis& each : kAxes) {
      assay_axis made{};
      std::snprintf(made.name, sizeof made.name, "%s", each.name);
      std::snprintf(made.description, sizeof made.description, "%s", each.description);
      std::snprintf(made.values, sizeof made.values, "%s", each.values);
      all.push_back(made);
    }
    return all;
  }

  void set_axis(const std::string& name, const std::string& value) override {
    for (const Axis& each : kAxes) {
      if (name != each.name) continue;
      const std::string chosen = value.empty() ? std::string(each.values).substr(0, std::string(each.values).find(' ')) : value;
      return set(name, chosen, each.values);
    }
    std::string names;
    for (const Axis& each : kAxes) names += std::string(names.empty() ? "" : ", ") + each.name;
    throw InvalidArgument("axis", "'" + name + "'", names);
  }

 private:
  void set(const std::string& name, const std::string& value, const char* values) {
    if (name == "workspace") {
      settings_.workspace_bytes = number_of(name, value, std::int64_t{1} << 36);
    } else if (name == "sm_target") {
      settings_.sm_target = static_cast<int>(number_of(name, value, 1 << 16));
    } else {
      std::istringstream words(values);
      bool known = false;
      for (std::string word; words >> word;) known = known || word == value;
      if (!known) throw InvalidArgument("axis " + name, "'" + value + "'", std::string("one of ") + values);
      if (name == "pointer_mode") settings_.host_scalars = value == "host";
      if (name == "average_hints") hints_ = value;
    }
  }

  // Errors: NotSupported where the library lacks the path.
  GemmRequest parse(const assay_call& call) const {
    const Request request = Request::of(call);
    if (request.op() != "grouped_gemm")
      throw NotSupported("backend cublaslt is the library's grouped GEMM; op " + request.op() + " is none of it");
    GemmRequest parsed(request);
    const auto missing = unaligned_ ? cublaslt_missing : why_not_cublaslt;
    if (const std::string why = missing(parsed.shape(), parsed.architecture()); !why.empty()) throw NotSupported(why);
    if (!unaligned_ && parsed.is_wanted()) {  // with or without rows, the bare library is to write D
      if (const std::string why = why_not_written(parsed.shape()); !why.empty()) throw NotSupported(why);
    }
    // The workspace is sized before the splits are read: splits that were read may be those of the previous call.
    const bool looked_at = call.workspace != nullptr && request.input("splits").data == splits_;
    if (looked_at && !fault_of_splits_.empty()) throw NotSupported(fault_of_splits_);
    if (parsed.plan() != nullptr)
      throw NotSupported("the library cannot be made to follow plan " + std::string(parsed.plan()->name));
    if (parsed.shape().bias != nullptr) throw NotSupported("the library's grouped GEMM has no bias");
    if (settings_.host_scalars && !parsed.has_plain_scalars())
      throw NotSupported("pointer mode host takes only alpha 1 and beta 0 here");
    return parsed;
  }

  // Hints as the axis says, from the sizes that the host knows.
  device::CublasLtSettings settings_for(const GemmRequest& request) const {
    device::CublasLtSettings settings = settings_;
    if (hints_ == "derived") return settings;
    const device::GroupedGemmCall& shape = request.shape();
    const std::int64_t rows = std::max<std::int64_t>(shape.rows.capacity / std::max(shape.rows.groups, 1), 1);
    const std::int64_t D[] = {shape.layout == GemmLayout::NT ? shape.N : rows, shape.layout == GemmLayout::TN ? shape.N : shape.K,
                              shape.layout == GemmLayout::TN   ? shape.K
                              : shape.layout == GemmLayout::NN ? shape.N
                                                               : rows};
    const auto hint = [&](std::int64_t exact) {
      return hints_ == "none" ? 0 : hints_ == "half" ? std::max<std::int64_t>(exact / 2, 1) : hints_ == "twice" ? exact * 2 : 1;
    };
    settings.average_rows = hint(D[0]);
    settings.average_columns = hint(D[1]);
    settings.average_depth = hint(D[2]);
    return settings;
  }

  static std::vector<Candidate> candidates(const GemmRequest& request, const device::CublasLtSettings& settings) {
    std::vector<Candidate> all;
    if (request.shape().rows.groups == 0) return all;
    for (const device::CublasLtAlgorithm& each : device::cublaslt_algorithms(request.shape(), settings, kMaxAlgorithms)) {
      const std::string configuration = each.description();
      int twins = 0;
      for (const Candidate& other : all) twins += other.algorithm.description() == configuration;
      all.push_back({id_of(configuration, twins), each});
    }
    return all;
  }

  static Candidate candidate(const GemmRequest& request, const device::CublasLtSettings& settings, std::int64_t id) {
    for (const Candidate& each : candidates(request, settings)) {
      if (each.id == id) return each;
    }
    throw NotSupported("the heuristic offers no algorithm " + std::to_string(id) + " for this call (assay list --algorithms)");
  }

  GemmOptions options_;
  bool unaligned_ = false;
  const void* splits_ = nullptr;  // of the call that was checked last, if its splits are invalid
  std::string fault_of_splits_;
  device::CublasLtSettings settings_;
  std::string hints_ = "derived";
};

std::unique_ptr<CudaCalls> open_cublaslt(const std::vector<std::string>& options) {
  std::vector<std::string> others;
  bool unaligned = false;
  for (const std::string& each : options) {
    if (each == "unaligned=on" || each == "unaligned=off") {
      unaligned = each == "unaligned=on";
    } else {
      others.push_back(each);
    }
  }
  return std::make_unique<CublasLtCalls>(gemm_options(others, false), unaligned);
}

constexpr CudaBackend kCublasLt{"cublaslt",
                                "the vendor library's grouped GEMM as it is, to be judged",
                                "unaligned=on|off, assume_plan=VERSION (13.10)",
                                open_cublaslt,
                                true,
                                true};

}  // namespace

const assay_backend* cublaslt_backend() { return cuda_table<kCublasLt>(); }

}  // namespace assay::conformance
