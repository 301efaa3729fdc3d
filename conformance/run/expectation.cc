#include "conformance/run/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "conformance/compare/compare.h"
#include "conformance/run/outside_bounds.h"
#include "conformance/run/product_hints.h"
#include "conformance/run/trial.h"
#include "reference/gemm/plan.h"
#include "reference/support/error.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

// A view of a case whose inputs nobody writes to: a request only reads them.
Request request_of(const golden::Case& problem, const std::map<std::string, golden::Attribute>& attributes) {
  Request request = Request::of(const_cast<golden::Case&>(problem));
  request.attributes = attributes;
  request.out.clear();
  return request;
}

// Outputs of these specs in `storage`.
void give_outputs(Request& request, const std::vector<OutputSpec>& specs, std::map<std::string, std::vector<std::byte>>& storage) {
  for (const OutputSpec& spec : specs) {
    TensorView view{spec.type, spec.shape, nullptr, 0};
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

bool holds_codes(const OutputSpec& spec) { return spec.name == "rowwise_data" || spec.name == "columnwise_data"; }

std::string text_attribute(const golden::Case& problem, const char* name) {
  const auto found = problem.attributes.find(name);
  const auto* text = found == problem.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

// A matrix must have the extents of the schema, or a transposed one would pass for it; a flat tensor only its size.
bool same_shape(const std::vector<std::int64_t>& given, const std::vector<std::int64_t>& wanted) {
  return given.size() != 2 || wanted.size() != 2 || given == wanted;
}

// What a fixture expects must be something that the op can give. Errors: InvalidArgument naming the output.
void check_given(const golden::Case& problem, const OutputSpec& spec, const golden::Tensor& given, std::size_t bytes) {
  if (given.type != spec.type || given.bytes.size() != bytes || !same_shape(given.shape, spec.shape)) {
    std::string wanted = "[";
    for (std::size_t i = 0; i < spec.shape.size(); ++i) wanted.append(i == 0 ? "" : ",").append(std::to_string(spec.shape[i]));
    throw InvalidArgument("out/" + spec.name, describe(TensorView{given.type, given.shape, nullptr, 0}),
                          wanted + "] " + std::string(assay::name_of(spec.type)));
  }
  if (text_attribute(problem, "scale_layout") != "swizzled" || spec.name.find("scale_inv") == std::string::npos) return;
  const golden::Tensor shaped{spec.type, spec.shape, given.bytes};
  const Difference padding = compare(problem, spec.name, shaped, shaped);  // only padding can differ from what it must be
  if (padding) throw InvalidArgument("out/" + spec.name, padding.got_text + " at " + padding.first_place, "0 in swizzled padding");
}

}  // namespace

Expectation::Expectation(const golden::Case& problem, const golden::Case* fixture, const std::vector<OutputSpec>& specs,
                         const assay_numerics& stated, const JudgeOptions& options)
    : problem_(problem), attributes_(problem.attributes) {
  const bool product = problem.op == "grouped_gemm";
  const std::string plan = stated.plan, unit = stated.unit;
  if (!unit.empty() && find_tensor_core_unit(unit) == nullptr) {
    statement_fault_ = fmt::format("the backend states the unit '{}', which is no row of the tensor-core table (assay list --units)", unit);
    return;
  }
  if (!plan.empty() && find_accumulation_plan(plan) == nullptr) {
    statement_fault_ = fmt::format("the backend states the plan '{}', which is not known (assay list --plans)", plan);
    return;
  }
  // The sign of an exact zero follows the backend's statement, unless the case itself says what it must be.
  std::string zero_sign = text_attribute(problem, "zero_sign");
  if (problem.op == "quantize" && zero_sign.empty() && stated.keeps_zero_sign == 0) {
    if (fixture == nullptr) attributes_["zero_sign"] = std::string("positive");
    zero_sign = fixture == nullptr ? "positive" : "free";
  }
  if (zero_sign.empty() && stated.keeps_zero_sign == -1) zero_sign = "free";

  if (fixture == nullptr && product) {
    if (!plan.empty()) {
      attributes_["plan"] = plan;
    } else {
      ground_ = options.order_free ? Ground::order_free_bits : Ground::bound;
    }
  }
  std::map<std::string, std::vector<std::byte>> want;
  Request request = request_of(problem, attributes_);
  give_outputs(request, specs, want);
  const auto prefixes = written_prefixes(request);
  std::map<std::string, std::vector<std::uint8_t>> written;
  if (!prefixes) written = written_bytes(request);
  if (fixture == nullptr && ground_ == Ground::bound) bounds_ = bounds_of(request);
  if (fixture == nullptr && ground_ != Ground::bound) {
    if (product && options.expected_by != nullptr) {
      expect_from(*options.expected_by, specs, options.timeout_ms, want);
      expected_by_ = options.expected_by->name();
    } else {
      answer(request, options.layer);
    }
  }
  for (const OutputSpec& spec : specs) {
    Output output;
    output.spec = spec;
    output.want = fixture == nullptr ? std::move(want.at(spec.name)) : fixture->out.at(spec.name).bytes;
    if (prefixes) {
      output.prefix = prefixes->at(spec.name);
    } else {
      output.written = std::move(written.at(spec.name));
    }
    output.zero_sign_free = zero_sign == "free" && holds_codes(spec);
    const auto bytes = static_cast<std::size_t>(request.out.at(spec.name).bytes);
    if (fixture != nullptr) check_given(problem_, spec, fixture->out.at(spec.name), bytes);
    const auto width = static_cast<std::size_t>(std::max<std::int64_t>(1, bits_of(spec.type) / 8));
    if (prefixes) {
      words_ += output.prefix / static_cast<std::int64_t>(width);
    } else {
      for (std::size_t i = 0; i < bytes; i += width) words_ += output.written[i];
    }
    outputs_.push_back(std::move(output));
  }
}

// The answer of another backend, on whatever that runs on.
void Expectation::expect_from(Backend& backend, const std::vector<OutputSpec>& specs, std::int64_t timeout_ms,
                              std::map<std::string, std::vector<std::byte>>& want) const {
  const std::int64_t patience = timeout_ms > std::numeric_limits<std::int64_t>::max() / 10 ? timeout_ms : timeout_ms * 10;
  Trial trial(backend, problem_, specs, -1, patience, &attributes_);
  if (!trial.workspace_fault().empty()) throw NotSupported("backend " + backend.name() + " is to tell the expected values: " + trial.workspace_fault());
  Attempt made = trial.attempt(0x00, std::move(want));
  const std::string trouble = !made.damage.empty() ? made.damage.front() : made.error;
  if (made.status == ASSAY_NOT_SUPPORTED || made.status == ASSAY_INVALID_ARGUMENT) {
    throw NotSupported("backend " + backend.name() + " is to tell the expected values: " + trouble);
  }
  if (made.status != ASSAY_OK || !trouble.empty()) {
    const assay_status status = made.status == ASSAY_OK ? ASSAY_FAILED : made.status;
    throw BackendError(status, "backend " + backend.name() + " is to tell the expected values: " + trouble);
  }
  want = std::move(made.outputs);
}

bool Expectation::Output::is_exact(const std::vector<std::byte>& got, std::uint8_t poison) const {
  if (got.size() != want.size()) return false;
  const auto untouched = static_cast<std::byte>(poison);
  return all_pieces(static_cast<std::int64_t>(got.size()), [&](std::size_t begin, std::size_t end) {
    if (prefix < 0) {
      for (std::size_t i = begin; i < end; ++i) {
        if (got[i] != (written[i] != 0 ? want[i] : untouched)) return false;
      }
      return true;
    }
    const std::size_t middle = std::clamp(static_cast<std::size_t>(prefix), begin, end);
    return std::memcmp(got.data() + begin, want.data() + begin, middle - begin) == 0 &&
           std::all_of(got.begin() + static_cast<std::ptrdiff_t>(middle), got.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](std::byte each) { return each == untouched; });
  });
}

std::vector<std::uint8_t> Expectation::Output::mask() const {
  if (prefix < 0) return written;
  std::vector<std::uint8_t> bytes(want.size(), 0);
  std::fill_n(bytes.begin(), prefix, std::uint8_t{1});
  return bytes;
}

std::string Expectation::differences(const std::map<std::string, std::vector<std::byte>>& outputs, std::uint8_t poison,
                                     std::vector<std::string>* details, std::vector<Finding>* findings) const {
  std::string text;
  for (const Output& output : outputs_) {
    const std::vector<std::byte>& bytes = outputs.at(output.spec.name);
    if (ground_ != Ground::bound && output.is_exact(bytes, poison)) continue;
    const std::vector<std::uint8_t> mask = output.mask();
    const golden::Tensor got{output.spec.type, output.spec.shape, bytes};
    if (ground_ == Ground::bound) {
      text += outside_bounds_text(output.spec.name, got, mask, poison, bounds_, findings);
      continue;
    }
    golden::Tensor before = got;
    std::fill(before.bytes.begin(), before.bytes.end(), static_cast<std::byte>(poison));
    const golden::Tensor want{output.spec.type, output.spec.shape, output.want};
    Difference difference = compare(problem_, output.spec.name, want, got, {output.zero_sign_free, &before, mask});
    if (!difference) continue;
    if (problem_.op == "grouped_gemm" && output.spec.name == "d") {
      ScaleFindings findings = scale_findings(request_of(problem_, attributes_), got, want);
      difference.hints.insert(difference.hints.begin(), findings.hints.begin(), findings.hints.end());
      if (difference.hints.size() > 3) difference.hints.resize(3);
      if (details != nullptr) *details = std::move(findings.details);
    }
    text += difference_text(difference);
    if (findings != nullptr) findings->push_back(finding_of(difference));
  }
  return text;
}

std::string Expectation::disagreement(const std::map<std::string, std::vector<std::byte>>& first,
                                      const std::map<std::string, std::vector<std::byte>>& second) const {
  if (ground_ != Ground::bound) return "";
  std::string text;
  for (const Output& output : outputs_) {
    const std::vector<std::byte>&one = first.at(output.spec.name), &other = second.at(output.spec.name);
    std::int64_t apart = 0, at = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (!output.is_written(i) || one[i] == other[i]) continue;
      if (apart++ == 0) at = static_cast<std::int64_t>(i);
    }
    if (apart > 0) {
      text += fmt::format("  output  {}: {} bytes differ from run to run, the first at byte {}: the result depends on what memory held\n",
                          output.spec.name, apart, at);
    }
  }
  return text;
}

}  // namespace assay::conformance
