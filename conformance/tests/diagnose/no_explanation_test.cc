// No hint where no hypothesis holds: flipped bits, random elements, lost elements.

#include <random>

#include "conformance/tests/diagnose/planted.h"

namespace assay::conformance {
namespace {

using planted::hints_of;

struct Damage {
  const char* name;
  void (*apply)(std::uint8_t* bytes, std::int64_t count, int width, std::mt19937_64& draw);
};

void flip_one_bit(std::uint8_t* bytes, std::int64_t count, int, std::mt19937_64& draw) {
  bytes[draw() % static_cast<std::uint64_t>(count)] ^= 1 << draw() % 8;
}
void flip_bits_of_three(std::uint8_t* bytes, std::int64_t count, int width, std::mt19937_64& draw) {
  for (int i = 0; i < 3; ++i) flip_one_bit(bytes, count, width, draw);
}
void flip_last_bits(std::uint8_t* bytes, std::int64_t count, int width, std::mt19937_64& draw) {
  for (std::int64_t at = 0; at + width <= count; at += width) bytes[at] ^= draw() % 3 == 0;
}
void random_words(std::uint8_t* bytes, std::int64_t count, int width, std::mt19937_64& draw) {
  for (std::int64_t at = 0; at + width <= count; at += width) {
    if (draw() % 5 != 0) continue;
    for (int i = 0; i < width; ++i) bytes[at + i] = static_cast<std::uint8_t>(draw());
  }
}
void all_random(std::uint8_t* bytes, std::int64_t count, int, std::mt19937_64& draw) {
  for (std::int64_t at = 0; at < count; ++at) bytes[at] = static_cast<std::uint8_t>(draw());
}
void lost_words(std::uint8_t* bytes, std::int64_t count, int width, std::mt19937_64& draw) {
  for (std::int64_t at = 0; at + width <= count; at += width) {
    if (draw() % 5 == 0) std::memset(bytes + at, 0, static_cast<std::size_t>(width));
  }
}
void exchanged_words(std::uint8_t* bytes, std::int64_t count, int width, std::mt19937_64& draw) {
  for (int i = 0; i < 40; ++i) {
    const auto words = static_cast<std::uint64_t>(count / width);
    std::uint8_t *one = bytes + draw() % words * static_cast<std::uint64_t>(width),
                 *other = bytes + draw() % words * static_cast<std::uint64_t>(width);
    std::swap_ranges(one, one + width, other);
  }
}

constexpr Damage kDamages[] = {{"flip_one_bit", flip_one_bit},      {"flip_bits_of_three", flip_bits_of_three},
                               {"flip_last_bits", flip_last_bits},  {"random_words", random_words},
                               {"all_random", all_random},          {"lost_words", lost_words},
                               {"exchanged_words", exchanged_words}};

struct Target {
  const char* line;
  const char* output;
  bool states = true;  // the backend: its plan
};
constexpr Target kTargets[] = {
    {"quantize recipe=block_1x128 pow2=1 eps=0.1 splits=40,0,60 K=150 seed=1", "rowwise_data"},
    {"quantize recipe=block_1x128 splits=40,0,60 K=150 seed=2", "rowwise_scale_inv"},
    {"quantize recipe=mxfp8 splits=40,0,60 K=150 seed=3", "columnwise_scale_inv"},
    {"quantize recipe=nvfp4 hadamard=1 sign_mask=77 stochastic=1 splits=64,32 K=150 seed=4", "columnwise_data"},
    {"quantize recipe=tensor_current splits=4x9 K=50 seed=5", "scale"},
    {"dequantize recipe=block_128x128 splits=40,60 K=150 seed=6", "x"},
    {"delayed_update margin=2 tensors=30 length=5 seed=7", "scale"},
    {"delayed_update tensors=30 length=5 seed=8", "amax_history"},
    {"splits_to_offsets stride=96 splits=5,0,7,300,2,9,33,41", "offsets"},
    {"grouped_dbias splits=40,60 K=50 seed=9", "dbias"},
    {"grouped_gemm kind=bf16 alpha=0.3 beta=0.5 bias=1 splits=20,0,30 N=32 K=72 seed=10", "d"},
    {"grouped_gemm kind=fp8_per_tensor split_accumulator=1 d_type=f32 splits=20,0,30 N=32 K=200 seed=11", "d"},
    {"grouped_gemm kind=fp8_block d_type=f32 splits=20,0,30 N=32 K=300 seed=12", "d"},
    {"grouped_gemm kind=mxfp8 splits=20,0,30 N=32 K=96 seed=13", "d"},
    {"linear_wgrad recipe=fp8_block accumulate=1 splits=20,0,30 N=32 K=150 seed=14", "dw"},
    {"grouped_gemm kind=bf16 alpha=0.3 beta=0.5 bias=1 splits=20,0,30 N=32 K=72 seed=15", "d", false},
    {"grouped_gemm kind=fp8_block d_type=f32 splits=20,0,30 N=32 K=300 seed=16", "d", false},
    {"linear_forward recipe=tensor_current splits=20,0,30 N=32 K=150 seed=17", "y", false},
};

TEST(NoExplanation, IsGivenForDamageOfNoOrder) {
  std::mt19937_64 draw(20261122);
  for (const Target& target : kTargets) {
    for (const Damage& damage : kDamages) {
      const auto seed = draw();
      const std::string text = planted::failure(
          target.line,
          [&](const assay_call& call) {
            std::mt19937_64 same(seed);  // in both runs
            const assay_tensor& output = tensor(call, target.output);
            const int width = std::max(1, bits_of(static_cast<Format>(output.dtype)) / 8);
            damage.apply(static_cast<std::uint8_t*>(output.data), output.bytes, width, same);
          },
          target.states);
      EXPECT_FALSE(contains(hints_of(text), "of the same call")) << damage.name << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace assay::conformance
