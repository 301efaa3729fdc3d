#pragma once
// SHA-256 (FIPS 180-4).

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace assay::golden {

// Takes a message in pieces: update(...), update(...), digest().
class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);

  // The digest of the message so far. The object cannot be used afterwards.
  std::array<std::uint8_t, 32> digest();

 private:
  void compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};  // its first length_ % 64 bytes wait for the rest
  std::uint64_t length_ = 0;           // bytes so far
};

// A digest as 64 lower-case hexadecimal digits.
std::string hex_of(const std::array<std::uint8_t, 32>& digest);

std::string sha256_hex(std::span<const std::byte> bytes);

// Of a file's bytes. Errors: FixtureError if the file cannot be read.
std::string sha256_hex_of_file(const std::filesystem::path& path);

}  // namespace assay::golden
