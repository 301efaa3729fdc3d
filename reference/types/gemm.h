#pragma once
// The kinds and layouts of grouped GEMM by name.

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

enum class GemmKind : std::uint32_t { bf16 = 0, f16 = 1, fp8_per_tensor = 2, fp8_block = 3, mxfp8 = 4, nvfp4 = 5 };
enum class GemmLayout : std::uint32_t { TN = 0, NN = 1, NT = 2 };  // fprop, dgrad, wgrad
enum class WeightBlock : std::uint32_t { b1x128 = 0, b128x128 = 1 };

std::string_view name_of(GemmKind kind);
std::string_view name_of(GemmLayout layout);
std::optional<GemmKind> gemm_kind_named(std::string_view name);
std::optional<GemmLayout> gemm_layout_named(std::string_view name);

}  // namespace assay
