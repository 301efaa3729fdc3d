#include "device/cublaslt/cublaslt_gemm.h"

#include <cstring>
#include <string>

#include "device/cublaslt/bias.h"
#include "device/cublaslt/entry_points.h"
#include "device/cublaslt/gemm_checks.h"
#include "device/cublaslt/group_setup.h"
#include "device/cublaslt/heuristic.h"
#include "device/cublaslt/library_device.h"
#include "device/cublaslt/product.h"
#include "device/layout/check_rows.h"
#include "device/support/call_device.h"
#include "device/support/multiprocessors.h"

namespace assay::device {
namespace {

using namespace cublaslt;

std::int64_t round_to_256(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

// The workspace: the arrays of the groups, then expanded scales or copies of unaligned groups, then the library's part.
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

std::vector<CublasLtAlgorithm> cublaslt_algorithms(const GroupedGemmCall& call, const CublasLtSettings& settings, int at_most) {
  require(at_most >= 1, "at_most", at_most, "a value of at least 1");
  const CallDevice on(nullptr, {{"x.data", call.x.data}, {"w.data", call.w.data}, {"dy.data", call.dy.data}, {"d", call.d}});
  const CublasLtLibrary& library = CublasLtLibrary::get();
  const Device device = current_device(library);
  check_call(call, settings, library, device);
  require(call.rows.groups >= 1, "rows.groups", call.rows.groups, "a value of at least 1");
  const CublasLtRoute route = cublaslt_route(call, settings);
  // The heuristic reads no memory. Only the alignment of addresses matters, and whether they are null.
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

void check_cublaslt_gemm(const GroupedGemmCall& call, const CublasLtSettings& settings) {
  const CublasLtLibrary& library = CublasLtLibrary::get();
  check_call(call, settings, library, current_device(library));
}

void cublaslt_grouped_gemm(const GroupedGemmCall& call, const CublasLtSettings& settings, const CublasLtAlgorithm* algorithm,
                           Stream stream) {
  const CallDevice on(stream, {{"workspace", call.workspace},
                               {"x.data", call.x.data},
                               {"w.data", call.w.data},
                               {"dy.data", call.dy.data},
                               {"d", call.d},
                               {"rows.splits", call.rows.splits},
                               {"library_workspace", settings.library_workspace}});
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

  // The algorithm is chosen before anything is launched.
  const bool multiplies = settings.bare || has_products(call);
  Product product(library.entry_points());
  CublasLtAlgorithm chosen;
  if (multiplies) {
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

  if (multiplies) {
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
    const int status =
        library.entry_points().matmul(device.handle, product.product.get(), alpha, arrays.a, product.a.get(), arrays.b,
                                      product.b.get(), beta, arrays.c, product.c.get(), arrays.d, product.d.get(), &opaque,
                                      workspace, static_cast<std::size_t>(settings.workspace_bytes), stream);
    if (status != cublaslt::kSuccess) {
      check_library(status, ("cublasLtMatmul (" + chosen.description() + ")").c_str(), library, &call);
    }
  }
  add_group_bias(call, stream);
}

}  // namespace assay::device
