// Compares what the trainer computes on the device with the reference, bit for bit. Exit code 9 where there is no device.

#include <reference/linear/grouped_linear.h>

#include <cstdio>
#include <cstring>

#include "trainer.h"

namespace {

std::uint32_t state = 1;
std::uint16_t draw() {  // bf16 between 2^-4 and 2^3, both signs
  state = state * 1664525u + 1013904223u;
  return static_cast<std::uint16_t>((state >> 31) << 15 | (123 + (state >> 24) % 7) << 7 | (state >> 8 & 0x7f));
}
std::vector<std::uint16_t> drawn(std::int64_t count) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::uint16_t& each : values) each = draw();
  return values;
}

template <class Value>
bool same(const char* name, const std::vector<Value>& got, const std::vector<Value>& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(Value)) == 0) continue;
    std::printf("%s differs first at %zu\n", name, i);
    return false;
  }
  return true;
}

}  // namespace

int main() {
  const std::vector<std::uint16_t> w[2] = {drawn(4 * kN * kK), drawn(4 * kN * kK)};
  Microbatch got[2], want[2];
  std::vector<float> dw(4 * kN * kK, 0.5f), dw_want = dw;
  for (int i = 0; i < 2; ++i) {
    got[i] = {drawn(kRows * kK), drawn(kRows * kN), std::vector<std::uint16_t>(kRows * kN),
              std::vector<std::uint16_t>(kRows * kK)};
    want[i] = got[i];
  }
  bool no_device = false;
  const std::string error = train(w, got, dw, no_device);
  if (!error.empty()) {
    std::printf("%s\n", error.c_str());
    return no_device ? 9 : 1;
  }
  assay::LinearConfig config;
  config.recipe = assay::LinearRecipe::block;
  config.force_pow_2_scales = true;
  for (int i = 0; i < 2; ++i) {
    const assay::LinearShape shape{kSplits[i], kRows, kN, kK};
    Microbatch& m = want[i];
    assay::linear_forward(config, shape, {.x = m.x.data(), .w = w[i].data()}, m.y.data());
    assay::linear_dgrad(config, shape, {.dy = m.dy.data(), .w = w[i].data()}, m.dx.data());
    assay::linear_wgrad(config, shape, {.dy = m.dy.data(), .x = m.x.data(), .accumulate = true}, dw_want.data());
  }
  const bool right = same("y of 0", got[0].y, want[0].y) && same("y of 1", got[1].y, want[1].y) &&
                     same("dx of 0", got[0].dx, want[0].dx) && same("dx of 1", got[1].dx, want[1].dx) && same("dw", dw, dw_want);
  std::printf("%s\n", right ? "equal by bits" : "not equal");
  return right ? 0 : 1;
}
