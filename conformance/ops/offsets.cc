// Ops `splits_to_offsets` (schema 1), `splits_to_offsets_multi` and `splits_to_offsets_2d` (schema 2).

#include <algorithm>
#include <charconv>

#include "conformance/ops/op.h"
#include "conformance/ops/words.h"
#include "reference/layout/offsets.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// Stores int64 values as `type`, i64 or i32. Errors: a value past int32; nothing is written then.
void store(const Request& request, const std::string& name, Format type, const std::vector<std::int64_t>& values) {
  void* to = request.output(name, type, static_cast<std::int64_t>(values.size()));
  if (to == nullptr) return;
  if (type == Format::i64) {
    std::copy(values.begin(), values.end(), static_cast<std::int64_t*>(to));
    return;
  }
  for (const std::int64_t value : values) require(value <= 0x7fff'ffff, name, value, "values that int32 holds");
  std::copy(values.begin(), values.end(), static_cast<std::int32_t*>(to));
}

std::vector<OutputSpec> offsets_outputs(const Request& request) {
  request.integer_or("stride", 1);
  const auto count = static_cast<std::int64_t>(request.splits().size());
  request.refuse_unknown();
  return {{"offsets", Format::i64, {count + 1}}};
}

void offsets_answer(const Request& request, Layer layer) {
  const std::int64_t stride = request.integer_or("stride", 1);
  const std::vector<std::int64_t> splits = request.splits();
  request.refuse_unknown();
  store(request, "offsets", Format::i64,
        layer == Layer::fast ? splits_to_offsets(splits, stride) : scalar::splits_to_offsets(splits, stride));
}

std::vector<std::int64_t> values_of(const TensorView& tensor) {
  if (tensor.type == Format::i32) {
    const auto* values = static_cast<const std::int32_t*>(tensor.data);
    return {values, values + tensor.elements()};
  }
  const auto* values = static_cast<const std::int64_t*>(tensor.data);
  return {values, values + tensor.elements()};
}

// Both dimensions have one type, which is that of the offsets too.
Format type_of_dimensions(const Request& request) {
  const TensorView& first = request.input("first");
  if (first.type != Format::i64 && first.type != Format::i32)
    throw InvalidArgument("in/first", describe(first), "type i64 or i32");
  request.input("last", first.type, first.elements());
  return first.type;
}

std::vector<OutputSpec> two_d_outputs(const Request& request) {
  const Format type = type_of_dimensions(request);
  const std::int64_t count = request.input("first").elements();
  request.refuse_unknown();
  return {{"offsets", type, {count + 1}}};
}

void two_d_answer(const Request& request, Layer layer) {
  const Format type = type_of_dimensions(request);
  const auto first = values_of(request.input("first"));
  const auto last = values_of(request.input("last"));
  request.refuse_unknown();
  store(request, "offsets", type,
        layer == Layer::fast ? splits_to_offsets_2d(first, last) : scalar::splits_to_offsets_2d(first, last));
}

std::vector<OutputSpec> multi_outputs(const Request& request) {
  const auto groups = static_cast<std::int64_t>(request.splits().size());
  std::vector<OutputSpec> specs;
  for (const OffsetsOutput& output : offsets_outputs_of(request)) {
    specs.push_back({"offsets_" + std::to_string(specs.size()),
                     output.is_int32 ? Format::i32 : Format::i64,
                     {groups + (output.leading_zero ? 1 : 0)}});
  }
  request.refuse_unknown();
  return specs;
}

void multi_answer(const Request& request, Layer layer) {
  const std::vector<OutputSpec> specs = multi_outputs(request);
  std::vector<OffsetsOutput> outputs = offsets_outputs_of(request), wanted;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].values = request.output(specs[i].name, specs[i].type, specs[i].shape[0]);
    if (outputs[i].values != nullptr) wanted.push_back(outputs[i]);
  }
  const auto splits = request.splits();
  layer == Layer::fast ? splits_to_offsets_multi(splits, wanted) : scalar::splits_to_offsets_multi(splits, wanted);
}

}  // namespace

// Attribute outputs: "STRIDE:TYPE[:inclusive],...", for outputs offsets_0, offsets_1, ...
std::vector<OffsetsOutput> offsets_outputs_of(const Request& request) {
  const std::string text = request.text("outputs");
  const auto wrong = [&] { return InvalidArgument("attribute outputs", "'" + text + "'", "STRIDE:i32|i64[:inclusive],..."); };
  std::vector<OffsetsOutput> outputs;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    OffsetsOutput output;
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos) throw wrong();
    const auto parsed = std::from_chars(item.data(), item.data() + colon, output.stride);
    if (parsed.ec != std::errc() || parsed.ptr != item.data() + colon) throw wrong();
    std::string rest = item.substr(colon + 1);
    if (const std::size_t more = rest.find(':'); more != std::string::npos) {
      if (rest.substr(more) != ":inclusive") throw wrong();
      output.leading_zero = false;
      rest.resize(more);
    }
    if (rest != "i32" && rest != "i64") throw wrong();
    output.is_int32 = rest == "i32";
    outputs.push_back(output);
  }
  return outputs;
}

const Op kSplitsToOffsets{"splits_to_offsets", offsets_outputs, offsets_answer};
const Op kSplitsToOffsetsMulti{"splits_to_offsets_multi", multi_outputs, multi_answer};
const Op kSplitsToOffsets2d{"splits_to_offsets_2d", two_d_outputs, two_d_answer};

}  // namespace assay::conformance
