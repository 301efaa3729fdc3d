#include "device/tests/mutants/hunt.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "device/tests/mutants/mutation.h"

namespace assay::mutants {
namespace {

// A call without a mutant takes at most a tenth of a second.
constexpr int kLateSeconds = 3;

void set_timer(int seconds) {
  const itimerval timer = {{0, 0}, {seconds, 0}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// In a process of its own: makes the calls and writes the outcome of each.
[[noreturn]] void make_calls(int mutant, std::vector<Trial>& trials, const std::vector<int>& order, std::size_t from, int kills,
                             int pipe) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0) dup2(nowhere, 2);  // a mutant may print what it likes
  chosen = mutant;
  for (std::size_t at = from; at < order.size() && kills > 0; ++at) {
    set_timer(kLateSeconds);
    const auto outcome = static_cast<char>(attempt(trials[static_cast<std::size_t>(order[at])]));
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
      note(WTERMSIG(status) == SIGALRM ? Outcome::late : Outcome::ended);
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

}  // namespace

std::vector<Hunted> hunt_all(std::vector<Trial>& trials, const std::vector<bool>& wanted, const std::vector<std::string>& killers,
                             const HuntLimits& limits) {
  const std::vector<std::vector<int>> order = orders(trials, killers);
  const std::size_t count = wanted.size();
  void* const memory = mmap(nullptr, count * sizeof(Hunted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory that processes share");
  Hunted* const shared = new (memory) Hunted[count];
  std::vector<pid_t> workers;
  for (int job = 0; job < limits.jobs; ++job) {
    const pid_t worker = fork();
    if (worker < 0) throw std::runtime_error("no process can be made");
    if (worker > 0) {
      workers.push_back(worker);
      continue;
    }
    for (std::size_t m = static_cast<std::size_t>(job); m < count; m += static_cast<std::size_t>(limits.jobs)) {
      if (wanted[m]) shared[m] = hunt_one(static_cast<int>(m), trials, order[m], limits.kills);
    }
    _exit(0);
  }
  bool failed = false;
  for (const pid_t worker : workers) {
    int status = 0;
    waitpid(worker, &status, 0);
    failed = failed || status != 0;
  }
  std::vector<Hunted> found(shared, shared + count);
  munmap(memory, count * sizeof(Hunted));
  if (failed) throw std::runtime_error("a process that plants mutants ended early");
  return found;
}

}  // namespace assay::mutants
