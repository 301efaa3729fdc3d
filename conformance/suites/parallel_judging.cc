#include "conformance/suites/parallel_judging.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/suites/device_lanes.h"
#include "conformance/support/interrupt.h"
#include "conformance/worker/remote.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

// The contexts of built-in backends are independent; those of other backends may not be.
bool takes_many_contexts(const std::string& given) {
  const std::string name = current_backend_name(given);
  return name == "reference" || name == "null" || name == "device" || name == "emulated" || name == "cublaslt";
}

struct Context {
  std::unique_ptr<Backend> backend, expecting;
  std::string key;
  bool is_given_up() const { return backend->is_given_up() || (expecting != nullptr && expecting->is_given_up()); }
};

// Contexts with one key can take each other's cases.
std::string context_key(const BackendChoice& choice, std::size_t device) {
  const std::string visible = choice.visible(device);
  return choice.words() + (visible.empty() ? "" : " on " + visible);
}

// A case whose process ended while or after it served other cases.
struct Together {
  std::string text, title;
};

CaseReport finding(const std::string& name, Verdict verdict, const std::string& text, const std::string& printed = "") {
  CaseReport made{"backend", name, "", "backend", "-", {}};
  made.judgement.verdict = verdict;
  made.judgement.text = "FAILED  " + name + "\n  call    " + text + (printed.empty() ? "" : "\n" + printed);
  return made;
}

std::string printed_text(const std::string& printed) {
  if (printed.empty()) return "";
  std::string text = "  printed ";
  for (const char letter : printed) text += letter == '\n' ? std::string("\n          ") : std::string(1, letter);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// Idle contexts, and findings about backends that belong to no case.
class Contexts {
 public:
  static Contexts& get() {
    static Contexts only;
    return only;
  }

  void keep(const std::string& key, std::unique_ptr<Backend> backend) {
    const std::lock_guard lock(mutex_);
    opened_.emplace_back(key, std::move(backend));
  }

  Context take(const BackendChoice& choice, std::size_t device) {
    const std::string key = context_key(choice, device);
    std::unique_ptr<Backend> opened;
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = idle_.size(); i-- > 0;) {
        if (idle_[i].key != key) continue;
        Context context = std::move(idle_[i]);
        idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
        if (!context.is_given_up()) return context;
        note_end(context);
      }
      for (std::size_t i = 0; i < opened_.size() && opened == nullptr; ++i) {
        if (opened_[i].first != key) continue;
        opened = std::move(opened_[i].second);
        opened_.erase(opened_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (opened != nullptr && opened->is_given_up()) note_end(*opened);
    if (opened == nullptr || opened->is_given_up()) opened = choice.open(device);
    return {std::move(opened), choice.open_expecting(device), key};
  }

  // An abandoned context is not kept.
  void give(Context context) {
    if (context.is_given_up()) return;
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(context));
  }

  // Every idle context is closed.
  void close() {
    std::vector<Context> idle;
    std::vector<std::pair<std::string, std::unique_ptr<Backend>>> opened;
    {
      const std::lock_guard lock(mutex_);
      idle.swap(idle_);
      opened.swap(opened_);
    }
    for (auto& [key, backend] : opened) idle.push_back({std::move(backend), nullptr, key});
    for (Context& each : idle) {
      if (each.backend->is_given_up()) note_end(each);
      for (Backend* backend : {each.backend.get(), each.expecting.get()}) {
        if (backend == nullptr) continue;
        try {
          backend->settle();
          backend->close();
        } catch (const BackendFault& fault) {
          add(finding("backend/close", fault.status() == ASSAY_TIMEOUT ? Verdict::unfinished : Verdict::failed, fault.what(),
                      printed_text(fault.printed())));
        } catch (const BackendError& error) {
          add(finding("backend/close", Verdict::failed, error.what()));
        }
      }
    }
  }

  void add(CaseReport found) {
    const std::lock_guard lock(findings_mutex_);
    findings_.push_back(std::move(found));
  }
  std::vector<CaseReport> take_findings() {
    const std::lock_guard lock(findings_mutex_);
    return std::exchange(findings_, {});
  }

 private:
  // A process that ended between two calls.
  void note_end(const Backend& backend) {
    if (backend.end_text().empty()) return;
    add(finding("backend/process", Verdict::failed,
                "the process of backend " + backend.name() + " " + backend.end_text() + " between two cases"));
  }
  void note_end(const Context& context) {
    note_end(*context.backend);
    if (context.expecting != nullptr) note_end(*context.expecting);
  }

  std::mutex mutex_, findings_mutex_;
  std::vector<Context> idle_;
  std::vector<std::pair<std::string, std::unique_ptr<Backend>>> opened_;
  std::vector<CaseReport> findings_;
};

// Opening is retried a few times in a row.
class Opener {
 public:
  Opener(const BackendChoice& choice, std::size_t device) : choice_(choice), device_(device) {}
  // False if none can be opened any more; `why` has the reason.
  bool open(Context& context, std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      why = failure_;
    }
    constexpr int kTries = 3;
    for (int i = 0; i < kTries && why.empty(); ++i) {
      try {
        context = Contexts::get().take(choice_, device_);
        return true;
      } catch (const BackendError& error) {
        if (i + 1 == kTries || interrupted()) why = error.what();
        std::this_thread::sleep_for(std::chrono::milliseconds(100 << (2 * i)));
      }
    }
    const std::lock_guard lock(mutex_);
    failure_ = why;
    return false;
  }

 private:
  const BackendChoice& choice_;
  const std::size_t device_;
  std::mutex mutex_;
  std::string failure_;
};

Judgement cannot_open(const std::string& why) {
  Judgement judgement;
  judgement.verdict = Verdict::machine_failed;
  judgement.text = "the backend cannot be opened again: " + why;
  return judgement;
}

// After this many unfinished cases in a row, the rest is not tried.
constexpr int kMaxUnfinished = 5;

}  // namespace

void Judged::settle() const {
  backend.settle();
  if (expecting != nullptr) expecting->settle();
}

Judgement judgement_of(const BackendFault& fault, const Judged& judged, const JudgeOptions& options) {
  const bool hangs = fault.status() == ASSAY_TIMEOUT;
  if (judged.may_try_again && fault.is_spent() && !fault.is_alone() && !hangs) throw Together{fault.what(), options.title};
  Judgement judgement;
  judgement.verdict = hangs ? Verdict::unfinished : Verdict::failed;
  const std::string under = options.setting.empty() ? "" : "  under   " + options.setting + "\n";
  const std::string printed = printed_text(fault.printed());
  judgement.text = failure_text(
      options.title,
      fmt::format("{}  {}    {}\n{}{}", under, hangs ? "hang" : "call", fault.what(), printed, printed.empty() ? "" : "\n"),
      options.reproduce);
  if (judgement.text.ends_with('\n')) judgement.text.pop_back();
  return judgement;
}

Judgement judgement_of(const BackendError& error, const JudgeOptions& options) {
  Judgement judgement;
  judgement.verdict = error.status() == ASSAY_TIMEOUT       ? Verdict::unfinished
                      : error.status() == ASSAY_DEVICE_LOST ? Verdict::failed
                                                            : Verdict::machine_failed;
  judgement.text = failure_text(options.title, fmt::format("  call    {}\n", error.what()), options.reproduce);
  if (judgement.text.ends_with('\n')) judgement.text.pop_back();
  return judgement;
}

namespace {

class Judging {
 public:
  Judging(const BackendChoice& choice, const std::function<Verdict(std::int64_t, Judged)>& judge_one,
          const std::function<void(std::int64_t, Judgement)>& left)
      : judge_one_(judge_one), left_(left) {
    for (std::size_t i = 0; i < std::max<std::size_t>(choice.devices.size(), 1); ++i) openers_.emplace_back(choice, i);
  }

  // On the first device that can be used.
  void judge(std::int64_t index) {
    std::string why;
    for (std::size_t device = 0; device < openers_.size(); ++device) {
      if (judge_on(index, device, why)) return;
    }
    leave(index, why);
  }

  // False: the device cannot be used any more; `why` says why.
  bool judge_on(std::int64_t index, std::size_t device, std::string& why) {
    if (!may_begin(index)) return true;
    Context context;
    if (!openers_[device].open(context, why)) return false;
    try {
      note(judge_one_(index, begin(context, true, device)));
    } catch (const Together& fault) {
      const std::lock_guard lock(mutex_);
      again_.push_back({index, device, fault});
      return true;
    }
    Contexts::get().give(std::move(context));
    return true;
  }

  void leave(std::int64_t index, const std::string& why) { left_(index, cannot_open(why)); }

  // The cases that a process was serving when it ended.
  void judge_alone() {
    if (again_.empty()) return;
    bool found = false;
    for (const auto& [index, device, fault] : again_) {
      Contexts::get().close();
      worker::start_afresh();
      if (!may_begin(index)) return;  // then it is reported as left
      Context context;
      if (std::string why; !openers_[device].open(context, why)) return leave(index, why);
      note(judge_one_(index, begin(context, false, device)));
      found = found || context.is_given_up();
    }
    if (found || interrupted()) return;
    constexpr std::size_t kMaxNamed = 8;
    std::string names;
    for (std::size_t i = 0; i < std::min(again_.size(), kMaxNamed); ++i) names += "\n  case    " + again_[i].fault.title;
    if (again_.size() > kMaxNamed) names += fmt::format("\n  case    and {} more", again_.size() - kMaxNamed);
    Contexts::get().add(
        finding("backend/process", Verdict::failed,
                again_[0].fault.text + ", after other cases or beside them; alone no case ends it. Under way were" + names));
  }

 private:
  bool may_begin(std::int64_t index) {
    if (interrupted()) return false;
    if (unfinished_ < kMaxUnfinished) return true;
    left_(index, not_tried());
    return false;
  }

  static Judged begin(Context& context, bool may_try_again, std::size_t device) {
    context.backend->begin_case();
    if (context.expecting != nullptr) context.expecting->begin_case();
    return {*context.backend, context.expecting.get(), may_try_again, device};
  }

  void note(Verdict verdict) { unfinished_ = verdict == Verdict::unfinished ? unfinished_ + 1 : 0; }

  const std::function<Verdict(std::int64_t, Judged)>& judge_one_;
  const std::function<void(std::int64_t, Judgement)>& left_;
  std::deque<Opener> openers_;  // by device
  std::mutex mutex_;
  struct Again {
    std::int64_t index;
    std::size_t device;
    Together fault;
  };
  std::vector<Again> again_;
  std::atomic<int> unfinished_ = 0;  // cases in a row
};

void judge_on_devices(Judging& judging, const BackendChoice& choice, std::int64_t count) {
  DeviceLanes lanes(count, choice.devices.size(), [&](std::int64_t index, std::size_t device, std::string& why) {
    return judging.judge_on(index, device, why);
  });
  lanes.judge_all(judges_side_by_side(choice) ? static_cast<std::size_t>(thread_count()) : 0);
  for (std::size_t i = 0; i < lanes.gone().size(); ++i) {
    if (lanes.gone()[i].empty()) continue;
    Contexts::get().add(finding("backend/device", Verdict::machine_failed,
                                fmt::format("device {} cannot be used any more: {}{}", choice.devices[i].number, lanes.gone()[i],
                                            lanes.usable().empty() ? "" : "; other devices took its cases")));
  }
  if (interrupted()) return;
  for (const std::int64_t index : lanes.left()) judging.leave(index, lanes.gone()[0]);
}

}  // namespace

bool judges_side_by_side(const BackendChoice& choice) {
  return takes_many_contexts(choice.name) && (choice.expect_by.empty() || takes_many_contexts(choice.expect_by));
}

void judge_in_parallel(const BackendChoice& choice, std::int64_t count,
                       const std::function<Verdict(std::int64_t, Judged)>& judge_one,
                       const std::function<void(std::int64_t, Judgement)>& left, bool one_at_a_time) {
  Judging judging(choice, judge_one, left);
  if (choice.devices.size() > 1 && !one_at_a_time) {
    judge_on_devices(judging, choice, count);
  } else if (judges_side_by_side(choice) && count > 1 && !one_at_a_time) {
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) judging.judge(i);
    });
  } else {
    for (std::int64_t i = 0; i < count; ++i) judging.judge(i);
  }
  judging.judge_alone();
}

void keep_open(const BackendChoice& choice, std::unique_ptr<Backend> backend, std::size_t device) {
  Contexts::get().keep(context_key(choice, device), std::move(backend));
}

void close_backends(Report& report) {
  Contexts::get().close();
  for (CaseReport& each : Contexts::get().take_findings()) report.add(std::move(each));
}

CaseReport report_of_open(const BackendFault& fault) {
  return finding("backend/open", fault.status() == ASSAY_TIMEOUT ? Verdict::unfinished : Verdict::failed, fault.what(),
                 printed_text(fault.printed()));
}

}  // namespace assay::conformance
