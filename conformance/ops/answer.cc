#include "conformance/ops/answer.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "conformance/ops/grouped_layout.h"
#include "conformance/ops/op.h"
#include "conformance/ops/product.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr const Op* kOps[] = {
    &kQuantize,          &kQuantizeByRule, &kDequantize,   &kSwizzle, &kUnswizzle, &kSplitsToOffsets, &kSplitsToOffsetsMulti,
    &kSplitsToOffsets2d, &kDelayedUpdate,  &kGroupedDbias, &kPermute, &kUnpermute, &kGroupedGemm,     &kLinearForward,
    &kLinearDgrad,       &kLinearWgrad,
};

const Op& find(const std::string& name) {
  for (const Op* op : kOps) {
    if (op->name == name) return *op;
  }
  std::string names;
  for (const Op* op : kOps) names += std::string(names.empty() ? "" : ", ") + std::string(op->name);
  throw NotSupported("op '" + name + "' is unknown: expected one of " + names);
}

// A request like `request` whose outputs are filled with `poison` and live in `storage`.
Request with_poisoned_outputs(const Request& request, std::byte poison, std::map<std::string, std::vector<std::byte>>& storage) {
  Request copy = request;
  for (auto& [name, tensor] : copy.out) {
    std::vector<std::byte>& bytes = storage[name];
    bytes.assign(static_cast<std::size_t>(tensor.bytes), poison);
    tensor.data = bytes.empty() ? nullptr : bytes.data();
  }
  return copy;
}

}  // namespace

std::vector<std::string_view> known_ops() {
  std::vector<std::string_view> names;
  std::transform(std::begin(kOps), std::end(kOps), std::back_inserter(names), [](const Op* op) { return op->name; });
  return names;
}

std::vector<OutputSpec> outputs_of(const Request& request) { return find(request.op()).outputs(request); }

void answer(const Request& request, Layer layer) { find(request.op()).answer(request, layer); }

std::optional<std::map<std::string, std::int64_t>> written_prefixes(const Request& request) {
  const Op& op = find(request.op());
  const bool skippable = request.in.count("noop") != 0;  // a skip flag, or the weight cache that comes with it, says more
  if (!op.only_tail_rows_untouched || skippable) return std::nullopt;
  std::map<std::string, std::int64_t> written;
  const std::vector<OutputSpec> specs = op.outputs(request);
  const std::int64_t rows = open_rows_of(request);
  for (const auto& [name, tensor] : request.out) {
    const bool follows_rows = std::any_of(
        specs.begin(), specs.end(), [&, n = name](const OutputSpec& spec) { return spec.name == n && spec.rows_follow_splits; });
    const bool has_tail = follows_rows && !tensor.shape.empty() && tensor.shape[0] > 0;
    written[name] = has_tail ? tensor.bytes / tensor.shape[0] * std::min(rows, tensor.shape[0]) : tensor.bytes;
  }
  return written;
}

std::map<std::string, std::vector<std::uint8_t>> written_bytes(const Request& request) {
  std::map<std::string, std::vector<std::uint8_t>> written;
  if (const auto prefixes = written_prefixes(request)) {
    for (const auto& [name, tensor] : request.out) {
      std::vector<std::uint8_t>& mask = written[name];
      mask.assign(static_cast<std::size_t>(tensor.bytes), 0);
      std::fill_n(mask.begin(), prefixes->at(name), std::uint8_t{1});
    }
    return written;
  }
  // What keeps both of two different poisons was not written.
  std::map<std::string, std::vector<std::byte>> first, second;
  answer(with_poisoned_outputs(request, std::byte{0x00}, first), Layer::fast);
  answer(with_poisoned_outputs(request, std::byte{0xff}, second), Layer::fast);
  for (const auto& [name, bytes] : first) {
    const std::vector<std::byte>& other = second[name];
    std::vector<std::uint8_t>& mask = written[name];
    mask.resize(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) mask[i] = bytes[i] == other[i] ? 1 : 0;
  }
  return written;
}

std::string product_output(const std::string& op) { return std::string(find(op).product); }

std::vector<CertifiedBound> bounds_of(const Request& request, const std::string& unit) {
  const Op& op = find(request.op());
  if (op.bounds == nullptr) throw NotSupported("op " + request.op() + " has no bound: its outputs are compared by bits");
  return op.bounds(request, unit);
}

void visit_product(const Request& request, const Multiply& see) {
  const Op& op = find(request.op());
  if (op.visit == nullptr) throw NotSupported("op " + request.op() + " has no product");
  op.visit(request, see);
}

Numerics numerics_of(const Request& request) {
  const Op& op = find(request.op());
  return op.numerics == nullptr ? Numerics{} : op.numerics(request);
}

}  // namespace assay::conformance
