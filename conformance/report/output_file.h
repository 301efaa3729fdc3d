#pragma once
// Files that the program writes beside its standard output: reports, verdicts, lists.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace assay::conformance {

// Fails now as writing would fail later, for a path that is named before a long run. Nothing is changed.
// Errors: golden::OutputError naming the path and the reason, golden::FixtureError for a folder.
void check_output(const std::string& path);

// Writes a file whole or not at all; a symbolic link stays one, and a file that is there keeps its mode. What is no regular
// file (a pipe, /dev/stdout) is written to. Errors: as above.
void write_output(const std::string& path, std::string_view text);

// A pipe, a terminal or /dev/null: written to, not replaced.
bool is_special(const std::string& path);
// For writing; of a pipe the first reader is waited for. Errors: golden::OutputError, also once the program is asked to end.
int open_special(const std::string& path);
// Every byte; where a pipe is full its reader is waited for. Errors: as above.
void write_all(int descriptor, const std::string& path, std::string_view text);

// As indented JSON; bytes that are not UTF-8 are replaced by U+FFFD.
void write_json(const std::string& path, const nlohmann::json& contents);

}  // namespace assay::conformance
