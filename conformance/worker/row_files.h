#pragma once
// Files with further rows of a table, which the program is given with an option or in a variable of the environment: units
// (--units, ASSAY_UNITS; reference/spec/tensor-core.md, clause 2.2) and scale rules (--presets, ASSAY_PRESETS;
// reference/spec/scale-rules.md, clause 1.2).

#include <string>
#include <string_view>
#include <vector>

namespace assay::conformance::worker {

struct RowTable {
  const char* option;    // "--units"
  const char* variable;  // "ASSAY_UNITS"
  const char* file;      // "a file of units", in messages
  void (*add)(std::string_view text, std::string_view file);
};
extern const RowTable kUnitRows, kPresetRows;

// Adds the rows of these files, after those of the variable, to the table, and puts all of them into the variable: workers
// inherit it and do the same. To be called before threads are started. Errors: InvalidArgument, which names the file.
void use_row_files(const RowTable& table, const std::vector<std::string>& files);

// The files in use, in order, each once.
std::vector<std::string> row_files(const RowTable& table);

// Both tables, with the options that name their files: " --units 'my.txt' --presets ...", as a command is pasted.
template <class Quote>
std::string row_file_options(Quote quote) {
  std::string text;
  for (const RowTable* table : {&kUnitRows, &kPresetRows}) {
    for (const std::string& each : row_files(*table)) text += std::string(" ") + table->option + " " + quote(each);
  }
  return text;
}

}  // namespace assay::conformance::worker
