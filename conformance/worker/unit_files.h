#pragma once
// Files with further rows for the table of units (reference/spec/tensor-core.md, clause 2.2), which the program is given with
// --units or in the variable ASSAY_UNITS.

#include <string>
#include <vector>

namespace assay::conformance::worker {

// Adds the rows of these files, after those of ASSAY_UNITS, to the table, and puts all of them into ASSAY_UNITS: workers
// inherit it and do the same. To be called before threads are started. Errors: InvalidArgument, which names the file.
void use_unit_files(const std::vector<std::string>& files);

// The files in use, in order, each once.
std::vector<std::string> unit_files();

}  // namespace assay::conformance::worker
