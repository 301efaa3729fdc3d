// Plants mutants of the device library's kernels on a GPU, and lets the judge of the suite decide the cases that reach them.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/support/forked.h"
#include "device/tests/mutants/on_device/workers.h"

namespace assay::mutants {
namespace {

using conformance::ForkedArray;

using nlohmann::json;

struct Options {
  Planting planting;
  std::string profile = "standard", only, cases, out, earlier;
  int sample = 0;
  bool lists = false;
  std::int64_t elements = 1 << 18, products = 1 << 24;  // of the largest call: what no clock says, which other processes hold up
};

std::string folder_of(const std::string& key) {
  const std::string file = key.substr(0, key.find(':'));
  return file.substr(0, file.rfind('/'));
}

std::vector<conformance::CaseLine> lines_of(const Options& options) {
  std::vector<conformance::CaseLine> lines;
  for (const conformance::CaseLine& line : conformance::catalogue(*conformance::profile_named(options.profile))) {
    if (to_text(line).find(options.cases) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

// An earlier record of the same mutants: its kills are not made again.
struct Earlier {
  json record = json::object();
  std::set<std::string> killed;
};

// Errors: std::runtime_error if the file is no record of a hunt.
Earlier earlier_of(const std::string& path) {
  Earlier made;
  if (path.empty()) return made;
  std::ifstream in(path);
  made.record = json::parse(in, nullptr, false);
  for (const char* const part : {"cases", "killed", "survived"}) {
    if (!made.record.is_object() || !made.record.contains(part)) throw std::runtime_error(path + ": is no record of a hunt");
  }
  for (const json& row : made.record.at("killed")) made.killed.insert(row.at(0));
  return made;
}

// Mutants that calls reach, whose name has the text, and that were not killed before; of these the sample, in an order that the seed
// decides.
std::vector<int> chosen_mutants(const std::vector<std::string>& keys, const std::vector<int>& reaching, const Options& options,
                                const Earlier& earlier) {
  std::vector<int> all;
  for (std::size_t m = 0; m < keys.size(); ++m) {
    if (reaching[m] > 0 && keys[m].find(options.only) != std::string::npos && !earlier.killed.contains(keys[m]))
      all.push_back(static_cast<int>(m));
  }
  const auto rank = [&](int m) { return mixed(options.planting.seed, static_cast<std::uint64_t>(m), 0); };
  std::sort(all.begin(), all.end(), [&](int a, int b) { return rank(a) < rank(b); });
  if (options.sample > 0 && static_cast<int>(all.size()) > options.sample) all.resize(static_cast<std::size_t>(options.sample));
  return all;
}

struct Found {
  std::vector<std::string> keys;  // of the mutants, by number
  std::string device;
  std::map<std::string, int> verdicts{
      {"passed", 0}, {"not run", 0}, {"failed", 0}, {"ended", 0}, {"not made", 0}};  // of the calls
  std::vector<std::string> failed;  // calls that were made without a mutant, and did not pass
  std::vector<Call> calls;
  std::vector<int> reaching;  // by mutant
  std::vector<int> mutants;
  std::vector<Planted> planted;
  Earlier earlier;
};

// What the earlier record has of mutants that were not planted this time: its kills, and survivors for which no time was left.
void add_earlier(const Found& found, json& cases, json& killed, json& survived,
                 std::map<std::string, std::map<std::string, int>>& folders) {
  if (found.earlier.record.empty()) return;
  cases = found.earlier.record.at("cases");
  std::set<std::string> planted;
  for (std::size_t i = 0; i < found.mutants.size(); ++i) {
    if (found.planted[i].how != 0) planted.insert(found.keys[static_cast<std::size_t>(found.mutants[i])]);
  }
  const std::set<std::string> present(found.keys.begin(), found.keys.end());
  for (auto [part, list] : {std::pair("killed", &killed), std::pair("survived", &survived)}) {
    for (const json& row : found.earlier.record.at(part)) {
      if (planted.contains(row.at(0)) || !present.contains(row.at(0))) continue;
      list->push_back(row);
      auto& of = folders[folder_of(row.at(0))];
      ++of["planted"];
      ++of[part];
    }
  }
}

json record_of(const Found& found, const Options& options) {
  std::map<std::string, std::map<std::string, int>> folders;
  json killed = json::array(), survived = json::array(), not_reached = json::array(), cases = json::array();
  add_earlier(found, cases, killed, survived, folders);
  std::map<int, std::size_t> number_of;
  for (std::size_t m = 0; m < found.keys.size(); ++m) {
    auto& of = folders[folder_of(found.keys[m])];
    ++of["mutants"];
    const bool reached = found.reaching[m] > 0;
    of["reached"] += reached;
    if (!reached) not_reached.push_back(found.keys[m]);
  }
  for (std::size_t i = 0; i < found.mutants.size(); ++i) {
    const Planted& each = found.planted[i];
    if (each.how == 0) continue;
    const std::string& key = found.keys[static_cast<std::size_t>(found.mutants[i])];
    auto& of = folders[folder_of(key)];
    ++of["planted"];
    ++of[each.how == '.' ? "survived" : "killed"];
    if (each.how == '.') {
      survived.push_back({key, each.tried, each.reaching});
      continue;
    }
    const auto [place, fresh] = number_of.try_emplace(each.killer, cases.size());
    if (fresh) cases.push_back(each.killer < 0 ? "?" : found.calls[static_cast<std::size_t>(each.killer)].name());
    killed.push_back({key, place->second, std::string(1, each.how), each.tried});
  }
  for (json* list : {&killed, &survived}) std::sort(list->begin(), list->end());
  return {{"device", found.device},
          {"profile", options.profile},
          {"calls", found.calls.size()},
          {"seed", options.planting.seed},
          {"most_calls", options.planting.most_calls},
          {"mutants", found.keys.size()},
          {"folders", folders},
          {"verdicts", found.verdicts},
          {"failed", found.failed},
          {"cases", cases},
          {"killed", killed},
          {"survived", survived},
          {"not_reached", not_reached}};
}

// One row a line.
void write(const std::string& path, const json& record) {
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

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

const char* word_of(char verdict) {
  switch (verdict) {
    case 0: return "not made";
    case 'p': return "passed";
    case 'n': return "not run";
    case 'f': return "failed";
    default: return "ended";
  }
}

// What the calls without a mutant were found to be.
void count_verdicts(const std::vector<Call>& calls, const Noted* noted, Found& found) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const char verdict = noted[i].verdict;
    ++found.verdicts[word_of(verdict)];
    if (verdict == 'f' || verdict == 'e') found.failed.push_back(calls[i].name());
  }
}

std::string text_of(const std::map<std::string, int>& verdicts) {
  std::string text;
  for (const char* const word : {"passed", "not run", "failed", "ended", "not made"})
    text += (text.empty() ? "" : ", ") + std::to_string(verdicts.at(word)) + " " + word;
  return text;
}

// The reference in each process takes its part of the processors: with all of them, each would wait for the others.
void share_processors(int jobs) {
  const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  setenv("ASSAY_THREADS", std::to_string(std::max(1, all / jobs)).c_str(), 0);
}

Found hunt(const Options& options) {
  const auto begun = std::chrono::steady_clock::now();
  const auto say = [&](const std::string& what) {
    std::cerr << static_cast<int>(seconds_since(begun)) << " s: " << what << "\n";
  };
  Found found;
  found.earlier = earlier_of(options.earlier);
  stop_at_signals();
  share_processors(options.planting.jobs);
  const Described described = describe(options.planting);
  found.device = described.device;
  found.keys = described.mutants;
  say(found.device);
  found.reaching.assign(kMostMutants, 0);
  std::vector<Call> calls = calls_of(lines_of(options), options.elements, options.products, options.planting.seed);
  if (calls.empty()) throw std::runtime_error("no case is chosen");
  const ForkedArray<Noted> noted(calls.size());
  std::string stopped;
  try {
    note_calls(calls, options.planting, noted.begin());
  } catch (const std::runtime_error& error) {
    stopped = error.what();
  }
  if (is_stopped()) stopped = "a signal";
  count_verdicts(calls, noted.begin(), found);
  say(std::to_string(calls.size()) + " calls without a mutant: " + text_of(found.verdicts));
  if (!stopped.empty()) {
    say("stopped before a mutant was planted: " + stopped);
    return found;
  }
  found.calls = prepared(std::move(calls), noted.begin(), static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  for (const Call& call : found.calls) {
    for (const int mutant : call.reaches) ++found.reaching[static_cast<std::size_t>(mutant)];
  }
  found.mutants = chosen_mutants(found.keys, found.reaching, options, found.earlier);
  say(std::to_string(found.calls.size()) + " calls prepared; " + std::to_string(found.mutants.size()) + " mutants to plant");
  if (found.mutants.empty()) return found;
  found.planted = plant_all(found.calls, found.mutants, options.planting);
  say(is_stopped() ? "stopped" : "planted");
  return found;
}

int run(const Options& options) {
  if (options.lists) {
    for (const Call& call : calls_of(lines_of(options), options.elements, options.products, options.planting.seed))
      std::cout << call.name() << "\n";
    return 0;
  }
  const Found found = hunt(options);
  const json record = record_of(found, options);
  if (!options.out.empty()) write(options.out, record);
  std::cout << found.keys.size() << " mutants, " << found.calls.size() << " calls: " << record.at("killed").size() << " killed "
            << record.at("survived").size() << " survived " << record.at("not_reached").size() << " not reached\n";
  return found.planted.empty() ? 9 : 0;
}

}  // namespace
}  // namespace assay::mutants

int main(int count, char** arguments) {
  assay::mutants::Options options;
  assay::mutants::Planting& planting = options.planting;
  CLI::App app("Plants mutants of the kernels on a device, each under the cases that reach it, until the judge fails one.");
  planting.library = "build/bin/assay_device_mutants.so";
  app.add_option("--library", planting.library, "The mutated device library")->capture_default_str();
  app.add_option("--jobs", planting.jobs, "Processes side by side, each with a context on the device")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--devices", planting.devices, "Devices that the processes share")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--profile", options.profile, "Cases: smoke, standard or full")
      ->check(CLI::IsMember({"smoke", "standard", "full"}))
      ->capture_default_str();
  app.add_option("--cases", options.cases, "Cases whose line contains this text");
  app.add_option("--only", options.only, "Mutants whose name contains this text");
  app.add_option("--sample", options.sample, "Number of mutants, taken by --seed from those that are reached; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--earlier", options.earlier,
                 "A record: its kills are not made again, and are part of the new record, as are its survivors that are not "
                 "planted again")
      ->check(CLI::ExistingFile);
  app.add_option("--seed", planting.seed, "Of the sample, and of the order of the calls")->capture_default_str();
  app.add_option("--calls", planting.most_calls, "Most calls that a mutant is tried under")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--budget", planting.seconds, "Seconds after which no more mutants are planted")->check(CLI::PositiveNumber);
  app.add_option("--limit", planting.limit_seconds, "Seconds after which a process that does not answer is ended")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--note-budget", planting.note_seconds, "Seconds after which no more calls are made without a mutant")
      ->check(CLI::PositiveNumber);
  app.add_option("--elements", options.elements, "Elements of the largest call that is used")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--products", options.products, "Products of two elements of the largest call that is used")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--list", options.lists, "Print the calls in the order in which they are made, and make none");
  app.add_option("--out", options.out, "The record, as JSON");
  CLI11_PARSE(app, count, arguments);
  try {
    return assay::mutants::run(options);
  } catch (const std::exception& error) {
    std::cerr << "hunt_on_device: " << error.what() << "\n";
    return 9;
  }
}
