#include "device/tests/mutants/on_device/workers.h"

#include <fcntl.h>
#include <signal.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "conformance/support/forked.h"

namespace assay::mutants {
namespace {

using conformance::ForkedArray;

using Clock = std::chrono::steady_clock;

// Of processes in a row that did nothing: at the beginning, and later.
constexpr int kFirstFailures = 3, kMostFailures = 40;

volatile sig_atomic_t stopped = 0;

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::int64_t now() { return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count(); }

// What a process does, as the others see it.
struct Slot {
  int device = 0;
  std::atomic<int> item{-1};  // of the list
  std::atomic<int> call{-1};
  std::atomic<std::int64_t> begun{0};
  std::atomic<std::int64_t> limit{0};  // seconds that the call may take, beside those of its process
  std::atomic<int> done{0};            // items
  std::atomic<int> again{-1};          // an item that its process could not decide: the next one begins with it
};

// A process that has taken an item ended without a result.
using Ended = std::function<void(int item, int call, bool stuck)>;
// Does the items that `next` counts, in a process of its own. Returns false where another process must go on.
using Work = std::function<bool(Slot& slot)>;

[[noreturn]] void run_child(const Work& work, Slot& slot) {
  conformance::leave_no_core_file();
  signal(SIGTERM, SIG_IGN);  // the first process ends this one
  signal(SIGINT, SIG_IGN);
  int code = 0;
  try {
    code = work(slot) ? 0 : 3;
  } catch (const std::exception& error) {
    std::cerr << "a process on the device: " << error.what() << "\n";
    code = 4;
  }
  _exit(code);  // the device's library is not asked to clean up: it may not answer
}

// Keeps `jobs` processes at work until all have ended with nothing left to do.
void supervise(int jobs, const Planting& planting, const Work& work, const Ended& ended) {
  const ForkedArray<Slot> slots(static_cast<std::size_t>(jobs));
  std::vector<pid_t> children(static_cast<std::size_t>(jobs), 0);
  std::vector<bool> stuck(static_cast<std::size_t>(jobs), false);
  int failures = 0, most_failures = kFirstFailures, left = jobs;
  const auto start = [&](int j) {
    slots[j].begun = now();
    slots[j].limit = 0;
    slots[j].device = j % planting.devices;
    children[j] = fork();
    if (children[j] < 0) throw std::runtime_error("no process can be made");
    if (children[j] == 0) run_child(work, slots[j]);
  };
  for (int j = 0; j < jobs; ++j) start(j);
  while (left > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (is_stopped()) {
      for (const pid_t child : children) {
        if (child > 0) kill(child, SIGKILL);
      }
      return;
    }
    for (int j = 0; j < jobs; ++j) {
      if (children[j] == 0) continue;
      Slot& slot = slots[j];
      int status = 0;
      if (waitpid(children[j], &status, WNOHANG) == 0) {
        if (!stuck[j] && now() - slot.begun > (slot.limit + planting.limit_seconds) * 1000) {
          stuck[j] = true;
          if (slot.item < 0) std::cerr << "a process on the device has not answered for " << planting.limit_seconds << " s\n";
          kill(children[j], SIGKILL);
        }
        continue;
      }
      children[j] = 0;
      if (const int item = slot.item.exchange(-1); item >= 0) {
        ended(item, slot.call, stuck[j]);
        ++slot.done;
      }
      stuck[j] = false;
      const bool did = slot.done.exchange(0) != 0 || slot.again >= 0;
      failures = did ? 0 : failures + 1;
      most_failures = did ? kMostFailures : most_failures;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        --left;
      } else if (failures >= most_failures) {
        throw std::runtime_error("processes on the device end one after another");
      } else {
        start(j);
      }
    }
  }
}

// One mutant in this process. False: the process cannot go on.
class Planter {
 public:
  Planter(OpenLibrary& library, const std::vector<Call>& calls, const Planting& planting)
      : library_(library), calls_(calls), planting_(planting) {}

  bool plant(int mutant, const std::vector<int>& reaching, Planted& result, Slot& slot, bool first) {
    result.reaching = static_cast<int>(reaching.size());
    std::vector<int> order = reaching;
    std::sort(order.begin(), order.end(), [&](int a, int b) { return rank(mutant, a) < rank(mutant, b); });
    if (static_cast<int>(order.size()) > planting_.most_calls) order.resize(static_cast<std::size_t>(planting_.most_calls));
    if (!library_.plant(mutant)) {
      if (!first) slot.again = slot.item.exchange(-1);
      return false;
    }
    for (const int at : order) {
      slot.call = at;
      slot.limit = limit_of(calls_[static_cast<std::size_t>(at)]);
      slot.begun = now();
      ++result.tried;
      const conformance::Verdict verdict = library_.judge(calls_[static_cast<std::size_t>(at)]).verdict;
      if (verdict == conformance::Verdict::passed) continue;
      // Without the mutant the call passes again, or this process is of no more use: as after a kernel that does not end, behind which
      // everything would wait.
      const bool good = verdict != conformance::Verdict::unfinished && library_.plant(kNone) &&
                        library_.judge(calls_[static_cast<std::size_t>(at)]).verdict == conformance::Verdict::passed;
      if (!good && !first) {
        result = {};
        slot.again = slot.item.exchange(-1);
        return false;
      }
      result.killer = at;
      result.how = verdict == conformance::Verdict::unfinished ? 't' : good ? 'w' : 'e';
      return good;
    }
    result.how = '.';
    return library_.plant(kNone);
  }

 private:
  // Short calls first, on the whole: each as if it came after a time of its own chance, of the mean that it took.
  double rank(int mutant, int call) const {
    const std::uint64_t bits = mixed(planting_.seed, static_cast<std::uint64_t>(mutant), static_cast<std::uint64_t>(call));
    const double chance = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
    return -std::log(chance) * std::max(calls_[static_cast<std::size_t>(call)].seconds, 1e-3);
  }
  OpenLibrary& library_;
  const std::vector<Call>& calls_;
  const Planting& planting_;
};

}  // namespace

void stop_at_signals() {
  for (const int number : {SIGTERM, SIGINT}) signal(number, [](int) { stopped = 1; });
}
bool is_stopped() { return stopped != 0; }

Described describe(const Planting& planting) {
  constexpr std::size_t kRoom = std::size_t{8} << 20;
  const ForkedArray<char> shared(kRoom);  // lines
  const auto work = [&](Slot& slot) {
    OpenLibrary library(planting.library, 0);
    std::string text = library.device() + "\n";
    for (int m = 0; m < library.mutants().count; ++m) {
      const MutantRow& row = library.mutants().mutants[m];
      text += std::string(row.file) + ": " + row.name + ": " + row.change + "\n";
    }
    text.copy(shared.begin(), kRoom - 1);
    ++slot.done;
    return true;
  };
  supervise(1, planting, work, [](int, int, bool) {});
  if (is_stopped()) throw std::runtime_error("stopped before the device answered");
  std::istringstream lines(shared.begin());
  Described described;
  std::getline(lines, described.device);
  for (std::string line; std::getline(lines, line);) described.mutants.push_back(line);
  return described;
}

void note_calls(const std::vector<Call>& calls, const Planting& planting, Noted* noted) {
  const ForkedArray<std::atomic<int>> next(1);
  const Clock::time_point end = after(planting.note_seconds);
  const auto work = [&](Slot& slot) {
    OpenLibrary library(planting.library, slot.device);
    for (int i; Clock::now() < end && (i = next[0]++) < static_cast<int>(calls.size());) {
      if (noted[i].verdict != 0) continue;  // known before
      slot.call = slot.item = i;
      slot.begun = now();
      library.note(calls[static_cast<std::size_t>(i)], noted[i]);
      slot.item = -1;
      ++slot.done;
    }
    return true;
  };
  supervise(planting.jobs, planting, work, [&](int item, int, bool) { noted[item].verdict = 'e'; });
}

std::vector<Planted> plant_all(const std::vector<Call>& calls, const std::vector<int>& mutants, const Planting& planting) {
  std::vector<std::vector<int>> reaching(kMostMutants);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (const int mutant : calls[i].reaches) reaching[static_cast<std::size_t>(mutant)].push_back(static_cast<int>(i));
  }
  const ForkedArray<std::atomic<int>> next(1);
  const ForkedArray<Planted> results(mutants.size());
  const Clock::time_point end = after(planting.seconds);
  const auto work = [&](Slot& slot) {
    OpenLibrary library(planting.library, slot.device);
    Planter planter(library, calls, planting);
    for (bool first = true;; first = false) {
      int i = slot.again.exchange(-1);
      if (i < 0 && Clock::now() > end) return true;
      if (i < 0) i = next[0]++;
      if (i >= static_cast<int>(mutants.size())) return true;
      slot.item = i;
      const int mutant = mutants[static_cast<std::size_t>(i)];
      const bool good = planter.plant(mutant, reaching[static_cast<std::size_t>(mutant)], results[i], slot, first);
      if (results[i].how != 0) {
        slot.item = -1;
        ++slot.done;
      }
      if (!good) return false;
    }
  };
  supervise(planting.jobs, planting, work, [&](int item, int call, bool stuck) {
    Planted& result = results[item];
    result.killer = call;
    result.how = stuck ? 't' : 'e';
  });
  return {results.begin(), results.begin() + mutants.size()};
}

}  // namespace assay::mutants
