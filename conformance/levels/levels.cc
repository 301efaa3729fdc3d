#include "conformance/levels/levels.h"

#include <algorithm>
#include <sstream>

#include "conformance/catalogue/case_word.h"
#include "conformance/levels/embedded_levels.h"
#include "golden/io/fixture_error.h"
#include "golden/io/text_file.h"

namespace assay::conformance {
namespace {

std::vector<std::string> words_of_line(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool looks_like_a_file(const std::string& word) {
  std::error_code none;
  return word.find('/') != std::string::npos && word.find_first_of("*? ") == std::string::npos &&
         word.find('=') == std::string::npos && std::filesystem::exists(word, none);
}

}  // namespace

std::string Level::title() const { return version == 0 ? name : name + " " + std::to_string(version); }

Level parse_level(const std::string& text, const std::string& source) {
  Level level;
  level.name = source;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::vector<std::string> words = words_of_line(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    const auto bad = [&](const char* expected) {
      throw golden::FixtureError(source, "line " + std::to_string(number), "'" + line + "': expected " + expected);
    };
    if (words[0] == "level") {
      if (words.size() != 3 || words[2].find_first_not_of("0123456789") != std::string::npos || words[2].size() > 6)
        bad("level NAME VERSION");
      level.name = words[1];
      level.version = std::stoi(words[2]);
    } else if (words[0] == "claims") {
      if (words.size() < 2) bad("claims TEXT");
      level.claims = line.substr(line.find("claims") + 7);
    } else if (words[0] == "fixture") {
      if (words.size() != 2) bad("fixture NAME or fixture *");
      level.fixtures.push_back(words[1]);
    } else {
      level.selections.push_back(words);
    }
  }
  if (level.selections.empty() && level.fixtures.empty())
    throw golden::FixtureError(source, "", "requires nothing: expected lines of words");
  return level;
}

const std::vector<Level>& levels() {
  static const std::vector<Level> all = [] {
    std::vector<Level> made;
    for (const EmbeddedText& each : kEmbeddedLevels) made.push_back(parse_level(std::string(each.text), std::string(each.file)));
    std::sort(made.begin(), made.end(), [](const Level& a, const Level& b) {
      return std::pair(a.name == "all", a.name) < std::pair(b.name == "all", b.name);
    });
    return made;
  }();
  return all;
}

const Level* find_level(const std::string& name) {
  for (const Level& each : levels()) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

Level requirement_of(const std::string& word) {
  if (const Level* level = find_level(word)) return *level;
  if (looks_like_a_file(word) || word.ends_with(".txt")) {
    return parse_level(golden::read_text_file(word), word);
  }
  Level level;
  level.name = word;
  const std::vector<std::string> words = words_of_line(word);
  if (words.empty()) throw golden::FixtureError("--require", "", "is empty: expected a level, words or a file");
  if (words.size() == 1 && words[0].ends_with(".h5")) {
    level.fixtures = words;
  } else {
    level.selections = {words};
  }
  return level;
}

std::vector<std::size_t> required_by(const Level& level, const std::vector<std::string>& texts,
                                     const std::vector<std::string>& names) {
  std::vector<std::vector<CaseWord>> selections;
  for (const std::vector<std::string>& words : level.selections) selections.emplace_back(words.begin(), words.end());
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool required = std::any_of(selections.begin(), selections.end(), [&](const std::vector<CaseWord>& words) {
      return std::all_of(words.begin(), words.end(), [&](const CaseWord& word) { return word.matches(texts[i], names[i]); });
    });
    if (required) places.push_back(i);
  }
  return places;
}

}  // namespace assay::conformance
