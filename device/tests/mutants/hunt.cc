#include "device/tests/mutants/hunt.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "device/tests/mutants/mutation.h"
#include "device/tests/mutants/shared_values.h"

namespace assay::mutants {
namespace {

// Ends the process when it has computed for so long from now on. Other work on the machine does not count.
void set_timer(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const itimerval timer = {{0, 0}, {whole, static_cast<suseconds_t>((seconds - static_cast<double>(whole)) * 1e6)}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

// A call that takes longer than this does not end.
double late_seconds(const Trial& trial) { return 1 + 50 * trial.seconds; }

// In a process of its own: makes the calls and writes the outcome of each.
[[noreturn]] void make_calls(int mutant, std::vector<Trial>& trials, const std::vector<int>& order, std::size_t from, int kills,
                             int pipe) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0) dup2(nowhere, 2);  // a mutant may print what it likes
  chosen = mutant;
  for (std::size_t at = from; at < order.size() && kills > 0; ++at) {
    Trial& trial = trials[static_cast<std::size_t>(order[at])];
    set_timer(late_seconds(trial));
    const auto outcome = static_cast<char>(attempt(trial));
    if (write(pipe, &outcome, 1) != 1) break;
    kills -= outcome != static_cast<char>(Outcome::same);
  }
  _exit(0);
}

Hunted hunt_one(int mutant, std::vector<Trial>& trials, const std::vector<int>& order, int kills) {
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
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("no process can be made");
    if (child == 0) make_calls(mutant, trials, order, static_cast<std::size_t>(found.tried), kills - found.kills, ends[1]);
    close(ends[1]);
    for (char outcome; read(ends[0], &outcome, 1) == 1;) note(static_cast<Outcome>(outcome));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      note(WTERMSIG(status) == SIGPROF ? Outcome::late : Outcome::ended);
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

std::vector<Hunted> hunt_all(std::vector<Trial>& trials, const std::vector<bool>& wanted, const std::vector<std::string>& killers,
                             const HuntLimits& limits) {
  const std::vector<std::vector<int>> order = orders(trials, killers);
  const std::size_t count = wanted.size();
  const Shared<Hunted> found(count);
  const Shared<std::atomic<std::size_t>> next(1);
  std::vector<pid_t> workers;
  for (int job = 0; job < limits.jobs; ++job) {
    const pid_t worker = fork();
    if (worker < 0) throw std::runtime_error("no process can be made");
    if (worker > 0) {
      workers.push_back(worker);
      continue;
    }
    for (std::size_t m; (m = next.values[0]++) < count;) {
      if (wanted[m]) found.values[m] = hunt_one(static_cast<int>(m), trials, thinned(order[m], limits.calls), limits.kills);
    }
    _exit(0);
  }
  bool failed = false;
  for (const pid_t worker : workers) {
    int status = 0;
    waitpid(worker, &status, 0);
    failed = failed || status != 0;
  }
  if (failed) throw std::runtime_error("a process that plants mutants ended early");
  return {found.values, found.values + count};
}

}  // namespace assay::mutants
