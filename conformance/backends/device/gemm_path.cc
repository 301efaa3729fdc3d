#include "conformance/backends/device/gemm_path.h"

#include <charconv>
#include <cstdio>

#include "conformance/backends/device/cuda_backend.h"
#include "conformance/backends/stated_plan.h"
#include "device/cublaslt/cublaslt_library.h"
#include "device/emulated_gemm/emulated_gemm.h"
#include "device/fp8_block_gemm/fp8_block_gemm.h"
#include "device/layout/check_rows.h"
#include "device/layout/group_table.cuh"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// "13.10" or "13.10.1" as the library counts: 131000, 131001.
int version_of(const std::string& text) {
  int parts[3] = {-1, -1, 0};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 3; ++i) {
    const auto read = std::from_chars(at, end, parts[i]);
    at = read.ptr;
    if (read.ec != std::errc{} || at == end) break;
    if (*at != '.') break;
    ++at;
  }
  const bool good = at == end && parts[0] >= 1 && parts[1] >= 0 && parts[1] < 100 && parts[2] >= 0 && parts[2] < 100;
  if (!good) throw InvalidArgument("--backend-options assume_plan", "'" + text + "'", "a version of cuBLASLt, as 13.10");
  return parts[0] * 10000 + parts[1] * 100 + parts[2];
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

// The plan that the emulated path follows: the named one, or the table's for the requested architecture.
const AccumulationPlan& emulated_plan(const GemmRequest& request) {
  const AccumulationPlan* plan = request.plan() != nullptr ? request.plan() : plan_for(request.key());
  if (plan == nullptr) {
    throw NotSupported("no accumulation plan is known for kind " + std::string(assay::name_of(request.shape().kind)) +
                       ", layout " + std::string(assay::name_of(request.shape().layout)) + " on architecture \"" +
                       request.architecture() + "\"");
  }
  const TensorCoreUnit* unit = find_tensor_core_unit(plan->unit);
  if (unit == nullptr) throw InvalidArgument("plan.unit", plan->unit, "a row of the tensor-core table");
  const std::string missing = device::emulation_missing(*unit);
  if (!missing.empty()) throw NotSupported(missing);
  return *plan;
}

// A beta that the plan cannot take (spec grouped-gemm-2.6), where it is a number that the host knows: else the device reports it.
void require_beta(const GemmRequest& request, const AccumulationPlan& plan) {
  if (plan.epilogue == GemmEpilogue::scaled_alpha_beta || request.beta().value_or(1) == 1) return;
  throw InvalidArgument("attribute beta", std::to_string(*request.beta()), "1 where the plan adds onto C in memory");
}

// The call of one path, whose own workspace of `bytes` follows that of the request. `launch`: of the path, over a call that has all
// addresses. `reports_alone`: it reports wrong splits also where D has no elements.
template <class Launch>
DeviceCall bound_call(GemmRequest request, std::int64_t bytes, bool reports_alone, Launch launch) {
  const std::int64_t own = request.parts().add(bytes);
  return {request.parts().bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
            if (!reports_alone && !request.has_elements()) return request.check_contents(status, stream);
            device::GroupedGemmCall ready = request.bind(workspace, status, stream);
            ready.workspace = bytes == 0 ? nullptr : part<void>(workspace, own);
            ready.workspace_bytes = bytes;
            launch(ready, stream);
          }};
}

DeviceCall emulated_call(GemmRequest request) {
  const AccumulationPlan& plan = emulated_plan(request);
  const device::EmulatedArithmetic arithmetic{&plan, find_tensor_core_unit(plan.unit)};
  require_beta(request, plan);
  device::check_emulated_gemm(request.shape(), arithmetic);
  const std::int64_t bytes = device::emulated_gemm_workspace_bytes(request.shape(), arithmetic);
  return bound_call(std::move(request), bytes, true, [=](const device::GroupedGemmCall& call, device::Stream stream) {
    device::emulated_grouped_gemm(call, arithmetic, stream);
  });
}

DeviceCall assay_call(GemmRequest request) {
  const device::Fp8BlockSettings settings = assay_settings(request.plan());
  const std::int64_t bytes = device::fp8_block_gemm_workspace_bytes(request.shape(), settings);
  return bound_call(std::move(request), bytes, false, [=](const device::GroupedGemmCall& call, device::Stream stream) {
    device::fp8_block_grouped_gemm(call, settings, stream);
  });
}

DeviceCall cublaslt_call(GemmRequest request) {
  const device::CublasLtSettings settings;
  device::cublaslt_prepare();
  device::check_cublaslt_gemm(request.shape(), settings);
  const std::int64_t bytes = device::cublaslt_gemm_workspace_bytes(request.shape(), settings);
  return bound_call(std::move(request), bytes, false, [=](const device::GroupedGemmCall& call, device::Stream stream) {
    device::cublaslt_grouped_gemm(call, settings, nullptr, stream);
  });
}

// The plan of cublaslt_call(): the route around the defect calls the 1x128 by 1x128 kernel. Null: none is known.
const AccumulationPlan* cublaslt_plan(const GemmRequest& request, const GemmOptions& options) {
  const device::CublasLtSettings settings;
  PlanKey key = cublaslt_key(request, options);
  if (options.assumed_version == 0) key.workspace = settings.workspace_bytes;
  if (device::cublaslt_route(request.shape(), settings) == device::CublasLtRoute::expanded_scales)
    key.weight_block = WeightBlock::b1x128;
  return plan_for(key);
}

// The path of this request. Errors: NotSupported where option `gemm` names a path that does not exist for it.
GemmPath path_of(const GemmRequest& request, const GemmOptions& options) {
  if (options.path == GemmPath::emulated) return GemmPath::emulated;
  if (options.may_take_assay()) {
    const std::string why = why_not_assay(request.shape(), request.architecture(), request.plan());
    if (why.empty()) return GemmPath::assay;
    if (options.path == GemmPath::assay) throw NotSupported(why);
  }
  std::string why = why_not_cublaslt(request.shape(), request.architecture());
  if (why.empty() && request.plan() != nullptr) {  // a named plan is followed by any path that can
    const AccumulationPlan* const followed = cublaslt_plan(request, options);
    if (followed == nullptr || plan_line(*followed) != plan_line(*request.plan())) {
      why = "the request names the plan " + std::string(request.plan()->name) + ", which cuBLASLt is not known to follow here";
    }
  }
  if (why.empty()) return GemmPath::cublaslt;
  if (options.path == GemmPath::cublaslt) throw NotSupported(why);
  return GemmPath::emulated;
}

GemmRequest parse(const Request& request, const GemmOptions& options) {
  GemmRequest parsed(request);
  if (options.passes_lists) parsed.pass_lists();
  parsed.promise(options.promises);
  return parsed;
}

}  // namespace

GemmOptions gemm_options(const std::vector<std::string>& options, bool with_path) {
  GemmOptions made;
  for (const std::string& each : options) {
    const std::string key = each.substr(0, each.find('='));
    std::string value = each.substr(key.size() + 1);
    if (key == "gemm" && value == "bringup") value = "emulated";  // its name until 2026-11, kept in recorded commands
    if (key == "assume_plan") {
      made.assumed_version = version_of(value);
    } else if (key == "gemm" && with_path) {
      if (value != "auto" && value != "assay" && value != "cublaslt" && value != "emulated") {
        throw InvalidArgument("--backend-options gemm", "'" + value + "'", "auto, assay, cublaslt or emulated");
      }
      made.path = value == "auto"       ? GemmPath::automatic
                  : value == "assay"    ? GemmPath::assay
                  : value == "cublaslt" ? GemmPath::cublaslt
                                        : GemmPath::emulated;
    } else if (key == "rows_multiple" && with_path) {
      const char* const last = value.data() + value.size();
      std::int64_t& rows = made.promises.rows_multiple;
      const auto read = std::from_chars(value.data(), last, rows);
      const bool good = read.ec == std::errc{} && read.ptr == last && rows >= 1 && rows <= device::kMaxRows;
      if (!good)
        throw InvalidArgument("--backend-options rows_multiple", "'" + value + "'", "1 to " + std::to_string(device::kMaxRows));
    } else if ((key == "lists" || key == "pow2_scales") && with_path) {
      if (value != "on" && value != "off") throw InvalidArgument("--backend-options " + key, "'" + value + "'", "on or off");
      (key == "lists" ? made.passes_lists : made.promises.pow2_scales) = value == "on";
    } else {
      throw InvalidArgument("--backend-options", "'" + each + "'", with_path ? kGemmOptionsHelp : "assume_plan=VERSION (13.10)");
    }
  }
  return made;
}

device::Fp8BlockSettings assay_settings(const AccumulationPlan* plan) {
  device::Fp8BlockSettings settings;
  if (plan == nullptr) return settings;
  const bool rows_first = plan->promotion == Promotion::fma_rows_first;
  settings.order = rows_first ? device::Fp8BlockOrder::rows_first : device::Fp8BlockOrder::scales_first;
  return settings;
}

const AccumulationPlan& assay_plan(const device::GroupedGemmCall& call, const AccumulationPlan* plan) {
  return *find_accumulation_plan(device::fp8_block_gemm_plan(call, assay_settings(plan)));
}

std::string why_not_assay(const device::GroupedGemmCall& call, const std::string& architecture, const AccumulationPlan* plan) {
  const Architecture here = current_architecture();
  if (architecture != here.name)
    return "the FP8 block GEMM computes with the arithmetic of this device, " + here.name + "; the request asks for that of " +
           architecture;
  const std::string missing = device::fp8_block_gemm_missing(call, assay_settings(plan));
  if (!missing.empty()) return missing;
  for (const device::GemmOperand* operand : {&call.x, &call.w, &call.dy})
    if (!device::is_aligned(operand->scale_inv, 16)) return "the FP8 block GEMM takes scales at multiples of 16 bytes";
  if (plan != nullptr && plan_line(assay_plan(call, plan)) != plan_line(*plan))
    return "the request names the plan " + std::string(plan->name) + ", which the FP8 block GEMM does not follow";
  return "";
}

std::string why_not_cublaslt(const device::GroupedGemmCall& call, const std::string& architecture) {
  std::string why = cublaslt_missing(call, architecture);
  if (!why.empty() || call.rows.groups == 0 || call.rows.capacity == 0 || call.N == 0 || call.K == 0) return why;
  try {
    device::cublaslt_algorithms(call, {}, 1);
  } catch (const device::NotSupported& error) {
    why = error.what();
  }
  return why;
}

std::string why_not_written(const device::GroupedGemmCall& call) {
  try {
    device::require_aligned_output(call);
  } catch (const device::NotSupported& error) {
    return error.what();
  }
  return "";
}

std::string cublaslt_missing(const device::GroupedGemmCall& call, const std::string& architecture) {
  const Architecture here = current_architecture();
  if (architecture != here.name) {
    return "cuBLASLt computes with the arithmetic of this device, " + here.name + "; the request asks for that of " +
           architecture;
  }
  try {
    return device::CublasLtLibrary::get().missing(call, here.number);
  } catch (const device::NotSupported& error) {
    return error.what();
  }
}

PlanKey cublaslt_key(const GemmRequest& request, const GemmOptions& options) {
  PlanKey key = request.key();
  key.library = "cublaslt";
  if (options.assumed_version != 0) {
    key.version_from = key.version_to = options.assumed_version;
    return key;
  }
  key.version_from = key.version_to = device::CublasLtLibrary::get().version();
  key.sm_count = current_architecture().multiprocessors;
  return key;
}

// What the library refuses is refused here, where nothing is enqueued yet: the constants of a call are written to its workspace.
DeviceCall gemm_call(const Request& request, const GemmOptions& options) {
  GemmRequest parsed = parse(request, options);
  device::check_grouped_gemm(parsed.shape());
  switch (path_of(parsed, options)) {
    case GemmPath::assay: return assay_call(std::move(parsed));
    case GemmPath::cublaslt: return cublaslt_call(std::move(parsed));
    default: return emulated_call(std::move(parsed));
  }
}

void state_plan(const AccumulationPlan* plan, assay_numerics& numerics) {
  if (plan == nullptr) return;
  put_plan(numerics, plan->name);
  std::snprintf(numerics.unit, sizeof numerics.unit, "%.*s", static_cast<int>(plan->unit.size()), plan->unit.data());
}

void state_gemm(const Request& request, const GemmOptions& options, assay_numerics& numerics) {
  const GemmRequest parsed = parse(request, options);
  switch (path_of(parsed, options)) {
    case GemmPath::assay: return state_plan(&assay_plan(parsed.shape(), parsed.plan()), numerics);
    case GemmPath::cublaslt: return state_plan(cublaslt_plan(parsed, options), numerics);
    default: return state_plan(&emulated_plan(parsed), numerics);
  }
}

std::string describe_gemm_path(const GemmOptions& options) {
  if (options.path == GemmPath::emulated) return "grouped GEMM by the emulated GEMM";
  if (options.path == GemmPath::assay) return "grouped GEMM by the FP8 block GEMM";
  device::GroupedGemmCall blocks;
  blocks.kind = GemmKind::fp8_block;
  const bool takes_blocks = options.may_take_assay() && device::fp8_block_gemm_missing(blocks, {}).empty();
  const std::string own = takes_blocks ? ", FP8 blocks by the FP8 block GEMM" : "";
  try {
    const device::CublasLtLibrary& library = device::CublasLtLibrary::get();
    return "cuBLASLt " + version_text(library.version()) + (library.has_grouped_layouts() ? "" : " without grouped layouts") +
           own;
  } catch (const device::NotSupported&) {
    return "no cuBLASLt: grouped GEMM by the emulated GEMM" + own;
  }
}

}  // namespace assay::conformance
