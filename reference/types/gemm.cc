#include "reference/types/gemm.h"

#include <iterator>

namespace assay {
namespace {

constexpr std::string_view kKindNames[] = {"bf16", "f16", "tensor", "block", "mxfp8", "nvfp4"};
constexpr std::string_view kLayoutNames[] = {"TN", "NN", "NT"};

template <class Enum, std::size_t count>
std::optional<Enum> named(const std::string_view (&names)[count], std::string_view name) {
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(GemmKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kKindNames) ? kKindNames[index] : "unknown";
}

std::string_view name_of(GemmLayout layout) {
  const auto index = static_cast<std::size_t>(layout);
  return index < std::size(kLayoutNames) ? kLayoutNames[index] : "unknown";
}

std::optional<GemmKind> gemm_kind_named(std::string_view name) { return named<GemmKind>(kKindNames, name); }

std::optional<GemmLayout> gemm_layout_named(std::string_view name) { return named<GemmLayout>(kLayoutNames, name); }

}  // namespace assay
