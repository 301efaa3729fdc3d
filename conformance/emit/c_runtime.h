#pragma once
// The parts of an emitted C file that are the same in each.

namespace assay::conformance {

// How the file is used; inside its first comment.
extern const char* const kCUsage;
// The structures, and the declarations of what the user writes and calls.
extern const char* const kCTypes;
// How outputs are compared: structures that the tables use.
extern const char* const kCExpected;
// Fills outputs, compares them, and main(). Follows the tables.
extern const char* const kCProgram;

}  // namespace assay::conformance
