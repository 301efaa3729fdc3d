#include "reference/gemm/problem.h"

#include <algorithm>
#include <string>

#include "reference/gemm/quantized_output.h"
#include "reference/layout/offsets.h"
#include "reference/layout/scale_shape.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

void require_known_enums(const GroupedGemmProblem& problem) {
  require(problem.kind <= GemmKind::nvfp4, "kind", static_cast<std::uint32_t>(problem.kind), "a GemmKind (0 to 5)");
  require(problem.layout <= GemmLayout::NT, "layout", static_cast<std::uint32_t>(problem.layout), "a GemmLayout (0 to 2)");
  require(problem.weight_block <= WeightBlock::b128x128, "weight_block", static_cast<std::uint32_t>(problem.weight_block),
          "a WeightBlock (0 or 1)");
  require(problem.scale_layout <= ScaleLayout::swizzled, "scale_layout", static_cast<std::uint32_t>(problem.scale_layout),
          "a ScaleLayout (0 or 1)");
  require(!problem.row_and_column_scales || problem.kind == GemmKind::fp8_per_tensor, "row_and_column_scales", true,
          "false, but for kind fp8_per_tensor");
  const bool quantized = is_quantized_output(problem.d_type);
  const bool known = problem.d_type == Format::f32 || problem.d_type == Format::bf16 || problem.d_type == Format::f16;
  require(known || (quantized && (problem.d_scale != nullptr || problem.splits.empty())), "d_type",
          static_cast<std::uint32_t>(problem.d_type), "f32, bf16 or f16; e4m3 or e5m2 where d_scale is given");
  require(quantized || problem.d_scale == nullptr, "d_scale", problem.d_scale, "null, but for a D in FP8");
}

void require_aligned(const void* pointer, int bits, const std::string& name) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::uintptr_t unit = bits >= 8 ? static_cast<std::uintptr_t>(bits) / 8 : 1;
  require(address % unit == 0, name, address, "an address that is a multiple of the element's size");
}

// The rows of each group, checked.
std::vector<RowRange> ranges_of(const GroupedGemmProblem& problem) {
  require(problem.rows >= 0, "rows", problem.rows, "a value of at least 0");
  require(problem.N >= 0, "N", problem.N, "a value of at least 0");
  require(problem.K >= 0, "K", problem.K, "a value of at least 0");
  const std::vector<std::int64_t> offsets = splits_to_offsets(problem.splits);
  require(offsets.back() <= problem.rows, "splits", offsets.back(), "a sum of at most rows (" + show(problem.rows) + ")");
  if (problem.group_rows != nullptr) {
    const GroupRows& given = *problem.group_rows;
    require(given.rows == problem.rows, "rows", problem.rows, "those of group_rows, " + show(given.rows));
    require(std::equal(problem.splits.begin(), problem.splits.end(), given.splits.begin(), given.splits.end()), "splits",
            problem.splits.size(), "those of group_rows");
    require(problem.layout != GemmLayout::NT || given.layout == GroupedLayout::psum, "group_rows",
            static_cast<std::uint32_t>(given.layout), "psum in layout NT, where each group has one range of rows");
    return given.ranges;
  }
  std::vector<RowRange> ranges;
  for (std::size_t t = 0; t < problem.splits.size(); ++t) {
    const auto group = static_cast<std::int64_t>(t);
    ranges.push_back({group, offsets[t], problem.splits[t], group, 0});
  }
  return ranges;
}

// How the kind quantizes an operand, where it does.
std::optional<Recipe> recipe_of(const GroupedGemmProblem& problem, bool weight) {
  switch (problem.kind) {
    case GemmKind::bf16:
    case GemmKind::f16: return std::nullopt;
    case GemmKind::fp8_per_tensor: return Recipe::tensor_current;
    case GemmKind::mxfp8: return Recipe::mxfp8;
    case GemmKind::nvfp4: return Recipe::nvfp4;
    case GemmKind::fp8_block: break;
  }
  const bool tiles = weight && problem.layout != GemmLayout::NT && problem.weight_block == WeightBlock::b128x128;
  return tiles ? Recipe::block_128x128 : Recipe::block_1x128;
}

// spec grouped-gemm-1.5: E2M1 weights beside FP8 activations.
bool is_fp4_weight(const GroupedGemmProblem& problem, Format type, bool weight) {
  return weight && type == Format::e2m1 && problem.kind == GemmKind::mxfp8 && problem.layout == GemmLayout::TN;
}

void require_type(GemmKind kind, Format type, const std::string& name) {
  const auto code = static_cast<std::uint32_t>(type);
  switch (kind) {
    case GemmKind::bf16: return require(type == Format::bf16, name, code, "bf16 for kind bf16");
    case GemmKind::f16: return require(type == Format::f16, name, code, "f16 for kind f16");
    case GemmKind::nvfp4: return require(type == Format::e2m1, name, code, "e2m1 for kind nvfp4");
    default: return require(type == Format::e4m3 || type == Format::e5m2, name, code, "e4m3 or e5m2 for an FP8 kind");
  }
}

// spec grouped-gemm-1.2: which storage a contraction along `rows` or columns of the matrix reads.
void require_storage(const GroupedGemmProblem& problem, bool along_rows, bool columnwise, const std::string& name) {
  const bool hopper_rules = problem.architecture == "sm89" || problem.architecture == "sm90";  // FP8 operands K-major only
  const bool either = problem.kind == GemmKind::bf16 || problem.kind == GemmKind::f16 ||
                      (problem.kind == GemmKind::fp8_per_tensor && !hopper_rules);
  if (either) return;
  require(columnwise == along_rows, name, columnwise,
          std::string(along_rows ? "columnwise" : "rowwise") + " storage, which " + std::string(name_of(problem.kind)) +
              " reads in layout " + std::string(name_of(problem.layout)));
}

// One operand of all groups: matrices of rows of `columns` elements.
struct OperandSource {
  std::string name;
  const GemmOperand* operand;
  std::vector<std::int64_t> group_rows;  // rows of each matrix of scales; without such matrices, of each group
  std::int64_t columns;
  bool along_rows;  // the contraction runs over the rows of the matrix
  std::optional<Recipe> recipe;
  std::vector<std::int64_t> scale_offsets;  // first scale of each group, and their total
  bool scale_per_i = false;                 // each row or column of D has a scale of its own
  bool one_scale_a_group = false;
};

// A scale for each row of the operand as the contraction sees it, groups one after another.
std::vector<std::int64_t> offsets_of_vectors(const OperandSource& source) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t rows : source.group_rows) {
    const std::int64_t extent = source.along_rows ? source.columns : rows;
    offsets.push_back(checked_sum(offsets.back(), extent, source.name + " rows", extent));
  }
  return offsets;
}

OperandSource source_of(const GroupedGemmProblem& problem, const std::string& name, const GemmOperand& operand, bool weight,
                        bool along_rows) {
  OperandSource source;
  source.name = name;
  source.operand = &operand;
  source.columns = name == "dy" ? problem.N : problem.K;
  source.along_rows = along_rows;
  source.recipe = recipe_of(problem, weight);
  source.scale_per_i = problem.row_and_column_scales;
  source.one_scale_a_group = source.recipe == Recipe::tensor_current && !source.scale_per_i;
  const bool placed = problem.group_rows != nullptr && !along_rows && !source.one_scale_a_group && source.recipe;
  if (weight) {
    source.group_rows.assign(problem.splits.size(), problem.N);
  } else if (placed) {
    source.group_rows = problem.group_rows->scale_rows;
  } else {
    source.group_rows.assign(problem.splits.begin(), problem.splits.end());
  }

  if (!is_fp4_weight(problem, operand.type, weight)) require_type(problem.kind, operand.type, name + ".type");
  require_storage(problem, along_rows, operand.columnwise, name + ".columnwise");

  std::int64_t group_rows = 0;
  for (const std::int64_t rows :
       weight ? source.group_rows : std::vector<std::int64_t>(problem.splits.begin(), problem.splits.end()))
    group_rows = checked_sum(group_rows, rows, name + " rows", rows);
  const std::int64_t total_rows = weight ? group_rows : problem.rows;
  const std::int64_t elements = checked_product(total_rows, source.columns, name + " rows", total_rows);
  checked_product(elements, 4, name + " rows", total_rows);  // bytes
  const std::int64_t used = group_rows * source.columns;
  require(used == 0 || operand.data != nullptr, name + ".data", operand.data, "a pointer to the operand's elements");
  require_aligned(operand.data, bits_of(operand.type), name + ".data");

  if (operand.type == Format::e2m1) {
    for (std::size_t t = 0; t < source.group_rows.size(); ++t) {
      const std::int64_t packed = along_rows ? source.group_rows[t] : source.columns;
      const bool fine = packed % 2 == 0 || source.group_rows[t] == 0 || source.columns == 0;
      require(fine, along_rows ? "rows of group " + show(t) : "columns of " + name, packed, "an even number for e2m1");
    }
  }
  if (problem.kind == GemmKind::nvfp4) {
    require(used == 0 || operand.amax != nullptr, name + ".amax", static_cast<const void*>(operand.amax),
            "a pointer to the amax of each group");
    require_aligned(operand.amax, 32, name + ".amax");
  }
  if (source.recipe) {
    const Direction direction = operand.columnwise ? Direction::columnwise : Direction::rowwise;
    source.scale_offsets = source.scale_per_i ? offsets_of_vectors(source)
                                              : scale_offsets(*source.recipe, direction, source.group_rows, source.columns);
    checked_product(source.scale_offsets.back(), 4, name + " rows", total_rows);
    require(used == 0 || operand.scale_inv != nullptr, name + ".scale_inv", operand.scale_inv, "a pointer to the scales");
    require_aligned(operand.scale_inv, bits_of(scale_format(*source.recipe)), name + ".scale_inv");
  }
  return source;
}

ScaleView scale_view(const OperandSource& source, const RowRange& range, std::int64_t depth, ScaleLayout layout) {
  ScaleView view;
  if (!source.recipe) return view;
  const Recipe recipe = *source.recipe;
  const bool columnwise = source.operand->columnwise;
  const Direction direction = columnwise ? Direction::columnwise : Direction::rowwise;
  const bool own = source.one_scale_a_group || source.along_rows;
  const auto matrix = static_cast<std::size_t>(own ? range.group : range.scale_matrix);
  const ScaleShape shape = scale_shape(recipe, direction, source.group_rows[matrix], source.columns);

  view.first_i = own ? 0 : range.scale_row;
  view.type = scale_format(recipe);
  const std::int64_t bytes = source.scale_offsets[matrix] * (bits_of(view.type) / 8);
  view.data = static_cast<const std::uint8_t*>(source.operand->scale_inv) + bytes;
  const bool swizzled = layout == ScaleLayout::swizzled;
  switch (recipe) {
    case Recipe::tensor_current:
    case Recipe::tensor_delayed:
      if (source.scale_per_i) view.i_block = 1, view.i_stride = 1;
      break;
    case Recipe::block_1x128:  // [k block][i]
      view.i_block = 1, view.k_block = 128, view.i_stride = 1, view.k_stride = shape.columns;
      break;
    case Recipe::block_128x128:  // [i block][k block]
      view.i_block = 128, view.k_block = 128, view.i_stride = shape.columns, view.k_stride = 1;
      break;
    case Recipe::mxfp8:  // [i][k block], columnwise [k block][i]
      view.i_block = 1, view.k_block = 32, view.swizzled = swizzled, view.tiles = ceil_div(depth, 128);
      view.i_stride = columnwise ? 1 : shape.columns;
      view.k_stride = columnwise ? shape.columns : 1;
      break;
    case Recipe::nvfp4:  // [i][k block]
      view.i_block = 1, view.k_block = 16, view.swizzled = swizzled, view.tiles = ceil_div(ceil_div(depth, 16), 4);
      view.i_stride = shape.columns, view.k_stride = 1;
      break;
  }
  return view;
}

OperandView operand_view(const OperandSource& source, const RowRange& range, ScaleLayout layout) {
  const GemmOperand& operand = *source.operand;
  const std::int64_t rows = range.rows;
  const bool transposed = operand.columnwise && source.recipe != Recipe::mxfp8;

  OperandView view;
  view.type = operand.type;
  const std::int64_t first = range.first * source.columns;
  view.data = operand.data == nullptr ? nullptr : static_cast<const std::uint8_t*>(operand.data) + bytes_of(operand.type, first);
  view.extent = source.along_rows ? source.columns : rows;
  view.depth = source.along_rows ? rows : source.columns;
  const bool k_major = transposed == source.along_rows;
  view.row_stride = k_major ? view.depth : 1;
  view.k_stride = k_major ? 1 : view.extent;
  if (operand.scale_inv != nullptr) view.scale = scale_view(source, range, view.depth, layout);
  if (operand.type == Format::e2m1 && operand.amax != nullptr) view.amax = operand.amax[range.group];
  return view;
}

// Groups that are apart from one another are not transposed one by one: no source has that (spec grouped-gemm-1.4).
void require_untransposed(const GroupedGemmProblem& problem, const OperandSource& rows, const OperandSource& columns) {
  if (problem.group_rows == nullptr || problem.layout != GemmLayout::NT) return;
  for (const OperandSource* each : {&rows, &columns}) {
    require(!each->operand->columnwise || each->recipe == Recipe::mxfp8, each->name + ".columnwise", each->operand->columnwise,
            "storage that is not transposed, where group_rows is given in layout NT");
  }
}

std::span<const float> checked_factors(std::span<const float> values, std::size_t groups, std::string_view name) {
  require(values.size() <= 1 || values.size() == groups, name, values.size(), "none, 1 value or one per group");
  return values;
}

float factor(std::span<const float> values, std::size_t group, float absent) {
  return values.empty() ? absent : values.size() == 1 ? values[0] : values[group];
}

const AccumulationPlan& resolve_plan(const GroupedGemmProblem& problem) {
  if (problem.plan != nullptr) return *problem.plan;
  PlanKey request;
  request.architecture = problem.architecture;
  request.kind = problem.kind;
  request.layout = problem.layout;
  request.split_accumulator = problem.split_accumulator;
  request.d_type = problem.d_type;
  request.row_and_column_scales = problem.row_and_column_scales;
  if (problem.kind == GemmKind::fp8_block) {
    request.weight_block = problem.layout == GemmLayout::NT ? WeightBlock::b1x128 : problem.weight_block;
  }
  if (const AccumulationPlan* plan = plan_for(request)) return *plan;
  throw NotSupported("no accumulation plan is known for kind " + std::string(name_of(problem.kind)) +
                     (problem.row_and_column_scales ? " with scales of rows and columns" : "") + ", layout " +
                     std::string(name_of(problem.layout)) + " on architecture \"" + std::string(problem.architecture) + "\"");
}

const TensorCoreUnit& resolve_unit(const AccumulationPlan& plan) {
  const TensorCoreUnit* unit = find_tensor_core_unit(plan.unit);
  require(unit != nullptr, "plan.unit", plan.unit, "a row of the tensor-core table");
  return *unit;
}

void require_operand_type(const AccumulationPlan& plan, const TensorCoreUnit& unit, Format type, const std::string& name) {
  if (plan.widen) return;  // FP8 codes (require_serves), converted to a type of the unit (require_sound)
  for (const Format each : unit.operands) {
    if (each == type) return;
  }
  require(false, name, name_of(type), "an operand type of " + std::string(unit.name));
}

void require_covered(const AccumulationPlan& plan, std::int64_t depth) {
  if (plan.slices == 1) return;
  std::int64_t covered = 0;
  if (__builtin_mul_overflow(plan.slices, plan.slice_length, &covered)) return;  // more than any depth
  require(depth <= covered, "plan.slices", plan.slices, "slices of slice_length that cover a contraction of " + show(depth));
}

// spec grouped-gemm-2.7
void require_quantizable(const AccumulationPlan& plan, const GroupedGemmProblem& problem, float beta) {
  if (!is_quantized_output(problem.d_type)) return;
  require(beta == 0, "beta", beta, "0 with a D in FP8");
  require(problem.bias == nullptr, "bias", problem.bias, "null with a D in FP8");
  require(plan.merge != SliceMerge::sequential_output, "plan.merge", "sequential_output", "another merge with a D in FP8");
}

// spec grouped-gemm-2.6
void require_added_onto(const AccumulationPlan& plan, const GroupedGemmProblem& problem, float beta) {
  if (plan.epilogue == GemmEpilogue::scaled_alpha_beta) return;
  require(problem.d_type == Format::f32, "d_type", name_of(problem.d_type), "f32 where the plan adds onto C in memory");
  require(beta == 1, "beta", beta, "1 where the plan adds onto C in memory");
  require(problem.bias == nullptr, "bias", problem.bias, "null where the plan adds onto C in memory");
}

}  // namespace

MatrixShape grouped_gemm_shape(const GroupedGemmProblem& problem) {
  require_known_enums(problem);
  ranges_of(problem);
  switch (problem.layout) {
    case GemmLayout::TN: return {problem.rows, problem.N};
    case GemmLayout::NN: return {problem.rows, problem.K};
    case GemmLayout::NT: break;
  }
  const auto groups = static_cast<std::int64_t>(problem.splits.size());
  return {checked_product(groups, problem.N, "N", problem.N), problem.K};
}

GroupedGemmView view_of(const GroupedGemmProblem& problem, const void* d) {
  const MatrixShape shape = grouped_gemm_shape(problem);
  const std::int64_t elements = checked_product(shape.rows, shape.columns, "rows", shape.rows);
  checked_product(elements, 4, "rows", shape.rows);  // bytes
  const std::vector<RowRange> ranges = ranges_of(problem);
  const std::size_t groups = problem.splits.size();
  const std::span<const float> alpha = checked_factors(problem.alpha, groups, "alpha");
  const std::span<const float> beta = checked_factors(problem.beta, groups, "beta");

  GroupedGemmView view;
  view.kind = problem.kind;
  view.d_type = problem.d_type;
  view.plan = &resolve_plan(problem);
  view.unit = &resolve_unit(*view.plan);
  require_sound(*view.plan, *view.unit);
  require_serves(*view.plan, *view.unit, problem.kind, problem.row_and_column_scales);

  const bool wgrad = problem.layout == GemmLayout::NT;
  const OperandSource rows = problem.layout == GemmLayout::TN ? source_of(problem, "x", problem.x, false, false)
                                                              : source_of(problem, "dy", problem.dy, false, wgrad);
  const OperandSource columns = wgrad ? source_of(problem, "x", problem.x, false, true)
                                      : source_of(problem, "w", problem.w, true, problem.layout == GemmLayout::NN);
  require_operand_type(*view.plan, *view.unit, rows.operand->type, rows.name + ".type");
  require_untransposed(problem, rows, columns);
  require_operand_type(*view.plan, *view.unit, columns.operand->type, columns.name + ".type");

  require(problem.bias == nullptr || problem.layout == GemmLayout::TN, "bias", problem.bias, "null, but for layout TN");
  require_aligned(d, bits_of(problem.d_type), "d");
  require_aligned(problem.d_scale, 32, "d_scale");
  require_aligned(problem.c, bits_of(problem.d_type), "c");
  require_aligned(problem.bias, bits_of(problem.d_type), "bias");

  for (const RowRange& range : ranges) {
    const auto t = static_cast<std::size_t>(range.group);
    GroupView group;
    group.rows = operand_view(rows, range, problem.scale_layout);
    const RowRange weight{range.group, range.group * problem.N, problem.N, range.group, 0};
    group.columns = operand_view(columns, wgrad ? range : weight, problem.scale_layout);
    group.m = group.rows.extent;
    group.n = group.columns.extent;
    group.depth = group.rows.depth;
    if (group.m == 0 || group.n == 0) continue;
    require_covered(*view.plan, group.depth);
    require(d != nullptr, "d", d, "a pointer to the output");

    group.alpha = factor(alpha, t, 1);
    group.beta = factor(beta, t, 0);
    if (group.beta != 0) {
      require(problem.c != nullptr, "c", problem.c, "a pointer to C where beta is not 0");
      view.c = problem.c;
    }
    require_added_onto(*view.plan, problem, group.beta);
    require_quantizable(*view.plan, problem, group.beta);
    if (problem.d_scale != nullptr) group.d_scale = problem.d_scale[t];
    group.d_offset = (wgrad ? range.group * problem.N : range.first) * group.n;
    if (problem.bias != nullptr) {
      group.bias = static_cast<const std::uint8_t*>(problem.bias) + bytes_of(problem.d_type, range.group * problem.N);
    }
    view.groups.push_back(group);
  }
  return view;
}

}  // namespace assay
