#include "conformance/selftest/hunt/kill_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "golden/io/fixture_error.h"

namespace assay::conformance {
namespace {

using nlohmann::json;
constexpr const char* kMatrixFormat = "assay kill matrix 1";

// Adds cases to a matrix, each once.
class CaseNumbers {
 public:
  explicit CaseNumbers(KillMatrix& of) : of_(of) {}
  std::int32_t of(const KillingCase& each) {
    const auto [found, is_new] = numbers_.emplace(each.line, static_cast<std::int32_t>(of_.cases.size()));
    if (is_new) of_.cases.push_back(each);
    return found->second;
  }

 private:
  KillMatrix& of_;
  std::map<std::string, std::int32_t> numbers_;
};

void read_members(const json& file, KillMatrix& made) {
  if (file.at("format") != kMatrixFormat) throw std::runtime_error("its format is not '" + std::string(kMatrixFormat) + "'");
  made.version = file.at("assay");
  made.commit = file.at("commit");
  made.date = file.at("date");
  made.profile = file.at("profile");
  made.words = file.at("words").get<std::vector<std::string>>();
  made.selected = file.at("selected");
  made.shard = file.at("shard");
  made.seed = file.at("seed");
  made.kills = file.at("kills");
  made.tries = file.at("tries");
  made.mutants = file.at("library").at("mutants");
  made.mutants_digest = file.at("library").at("sha256");
  made.judged_cases = file.at("judged").at("cases");
  made.cases_digest = file.at("judged").at("sha256");
  for (const json& each : file.at("cases")) made.cases.push_back({each.at(0), each.at(1)});
  const auto count = static_cast<std::int32_t>(made.cases.size());
  for (const json& each : file.at("rows")) {
    KillRow row{each.at(0), each.at(1), each.at(2), each.at(3), each.at(4), each.at(5).get<std::vector<std::int32_t>>()};
    for (const std::int32_t killer : row.killers) {
      if (killer < 0 || killer >= count)
        throw std::runtime_error(fmt::format("row {}: case {}: expected 0 to {}", row.id, killer, count - 1));
    }
    made.rows.push_back(std::move(row));
  }
}

}  // namespace

std::string text_of(const KillMatrix& matrix) {
  const auto text = [](const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); };
  std::string out = "{\n";
  const auto member = [&](const char* name, const json& value) { out += fmt::format(" \"{}\": {},\n", name, text(value)); };
  member("format", kMatrixFormat);
  member("assay", matrix.version);
  member("commit", matrix.commit);
  member("date", matrix.date);
  member("profile", matrix.profile);
  member("words", matrix.words);
  member("selected", matrix.selected);
  member("shard", matrix.shard);
  member("seed", matrix.seed);
  member("kills", matrix.kills);
  member("tries", matrix.tries);
  member("library", {{"mutants", matrix.mutants}, {"sha256", matrix.mutants_digest}});
  member("judged", {{"cases", matrix.judged_cases}, {"sha256", matrix.cases_digest}});
  member("columns", {"id", "family", "differs in", "tried", "how", "killed by"});
  const auto list = [&](const char* name, const auto& items, const auto& as_json, const char* end) {
    out += fmt::format(" \"{}\": [", name);
    for (std::size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "\n  " : ",\n  ") + text(as_json(items[i]));
    out += items.empty() ? "]" : "\n ]";
    out += end;
  };
  list(
      "cases", matrix.cases,
      [](const KillingCase& each) {
        return json::array({each.line, each.work});
      },
      ",\n");
  list(
      "rows", matrix.rows,
      [](const KillRow& row) {
        return json::array({row.id, row.family, row.differs, row.tried, row.how, row.killers});
      },
      "\n}\n");
  return out;
}

KillMatrix read_kill_matrix(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw golden::FixtureError(path, "kill matrix", "cannot be read");
  KillMatrix made;
  try {
    read_members(json::parse(text.str()), made);
  } catch (const std::exception& error) {
    throw golden::FixtureError(path, "kill matrix", error.what());
  }
  return made;
}

KillMatrix joined(const std::vector<KillMatrix>& matrices, const std::vector<std::string>& paths,
                  const std::vector<std::string>& order) {
  KillMatrix made = matrices.at(0);
  made.cases.clear();
  made.rows.clear();
  CaseNumbers numbers(made);
  std::map<std::string, KillRow> rows;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const KillMatrix& each = matrices[i];
    if (each.version != made.version)
      throw golden::FixtureError(
          paths[i], "kill matrix",
          fmt::format("is of another version than {}: assay {} there, {} here", paths[0], made.version, each.version));
    for (const KillRow& row : each.rows) {
      KillRow& all = rows[row.id];
      const bool is_new = all.id.empty();
      const std::vector<std::int32_t> before = std::move(all.killers);
      if (is_new || (before.empty() && !row.killers.empty())) all = row;
      all.killers = before;
      if (!is_new) {
        all.differs = std::max(all.differs, row.differs);
        all.tried = std::max(all.tried, row.tried);
      }
      for (const std::int32_t killer : row.killers) {
        const std::int32_t number = numbers.of(each.cases[static_cast<std::size_t>(killer)]);
        if (std::find(all.killers.begin(), all.killers.end(), number) == all.killers.end()) all.killers.push_back(number);
      }
    }
    if (i == 0) continue;
    const std::string commits = ", " + made.commit + ",";
    if (commits.find(", " + each.commit + ",") == std::string::npos) made.commit += ", " + each.commit;
    if (each.date > made.date) made.date = each.date;
    if (each.judged_cases > made.judged_cases) {
      made.profile = each.profile;
      made.words = each.words;
      made.judged_cases = each.judged_cases;
      made.cases_digest = each.cases_digest;
    }
    if (each.selected != made.selected) made.selected = "joined";
    made.shard = "joined";
  }
  for (const std::string& id : order) {
    const auto found = rows.find(id);
    if (found != rows.end()) made.rows.push_back(std::move(found->second));
  }
  return made;
}

}  // namespace assay::conformance
