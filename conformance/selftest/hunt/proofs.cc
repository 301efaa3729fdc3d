#include "conformance/selftest/hunt/proofs.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

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

}  // namespace

Proofs Proofs::read(const std::string& path, const std::vector<Mutant>& mutants) {
  Proofs made;
  try {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot be read");
    const nlohmann::json all = nlohmann::json::parse(file);
    for (const auto& [id, value] : all.items()) {
      if (id == "sets") continue;
      const bool known = std::any_of(mutants.begin(), mutants.end(), [&](const Mutant& each) { return each.id == id; });
      known ? static_cast<void>(made.proofs_[id] = proof_text(id, value)) : made.unknown_.push_back(id);
    }
    for (const nlohmann::json& set : all.value("sets", nlohmann::json::array())) {
      const std::string pattern = set.at("mutants"), text = proof_text(pattern, set.at("proof"));
      std::int64_t count = 0;
      for (const Mutant& each : mutants) {
        if (!matches_pattern(pattern, fmt::format("{} {} {}", each.id, each.family, each.says))) continue;
        made.proofs_.emplace(each.id, text);
        ++count;
      }
      if (count != set.at("count").get<std::int64_t>())
        throw std::runtime_error(fmt::format("'{}' matches {} mutants: expected {}, as \"count\" says", pattern, count,
                                             set.at("count").get<std::int64_t>()));
    }
  } catch (const std::exception& error) {
    throw golden::FixtureError(path, "proofs", error.what());
  }
  return made;
}

const std::string* Proofs::of(const std::string& id) const {
  const auto found = proofs_.find(id);
  return found == proofs_.end() ? nullptr : &found->second;
}

}  // namespace assay::conformance
