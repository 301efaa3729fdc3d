#include "conformance/selftest/hunt/proofs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "golden/io/fixture_error.h"

namespace assay::conformance {

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++resume;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(), [](char each) { return each == '*'; });
}

namespace {

std::string proof_text(const std::string& name, const nlohmann::json& value) {
  const auto text = value.get<std::string>();
  if (text.empty()) throw std::runtime_error(name + ": the proof is empty");
  return text;
}

// Of two members of one name a parser would silently keep one.
nlohmann::json parsed(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot be read");
  std::set<std::string> names;
  const auto note = [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key && !names.insert(value.get<std::string>()).second)
      throw std::runtime_error(value.get<std::string>() + " stands twice");
    return true;
  };
  return nlohmann::json::parse(file, note);
}

}  // namespace

Proofs Proofs::read(const std::string& path, const std::vector<Mutant>& mutants) {
  std::vector<std::string> files;
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    for (const auto& each : std::filesystem::directory_iterator(path)) {
      if (each.path().extension() == ".json") files.push_back(each.path().string());
    }
    std::sort(files.begin(), files.end());
    if (files.empty()) throw golden::FixtureError(path, "proofs", "a folder without a file *.json");
  } else {
    files.push_back(path);
  }
  Proofs made;
  for (const std::string& each : files) {
    try {
      made.add(each, mutants);
    } catch (const std::exception& error) {
      throw golden::FixtureError(each, "proofs", error.what());
    }
  }
  return made;
}

void Proofs::add(const std::string& path, const std::vector<Mutant>& mutants) {
  const nlohmann::json all = parsed(path);
  const auto put = [&](const std::string& id, const std::string& text) {
    const auto [found, is_new] = proofs_.emplace(id, Written{text, path});
    if (!is_new && found->second.file != path)
      throw std::runtime_error(fmt::format("{}: {} has a proof of it too: expected one", id, found->second.file));
  };
  for (const auto& [id, value] : all.items()) {
    if (id == "sets") continue;
    const bool known = std::any_of(mutants.begin(), mutants.end(), [&](const Mutant& each) { return each.id == id; });
    known ? put(id, proof_text(id, value)) : unknown_.push_back(id);
  }
  for (const nlohmann::json& set : all.value("sets", nlohmann::json::array())) {
    const nlohmann::json& given = set.at("mutants");
    const auto patterns = given.is_array() ? given.get<std::vector<std::string>>() : std::vector{given.get<std::string>()};
    const std::string text = proof_text(fmt::format("{}", fmt::join(patterns, ", ")), set.at("proof"));
    std::set<std::string> named;
    for (const std::string& pattern : patterns) {
      const std::size_t before = named.size();
      for (const Mutant& each : mutants) {
        if (pattern == each.id || matches_pattern(pattern, fmt::format("{} {} {}", each.id, each.family, each.says)))
          named.insert(each.id);
      }
      if (given.is_array() && named.size() == before)
        throw std::runtime_error(fmt::format("'{}' matches no mutant that those before it do not", pattern));
    }
    if (const auto count = set.at("count").get<std::size_t>(); count != named.size())
      throw std::runtime_error(fmt::format("'{}' matches {} mutants: expected {}, as \"count\" says", fmt::join(patterns, "', '"),
                                           named.size(), count));
    for (const std::string& id : named) put(id, text);
  }
}

const std::string* Proofs::of(const std::string& id) const {
  const auto found = proofs_.find(id);
  return found == proofs_.end() ? nullptr : &found->second.text;
}

}  // namespace assay::conformance
