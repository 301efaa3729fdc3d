#include "conformance/program/parallel_judging.h"

#include <mutex>
#include <vector>

#include "conformance/program/interrupt.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

// Backends of ours keep their contexts apart; of others that is not known.
bool takes_many_contexts(const std::string& name) {
  return name == "reference" || name == "null" || name == "device" || name == "bringup" || name == "cublaslt";
}

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
                       bool one_at_a_time) {
  Contexts contexts(choice);
  const auto one = [&](std::int64_t index) {
    if (interrupted()) return;
    Context context = contexts.take();
    judge_one(index, {*context.backend, context.expecting.get()});
    contexts.give(std::move(context));
  };
  const bool many = takes_many_contexts(choice.name) && (choice.expect_by.empty() || takes_many_contexts(choice.expect_by));
  if (many && count > 1 && !one_at_a_time) {
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) one(i);
    });
  } else {
    for (std::int64_t i = 0; i < count; ++i) one(i);
  }
}

}  // namespace assay::conformance
