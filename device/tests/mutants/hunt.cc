#include "device/tests/mutants/hunt.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "conformance/support/forked.h"
#include "device/tests/mutants/mutation.h"

namespace assay::mutants {
namespace {

using conformance::ForkedArray, conformance::in_processes, conformance::limit_time, conformance::make_child;

// A call that takes longer than this does not end.
double late_seconds(const Trial& trial) { return 1 + 50 * trial.seconds; }

// In a process of its own, which prints nothing: makes the calls and writes the outcome of each.
[[noreturn]] void make_calls(int mutant, const std::vector<Trial>& trials, const std::vector<int>& order, std::size_t from,
                             int kills, int pipe) {
  chosen = mutant;
  for (std::size_t at = from; at < order.size() && kills > 0; ++at) {
    const Trial& trial = trials[static_cast<std::size_t>(order[at])];
    limit_time(late_seconds(trial));
    const auto outcome = static_cast<char>(attempt(trial));
    if (write(pipe, &outcome, 1) != 1) break;
    kills -= outcome != static_cast<char>(Outcome::same);
  }
  _exit(0);
}

Hunted hunt_one(int mutant, const std::vector<Trial>& trials, const std::vector<int>& order, int kills) {
  Hunted found;
  found.reaching = static_cast<int>(order.size());
  const auto note = [&](Outcome outcome) {
    if (outcome != Outcome::same && found.kills++ == 0) {
      found.first = order[static_cast<std::size_t>(found.tried)];
      found.how = outcome;
    }
    ++found.tried;
  };
  while (found.kills < kills && static_cast<std::size_t>(found.tried) < order.size()) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe can be made");
    const int child = make_child(0);
    if (child == 0) make_calls(mutant, trials, order, static_cast<std::size_t>(found.tried), kills - found.kills, ends[1]);
    close(ends[1]);
    for (char outcome; read(ends[0], &outcome, 1) == 1;) note(static_cast<Outcome>(outcome));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      note(WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM ? Outcome::late : Outcome::ended);
    } else if (WEXITSTATUS(status) != 0) {
      note(Outcome::ended);
    }
  }
  return found;
}

// The calls that reach each mutant, the recorded killer first.
std::vector<std::vector<int>> orders(const std::vector<Trial>& trials, const std::vector<std::string>& killers) {
  std::vector<std::vector<int>> order(killers.size());
  for (std::size_t t = 0; t < trials.size(); ++t) {
    for (const int mutant : trials[t].reaches) {
      std::vector<int>& own = order[static_cast<std::size_t>(mutant)];
      own.push_back(static_cast<int>(t));
      if (trials[t].name == killers[static_cast<std::size_t>(mutant)]) std::rotate(own.begin(), own.end() - 1, own.end());
    }
  }
  return order;
}

// At most `most` of the calls, of every length; the first stays the first.
std::vector<int> thinned(const std::vector<int>& order, int most) {
  if (static_cast<int>(order.size()) <= most) return order;
  std::vector<int> kept;
  for (int i = 0; i < most; ++i)
    kept.push_back(order[order.size() * static_cast<std::size_t>(i) / static_cast<std::size_t>(most)]);
  return kept;
}

}  // namespace

std::vector<Hunted> hunt_all(const std::vector<Trial>& trials, const std::vector<bool>& wanted,
                             const std::vector<std::string>& killers, const HuntLimits& limits) {
  const std::vector<std::vector<int>> order = orders(trials, killers);
  const std::size_t count = wanted.size();
  const ForkedArray<Hunted> found(count);
  const auto hunt = [&](std::int64_t mutant) {
    const auto m = static_cast<std::size_t>(mutant);
    if (wanted[m]) found[m] = hunt_one(static_cast<int>(m), trials, thinned(order[m], limits.calls), limits.kills);
  };
  in_processes(static_cast<std::int64_t>(count), limits.jobs, hunt, nullptr);
  return {found.begin(), found.end()};
}

}  // namespace assay::mutants
