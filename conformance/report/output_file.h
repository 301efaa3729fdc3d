#pragma once
// Files that the program writes beside its standard output: reports, verdicts, lists.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace assay::conformance {

// Checks before a long run that the path can be written, and fails as writing would. Changes nothing.
// Errors: golden::OutputError naming the path and the reason, golden::FixtureError for a folder.
void check_output(const std::string& path);

// Writes a file whole or not at all; a symbolic link stays one, and an existing file keeps its mode. What is not a regular
// file (a pipe, /dev/stdout) is written to. Errors: as above.
void write_output(const std::string& path, std::string_view text);

// A pipe, a terminal or /dev/null: written to, not replaced.
bool is_special(const std::string& path);
// Opens for writing; waits for the first reader of a pipe. Errors: golden::OutputError, also after a request to end the program.
int open_special(const std::string& path);
// Writes every byte; waits for the reader of a full pipe. Errors: as above.
void write_all(int descriptor, const std::string& path, std::string_view text);

// As indented JSON; bytes that are not UTF-8 are replaced by U+FFFD.
void write_json(const std::string& path, const nlohmann::json& contents);

}  // namespace assay::conformance
