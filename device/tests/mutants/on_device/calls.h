#pragma once
// The calls that mutants are planted under, each a case of the catalogue that the judge of the suite decides.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/judge/prepared_case.h"
#include "conformance/suites/judge_line.h"
#include "device/tests/mutants/on_device/library.h"

namespace assay::mutants {

// Options of the backend under which calls are made: products by the vendor's library where it can, and by our kernels.
inline const char* const kWays[] = {"", "gemm=emulated", "lists=on"};

struct Call {
  conformance::CaseLine line;
  int way = 0;                           // of kWays
  std::vector<int> reaches;              // numbers of the mutants whose point it evaluates
  double seconds = 0;                    // that it took without a mutant
  std::optional<assay_numerics> stated;  // what the backend states of it
  // Inputs and expected outputs, computed once. Null for a call whose judge makes many.
  std::shared_ptr<conformance::PreparedCase> prepared;

  std::string name() const;
};

// A call and what it was found to be without a mutant. Plain memory, which processes share.
struct Noted {
  char verdict;  // 0: not made; 'p': passed; 'n': not run; 'f': failed; 'e': the device failed, or the process ended
  bool has_statement;
  float seconds;  // that the call took
  assay_numerics stated;
  std::uint8_t reached[kMostMutants];
};

// Lines of at most `elements` elements and `products` products, each with its ways.
// Cheap ones first, and among those that cost about the same in an order that the seed decides: the first of them are a fair sample.
std::vector<Call> calls_of(const std::vector<conformance::CaseLine>& lines, std::int64_t elements, std::int64_t products,
                           std::uint64_t seed);

// A well mixed value of the numbers.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c);

// Seconds after which a call with a mutant does not end.
std::int64_t limit_of(const Call& call);

// The library on a device. One in a process.
class OpenLibrary {
 public:
  // Errors: std::runtime_error, BackendError.
  OpenLibrary(const std::string& path, int device);
  const Library& mutants() const { return *mutants_; }
  std::string device();
  // The judge's verdict.
  conformance::Judgement judge(const Call& call);
  // Makes the call with no mutant, and notes what it reaches. Says why a call does not pass. Errors: std::runtime_error where the
  // device fails.
  void note(const Call& call, Noted& noted);
  // False after an error that the process cannot recover from.
  bool plant(int number);

 private:
  conformance::Judgement judge(const Call& call, std::int64_t limit_seconds);
  conformance::Backend& backend(int way);
  const Library* mutants_ = nullptr;
  int device_;
  std::unique_ptr<conformance::Backend> backends_[std::size(kWays)];
};

// The calls that passed, with their expected outputs.
std::vector<Call> prepared(std::vector<Call> calls, const Noted* noted, int threads);

}  // namespace assay::mutants
