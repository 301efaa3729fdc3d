// Op `grouped_gemm`: fixture schema 1, and MXFP8, NVFP4, bias and one alpha and beta a group of schema 2.

#include <algorithm>

#include "conformance/ops/grouped_gemm.h"
#include "conformance/ops/grouped_layout.h"
#include "conformance/ops/op.h"
#include "conformance/ops/named_plan.h"
#include "conformance/ops/words.h"
#include "reference/gemm/grouped_gemm.h"
#include "reference/gemm/problem.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay::conformance {
namespace {

template <class Value>
Value named(const Request& request, const std::string& attribute, std::optional<Value> (*parse)(std::string_view),
            const char* expected) {
  const std::string name = request.text(attribute);
  const auto value = parse(name);
  if (!value) throw InvalidArgument("attribute " + attribute, "'" + name + "'", expected);
  return *value;
}

std::optional<WeightBlock> weight_block_named(std::string_view name) {
  if (name == "1x128") return WeightBlock::b1x128;
  if (name == "128x128") return WeightBlock::b128x128;
  return std::nullopt;
}

using Parsed = ParsedGroupedGemm;

std::int64_t sum_of(std::span<const std::int64_t> splits) {
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) sum = checked_sum(sum, split, "in/splits", split);
  return sum;
}

// An operand is plain (`x`) or quantized in one of its two storages (`x_rowwise_data` with `x_rowwise_scale_inv`, ...).
GemmOperand operand_of(const Request& request, const std::string& name, bool quantized, std::int64_t groups, std::int64_t width,
                       std::int64_t& rows) {
  GemmOperand operand;
  const TensorView* data = nullptr;
  if (!quantized) {
    data = &request.input(name);
  } else {
    for (const char* direction : {"rowwise", "columnwise"}) {
      const std::string prefix = name + "_" + direction;
      const TensorView* candidate = request.find_input(prefix + "_data");
      if (candidate == nullptr) continue;
      if (data != nullptr) throw InvalidArgument("in/" + prefix + "_data", "given", "one storage of " + name + ", not two");
      data = candidate;
      operand.columnwise = direction[0] == 'c';
      operand.scale_inv = request.input(prefix + "_scale_inv").data;
      const TensorView* amax = request.find_input(prefix + "_amax", Format::f32, groups);
      operand.amax = amax == nullptr ? nullptr : static_cast<const float*>(amax->data);
    }
    if (data == nullptr) throw InvalidArgument("in/" + name, "absent", name + "_rowwise_data or " + name + "_columnwise_data");
  }
  operand.type = data->type;
  operand.data = data->data;
  const std::int64_t per_byte = data->type == Format::e2m1 ? 2 : 1;
  const std::int64_t stored = data->elements(), elements = checked_product(stored, per_byte, "in/" + name, stored);
  // A matrix in the wrong orientation has the right number of elements.
  const bool matrix = !operand.columnwise && data->shape.size() == 2;
  if (matrix && checked_product(data->shape[1], per_byte, "in/" + name, data->shape[1]) != width) {
    throw InvalidArgument("in/" + name, describe(*data), "rows of " + std::to_string(width) + " elements");
  }
  require(width > 0 || elements == 0, name, describe(*data), "no elements, since its rows have none");
  rows = width == 0 ? 0 : elements / width;
  if (width > 0 && rows * width != elements) {
    throw InvalidArgument("in/" + name, describe(*data), "rows of " + std::to_string(width) + " elements");
  }
  return operand;
}

void check_scales(const Request& request, const std::string& name, const GemmOperand& operand, GemmKind kind,
                  const GroupedGemmProblem& problem, std::span<const std::int64_t> group_rows, std::int64_t width, bool weight) {
  // Scales of rows and columns: one for each row of the operand as the contraction sees it.
  const bool vectors = problem.row_and_column_scales;
  if (operand.scale_inv == nullptr) return;
  Recipe recipe = Recipe::tensor_current;
  if (kind == GemmKind::mxfp8) recipe = Recipe::mxfp8;
  if (kind == GemmKind::nvfp4) recipe = Recipe::nvfp4;
  if (kind == GemmKind::fp8_block) {
    recipe = weight && problem.weight_block == WeightBlock::b128x128 ? Recipe::block_128x128 : Recipe::block_1x128;
  }
  std::int64_t wanted = static_cast<std::int64_t>(group_rows.size());
  if (vectors) {
    const bool along_rows = problem.layout == GemmLayout::NT || (weight && problem.layout == GemmLayout::NN);
    wanted = along_rows ? checked_product(wanted, width, "in/" + name, width) : weight ? wanted * problem.N : problem.rows;
  }
  if (kind != GemmKind::fp8_per_tensor) {
    if (!weight && problem.group_rows != nullptr && problem.layout != GemmLayout::NT) group_rows = problem.group_rows->scale_rows;
    const QuantizeProblem shape_only{
        .config = {.recipe = recipe,
                   .output = kind == GemmKind::nvfp4   ? Format::e2m1
                             : kind == GemmKind::mxfp8 ? Format::e4m3  // E2M1 weights have the same scales
                                                       : operand.type,
                   .rowwise = !operand.columnwise,
                   .columnwise = operand.columnwise},
        .x_type = Format::f32,
        .x = &recipe,
        .rows = weight ? checked_product(static_cast<std::int64_t>(group_rows.size()), problem.N, "attribute N", problem.N)
                       : sum_of(group_rows),
        .columns = width,
        .grouped = true,
        .splits = group_rows,
        .draws = {}};
    const QuantizeShapes shapes = quantize_outputs(shape_only);
    wanted = (operand.columnwise ? shapes.columnwise_scale_inv : shapes.rowwise_scale_inv).elements();
  }
  const std::string input = name + (operand.columnwise ? "_columnwise_scale_inv" : "_rowwise_scale_inv");
  const Format type = kind == GemmKind::mxfp8 ? Format::e8m0 : kind == GemmKind::nvfp4 ? Format::e4m3 : Format::f32;
  request.input(input, type, wanted);
}

std::vector<float> scalars(const Request& request, const std::string& name, float absent, std::int64_t groups) {
  if (const TensorView* many = request.find_input(name, Format::f32, groups)) {
    const auto* values = static_cast<const float*>(many->data);
    return {values, values + groups};
  }
  return {static_cast<float>(request.real_or(name, absent))};
}

}  // namespace

void parse_grouped_gemm(const Request& request, ParsedGroupedGemm& parsed) {
  GroupedGemmProblem& problem = parsed.problem;
  problem.kind = named<GemmKind>(request, "kind", gemm_kind_named, "bf16, f16, tensor, block, mxfp8 or nvfp4");
  problem.layout = named<GemmLayout>(request, "layout", gemm_layout_named, "TN, NN or NT");
  if (grouped_layout_of(request) != GroupedLayout::splits) {
    parsed.rows = group_rows_of(request);
    problem.group_rows = &parsed.rows;
    parsed.splits = parsed.rows.splits;
  } else {
    parsed.splits = request.splits();
  }
  problem.splits = parsed.splits;
  const auto groups = static_cast<std::int64_t>(parsed.splits.size());
  problem.N = request.integer("N");
  problem.K = request.integer("K");
  require(problem.N >= 0, "attribute N", problem.N, "0 or more");
  require(problem.K >= 0, "attribute K", problem.K, "0 or more");
  const std::string block = request.text_or("weight_block", "128x128");
  const auto weight_block = weight_block_named(block);
  if (!weight_block) throw InvalidArgument("attribute weight_block", "'" + block + "'", "1x128 or 128x128");
  problem.weight_block = *weight_block;
  problem.scale_layout = scale_layout_of(request);
  problem.split_accumulator = request.flag("split_accumulator");
  problem.d_type = request.format_or("dtype_d", Format::f32);
  if (const TensorView* scale = request.find_input("d_scale", Format::f32, groups)) {
    static const float none = 1;
    problem.d_scale = scale->data == nullptr ? &none : static_cast<const float*>(scale->data);
  }
  const std::string scaling = request.text_or("scaling", "per_group");
  if (scaling != "per_group" && scaling != "per_row_column")
    throw InvalidArgument("attribute scaling", "'" + scaling + "'", "per_group or per_row_column");
  problem.row_and_column_scales = scaling == "per_row_column";
  parsed.alpha = scalars(request, "alpha", 1, groups);
  parsed.beta = scalars(request, "beta", 0, groups);
  problem.alpha = parsed.alpha;
  problem.beta = parsed.beta;
  const bool quantized = problem.kind != GemmKind::bf16 && problem.kind != GemmKind::f16;
  parsed.architecture =
      request.text_or("arch", problem.kind == GemmKind::mxfp8 || problem.kind == GemmKind::nvfp4 ? "sm100" : "sm90");
  problem.architecture = parsed.architecture;
  problem.plan = named_plan(request);

  std::int64_t rows_x = -1, rows_dy = -1, rows_w = -1;
  std::vector<std::int64_t> weight_rows(parsed.splits.size(), problem.N);
  if (problem.layout != GemmLayout::NN) problem.x = operand_of(request, "x", quantized, groups, problem.K, rows_x);
  if (problem.layout != GemmLayout::TN) problem.dy = operand_of(request, "dy", quantized, groups, problem.N, rows_dy);
  if (problem.layout != GemmLayout::NT) problem.w = operand_of(request, "w", quantized, groups, problem.K, rows_w);
  const std::int64_t weight_rows_in_all = checked_product(groups, problem.N, "attribute N", problem.N);
  if (rows_w >= 0 && problem.K > 0) {
    require(rows_w == weight_rows_in_all, "rows of w", rows_w, "G*N = " + std::to_string(weight_rows_in_all));
  }
  if (rows_x >= 0 && rows_dy >= 0 && problem.N > 0 && problem.K > 0) {
    require(rows_x == rows_dy, "rows of x", rows_x, "the rows of dy, " + std::to_string(rows_dy));
  }
  problem.rows = std::max(rows_x, rows_dy);
  if ((rows_x < 0 || problem.K == 0) && (rows_dy < 0 || problem.N == 0)) {  // a matrix without columns does not show its rows
    problem.rows = sum_of(parsed.splits);
  }
  if (problem.group_rows != nullptr) {
    require(rows_x < 0 || problem.K == 0 || rows_x == parsed.rows.rows, "rows of x", rows_x, show(parsed.rows.rows));
    require(rows_dy < 0 || problem.N == 0 || rows_dy == parsed.rows.rows, "rows of dy", rows_dy, show(parsed.rows.rows));
    problem.rows = parsed.rows.rows;
  }
  check_scales(request, "x", problem.x, problem.kind, problem, parsed.splits, problem.K, false);
  check_scales(request, "dy", problem.dy, problem.kind, problem, parsed.splits, problem.N, false);
  check_scales(request, "w", problem.w, problem.kind, problem, weight_rows, problem.K, true);

  const MatrixShape d = grouped_gemm_shape(problem);
  checked_product(d.rows, d.columns, "elements of d, rows", d.rows);
  const bool reads_c = std::any_of(parsed.beta.begin(), parsed.beta.end(), [](float beta) { return beta != 0; });
  if (const TensorView* c = request.find_input("c"); c != nullptr && c->shape.size() == 2) {
    if (c->shape[0] != d.rows || c->shape[1] != d.columns) {
      throw InvalidArgument("in/c", describe(*c), "the shape of d, [" + show(d.rows) + "," + show(d.columns) + "]");
    }
  }
  if (reads_c) problem.c = request.input("c", problem.d_type, d.rows * d.columns).data;
  if (const TensorView* bias = request.find_input("bias", problem.d_type, weight_rows_in_all)) problem.bias = bias->data;
  // A bias of no groups has no elements, and may have no memory.
  require(request.flag("bias") == (request.in.count("bias") != 0), "attribute bias", request.flag("bias") ? 1 : 0,
          "1 exactly when in/bias is given");
}

namespace {

std::vector<OutputSpec> outputs(const Request& request) {
  Parsed parsed;
  parse_grouped_gemm(request, parsed);
  request.refuse_unknown();
  const MatrixShape d = grouped_gemm_shape(parsed.problem);
  return {{"d", parsed.problem.d_type, {d.rows, d.columns}, parsed.problem.layout != GemmLayout::NT}};
}

void write_outputs(const Request& request, Layer layer) {
  Parsed parsed;
  parse_grouped_gemm(request, parsed);
  request.refuse_unknown();
  const MatrixShape shape = grouped_gemm_shape(parsed.problem);
  void* d = request.output("d", parsed.problem.d_type, shape.rows * shape.columns);
  if (d == nullptr) return;
  layer == Layer::fast ? grouped_gemm(parsed.problem, d) : scalar::grouped_gemm(parsed.problem, d);
}

Numerics numerics(const Request& request) {
  Parsed parsed;
  parse_grouped_gemm(request, parsed);
  alignas(16) static const std::byte nowhere[16] = {};  // only the presence of D is checked
  const GroupedGemmView view = view_of(parsed.problem, nowhere);
  return {std::string(view.unit->name), std::string(view.plan->name)};
}

void visit(const Request& request, const Multiply& see) {
  Parsed parsed;
  parse_grouped_gemm(request, parsed);
  request.refuse_unknown();
  alignas(16) static std::byte nowhere[16];  // D is neither read nor written
  see(parsed.problem, nowhere);
}

std::vector<CertifiedBound> bounds(const Request& request, const std::string& unit) {
  Parsed parsed;
  parse_grouped_gemm(request, parsed);
  return bounds_of_product(parsed.problem, unit);
}

}  // namespace

std::vector<CertifiedBound> bounds_of_product(const GroupedGemmProblem& problem, const std::string& unit) {
  const bool gradient = problem.layout == GemmLayout::NN || problem.layout == GemmLayout::NT;
  const Format rows = (gradient ? problem.dy : problem.x).type,
               columns = (problem.layout == GemmLayout::NT ? problem.x : problem.w).type;
  if (unit.empty()) return error_bounds(problem, legal_arithmetic(problem.kind, rows, columns, problem.architecture));
  const TensorCoreUnit* row = find_tensor_core_unit(unit);
  const std::string types = std::string(name_of(rows)) + " by " + std::string(name_of(columns));
  require(row != nullptr && takes(*row, problem.kind, rows, columns), "unit", unit,
          "a row of the tensor-core table that multiplies " + types + " for kind " + std::string(name_of(problem.kind)));
  return error_bounds(problem, any_order(*row));
}

const Op kGroupedGemm{"grouped_gemm", outputs, write_outputs, true, numerics, "d", bounds, visit};

}  // namespace assay::conformance
