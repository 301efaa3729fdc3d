// Plants every mutant of the kernels of one room, one after another, and finds the cases that show it.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/support/counter_random.h"
#include "device/tests/mutants/hunt.h"
#include "device/tests/mutants/mutation.h"
#include "device/tests/mutants/point_table.h"
#include "device/tests/mutants/rooms/room.h"

namespace assay::mutants {

namespace {

using nlohmann::json;

struct Options {
  double most_seconds = 0.1;
  int kills = 3;
  int jobs = 2;
  int sample = 0, calls = 1 << 20;
  double least_seconds = 0;
  bool again = false;
  std::string out, record, equivalent, cases, lines;
  std::vector<std::string> only;
};

json read(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": cannot be read");
  return json::parse(in);
}

// What an earlier hunt found, by what a mutant is called.
struct Record {
  std::map<std::string, json> killed;  // {"case", "by", "kills"}
  std::set<std::string> open;          // survived, and no proof is there yet
  std::set<std::string> cases;
};

Record read_record(const std::string& path) {
  Record record;
  if (path.empty()) return record;
  const json all = read(path);
  const json& cases = all.at("cases");
  for (const json& each : all.at("killed")) {
    const std::string name = cases.at(each.at(1).get<std::size_t>()).get<std::string>();
    record.killed[each.at(0)] = {{"case", name}, {"by", each.at(2)}, {"kills", each.at(3)}};
    record.cases.insert(name);
  }
  for (const json& each : all.at("open")) record.open.insert(each.get<std::string>());
  return record;
}

// The lines that the calls are made of, each once: those of the record, whether the catalogue still has them or not, and in a hunt
// those of the catalogue, of the room, and of --lines. The call of a content fault is named after its line: "LINE with FAULT".
std::vector<conformance::CaseLine> lines_of_calls(const Options& options, const Record& record, bool hunts) {
  std::vector<conformance::CaseLine> lines;
  if (!options.lines.empty()) {
    std::ifstream in(options.lines);
    if (!in) throw std::runtime_error(options.lines + ": cannot be read");
    for (std::string text; std::getline(in, text);) lines.push_back(conformance::parse_case_line(text));
  } else if (hunts) {
    lines = conformance::catalogue(conformance::Profile::standard);
    for (const char* const* text = kLines; *text != nullptr; ++text) lines.push_back(conformance::parse_case_line(*text));
  }
  for (const std::string& call : record.cases) lines.push_back(conformance::parse_case_line(call.substr(0, call.find(" with "))));
  std::set<std::string> known;
  const auto is_known = [&](const conformance::CaseLine& line) { return !known.insert(to_text(line)).second; };
  lines.erase(std::remove_if(lines.begin(), lines.end(), is_known), lines.end());
  return lines;
}

// The calls of the room, the shortest first, with the mutants that each reaches: those of the record, and in a hunt those that take
// at most `most_seconds`.
std::vector<Trial> make_trials(const Options& options, const Record& record) {
  const bool hunts = options.record.empty() || options.again || !options.lines.empty();
  std::vector<Trial> trials;
  std::set<std::string> missing = record.cases;
  for (const conformance::CaseLine& line : lines_of_calls(options, record, hunts)) {
    if (!takes(line) || to_text(line).find(options.cases) == std::string::npos) continue;
    for (Trial& trial : trials_of(line, 1 << 21)) {
      const bool recorded = record.cases.count(trial.name) != 0;
      missing.erase(trial.name);
      if (!hunts && !recorded) continue;
      std::fill_n(reached, kCount, 0);
      const std::clock_t begun = std::clock();  // of this process: other work on the machine does not choose the calls
      const Outcome outcome = attempt(trial);
      trial.seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
      if (outcome == Outcome::error && !recorded) continue;  // not of these kernels: refused before a launch
      if (outcome != Outcome::same)
        throw std::runtime_error(trial.name + ": fails without a mutant, by " + static_cast<char>(outcome));
      if (!recorded && (trial.seconds > options.most_seconds || trial.seconds < options.least_seconds)) continue;
      for (int m = 0; m < kCount; ++m) {
        if (reached[m] != 0) trial.reaches.push_back(m);
      }
      trials.push_back(std::move(trial));
    }
  }
  if (!missing.empty() && options.cases.empty())
    throw std::runtime_error("the record has a call that its line no longer makes: " + *missing.begin());
  std::stable_sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
  return trials;
}

std::string key_of(const Mutant& mutant) { return std::string(mutant.file) + ": " + mutant.name + ": " + mutant.change; }

// The kill matrix: cases, then [mutant, number of the case that showed it first, how, how many calls showed it up to --kills].
// A checked program says nothing of mutants that it does not plant.
json matrix_of(const std::vector<Trial>& trials, const std::vector<bool>& planted, const std::vector<Hunted>& found,
               const Options& options, const Record& record, const json& equivalent) {
  std::map<std::string, std::size_t> number_of;
  json cases = json::array(), killed = json::array(), open = json::array(), proved = json::array(), constant = json::array();
  const auto kill = [&](const std::string& key, const std::string& name, const json& by, const json& kills) {
    const auto [place, fresh] = number_of.try_emplace(name, cases.size());
    if (fresh) cases.push_back(name);
    killed.push_back({key, place->second, by, kills});
  };
  for (int m = 0; m < kCount; ++m) {
    if (kChecked && !planted[m]) continue;
    const Hunted& each = found[static_cast<std::size_t>(m)];
    const std::string key = key_of(kMutants[m]);
    const auto earlier = record.killed.find(key);
    if (each.kills > 0) {
      kill(key, trials[static_cast<std::size_t>(each.first)].name, std::string(1, static_cast<char>(each.how)), each.kills);
    } else if (options.again && earlier != record.killed.end()) {
      kill(key, earlier->second.at("case"), earlier->second.at("by"), earlier->second.at("kills"));
    } else if (equivalent.contains(key)) {
      proved.push_back(key);
    } else {
      (each.reaching == 0 ? constant : open).push_back(key);
    }
  }
  const auto mutants = kChecked ? std::count(planted.begin(), planted.end(), true) : kCount;
  return {{"room", kRoom + std::string(kChecked ? "_checked" : "")},
          {"mutants", mutants},
          {"cases", cases},
          {"killed", killed},
          {"equivalent", proved},
          {"open", open},
          {"not_reached", constant}};
}

// One row a line.
void write(const std::string& path, const json& matrix) {
  std::ofstream out(path);
  out << "{\n\"room\": " << matrix.at("room").dump() << ",\n\"mutants\": " << matrix.at("mutants").dump();
  for (const char* part : {"cases", "killed", "equivalent", "open", "not_reached"}) {
    out << ",\n\"" << part << "\": [";
    const char* before = "\n ";
    for (const json& row : matrix.at(part)) {
      out << before << row.dump();
      before = ",\n ";
    }
    out << "]";
  }
  out << "\n}\n";
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

// What is wrong: a mutant that survives and is neither proved to be equivalent nor open in the record, or one that is killed and has
// a proof. In a hunt the open ones too.
int complaints(const json& matrix, const Options& options, const Record& record, const json& equivalent) {
  int count = 0;
  const auto complain = [&](const std::string& what) {
    ++count;
    std::cerr << what << "\n";
  };
  for (const json& each : matrix.at("killed")) {
    if (equivalent.contains(each.at(0).get<std::string>()))
      complain("killed, and stated as equivalent: " + each.at(0).get<std::string>());
  }
  for (const json& each : matrix.at("open")) {
    const auto key = each.get<std::string>();
    if (record.open.count(key) == 0 || options.again) complain("survived: " + key);
  }
  return count;
}

// Whether each mutant is of the sample: those whose names have the least hashes, the same on every machine.
std::vector<bool> sampled(int sample) {
  std::vector<std::pair<std::uint64_t, int>> ranked;
  for (int m = 0; m < kCount; ++m) ranked.emplace_back(conformance::fnv1a(key_of(kMutants[m])), m);
  std::sort(ranked.begin(), ranked.end());
  std::vector<bool> in(kCount, sample == 0);
  for (int i = 0; i < std::min(sample, kCount); ++i)
    in[static_cast<std::size_t>(ranked[static_cast<std::size_t>(i)].second)] = true;
  return in;
}

int hunt(const Options& options) {
  const Record record = read_record(options.record);
  const json equivalent = options.equivalent.empty() ? json::object() : read(options.equivalent);
  std::vector<Trial> trials = make_trials(options, record);
  std::vector<bool> planted = sampled(options.sample);
  std::vector<std::string> killers(kCount);
  for (int m = 0; m < kCount; ++m) {
    const std::string key = key_of(kMutants[m]);
    const auto is_in_key = [&](const std::string& text) { return key.find(text) != std::string::npos; };
    planted[m] = planted[m] && (options.only.empty() || std::any_of(options.only.begin(), options.only.end(), is_in_key));
    const bool is_decided = record.killed.count(key) != 0 || equivalent.contains(key);
    if (options.again) planted[m] = planted[m] && !is_decided;
    if (kChecked && !options.again) planted[m] = planted[m] && record.killed.count(key) != 0;
    if (const auto found = record.killed.find(key); found != record.killed.end()) killers[m] = found->second.at("case");
  }
  const bool plants_record = kChecked && !options.again && options.only.empty() && options.sample == 0;
  if (plants_record && static_cast<std::size_t>(std::count(planted.begin(), planted.end(), true)) != record.killed.size())
    throw std::runtime_error(options.record + ": has a mutant that the sources no longer have");
  const std::vector<Hunted> found = hunt_all(trials, planted, killers, {options.kills, options.jobs, options.calls});
  const json matrix = matrix_of(trials, planted, found, options, record, equivalent);
  const int wrong = complaints(matrix, options, record, equivalent);
  if (!options.out.empty()) write(options.out, matrix);
  const double seconds =
      std::accumulate(trials.begin(), trials.end(), 0.0, [](double sum, const Trial& each) { return sum + each.seconds; });
  std::cout << matrix.at("room").get<std::string>() << ": " << matrix.at("mutants") << " mutants, " << trials.size()
            << " calls of " << std::llround(seconds) << " s:";
  for (const char* part : {"killed", "equivalent", "open", "not_reached"})
    std::cout << " " << matrix.at(part).size() << " " << part;
  std::cout << "\n";
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace assay::mutants

int main(int count, char** arguments) {
  assay::mutants::Options options;
  CLI::App app(
      "Plants each mutant of the kernels and finds the cases that show it. Exit code 1: a mutant survives without a proof.");
  app.add_option("--kills", options.kills, "Calls that show a mutant, after which the next one is planted")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.most_seconds, "Longest call that is used, in seconds without a mutant")
      ->check(CLI::PositiveNumber);
  app.add_option("--longer-than", options.least_seconds, "Shortest call that is used, beside those of the record")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--calls", options.calls, "Calls that a mutant is tried under, at most: some of every length")
      ->check(CLI::PositiveNumber);
  app.add_option("--sample", options.sample, "Number of mutants, always the same ones; 0: all")->check(CLI::NonNegativeNumber);
  app.add_option("--jobs", options.jobs, "Processes side by side")->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "Mutants whose name contains this text, or another one");
  app.add_option("--cases", options.cases, "Calls whose case contains this text");
  app.add_option("--lines", options.lines, "A file of case lines, for calls in place of those of the catalogue and the room");
  app.add_option("--out", options.out, "The kill matrix, as JSON");
  CLI::Option* const record = app.add_option(
      "--record", options.record, "An earlier matrix: only its calls are made, for each mutant that which showed it first");
  app.add_flag("--again", options.again,
               "Hunt the mutants that the record does not have as killed and that have no proof, with every call")
      ->needs(record);
  app.add_option("--equivalent", options.equivalent, "Mutants that no call can show, each with its proof, as JSON");
  CLI11_PARSE(app, count, arguments);
  try {
    return assay::mutants::hunt(options);
  } catch (const std::exception& error) {
    std::cerr << "mutants: " << error.what() << "\n";
    return 9;
  }
}
