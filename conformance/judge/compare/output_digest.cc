#include "conformance/judge/compare/output_digest.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "golden/io/sha256.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

constexpr std::size_t kDigestPiece = std::size_t{1} << 20;

// `infinity`: its bits, which are those of the largest number that is no NaN.
template <class Word>
void unite_nans(std::span<std::byte> bytes, Word infinity) {
  constexpr Word kOnes = static_cast<Word>(~Word{0}), kMagnitude = kOnes >> 1;
  for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if ((word & kMagnitude) <= infinity || word == kOnes) continue;
    std::memcpy(bytes.data() + at, &kMagnitude, sizeof word);
  }
}

// E4M3, E5M2 and two codes of E2M1: the sign bit of a zero.
void unite_zeros(std::span<std::byte> codes, Format type) {
  for (std::byte& each : codes) {
    if (type == Format::e2m1) {
      if ((each & std::byte{0x0F}) == std::byte{0x08}) each &= std::byte{0xF0};
      if ((each & std::byte{0xF0}) == std::byte{0x80}) each &= std::byte{0x0F};
    } else if (each == std::byte{0x80}) {
      each = std::byte{0};
    }
  }
}

bool has_signed_zeros(Format type) { return type == Format::e4m3 || type == Format::e5m2 || type == Format::e2m1; }

// The bytes from `begin` on, as they are digested.
void make_equal(std::span<std::byte> bytes, std::size_t begin, const DigestRules& rules) {
  if (rules.type == Format::f32) unite_nans<std::uint32_t>(bytes, 0x7F80'0000);
  if (rules.type == Format::bf16) unite_nans<std::uint16_t>(bytes, 0x7F80);
  if (rules.type == Format::f16) unite_nans<std::uint16_t>(bytes, 0x7C00);
  if (rules.zero_sign_free && has_signed_zeros(rules.type)) unite_zeros(bytes, rules.type);
  const std::size_t end = begin + bytes.size();
  for (std::size_t row = begin / rules.row_bytes; row < rules.free_rows.size() && row * rules.row_bytes < end; ++row) {
    if (!rules.free_rows[row]) continue;
    const std::size_t from = std::max(row * rules.row_bytes, begin), to = std::min((row + 1) * rules.row_bytes, end);
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from - begin), bytes.begin() + static_cast<std::ptrdiff_t>(to - begin),
              std::byte{0});
  }
}

}  // namespace

std::string output_digest(std::span<const std::byte> output, const DigestRules& rules) {
  const std::size_t pieces = (output.size() + kDigestPiece - 1) / kDigestPiece;
  std::vector<std::array<std::uint8_t, 32>> sums(pieces);
  parallel_for(static_cast<std::int64_t>(pieces), 1, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      const auto piece = output.subspan(i * kDigestPiece, std::min(kDigestPiece, output.size() - i * kDigestPiece));
      std::vector<std::byte> made(piece.begin(), piece.end());
      make_equal(made, i * kDigestPiece, rules);
      golden::Sha256 sum;
      sum.update(made);
      sums[i] = sum.digest();
    }
  });
  golden::Sha256 whole;
  const std::string head(assay::name_of(rules.type));
  whole.update(std::as_bytes(std::span(head)));
  for (const auto& each : sums) whole.update(std::as_bytes(std::span(each)));
  return golden::hex_of(whole.digest());
}

}  // namespace assay::conformance
