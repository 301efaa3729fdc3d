#pragma once
// The interface of the shared library: plain arrays in host memory, no type of Assay.

#include <cstdint>
#include <string>
#include <vector>

constexpr std::int64_t kN = 272, kK = 400, kRows = 320;
inline const std::vector<std::int64_t> kSplits[2] = {{64, 0, 200, 48}, {16, 128, 0, 160}};  // of two microbatches

struct Microbatch {
  std::vector<std::uint16_t> x, dy;  // bf16 [rows, K], [rows, N]
  std::vector<std::uint16_t> y, dx;  // written
};

// Weights are changed between the two forwards. dw [G*N, K] is added to. Returns the error, or an empty text. `no_device` is set
// if no device can be used.
std::string train(const std::vector<std::uint16_t> (&w)[2], Microbatch (&microbatches)[2], std::vector<float>& dw,
                  bool& no_device);
