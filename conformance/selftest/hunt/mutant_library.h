#pragma once
// The library of mutants (conformance/selftest/point_state.h), loaded into this process, and its mutants as a list.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/selftest/point_state.h"

namespace assay::conformance {

struct Mutant {
  std::int32_t number = 0;  // in the library
  std::string id, family, says;
  bool benign = false;
  // It makes a difference where the mutant with this number does so `times` times.
  std::int32_t base = 0, times = 1;
};

class MutantLibrary {
 public:
  // Errors: BackendError (ASSAY_INVALID_ARGUMENT) for a file that is no such library, or one of another build than this program.
  explicit MutantLibrary(const std::string& path);
  MutantLibrary(const MutantLibrary&) = delete;
  MutantLibrary& operator=(const MutantLibrary&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<Mutant>& mutants() const { return mutants_; }
  // Of every id, family and benign flag, in order: what a record of kills is about.
  const std::string& digest() const { return digest_; }
  // All numbers are below this.
  std::int32_t count() const { return functions_->count; }
  const assay_backend& table() const { return *functions_->table; }
  void select(std::int32_t number) const { functions_->select(number); }
  void record(std::uint8_t* effects, const std::uint8_t* meant = nullptr) const { functions_->record(effects, meant); }

 private:
  std::string path_, digest_;
  const assay_points::Library* functions_ = nullptr;
  std::vector<Mutant> mutants_;
};

// assay_mutants.so beside this program.
std::string mutant_library_beside_program();

}  // namespace assay::conformance
