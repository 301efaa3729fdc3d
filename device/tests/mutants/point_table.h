#pragma once
// The mutants of one program, by number.

#include <cstdint>

namespace assay::mutants {

struct Mutant {
  const char* file;
  int line;
  const char* name;
  const char* change;
};
extern const Mutant kMutants[];
extern const int kCount;
extern std::uint8_t reached[];  // of mutation.h

}  // namespace assay::mutants
