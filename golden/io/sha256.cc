#include "golden/io/sha256.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "golden/io/fixture_error.h"

namespace assay::golden {
namespace {

// First 32 fraction bits of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return word;
}

}  // namespace

void Sha256::compress(const std::byte* block) {
  std::array<std::uint32_t, 64> w;
  for (int t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (int t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int t = 0; t < 64; ++t) {
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice + kRound[t] + w[t];
    const std::uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += sum[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t waiting = length_ % 64;
    const std::size_t taken = std::min(64 - waiting, bytes.size());
    if (taken == 64) {
      compress(bytes.data());
    } else {
      std::memcpy(block_.data() + waiting, bytes.data(), taken);
      if (waiting + taken == 64) compress(block_.data());
    }
    length_ += taken;
    bytes = bytes.subspan(taken);
  }
}

std::array<std::uint8_t, 32> Sha256::digest() {
  const std::uint64_t bits = 8 * length_;
  std::array<std::byte, 72> tail{std::byte{0x80}};  // a one, zeros up to 56 modulo 64, then the length
  const std::size_t zeros_to = (length_ % 64 < 56 ? 56 : 120) - length_ % 64;
  for (int i = 0; i < 8; ++i) tail[zeros_to + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update({tail.data(), zeros_to + 8});
  std::array<std::uint8_t, 32> bytes;
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return bytes;
}

std::string hex_of(const std::array<std::uint8_t, 32>& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hex_of(hash.digest());
}

std::string sha256_hex_of_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw FixtureError(path.string(), "", std::string("cannot be read: ") + std::strerror(errno));
  Sha256 hash;
  std::vector<char> piece(1 << 20);
  while (stream) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hash.update(std::as_bytes(std::span(piece.data(), static_cast<std::size_t>(stream.gcount()))));
  }
  if (stream.bad()) throw FixtureError(path.string(), "", "cannot be read");
  return hex_of(hash.digest());
}

}  // namespace assay::golden
