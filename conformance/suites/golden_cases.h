#pragma once
// The fixtures that the reference makes: golden/cases/NAME.txt lists the case lines of golden/NAME.h5.

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// Lines of a list; blank lines and those that start with # are skipped.
// Errors: FixtureError naming the file and the line at fault.
std::vector<CaseLine> read_case_list(const std::filesystem::path& path);

// The lists of a golden folder, sorted.
std::vector<std::filesystem::path> case_lists(const std::filesystem::path& golden_folder);

// Inputs and expected outputs of every line. Cases are named by their line's name. After an interrupt (interrupt.h) the
// fixture is not whole.
golden::Fixture make_fixture(const std::filesystem::path& list);

// Errors: InvalidArgument if the outputs of a case from a file of unknown origin take more memory than 64 MiB and 1024 times
// the tensors that the file has for it, or more than the machine has to spare: a few numbers in a file can ask for any size.
void require_room(const Case& each);

// Gives a case every output that its op has (or only the `wanted` ones), as the reference answers. Bytes that an op leaves
// untouched are 0.
void fill_outputs(Case& each, const std::vector<std::string>* wanted = nullptr);

// 1 if fixture schema 1 can hold the case, else 2.
std::int64_t schema_of(const Case& each);

}  // namespace assay::conformance
