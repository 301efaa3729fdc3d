// The README states the numbers of cases that the program counts.

#include <regex>

#include "conformance/catalogue/catalogue.h"
#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

std::int64_t number(std::string text) {
  std::erase(text, ',');
  return std::stoll(text);
}

// The groups of the only match of `pattern`.
std::smatch match(const std::string& text, const char* pattern) {
  std::smatch found;
  const std::regex expression(pattern);
  EXPECT_TRUE(std::regex_search(text, found, expression)) << pattern << " is not in\n" << text;
  return found;
}

TEST(Counts, AreThoseOfTheCatalogueAndTheFixtures) {
  const Ran ran = assay({"list", "--counts"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* profile : {"smoke", "standard", "full"}) {
    const auto cases = catalogue(*profile_named(profile)).size();
    EXPECT_TRUE(contains(ran.out, "profile " + std::string(profile) + ": " + std::to_string(cases) + " cases\n")) << ran.out;
  }
  std::ifstream file(std::string(ASSAY_GOLDEN_FOLDER) + "/manifest.json");
  std::map<std::string, std::pair<int, int>> files_and_cases;
  const json manifest = json::parse(file);
  for (const json& each : manifest.at("fixtures")) {
    const bool recorded = each.at("provenance").contains("device");
    auto& [files, cases] = files_and_cases[recorded ? "recorded on " + each.at("provenance").at("device").get<std::string>()
                                                    : "origin " + each.at("origin").get<std::string>()];
    ++files;
    for (const auto& [op, count] : each.at("cases").items()) cases += count.get<int>();
  }
  for (const auto& [origin, of] : files_and_cases) {
    EXPECT_TRUE(contains(
        ran.out, "fixtures, " + origin + ": " + std::to_string(of.first) + " files, " + std::to_string(of.second) + " cases, "))
        << ran.out;
  }
}

TEST(Counts, OfTheReadmeAreThese) {
  const std::string readme = text_of(ASSAY_README), counts = assay({"list", "--counts"}).out;
  // Cases are added often: the README gives whole hundreds.
  const std::int64_t cases = number(match(counts, "profile standard: ([0-9]+) cases")[1]);
  EXPECT_EQ(number(match(readme, "the standard profile: at least ([0-9,]+) cases")[1]), cases / 100 * 100) << cases;
  const std::smatch stated = match(readme, "in all ([0-9,]+) recorded\\s+cases, ([0-9]+\\.[0-9]) million elements");
  const std::smatch counted =
      match(counts, "fixtures, recorded on NVIDIA H200 [^:]*: [0-9]+ files, ([0-9]+) cases, ([0-9]+) elements");
  EXPECT_EQ(number(stated[1]), number(counted[1]));
  const std::int64_t tenths = (number(counted[2]) + 50'000) / 100'000;  // of a million elements
  EXPECT_EQ(stated[2], std::to_string(tenths / 10) + "." + std::to_string(tenths % 10));
}

}  // namespace
}  // namespace assay::conformance
