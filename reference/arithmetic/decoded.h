#pragma once
// Operands decoded once: in a product of M x N each element takes part in M or N sums.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/arithmetic/tensor_core.h"

namespace assay {

// Elements as an instruction multiplies them, one array per part. A finite element is significand * 2^(exponent - fraction);
// the significand of an infinity gives only its sign.
struct DecodedElements {
  const std::int32_t* significand = nullptr;
  const std::int32_t* exponent = nullptr;
  const Term::Kind* kind = nullptr;
  std::size_t count = 0;
  int fraction = 0;

  DecodedElements part(std::size_t first, std::size_t length) const {
    return {significand + first, exponent + first, kind + first, length, fraction};
  }
};

// Exponent of a -0 where its sign counts: for units of StepSum::chains. Other sums take both zeros for one.
inline constexpr std::int32_t kNegativeZero = INT32_MIN;

// One element. Returns its number of fraction bits, which is the same for every element of this type.
int decode_element(const TensorCoreUnit& unit, Format type, std::uint32_t bits, std::int32_t& significand, std::int32_t& exponent,
                   Term::Kind& kind);

// Lines of `depth` elements each, with memory of their own.
class DecodedLines {
 public:
  DecodedLines(const TensorCoreUnit& unit, Format type) : unit_(unit), type_(type) {}
  void resize(std::size_t lines, std::size_t depth) {
    depth_ = depth;
    significand_.resize(lines * depth);
    exponent_.resize(lines * depth);
    kind_.resize(lines * depth);
  }
  void set(std::size_t line, std::size_t k, std::uint32_t bits) {
    const std::size_t at = line * depth_ + k;
    fraction_ = decode_element(unit_, type_, bits, significand_[at], exponent_[at], kind_[at]);
  }
  DecodedElements line(std::size_t line) const {
    const std::size_t at = line * depth_;
    return {significand_.data() + at, exponent_.data() + at, kind_.data() + at, depth_, fraction_};
  }

 private:
  const TensorCoreUnit& unit_;
  Format type_;
  std::size_t depth_ = 0;
  int fraction_ = 0;
  std::vector<std::int32_t> significand_, exponent_;
  std::vector<Term::Kind> kind_;
};

// tensor_core_step() of decoded elements. The unit must take their types.
std::uint32_t tensor_core_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, std::uint32_t c,
                               std::span<const std::uint8_t> scale_a = {}, std::span<const std::uint8_t> scale_b = {});

}  // namespace assay
