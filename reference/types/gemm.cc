#include "reference/types/gemm.h"

#include <iterator>

#include "reference/types/named.h"

namespace assay {
namespace {

constexpr std::string_view kKindNames[] = {"bf16", "f16", "tensor", "block", "mxfp8", "nvfp4"};
constexpr std::string_view kLayoutNames[] = {"TN", "NN", "NT"};

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
