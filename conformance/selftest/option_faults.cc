// Faults of attributes and inputs, for every op of the table of tensors.

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "conformance/ops/tensor_schema.h"
#include "conformance/selftest/call_fault_lists.h"
#include "conformance/selftest/call_parts.h"

namespace assay::conformance {
namespace {

// Values of attributes in the order of their meanings: each is taken for the next, the last for the first.
const std::vector<std::vector<std::string>> kWords = {
    {"block_1x128", "block_128x128"},
    {"tensor_current", "tensor_delayed"},
    {"mxfp8", "nvfp4"},
    {"e4m3", "e5m2"},
    {"e2m3", "e3m2"},
    {"bf16", "f16"},
    {"compact", "swizzled"},
    {"1x128", "128x128"},
    {"TN", "NN", "NT"},
    {"rowwise", "columnwise"},
    {"mae", "mse", "off"},
    {"kept", "positive"},
    {"max", "most_recent"},
    {"te_vector_blockwise", "te_tuned_1d", "te_2d"},
    {"fma_f32", "f32", "in_type", "fma_in_type"},
    {"per_group", "per_row_column"},
    {"sm80", "sm89", "sm90", "sm100", "sm120"},
    {"k_major", "mn_major"},
    {"k_major_per_group", "mn_major_per_group"},
    {"tma_aligned", "tma_aligned_per_group"},
    {"packed", "packed_per_group"},
    {"swizzled_128x4", "swizzled_8x4"},
    {"swizzled_128x4_per_group", "swizzled_8x4_per_group"},
};

std::optional<Attribute> neighbour_of(const Attribute& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    return Attribute(*integer == 1 ? std::int64_t{0} : *integer == 256 ? std::int64_t{448} : *integer + 1);
  if (const auto* real = std::get_if<double>(&value))
    return Attribute(*real == 0 ? 1.0 : *real == 448 ? 256.0 : *real == 256 ? 448.0 : *real * 2);
  const std::string& text = std::get<std::string>(value);
  for (const std::vector<std::string>& words : kWords) {
    const auto found = std::find(words.begin(), words.end(), text);
    if (found != words.end()) return Attribute(found + 1 == words.end() ? words.front() : *(found + 1));
  }
  return std::nullopt;
}

using Change = std::function<bool(Request&)>;  // false: this request has nothing to change

// A fault that changes the request and no contents.
CallFault changed(std::string id, std::string says, const std::string& op, Change change) {
  return {std::move(id),
          "options",
          std::move(says),
          false,
          [op, change](const Request& request) {
            Request copy = request;
            return request.op() == op && change(copy) && is_answerable(copy);
          },
          [change](Request& request) {
            change(request);
            answer(request, Layer::fast);
          }};
}

// How the contents of an input are wrong.
struct Contents {
  const char* name;
  const char* says;
  void (*change)(ChangedInput&);
};

void move_on(ChangedInput& input, std::size_t elements) {
  const std::size_t by = elements * input.element();
  std::vector<std::byte>& bytes = input.bytes();
  if (bytes.size() > by) std::memmove(bytes.data() + by, bytes.data(), bytes.size() - by);
}
void last_is_the_one_before(ChangedInput& input) {
  const std::size_t size = input.element();
  std::vector<std::byte>& bytes = input.bytes();
  if (bytes.size() >= 2 * size) std::memcpy(bytes.data() + bytes.size() - size, bytes.data() + bytes.size() - 2 * size, size);
}
void first_for_all(ChangedInput& input) {
  const std::size_t size = input.element();
  std::vector<std::byte>& bytes = input.bytes();
  for (std::size_t at = size; at + size <= bytes.size(); at += size) std::memcpy(bytes.data() + at, bytes.data(), size);
}
void swap_pairs_of_rows(ChangedInput& input) {
  const std::size_t size = input.element() * input.row();
  std::vector<std::byte>& bytes = input.bytes();
  for (std::size_t at = 0; size > 0 && at + 2 * size <= bytes.size(); at += 2 * size) {
    std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(at + size),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

constexpr Contents kContents[] = {
    {"element_before", "each element is the one before", [](ChangedInput& input) { move_on(input, 1); }},
    {"row_before", "each row is the one before", [](ChangedInput& input) { move_on(input, input.row()); }},
    {"128_before", "each element is that 128 places before", [](ChangedInput& input) { move_on(input, 128); }},
    {"last_before", "the last element is the one before it", last_is_the_one_before},
    {"first_for_all", "every element is the first", first_for_all},
    {"pairs", "neighbouring rows are exchanged", swap_pairs_of_rows},
};

bool has_elements(const Request& request, const std::string& name) {
  const auto found = request.in.find(name);
  return found != request.in.end() && found->second.bytes > 0;
}

// Contents kept from the first call since the last question: a replay that reads what was there at its capture.
CallFault kept_from_before(const std::string& op, const std::string& name, bool third_only) {
  const auto kept = std::make_shared<std::vector<std::byte>>();
  return {"call." + op + ".in." + name + (third_only ? ".stale_third" : ".stale"),
          "inputs",
          op + ": " + name + " is that of the first call" + (third_only ? ", in the third call only" : ""),
          false,
          [op, name](const Request& request) { return request.op() == op && has_elements(request, name); },
          [kept, name, third_only](Request& request) {
            if (!has_elements(request, name)) return answer(request, Layer::fast);
            ChangedInput input(request, name);
            const int call = calls_since_question();
            if (call <= 1 || kept->size() != input.bytes().size()) {
              *kept = input.bytes();
            } else if (!third_only || call == 3) {
              input.bytes() = *kept;
              return answer(request, Layer::fast);
            }
            answer(request, Layer::fast);
          }};
}

}  // namespace

void add_option_faults(std::vector<CallFault>& to) {
  for (const OpTensors& op : tensor_schema()) {
    const std::string name(op.op);
    for (const std::string_view each : op.attributes) {
      if (each == "N" || each == "K" || each == "R" || each == "groups") continue;  // shapes, which the tensors say too
      const std::string key(each), id = "call." + name + "." + key;
      to.push_back(changed(id + ".passed_over", name + ": " + key + " is passed over", name,
                           [key](Request& request) { return request.attributes.erase(key) != 0; }));
      to.push_back(changed(id + ".neighbour", name + ": " + key + " is taken for its neighbour", name, [key](Request& request) {
        const auto found = request.attributes.find(key);
        if (found == request.attributes.end()) return false;
        const std::optional<Attribute> other = neighbour_of(found->second);
        if (other) found->second = *other;
        return other.has_value();
      }));
    }
  }
}

void add_input_faults(std::vector<CallFault>& to) {
  for (const OpTensors& op : tensor_schema()) {
    const std::string of(op.op);
    std::set<std::string> done;
    for (const TensorSchema& tensor : op.in) {
      const std::string& name = tensor.name;
      if (!done.insert(name).second) continue;
      const std::string id = "call." + of + ".in." + name;
      CallFault dropped = changed(id + ".passed_over", of + ": " + name + " is passed over", of,
                                  [name](Request& request) { return request.in.erase(name) != 0; });
      dropped.family = "inputs";
      to.push_back(std::move(dropped));
      to.push_back(kept_from_before(of, name, false));
      to.push_back(kept_from_before(of, name, true));
      for (const Contents& contents : kContents) {
        to.push_back({id + "." + contents.name, "inputs", of + ": of " + name + ", " + contents.says, false,
                      [of, name, &contents](const Request& request) {
                        if (request.op() != of || !has_elements(request, name)) return false;
                        Request copy = request;
                        ChangedInput input(copy, name);
                        const std::vector<std::byte> before = input.bytes();
                        contents.change(input);
                        return before != input.bytes();
                      },
                      [name, &contents](Request& request) {
                        if (!has_elements(request, name)) return answer(request, Layer::fast);
                        ChangedInput input(request, name);
                        contents.change(input);
                        answer(request, Layer::fast);
                      }});
      }
    }
  }
}

}  // namespace assay::conformance
