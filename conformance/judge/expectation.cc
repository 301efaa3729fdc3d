#include "conformance/judge/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "conformance/backends/stated_plan.h"
#include "conformance/diagnose/unit_behaviour.h"
#include "conformance/judge/call_runner.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/judge/compare/outside_bounds.h"
#include "conformance/judge/expectation_request.h"
#include "conformance/judge/stated_numerics.h"
#include "conformance/ops/grouped_layout.h"
#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// Outputs of these specs in `storage`.
void give_outputs(Request& request, const std::vector<OutputSpec>& specs,
                  std::map<std::string, std::vector<std::byte>>& storage) {
  for (const OutputSpec& spec : specs) {
    OutputView view{spec.type, spec.shape, nullptr, 0};
    view.bytes = spec.type == Format::e2m1 ? view.elements() : bytes_of(spec.type, view.elements());
    std::vector<std::byte>& bytes = storage[spec.name];
    bytes.resize(static_cast<std::size_t>(view.bytes));
    view.data = bytes.empty() ? nullptr : bytes.data();
    request.out[spec.name] = view;
  }
}

constexpr std::int64_t kPiece = std::int64_t{1} << 22;  // bytes that one thread compares at a time

// Whether `same` holds for every piece of [0, bytes).
template <class Same>
bool all_pieces(std::int64_t bytes, Same same) {
  std::atomic<bool> all = true;
  parallel_for(bytes, kPiece, [&](std::int64_t begin, std::int64_t end) {
    if (all.load(std::memory_order_relaxed) && !same(static_cast<std::size_t>(begin), static_cast<std::size_t>(end))) all = false;
  });
  return all;
}

// Whether each byte equals the expected one where `written` is set, and `untouched` elsewhere.
ASSAY_CLONES bool are_exact(const std::byte* got, const std::byte* want, const std::uint8_t* written, std::byte untouched,
                            std::size_t count) {
  std::byte differs{0};
  for (std::size_t i = 0; i < count; ++i) differs |= got[i] ^ (written[i] != 0 ? want[i] : untouched);
  return differs == std::byte{0};
}

ASSAY_CLONES bool are_all(const std::byte* got, std::byte value, std::size_t count) {
  std::byte differs{0};
  for (std::size_t i = 0; i < count; ++i) differs |= got[i] ^ value;
  return differs == std::byte{0};
}

bool holds_codes(const OutputSpec& spec) { return spec.name.ends_with("rowwise_data") || spec.name.ends_with("columnwise_data"); }

// Whether an input x holds a -0.
bool has_negative_zero(const Case& problem) {
  const auto found = problem.in.find("x");
  if (found == problem.in.end()) return false;
  const Tensor& x = found->second;
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(1, bits_of(x.type) / 8));
  for (std::size_t i = 0; i + width <= x.bytes.size(); i += width) {
    if (x.bytes[i + width - 1] == std::byte{0x80} && std::all_of(x.bytes.begin() + static_cast<std::ptrdiff_t>(i),
                                                                 x.bytes.begin() + static_cast<std::ptrdiff_t>(i + width - 1),
                                                                 [](std::byte each) { return each == std::byte{0}; })) {
      return true;
    }
  }
  return false;
}

std::string text_attribute(const Case& problem, const char* name) {
  const auto found = problem.attributes.find(name);
  const auto* text = found == problem.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

// Whether both names or lines are of plans that compute the same.
bool is_one_plan(const std::string& one, const std::string& other) {
  const AccumulationPlan *first = find_accumulation_plan(one), *second = find_accumulation_plan(other);
  return first != nullptr && second != nullptr && plan_line(*first) == plan_line(*second);
}

// A matrix must have the extents of the schema, so that a transposed one is refused; a flat tensor only its size.
bool same_shape(const std::vector<std::int64_t>& given, const std::vector<std::int64_t>& wanted) {
  return given.size() != 2 || wanted.size() != 2 || given == wanted;
}

// Checks that the op can produce what the fixture expects. Errors: InvalidArgument naming the output.
void check_given(const Case& problem, const OutputSpec& spec, const Tensor& given, std::size_t bytes) {
  if (given.type != spec.type || given.bytes.size() != bytes || !same_shape(given.shape, spec.shape)) {
    std::string wanted = "[";
    for (std::size_t i = 0; i < spec.shape.size(); ++i) wanted.append(i == 0 ? "" : ",").append(std::to_string(spec.shape[i]));
    throw InvalidArgument("out/" + spec.name, describe(TensorView{given.type, given.shape, nullptr, 0}),
                          wanted + "] " + std::string(assay::name_of(spec.type)));
  }
  if (text_attribute(problem, "scale_layout") != "swizzled" || spec.name.find("scale_inv") == std::string::npos) return;
  const Tensor shaped{spec.type, spec.shape, given.bytes};
  const Difference padding = compare(problem, spec.name, shaped, shaped);  // only padding can differ here
  if (padding)
    throw InvalidArgument("out/" + spec.name, padding.got_text + " at " + padding.first_place, "0 in swizzled padding");
}

// Whether the stated unit keeps fewer bits of a sum than the usual unit of the architecture. Order-free inputs may need all bits of the
// latter (spec exactness-1.2).
bool is_narrower(std::string_view stated, std::string_view usual) {
  const auto keeps_13_bits = [](std::string_view name) {
    const TensorCoreUnit* const unit = find_tensor_core_unit(name);
    return unit != nullptr && unit->accumulator == Accumulator::e8m13_truncated;
  };
  return keeps_13_bits(stated) && !usual.empty() && !keeps_13_bits(usual);
}

}  // namespace

Expectation::Expectation(const Case& problem, const Case* fixture, const std::vector<OutputSpec>& specs,
                         const assay_numerics& stated, const JudgeOptions& options, std::int64_t step, std::string linked)
    : problem_(problem),
      specs_(specs),
      layer_(options.layer),
      step_(step),
      linked_(std::move(linked)),
      attributes_(problem.attributes),
      product_(product_output(problem.op)),
      explains_(options.explains) {
  statement_fault_ = fault_in_numerics(stated);
  if (options.unit_probes && statement_fault_.empty()) probed_unit_ = unit_of(stated);
  if (!statement_fault_.empty()) return;
  zero_sign_ = zero_sign_of(stated);
  const bool follows_fixture = choose_basis(fixture, stated, options);
  if (!statement_fault_.empty() || (fixture == nullptr && find_prediction(options)) || options.answers_later) return;
  answer_all(fixture, follows_fixture, &stated, options);
}

void Expectation::answer_all(const Case* fixture, bool follows_fixture, const assay_numerics* stated,
                             const JudgeOptions& options) const {
  std::map<std::string, std::vector<std::byte>> want;
  Request request = request_of(problem_, attributes_);
  give_outputs(request, specs_, want);
  const auto prefixes = written_prefixes(request);
  std::map<std::string, std::vector<std::uint8_t>> written;
  if (!prefixes) written = written_bytes(request);
  if (basis_ == CheckBasis::bound) {
    bounds_.resize(static_cast<std::size_t>(request.out.at(product_).elements()));  // rows past the groups have none
  }
  answer_for(request, follows_fixture, options, want);
  for (const OutputSpec& spec : specs_) {
    Output output;
    output.spec = spec;
    const bool recorded = fixture != nullptr && (spec.name != product_ || follows_fixture);
    output.want = recorded ? fixture->out.at(spec.name).bytes : std::move(want.at(spec.name));
    if (prefixes) {
      output.prefix = prefixes->at(spec.name);
    } else {
      output.written = std::move(written.at(spec.name));
    }
    if (spec.rows_follow_splits && !spec.shape.empty() && spec.shape[0] > 0) {
      output.free_rows = free_rows();
      output.row_bytes = static_cast<std::size_t>(std::max<std::int64_t>(request.out.at(spec.name).bytes / spec.shape[0], 1));
    }
    output.zero_sign_free = is_zero_sign_free(spec);
    const auto bytes = static_cast<std::size_t>(request.out.at(spec.name).bytes);
    if (fixture != nullptr) check_given(problem_, spec, fixture->out.at(spec.name), bytes);
    if (recorded && zero_sign_ == ZeroSign::stated && holds_codes(spec)) follow_zero_sign(*stated, options, spec, output.want);
    count(output, bytes);
    outputs_.push_back(std::move(output));
  }
  is_answered_ = true;
}

bool Expectation::is_zero_sign_free(const OutputSpec& spec) const { return zero_sign_ == ZeroSign::free && holds_codes(spec); }

std::vector<bool> Expectation::free_rows() const { return free_rows_of(request_of(problem_, attributes_)); }

// The sign of an exact zero follows the backend's statement, unless the case itself says what it must be.
Expectation::ZeroSign Expectation::zero_sign_of(const assay_numerics& stated) {
  const std::string said = text_attribute(problem_, "zero_sign");
  if (!said.empty()) return said == "free" ? ZeroSign::free : ZeroSign::said;
  if (stated.keeps_zero_sign == -1) return ZeroSign::free;
  if (problem_.op != "quantize") return stated.keeps_zero_sign == 0 ? ZeroSign::free : ZeroSign::said;
  if (stated.keeps_zero_sign == 0) attributes_["zero_sign"] = std::string("positive");
  return ZeroSign::stated;
}

// Whether the fixture's recorded product is expected. Otherwise sets what the product is compared with: the bits
// of the stated plan, or without one bounds that hold under every plan.
bool Expectation::choose_basis(const Case* fixture, const assay_numerics& stated, const JudgeOptions& options) {
  const bool wanted = std::any_of(specs_.begin(), specs_.end(), [&](const OutputSpec& spec) { return spec.name == product_; });
  if (product_.empty() || !wanted) return fixture != nullptr;
  const std::string required = fixture == nullptr ? text_attribute(problem_, "plan") : "";  // by the case itself
  const std::string plan = plan_of(stated).empty() ? required : plan_of(stated);
  if (!required.empty() && !is_one_plan(plan, required)) {
    statement_fault_ = fmt::format("the case asks for the plan '{}', the backend states '{}'", required, plan);
    return false;
  }
  Numerics known;  // the fixture's, or the architecture's
  try {
    known = numerics_of(request_of(problem_, attributes_));
  } catch (const NotSupported&) {
    if (plan.empty()) throw;  // no plan is known for this call; a bound needs one
  }
  if (plan.empty()) {
    const bool leaves_no_choice = options.order_free && fixture == nullptr && !is_narrower(stated.unit, known.unit);
    basis_ = leaves_no_choice ? CheckBasis::order_free_bits : CheckBasis::bound;
    if (basis_ != CheckBasis::bound) return false;
    const std::string one_step = options.unit_probes ? plan_of_one_step(request_of(problem_, attributes_), stated.unit) : "";
    if (!one_step.empty()) {
      basis_ = CheckBasis::bits;
      attributes_["plan"] = one_step;
      return false;
    }
    try {
      if (!options.answers_later) bounds_ = bounds_of(request_of(problem_, attributes_), stated.unit);
    } catch (const InvalidArgument& error) {  // the stated unit does not take the operands of this call
      if (error.argument() != "unit") throw;
      statement_fault_ = fmt::format("the backend states for this call: {}", error.what());
    }
    return false;
  }
  if (fixture != nullptr && is_one_plan(plan, known.plan)) return true;
  attributes_["plan"] = plan;
  try {
    numerics_of(request_of(problem_, attributes_));
  } catch (const InvalidArgument& error) {
    statement_fault_ = fmt::format("the backend states the plan '{}' for this call: {}", plan, error.what());
  }
  return false;
}

// Writes expected bytes to `want`, except outputs that a fixture gives or that are only bounded.
void Expectation::answer_for(const Request& request, bool follows_fixture, const JudgeOptions& options,
                             std::map<std::string, std::vector<std::byte>>& want) const {
  if (follows_fixture) return;
  Request asked = request;
  if (basis_ == CheckBasis::bound) asked.out.erase(product_);
  if (asked.out.empty()) return;
  if (problem_.op == "grouped_gemm" && options.expected_by != nullptr) {
    expect_from(*options.expected_by, options.timeout_ms, want);
    expected_by_ = options.expected_by->name();
  } else {
    answer(asked, options.layer);
  }
}

// Recorded codes follow the statement too: where the reference's answers with and without signs differ, an exact zero has its
// stated sign.
void Expectation::follow_zero_sign(const assay_numerics& stated, const JudgeOptions& options, const OutputSpec& spec,
                                   std::vector<std::byte>& recorded) const {
  if (stated.keeps_zero_sign == 1 && !has_negative_zero(problem_)) return;  // as recorded
  std::map<std::string, std::vector<std::byte>> answers[2];
  for (const int kept : {0, 1}) {
    std::map<std::string, Attribute> attributes = attributes_;
    attributes["zero_sign"] = std::string(kept == 1 ? "kept" : "positive");
    Request request = request_of(problem_, attributes);
    give_outputs(request, {spec}, answers[kept]);
    answer(request, options.layer);
  }
  const std::vector<std::byte>&positive = answers[0].at(spec.name), &kept = answers[1].at(spec.name);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const std::byte differs = positive[i] ^ kept[i];  // sign bits of zeros alone
    if (differs != std::byte{0})
      recorded[i] = (recorded[i] & ~differs) | ((stated.keeps_zero_sign == 0 ? positive[i] : kept[i]) & differs);
  }
}

void Expectation::count(const Output& output, std::size_t bytes) const {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(1, bits_of(output.spec.type) / 8));
  if (is_bounded(output)) {
    for (std::size_t i = 0; i < bytes; i += width) {
      if (!output.is_judged(i)) continue;
      const CertifiedBound& bound = bounds_[i / width];
      ++(bound.is_exact() ? exact_ : bound.is_bounded() ? bounded_ : unbounded_);
    }
  } else if (output.prefix >= 0) {
    const std::int64_t free = std::count(output.free_rows.begin(), output.free_rows.end(), true);
    exact_ += (output.prefix - free * static_cast<std::int64_t>(output.row_bytes)) / static_cast<std::int64_t>(width);
  } else {
    for (std::size_t i = 0; i < bytes; i += width) exact_ += output.written[i];
  }
}

void Expectation::count_elements(Judgement& judgement) const {
  judgement.elements += exact_ + bounded_;
  judgement.elements_exact += exact_;
  judgement.elements_bounded += bounded_;
  judgement.elements_unbounded += unbounded_;
}

// The answer of another backend.
void Expectation::expect_from(Backend& backend, std::int64_t timeout_ms,
                              std::map<std::string, std::vector<std::byte>>& want) const {
  const std::int64_t patience = timeout_ms > std::numeric_limits<std::int64_t>::max() / 10 ? timeout_ms : timeout_ms * 10;
  CallRunner runner(backend, problem_, specs_, -1, patience, &attributes_);
  if (!runner.workspace_fault().empty())
    throw NotSupported("backend " + backend.name() + " gives the expected values: " + runner.workspace_fault());
  Attempt made = runner.attempt(0x00, std::move(want));
  const std::string trouble = !made.damage.empty() ? made.damage.front() : made.error;
  if (made.status == ASSAY_NOT_SUPPORTED || made.status == ASSAY_INVALID_ARGUMENT) {
    throw NotSupported("backend " + backend.name() + " gives the expected values: " + trouble);
  }
  if (made.status != ASSAY_OK || !trouble.empty()) {
    const assay_status status = made.status == ASSAY_OK ? ASSAY_FAILED : made.status;
    throw BackendError(status, "backend " + backend.name() + " gives the expected values: " + trouble);
  }
  want = std::move(made.outputs);
}

bool Expectation::Output::is_exact(const std::vector<std::byte>& got, std::uint8_t poison) const {
  if (got.size() != want.size()) return false;
  const auto untouched = static_cast<std::byte>(poison);
  return all_pieces(static_cast<std::int64_t>(got.size()), [&](std::size_t begin, std::size_t end) {
    if (prefix < 0) return are_exact(got.data() + begin, want.data() + begin, written.data() + begin, untouched, end - begin);
    const std::size_t middle = std::clamp(static_cast<std::size_t>(prefix), begin, end);
    return std::memcmp(got.data() + begin, want.data() + begin, middle - begin) == 0 &&
           are_all(got.data() + middle, untouched, end - middle);
  });
}

std::vector<std::uint8_t> Expectation::Output::mask() const {
  if (prefix < 0) return written;
  std::vector<std::uint8_t> bytes(want.size(), 0);
  std::fill_n(bytes.begin(), prefix, std::uint8_t{1});
  return bytes;
}

Tensor Expectation::Output::filled(std::uint8_t poison) const {
  return {spec.type, spec.shape, std::vector<std::byte>(want.size(), static_cast<std::byte>(poison))};
}

std::shared_ptr<const KeptCall> Expectation::kept(const Outputs& outputs, std::uint8_t poison, const std::string& when,
                                                  const Judgement& judgement) const {
  auto made = std::make_shared<KeptCall>();
  made->call = {problem_.name, problem_.op, attributes_, problem_.in, {}};
  for (const Output& output : outputs_) {
    const auto found = outputs.find(output.spec.name);
    if (found != outputs.end()) made->call.out[output.spec.name] = {output.spec.type, output.spec.shape, found->second};
  }
  const std::size_t first = earlier_.size() - std::min(earlier_.size(), kKeptEarlier);
  for (std::size_t i = first; i < earlier_.size(); ++i)
    made->earlier.push_back({earlier_[i]->name, earlier_[i]->op, attributes_, earlier_[i]->in, {}});
  made->poison = poison;
  made->when = when;
  made->plan = judgement.plan;
  made->unit = judgement.unit;
  return made;
}

bool Expectation::holds(const Outputs& outputs, std::uint8_t poison) const {
  if (!needs_comparison(outputs, poison)) return true;
  return std::all_of(outputs_.begin(), outputs_.end(), [&](const Output& output) {
    const std::vector<std::byte>& bytes = outputs.at(output.spec.name);
    if (!is_bounded(output) && output.is_exact(bytes, poison)) return true;
    const std::vector<std::uint8_t> mask = output.mask();
    const Tensor got{output.spec.type, output.spec.shape, bytes};
    if (is_bounded(output)) return outside_bounds_text(output.spec.name, got, mask, poison, bounds_, nullptr).empty();
    const Tensor before = output.filled(poison);
    return !compare(problem_, output.spec.name, output.wanted(), got, {output.zero_sign_free, &before, mask, {}, false});
  });
}

}  // namespace assay::conformance
