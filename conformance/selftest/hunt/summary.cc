#include "conformance/selftest/hunt/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/suites/backend_choice.h"

namespace assay::conformance {

const char* name_of(Fate fate) {
  switch (fate) {
    case Fate::killed: return "killed";
    case Fate::proved: return "proved";
    case Fate::survived: return "survived";
    case Fate::not_reached: return "not reached";
    case Fate::passed: return "passed";
    case Fate::failed: return "failed";
    case Fate::contradicted: return "contradicted";
  }
  return "unknown";
}

namespace {

Fate fate_of(const KillRow& row, const Mutant& mutant, const Proofs& proofs) {
  if (mutant.benign) return !row.killers.empty() ? Fate::failed : row.differs == 0 ? Fate::not_reached : Fate::passed;
  const bool proved = proofs.of(mutant.id) != nullptr;
  if (!row.killers.empty()) return proved ? Fate::contradicted : Fate::killed;
  return proved ? Fate::proved : row.differs == 0 ? Fate::not_reached : Fate::survived;
}

}  // namespace

MutantSummary::MutantSummary(const KillMatrix& matrix, std::vector<const Mutant*> mutants, const Proofs& proofs)
    : matrix_(matrix), mutants_(std::move(mutants)), proofs_(proofs) {
  for (std::size_t i = 0; i < mutants_.size(); ++i) fates_.push_back(fate_of(matrix.rows[i], *mutants_[i], proofs));
}

bool MutantSummary::is_killed_once(std::size_t row) const {
  const KillRow& of = matrix_.rows[row];
  return of.killers.size() == 1 && of.tried == of.differs;
}

FateCounts MutantSummary::counts(const std::string& family) const {
  FateCounts made;
  for (std::size_t i = 0; i < fates_.size(); ++i) {
    if (mutants_[i]->benign || (!family.empty() && mutants_[i]->family != family)) continue;
    ++made.mutants;
    const bool killed = fates_[i] == Fate::killed || fates_[i] == Fate::contradicted;
    made.killed += killed;
    made.killed_once += killed && is_killed_once(i);
    made.proved += fates_[i] == Fate::proved;
    made.survived += fates_[i] == Fate::survived;
    made.not_reached += fates_[i] == Fate::not_reached;
  }
  return made;
}

std::int64_t MutantSummary::count(Fate fate) const { return std::count(fates_.begin(), fates_.end(), fate); }

void MutantSummary::add_to(Outcome& outcome) const {
  outcome.add(ExitCode::passed);
  if (count(Fate::survived) + count(Fate::failed) + count(Fate::contradicted) > 0) outcome.add(ExitCode::failed);
}

std::string MutantSummary::table() const {
  std::vector<std::string> families;
  for (const Mutant* each : mutants_) {
    if (!each->benign && std::find(families.begin(), families.end(), each->family) == families.end())
      families.push_back(each->family);
  }
  std::string text = fmt::format("{:<14}{:>9}{:>9}{:>13}{:>9}{:>10}{:>13}\n", "family", "mutants", "killed", "by one case",
                                 "proved", "survived", "not reached");
  const auto line = [&](const std::string& name, const FateCounts& of) {
    // Whether a single case kills it is known where a second one would have been looked for.
    const std::string once = matrix_.kills < 2 ? "-" : std::to_string(of.killed_once);
    text += fmt::format("{:<14}{:>9}{:>9}{:>13}{:>9}{:>10}{:>13}\n", name, of.mutants, of.killed, once, of.proved, of.survived,
                        of.not_reached);
  };
  for (const std::string& each : families) line(each, counts(each));
  if (families.size() > 1) line("all", counts(""));
  std::int64_t benign = 0, unreached = 0;
  for (std::size_t i = 0; i < mutants_.size(); ++i) {
    benign += mutants_[i]->benign;
    unreached += mutants_[i]->benign && fates_[i] == Fate::not_reached;
  }
  if (benign > 0)
    text += fmt::format("benign: {} variations: {} passed, {} failed, {} not reached\n", benign, count(Fate::passed),
                        count(Fate::failed), unreached);
  return text;
}

std::string MutantSummary::finding(std::size_t row, const std::string& library) const {
  const KillRow& of = matrix_.rows[row];
  std::string text = fmt::format("{:<13}{}\n  {}\n", name_of(fates_[row]), of.id, mutants_[row]->says);
  if (fates_[row] == Fate::survived)
    return text + fmt::format("  can make a difference in {} case{}, {} judged: all passed\n", of.differs,
                              of.differs == 1 ? "" : "s", of.tried);
  if (fates_[row] == Fate::contradicted) text += fmt::format("  proof: {}\n", *proofs_.of(of.id));
  const std::string& line = matrix_.cases[static_cast<std::size_t>(of.killers.at(0))].line;
  return text + fmt::format("  {}: {} repro {} --backend {} --backend-options {}\n", of.how, command_name(), quoted(line),
                            quoted(library), quoted("mutant=" + of.id));
}

std::string MutantSummary::findings(int show, const std::string& library) const {
  std::string text;
  for (const Fate fate : {Fate::failed, Fate::contradicted, Fate::survived}) {
    std::int64_t shown = 0;
    for (std::size_t i = 0; i < fates_.size() && shown < show; ++i) {
      if (fates_[i] != fate) continue;
      text += finding(i, library);
      ++shown;
    }
    if (const std::int64_t all = count(fate); all > shown)
      text += fmt::format("{:<13}{} more (--show sets how many are printed)\n", name_of(fate), all - shown);
  }
  return text;
}

}  // namespace assay::conformance
