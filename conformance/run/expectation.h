#pragma once
// What a case must come to, and whether it did.

#include <map>
#include <string>
#include <vector>

#include "conformance/backend.h"
#include "conformance/run/judge.h"
#include "reference/gemm/error_bound.h"

namespace assay::conformance {

class Expectation {
 public:
  // `stated` is what the backend says of its numbers: its accumulation plan is the one that is followed, its sign of zero
  // the one that is expected. Errors: as judge().
  Expectation(const golden::Case& problem, const golden::Case* fixture, const std::vector<OutputSpec>& specs,
              const assay_numerics& stated, const JudgeOptions& options);

  Ground ground() const { return ground_; }
  std::int64_t words() const { return words_; }  // elements that will be compared
  // Not empty when the statement itself cannot be followed: a plan or a unit that is not in the tables.
  const std::string& statement_fault() const { return statement_fault_; }

  // The outputs of a call whose outputs were filled with `poison` first. Empty when all is right; else a block of lines for
  // each output that is wrong (compare.h).
  std::string differences(const std::map<std::string, std::vector<std::byte>>& outputs, std::uint8_t poison) const;

  // Elements that two runs of the call wrote differently: what was there before the call, or something else that is not an
  // input, took part. Empty when there are none; else lines as above.
  std::string disagreement(const std::map<std::string, std::vector<std::byte>>& first,
                           const std::map<std::string, std::vector<std::byte>>& second) const;

 private:
  struct Output {
    OutputSpec spec;
    std::vector<std::byte> want;
    std::vector<std::uint8_t> written;  // by byte: 1 where the op writes
    bool zero_sign_free = false;
  };
  golden::Case problem_;
  std::vector<Output> outputs_;
  std::vector<CertifiedBound> bounds_;  // ground bound: one for each element of `d`
  Ground ground_ = Ground::bits;
  std::int64_t words_ = 0;
  std::string statement_fault_;
};

}  // namespace assay::conformance
