#pragma once
// A fixture file in memory.

#include <cstdint>
#include <string>
#include <vector>

#include "reference/types/case.h"

namespace assay::golden {

// A file: its root attributes and its cases in the order of their names.
struct Fixture {
  std::int64_t schema = 1;
  std::string provenance;  // JSON text
  std::vector<Case> cases;
};

// True when schema, provenance and every case are the same. Attributes of type float64 are compared by their bits.
bool same_fixture(const Fixture& a, const Fixture& b);

}  // namespace assay::golden
