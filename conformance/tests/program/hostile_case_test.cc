// Valid files with senseless cases: every case of each file ends in a verdict or in a line that names it, and the program with
// exit 0, 1 or 3, whatever the attributes, types, shapes and values are. ASSAY_FUZZ_FILES says how many cases (1,000 without it;
// 20,000 is the long form). Damaged bytes: golden/tests/fuzz_test.cc.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/tests/program/run_program.h"
#include "golden/io/contained_reader.h"
#include "golden/io/writer.h"
#include "golden/tests/random.h"
#include "golden/tests/temporary_folder.h"
#include "reference/types/tensor.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

using golden::Fixture;
using golden::Random;

constexpr std::int64_t kIntegers[] = {0, -1, 1, 2, 3, 127, 128, 1 << 16, INT32_MAX, std::int64_t{1} << 31, std::int64_t{1} << 40,
                                      std::int64_t{1} << 62, INT64_MAX, INT64_MIN, -128, 255};
constexpr double kReals[] = {0, -0.0, 1, -1, 1e300, -1e300, 1e-300, std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 0.5};
const char* const kTexts[] = {"", "e4m3", "e5m2", "bf16", "f32", "nvfp4", "mxfp8", "block_1x128", "block_128x128", "tensor_delayed", "TN", "NN",
                              "NT", "sm90", "sm100", "compact", "gemm", "rowwise", "columnwise", "\x1b[2J", "a\nb", "4:i64,4:i32", "-1:i64",
                              "9223372036854775807:i64", "1:i64:inclusive"};
constexpr Format kFormats[] = {Format::f32, Format::i32, Format::i64, Format::bf16, Format::f16, Format::e4m3, Format::e5m2, Format::e8m0, Format::e2m1};

Attribute attribute(Random& random) {
  switch (random.below(3)) {
    case 0: return random.one_of(kIntegers);
    case 1: return random.one_of(kReals);
    default: return std::string(random.one_of(kTexts));
  }
}

Tensor tensor(Random& random) {
  std::vector<std::int64_t> shape;
  constexpr std::int64_t kExtents[] = {0, 1, 2, 3, 16, 31, 128, 130};
  for (std::size_t left = random.below(4); left > 0; --left) shape.push_back(random.one_of(kExtents));
  if (element_count(shape) > 40'000) shape = {128};
  Tensor made = make_tensor(random.one_of(kFormats), shape);
  for (std::byte& each : made.bytes) each = static_cast<std::byte>(random.next());
  if (random.below(8) == 0) made.shape = {std::int64_t{1} << 40, 0}, made.bytes.clear();  // no elements, with a huge extent
  return made;
}

// Integers such as splits become harmful numbers; other values become any bits.
void spoil_values(Tensor& tensor, Random& random) {
  for (std::int64_t left = 1 + static_cast<std::int64_t>(random.below(3)); left > 0 && !tensor.bytes.empty(); --left) {
    if (tensor.type == Format::i64) {
      tensor.as<std::int64_t>()[random.below(tensor.bytes.size() / 8)] = random.one_of(kIntegers);
    } else if (tensor.type == Format::i32) {
      tensor.as<std::int32_t>()[random.below(tensor.bytes.size() / 4)] = static_cast<std::int32_t>(random.one_of(kIntegers));
    } else {
      tensor.bytes[random.below(tensor.bytes.size())] = static_cast<std::byte>(random.next());
    }
  }
}

void spoil(Case& each, const std::vector<Case>& others, Random& random) {
  auto& side = random.below(3) == 0 && !each.out.empty() ? each.out : each.in;
  switch (random.below(8)) {
    case 0:
      if (!each.attributes.empty()) random.one_of(each.attributes).second = attribute(random);
      break;
    case 1:
      if (!each.attributes.empty()) each.attributes.erase(random.one_of(each.attributes).first);
      break;
    case 2: {  // an attribute of another case
      const Case& other = random.one_of(others);
      if (!other.attributes.empty()) each.attributes.insert_or_assign(random.one_of(other.attributes).first, random.one_of(other.attributes).second);
      break;
    }
    case 3: each.op = random.one_of(others).op; break;
    case 4:
      if (!side.empty()) random.one_of(side).second = tensor(random);
      break;
    case 5:
      if (!side.empty()) side.erase(random.one_of(side).first);
      break;
    case 6: {
      const Case& other = random.one_of(others);
      if (!other.in.empty()) side.insert_or_assign(random.one_of(other.in).first, random.one_of(other.in).second);
      break;
    }
    default:
      if (!side.empty()) spoil_values(random.one_of(side).second, random);
  }
}

// Small cases of the fixtures, of every op.
std::vector<Case> sound_cases() {
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_GOLDEN_FOLDER)) {
    if (entry.path().extension() != ".h5") continue;
    for (Case& each : golden::read_fixture_contained(entry.path()).cases) {
      std::size_t bytes = 0;
      for (const auto* side : {&each.in, &each.out}) {
        for (const auto& [name, stored] : *side) bytes += stored.bytes.size();
      }
      if (bytes <= 65'536) cases.push_back(std::move(each));
    }
  }
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

TEST(HostileCases, EndInVerdictsThatNameThem) {
  const char* asked = std::getenv("ASSAY_FUZZ_FILES");
  const int count = asked == nullptr || *asked == '\0' ? 1000 : std::max(1, std::atoi(asked));
  constexpr int kOfAFile = 250;
  const std::vector<Case> sound = sound_cases();
  ASSERT_GT(sound.size(), 60u);
  const golden::TemporaryFolder folder;
  const std::string file = (folder / "hostile.h5").string(), json = (folder / "verdicts.json").string();
  std::int64_t passed = 0, failed = 0, inconsistent = 0;
  for (int first = 0; first < count; first += kOfAFile) {
    Fixture fixture;
    fixture.schema = 2;
    fixture.provenance = "{}";
    for (int i = first; i < std::min(first + kOfAFile, count); ++i) {
      Random random(1'000'003ull * static_cast<std::uint64_t>(i) + 29);
      Case made = random.one_of(sound);
      made.name = "case_" + std::to_string(i);
      for (std::size_t left = 1 + random.below(2); left > 0; --left) spoil(made, sound, random);
      fixture.cases.push_back(std::move(made));
    }
    golden::write_fixture(file, fixture);
    const auto begin = std::chrono::steady_clock::now();
    const Ran ran = assay({"verify", file, "--backend", "reference", "--quiet", "--show", "0", "--json", json});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ASSERT_EQ(ran.signal, 0) << "cases from " << first << "\n" << ran.out << ran.err;
    ASSERT_TRUE(ran.code == 0 || ran.code == 1 || ran.code == 3) << "cases from " << first << ": exit " << ran.code << "\n" << ran.out << ran.err;
    EXPECT_LT(seconds, 120) << "cases from " << first;
    EXPECT_EQ(ran.out.find('\x1b'), ran.out.npos) << "cases from " << first;
    std::ifstream stream(json);
    const auto report = nlohmann::json::parse(stream, nullptr, false);
    ASSERT_FALSE(report.is_discarded());
    std::multiset<std::string> named;
    for (const auto& each : report["cases"]) {
      named.insert(each["name"].get<std::string>());
      (each["verdict"] == "passed" ? passed : failed) += 1;
    }
    for (const auto& each : report["bad_fixtures"]) {
      const std::string why = each["why"].get<std::string>(), start = ": /case_";
      const std::size_t at = why.find(start) + start.size();
      named.insert("case_" + why.substr(at, why.find(':', at) - at));
      ++inconsistent;
    }
    for (const Case& each : fixture.cases) EXPECT_EQ(named.count(each.name), 1u) << each.name;
  }
  std::cout << passed << " passed, " << failed << " failed or were not run, " << inconsistent << " are inconsistent\n";
  EXPECT_GT(inconsistent, count / 10);
}

}  // namespace
}  // namespace assay::conformance
