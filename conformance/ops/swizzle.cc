// Ops `swizzle` and `unswizzle` (schema 2).

#include "reference/layout/swizzle.h"
#include "conformance/ops/op.h"
#include "conformance/ops/words.h"

namespace assay::conformance {
namespace {

struct Parsed {
  Recipe recipe;
  Direction direction;
  std::int64_t columns = 0;
  std::vector<std::int64_t> rows;     // of each group
  std::vector<std::int64_t> offsets;  // of each group's scales, and the total
};

Parsed parse(const Request& request, const char* input) {
  Parsed parsed{recipe_of(request), direction_of(request), request.integer("K"), {}, {}};
  if (parsed.recipe != Recipe::mxfp8 && parsed.recipe != Recipe::nvfp4) {
    throw InvalidArgument("attribute recipe", name_of(parsed.recipe), "mxfp8 or nvfp4: only their scales are swizzled");
  }
  parsed.rows = group_rows(request, request.integer_or("R", 0));
  parsed.offsets = scale_offsets(parsed.recipe, parsed.direction, parsed.rows, parsed.columns);
  request.input(input, scale_format(parsed.recipe), parsed.offsets.back());
  request.refuse_unknown();
  return parsed;
}

std::vector<OutputSpec> outputs(const Request& request, const char* input, const char* output) {
  const Parsed parsed = parse(request, input);
  return {{output, scale_format(parsed.recipe), request.input(input).shape}};
}

using Reorder = void(Recipe, Direction, std::int64_t, std::int64_t, std::span<const std::uint8_t>, std::span<std::uint8_t>);

void answer(const Request& request, const char* input, const char* output, Reorder* reorder) {
  const Parsed parsed = parse(request, input);
  auto* to = static_cast<std::uint8_t*>(request.output(output, scale_format(parsed.recipe), parsed.offsets.back()));
  if (to == nullptr) return;
  const auto* from = static_cast<const std::uint8_t*>(request.input(input).data);
  for (std::size_t t = 0; t < parsed.rows.size(); ++t) {
    const auto size = static_cast<std::size_t>(parsed.offsets[t + 1] - parsed.offsets[t]);
    reorder(parsed.recipe, parsed.direction, parsed.rows[t], parsed.columns, {from + parsed.offsets[t], size},
            {to + parsed.offsets[t], size});
  }
}

constexpr const char* kCompact = "compact";
constexpr const char* kSwizzled = "swizzled";

std::vector<OutputSpec> swizzle_outputs(const Request& request) { return outputs(request, kCompact, kSwizzled); }
void swizzle_answer(const Request& request, Layer layer) {
  answer(request, kCompact, kSwizzled, layer == Layer::fast ? swizzle_scales : scalar::swizzle_scales);
}
std::vector<OutputSpec> unswizzle_outputs(const Request& request) { return outputs(request, kSwizzled, kCompact); }
void unswizzle_answer(const Request& request, Layer layer) {
  answer(request, kSwizzled, kCompact, layer == Layer::fast ? unswizzle_scales : scalar::unswizzle_scales);
}

}  // namespace

const Op kSwizzle{"swizzle", swizzle_outputs, swizzle_answer};
const Op kUnswizzle{"unswizzle", unswizzle_outputs, unswizzle_answer};

}  // namespace assay::conformance
