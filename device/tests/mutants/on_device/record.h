#pragma once
// What a hunt on a device has found, as a file.

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "device/tests/mutants/on_device/workers.h"

namespace assay::mutants {

// An earlier record of the same mutants: its kills are not made again.
struct Earlier {
  nlohmann::json record = nlohmann::json::object();
  std::set<std::string> killed;
};

// Nothing where there is no path. Errors: std::runtime_error if the file is no record of a hunt.
Earlier earlier_of(const std::string& path);

// Adds the mutants that a file decides: the record of a room of mutants.cc those that it killed or that are proved, a file of proofs
// ({mutant: proof}) all of its own. Errors: std::runtime_error if the file is neither.
void add_decided(const std::string& path, std::set<std::string>& decided);

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

// Beside what was found: `profile` and `planting` as the hunt was asked for. The record has what the earlier one has of mutants that were not planted this time.
nlohmann::json record_of(const Found& found, const std::string& profile, const Planting& planting);

// One row a line. Errors: std::runtime_error.
void write_record(const std::string& path, const nlohmann::json& record);

}  // namespace assay::mutants
