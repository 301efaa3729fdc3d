#pragma once
// What calls were found to be without a mutant, kept for the next hunt with the same library.

#include <map>
#include <string>
#include <vector>

#include "device/tests/mutants/on_device/calls.h"

namespace assay::mutants {

// Notes of calls by their names.
using Notes = std::map<std::string, Noted>;

// The notes of a file; none if it is not there. `keys`: the mutants of the library, by number. Errors: std::runtime_error if the file
// is of a library with other mutants, or is no such file.
Notes read_notes(const std::string& path, const std::vector<std::string>& keys);

// Errors: std::runtime_error.
void write_notes(const std::string& path, const std::vector<std::string>& keys, const Notes& notes);

}  // namespace assay::mutants
