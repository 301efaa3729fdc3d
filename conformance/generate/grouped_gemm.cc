#include "conformance/generate/ops.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/generate/compose.h"
#include "conformance/generate/operands.h"
#include "conformance/generate/placed_rows.h"
#include "conformance/generate/work_limit.h"
#include "reference/gemm/plan.h"

namespace assay::conformance::inputs {
namespace {

// The two operands of a product, and its lengths.
struct Product {
  std::string layout, kind;
  std::vector<std::int64_t> splits;
  std::int64_t N = 0, K = 0;
  std::int64_t longest() const {
    return layout == "TN" ? K : layout == "NN" ? N : splits.empty() ? 0 : *std::max_element(splits.begin(), splits.end());
  }
};

Product product_of(const CaseLine& line) {
  return {line.text("layout"), line.text("kind"), line.splits(), line.integer("N"), line.integer("K")};
}

// A grouped GEMM whose tensors are being made from its line.
struct GroupedGemmMaker {
  const CaseLine& line;
  Case& result;
  std::map<std::string, Attribute>& attributes = result.attributes;
  const Product product = product_of(line);
  const std::string kind = product.kind, layout = product.layout, data = line.text("data");
  const std::int64_t groups = static_cast<std::int64_t>(product.splits.size());
  const bool scaled = kind != "bf16" && kind != "f16";
  const bool block_scaled = kind == "fp8_block" || kind == "mxfp8" || kind == "nvfp4";
  const Format d_type = format_of(line.text("d_type"));
  const bool quantized = d_type == Format::e4m3 || d_type == Format::e5m2;
  const std::uint64_t seed = static_cast<std::uint64_t>(line.integer("seed"));
  const std::int64_t longest = product.longest();
  const GroupRows rows = place_rows(line, result);
  const bool placed = rows.layout != GroupedLayout::splits;
  const std::vector<std::int64_t> starts = starts_of_groups();
  OperandRequest operand = OperandRequest();  // what both operands have in common

  std::vector<std::int64_t> starts_of_groups() const;
  void poison(const std::string& matrix) { poison_rows_between(line, rows, result.in.at(matrix)); }
  void set_attributes();
  std::vector<bool> rows_with_group() const;
  bool reads_c() const;
  void describe_operands();
  void describe_wide_sums();
  void describe_step_edges();
  std::vector<std::int64_t>::const_iterator group_after(std::int64_t row) const {
    return std::upper_bound(starts.begin(), starts.end(), row);
  }
  void add(const std::string& name, std::int64_t columns, bool weights, bool contract_rows, Role role);
  void add_operands();
  void add_addends();
  void add_d_scale();
};

// First row of each group, and the end of the last; upward only where groups stand in their order.
std::vector<std::int64_t> GroupedGemmMaker::starts_of_groups() const {
  if (rows.layout != GroupedLayout::psum) return starts_of(product.splits);
  std::vector<std::int64_t> first;
  for (const RowRange& range : rows.ranges) first.push_back(range.first);
  first.push_back(rows.rows);
  return first;
}

std::vector<bool> GroupedGemmMaker::rows_with_group() const {
  count_work(rows.rows);
  std::vector<bool> with(static_cast<std::size_t>(rows.rows));
  for (const RowRange& each : rows.ranges) std::fill_n(with.begin() + static_cast<std::ptrdiff_t>(each.first), each.rows, true);
  return with;
}

void GroupedGemmMaker::set_attributes() {
  set_text_attribute(line, "kind", result);
  attributes["layout"] = layout;
  attributes["split_accumulator"] = line.integer("split_accumulator");
  attributes["N"] = product.N;
  attributes["K"] = product.K;
  if (kind == "fp8_block" && layout != "NT") attributes["weight_block"] = line.text("weight_block");
  if (line.text("scaling") != "per_group") attributes["scaling"] = line.text("scaling");
  if (line.has("plan")) attributes["plan"] = line.text("plan");
  if (kind == "mxfp8" || kind == "nvfp4") attributes["scale_layout"] = line.text("scale_layout");
  set_text_attribute(line, "d_type", result);
  attributes["arch"] = line.text("arch");
  for (const std::string key : {"alpha", "beta"}) {
    const std::vector<double> values = line.reals(key);
    if (values.size() == 1) {
      attributes[key] = values[0];
    } else {
      result.in[key] = floats_tensor(values);
    }
  }
}

bool GroupedGemmMaker::reads_c() const {
  const std::vector<double> betas = line.reals("beta");
  return std::any_of(betas.begin(), betas.end(), [](double each) { return each != 0; });
}

void GroupedGemmMaker::describe_operands() {
  // Sums of integers stay order-free with scales that differ by two, if the sum is short enough for that.
  const bool level = longest * 2 * 2 > 8192;
  const std::int64_t spread = block_scaled && line.text("scales") == "pow2" && !level ? 2 : 1;
  operand.scaled = scaled;
  operand.scale_layout = scaled && (kind == "mxfp8" || kind == "nvfp4") && line.text("scale_layout") == "swizzled"
                             ? ScaleLayout::swizzled
                             : ScaleLayout::compact;
  operand.pattern.pattern = data;
  operand.pattern.seed = seed;
  operand.pattern.contraction = longest;
  operand.pattern.output = quantized ? Format::f32 : d_type;
  operand.pattern.step = scaled && kind != "nvfp4" ? 32 : 16;
  operand.pattern.fraction_bits = scaled && line.text("arch") != "sm100" && line.text("arch") != "sm120" ? 13 : 25;
  operand.pattern.amplitude = amplitude_for(longest, spread);
  operand.scale.kind = scaled ? scale_kind_of(line.text("scales")) : ScaleKind::ones;
  operand.scale.seed = seed;
  if (data == "integers") {
    operand.scale.centre = kind == "nvfp4" ? -10 : 0;  // d8 counts from 2^-10 on: scale_code
    operand.scale.narrow = true;
    operand.scale.level = block_scaled && level;
  }
  operand.even_amax = data == "unit_probes" || data == "step_edges";
  if (data == "wide_sums") describe_wide_sums();
  if (data == "step_edges") describe_step_edges();
}

// The grid and the step of the unit that the plan of the line names.
void GroupedGemmMaker::describe_step_edges() {
  if (!line.has("plan")) return;
  const TensorCoreUnit& unit = *find_tensor_core_unit(find_accumulation_plan(line.text("plan"))->unit);
  operand.pattern.step = unit.products_per_step;
  operand.pattern.fraction_bits = unit.fraction_bits == 0 ? 24 : unit.fraction_bits;
}

void GroupedGemmMaker::describe_wide_sums() {
  const bool fp22 =
      (kind == "fp8_per_tensor" || kind == "fp8_block") && (line.text("arch") == "sm89" || line.text("arch") == "sm90");
  const Format element = kind == "bf16"    ? Format::bf16
                         : kind == "f16"   ? Format::f16
                         : kind == "nvfp4" ? Format::e2m1
                                           : Format::e4m3;
  const std::int64_t block = kind == "fp8_block" ? 128 : kind == "mxfp8" ? 32 : kind == "nvfp4" ? 16 : 0;
  const WideSums wide = wide_sums_for(longest, fp22 ? 13 : 23, block, kind == "fp8_block", element, d_type, reads_c() ? 5 : 0);
  operand.pattern.period = wide.period;
  operand.pattern.anchor = wide.anchor;
  operand.pattern.amplitude = wide.amplitude;
  operand.pattern.cancel = d_type != Format::f32;
  operand.scale.centre = kind == "nvfp4" ? -10 : 0;
  operand.scale.narrow = true;
  operand.scale.spread = std::max(wide.spread, 1);
  operand.scale.level = block_scaled && wide.spread == 0;
  operand.even_amax = true;
  if (kind == "nvfp4" && operand.pattern.cancel) {  // codes of four bits reach too little by themselves
    operand.pattern.ends = true;
    operand.scale.ends = 5;
  }
}

// A group's k counts from its own first row where rows are summed over.
void GroupedGemmMaker::add(const std::string& name, std::int64_t columns, bool weights, bool contract_rows, Role role) {
  OperandRequest each = operand;
  each.name = name;
  each.type = kind == "bf16"    ? Format::bf16
              : kind == "f16"   ? Format::f16
              : kind == "nvfp4" ? Format::e2m1
                                : format_of(line.text(name + "_type"));
  each.recipe = kind == "mxfp8"                                     ? Recipe::mxfp8
                : kind == "nvfp4"                                   ? Recipe::nvfp4
                : kind == "fp8_per_tensor"                          ? Recipe::tensor_current
                : weights && line.text("weight_block") == "128x128" ? Recipe::block_128x128
                                                                    : Recipe::block_1x128;
  // Rows that are summed over are read in the columnwise storage, except by FP8 per-tensor products from sm100 on, which
  // take any storage.
  const bool any_storage = kind == "fp8_per_tensor" && line.text("arch").size() > 4;
  each.columnwise = scaled && contract_rows && !any_storage;
  each.splits = weights ? std::vector<std::int64_t>(static_cast<std::size_t>(groups), product.N) : product.splits;
  each.columns = columns;
  each.total_rows = weights ? groups * product.N : rows.rows;
  each.placed = placed && !weights;
  if (each.placed && !contract_rows && block_scaled) each.scale_rows = rows.scale_rows;
  if (each.placed && !contract_rows && rows.layout == GroupedLayout::psum)
    each.scale.no_group = [with = rows_with_group()](std::int64_t row) {
      return row < std::ssize(with) && !with[static_cast<std::size_t>(row)];  // a tensor without rows may have a scale
    };
  if (line.text("scaling") == "per_row_column") each.scales_of_rows = contract_rows ? groups * columns : each.total_rows;
  each.pattern.contract_rows = contract_rows;
  each.pattern.role = role;
  each.scale.opposed_low = role == Role::second;
  if (contract_rows && weights) {
    const std::int64_t period = product.N;
    each.pattern.position = [period](std::int64_t row) { return row % period; };
  } else if (contract_rows) {
    each.pattern.position = [this](std::int64_t row) { return row - *(group_after(row) - 1); };
    each.pattern.depth = [this](std::int64_t row) {
      return product.splits[static_cast<std::size_t>(std::min<std::ptrdiff_t>(group_after(row) - starts.begin(), groups) - 1)];
    };
  }
  add_operand(result, each);
  if (each.placed) poison(!scaled ? name : name + (each.columnwise ? "_columnwise_data" : "_rowwise_data"));
}

void GroupedGemmMaker::add_operands() {
  if (layout == "TN") {
    add("x", product.K, false, false, Role::first);
    add("w", product.K, true, false, Role::second);
  } else if (layout == "NN") {
    add("dy", product.N, false, false, Role::first);
    add("w", product.K, true, true, Role::second);
  } else {
    add("dy", product.N, false, true, Role::first);
    add("x", product.K, false, true, Role::second);
  }
}

// Scales of a D in FP8.
void GroupedGemmMaker::add_d_scale() {
  if (!quantized) return;
  ScaleRequest scale;
  scale.kind = scale_kind_of(line.text("d_scales"));
  scale.seed = seed;
  scale.tensor = "d_scale";
  scale.centre = 0;  // sums of uniform operands then use most of the codes
  result.in["d_scale"] = group_floats(scale, product.splits.size());
}

void GroupedGemmMaker::add_addends() {
  PatternRequest plain;
  plain.pattern = data == "integers" || data == "wide_sums" ? "integers" : "uniform";
  plain.type = d_type;
  plain.seed = seed;
  plain.amplitude = 15;
  const std::string addends = line.text("addends");
  if (addends == "every_special") plain.pattern = addends;
  const auto signed_zeros = [&](Tensor tensor, std::int64_t active) {
    if (addends != "negative_zeros") return tensor;
    const std::vector<std::uint32_t> zeros(static_cast<std::size_t>(active * plain.columns), sign_bit(fields_of(d_type)));
    store(zeros, tensor);
    return tensor;
  };
  if (reads_c()) {
    plain.tensor = "c";
    plain.rows = layout == "NT" ? groups * product.N : rows.rows;
    plain.columns = layout == "TN" ? product.N : product.K;
    const std::int64_t active = layout == "NT" || placed ? plain.rows : sum_of(product.splits);
    result.in["c"] = signed_zeros(matrix(plain, active), active);
    if (placed && layout != "NT") poison("c");
  }
  if (line.integer("bias") == 1) {
    attributes["bias"] = std::int64_t{1};
    plain.tensor = "bias";
    plain.rows = groups;
    plain.columns = product.N;
    result.in["bias"] = signed_zeros(matrix(plain, groups), groups);
  }
}

}  // namespace

void generate_grouped_gemm(const CaseLine& line, Case& result) {
  GroupedGemmMaker maker{line, result};
  maker.set_attributes();
  maker.describe_operands();
  maker.add_operands();
  maker.add_addends();
  maker.add_d_scale();
}

}  // namespace assay::conformance::inputs
