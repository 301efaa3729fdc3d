// The layout of the interface: the members of the first version 1 keep their offsets, and elements of arrays have the size that
// the other side states.

#include <gtest/gtest.h>

#include <cstddef>

#include "conformance/backends/call_layout.h"

#undef ASSAY_CONFORMANCE_BACKEND_H
namespace frozen {
#include "conformance/tests/backends/frozen/conformance/backend.h"
}

namespace assay::conformance {
namespace {

#define SAME_PLACE(structure, field)                                                  \
  static_assert(offsetof(::structure, field) == offsetof(frozen::structure, field) && \
                sizeof(::structure::field) == sizeof(frozen::structure::field))
SAME_PLACE(assay_parameter, name);
SAME_PLACE(assay_parameter, kind);
SAME_PLACE(assay_parameter, integer);
SAME_PLACE(assay_parameter, real);
SAME_PLACE(assay_parameter, text);
SAME_PLACE(assay_tensor, name);
SAME_PLACE(assay_tensor, dtype);
SAME_PLACE(assay_tensor, rank);
SAME_PLACE(assay_tensor, shape);
SAME_PLACE(assay_tensor, data);
SAME_PLACE(assay_tensor, bytes);
SAME_PLACE(assay_call, struct_size);
SAME_PLACE(assay_call, op);
SAME_PLACE(assay_call, parameters);
SAME_PLACE(assay_call, parameter_count);
SAME_PLACE(assay_call, inputs);
SAME_PLACE(assay_call, input_count);
SAME_PLACE(assay_call, outputs);
SAME_PLACE(assay_call, output_count);
SAME_PLACE(assay_call, workspace);
SAME_PLACE(assay_call, workspace_bytes);
SAME_PLACE(assay_call, algorithm);
SAME_PLACE(assay_device_info, name);
SAME_PLACE(assay_device_info, architecture);
SAME_PLACE(assay_device_info, software);
SAME_PLACE(assay_device_info, multiprocessors);
SAME_PLACE(assay_device_info, memory_bytes);
SAME_PLACE(assay_numerics, unit);
SAME_PLACE(assay_numerics, plan);
SAME_PLACE(assay_numerics, keeps_zero_sign);
SAME_PLACE(assay_numerics, deterministic);
SAME_PLACE(assay_numerics, batch_invariant);
SAME_PLACE(assay_algorithm, id);
SAME_PLACE(assay_algorithm, description);
SAME_PLACE(assay_algorithm, workspace_bytes);
SAME_PLACE(assay_axis, name);
SAME_PLACE(assay_axis, description);
SAME_PLACE(assay_axis, values);
SAME_PLACE(assay_backend, version);
SAME_PLACE(assay_backend, open);
SAME_PLACE(assay_backend, synchronize);
SAME_PLACE(assay_backend, event_elapsed);
SAME_PLACE(assay_backend, graph_destroy);
SAME_PLACE(assay_backend, list_algorithms);
SAME_PLACE(assay_backend, set_axis);
SAME_PLACE(assay_backend, execute);

// New members begin after the former structure and its padding.
static_assert(offsetof(assay_call, parameter_size) == sizeof(frozen::assay_call));
static_assert(offsetof(assay_numerics, plan_line) == sizeof(frozen::assay_numerics));
static_assert(offsetof(assay_backend, parameter_size) == sizeof(frozen::assay_backend));
static_assert(kFirstTable == sizeof(frozen::assay_backend));
static_assert(kFirstSizes == ArraySizes{sizeof(frozen::assay_parameter), sizeof(frozen::assay_tensor),
                                        sizeof(frozen::assay_algorithm), sizeof(frozen::assay_axis)});

TEST(Layout, ATableThatEndsEarlyHasTheFirstSizes) {
  frozen::assay_backend first{};
  first.struct_size = sizeof first;
  first.version = 1;
  first.name = "first";
  std::vector<std::uint64_t> there(sizeof first / 8 + 4, 7);  // the bytes after it are not part of it
  std::memcpy(there.data(), &first, sizeof first);
  const auto& table = *reinterpret_cast<const ::assay_backend*>(there.data());
  EXPECT_EQ(fault_in_sizes(table), "");
  const ::assay_backend known = known_table(table);
  EXPECT_STREQ(known.name, "first");
  EXPECT_EQ(known.struct_size, sizeof known);
  EXPECT_TRUE(sizes_of(known) == kFirstSizes);
}

TEST(Layout, ElementsAreCutOrFilledUpWithZeros) {
  std::vector<assay_tensor> tensors(3);
  for (int i = 0; i < 3; ++i) tensors[static_cast<std::size_t>(i)] = {nullptr, ASSAY_I32, 1, {i + 1, 2, 3, 4}, nullptr, 100 + i};
  for (const std::size_t size : {sizeof(assay_tensor) - 8, sizeof(assay_tensor), sizeof(assay_tensor) + 24}) {
    const std::vector<std::uint64_t> words = laid_out(tensors, size);
    ASSERT_EQ(words.size() * 8, 3 * size);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint64_t* const element = words.data() + i * size / 8;
      EXPECT_EQ(element[2], i + 1) << "the first extent, " << size;
      for (std::size_t w = sizeof(assay_tensor) / 8; w < size / 8; ++w) EXPECT_EQ(element[w], 0u);
    }
    const std::vector<assay_tensor> back = items_of<assay_tensor>(words.data(), 3, size);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(back[i].shape[0], static_cast<std::int64_t>(i) + 1);
      EXPECT_EQ(back[i].bytes, size < sizeof(assay_tensor) ? 0 : 100 + static_cast<std::int64_t>(i));
    }
  }
}

// The sizes in a call count only if the call is long enough to hold them.
TEST(Layout, AShortCallHasTheFirstSizes) {
  assay_call call{};
  call.struct_size = sizeof(frozen::assay_call);
  call.parameter_size = call.tensor_size = 7;
  EXPECT_EQ(parameter_size_of(call), kFirstSizes.parameter);
  EXPECT_EQ(tensor_size_of(call), kFirstSizes.tensor);
  call.struct_size = sizeof call;
  call.parameter_size = 48, call.tensor_size = 0;
  EXPECT_EQ(parameter_size_of(call), 48u);
  EXPECT_EQ(tensor_size_of(call), kFirstSizes.tensor);
}

}  // namespace
}  // namespace assay::conformance
