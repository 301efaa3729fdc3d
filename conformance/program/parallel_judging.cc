#include "conformance/program/parallel_judging.h"

#include <mutex>
#include <vector>

#include "conformance/program/interrupt.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

// Backends of ours keep their contexts apart; of others that is not known.
bool takes_many_contexts(const std::string& name) { return name == "reference" || name == "null" || name == "device"; }

// Contexts that no thread is using at the moment.
class Contexts {
 public:
  explicit Contexts(const BackendChoice& choice) : choice_(choice) {}
  std::unique_ptr<Backend> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Backend> backend = std::move(idle_.back());
        idle_.pop_back();
        return backend;
      }
    }
    return choice_.open();
  }
  void give(std::unique_ptr<Backend> backend) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(backend));
  }

 private:
  const BackendChoice& choice_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Backend>> idle_;
};

}  // namespace

void judge_in_parallel(const BackendChoice& choice, std::int64_t count,
                       const std::function<void(std::int64_t, Backend&)>& judge_one) {
  Contexts contexts(choice);
  const auto one = [&](std::int64_t index) {
    if (interrupted()) return;
    std::unique_ptr<Backend> backend = contexts.take();
    judge_one(index, *backend);
    contexts.give(std::move(backend));
  };
  if (takes_many_contexts(choice.name) && count > 1) {
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) one(i);
    });
  } else {
    for (std::int64_t i = 0; i < count; ++i) one(i);
  }
}

}  // namespace assay::conformance
