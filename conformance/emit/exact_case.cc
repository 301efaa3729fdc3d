#include "conformance/emit/exact_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "conformance/cases/case_schema.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/tensors.h"
#include "conformance/generate/work_limit.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/ops/answer.h"
#include "conformance/ops/output_map.h"
#include "conformance/suites/golden_cases.h"
#include "reference/formats/encode.h"
#include "reference/gemm/error_bound.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr const char* kOneCall = "a line of one call with expected outputs";

bool is_bounded(const CaseLine& line, const ExactOptions& options) {
  return options.bounds || (check_kind(line) == CheckKind::bound && options.plan.empty());
}

void require_one_call(const CaseLine& line, const ExactOptions& options) {
  require(line.op != "scenario", "op", line.op, std::string(kOneCall) + ": a scenario has several calls");
  const auto refuse = [&](const char* key, const char* why) {
    if (line.has(key) && line.text(key) != "0") throw InvalidArgument(key, line.text(key), std::string(kOneCall) + ": " + why);
  };
  const OpSchema& op = *find_op(line.op);
  if (find_key(op, "contract") != nullptr) refuse("contract", "it asks for wrong calls beside the right one; leave it out");
  if (find_key(op, "fault") != nullptr) refuse("fault", "a wrong call has no right outputs");
  if (find_key(op, "replay") != nullptr) refuse("replay", "each replay has other contents; leave it out for the first call");
  const bool has_product = !product_output(line.op).empty();
  const auto require_product = [&](const char* option, const std::string& value) {
    require(has_product || value.empty(), option, value, fmt::format("an op with a product: {} has none", line.op));
  };
  require_product("--plan", options.plan);
  require_product("--bounds", options.bounds ? "given" : "");
  require_product("--unit", options.unit);
  require(!options.bounds || options.plan.empty(), "--bounds", "given", "no --plan beside it: a plan gives bits");
  require(options.unit.empty() || is_bounded(line, options), "--unit", options.unit, "--bounds, or a case with check=bound");
}

std::int64_t bytes_in(const std::map<std::string, Tensor>& tensors) {
  std::int64_t sum = 0;
  for (const auto& [name, tensor] : tensors) sum += static_cast<std::int64_t>(tensor.bytes.size());
  return sum;
}

void require_small(std::int64_t bytes, std::int64_t most, const char* at_least) {
  require(bytes <= most, "the size of the case", fmt::format("{}{} bytes of inputs and expected outputs", at_least, bytes),
          fmt::format("at most {} (--max-bytes)", most));
}

// An element of an operand takes at least half a byte, and a block scale of 32 elements one byte.
constexpr std::int64_t kElementsOfByte = 64;

// Before anything is computed.
void require_small_line(const CaseLine& line, std::int64_t most) {
  require_small(cost_of(line).elements / kElementsOfByte, most, "at least ");
}

// Without making much more than what may be emitted: elements are counted up to four times on their way into a tensor.
Case small_case(const CaseLine& line, std::int64_t most) {
  std::int64_t elements = 0;
  const WorkLimit limit(__builtin_mul_overflow(most, 8, &elements) ? INT64_MAX : elements);
  return generate(line);
}

// Before the outputs are computed. An interval has two words.
void require_small_outputs(const Case& problem, const std::vector<std::string>& wanted, bool bounded, std::int64_t most) {
  std::int64_t sum = bytes_in(problem.in);
  for (const OutputSpec& spec : outputs_of(Request::read_only(problem))) {
    if (std::find(wanted.begin(), wanted.end(), spec.name) == wanted.end()) continue;
    std::int64_t bytes = 0;
    const std::int64_t words = bounded && spec.name == product_output(problem.op) ? 2 : 1;
    const bool fits = !__builtin_mul_overflow(element_count(spec.shape), stored_bytes(spec.type) * words, &bytes) &&
                      !__builtin_add_overflow(sum, bytes, &sum);
    if (!fits) sum = INT64_MAX;
  }
  require_small(sum, most, "");
}

enum class Use { compared, kept, free };

// How each element of an output is compared: the rules of compare.h.
std::vector<Use> uses_of(const Case& problem, const std::string& name, const Tensor& want,
                         const std::vector<std::uint8_t>& written) {
  const OutputMap map = map_output(problem, name, want);
  const std::int64_t width = std::max(bits_of(want.type) / 8, 1);
  const auto may_be_written = [&](std::int64_t element) {
    const std::int64_t at = want.type == Format::e2m1 ? element / 2 : element * width;
    for (std::int64_t i = 0; i < width; ++i) {
      if (written[static_cast<std::size_t>(at + i)] != 0) return true;
    }
    return false;
  };
  std::vector<Use> uses(static_cast<std::size_t>(map.elements), Use::kept);  // behind the last segment: rows beyond the splits
  for (const Segment& segment : map.segments) {
    for (std::int64_t offset = 0; offset < segment.elements(); ++offset) {
      const Coordinates at = coordinates_of(segment, offset);
      const bool used = at.row < segment.used_rows && at.column < segment.used_columns;
      const std::int64_t element = segment.first + offset;
      const bool padding = !used && segment.swizzle == Swizzle::none;  // swizzled padding is 0, and compared
      Use& use = uses[static_cast<std::size_t>(element)];
      if (may_be_written(element)) use = padding ? Use::free : Use::compared;
    }
  }
  return uses;
}

std::vector<OpenRange> open_ranges(const std::vector<Use>& uses) {
  std::vector<OpenRange> ranges;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] == Use::compared) continue;
    const bool is_free = uses[i] == Use::free;
    const auto at = static_cast<std::int64_t>(i);
    if (!ranges.empty() && ranges.back().is_free == is_free && ranges.back().first + ranges.back().count == at) {
      ++ranges.back().count;
    } else {
      ranges.push_back({at, 1, is_free});
    }
  }
  return ranges;
}

// The word of a value of this type.
std::uint32_t word_of(Format type, double value) {
  if (std::isnan(value)) return inputs::nan_code(type);
  const auto single = static_cast<float>(value);
  if (type == Format::f32) return std::bit_cast<std::uint32_t>(single);
  if (std::isinf(value) && type != Format::e4m3) {
    const std::uint32_t infinity = type == Format::bf16 ? 0x7F80 : type == Format::f16 ? 0x7C00 : 0x7C;
    return infinity | (value < 0 ? 1u << (bits_of(type) - 1) : 0);
  }
  if (bits_of(type) == 16) {
    std::uint16_t word = 0;
    encode(type, {&single, 1}, {&word, 1});
    return word;
  }
  std::uint8_t word = 0;
  encode(type, {&single, 1}, {&word, 1});
  return word;
}

// The ends of the intervals as words of the output. Elements without an interval may hold anything.
void put_bounds(const std::vector<CertifiedBound>& bounds, ExactOutput& output, std::vector<Use>& uses) {
  output.most = output.want;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] != Use::compared) continue;
    if (!bounds[i].is_bounded()) {
      uses[i] = Use::free;
      continue;
    }
    const std::uint32_t least = word_of(output.want.type, bounds[i].lowest), most = word_of(output.want.type, bounds[i].highest);
    inputs::store({&least, 1}, output.want, static_cast<std::int64_t>(i));
    inputs::store({&most, 1}, *output.most, static_cast<std::int64_t>(i));
  }
}

}  // namespace

ExactCase exact_case(const CaseLine& line, const ExactOptions& options) {
  require_one_call(line, options);
  require_small_line(line, options.max_bytes);
  ExactCase made;
  made.problem = small_case(line, options.max_bytes);
  if (!options.plan.empty()) made.problem.attributes["plan"] = options.plan;
  const std::vector<std::string> wanted = wanted_outputs(line);
  const std::string product = product_output(line.op);
  made.bounded = is_bounded(line, options);
  require_small(bytes_in(made.problem.in), options.max_bytes, "at least ");
  require_small_outputs(made.problem, wanted, made.bounded, options.max_bytes);

  Case answered = made.problem;
  fill_outputs(answered, &wanted);
  const bool has_product = answered.out.count(product) != 0;
  made.bounded = made.bounded && has_product;
  std::vector<CertifiedBound> bounds;
  if (made.bounded) {
    bounds = bounds_of(Request::read_only(made.problem), options.unit);
    made.unit = options.unit;
  } else if (has_product) {
    const Numerics numerics = numerics_of(Request::read_only(answered));
    made.unit = numerics.unit;
    made.plan = plan_line(*find_accumulation_plan(numerics.plan));
  }
  made.order_free = check_kind(line) == CheckKind::order_free && options.plan.empty() && !made.bounded;
  const auto written = written_bytes(Request::of(answered));
  for (const std::string& name : wanted) {
    Tensor& want = answered.out.at(name);
    std::vector<Use> uses = uses_of(made.problem, name, want, written.at(name));
    const bool codes = name.ends_with("rowwise_data") || name.ends_with("columnwise_data");
    ExactOutput output{
        name, std::move(want), {}, codes && zero_sign_free(made.problem), {}, static_cast<std::int64_t>(uses.size())};
    if (made.bounded && name == product) put_bounds(bounds, output, uses);
    output.open = open_ranges(uses);
    made.outputs.push_back(std::move(output));
  }
  return made;
}

}  // namespace assay::conformance
