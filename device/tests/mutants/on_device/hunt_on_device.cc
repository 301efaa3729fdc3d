// Plants mutants of the device library's kernels on a GPU, and lets the judge of the suite decide the cases that reach them.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/support/forked.h"
#include "device/tests/mutants/on_device/notes.h"
#include "device/tests/mutants/on_device/record.h"
#include "device/tests/mutants/on_device/workers.h"

namespace assay::mutants {
namespace {

using conformance::ForkedArray;

struct Options {
  Planting planting;
  std::string profile = "standard", only, cases, lines, out, earlier, notes;
  std::vector<std::string> decided;  // files
  int sample = 0;
  bool lists = false;
  std::int64_t elements = 1 << 18, products = 1 << 24;  // of the largest call: what no clock says, which other processes hold up
};

// Errors: std::runtime_error, CaseError.
std::vector<conformance::CaseLine> lines_of(const Options& options) {
  std::vector<conformance::CaseLine> lines;
  if (!options.lines.empty()) {
    std::ifstream in(options.lines);
    for (std::string text; std::getline(in, text);) lines.push_back(conformance::parse_case_line(text));
    return lines;
  }
  for (const conformance::CaseLine& line : conformance::catalogue(*conformance::profile_named(options.profile))) {
    if (to_text(line).find(options.cases) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

// Mutants that calls reach, whose name has the text, and that nothing has decided yet; of these the sample, in an order that the seed
// decides: first those that no earlier hunt planted.
std::vector<int> chosen_mutants(const Found& found, const Options& options) {
  std::set<std::string> decided = found.earlier.killed, survived;
  for (const std::string& path : options.decided) add_decided(path, decided);
  if (!found.earlier.record.empty()) {
    for (const nlohmann::json& row : found.earlier.record.at("survived")) survived.insert(row.at(0));
  }
  std::vector<int> all;
  for (std::size_t m = 0; m < found.keys.size(); ++m) {
    const std::string& key = found.keys[m];
    if (found.reaching[m] > 0 && key.find(options.only) != std::string::npos && !decided.contains(key))
      all.push_back(static_cast<int>(m));
  }
  const auto rank = [&](int m) {
    return std::pair(survived.contains(found.keys[static_cast<std::size_t>(m)]),
                     mixed(options.planting.seed, static_cast<std::uint64_t>(m), 0));
  };
  std::sort(all.begin(), all.end(), [&](int a, int b) { return rank(a) < rank(b); });
  if (options.sample > 0 && static_cast<int>(all.size()) > options.sample) all.resize(static_cast<std::size_t>(options.sample));
  return all;
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
  Notes notes;
  if (!options.notes.empty()) notes = read_notes(options.notes, found.keys);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (const auto known = notes.find(calls[i].name()); known != notes.end()) noted[i] = known->second;
  }
  std::string stopped;
  try {
    note_calls(calls, options.planting, noted.begin());
  } catch (const std::runtime_error& error) {
    stopped = error.what();
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (noted[i].verdict != 0) notes[calls[i].name()] = noted[i];
  }
  if (!options.notes.empty()) write_notes(options.notes, found.keys, notes);
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
  found.mutants = chosen_mutants(found, options);
  say(std::to_string(found.calls.size()) + " calls prepared; " + std::to_string(found.mutants.size()) + " mutants to plant");
  if (found.mutants.empty()) return found;
  found.planted = plant_all(found.calls, found.mutants, options.planting);
  say(std::string(is_stopped() ? "stopped" : "planted") + " after " +
      std::to_string(std::accumulate(found.planted.begin(), found.planted.end(), 0,
                                     [](int sum, const Planted& each) { return sum + each.tried; })) +
      " calls of mutants");
  return found;
}

int run(const Options& options) {
  if (options.lists) {
    for (const Call& call : calls_of(lines_of(options), options.elements, options.products, options.planting.seed))
      std::cout << call.name() << "\n";
    return 0;
  }
  const Found found = hunt(options);
  const nlohmann::json record = record_of(found, options.profile, options.planting);
  if (!options.out.empty()) write_record(options.out, record);
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
  app.add_option("--lines", options.lines, "Lines of cases to make in place of a profile's, one a row")->check(CLI::ExistingFile);
  app.add_option("--only", options.only, "Mutants whose name contains this text");
  app.add_option("--sample", options.sample, "Number of mutants, taken by --seed from those that are reached; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--earlier", options.earlier,
                 "A record: its kills are not made again, and are part of the new record, as are its survivors that are not "
                 "planted again")
      ->check(CLI::ExistingFile);
  app.add_option("--decided", options.decided,
                 "Records of rooms, and files of proofs: the mutants that they kill or prove are not planted")
      ->check(CLI::ExistingFile);
  app.add_option("--seed", planting.seed, "Of the sample, and of the order of the calls, which depends on how long each took too")
      ->capture_default_str();
  app.add_option("--calls", planting.most_calls, "Most calls that a mutant is tried under")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--budget", planting.seconds, "Seconds after which no more mutants are planted")->check(CLI::PositiveNumber);
  app.add_option("--limit", planting.limit_seconds, "Seconds after which a process that does not answer is ended")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--note-budget", planting.note_seconds, "Seconds after which no more calls are made without a mutant")
      ->check(CLI::PositiveNumber);
  app.add_option(
      "--notes", options.notes,
      "What calls reach: those that the file has are not made without a mutant again. Written when calls have been noted");
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
