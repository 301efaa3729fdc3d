#include "device/tests/mutants/on_device/calls.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include "conformance/generate/generator.h"

namespace assay::mutants {
namespace {

using conformance::BackendChoice;
using conformance::CaseLine;

// One call: at least so long, and so many times what it took without a mutant, as one that is only slower is right. The first of a
// kernel loads it, for which many processes wait together.
constexpr std::int64_t kLimitSeconds = 3, kTimesOfCall = 20, kFirstLimitSeconds = 15;

BackendChoice choice_of(int way, std::int64_t limit_seconds = kLimitSeconds) {
  BackendChoice choice;
  choice.name = "device";
  choice.options = kWays[way];
  choice.timeout_s = limit_seconds;
  choice.explains = false;
  return choice;
}

bool is_product(const CaseLine& line) { return line.op == "grouped_gemm"; }

// Of the reference and the kernels, about: a product of two numbers takes less than an element that is quantized.
std::int64_t cost_in_elements(const conformance::CaseCost& cost) { return cost.elements + cost.macs / 16; }

// One line of a text of several, for people.
std::string in_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.size() > 400 ? text.substr(0, 400) + " ..." : text;
}

}  // namespace

std::string Call::name() const { return to_text(line) + (way == 0 ? "" : std::string(" by ") + kWays[way]); }

std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9E37'79B9'7F4A'7C15u + b * 0xBF58'476D'1CE4'E5B9u + c * 0x94D0'49BB'1331'11EBu;
  for (int round = 0; round < 2; ++round) x = (x ^ x >> 31) * 0xD6E8'FEB8'6659'FD93u;
  return x ^ x >> 32;
}

std::vector<Call> calls_of(const std::vector<CaseLine>& lines, std::int64_t elements, std::int64_t products, std::uint64_t seed) {
  std::vector<Call> calls;
  std::vector<std::tuple<int, std::uint64_t, std::size_t>> order;  // class of cost, place in it, call
  for (const CaseLine& line : lines) {
    if (line.op == "scenario" || line.integer("contract") == 1) continue;
    const conformance::CaseCost cost_of_line = conformance::cost_of(line);
    if (cost_of_line.elements > elements || cost_of_line.macs > products) continue;
    for (int way = 0; way < (is_product(line) ? static_cast<int>(std::size(kWays)) : 1); ++way) {
      Call& call = calls.emplace_back();
      call.line = line;
      call.way = way;
      const auto cost = static_cast<std::uint64_t>(std::max<std::int64_t>(cost_in_elements(cost_of_line), 1));
      order.emplace_back(std::bit_width(cost) / 4, mixed(seed, order.size(), 1), order.size());
    }
  }
  std::sort(order.begin(), order.end());
  std::vector<Call> ordered;
  for (const auto& [cost, place, at] : order) ordered.push_back(std::move(calls[at]));
  return ordered;
}

OpenLibrary::OpenLibrary(const std::string& path, int device) : device_(device) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto mutants = reinterpret_cast<const Library* (*)()>(dlsym(library, "assay_device_mutants"));
  if (mutants == nullptr || mutants()->size != sizeof(Library)) throw std::runtime_error(path + ": of another build");
  mutants_ = mutants();
  backend(0);  // from now on the thread's device is this one
}

conformance::Backend& OpenLibrary::backend(int way) {
  if (backends_[way] == nullptr) {
    const std::string options = "device=" + std::to_string(device_) + (*kWays[way] == '\0' ? "" : ",") + kWays[way];
    backends_[way] = std::make_unique<conformance::Backend>(*mutants_->backend, options);
  }
  return *backends_[way];
}

std::string OpenLibrary::device() {
  const assay_device_info info = backend(0).device_info();
  return std::string(info.name) + ", " + info.software;
}

bool OpenLibrary::plant(int number) { return mutants_->choose(number); }

std::int64_t limit_of(const Call& call) {
  return std::max(kLimitSeconds, static_cast<std::int64_t>(std::ceil(kTimesOfCall * call.seconds)));
}

conformance::Judgement OpenLibrary::judge(const Call& call) { return judge(call, limit_of(call)); }

conformance::Judgement OpenLibrary::judge(const Call& call, std::int64_t limit_seconds) {
  const BackendChoice choice = choice_of(call.way, limit_seconds);
  return conformance::judge_line(call.line, {backend(call.way)}, choice, call.prepared.get()).judgement;
}

void OpenLibrary::note(const Call& call, Noted& noted) {
  Call own{call.line, call.way, {}, 0, {}, conformance::prepare(call.line, choice_of(call.way), conformance::Statements())};
  backend(call.way);  // opened before a point is noted: every call would reach those of opening
  const auto failed = [&](const std::string& when, const std::string& judged) {
    return std::runtime_error(call.name() + ": the device failed " + when + ": " + mutants_->last_error() +
                              (judged.empty() ? "" : "; the judge says: " + in_one_line(judged)));
  };
  if (!plant(kRecords)) throw failed("before the call", "");
  std::uint8_t before[kMostMutants];
  if (!mutants_->take_reached(before)) throw failed("before the call", "");
  const auto begun = std::chrono::steady_clock::now();
  const conformance::Judgement judgement = judge(own, kFirstLimitSeconds);
  noted.seconds = std::chrono::duration<float>(std::chrono::steady_clock::now() - begun).count();
  if (!mutants_->take_reached(noted.reached)) throw failed("in the call", judgement.text);
  if (own.prepared != nullptr && own.prepared->stated) {
    noted.has_statement = true;
    noted.stated = *own.prepared->stated;
  }
  noted.verdict = judgement.verdict == conformance::Verdict::passed    ? 'p'
                  : judgement.verdict == conformance::Verdict::not_run ? 'n'
                                                                       : 'f';
  if (noted.verdict == 'f') std::cerr << call.name() + ": not passed without a mutant: " + in_one_line(judgement.text) + "\n";
}

std::vector<Call> prepared(std::vector<Call> calls, const Noted* noted, int threads) {
  std::vector<Call> kept;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (noted[i].verdict != 'p') continue;
    for (int m = 0; m < kMostMutants; ++m) {
      if (noted[i].reached[m] != 0) calls[i].reaches.push_back(m);
    }
    if (calls[i].reaches.empty()) continue;
    calls[i].seconds = noted[i].seconds;
    kept.push_back(std::move(calls[i]));
    if (!noted[i].has_statement) continue;
    kept.back().stated = noted[i].stated;
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (std::size_t i; (i = next++) < kept.size();) {
        Call& call = kept[i];
        if (!call.stated) continue;
        conformance::Statements statements;
        statements.note(call.line, *call.stated);
        call.prepared = conformance::prepare(call.line, choice_of(call.way), statements);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  return kept;
}

}  // namespace assay::mutants
