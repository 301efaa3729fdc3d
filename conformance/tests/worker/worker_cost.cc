// What a worker process costs: the generated cases of a profile judged with a shared library in a worker, as `assay run` does it,
// and in this process, alternately. It prints the wall time and the processor time of both; that of the worker is included.
//
//   worker_cost ./libexample.so standard 7
//
// Prints a line for each pair, and the medians. The library must be harmless: half of the calls are made here.

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/report/report.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/suite.h"
#include "conformance/worker/server.h"

namespace {

using namespace assay::conformance;

double seconds_of(const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; }

double processor_time() {
  double all = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    all += seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  }
  return all;
}

struct Cost {
  double processor = 0, wall = 0;
  std::int64_t passed = 0, absent = 0, other = 0;
};

void count(Verdict verdict, Cost& cost) {
  (verdict == Verdict::passed ? cost.passed : verdict == Verdict::not_run ? cost.absent : cost.other)++;
}

// In a worker if there is no `table`.
Cost judge_all(const std::vector<CaseLine>& lines, const std::string& library, const assay_backend* table) {
  BackendChoice choice;
  choice.name = library;
  Cost cost;
  const double before = processor_time();
  const auto start = std::chrono::steady_clock::now();
  if (table != nullptr) {
    Backend backend(*table);
    const Judged judged{backend, nullptr};
    for (const CaseLine& each : lines) {
      backend.begin_case();
      count(judge_line(each, judged, choice).judgement.verdict, cost);
    }
    backend.close();
  } else {
    Report report("worker_cost", TestedBackend{}, 0);
    judge_lines(lines, choice, {}, false, report);
    close_backends(report);
    for (const CaseReport& each : report.cases()) count(each.judgement.verdict, cost);
  }
  cost.processor = processor_time() - before;
  cost.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return cost;
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = worker::serve_as_worker(argc, argv)) return *code;
  if (argc < 4) return std::fprintf(stderr, "usage: worker_cost LIBRARY PROFILE PAIRS\n"), 2;
  const auto profile = profile_named(argv[2]);
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  const auto entry = library == nullptr ? nullptr : reinterpret_cast<assay_backend_entry>(dlsym(library, ASSAY_BACKEND_ENTRY));
  if (entry == nullptr || !profile) return std::fprintf(stderr, "no such library or profile\n"), 2;
  const std::vector<CaseLine> lines = catalogue(*profile);
  std::vector<double> processor, wall;
  for (int i = 0; i < std::atoi(argv[3]); ++i) {
    Cost here, there;
    for (const bool worker : {i % 2 == 0, i % 2 != 0})
      (worker ? there : here) = judge_all(lines, argv[1], worker ? nullptr : entry());
    std::printf(
        "here %.3f s processor, %.3f s wall; worker %.3f s processor, %.3f s wall; %lld passed, %lld absent, %lld other\n",
        here.processor, here.wall, there.processor, there.wall, static_cast<long long>(there.passed),
        static_cast<long long>(there.absent), static_cast<long long>(there.other));
    std::fflush(stdout);
    processor.push_back(there.processor / here.processor);
    wall.push_back(there.wall / here.wall);
  }
  std::printf("%zu cases, worker to here: processor time %.3f, wall %.3f (medians of %zu pairs)\n", lines.size(),
              median(processor), median(wall), processor.size());
}
