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

}  // namespace assay::mutants
