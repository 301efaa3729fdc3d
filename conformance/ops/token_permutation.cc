// Ops `permute` and `unpermute` (schema 2).

#include "conformance/ops/op.h"
#include "conformance/ops/token_request.h"
#include "conformance/ops/words.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay::conformance {
namespace {

const TensorView& matrix(const Request& request, const char* name) {
  const TensorView& tensor = request.input(name);
  if (tensor.shape.size() != 2) throw InvalidArgument(std::string("in/") + name, describe(tensor), "a matrix");
  return tensor;
}

RowMap row_map(const Request& request) {
  const TensorView& tensor = matrix(request, "row_map");
  request.input("row_map", Format::i32);
  RowMap map;
  map.rows = {static_cast<const std::int32_t*>(tensor.data), static_cast<std::size_t>(tensor.elements())};
  map.tokens = tensor.shape[0], map.topk = tensor.shape[1];
  return map;
}

// ---- permute --------------------------------------------------------------------------------------------------------

}  // namespace

PermuteRequest permute_request_of(const Request& request) {
  PermuteRequest made{row_map(request), &matrix(request, "x"), nullptr};
  const Format type = made.x->type;
  const bool known =
      type == Format::bf16 || type == Format::f16 || type == Format::f32 || type == Format::e4m3 || type == Format::e5m2;
  if (!known) throw InvalidArgument("in/x", describe(*made.x), "bf16, f16, f32, e4m3 or e5m2");
  require(made.x->shape[0] == made.map.tokens, "rows of in/x", made.x->shape[0], "those of in/row_map, " + show(made.map.tokens));
  if (request.find_input("scale_inv") != nullptr) {
    made.scales = &matrix(request, "scale_inv");
    const bool scale = made.scales->type == Format::f32 || made.scales->type == Format::e8m0;
    if (!scale || made.scales->shape[0] != made.map.tokens)
      throw InvalidArgument("in/scale_inv", describe(*made.scales), "f32 or e8m0, a row for each token");
  }
  made.map.permuted_rows = request.integer("permuted_rows");
  require(made.map.permuted_rows >= 0, "attribute permuted_rows", made.map.permuted_rows, "0 or more");
  for (const TensorView* each : {made.x, made.scales}) {
    if (each != nullptr)
      checked_product(checked_product(made.map.permuted_rows, each->shape[1], "attribute permuted_rows", made.map.permuted_rows),
                      4, "attribute permuted_rows", made.map.permuted_rows);
  }
  request.refuse_unknown();
  require(made.scales != nullptr || !request.wants("permuted_scale_inv"), "out/permuted_scale_inv", "requested",
          "only with in/scale_inv");
  return made;
}

namespace {

std::vector<OutputSpec> permute_outputs(const Request& request) {
  const PermuteRequest parsed = permute_request_of(request);
  std::vector<OutputSpec> outputs{{"permuted", parsed.x->type, {parsed.map.permuted_rows, parsed.x->shape[1]}}};
  if (parsed.scales != nullptr) {
    outputs.push_back({"permuted_scale_inv", parsed.scales->type, {parsed.map.permuted_rows, parsed.scales->shape[1]}});
  }
  return outputs;
}

void permute_answer(const Request& request, Layer layer) {
  const PermuteRequest parsed = permute_request_of(request);
  check_row_map(parsed.map);
  struct Move {
    const TensorView* from;
    void* to;
  };
  std::vector<Move> moves;  // all outputs are checked before any is written
  const auto add = [&](const TensorView* from, const char* to) {
    if (from != nullptr) moves.push_back({from, request.output(to, from->type, parsed.map.permuted_rows * from->shape[1])});
  };
  add(parsed.x, "permuted");
  add(parsed.scales, "permuted_scale_inv");
  for (const Move& move : moves) {
    if (move.to == nullptr) continue;
    const std::int64_t row_bytes = move.from->shape[1] * bits_of(move.from->type) / 8;
    layer == Layer::fast ? permute_rows(parsed.map, row_bytes, move.from->data, move.to)
                         : scalar::permute_rows(parsed.map, row_bytes, move.from->data, move.to);
  }
}

// ---- unpermute ------------------------------------------------------------------------------------------------------

TokenSums sums_of(const Request& request) {
  const std::string name = request.text_or("sums", "fma_f32");
  if (name == "fma_f32") return TokenSums::fma_f32;
  if (name == "f32") return TokenSums::f32;
  if (name == "in_type") return TokenSums::in_type;
  if (name == "fma_in_type") return TokenSums::fma_in_type;
  throw InvalidArgument("attribute sums", "'" + name + "'", "fma_f32, f32, in_type or fma_in_type");
}

}  // namespace

UnpermuteProblem unpermute_problem_of(const Request& request) {
  UnpermuteProblem problem;
  problem.map = row_map(request);
  const TensorView& permuted = matrix(request, "permuted");
  const Format type = permuted.type;
  if (type != Format::bf16 && type != Format::f16 && type != Format::f32)
    throw InvalidArgument("in/permuted", describe(permuted), "bf16, f16 or f32");
  problem.map.permuted_rows = permuted.shape[0];
  problem.type = type;
  problem.columns = permuted.shape[1];
  problem.permuted = permuted.data;
  problem.sums = sums_of(request);
  const std::int64_t entries = checked_product(problem.map.tokens, problem.map.topk, "in/row_map", problem.map.topk);
  problem.weights = floats(request.find_input("weights", Format::f32, entries));
  request.refuse_unknown();
  return problem;
}

namespace {

std::vector<OutputSpec> unpermute_outputs(const Request& request) {
  const UnpermuteProblem problem = unpermute_problem_of(request);
  return {{"x", problem.type, {problem.map.tokens, problem.columns}}};
}

void unpermute_answer(const Request& request, Layer layer) {
  const UnpermuteProblem problem = unpermute_problem_of(request);
  check_row_map(problem.map);
  void* x = request.output("x", problem.type, problem.map.tokens * problem.columns);
  if (x == nullptr) return;
  layer == Layer::fast ? unpermute(problem, x) : scalar::unpermute(problem, x);
}

}  // namespace

const Op kPermute{"permute", permute_outputs, permute_answer};
const Op kUnpermute{"unpermute", unpermute_outputs, unpermute_answer};

}  // namespace assay::conformance
