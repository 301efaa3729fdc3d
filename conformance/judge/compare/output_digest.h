#pragma once
// Digests of outputs, which can stand for expected ones.
//
// Outputs with one digest are equal by the rules of compare.h; those that compare() takes for equal have one digest, apart from three rare
// cases, in which the outputs themselves must be compared: a NaN of all ones where a NaN is right, padding that may hold anything, and
// memory that may be written or not.
//
//   a NaN of f32, bf16, f16   becomes the one without a sign whose mantissa is all ones; but the bits 0xff..f stay, because they are poison
//   zero_sign_free            the codes of -0 become those of +0
//   rows of no group          are not looked at
//   everything else           its bits: what nothing may write holds the poison, so that each poison has a digest of its own

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/types/format.h"

namespace assay::conformance {

struct DigestRules {
  Format type = Format::f32;
  bool zero_sign_free = false;
  std::vector<bool> free_rows = {};  // rows, from the first on, that may hold anything
  std::size_t row_bytes = 1;
};

// 64 hexadecimal digits: SHA-256 of the type's name and of the SHA-256 of each 2^20 bytes of the output, with a shorter piece at the end.
std::string output_digest(std::span<const std::byte> output, const DigestRules& rules);

}  // namespace assay::conformance
