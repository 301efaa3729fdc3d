#include "conformance/selftest/hunt/hunt.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "conformance/report/run_header.h"
#include "conformance/report/version.h"
#include "conformance/report/waivers.h"
#include "golden/io/sha256.h"

namespace assay::conformance {

std::string MutantSelection::text() const {
  std::string made;
  const auto add = [&](const std::string& name, const std::string& value) {
    made += (made.empty() ? "" : " ") + name + "=" + value;
  };
  for (const std::string& each : words) add("mutants", each);
  for (const std::string& each : families) add("family", each);
  for (const KillMatrix& each : not_killed_in) add("survivors-of", each.profile);
  if (killers > 1) add("killed-by-fewer", std::to_string(killers));
  if (not_proved_in != nullptr) add("proofs", "none");
  return made;
}

std::vector<const Mutant*> selected_mutants(const std::vector<Mutant>& all, const MutantSelection& selection) {
  std::map<std::string, std::set<std::string>> killers;
  for (const KillMatrix& matrix : selection.not_killed_in) {
    for (const KillRow& row : matrix.rows) {
      for (const std::int32_t each : row.killers) killers[row.id].insert(matrix.cases[static_cast<std::size_t>(each)].line);
    }
  }
  const auto is_meant = [&](const Mutant& each) {
    const std::string text = fmt::format("{} {} {}", each.id, each.family, each.says);
    const auto matches = [&](const std::string& word) {
      return word.find('*') == std::string::npos ? text.find(word) != std::string::npos : matches_pattern(word, text);
    };
    const std::vector<std::string>& families = selection.families;
    return (selection.words.empty() || std::any_of(selection.words.begin(), selection.words.end(), matches)) &&
           (families.empty() || std::find(families.begin(), families.end(), each.family) != families.end()) &&
           (killers.count(each.id) == 0 || static_cast<std::int64_t>(killers.at(each.id).size()) < selection.killers) &&
           (selection.not_proved_in == nullptr || selection.not_proved_in->of(each.id) == nullptr);
  };
  std::vector<const Mutant*> chosen;
  std::int64_t number = 0;
  for (const Mutant& each : all) {
    if (is_meant(each) && number++ % selection.shards == selection.shard) chosen.push_back(&each);
  }
  return chosen;
}

KillMatrix matrix_of(const MutantLibrary& library, const Recording& recording, const std::vector<const Mutant*>& mutants,
                     const std::vector<Planted>& planted) {
  KillMatrix made;
  made.version = kVersion;
  made.commit = build_commit();
  made.date = today();
  made.mutants = static_cast<std::int64_t>(library.mutants().size());
  made.mutants_digest = library.digest();
  golden::Sha256 sum;
  std::vector<bool> kills(recording.cases.size());
  for (const Planted& each : planted) {
    for (const std::int32_t killer : each.killers) kills[static_cast<std::size_t>(killer)] = true;
  }
  std::vector<std::int32_t> numbers(recording.cases.size(), -1);
  for (std::size_t i = 0; i < recording.cases.size(); ++i) {
    const RecordedCase& each = recording.cases[i];
    if (!each.passes) continue;
    ++made.judged_cases;
    const std::string text = each.text + "\n";
    sum.update(std::as_bytes(std::span(text)));
    if (!kills[i]) continue;
    numbers[i] = static_cast<std::int32_t>(made.cases.size());
    made.cases.push_back({each.text, each.work});
  }
  made.cases_digest = golden::hex_of(sum.digest());
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    if (planted[i].tried < 0) continue;
    KillRow row{mutants[i]->id, mutants[i]->family, planted[i].differs, planted[i].tried, name_of(planted[i].how), {}};
    for (const std::int32_t killer : planted[i].killers) row.killers.push_back(numbers[static_cast<std::size_t>(killer)]);
    made.rows.push_back(std::move(row));
  }
  return made;
}

Record record_of(const KillMatrix& matrix) {
  Record made;
  for (const KillRow& row : matrix.rows) {
    made.killed[row.id] = !row.killers.empty();
    if (!row.killers.empty()) made.killers[row.id] = matrix.cases[static_cast<std::size_t>(row.killers[0])].line;
  }
  return made;
}

}  // namespace assay::conformance
