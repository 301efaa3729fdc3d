#include "golden/io/sha256.h"

#include <gtest/gtest.h>

#include <string>

#include "golden/io/fixture_error.h"
#include "golden/tests/temporary_folder.h"

namespace assay::golden {
namespace {

struct Vector {
  const char* name;
  std::string message;
  const char* digest;
};
void PrintTo(const Vector& each, std::ostream* to) { *to << each.name; }

// FIPS 180-4 examples, and lengths around the limits of the padding (zeros; digests from Python's hashlib).
const Vector kVectors[] = {
    {"empty", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"two_blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"896_bits",
     "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    {"million_a", std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    {"zeros_55", std::string(55, '\0'), "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
    {"zeros_56", std::string(56, '\0'), "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"},
    {"zeros_63", std::string(63, '\0'), "c7723fa1e0127975e49e62e753db53924c1bd84b8ac1ac08df78d09270f3d971"},
    {"zeros_64", std::string(64, '\0'), "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
    {"zeros_119", std::string(119, '\0'), "f616b0d54e78571a9611f343c9f8e022e859e920381ab0e4d3da01e193a7bd7e"},
    {"zeros_120", std::string(120, '\0'), "6edd9f6f9cc92cded36e6c4a580933f9c9f1b90562b46903b806f21902a1a54f"},
};

class Sha256Test : public ::testing::TestWithParam<Vector> {};

TEST_P(Sha256Test, GivesThePublishedDigest) {
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span(GetParam().message))), GetParam().digest);
}

TEST_P(Sha256Test, TakesTheMessageInPiecesOfAnySize) {
  const auto bytes = std::as_bytes(std::span(GetParam().message));
  for (const std::size_t piece : {1, 3, 63, 64, 65, 1000}) {
    Sha256 hash;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      hash.update(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    }
    EXPECT_EQ(hex_of(hash.digest()), GetParam().digest) << "pieces of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(Published, Sha256Test, ::testing::ValuesIn(kVectors),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Sha256OfFile, IsThatOfItsBytes) {
  const TemporaryFolder folder;
  put_file(folder / "million", std::as_bytes(std::span(kVectors[4].message)));
  EXPECT_EQ(sha256_hex_of_file(folder / "million"), kVectors[4].digest);
}

TEST(Sha256OfFile, NeedsTheFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(sha256_hex_of_file(folder / "none"), FixtureError);
  EXPECT_THROW(sha256_hex_of_file(folder.path()), FixtureError);
}

}  // namespace
}  // namespace assay::golden
