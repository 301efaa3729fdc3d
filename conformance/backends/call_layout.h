#pragma once
// Converts structures of the interface whose sizes differ from this build's: backend.h, 4.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "conformance/backend.h"

namespace assay::conformance {

// Sizes of the structures that travel in arrays.
struct ArraySizes {
  std::size_t parameter = 0, tensor = 0, algorithm = 0, axis = 0;
  bool operator==(const ArraySizes&) const = default;
};
// As version 1 first had them, and the size of its table; a test compares them with the header that it was published in.
inline constexpr ArraySizes kFirstSizes{40, 64, 216, 376};
inline constexpr std::size_t kFirstTable = 248;
inline constexpr ArraySizes kSizesHere{sizeof(assay_parameter), sizeof(assay_tensor), sizeof(assay_algorithm),
                                       sizeof(assay_axis)};

// The fault of the size of a table, or of the sizes that it states; or empty. Reads nothing past its end.
std::string fault_in_sizes(const assay_backend& table);
// The table as this build knows it: members past its end are 0, except array sizes, which are then kFirstSizes. `table` has no
// fault.
assay_backend known_table(const assay_backend& table);
inline ArraySizes sizes_of(const assay_backend& known) {
  return {known.parameter_size, known.tensor_size, known.algorithm_size, known.axis_size};
}

// A call with the sizes of this build, and nothing else.
inline assay_call call_of_this_build() {
  assay_call call{};
  call.struct_size = sizeof call;
  call.parameter_size = kSizesHere.parameter;
  call.tensor_size = kSizesHere.tensor;
  return call;
}

// `count` elements of an array whose elements are `size` bytes long. The rest is 0.
template <class Item>
std::vector<Item> items_of(const void* items, std::int32_t count, std::size_t size) {
  std::vector<Item> all(static_cast<std::size_t>(std::max(count, 0)));
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::memcpy(static_cast<void*>(&all[i]), static_cast<const std::byte*>(items) + i * size, std::min(size, sizeof(Item)));
  }
  return all;
}

// The same elements, each cut to `size` bytes or filled up with zeros. `size` is a multiple of 8.
template <class Item>
std::vector<std::uint64_t> laid_out(const std::vector<Item>& items, std::size_t size) {
  std::vector<std::uint64_t> words(items.size() * size / 8);
  auto* const to = reinterpret_cast<std::byte*>(words.data());
  for (std::size_t i = 0; i < items.size(); ++i) std::memcpy(to + i * size, &items[i], std::min(size, sizeof(Item)));
  return words;
}

// Sizes of the elements of a call's arrays.
inline std::size_t parameter_size_of(const assay_call& call) {
  const bool stated = call.struct_size >= sizeof(assay_call) && call.parameter_size != 0;
  return stated ? call.parameter_size : kFirstSizes.parameter;
}
inline std::size_t tensor_size_of(const assay_call& call) {
  const bool stated = call.struct_size >= sizeof(assay_call) && call.tensor_size != 0;
  return stated ? call.tensor_size : kFirstSizes.tensor;
}
inline std::vector<assay_parameter> parameter_items(const assay_call& call) {
  return items_of<assay_parameter>(call.parameters, call.parameter_count, parameter_size_of(call));
}
inline std::vector<assay_tensor> input_items(const assay_call& call) {
  return items_of<assay_tensor>(call.inputs, call.input_count, tensor_size_of(call));
}
inline std::vector<assay_tensor> output_items(const assay_call& call) {
  return items_of<assay_tensor>(call.outputs, call.output_count, tensor_size_of(call));
}

}  // namespace assay::conformance
