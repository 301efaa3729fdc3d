#pragma once
// Ways in which an input can be changed: by the group, the place, the type or the value of its elements.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "golden/io/fixture.h"

namespace assay::conformance::diagnosis {

inline constexpr std::int64_t kMaxChangedElements = std::int64_t{1} << 22;  // of an input that is changed

struct ChangedInput {
  const std::string& name;
  std::int64_t groups;
  bool is_splits() const { return name == "splits" || name == "first" || name == "last"; }
};

struct InputChange {
  const char* text;
  bool (*change)(const ChangedInput&, Tensor&);  // false: nothing to change
};

// The first of them take elements of another group, and are sensible for all tensors of an operand at once.
inline constexpr std::size_t kChangesOfGroup = 6;
std::span<const InputChange> input_changes();

// 0 for every subnormal.
bool no_subnormals(const ChangedInput&, Tensor& tensor);
// E8M0 has no subnormals, but 2^-127 is one of f32: `as` for that code.
bool lowest_scale(Tensor& tensor, std::byte as);

inline std::uint64_t sign_bit_of(Format type) { return std::uint64_t{1} << (bits_of(type) - 1); }

}  // namespace assay::conformance::diagnosis
