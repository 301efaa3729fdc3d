#pragma once
// What the lists of faults of calls share.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/ops/answer.h"
#include "conformance/ops/request.h"
#include "conformance/ops/tensor_schema.h"
#include "reference/types/error.h"
#include "reference/types/format.h"

namespace assay::conformance {

inline std::size_t element_bytes(Format type) { return static_cast<std::size_t>(std::max(bits_of(type) / 8, 1)); }

// Whether the reference could answer the request: a fault that is refused is no wrong result.
inline bool is_answerable(const Request& request) {
  try {
    const std::vector<OutputSpec> specs = outputs_of(request);
    return std::all_of(request.out.begin(), request.out.end(), [&](const auto& out) {
      return std::any_of(specs.begin(), specs.end(),
                         [&](const OutputSpec& each) { return each.name == out.first && each.shape == out.second.shape; });
    });
  } catch (const InvalidArgument&) {
    return false;
  } catch (const NotSupported&) {
    return false;
  }
}

// Whether the request can be carried out by this plan.
inline bool can_follow(const Request& request, const std::string& line) {
  try {
    Request copy = request;
    copy.attributes["plan"] = line;
    return is_answerable(copy) && !numerics_of(copy).plan.empty();
  } catch (const InvalidArgument&) {
    return false;
  } catch (const NotSupported&) {
    return false;
  }
}

// The tensors of a table by name, each once: one that is there in several forms by the first, and offsets_# as offsets_0.
inline std::vector<std::pair<std::string, const TensorSchema*>> by_name(const std::vector<TensorSchema>& tensors) {
  std::vector<std::pair<std::string, const TensorSchema*>> named;
  std::set<std::string> names;
  for (const TensorSchema& each : tensors) {
    const std::string name = each.name == "offsets_#" ? "offsets_0" : each.name;
    if (names.insert(name).second) named.emplace_back(name, &each);
  }
  return named;
}

// An input with other contents, as long as this lives.
class ChangedInput {
 public:
  ChangedInput(Request& request, const std::string& name) : view_(request.in.at(name)) {
    const auto* from = static_cast<const std::byte*>(view_.data);
    bytes_.assign(from, from + view_.bytes);
    if (!bytes_.empty()) view_.data = bytes_.data();
  }
  std::vector<std::byte>& bytes() { return bytes_; }
  std::size_t element() const { return element_bytes(view_.type); }
  // Elements of a row of the last extent.
  std::size_t row() const { return view_.shape.size() < 2 ? 1 : static_cast<std::size_t>(view_.shape.back()); }

 private:
  TensorView& view_;
  std::vector<std::byte> bytes_;
};

}  // namespace assay::conformance
