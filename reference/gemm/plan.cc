// The plans that are known, as lines (spec plans-1.5), and the keys under which they were found (spec plans-2.1, plans-2.2).

#include "reference/gemm/plan.h"

#include <vector>

#include "reference/types/error.h"

namespace assay {
namespace {

constexpr std::string_view kMeasured = "measured: cuBLASLt 13.4 to 13.10 on an H200 predicted in every element";
constexpr std::string_view kOwn =
    "measured on H100: the kernel of device/fp8_block_gemm, 40 cases of the suite; scales_first also in six large products, with "
    "DeepGEMM's bits";
// Other libraries, through their own operators (spec plans-2.3).
constexpr std::string_view kTorchTensor =
    "measured on H100: PyTorch 2.11, 5.6 million elements of grouped products, 2.1 million of dense ones";
constexpr std::string_view kTorchBlock = "measured on H200 and H100: PyTorch 2.11, 118 million elements";
constexpr std::string_view kTriton = "measured on H200 and H100: block GEMM after DeepSeek-V3, 59 million elements";
constexpr std::string_view kSglangBlock =
    "measured on H200 and H100: sglang-kernel 0.4.6, two operators (es_...: above 64 rows a group), 4.7 and 3.2 million elements; "
    "built with fast math";
constexpr std::string_view kVllmBlock = "measured on H200 and H100: vllm 0.26.0, 0.9 million elements";
constexpr std::string_view kRowThenColumn = "measured on H200 and H100: FBGEMM GenAI 1.6.0, 1.6 million elements";
constexpr std::string_view kColumnThenRow =
    "measured on H200 and H100: sglang-kernel 0.4.6 and vllm 0.26.0, 3.1 million elements";
constexpr std::string_view kDeepGemm =
    "measured on H200 and H100: contiguous 0.6 million elements in each of three versions, masked 0.2, K-grouped 0.5";
constexpr std::string_view kDeepGemmC =
    "measured on H200 and H100: D = RN(C + acc), no difference; that subnormals are flushed is documented, not measured";
constexpr std::string_view kFbgemmBlock = "measured on H200 and H100: FBGEMM GenAI 1.6.0, 1.4 million elements";
constexpr std::string_view kBf16 = "measured on H200 and H100: FBGEMM GenAI 1.6.0 and DeepGEMM, 2.6 million elements";
constexpr std::string_view kRescaled = "unmeasured: read in FBGEMM's Triton matmul_fp8_block; its division may be approximate";
constexpr std::string_view kSwapped = "unmeasured: read in vLLM's fused_moe with swapped operands";
constexpr std::string_view kFewRows = "unmeasured: Triton leaves wgmma below 64 rows and widens FP8 to f16 (triton#3479)";
constexpr std::string_view kEmulated = "unmeasured: one chain of the unit's steps over K (reference/spec/plans.md)";
constexpr std::string_view kEmulatedFp8 = "unmeasured: one chain of the unit's steps over K, as with fast accumulation on Hopper";

struct NamedPlan {
  std::string_view name, line, evidence;
};

// clang-format off
constexpr NamedPlan kNamed[] = {
    {"cublaslt.sm90.bf16",                   "unit=sm90.wgmma.f16", kMeasured},
    {"cublaslt.sm90.f16",                    "unit=sm90.wgmma.f16", kMeasured},
    {"cublaslt.sm90.fp8_tensor.fast",        "unit=sm90.wgmma.fp8", kMeasured},
    {"cublaslt.sm90.fp8_tensor.split",       "unit=sm90.wgmma.fp8,promote=128", kMeasured},
    {"cublaslt.sm90.fp8_block.scales_first", "unit=sm90.wgmma.fp8,promote=128,association=scales_first", kMeasured},
    {"cublaslt.sm90.fp8_block.rows_first",   "unit=sm90.wgmma.fp8,promote=128,association=rows_first", kMeasured},

    {"assay.sm90.fp8_block.scales_first",    "unit=sm90.wgmma.fp8,promote=128,association=scales_first", kOwn},
    {"assay.sm90.fp8_block.rows_first",      "unit=sm90.wgmma.fp8,promote=128,association=rows_first", kOwn},

    {"sm100.bf16.chain",       "unit=sm100.tcgen05.f16", kEmulated},
    {"sm100.f16.chain",        "unit=sm100.tcgen05.f16", kEmulated},
    {"sm100.fp8_tensor.chain", "unit=sm100.tcgen05.f8f6f4", kEmulated},
    {"sm100.mxfp8.chain",      "unit=sm100.tcgen05.mxf8f6f4", kEmulated},
    {"sm100.nvfp4.chain",      "unit=sm100.tcgen05.mxf4nvf4", kEmulated},

    {"sm120.bf16.chain",       "unit=sm120.mma.f16", kEmulated},
    {"sm120.f16.chain",        "unit=sm120.mma.f16", kEmulated},
    {"sm120.fp8_tensor.chain", "unit=sm120.mma.fp8", kEmulated},
    {"sm120.mxfp8.chain",      "unit=sm120.mma.mxf8f6f4", kEmulated},
    {"sm120.nvfp4.chain",      "unit=sm120.mma.mxf4nvf4", kEmulated},

    {"sm89.bf16.chain",        "unit=sm89.mma.f16", kEmulated},
    {"sm89.f16.chain",         "unit=sm89.mma.f16", kEmulated},
    {"sm89.fp8_tensor.chain",  "unit=sm89.mma.fp8", kEmulatedFp8},

    {"sm80.bf16.chain",        "unit=sm80.mma.f16", kEmulated},
    {"sm80.f16.chain",         "unit=sm80.mma.f16", kEmulated},

    {"torch.sm90.fp8_tensor.fast",          "unit=sm90.wgmma.fp8", kTorchTensor},
    {"torch.sm90.fp8_tensor.split",         "unit=sm90.wgmma.fp8,promote=128", kTorchTensor},
    {"torch.sm90.fp8_block.scales_first",   "unit=sm90.wgmma.fp8,promote=128,association=scales_first", kTorchBlock},
    {"torch.sm90.fp8_block.rows_first",     "unit=sm90.wgmma.fp8,promote=128,association=rows_first", kTorchBlock},
    {"triton.sm90.fp8_block.rows_first",    "unit=sm90.wgmma.fp8,promote=128,association=rows_first", kTriton},
    {"triton.sm90.fp8_tensor.few_rows",     "unit=sm90.mma.f16,widen=f16", kFewRows},
    {"sglang.sm90.fp8_block.scales_first",  "unit=sm90.wgmma.fp8,promote=128,association=scales_first,subnormals=flushed", kSglangBlock},
    {"sglang.sm90.fp8_rowwise.fast",        "unit=sm90.wgmma.fp8,scale_vectors=cols_first,subnormals=flushed", kColumnThenRow},
    {"vllm.sm90.fp8_block.scales_first",    "unit=sm90.wgmma.fp8,promote=128,association=scales_first", kVllmBlock},
    {"vllm.sm90.fp8_block.cols_first",      "unit=sm90.wgmma.fp8,promote=128,association=cols_first", kSwapped},
    {"vllm.sm90.fp8_rowwise.fast",          "unit=sm90.wgmma.fp8,scale_vectors=cols_first", kColumnThenRow},
    {"deepgemm.sm90.fp8_block.scales_first", "unit=sm90.wgmma.fp8,promote=128,association=scales_first", kDeepGemm},
    {"deepgemm.sm90.fp8_block.accumulate",  "unit=sm90.wgmma.fp8,promote=128,association=scales_first,epilogue=reduce_add_ftz", kDeepGemmC},
    {"deepgemm.sm90.bf16",                  "unit=sm90.wgmma.f16", kBf16},
    {"fbgemm.sm90.fp8_block.scales_first",  "unit=sm90.wgmma.fp8,promote=128,association=scales_first", kFbgemmBlock},
    {"fbgemm.sm90.fp8_block.rescaled",      "unit=sm90.wgmma.fp8,promote=128,association=rescale_by_ratio", kRescaled},
    {"fbgemm.sm90.fp8_rowwise.fast",        "unit=sm90.wgmma.fp8,scale_vectors=rows_first", kRowThenColumn},
    {"fbgemm.sm90.fp8_rowwise.split",       "unit=sm90.wgmma.fp8,promote=128,scale_vectors=rows_first", kRowThenColumn},
    {"fbgemm.sm90.bf16",                    "unit=sm90.wgmma.f16", kBf16},
};
// clang-format on

// The plans, in the order of kNamed. Read once: a line that is no plan ends the program's start with its name.
const std::vector<AccumulationPlan>& named_plans() {
  static const std::vector<AccumulationPlan> plans = [] {
    std::vector<AccumulationPlan> made;
    for (const NamedPlan& each : kNamed) {
      made.push_back(read_plan_line(each.line));
      made.back().name = each.name;
    }
    return made;
  }();
  return plans;
}

const AccumulationPlan* plan(std::string_view name) {
  for (const AccumulationPlan& each : named_plans()) {
    if (each.name == name) return &each;
  }
  throw InvalidArgument("plan table", name, "the name of a plan");
}

// cuBLASLt on an H200. Its heuristic offers only algorithm 66 with K undivided. Tiles, stages, clusters, workspace, average
// sizes and the number of SMs were varied; no bit changed.
constexpr PlanKey measured(GemmKind kind) {
  return {.library = "cublaslt",
          .version_from = 130400,
          .version_to = 131099,
          .architecture = "sm90",
          .algorithm = 66,
          .split_k = 1,
          .kind = kind};
}
constexpr PlanKey measured_tensor(bool split_accumulator) {
  PlanKey key = measured(GemmKind::fp8_per_tensor);
  key.split_accumulator = split_accumulator;
  return key;
}
constexpr PlanKey measured_block(WeightBlock weight_block) {
  PlanKey key = measured(GemmKind::fp8_block);
  key.weight_block = weight_block;
  return key;
}
constexpr PlanKey assumed(std::string_view architecture, GemmKind kind) { return {.architecture = architecture, .kind = kind}; }

constexpr PlanKey row_and_column(bool split_accumulator) {
  PlanKey key;
  key.library = "fbgemm";
  key.architecture = "sm90";
  key.kind = GemmKind::fp8_per_tensor;
  key.split_accumulator = split_accumulator;
  key.row_and_column_scales = true;
  return key;
}

struct KeyRow {
  PlanKey key;
  std::string_view plan;
};

// clang-format off
constexpr KeyRow kKeys[] = {
    {measured(GemmKind::bf16), "cublaslt.sm90.bf16"},
    {measured(GemmKind::f16), "cublaslt.sm90.f16"},
    {measured_tensor(false), "cublaslt.sm90.fp8_tensor.fast"},
    {measured_tensor(true), "cublaslt.sm90.fp8_tensor.split"},
    {measured_block(WeightBlock::b128x128), "cublaslt.sm90.fp8_block.scales_first"},
    {measured_block(WeightBlock::b1x128), "cublaslt.sm90.fp8_block.rows_first"},

    {row_and_column(false), "fbgemm.sm90.fp8_rowwise.fast"},
    {row_and_column(true), "fbgemm.sm90.fp8_rowwise.split"},

    {assumed("sm100", GemmKind::bf16), "sm100.bf16.chain"},
    {assumed("sm100", GemmKind::f16), "sm100.f16.chain"},
    {assumed("sm100", GemmKind::fp8_per_tensor), "sm100.fp8_tensor.chain"},
    {assumed("sm100", GemmKind::mxfp8), "sm100.mxfp8.chain"},
    {assumed("sm100", GemmKind::nvfp4), "sm100.nvfp4.chain"},

    {assumed("sm120", GemmKind::bf16), "sm120.bf16.chain"},
    {assumed("sm120", GemmKind::f16), "sm120.f16.chain"},
    {assumed("sm120", GemmKind::fp8_per_tensor), "sm120.fp8_tensor.chain"},
    {assumed("sm120", GemmKind::mxfp8), "sm120.mxfp8.chain"},
    {assumed("sm120", GemmKind::nvfp4), "sm120.nvfp4.chain"},

    {assumed("sm89", GemmKind::bf16), "sm89.bf16.chain"},
    {assumed("sm89", GemmKind::f16), "sm89.f16.chain"},
    {assumed("sm89", GemmKind::fp8_per_tensor), "sm89.fp8_tensor.chain"},

    {assumed("sm80", GemmKind::bf16), "sm80.bf16.chain"},
    {assumed("sm80", GemmKind::f16), "sm80.f16.chain"},
};
// clang-format on

const std::vector<PlanEntry>& entries() {
  static const std::vector<PlanEntry> made = [] {
    std::vector<PlanEntry> all;
    for (const KeyRow& row : kKeys) {
      const AccumulationPlan* of = plan(row.plan);
      all.push_back({row.key, of, evidence_of(*of)});
    }
    return all;
  }();
  return made;
}

// Compares one field of a key. Either side may be open; a field that both state must agree, and then counts.
struct Comparison {
  bool agrees = true;
  int stated = 0;

  void field(bool entry_states, bool request_states, bool equal) {
    if (!entry_states || !request_states) return;
    agrees = agrees && equal;
    ++stated;
  }
};

Comparison compare(const PlanKey& entry, const PlanKey& request) {
  Comparison result;
  result.field(true, true, entry.kind == request.kind);
  result.field(true, true, entry.row_and_column_scales == request.row_and_column_scales);
  result.field(!entry.library.empty(), !request.library.empty(), entry.library == request.library);
  result.field(entry.version_from != 0, request.version_from != 0, entry.version_from <= request.version_from);
  result.field(entry.version_to != 0, request.version_to != 0, request.version_to <= entry.version_to);
  result.field(!entry.architecture.empty(), !request.architecture.empty(), entry.architecture == request.architecture);
  result.field(entry.sm_count != 0, request.sm_count != 0, entry.sm_count == request.sm_count);
  result.field(entry.algorithm >= 0, request.algorithm >= 0, entry.algorithm == request.algorithm);
  result.field(entry.tile >= 0, request.tile >= 0, entry.tile == request.tile);
  result.field(entry.split_k >= 0, request.split_k >= 0, entry.split_k == request.split_k);
  result.field(entry.workspace >= 0, request.workspace >= 0, entry.workspace == request.workspace);
  result.field(entry.layout.has_value(), request.layout.has_value(), entry.layout == request.layout);
  result.field(entry.split_accumulator.has_value(), request.split_accumulator.has_value(),
               entry.split_accumulator == request.split_accumulator);
  result.field(entry.weight_block.has_value(), request.weight_block.has_value(), entry.weight_block == request.weight_block);
  result.field(entry.d_type.has_value(), request.d_type.has_value(), entry.d_type == request.d_type);
  return result;
}

}  // namespace

std::span<const AccumulationPlan> accumulation_plans() { return named_plans(); }

std::string_view evidence_of(const AccumulationPlan& plan) {
  for (const NamedPlan& each : kNamed) {
    if (each.name == plan.name) return each.evidence;
  }
  return "";
}

std::span<const PlanEntry> plan_table() { return entries(); }

const AccumulationPlan* plan_for(const PlanKey& request) {
  const AccumulationPlan* best = nullptr;
  int best_stated = -1;
  for (const PlanEntry& entry : entries()) {
    const Comparison comparison = compare(entry.key, request);
    if (comparison.agrees && comparison.stated > best_stated) {
      best = entry.plan;
      best_stated = comparison.stated;
    }
  }
  return best;
}

}  // namespace assay
