#pragma once
// Written proofs that a mutant is no fault: the folder conformance/selftest/proofs.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/selftest/hunt/mutant_library.h"

namespace assay::conformance {

// A proof of one mutant, or of a set that a pattern names. A pattern is compared with "ID FAMILY SAYS"; * stands for any text.
struct Proof {
  std::string pattern, text;
  std::int64_t count = 1;  // mutants that it must match
};

class Proofs {
 public:
  // {"ID": "proof", ..., "sets": [{"mutants": "PATTERN", "count": N, "proof": "..."}]}
  // `path`: such a file, or a folder of them. Errors: golden::FixtureError naming the file and what is wrong, also where a set does
  // not match as many mutants as it says, a name stands twice, or two files prove the same mutant.
  static Proofs read(const std::string& path, const std::vector<Mutant>& mutants);

  // The proof of a mutant, or null.
  const std::string* of(const std::string& id) const;
  // Ids of the file that the library does not have.
  const std::vector<std::string>& unknown() const { return unknown_; }
  std::size_t size() const { return proofs_.size(); }

 private:
  void add(const std::string& path, const std::vector<Mutant>& mutants);

  struct Written {
    std::string text, file;
  };
  std::map<std::string, Written> proofs_;
  std::vector<std::string> unknown_;
};

// `pattern` with * against the whole of `text`.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace assay::conformance
