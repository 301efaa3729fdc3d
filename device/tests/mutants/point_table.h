#pragma once
// The mutants of one program, by number.

namespace assay::mutants {

struct Mutant {
  const char* file;
  int line;
  const char* name;
  const char* change;
};
extern const Mutant kMutants[];
extern const int kCount;

// Whether the kernels are compiled with the address sanitizer (checked_guards.cc). Such a program plants the mutants of its own record,
// or with --again those that the record of the room has as open.
extern const bool kChecked;

}  // namespace assay::mutants
