#include "conformance/emit/exact_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "conformance/cases/case_schema.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/work_limit.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/ops/answer.h"
#include "conformance/ops/output_map.h"
#include "conformance/suites/golden_cases.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr const char* kOneCall = "a line of one call with expected bits";

void require_one_exact_call(const CaseLine& line, const std::string& plan) {
  require(line.op != "scenario", "op", line.op, std::string(kOneCall) + ": a scenario has several calls");
  const auto refuse = [&](const char* key, const char* why) {
    if (line.has(key) && line.text(key) != "0") throw InvalidArgument(key, line.text(key), std::string(kOneCall) + ": " + why);
  };
  const OpSchema& op = *find_op(line.op);
  if (find_key(op, "contract") != nullptr) refuse("contract", "it asks for wrong calls beside the right one; leave it out");
  if (find_key(op, "fault") != nullptr) refuse("fault", "a wrong call has no right outputs");
  if (find_key(op, "replay") != nullptr) refuse("replay", "each replay has other contents; leave it out for the first call");
  const bool has_product = !product_output(line.op).empty();
  require(plan.empty() || has_product, "--plan", plan, fmt::format("an op with a product: {} has none", line.op));
  if (check_kind(line) == CheckKind::bound && plan.empty()) {
    throw InvalidArgument("check", "bound",
                          std::string(kOneCall) + ": this one is compared with intervals" +
                              (has_product ? "; --plan gives it an accumulation plan, and with it bits" : ""));
  }
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

// Before the outputs are computed.
void require_small_outputs(const Case& problem, const std::vector<std::string>& wanted, std::int64_t most) {
  std::int64_t sum = bytes_in(problem.in);
  for (const OutputSpec& spec : outputs_of(Request::read_only(problem))) {
    if (std::find(wanted.begin(), wanted.end(), spec.name) == wanted.end()) continue;
    std::int64_t bytes = 0;
    const bool fits = !__builtin_mul_overflow(element_count(spec.shape), stored_bytes(spec.type), &bytes) &&
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

}  // namespace

ExactCase exact_case(const CaseLine& line, const std::string& plan, std::int64_t max_bytes) {
  require_one_exact_call(line, plan);
  require_small_line(line, max_bytes);
  ExactCase made;
  made.problem = small_case(line, max_bytes);
  if (!plan.empty()) made.problem.attributes["plan"] = plan;
  const std::vector<std::string> wanted = wanted_outputs(line);
  require_small(bytes_in(made.problem.in), max_bytes, "at least ");
  require_small_outputs(made.problem, wanted, max_bytes);

  Case answered = made.problem;
  fill_outputs(answered, &wanted);
  if (answered.out.count(product_output(line.op)) != 0) {
    const Numerics numerics = numerics_of(Request::read_only(answered));
    made.unit = numerics.unit;
    made.plan = plan_line(*find_accumulation_plan(numerics.plan));
  }
  made.order_free = check_kind(line) == CheckKind::order_free && plan.empty();
  const auto written = written_bytes(Request::of(answered));
  for (const std::string& name : wanted) {
    Tensor& want = answered.out.at(name);
    const std::vector<Use> uses = uses_of(made.problem, name, want, written.at(name));
    const bool codes = name.ends_with("rowwise_data") || name.ends_with("columnwise_data");
    made.outputs.push_back({name, std::move(want), codes && zero_sign_free(made.problem), open_ranges(uses),
                            static_cast<std::int64_t>(uses.size())});
  }
  return made;
}

}  // namespace assay::conformance
