// The smaller ops: own loops, or the reference on a call that a launcher got wrong.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/ops/answer.h"
#include "conformance/ops/words.h"
#include "conformance/tests/unseen/kernels.h"
#include "reference/formats/e8m0.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/element_scalar.h"

namespace assay::conformance::unseen {
namespace {

template <class T>
T* out(const Request& request, const std::string& name) {
  const auto found = request.out.find(name);
  return found == request.out.end() ? nullptr : static_cast<T*>(found->second.data);
}

void offsets(Request& request) {
  answer(request, Layer::scalar);
  if (on("offsets_in_32_bits") && request.op() == "splits_to_offsets") {
    auto* to = out<std::int64_t>(request, "offsets");
    const auto splits = request.splits();
    const auto stride = static_cast<std::uint32_t>(request.integer_or("stride", 1));
    std::uint32_t sum = 0;
    for (std::size_t i = 0; to != nullptr && i < splits.size(); ++i) {
      sum += static_cast<std::uint32_t>(splits[i]);
      to[i + 1] = static_cast<std::int32_t>(sum * stride);
    }
  }
  if (on("offsets_of_second_warp_start_anew") && request.op() == "splits_to_offsets") {
    auto* to = out<std::int64_t>(request, "offsets");
    const auto splits = request.splits();
    const std::int64_t stride = request.integer_or("stride", 1);
    std::int64_t sum = 0;
    for (std::size_t i = 0; to != nullptr && i < splits.size(); ++i) {
      if (i % 32 == 0) sum = 0;
      to[i + 1] = (sum += splits[i]) * stride;
    }
  }
}

void swizzles(Request& request) {
  const bool forward = request.op() == "swizzle";
  if (on("unswizzle_writes_padding") && !forward) {
    auto* to = out<std::uint8_t>(request, "compact");
    if (to != nullptr) std::memset(to, 0, static_cast<std::size_t>(request.out.at("compact").bytes));
  }
  answer(request, Layer::scalar);
  auto* to = out<std::uint8_t>(request, "swizzled");
  if (to == nullptr || !forward ||
      !(on("tiles_in_column_order") || on("groups_swizzled_as_one") || on("last_short_block_is_zero")))
    return;
  const Recipe recipe = recipe_of(request);
  const Direction d = direction_of(request);
  const std::int64_t K = request.integer("K");
  auto rows = group_rows(request, request.integer_or("R", 0));
  const auto* from = static_cast<const std::uint8_t*>(request.input("compact").data);
  const auto offset = scale_offsets(recipe, d, rows, K);
  std::memset(to, 0, static_cast<std::size_t>(offset.back()));
  std::int64_t row = 0;
  for (std::size_t t = 0; t < rows.size(); row += rows[t++]) {
    const SwizzleView v = swizzle_view(recipe, d, rows[t], K);
    for (std::int64_t i = 0; i < v.used_i; ++i)
      for (std::int64_t j = 0; j < v.used_j; ++j) {
        const std::uint8_t byte = from[offset[t] + i * v.stride_i + j * v.stride_j];
        std::int64_t at = offset[t] + swizzled_index(i, j, v.tiles_j);
        if (on("tiles_in_column_order"))
          at = offset[t] + ((j / 4) * v.tiles_i + i / 128) * 512 + (i % 32) * 16 + (i % 128) / 32 * 4 + j % 4;
        if (on("groups_swizzled_as_one")) at = swizzled_index(row + i, j, v.tiles_j);
        if (on("last_short_block_is_zero") && j >= K / 32) continue;
        if (at < offset.back()) to[at] = byte;
      }
  }
}

void dequantizes(Request& request) {
  std::vector<float> held;
  if (on("dequantize_scale_of_group_0")) {
    TensorView& scale = request.in.at("rowwise_scale_inv");
    held.assign(static_cast<std::size_t>(scale.elements()), *floats(&scale));
    scale.data = held.data();
  }
  answer(request, Layer::scalar);
  if (on("dequantize_e5m2_as_e4m3") || on("dequantize_byte_as_scale")) {
    auto* x = out<void>(request, "x");
    const std::int64_t R = request.integer("R"), K = request.integer("K");
    const Recipe recipe = recipe_of(request);
    const auto* codes = static_cast<const std::uint8_t*>(request.input("rowwise_data").data);
    const auto rows = group_rows(request, R);
    const auto offset = scale_offsets(recipe, Direction::rowwise, rows, K);
    std::int64_t first = 0;
    for (std::size_t t = 0; x != nullptr && t < rows.size(); first += rows[t++])
      for (std::int64_t r = 0; r < rows[t]; ++r)
        for (std::int64_t c = 0; c < K; ++c) {
          const std::int64_t i = (first + r) * K + c;
          const ScaleShape s = scale_shape(recipe, Direction::rowwise, rows[t], K);
          float v = 0;
          if (recipe == Recipe::mxfp8) {
            const auto byte =
                static_cast<const std::uint8_t*>(request.input("rowwise_scale_inv").data)[offset[t] + r * s.columns + c / 32];
            v = scalar::decode_e4m3(codes[i]) * static_cast<float>(byte);
          } else {
            v = scalar::decode_e4m3(codes[i]) * floats(&request.input("rowwise_scale_inv"))[t];
          }
          scalar::store(request.format_or("dtype_d", Format::f32), x, i, v);
        }
  }
}

void delayed(Request& request) {
  std::vector<float> held;
  if (on("margin_has_other_sign")) request.attributes["margin"] = -request.integer("margin");
  if (on("newest_amax_instead_of_largest")) request.attributes["algorithm"] = std::string("most_recent");
  if (on("unused_tensors_are_rolled")) {
    request.in.erase("reduced");
    request.attributes["bulk"] = std::int64_t{0};
  }
  answer(request, Layer::scalar);
  const TensorView& history = request.input("amax_history");
  const std::int64_t length = history.shape[0], n = history.shape[1];
  if (on("history_is_not_rolled")) {
    auto* to = out<float>(request, "amax_history");
    for (std::int64_t t = 0; to != nullptr && t < n; ++t) {
      if (floats(&history)[t] == 0) continue;
      for (std::int64_t l = 1; l < length; ++l) to[l * n + t] = floats(&history)[l * n + t];
      to[t] = 0;
    }
  }
}

void bias_gradient(Request& request) {
  std::vector<float> zeros;
  if (on("dbias_overwrites")) {
    TensorView& before = request.in.at("dbias");
    zeros.assign(static_cast<std::size_t>(before.elements()), 0.0f);
    before.data = zeros.data();
  }
  answer(request, Layer::scalar);
  float* to = out<float>(request, "dbias");
  const TensorView& dy = request.input("dy");
  if (to == nullptr || !(on("dbias_halves_interleaved") || on("dbias_first_row_of_next_group"))) return;
  const auto rows = request.splits();
  const std::int64_t N = dy.shape[1];
  std::int64_t first = 0;
  for (std::size_t t = 0; t < rows.size(); first += rows[t++])
    for (std::int64_t c = 0; c < N; ++c) {
      float sum = 0;
      const std::int64_t m =
          rows[t] + (on("dbias_first_row_of_next_group") && first + rows[t] < dy.shape[0] && t + 1 < rows.size() ? 1 : 0);
      for (std::int64_t tile = 0; tile < m; tile += 128) {
        float half[2] = {0, 0};
        for (std::int64_t r = tile; r < std::min(tile + 128, m); ++r) {
          const std::int64_t which = on("dbias_halves_interleaved") ? r % 2 : (r - tile) / 64;
          half[which] += scalar::load(dy.type, dy.data, (first + r) * N + c);
        }
        sum += half[0] + half[1];
      }
      to[static_cast<std::int64_t>(t) * N + c] = scalar::canonical(sum);
    }
}

void tokens(Request& request) {
  const TensorView& map = request.input("row_map");
  const std::int64_t R = map.shape[0], topk = map.shape[1];
  std::vector<float> weights;
  std::vector<std::int32_t> rows;
  if (on("weights_are_topk_major")) {
    TensorView& given = request.in.at("weights");
    for (std::int64_t t = 0; t < R; ++t)
      for (std::int64_t k = 0; k < topk; ++k) weights.push_back(floats(&given)[k * R + t]);
    given.data = weights.data();
  }
  if (on("weights_become_bf16")) {
    TensorView& given = request.in.at("weights");
    for (std::int64_t i = 0; i < R * topk; ++i) weights.push_back(scalar::decode_bf16(scalar::encode_bf16(floats(&given)[i])));
    given.data = weights.data();
  }
  if (on("choices_from_the_last")) {
    const auto* at = static_cast<const std::int32_t*>(map.data);
    for (std::int64_t t = 0; t < R; ++t)
      for (std::int64_t k = topk - 1; k >= 0; --k) {
        rows.push_back(at[t * topk + k]);
        if (request.find_input("weights") != nullptr) weights.push_back(floats(request.find_input("weights"))[t * topk + k]);
      }
    request.in.at("row_map").data = rows.data();
    if (request.find_input("weights") != nullptr) request.in.at("weights").data = weights.data();
  }
  if (on("dropped_choice_reads_row_0")) {
    const auto* at = static_cast<const std::int32_t*>(map.data);
    const TensorView& from = request.input("permuted");
    const auto K = from.shape[1];
    auto* to = out<void>(request, "x");
    for (std::int64_t t = 0; to != nullptr && t < R; ++t)
      for (std::int64_t c = 0; c < K; ++c) {
        float acc = 0;
        for (std::int64_t k = 0; k < topk; ++k) {
          const std::int64_t row = std::max(at[t * topk + k], 0);
          acc = std::fma(floats(&request.input("weights"))[t * topk + k], scalar::load(from.type, from.data, row * K + c), acc);
        }
        scalar::store(from.type, to, t * K + c, acc);
      }
    return;
  }
  answer(request, Layer::scalar);
  if (on("token_scales_of_choice_before")) {  // scales of the token before, from the second on
    auto* to = out<std::uint8_t>(request, "permuted_scale_inv");
    const auto* at = static_cast<const std::int32_t*>(map.data);
    const TensorView& scales = request.input("scale_inv");
    const std::int64_t bytes = R == 0 ? 0 : scales.bytes / R;
    for (std::int64_t t = 1; to != nullptr && t < R; ++t)
      for (std::int64_t k = 0; k < topk; ++k)
        if (at[t * topk + k] >= 0)
          std::memcpy(to + at[t * topk + k] * bytes, static_cast<const std::uint8_t*>(scales.data) + (t - 1) * bytes,
                      static_cast<std::size_t>(bytes));
  }
}

void linear(Request& request) {
  float zero = 0;
  std::vector<std::uint8_t> none;
  if (on("weight_cache_is_always_renewed")) request.in.at("noop").data = &zero;
  if (on("gradients_quantized_as_e4m3")) request.attributes["grad_otype"] = std::string("e4m3");
  if (on("layer_scales_are_no_powers_of_two")) request.attributes["pow2"] = std::int64_t{0};
  if (on("main_gradient_is_overwritten")) {
    request.attributes["accumulate"] = std::int64_t{0};
    request.in.erase("main_grad");
  }
  answer(request, Layer::fast);
  if (on("layer_bias_twice")) {
    void* y = out<void>(request, "y");
    const TensorView& bias = request.input("bias");
    const auto splits = request.splits();
    const std::int64_t N = request.integer("N");
    std::int64_t row = 0;
    for (std::size_t t = 0; y != nullptr && t < splits.size(); ++t)
      for (std::int64_t r = 0; r < splits[t]; ++r, ++row)
        for (std::int64_t c = 0; c < N; ++c)
          scalar::store(
              bias.type, y, row * N + c,
              scalar::load(bias.type, y, row * N + c) + scalar::load(bias.type, bias.data, static_cast<std::int64_t>(t) * N + c));
  }
}

void rules(Request& request) {
  if (on("rule_of_deepseek_v3") || on("rule_of_torchao_floor") || on("rule_of_sglang_v1")) request.attributes.erase("rule");
  if (on("rule_of_deepseek_v3")) request.attributes["preset"] = std::string("deepseek_v3");
  if (on("rule_of_torchao_floor")) request.attributes["preset"] = std::string("torchao.mx_floor");
  if (on("rule_of_sglang_v1")) request.attributes["preset"] = std::string("sglang.group_v1");
  answer(request, Layer::scalar);
  if (on("packed_scales_byte_reversed")) {
    auto* words = out<std::uint32_t>(request, "scale_inv");
    const std::int64_t n = words == nullptr ? 0 : request.out.at("scale_inv").bytes / 4;
    for (std::int64_t i = 0; i < n; ++i) words[i] = __builtin_bswap32(words[i]);
  }
}

}  // namespace

void other_kernels(Request& request) {
  const std::string& op = request.op();
  if (op.rfind("splits_to_offsets", 0) == 0) return offsets(request);
  if (op == "swizzle" || op == "unswizzle") return swizzles(request);
  if (op == "dequantize") return dequantizes(request);
  if (op == "delayed_update") return delayed(request);
  if (op == "grouped_dbias") return bias_gradient(request);
  if (op == "permute" || op == "unpermute") return tokens(request);
  if (op.rfind("linear_", 0) == 0) return linear(request);
  if (op == "quantize_by_rule") return rules(request);
  answer(request, Layer::scalar);
}

}  // namespace assay::conformance::unseen
