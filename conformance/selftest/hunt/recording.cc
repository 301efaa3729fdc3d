#include "conformance/selftest/hunt/recording.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "conformance/generate/generator.h"
#include "conformance/judge/call_runner.h"
#include "conformance/suites/judge_line.h"
#include "conformance/suites/shards.h"

namespace assay::conformance {
namespace {

// A call that is replayed is made many times, which work_of does not count.
double work_with_replays(const CaseLine& line) {
  const double calls = line.op == "scenario" ? 8 : 1 + replay_plan(line).count;
  return work_of(line) * calls;
}

// What a process tells of a case.
struct CaseSlot {
  enum State : std::int32_t { untold, passed, not_run, failed } state;
  double seconds;
  char why[400];
  bool has_stated;
  assay_numerics stated;
};

// Elements of the outputs of all prepared cases together; some ten bytes each.
constexpr std::int64_t kPreparedElements = std::int64_t{1} << 20;

}  // namespace

Recording::Recording(std::vector<CaseLine> lines, std::int32_t mutants)
    : words_((static_cast<std::size_t>(mutants) + 63) / 64), effects_(lines.size() * words_) {
  for (CaseLine& line : lines) {
    std::string text = to_text(line);
    const double work = work_with_replays(line);
    cases.push_back({std::move(line), std::move(text), work});
  }
}

bool Recording::can_differ(std::size_t of, const Mutant& mutant) const {
  const auto bit = static_cast<std::size_t>(mutant.number);
  return (effects_[of * words_ + bit / 64] >> (bit % 64) & 1) != 0;
}

void Recording::try_on(std::size_t of, const Mutant& mutant) {
  const auto bit = static_cast<std::size_t>(mutant.number);
  effects_[of * words_ + bit / 64] |= std::uint64_t{1} << (bit % 64);
}

void Recording::note(std::size_t of, const std::vector<std::uint8_t>& effects, const std::vector<const Mutant*>& mutants) {
  for (const Mutant* each : mutants) {
    if (effects[static_cast<std::size_t>(each->base)] >= each->times) try_on(of, *each);
  }
}

void Recording::order(std::uint64_t seed) {
  const std::string salt = std::to_string(seed);
  const auto key = [&](const RecordedCase& each) {
    // Within a factor of two costs are as good as equal.
    return std::tuple(std::ilogb(each.work), variety_of(salt, each.text), each.text);
  };
  std::sort(cases.begin(), cases.end(), [&](const RecordedCase& a, const RecordedCase& b) { return key(a) < key(b); });
}

double relative_cost(const CaseLine& line) {
  constexpr double kSmall = 400'000;
  return work_with_replays(line) / kSmall;
}

BackendChoice choice_of(const MutantLibrary& library) {
  BackendChoice choice;
  choice.name = library.path();
  choice.explains = false;
  return choice;
}

bool record_cases(const MutantLibrary& library, Recording& recording, const std::vector<const Mutant*>& mutants, int jobs,
                  const std::function<void(std::int64_t)>& progress) {
  const BackendChoice choice = choice_of(library);
  Backend backend(library.table());
  const ForkedArray<CaseSlot> slots(recording.cases.size());
  std::vector<std::uint8_t> meant(static_cast<std::size_t>(library.count()));
  for (const Mutant* each : mutants) meant[static_cast<std::size_t>(each->base)] = 1;
  const auto judge_recording = [&](std::int64_t i) {
    const std::size_t at = recording.cases.size() - 1 - static_cast<std::size_t>(i);  // the costliest first
    std::vector<std::uint8_t> effects(static_cast<std::size_t>(library.count()));
    const double begun = processor_seconds();
    if (!mutants.empty()) library.record(effects.data(), meant.data());
    const CaseLine& line = recording.cases[at].line;
    const std::unique_ptr<PreparedCase> prepared = prepare(line, choice, Statements());
    const CaseReport report = judge_line(line, {backend}, choice, prepared.get());
    library.record(nullptr);
    const Verdict verdict = report.judgement.verdict;
    CaseSlot& slot = slots[at];
    slot.seconds = processor_seconds() - begun;
    slot.state = verdict == Verdict::passed    ? CaseSlot::passed
                 : verdict == Verdict::not_run ? CaseSlot::not_run
                                               : CaseSlot::failed;
    std::snprintf(slot.why, sizeof slot.why, "%s", report.judgement.text.c_str());
    slot.has_stated = prepared != nullptr && prepared->stated.has_value();
    if (slot.has_stated) slot.stated = *prepared->stated;
    if (slot.state == CaseSlot::passed) recording.note(at, effects, mutants);
  };
  const bool whole = in_processes(static_cast<std::int64_t>(recording.cases.size()), jobs, judge_recording, progress);
  for (std::size_t i = 0; i < recording.cases.size(); ++i) {
    RecordedCase& each = recording.cases[i];
    each.seconds = slots[i].seconds;
    each.passes = slots[i].state == CaseSlot::passed;
    each.is_fault = slots[i].state == CaseSlot::failed;
    if (!each.passes) each.why_not = slots[i].why;
    if (slots[i].has_stated) each.stated = slots[i].stated;
  }
  return whole;
}

void prepare_cases(const MutantLibrary& library, Recording& recording) {
  const BackendChoice choice = choice_of(library);
  std::int64_t elements = 0;
  for (RecordedCase& each : recording.cases) {
    elements += cost_of(each.line).elements;
    if (elements > kPreparedElements) break;
    if (!each.passes) continue;
    Statements statements;
    statements.note(each.line, each.stated);
    each.prepared = prepare(each.line, choice, statements);
  }
}

}  // namespace assay::conformance
