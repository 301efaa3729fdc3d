#include "conformance/program/parallel_judging.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "conformance/program/departure.h"
#include "conformance/program/interrupt.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

// Backends of ours keep their contexts apart; of others that is not known.
bool takes_many_contexts(const std::string& name) {
  return name == "reference" || name == "null" || name == "device" || name == "bringup" || name == "cublaslt";
}

bool is_host(const std::string& name) { return name.empty() || name == "reference" || name == "null"; }

struct Context {
  std::unique_ptr<Backend> backend, expecting;
};

// Contexts that no thread is using at the moment.
class Contexts {
 public:
  explicit Contexts(const BackendChoice& choice) : choice_(choice) {}
  Context take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Context context = std::move(idle_.back());
        idle_.pop_back();
        return context;
      }
    }
    return {choice_.open(), choice_.open_expecting()};
  }
  void give(Context context) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(context));
  }

 private:
  const BackendChoice& choice_;
  std::mutex mutex_;
  std::vector<Context> idle_;
};

}  // namespace

void judge_in_parallel(const BackendChoice& choice, std::int64_t count, const std::function<void(std::int64_t, Judged)>& judge_one,
                       const std::function<void(std::int64_t, Judgement)>& left, bool one_at_a_time) {
  enum class State : char { waiting, begun, done };
  using Clock = std::chrono::steady_clock;
  const bool on_host = is_host(choice.name) && is_host(choice.expect_by);
  const bool many = takes_many_contexts(choice.name) && (choice.expect_by.empty() || takes_many_contexts(choice.expect_by));
  Contexts contexts(choice);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<State> states(static_cast<std::size_t>(count), State::waiting);
  std::vector<Clock::time_point> begun(static_cast<std::size_t>(count));
  bool finished = false;
  std::exception_ptr failure;

  const auto set = [&](std::int64_t index, State state) {
    const std::lock_guard lock(mutex);
    states[static_cast<std::size_t>(index)] = state;
    if (state == State::begun) begun[static_cast<std::size_t>(index)] = Clock::now();
  };
  const auto one = [&](std::int64_t index) {
    if (interrupted() || (!on_host && !busy_device().empty())) return;
    set(index, State::begun);
    Context context = contexts.take();
    judge_one(index, {*context.backend, context.expecting.get()});
    contexts.give(std::move(context));
    set(index, State::done);
  };
  // A thread of its own, so that this one can leave when it does not come back.
  std::thread work([&] {
    try {
      if (many && count > 1 && !one_at_a_time) {
        parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) one(i);
        });
      } else {
        for (std::int64_t i = 0; i < count; ++i) one(i);
      }
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    finished = true;
    changed.notify_all();
  });

  const auto patience = std::chrono::seconds(choice.timeout_s + 5);
  Clock::time_point since{};  // when waiting began to be in vain
  bool stuck = false;
  {
    std::unique_lock lock(mutex);
    while (!finished && !stuck) {
      changed.wait_for(lock, std::chrono::milliseconds(50));
      if (!interrupted() && (on_host || busy_device().empty())) continue;
      if (since == Clock::time_point{}) since = Clock::now();
      stuck = !finished && Clock::now() - since > patience;
    }
  }
  if (!stuck) work.join();
  if (failure != nullptr) std::rethrow_exception(failure);
  const bool busy = !on_host && !busy_device().empty();
  if (!busy && !stuck) return;
  for (std::int64_t i = 0; i < count; ++i) {
    State state;
    {
      const std::lock_guard lock(mutex);
      state = states[static_cast<std::size_t>(i)];
    }
    if (state == State::begun) {
      Judgement judgement;
      judgement.verdict = Verdict::unfinished;
      judgement.seconds = std::chrono::duration<double>(Clock::now() - begun[static_cast<std::size_t>(i)]).count();
      judgement.text = "still not back after " + std::to_string(static_cast<std::int64_t>(judgement.seconds)) + " s: a call of the backend does not return";
      left(i, std::move(judgement));
    } else if (state == State::waiting && busy) {
      left(i, not_tried());
    }
  }
  if (stuck) {
    if (!busy) note_busy_device("one that does not return to the harness");
    if (!Departure::leave()) leave_at_once(ExitCode::incomplete);
  }
}

}  // namespace assay::conformance
