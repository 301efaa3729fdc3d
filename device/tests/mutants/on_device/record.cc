#include "device/tests/mutants/on_device/record.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace assay::mutants {
namespace {

using nlohmann::json;

using Counts = std::map<std::string, std::map<std::string, int>>;  // by folder and word

std::string folder_of(const std::string& key) {
  const std::string file = key.substr(0, key.find(':'));
  return file.substr(0, file.rfind('/'));
}

// The lists of a record, as they grow.
class Lists {
 public:
  json cases = json::array(), killed = json::array(), survived = json::array(), not_reached = json::array();
  std::map<std::string, std::size_t> number_of;  // cases
  std::set<std::string> decided;                 // killed or survived
  Counts folders;

  void add_survivor(const std::string& key, int tried, int reaching) {
    survived.push_back({key, tried, reaching});
    count(key, "survived");
  }
  void add_killed(const std::string& key, const std::string& by, const json& how, const json& tried) {
    const auto [place, fresh] = number_of.try_emplace(by, cases.size());
    if (fresh) cases.push_back(by);
    killed.push_back({key, place->second, how, tried});
    count(key, "killed");
  }

 private:
  void count(const std::string& key, const char* word) {
    decided.insert(key);
    ++folders[folder_of(key)]["planted"];
    ++folders[folder_of(key)][word];
  }
};

// What the earlier record has of mutants that were not planted this time: its kills, and survivors for which no time was left.
void add_earlier(const Found& found, Lists& lists) {
  if (found.earlier.record.empty()) return;
  std::set<std::string> planted;
  for (std::size_t i = 0; i < found.mutants.size(); ++i) {
    if (found.planted[i].how != 0) planted.insert(found.keys[static_cast<std::size_t>(found.mutants[i])]);
  }
  const std::set<std::string> present(found.keys.begin(), found.keys.end());
  const auto is_kept = [&](const json& row) { return !planted.contains(row.at(0)) && present.contains(row.at(0)); };
  const json& record = found.earlier.record;
  for (const json& row : record.at("killed")) {
    if (is_kept(row)) lists.add_killed(row.at(0), record.at("cases").at(row.at(1).get<std::size_t>()), row.at(2), row.at(3));
  }
  for (const json& row : record.at("survived")) {
    if (is_kept(row)) lists.add_survivor(row.at(0), row.at(1), row.at(2));
  }
}

// Calls that the earlier record tried a survivor under, in the hunt that tried it most; 0: it has none of this name.
int tried_before(const Found& found, const std::string& key) {
  if (found.earlier.record.empty()) return 0;
  for (const json& row : found.earlier.record.at("survived")) {
    if (row.at(0) == key) return row.at(1);
  }
  return 0;
}

void add_planted(const Found& found, Lists& lists) {
  for (std::size_t i = 0; i < found.mutants.size(); ++i) {
    const Planted& each = found.planted[i];
    if (each.how == 0) continue;
    const std::string& key = found.keys[static_cast<std::size_t>(found.mutants[i])];
    if (each.how == '.') {
      const int before = tried_before(found, key);
      lists.add_survivor(key, std::max(each.tried, before), std::max(each.reaching, before));
    } else {
      const std::string by = each.killer < 0 ? "?" : found.calls[static_cast<std::size_t>(each.killer)].name();
      lists.add_killed(key, by, std::string(1, each.how), each.tried);
    }
  }
}

json read(const std::string& path) {
  std::ifstream in(path);
  return json::parse(in, nullptr, false);
}

}  // namespace

Earlier earlier_of(const std::string& path) {
  Earlier made;
  if (path.empty()) return made;
  made.record = read(path);
  for (const char* const part : {"cases", "killed", "survived"}) {
    if (!made.record.is_object() || !made.record.contains(part)) throw std::runtime_error(path + ": is no record of a hunt");
  }
  for (const json& row : made.record.at("killed")) made.killed.insert(row.at(0));
  return made;
}

void add_decided(const std::string& path, std::set<std::string>& decided) {
  const json all = read(path);
  if (!all.is_object()) throw std::runtime_error(path + ": is neither the record of a room nor a file of proofs");
  if (!all.contains("room")) {
    for (const auto& [key, proof] : all.items()) {
      if (!proof.is_string()) throw std::runtime_error(path + ": is neither the record of a room nor a file of proofs: " + key);
      decided.insert(key);
    }
    return;
  }
  for (const json& row : all.at("killed")) decided.insert(row.at(0));
  for (const json& key : all.at("equivalent")) decided.insert(key);
}

json record_of(const Found& found, const std::string& profile, const Planting& planting) {
  Lists lists;
  add_earlier(found, lists);
  add_planted(found, lists);
  for (std::size_t m = 0; m < found.keys.size(); ++m) {
    const std::string& key = found.keys[m];
    auto& of = lists.folders[folder_of(key)];
    ++of["mutants"];
    const bool reached = found.reaching[m] > 0 || lists.decided.contains(key);
    of["reached"] += reached;
    if (!reached) lists.not_reached.push_back(key);
  }
  for (json* list : {&lists.killed, &lists.survived}) std::sort(list->begin(), list->end());
  return {{"device", found.device},
          {"profile", profile},
          {"calls", found.calls.size()},
          {"seed", planting.seed},
          {"most_calls", planting.most_calls},
          {"mutants", found.keys.size()},
          {"folders", lists.folders},
          {"verdicts", found.verdicts},
          {"failed", found.failed},
          {"cases", lists.cases},
          {"killed", lists.killed},
          {"survived", lists.survived},
          {"not_reached", lists.not_reached}};
}

void write_record(const std::string& path, const json& record) {
  std::ofstream out(path);
  const char* part = "{\n";
  for (const auto& [name, value] : record.items()) {
    out << part << json(name).dump() << ": ";
    part = ",\n";
    if (!value.is_array()) {
      out << value.dump();
      continue;
    }
    out << "[";
    const char* row = "\n ";
    for (const json& each : value) {
      out << row << each.dump();
      row = ",\n ";
    }
    out << "]";
  }
  out << "\n}\n";
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace assay::mutants
