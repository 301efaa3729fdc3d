#pragma once
// What the library of mutants and the program share.

#include <cstdint>

#include "conformance/backend.h"

namespace assay_points {

constexpr int kVariants = 4;  // of a point, at most

// `point` for the right arithmetic, and for recording which mutants would make a difference.
constexpr std::int32_t kOff = INT32_MAX, kRecord = -1;

// Read by every point when it is reached: the compiler cannot know which is wrong.
struct State {
  volatile std::int32_t point = kOff;
  std::int32_t variant = 0;
  // Of the times that the point makes a difference, which are wrong: number `first`, and `times` in all.
  std::int64_t first = 0, times = INT64_MAX;
  std::int64_t seen = 0;  // times that it could have made a difference
  // While recording: one a mutant, the times that it makes a difference, up to 255; and which are noted, null: all.
  std::uint8_t* effects = nullptr;
  const std::uint8_t* meant = nullptr;
  std::uint8_t* noted = nullptr;  // while recording: one a point, 0 where nothing is left to be noted
};

struct PointRow {
  std::int32_t number;
  const char* kind;  // "less"
  const char* name;  // "fp8_block_scalar.3fa2c1d0": lasts while the text of the line does
  const char* file;
  int line;
  const char* text;  // the operator or operand
  const char* code;  // the line
};

// One way to be wrong, or, if it is benign, another way to be right.
struct MutantRow {
  const char* id;      // as --backend-options mutant=ID has it; null: the point has no such variant
  const char* family;  // "points", "once", "calls", ...
  const char* says;    // what is wrong
  bool benign;
  // Another mutant that makes a difference where this one does, which needs it `times` times; -1: `effects` knows this one itself.
  std::int32_t base = -1;
  std::int32_t times = 1;
};

struct Library {
  std::int32_t size;                    // of this structure: a library of another build is refused
  std::int32_t count;                   // mutants
  const MutantRow* mutants;             // [count]
  void (*select)(std::int32_t mutant);  // -1: none. Affects calls from now on
  // For calls from now on, each [count]; null `effects`: no more. Only those with meant[i] != 0 need be noted; null: all.
  void (*record)(std::uint8_t* effects, const std::uint8_t* meant);
  const assay_backend* table;

  // The numbers of points that the machine code holds, in no order and some more than once: a point that the compiler removed is
  // not among them.
  const PointRow* points;
  std::int32_t point_count;
  const std::int32_t *compiled, *compiled_end;

  const char* build;  // the commit, as of build_commit() of the program
};

}  // namespace assay_points

extern "C" const assay_points::Library* assay_mutant_library();
