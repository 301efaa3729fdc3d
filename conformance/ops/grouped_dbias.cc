// Op `grouped_dbias` (schema 2).

#include "conformance/ops/op.h"
#include "conformance/ops/words.h"
#include "reference/recipes/dbias.h"
#include "reference/recipes/element_scalar.h"
#include "reference/types/sizes.h"

namespace assay::conformance {
namespace {

struct Parsed {
  std::vector<std::int64_t> splits;
  DbiasProblem problem;
  const float* before = nullptr;  // the output is added to this
  std::int64_t elements() const {
    return checked_product(static_cast<std::int64_t>(splits.size()), problem.columns, "columns of in/dy", problem.columns);
  }
};

void parse(const Request& request, Parsed& parsed) {
  const TensorView& dy = request.input("dy");
  if (dy.shape.size() != 2) throw InvalidArgument("in/dy", describe(dy), "a matrix [R,K]");
  parsed.splits = request.splits();
  parsed.problem.x_type = dy.type;
  parsed.problem.x = dy.data;
  parsed.problem.rows = dy.shape[0];
  parsed.problem.columns = dy.shape[1];
  parsed.problem.splits = parsed.splits;
  parsed.problem.output_type = Format::f32;
  if (request.flag("accumulate")) parsed.before = floats(&request.input("dbias", Format::f32, parsed.elements()));
  parsed.elements();  // the same error for every caller where there are too many
  request.refuse_unknown();
}

std::vector<OutputSpec> outputs(const Request& request) {
  Parsed parsed;
  parse(request, parsed);
  return {{"dbias", Format::f32, {static_cast<std::int64_t>(parsed.splits.size()), parsed.problem.columns}}};
}

void write_outputs(const Request& request, Layer layer) {
  Parsed parsed;
  parse(request, parsed);
  auto* dbias = static_cast<float*>(request.output("dbias", Format::f32, parsed.elements()));
  if (dbias == nullptr) return;
  layer == Layer::fast ? grouped_dbias(parsed.problem, dbias) : scalar::grouped_dbias(parsed.problem, dbias);
  if (parsed.before == nullptr) return;
  for (std::int64_t i = 0; i < parsed.elements(); ++i) dbias[i] = scalar::canonical(parsed.before[i] + dbias[i]);
}

}  // namespace

const Op kGroupedDbias{"grouped_dbias", outputs, write_outputs};

}  // namespace assay::conformance
