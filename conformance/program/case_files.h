#pragma once
// --cases FILE: the cases of text files in place of the catalogue's.

#include <string>
#include <vector>

#include "conformance/catalogue/catalogue.h"

namespace assay::conformance {

// The cases that `profile` takes of these files (conformance/catalogue/case_text.h; without marks every profile takes all), none
// twice: the sections [smoke] of all files, then [standard], then [full]. Empty where the files have larger sections alone.
//
// Errors (cli::ValidationError, which names --cases, the file and the line): a file that cannot be read, is no regular file, is
// larger than 16 MiB, holds a control character, a line that is no case or no case at all; over 256 MiB of canonical text.
std::vector<CaseLine> cases_of_files(const std::vector<std::string>& paths, Profile profile);

// The paths as a message names them: "mine.txt, more.txt".
std::string names_of_files(const std::vector<std::string>& paths);

}  // namespace assay::conformance
