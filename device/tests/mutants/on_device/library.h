#pragma once
// What the sources of the library of mutated kernels share, and what the library shares with the program that plants them.

#include <cstdint>

#include "conformance/backend.h"

namespace assay::mutants {

constexpr int kMostMutants = 12288;  // numbers that a source has room for
constexpr int kNone = -1, kRecords = -2;

// What the kernels of a source read.
struct Chosen {
  int number;
  std::uint8_t* reached;  // [kMostMutants] on the device: while recording, 1 where a thread evaluated the point
};

// A source that nvcc compiled: a link of a list, made as the library is loaded.
struct Source {
  explicit Source(bool (*choose_here)(const Chosen&));
  bool (*choose)(const Chosen& now);  // enqueues the change
  const Source* next;
};

extern int chosen_by_host;
extern std::uint8_t reached_by_host[kMostMutants];

struct MutantRow {
  const char* file;
  int line;
  const char* name;
  const char* change;
};

// Functions for one thread, between calls; with a device: false where it has failed.
struct Library {
  std::int32_t size;   // of this structure
  std::int32_t count;  // mutants
  const MutantRow* mutants;
  bool (*choose)(int number);               // kNone: none; kRecords: none, and points that are reached are noted
  bool (*take_reached)(std::uint8_t* all);  // [kMostMutants]: 1 where a point was reached since the last time
  const assay_backend* backend;
  const char* (*last_error)();  // why the device has failed
};

}  // namespace assay::mutants
