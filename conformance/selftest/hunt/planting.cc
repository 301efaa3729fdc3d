#include "conformance/selftest/hunt/planting.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "conformance/selftest/hunt/guarded_memory.h"
#include "conformance/selftest/hunt/trial_order.h"
#include "conformance/suites/judge_line.h"
#include "conformance/support/forked.h"
#include "golden/io/fixture_error.h"

namespace assay::conformance {

const char* name_of(Ended ended) {
  switch (ended) {
    case Ended::passed: return "passed";
    case Ended::outputs: return "outputs";
    case Ended::memory: return "memory";
    case Ended::refused: return "refused";
    case Ended::other: return "other";
    case Ended::process: return "process ended";
    case Ended::late: return "too slow";
  }
  return "unknown";
}

namespace {

// What a mutant may take in addition to what the process holds.
constexpr std::size_t kMoreMemory = std::size_t{2} << 30;
// A case takes longer while effects are recorded than without: a mutant that takes so much more hangs.
constexpr double kLeastSeconds = 0.3, kTimesAsLong = 10;
// No case takes so long without a mutant.
constexpr double kMostSeconds = 60;

Ended ended_by(const Judgement& judgement) {
  if (judgement.verdict == Verdict::passed) return Ended::passed;
  const std::string kind = judgement.findings.empty() ? "" : judgement.findings.front().kind;
  if (kind == "bits" || kind == "bound") return Ended::outputs;
  if (kind == "memory") return Ended::memory;
  return kind == "call" ? Ended::refused : Ended::other;
}

// Cases for one mutant.
struct Trials {
  const MutantLibrary& library;
  const Recording& recording;
  Backend& backend;
  const BackendChoice& choice;
  std::vector<std::int32_t>& order;
};

// The cases that one process judges: the first one may take as long as `first_seconds` say, if that is more than was recorded.
struct Stretch {
  std::int32_t mutant;  // its number; -1: none
  std::size_t from, until;
  int kills;
  double first_seconds = 0;
};

void judge_cases(const Stretch& stretch, const Trials& trials, int pipe) {
  int kills = stretch.kills;
  for (std::size_t at = stretch.from; at < stretch.until && kills > 0; ++at) {
    const RecordedCase& each = trials.recording.cases[static_cast<std::size_t>(trials.order[at])];
    limit_time(kLeastSeconds + kTimesAsLong * std::max(each.seconds, at == stretch.from ? stretch.first_seconds : 0));
    Ended ended = Ended::process;
    try {
      trials.library.select(stretch.mutant);  // again for each case: some mutants count how often they were reached
      ended = ended_by(judge_line(each.line, {trials.backend}, trials.choice, each.prepared.get()).judgement);
    } catch (...) {  // as if the process had ended
    }
    limit_time(0);
    if (write(pipe, &ended, 1) != 1) break;
    kills -= ended != Ended::passed;
  }
}

// In a process of its own: judges case after case and tells how each ended. What a mutant finds that reads beyond its memory must be
// the same in every run: allocations are guarded, and a thread has a heap and a stack of its own, which do not depend on what this
// process did before.
[[noreturn]] void judge_mutant(const Stretch& stretch, const Trials& trials, int pipe) {
#ifdef __GLIBC__
  mallopt(M_PERTURB, 0x5A);
#endif
  // A mutant that writes anywhere must not change what is known of others.
  ForkedMemory::make_all_read_only();
  guard_allocations();
  std::thread([&] { judge_cases(stretch, trials, pipe); }).join();
  _exit(0);
}

int waited_for(pid_t child, rusage* used = nullptr) {
  int status = 0;
  while (wait4(child, &status, 0, used) < 0 && errno == EINTR) {}
  return status;
}

double seconds_of(const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); }

// Processor time of a case without a mutant, in a process as those of mutants are.
double seconds_in_process(const Trials& trials, std::size_t at) {
  const pid_t child = make_child(kMoreMemory + kGuardedBytes);
  if (child == 0) judge_mutant({-1, at, at + 1, 1, kMostSeconds}, trials, -1);
  rusage used{};
  waited_for(child, &used);
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

// `found`: room for the killers, so that nothing is allocated here. A mutant that reads or writes beyond its memory finds there what
// it would find in any other process, whatever mutants were planted before it.
void plant_one(const Mutant& mutant, const Trials& trials, const PlantingLimits& limits, Planted& found) {
  found.differs = static_cast<std::int32_t>(trials.order.size());
  std::size_t until = trials.order.size();
  if (limits.tries > 0) until = std::min(until, static_cast<std::size_t>(limits.tries));
  const auto note = [&](Ended ended) {
    if (ended != Ended::passed) {
      if (found.killers.empty()) found.how = ended;
      found.killers.push_back(trials.order[static_cast<std::size_t>(found.tried)]);
    }
    ++found.tried;
  };
  // Some systems need much longer for a case in a new process than in one that has judged others: what was stopped is judged again,
  // with as much time as that allows.
  double first_seconds = 0;
  std::int32_t again_at = -1;
  while (static_cast<int>(found.killers.size()) < limits.kills && static_cast<std::size_t>(found.tried) < until) {
    int ends[2];
    if (pipe(ends) != 0) throw ProcessError("no further pipe can be made");
    const pid_t child = make_child(kMoreMemory + kGuardedBytes);
    if (child == 0)
      judge_mutant({mutant.number, static_cast<std::size_t>(found.tried), until,
                    limits.kills - static_cast<int>(found.killers.size()), again_at == found.tried ? first_seconds : 0},
                   trials, ends[1]);
    close(ends[1]);
    for (Ended ended{};;) {
      const ssize_t got = read(ends[0], &ended, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got != 1) break;
      note(ended);
    }
    close(ends[0]);
    const int status = waited_for(child);
    if (WIFSIGNALED(status)) {
      const bool is_late = WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF;
      if (is_late && again_at != found.tried) {
        first_seconds = seconds_in_process(trials, static_cast<std::size_t>(found.tried));
        again_at = found.tried;
        continue;
      }
      note(is_late ? Ended::late : Ended::process);
    } else if (WEXITSTATUS(status) != 0) {
      note(Ended::process);
    }
  }
}

// As Planted, in memory that processes share; killers follow in an array of their own.
struct PlantedSlot {
  bool done;
  Ended how;
  std::int32_t differs, tried, killers;
};

}  // namespace

bool plant(const MutantLibrary& library, const Recording& recording, const std::vector<const Mutant*>& mutants,
           const PlantingLimits& limits, std::vector<Planted>& all, const std::function<void(std::int64_t)>& progress) {
  const BackendChoice choice = choice_of(library);
  Backend backend(library.table());
  const ForkedArray<PlantedSlot> slots(mutants.size());
  const auto most =
      static_cast<std::size_t>(std::min<std::int64_t>(limits.kills, static_cast<std::int64_t>(recording.cases.size())));
  const ForkedArray<std::int32_t> killers(mutants.size() * most);
  // Of each process, allocated before the first one is made.
  std::vector<std::int32_t> order;
  order.reserve(recording.cases.size());
  Planted found;
  found.killers.reserve(most);
  std::vector<std::string> texts;
  for (const RecordedCase& each : recording.cases) texts.push_back(each.text);
  TrialOrder trial_order(texts);
  const auto hunt = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    found.killers.clear();
    found.tried = 0;
    found.how = Ended::passed;
    if (!all.empty() && all[at].tried > 0) {  // room is there for so many
      found.tried = all[at].tried;
      found.how = all[at].how;
      found.killers.insert(found.killers.end(), all[at].killers.begin(), all[at].killers.end());
    }
    order.clear();
    for (std::size_t c = 0; c < recording.cases.size(); ++c) {
      if (!recording.cases[c].passes || !recording.can_differ(c, *mutants[at])) continue;
      order.push_back(static_cast<std::int32_t>(c));
    }
    trial_order.arrange(order);
    plant_one(*mutants[at], {library, recording, backend, choice, order}, limits, found);
    std::copy(found.killers.begin(), found.killers.end(), &killers[at * most]);
    slots[at] = {true, found.how, found.differs, found.tried, static_cast<std::int32_t>(found.killers.size())};
  };
  const bool whole = in_processes(static_cast<std::int64_t>(mutants.size()), limits.jobs, hunt, progress);
  if (all.empty()) all.assign(mutants.size(), Planted{0, -1, {}, Ended::passed});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const PlantedSlot& slot = slots[i];
    if (!slot.done) continue;
    all[i] = {slot.differs, slot.tried, {}, slot.how};
    if (slot.killers > 0) all[i].killers.assign(&killers[i * most], &killers[i * most] + slot.killers);
  }
  return whole;
}

}  // namespace assay::conformance
