// Case lines in text files: sections; errors that name file and line; the program contains the files of the repository.

#include "conformance/catalogue/case_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace assay::conformance {
namespace {

std::vector<std::string> texts_of(const std::vector<CaseLine>& lines) {
  std::vector<std::string> texts;
  for (const CaseLine& each : lines) texts.push_back(to_text(each));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(CaseText, ACaseBelongsToTheSectionItStandsIn) {
  const CaseText made = parse_case_text(
      "# first\n[smoke]\nswizzle recipe=mxfp8 R=1 K=32\n\n  # indented\r\n[standard]\r\n\tswizzle recipe=mxfp8 R=2 K=32\t\r\n"
      "swizzle recipe=mxfp8 R=3 K=32\n[full]\nswizzle recipe=mxfp8 R=4 K=32",
      "mine.txt", Marks::required);
  EXPECT_EQ(texts_of(made.of(Profile::smoke)), (Texts{"swizzle recipe=mxfp8 R=1 K=32"}));
  EXPECT_EQ(texts_of(made.of(Profile::standard)), (Texts{"swizzle recipe=mxfp8 R=2 K=32", "swizzle recipe=mxfp8 R=3 K=32"}));
  EXPECT_EQ(texts_of(made.of(Profile::full)), (Texts{"swizzle recipe=mxfp8 R=4 K=32"}));
}

TEST(CaseText, SectionsMayBeLeftOut) {
  const CaseText made = parse_case_text("[full]\nswizzle recipe=mxfp8 R=4 K=32\n", "mine.txt", Marks::required);
  EXPECT_TRUE(made.of(Profile::smoke).empty());
  EXPECT_TRUE(made.of(Profile::standard).empty());
  EXPECT_EQ(made.of(Profile::full).size(), 1u);
}

TEST(CaseText, WithoutMarksEveryProfileHasAllCases) {
  const CaseText made =
      parse_case_text("swizzle recipe=mxfp8 R=1 K=32\nswizzle recipe=mxfp8 R=2 K=32\n", "mine.txt", Marks::optional);
  EXPECT_EQ(made.of(Profile::smoke).size(), 2u);
}

TEST(CaseText, ErrorsNameFileAndLine) {
  const std::string good = "swizzle recipe=mxfp8 R=1 K=32\n";
  const struct {
    std::string text, expected;
    Marks marks = Marks::optional;
    // clang-format off
  } faults[] = {
      {"# one\n[smoke]\nquantise recipe=mxfp8 R=1 K=32\n", "mine.txt: line 3: op is quantise: expected one of"},
      {good + "swizzle recipe=mxfp9 R=1 K=32", "mine.txt: line 2: recipe is mxfp9: expected one of"},
      {good + "\n\nswizzle recipe=mxfp8 R=1 L=32\n", "mine.txt: line 4: key is L: expected a key of swizzle"},
      {good + "swizzle recipe=mxfp8 R=1 K=32 # wide\n", "mine.txt: line 2: word is #: expected key=value"},
      {"[smok]\n" + good, "mine.txt: line 1: '[smok]': expected [smoke], [standard] or [full] (did you mean [smoke]?)"},
      {"[smoke\n" + good, "mine.txt: line 1: '[smoke': expected [smoke], [standard] or [full]"},
      {"[\n" + good, "mine.txt: line 1: '[': expected [smoke], [standard] or [full]"},
      {"[]\n" + good, "mine.txt: line 1: '[]': expected [smoke], [standard] or [full]"},
      {"[smoke] " + good, "mine.txt: line 1: '[smoke] swizzle recipe=mxfp8 R=1 K=32': expected [smoke], [standard] or [full]"},
      {"[standard]\n" + good + "[smoke]\n" + good, "mine.txt: line 3: '[smoke]': expected each mark once: [smoke], then [standard], then [full]"},
      {"[full]\n" + good + "[full]\n", "mine.txt: line 3: '[full]': expected each mark once"},
      {good + "[standard]\n", "mine.txt: line 2: '[standard]': expected above the first case, or no mark at all"},
      {good, "mine.txt: line 1: 'swizzle recipe=mxfp8 R=1 K=32': expected [smoke], [standard] or [full] above the first case", Marks::required},
      {"", "mine.txt: holds no case: expected lines"},
      {"# nothing\n[smoke]\n", "mine.txt: holds no case: expected lines"},
  };
  // clang-format on
  for (const auto& each : faults) {
    try {
      parse_case_text(each.text, "mine.txt", each.marks);
      ADD_FAILURE() << "taken: " << each.text;
    } catch (const CaseTextError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(each.expected)) << error.what();
    }
  }
}

// The test reads the files line by line with code of its own.
TEST(WrittenCases, AreThoseOfTheFiles) {
  std::set<std::string> of_files[3], of_program[3];
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_CASE_FILES)) {
    if (entry.path().extension() != ".txt") continue;
    ++files;
    std::ifstream file(entry.path());
    int section = -1, number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      const std::string place = entry.path().filename().string() + " line " + std::to_string(number);
      EXPECT_LE(number, 400) << place;
      if (line == "[smoke]") section = 0;
      if (line == "[standard]") section = 1;
      if (line == "[full]") section = 2;
      if (line.empty() || line[0] == '#' || line[0] == '[') continue;
      ASSERT_GE(section, 0) << place;
      EXPECT_TRUE(of_files[section].insert(to_text(parse_case_line(line))).second) << place << " occurs twice: " << line;
    }
  }
  EXPECT_EQ(files, written_cases().size());
  for (const CaseText& each : written_cases()) {
    for (int section = 0; section < 3; ++section) {
      for (const std::string& text : texts_of(each.of(static_cast<Profile>(section)))) of_program[section].insert(text);
    }
  }
  for (int section = 0; section < 3; ++section) {
    EXPECT_GE(of_files[section].size(), 100u);
    EXPECT_EQ(of_files[section], of_program[section]);
  }
}

TEST(WrittenCases, StandInTheProfilesOfTheirSections) {
  for (int profile = 0; profile < 3; ++profile) {
    const Texts all = texts_of(catalogue(static_cast<Profile>(profile)));
    const std::set<std::string> there(all.begin(), all.end());
    std::size_t smoke = 0;
    for (const CaseText& each : written_cases()) {
      for (int section = 0; section < 3; ++section) {
        for (const std::string& text : texts_of(each.of(static_cast<Profile>(section)))) {
          if (section <= profile) {
            EXPECT_EQ(there.count(text), 1u) << text;
          }
          smoke += section == 0;
        }
      }
    }
    if (profile == 0) {
      EXPECT_EQ(there.size(), smoke);
    }
  }
}

}  // namespace
}  // namespace assay::conformance
