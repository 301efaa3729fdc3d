#include "bench/peers/device_calls.h"

#include <dlfcn.h>

#include <exception>
#include <string>

#include "device/cublaslt/cublaslt_gemm.h"
#include "device/cublaslt/cublaslt_library.h"
#include "device/emulated_gemm/emulated_gemm.h"
#include "device/fp8_block_gemm/fp8_block_gemm.h"
#include "device/quantize/by_rule/by_rule.h"
#include "device/quantize/quantize.h"
#include "reference/types/error.h"

namespace assay::bench {
namespace {

thread_local std::string last_error;
constexpr std::int64_t kSomeBytes = 256;  // of a call that needs none: a workspace that is null asks for the size

template <typename Call>
int guarded(Call call) {
  try {
    call();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return 1;
}

device::Rows rows_of(const assay_bench_rows& given) {
  device::Rows rows;
  rows.capacity = given.rows;
  rows.splits = given.splits;
  rows.groups = given.splits == nullptr ? 1 : given.groups;
  return rows;
}

void quantize_block(const assay_bench_quantize_call& given, void* workspace, std::int64_t* workspace_bytes, std::uint32_t* status,
                    device::Stream stream) {
  device::QuantizeCall call;
  call.config.recipe = Recipe::block_1x128;
  call.x = given.x;
  call.rows = rows_of(given.rows);
  call.columns = given.columns;
  call.output.rowwise_data = given.data;
  call.output.rowwise_scale_inv = given.scale_inv;
  if (workspace == nullptr) {
    *workspace_bytes = device::quantize_workspace_bytes(call);
    return;
  }
  call.workspace = workspace;
  call.workspace_bytes = *workspace_bytes;
  call.status = status;
  device::quantize(call, stream);
}

void quantize_preset(const assay_bench_quantize_call& given, void* workspace, std::int64_t* workspace_bytes,
                     std::uint32_t* status, device::Stream stream) {
  device::QuantizeByRuleCall call;
  call.rule = find_scale_rule(given.preset);
  if (call.rule == nullptr) throw InvalidArgument("preset", given.preset, "the name of a scale rule");
  call.block = parse_block_shape("block", given.block);
  call.storage = parse_scale_storage("storage", given.storage);
  call.x = given.x;
  call.rows = rows_of(given.rows);
  call.columns = given.columns;
  call.output_to.data = given.data;
  call.output_to.scale = given.scale_inv;
  if (workspace == nullptr) {
    *workspace_bytes = device::quantize_by_rule_workspace_bytes(call);
    return;
  }
  call.workspace = workspace;
  call.workspace_bytes = *workspace_bytes;
  call.status = status;
  device::quantize_by_rule(call, stream);
}

device::GroupedGemmCall product_of(const assay_bench_product_call& given, void* workspace, std::int64_t workspace_bytes,
                                   std::uint32_t* status) {
  device::GroupedGemmCall call;
  call.kind = GemmKind::fp8_block;
  call.layout = GemmLayout::TN;
  call.rows = rows_of(given.rows);
  call.N = given.N;
  call.K = given.K;
  call.x = {.type = Format::e4m3, .data = given.x, .scale_inv = given.x_scales};
  call.w = {.type = Format::e4m3, .data = given.w, .scale_inv = given.w_scales};
  call.weight_block = WeightBlock::b128x128;
  call.split_accumulator = true;
  call.d_type = Format::bf16;
  call.d = given.d;
  call.workspace = workspace;
  call.workspace_bytes = workspace_bytes;
  call.status = status;
  return call;
}

}  // namespace
}  // namespace assay::bench

using namespace assay;
using namespace assay::bench;

const char* assay_bench_error(void) { return last_error.c_str(); }

int assay_bench_use_cublaslt(const char* path) {
  return guarded([&] {
    // Deep binding: PyTorch has put the symbols of its own cuBLASLt where they would come first.
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (handle == nullptr) throw device::NotSupported(dlerror());
    device::CublasLtLibrary::use(handle, path);
  });
}

int assay_bench_cublaslt_version(int* version) {
  return guarded([&] { *version = device::CublasLtLibrary::get().version(); });
}

int assay_bench_quantize(const assay_bench_quantize_call* call, void* workspace, std::int64_t* workspace_bytes,
                         std::uint32_t* status, void* stream) {
  return guarded([&] {
    const auto on = static_cast<device::Stream>(stream);
    if (call->preset == nullptr) {
      quantize_block(*call, workspace, workspace_bytes, status, on);
    } else {
      quantize_preset(*call, workspace, workspace_bytes, status, on);
    }
  });
}

int assay_bench_product(const assay_bench_product_call* call, int route, void* workspace, std::int64_t* workspace_bytes,
                        std::uint32_t* status, void* stream) {
  return guarded([&] {
    const device::GroupedGemmCall product = product_of(*call, workspace, *workspace_bytes, status);
    if (route == assay_bench_own) {
      if (workspace == nullptr) {
        *workspace_bytes = kSomeBytes;
      } else {
        device::fp8_block_grouped_gemm(product, {}, static_cast<device::Stream>(stream));
      }
      return;
    }
    device::CublasLtSettings settings;
    settings.bare = route != assay_bench_production;
    settings.skip_set_up = route == assay_bench_alone;
    if (workspace == nullptr) {
      device::cublaslt_prepare();
      *workspace_bytes = device::cublaslt_gemm_workspace_bytes(product, settings);
      return;
    }
    device::cublaslt_grouped_gemm(product, settings, nullptr, static_cast<device::Stream>(stream));
  });
}

int assay_bench_predict(const assay_bench_product_call* call, const char* plan, void* workspace, std::int64_t* workspace_bytes,
                        std::uint32_t* status, void* stream) {
  return guarded([&] {
    device::EmulatedArithmetic arithmetic;
    arithmetic.plan = find_accumulation_plan(plan);
    if (arithmetic.plan == nullptr) throw InvalidArgument("plan", plan, "the name or the line of an accumulation plan");
    arithmetic.unit = find_tensor_core_unit(arithmetic.plan->unit);
    const device::GroupedGemmCall product = product_of(*call, workspace, *workspace_bytes, status);
    if (workspace == nullptr) {
      *workspace_bytes = device::emulated_gemm_workspace_bytes(product, arithmetic);
      return;
    }
    device::emulated_grouped_gemm(product, arithmetic, static_cast<device::Stream>(stream));
  });
}
