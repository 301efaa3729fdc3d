#include "conformance/diagnose/explain/failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/ops/answer.h"
#include "conformance/ops/grouped_layout.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance::explaining {
namespace {

std::int64_t codes_of(const Tensor& tensor) { return tensor.type == Format::e2m1 ? tensor.elements() * 2 : tensor.elements(); }

bool holds_codes(const std::string& name) { return name.ends_with("rowwise_data") || name.ends_with("columnwise_data"); }

bool says_zero_is_free(const Case& call) {
  const auto found = call.attributes.find("zero_sign");
  const auto* text = found == call.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text != nullptr && *text == "free";
}

Request request_without_outputs(const Case& call) {
  Request request = Request::read_only(call);
  request.out.clear();
  return request;
}

}  // namespace

bool FailedOutput::is_judged(std::int64_t element) const {
  if (free_rows.empty() || want.shape.empty() || want.shape[0] == 0) return true;
  const auto row = static_cast<std::size_t>(element / std::max<std::int64_t>(elements / want.shape[0], 1));
  return row >= free_rows.size() || !free_rows[row];
}

bool FailedOutput::same(std::uint64_t a, std::uint64_t b) const {
  if (a == b) return true;
  const bool result = want.type == Format::f32 || want.type == Format::bf16 || want.type == Format::f16;
  if (result) return is_nan(want.type, a) && is_nan(want.type, b);
  return zero_sign_free && is_zero(want.type, a) && is_zero(want.type, b);
}

Spot FailedOutput::spot_of(std::int64_t element) const {
  // The last segment that begins no later.
  auto after = std::upper_bound(map.segments.begin(), map.segments.end(), element,
                                [](std::int64_t at, const Segment& segment) { return at < segment.first; });
  if (after == map.segments.begin()) return {element, -1, -1, -1, 0, 0};
  const Segment& segment = *std::prev(after);
  const std::int64_t offset = element - segment.first;
  if (offset >= segment.elements()) return {element, segment.group + 1, -1, -1, 0, 0};
  const Coordinates at = coordinates_of(segment, offset);
  return {element, segment.group, at.row, at.column, segment.used_rows, segment.used_columns};
}

bool is_skipped(const Request& request) {
  const TensorView* flag = request.find_input("noop");
  return flag != nullptr && flag->type == Format::f32 && flag->elements() == 1 && *static_cast<const float*>(flag->data) == 1;
}

Failure::Failure(const KeptCall& kept)
    : call_{kept.call.name, kept.call.op, kept.call.attributes, kept.call.in, {}},
      request_(request_without_outputs(call_)),
      poison_(kept.poison) {
  for (const Case& each : kept.earlier) earlier_.push_back(&each);
  const std::vector<OutputSpec> specs = outputs_of(request_);
  const std::string product = product_output(call_.op);
  for (const auto& [name, given] : kept.call.out) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&, n = name](const OutputSpec& each) { return each.name == n; });
    if (spec == specs.end()) throw InvalidArgument("out/" + name, "given", "an output of op " + call_.op);
    FailedOutput output;
    output.name = name;
    output.got = {spec->type, spec->shape, given.bytes};
    output.is_product = name == product;
    output.zero_sign_free = says_zero_is_free(call_) && holds_codes(name);
    output.elements = codes_of(output.got);
    const auto bytes = static_cast<std::size_t>(spec->type == Format::e2m1 ? output.got.elements()
                                                                           : bytes_of(spec->type, output.got.elements()));
    if (given.type != spec->type || given.bytes.size() != bytes)
      throw InvalidArgument("out/" + name, std::to_string(given.bytes.size()) + " bytes", std::to_string(bytes));
    outputs_.push_back(std::move(output));
  }
  if (!product.empty() && call_.attributes.count("plan") == 0) choose_plan();
  compare();
}

std::map<std::string, Tensor> Failure::answered(const Request& request) const {
  Request asked = request;
  asked.out.clear();
  std::map<std::string, Tensor> made;
  for (const OutputSpec& spec : outputs_of(asked)) {
    const auto given =
        std::find_if(outputs_.begin(), outputs_.end(), [&](const FailedOutput& each) { return each.name == spec.name; });
    if (given == outputs_.end()) continue;
    Tensor& tensor = made[spec.name];
    tensor = {spec.type, spec.shape, {}};
    tensor.bytes.assign(given->got.bytes.size(), static_cast<std::byte>(poison_));
    const std::int64_t count = tensor.elements();
    require(static_cast<std::int64_t>(tensor.bytes.size()) == (spec.type == Format::e2m1 ? count : bytes_of(spec.type, count)),
            "output " + spec.name, count, "as many elements as were given");
    asked.out[spec.name] = {tensor.type, tensor.shape, tensor.bytes.empty() ? nullptr : tensor.bytes.data(),
                            static_cast<std::int64_t>(tensor.bytes.size())};
  }
  answer(asked, Layer::fast);
  return made;
}

// No plan is stated: the named plan under which the fewest words differ.
void Failure::choose_plan() {
  std::optional<std::int64_t> fewest;
  std::string best;
  const auto differing = [&](const Request& request) {
    const std::map<std::string, Tensor> made = answered(request);
    std::int64_t count = 0;
    for (const FailedOutput& output : outputs_) {
      if (!output.is_product) continue;
      const Elements one(made.at(output.name)), other(output.got);
      FailedOutput like = output;
      like.want = made.at(output.name);
      for (std::int64_t at = 0; at < output.elements; ++at) count += !like.same(one[at], other[at]);
    }
    return count;
  };
  std::vector<std::string> names;
  try {
    names.push_back(numerics_of(request_).plan);
  } catch (const NotSupported&) {  // no plan is known for this call
  }
  for (const AccumulationPlan& plan : accumulation_plans()) names.emplace_back(plan.name);
  for (const std::string& name : names) {
    Request request = request_;
    request.attributes["plan"] = name;
    try {
      const std::int64_t count = differing(request);
      if (!fewest || count < *fewest) fewest = count, best = name;
    } catch (const std::exception&) {  // not a plan of this product
    }
  }
  if (best.empty()) return;
  call_.attributes["plan"] = best;
  request_.attributes["plan"] = best;
  note_ = fmt::format("no plan was stated: compared under {}, which leaves the fewest words different", best);
}

void Failure::compare() {
  const std::map<std::string, Tensor> made = answered(request_);
  const std::vector<OutputSpec> specs = outputs_of(request_);
  Request asked = request_;
  for (FailedOutput& output : outputs_) {
    const Tensor& want = made.at(output.name);
    output.want = {output.got.type, output.got.shape, want.bytes};
    output.map = map_output(call_, output.name, output.want);
    for (const OutputSpec& spec : specs) {
      if (spec.name == output.name && spec.rows_follow_splits) output.free_rows = free_rows_of(asked);
    }
    const Elements of_got(output.got), of_want(output.want);
    for (std::int64_t at = 0; at < output.elements; ++at) {
      if (output.is_judged(at) && !output.same(of_got[at], of_want[at])) output.wrong.push_back(at);
    }
  }
}

const FailedOutput* Failure::product() const {
  for (const FailedOutput& output : outputs_) {
    if (output.is_product) return &output;
  }
  return nullptr;
}

std::int64_t Failure::wrong() const {
  std::int64_t count = 0;
  for (const FailedOutput& output : outputs_) count += static_cast<std::int64_t>(output.wrong.size());
  return count;
}

std::int64_t Failure::words() const {
  std::int64_t count = 0;
  for (const FailedOutput& output : outputs_) {
    for (std::int64_t at = 0; at < output.elements; ++at) count += output.is_judged(at);
  }
  return count;
}

}  // namespace assay::conformance::explaining
