#include "conformance/judge/calls/wrong_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "conformance/judge/calls/parameters.h"
#include "reference/gemm/plan.h"
#include "reference/types/format.h"
#include "reference/types/sizes.h"

namespace assay::conformance {
namespace {

// Plans that many products cannot follow: units of one type or with other scales, slices that do not cover K, scales of rows and
// columns, sums in memory, partial sums in the type of D. The plans that have names are tried too.
constexpr const char* kPlanLines[] = {
    "unit=sm90.wgmma.f16.to_f16",
    "unit=sm90.wgmma.fp8.to_f16",
    "unit=sm80.mma.tf32",
    "unit=cdna1.mfma.bf16",
    "unit=cdna3.mfma.fp8",
    "unit=sm100.tcgen05.mxf4",
    "unit=sm90.mma.f16,widen=f16",
    "unit=sm90.wgmma.fp8,promote=128",
    "unit=sm90.wgmma.f16,promote=128,association=rows_first",
    "unit=sm90.wgmma.f16,slices=2x1,merge=sequential_f32",
    "unit=sm90.wgmma.fp8,slices=2x1,merge=tree_f32",
    "unit=sm90.wgmma.fp8,promote=1,association=rows_first,slices=2x1,merge=(0+1)",
    "unit=sm90.wgmma.f16,slices=2x4096,merge=sequential_output",
    "unit=sm90.wgmma.fp8,slices=2x4096,merge=sequential_output",
    "unit=sm90.wgmma.f16,scale_vectors=rows_first",
    "unit=sm90.wgmma.fp8,scale_vectors=cols_first",
    "unit=sm100.tcgen05.mxf8f6f4,scale_vectors=scales_first",
    "unit=sm90.wgmma.f16,epilogue=reduce_add",
    "unit=sm90.wgmma.fp8,epilogue=reduce_add_ftz",
    "unit=sm90.wgmma.fp8,promote=128,association=rows_first,epilogue=reduce_add",
};

// Names that outlive the call, for the other storage of an operand.
constexpr std::pair<const char*, const char*> kStorages[] = {
    {"x_rowwise_data", "x_columnwise_data"},
    {"x_rowwise_scale_inv", "x_columnwise_scale_inv"},
    {"x_rowwise_amax", "x_columnwise_amax"},
    {"dy_rowwise_data", "dy_columnwise_data"},
    {"dy_rowwise_scale_inv", "dy_columnwise_scale_inv"},
    {"dy_rowwise_amax", "dy_columnwise_amax"},
    {"w_rowwise_data", "w_columnwise_data"},
    {"w_rowwise_scale_inv", "w_columnwise_scale_inv"},
    {"w_rowwise_amax", "w_columnwise_amax"},
};

const assay_parameter* parameter_of(const assay_call& call, std::string_view name) {
  const auto* const end = call.parameters + call.parameter_count;
  const auto* const found = std::find_if(call.parameters, end, [&](const assay_parameter& each) { return each.name == name; });
  return found == end ? nullptr : found;
}

const assay_tensor* tensor_of(const assay_tensor* list, std::int32_t count, std::string_view name) {
  const auto* const found = std::find_if(list, list + count, [&](const assay_tensor& each) { return each.name == name; });
  return found == list + count ? nullptr : found;
}

// Rows of x and dy in layout NT, whose groups the plan contracts: -1 where the call has no dy, or dy no columns.
std::int64_t contracted_rows(const assay_call& call) {
  const assay_parameter *const layout = parameter_of(call, "layout"), *const N = parameter_of(call, "N");
  if (layout == nullptr || std::string_view(layout->text) != "NT" || N == nullptr || N->integer <= 0) return -1;
  for (const char* const name : {"dy", "dy_rowwise_data", "dy_columnwise_data"}) {
    const assay_tensor* const dy = tensor_of(call.inputs, call.input_count, name);
    if (dy != nullptr) return dy->bytes * 8 / bits_of(static_cast<Format>(dy->dtype)) / N->integer;
  }
  return -1;
}

// Whether only the splits tell that the slices of a plan leave out rows of a group: a fault of contents.
bool is_fault_of_contents(std::string_view text, std::int64_t rows) {
  const AccumulationPlan& plan = *find_accumulation_plan(text);
  return plan.slices > 1 && plan.slice_length < ceil_div(rows, plan.slices);
}

// Sets a parameter of the call, or adds it.
void put(CallParts& parts, const assay_parameter& parameter) {
  const auto named = [&](const assay_parameter& each) { return std::string_view(each.name) == parameter.name; };
  const auto found = std::find_if(parts.parameters.begin(), parts.parameters.end(), named);
  found == parts.parameters.end() ? parts.parameters.push_back(parameter) : void(*found = parameter);
}

class WrongProducts {
 public:
  WrongProducts(const assay_call& right, std::vector<WrongCall>& all)
      : right_(right), d_(tensor_of(right.outputs, right.output_count, "d")), all_(all) {}

  void add_plans();
  void add_storages();
  void add_addends();

 private:
  // `part` and `fault`: as of WrongCall, in the words of its kind.
  void add(const std::string& part, const std::string& fault, const std::string& what, std::function<void(CallParts&)> change) {
    all_.push_back({part, fault, what, std::move(change), Decides::reference, Refusal::either});
  }
  void add_storage(const std::string& operand);
  // Adds a matrix of the type of D to the inputs of a call, where another input has memory enough for it.
  void add_addend(const char* name, std::int64_t rows, std::int64_t columns, const assay_parameter& parameter);

  const assay_call& right_;
  const assay_tensor* d_;
  std::vector<WrongCall>& all_;
};

void WrongProducts::add_plans() {
  std::vector<const char*> texts(std::begin(kPlanLines), std::end(kPlanLines));
  for (const AccumulationPlan& each : accumulation_plans()) texts.push_back(each.name.data());
  const std::int64_t rows = contracted_rows(right_);
  for (const char* const text : texts) {
    if (is_fault_of_contents(text, rows)) continue;
    const std::string what = fmt::format("the plan {}", text);
    add("plan", "that the product cannot follow", what, [=](CallParts& parts) { put(parts, text_parameter("plan", text)); });
    if (std::string_view(text).find("scale_vectors") == std::string_view::npos) continue;
    add("plan", "that the product cannot follow", what + " and scales of rows and columns", [=](CallParts& parts) {
      put(parts, text_parameter("plan", text));
      put(parts, text_parameter("scaling", "per_row_column"));
    });
  }
}

// The same memory under the names of the other storage, in its shape.
void WrongProducts::add_storage(const std::string& operand) {
  const assay_parameter *const kind = parameter_of(right_, "kind"), *const N = parameter_of(right_, "N"),
                               *const K = parameter_of(right_, "K");
  if (kind == nullptr || N == nullptr || K == nullptr) return;
  const bool keeps_shape = std::string_view(kind->text) == "mxfp8";  // its columnwise storage is not transposed
  const bool columnwise = tensor_of(right_.inputs, right_.input_count, operand + "_columnwise_data") != nullptr;
  if (!columnwise && tensor_of(right_.inputs, right_.input_count, operand + "_rowwise_data") == nullptr) return;
  const std::int64_t width = operand == "dy" ? N->integer : K->integer;
  add("storage", "in its other storage", fmt::format("{} in its other storage", operand), [=](CallParts& parts) {
    for (assay_tensor& each : parts.inputs) {
      for (const auto& [rowwise, transposed] : kStorages) {
        if (!std::string_view(rowwise).starts_with(operand + "_") ||
            std::string_view(each.name) != (columnwise ? transposed : rowwise))
          continue;
        each.name = columnwise ? rowwise : transposed;
        if (keeps_shape || !std::string_view(rowwise).ends_with("_data")) break;
        const std::int64_t columns = each.dtype == ASSAY_E2M1 ? width / 2 : width;
        const std::int64_t stored = each.rank == 2 ? each.shape[0] * each.shape[1] : each.shape[0];
        each.rank = columnwise ? 2 : 1;
        each.shape[0] = columnwise ? stored / std::max<std::int64_t>(columns, 1) : stored;
        if (columnwise) each.shape[1] = columns;
        break;
      }
    }
  });
}

void WrongProducts::add_storages() {
  for (const char* const operand : {"x", "dy", "w"}) add_storage(operand);
}

void WrongProducts::add_addend(const char* name, std::int64_t rows, std::int64_t columns, const assay_parameter& parameter) {
  if (tensor_of(right_.inputs, right_.input_count, name) != nullptr) return;
  assay_tensor tensor = *d_;
  tensor.name = name;
  tensor.shape[0] = rows;
  tensor.shape[1] = columns;
  tensor.bytes = rows * columns * (bits_of(static_cast<Format>(d_->dtype)) / 8);
  for (std::int32_t i = 0; i < right_.input_count; ++i) {
    if (right_.inputs[i].bytes < tensor.bytes) continue;
    add("addend", "added", fmt::format("an input {} and its parameter", name), [=](CallParts& parts) {
      put(parts, parameter);
      parts.inputs.push_back(tensor);
      parts.inputs.back().data = parts.inputs[static_cast<std::size_t>(i)].data;  // of this call: another has other memory
    });
    return;
  }
}

// C and a bias where the right call has none: some products take neither.
void WrongProducts::add_addends() {
  const assay_parameter* const N = parameter_of(right_, "N");
  const assay_tensor* const splits = tensor_of(right_.inputs, right_.input_count, "splits");
  if (d_ == nullptr || d_->rank != 2) return;
  add_addend("c", d_->shape[0], d_->shape[1], real_parameter("beta", 1));
  if (N != nullptr && splits != nullptr) add_addend("bias", splits->shape[0], N->integer, integer_parameter("bias", 1));
}

}  // namespace

void add_wrong_products(const assay_call& right, std::vector<WrongCall>& all) {
  if (std::string_view(right.op) != "grouped_gemm") return;
  WrongProducts products(right, all);
  products.add_plans();
  products.add_storages();
  products.add_addends();
}

}  // namespace assay::conformance
