// Quantization as kernels do it: per block an amax, a scale and codes. Faults are where kernels have them.

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <numeric>

#include "conformance/ops/answer.h"
#include "conformance/ops/words.h"
#include "conformance/tests/unseen/kernels.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e8m0.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/element_scalar.h"

namespace assay::conformance::unseen {
namespace {

float as_bf16(float v) { return scalar::decode_bf16(scalar::encode_bf16(v)); }

struct Block {
  std::int64_t r0, r1, c0, c1;  // of the group
};

struct Kernel {
  const Request& request;
  QuantizeConfig config = quantize_config_of(request);
  const TensorView& x = request.input("x");
  std::int64_t R = x.shape[0], K = x.shape[1];
  std::vector<std::int64_t> groups = group_rows(request, R);
  float fp8_max = config.output == Format::e5m2 && !on("e5m2_takes_448") ? 57344.0f : on("max_of_fnuz") ? 240.0f : 448.0f;

  float at(std::int64_t i) const { return scalar::load(x.type, x.data, i); }
  template <class T>
  T* out(const std::string& name) const {
    const auto found = request.out.find(name);
    return found == request.out.end() ? nullptr : static_cast<T*>(found->second.data);
  }

  // ---- The reduction ----
  float amax(std::int64_t first, const Block& block) const {
    Block b = block;
    if (on("amax_of_last_block_reads_on") && b.c1 == K && config.recipe == Recipe::block_1x128) b.c1 = b.c0 + 128;
    float a = 0;
    for (std::int64_t r = b.r0; r < b.r1; ++r) {
      for (std::int64_t c = b.c0; c < b.c1; ++c) {
        if (on("amax_loses_last_lane") && c % 128 >= 120) continue;
        if ((first + r) * K + c >= R * K) continue;
        float v = at((first + r) * K + c);
        if (on("amax_of_bf16")) v = as_bf16(v);
        if (on("amax_without_abs")) v = std::fmax(v, 0.0f);
        if (on("amax_takes_nan") && std::isnan(v)) return std::bit_cast<float>(0x7FFFFFFFu);
        if (on("amax_without_infinities") && std::isinf(v)) continue;
        if (std::fabs(v) > a) a = std::fabs(v);
      }
    }
    if (on("subnormal_amax_is_zero") && a < 0x1p-126f) a = 0;
    return a;
  }

  // ---- FP8 ----
  float fp8_scale(float amax) const {
    const bool block = !is_per_tensor(config.recipe);
    float a = amax;
    if (on("eps_is_added")) {
      a = a + config.amax_epsilon;
    } else if (a < config.amax_epsilon && !on("eps_is_not_passed")) {
      a = config.amax_epsilon;
    }
    if (std::isnan(a) || std::isinf(a) || a == 0) return 1;
    float s = on("scale_by_reciprocal") ? fp8_max * (1 / a) : fp8_max / a;
    if (std::isinf(s)) s = on("overflowed_scale_is_1") ? 1.0f : block ? max_finite(x.type) : FLT_MAX;
    const bool pow2 = config.force_pow_2_scales && !on("pow2_is_not_passed");
    if (pow2) {
      const auto bits = std::bit_cast<std::uint32_t>(s);
      std::uint32_t cut = bits & 0xff800000u;
      if (on("pow2_rounds_to_nearest") && (bits & 0x00400000u) != 0) cut += 0x00800000u;
      if (on("pow2_of_amax")) {  // 2^floor(log2 MAX) / 2^ceil(log2 amax)
        return std::ldexp(1.0f, static_cast<int>(std::floor(std::log2(fp8_max))) - static_cast<int>(std::ceil(std::log2(a))));
      }
      s = std::bit_cast<float>(cut);
    }
    return s;
  }
  std::uint8_t fp8_code(float v, float s, float stored) const {
    float p = on("codes_divide_by_stored_scale") || on("two_divided_through_bf16") ? v / stored : v * s;
    if (config.zero_sign == ZeroSign::positive && p == 0) p = 0.0f;
    if (on("codes_through_bf16") || on("two_divided_through_bf16")) p = as_bf16(p);
    if (on("codes_through_f16")) p = scalar::decode_f16(scalar::encode_f16(p));
    std::uint8_t code = scalar::encode_fp8(config.output, p);
    if (on("codes_are_truncated") && !std::isnan(p)) {
      const float back = scalar::decode_fp8(config.output, code);
      if (std::fabs(back) > std::fabs(p) && (code & 0x7f) != 0) --code;
    }
    if (on("ties_away") && std::isfinite(p) && (code & 0x7f) < 0x7e) {
      const float below = scalar::decode_fp8(config.output, code & 0x7f),
                  above = scalar::decode_fp8(config.output, (code & 0x7f) + 1);
      if (std::fabs(p) > below && std::fabs(p) * 2 == below + above) ++code;
    }
    if (on("overflow_is_nan") && std::fabs(p) > (config.output == Format::e4m3 ? 464.0f : 61440.0f)) code = (code & 0x80) | 0x7f;
    if (on("subnormal_codes_are_zero") && (code & 0x7f) < (config.output == Format::e4m3 ? 8 : 4)) code &= 0x80;
    if (on("zero_loses_sign") && code == 0x80) code = 0;
    return code;
  }

  // ---- Where things lie ----
  std::int64_t code_at(Direction d, std::int64_t first, std::int64_t m, std::int64_t r, std::int64_t c) const {
    if (d == Direction::rowwise || (config.recipe == Recipe::mxfp8 && !on("mx_columnwise_is_transposed")))
      return (first + r) * K + c;
    if (on("columnwise_of_whole_matrix")) return c * R + first + r;
    return first * K + c * m + r;
  }
  std::int64_t scale_at(Direction d, std::int64_t m, std::int64_t r, std::int64_t c) const {
    const ScaleShape shape = scale_shape(config.recipe, d, m, K);
    const bool row = d == Direction::rowwise;
    switch (config.recipe) {
      case Recipe::block_1x128:
        if (on("scale_stride_without_padding")) return row ? c / 128 * m + r : r / 128 * K + c;
        if (on("scales_row_major") && row) return r * ((K + 127) / 128) + c / 128;
        return row ? c / 128 * shape.columns + r : r / 128 * shape.columns + c;
      case Recipe::block_128x128: return row ? r / 128 * shape.columns + c / 128 : c / 128 * shape.columns + r / 128;
      default: {
        const std::int64_t b = config.recipe == Recipe::mxfp8 ? 32 : 16;
        const std::int64_t i = row ? r : c, j = (row ? c : r) / b;
        if (config.scale_layout == ScaleLayout::swizzled) {
          const std::int64_t blocks = row || config.recipe == Recipe::nvfp4 ? shape.columns : shape.rows;
          std::int64_t tiles = blocks / 4;
          if (on("swizzle_tiles_round_down")) tiles = std::max<std::int64_t>(1, (row ? K : m) / b / 4);
          if (on("swizzle_words_turned") || on("two_floor_swizzle"))
            return ((i / 128) * tiles + j / 4) * 512 + (i % 32) * 16 + (j % 4) * 4 + (i % 128) / 32;
          return swizzled_index(i, j, tiles);
        }
        if (config.recipe == Recipe::nvfp4) return i * shape.columns + j;
        return row ? i * shape.columns + j : j * shape.columns + i;
      }
    }
  }

  void fp8_direction(Direction d) const {
    auto* data = out<std::uint8_t>(d == Direction::rowwise ? "rowwise_data" : "columnwise_data");
    auto* scales = out<float>(d == Direction::rowwise ? "rowwise_scale_inv" : "columnwise_scale_inv");
    auto offsets = scale_offsets(config.recipe, d, groups, K);
    const bool square = config.recipe == Recipe::block_128x128, row = d == Direction::rowwise;
    const std::int64_t bh = square || !row ? 128 : 1, bw = square || row ? 128 : 1;
    std::int64_t first = 0;
    for (std::size_t t = 0; t < groups.size(); first += groups[t++]) {
      const std::int64_t m = groups[t];
      if (on("group_scales_at_unpadded_rows") && row) offsets[t] = first * ((K + 127) / 128);
      // Blocks that a kernel counts from the matrix begin inside a block of the group.
      const std::int64_t shift = on("row_blocks_of_whole_matrix") && bh > 1 ? first % 128 : 0;
      for (std::int64_t r = 0; r < m; r = bh == 1 ? r + 1 : (r + shift) / bh * bh + bh - shift) {
        for (std::int64_t c = 0; c < K; c += bw) {
          Block b{r, std::min(bh == 1 ? r + 1 : (r + shift) / bh * bh + bh - shift, m), c, std::min(c + bw, K)};
          Block over = b;
          if (on("second_wave_amax_of_first") && bh == 1 && r >= 64) over.r0 = r - 64, over.r1 = r - 63;
          if (on("columnwise_takes_rowwise_scale") && !row) over = {r, r + 1, c / 128 * 128, std::min(c / 128 * 128 + 128, K)};
          if (on("square_tile_of_64_rows") && square) over.r1 = std::min(over.r1, over.r0 + 64);
          float s = fp8_scale(amax(first, over));
          if (on("infinite_block_takes_largest") && std::isinf(amax(first, over))) s = fp8_max / max_finite(x.type);
          float stored = 1 / s;
          if (on("stores_amax_over_max") && s != 1) stored = amax(first, over) / fp8_max;
          if (on("zero_block_stores_zero") && amax(first, over) == 0) stored = 0;
          if (on("rows_past_last_four_unwritten") && bh == 1 && r >= m / 4 * 4) continue;
          const std::int64_t scale_index = offsets[t] + scale_at(d, m, r, c);
          const std::int64_t room = scale_offsets(config.recipe, d, groups, K).back();
          if (scales != nullptr && scale_index < room) scales[scale_index] = stored;
          for (std::int64_t i = b.r0; data != nullptr && i < b.r1; ++i)
            for (std::int64_t j = b.c0; j < b.c1; ++j)
              data[code_at(d, first, m, i, j)] = fp8_code(at((first + i) * K + j), s, stored);
        }
      }
    }
    if (on("vector_store_past_the_row") && row && data != nullptr && K % 16 != 0) {
      for (std::int64_t r = 1; r < first; ++r) std::memset(data + r * K, 0, static_cast<std::size_t>(std::min(K, 16 - K % 16)));
    }
  }

  void per_tensor() const {
    float whole = amax(0, {0, std::accumulate(groups.begin(), groups.end(), std::int64_t{0}), 0, K});
    const bool delayed = config.recipe == Recipe::tensor_delayed;
    const float* given = delayed ? floats(&request.input("scale")) : nullptr;
    float* amaxes = out<float>("amax");
    std::int64_t first = 0;
    float before = 1;
    static thread_local std::vector<float> kept;
    if (on("amax_kept_between_launches")) {
      if (!launching()) kept.clear();
      kept.resize(groups.size());
    }
    for (std::size_t t = 0; t < groups.size(); first += groups[t++]) {
      const std::int64_t m = groups[t];
      float a = on("one_amax_for_all_groups") ? whole : amax(first, {0, m, 0, K});
      if (on("amax_kept_between_launches") && launching()) a = kept[t] = std::max(kept[t], a);
      const float s = delayed ? given[t] : fp8_scale(a);
      float inv = 1 / s;
      if (on("scale_inv_of_current_amax")) inv = a == 0 ? 1.0f : a / fp8_max;
      if (amaxes != nullptr) amaxes[t] = on("amax_after_the_scale") ? a * s : a;
      if (out<float>("scale") != nullptr) out<float>("scale")[t] = s;
      for (const char* name : {"rowwise_scale_inv", "columnwise_scale_inv"})
        if (out<float>(name) != nullptr) out<float>(name)[t] = scalar::canonical(inv);
      const float used = on("codes_take_scale_of_group_before") && t > 0 ? before : s;
      before = s;
      for (const Direction d : {Direction::rowwise, Direction::columnwise}) {
        auto* data = out<std::uint8_t>(d == Direction::rowwise ? "rowwise_data" : "columnwise_data");
        for (std::int64_t r = 0; data != nullptr && r < m; ++r)
          for (std::int64_t c = 0; c < K; ++c) data[code_at(d, first, m, r, c)] = fp8_code(at((first + r) * K + c), used, inv);
      }
    }
  }

  // ---- MXFP8 and NVFP4 ----
  std::uint8_t mx_scale(float a) const {
    const bool e4m3 = config.output == Format::e4m3;
    if (on("mx_exponent_floor") || on("two_floor_swizzle")) {
      if (a == 0) return 0;
      return static_cast<std::uint8_t>(std::clamp(std::ilogb(a) - (e4m3 ? 8 : 15) + 127, 0, 254));
    }
    if (on("mx_amax_through_bf16")) a = as_bf16(a);
    std::uint8_t code = scalar::encode_e8m0(a * std::bit_cast<float>(e4m3 ? 0x3b124925u : 0x37924925u));
    if (on("mx_exponent_at_least_1") && code == 0) code = 1;
    return code;
  }
  float tensor_scale(float g) const {
    const float s = std::fmin(6 * (on("nv_takes_256") ? 256.0f : 448.0f) / g, FLT_MAX);
    return g == 0 || s == 0 ? 1.0f : s;
  }

  void small_blocks(Direction d) const {
    const bool mx = config.recipe == Recipe::mxfp8, row = d == Direction::rowwise;
    const std::int64_t bs = mx ? 32 : 16;
    auto* data = out<std::uint8_t>(row ? "rowwise_data" : "columnwise_data");
    auto* scales = out<std::uint8_t>(row ? "rowwise_scale_inv" : "columnwise_scale_inv");
    const auto offsets = scale_offsets(config.recipe, d, groups, K);
    if (config.scale_layout == ScaleLayout::swizzled && scales != nullptr && !on("swizzled_padding_is_left"))
      std::memset(scales, 0, static_cast<std::size_t>(offsets.back()));
    const TensorView* given =
        request.find_input(row || request.find_input("columnwise_amax") == nullptr ? "amax" : "columnwise_amax");
    float* gs = out<float>(row ? "amax" : "columnwise_amax");
    std::int64_t first = 0;
    for (std::size_t t = 0; t < groups.size(); first += groups[t++]) {
      const std::int64_t m = groups[t];
      float g = 0, s = 1;
      if (!mx) {
        g = given != nullptr                ? floats(given)[given->elements() == 1 ? 0 : t]
            : on("nv_amax_of_whole_tensor") ? amax(0, {0, std::accumulate(groups.begin(), groups.end(), std::int64_t{0}), 0, K})
                                            : amax(first, {0, m, 0, K});
        if (gs != nullptr) gs[t] = g;
        s = tensor_scale(g);
      }
      const std::int64_t bh = row ? 1 : bs, bw = row ? bs : 1;
      const std::int64_t shift = on("mx_row_blocks_of_whole_matrix") && !row ? first % bs : 0;
      for (std::int64_t r = 0; r < m; r = row ? r + 1 : (r + shift) / bs * bs + bs - shift) {
        for (std::int64_t c = 0; c < K; c += bw) {
          const Block b{r, std::min(row ? r + bh : (r + shift) / bs * bs + bs - shift, m), c, std::min(c + bw, K)};
          Block over = b;
          if (config.two_dimensional && !(on("two_dimensional_rowwise_only") && !row))
            over = {r / bs * bs, std::min(r / bs * bs + bs, m), c / bs * bs, std::min(c / bs * bs + bs, K)};
          const float a = amax(first, over);
          float mult = 0;
          std::uint8_t code = 0;
          if (mx) {
            code = mx_scale(a);
            mult = scalar::e8m0_quantize_multiplier(code);
          } else {
            const float t6 = on("nv_divides_by_6") ? s / 6 : s * std::bit_cast<float>(0x3e2aaaabu);
            const float exact = std::fmin(a * t6, FLT_MAX);
            code = scalar::encode_e4m3(exact);
            if (on("nv_scale_never_zero") && code == 0) code = 1;
            const float d8 = on("nv_scale_rounded_after_codes") ? exact : scalar::decode_e4m3(code);
            mult = std::fmin(1 / (d8 * (1 / s)), FLT_MAX);
          }
          const std::int64_t place = offsets[t] + scale_at(d, m, r, c);
          if (scales != nullptr && place < offsets.back()) scales[place] = code;
          for (std::int64_t i = b.r0; data != nullptr && i < b.r1; ++i) {
            for (std::int64_t j = b.c0; j < b.c1; ++j) {
              const float v = at((first + i) * K + j);
              if (mx) {
                data[code_at(d, first, m, i, j)] = fp8_code(v, mult, 1 / mult);
                continue;
              }
              const std::int64_t index = row ? (first + i) * K + j : first * K + j * m + i;
              std::uint8_t four = scalar::encode_e2m1(v * mult);
              if (on("nv_midpoints_up") && std::isfinite(v)) {
                const float p = std::fabs(v * mult);
                const std::uint8_t low = four & 7;
                if (low < 7 && p * 2 == scalar::decode_e2m1(low) + scalar::decode_e2m1(low + 1)) ++four;
              }
              const bool high = (index % 2 == 1) != on("nv_nibbles_swapped");
              std::uint8_t& byte = data[index / 2];
              byte = static_cast<std::uint8_t>(high ? (byte & 0xf) | four << 4 : (byte & 0xf0) | four);
            }
          }
        }
      }
    }
  }

  // ---- Bias gradient ----
  void dbias() const {
    void* to = out<void>("dbias");
    if (to == nullptr) return;
    std::int64_t first = 0;
    for (std::size_t t = 0; t < groups.size(); first += groups[t++]) {
      for (std::int64_t c = 0; c < K; ++c) {
        float sum = 0;
        const auto value = [&](std::int64_t r) { return at((first + r) * K + c); };
        const std::int64_t m = on("dbias_drops_last_half") ? groups[t] / 64 * 64 : groups[t];
        if (on("dbias_row_after_row")) {
          for (std::int64_t r = 0; r < m; ++r) sum += value(r);
        } else if (on("dbias_accumulates_in_type")) {
          for (std::int64_t r = 0; r < m; ++r) sum = as_bf16(sum + value(r));
        } else {
          for (std::int64_t tile = 0; tile < m; tile += 128) {
            float half[2] = {0, 0};
            for (std::int64_t r = tile; r < std::min(tile + 128, m); ++r) half[(r - tile) / 64] += value(r);
            sum += half[0] + half[1];
          }
        }
        scalar::store(x.type, to, static_cast<std::int64_t>(t) * K + c, sum);
      }
    }
  }
};

// Options that these kernels hand to the reference, with what a launcher gets wrong.
bool by_reference(const Request& request, const QuantizeConfig& config) {
  if (!config.hadamard && !config.stochastic_rounding && config.four_over_six == FourOverSix::off) return false;
  Request changed = request;
  std::vector<std::uint8_t> held;
  if (on("sign_mask_is_reversed")) {
    std::int64_t reversed = 0;
    for (int i = 0; i < 16; ++i) reversed |= (request.integer("sign_mask") >> i & 1) << (15 - i);
    changed.attributes["sign_mask"] = reversed;
  }
  if (on("random_bytes_of_next_element")) {
    TensorView& random = changed.in.at("rowwise_random");
    const auto* from = static_cast<const std::uint8_t*>(random.data);
    held.assign(from, from + random.bytes);
    std::rotate(held.begin(), held.begin() + 1, held.end());
    random.data = held.data();
  }
  if (on("squared_error_for_absolute")) changed.attributes["four_over_six"] = std::string("mse");
  answer(changed, Layer::scalar);
  return true;
}

}  // namespace

void quantize_kernel(const Request& request) {
  const TensorView* noop = request.find_input("noop");
  if (noop != nullptr && *static_cast<const float*>(noop->data) == 1.0f && !on("noop_is_not_read")) return;
  const Kernel kernel{request};
  if (by_reference(request, kernel.config)) return;
  kernel.dbias();
  if (kernel.K == 0) return answer(request, Layer::scalar);
  if (is_per_tensor(kernel.config.recipe)) return kernel.per_tensor();
  for (const Direction d : {Direction::rowwise, Direction::columnwise}) {
    const std::string side = d == Direction::rowwise ? "rowwise" : "columnwise";
    const std::string amax = d == Direction::rowwise ? "amax" : "columnwise_amax";
    if (!request.wants(side + "_data") && !request.wants(side + "_scale_inv") && !request.wants(amax)) continue;
    const Recipe recipe = kernel.config.recipe;
    recipe == Recipe::mxfp8 || recipe == Recipe::nvfp4 ? kernel.small_blocks(d) : kernel.fp8_direction(d);
  }
}

}  // namespace assay::conformance::unseen
