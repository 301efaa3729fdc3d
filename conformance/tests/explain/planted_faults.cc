#include "conformance/tests/explain/planted_faults.h"

#include <cstring>

#include "conformance/ops/answer.h"

namespace assay::conformance::planted_faults {

Tensor redone(const Case& call, const std::string& output, const std::function<void(Case&)>& change) {
  Case other = call;
  change(other);
  Request request = Request::read_only(other);
  request.out.clear();
  Tensor made = call.out.at(output);
  made.bytes.assign(made.bytes.size(), kPoison);
  request.out[output] = {made.type, made.shape, made.bytes.data(), static_cast<std::int64_t>(made.bytes.size())};
  answer(request, Layer::scalar);
  return made;
}

void take(Tensor& to, const Tensor& other, const std::function<bool(std::int64_t, std::int64_t)>& where) {
  const std::int64_t columns = to.shape.back(), width = static_cast<std::int64_t>(to.bytes.size()) / to.elements();
  for (std::int64_t at = 0; at < to.elements(); ++at) {
    if (where(at / columns, at % columns))
      std::memcpy(to.bytes.data() + at * width, other.bytes.data() + at * width, static_cast<std::size_t>(width));
  }
}

std::vector<std::int64_t> splits_of(const Case& call) {
  const Tensor& splits = call.in.at("splits");
  return {splits.as<std::int64_t>(), splits.as<std::int64_t>() + splits.elements()};
}

std::vector<std::int64_t> first_rows(const Case& call) {
  std::vector<std::int64_t> first{0};
  for (const std::int64_t rows : splits_of(call)) first.push_back(first.back() + rows);
  return first;
}

}  // namespace assay::conformance::planted_faults
