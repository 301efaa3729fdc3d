#pragma once
// The text of the table of units: rows read, checked and written (spec tensor-core-2.2).

#include <string>
#include <string_view>
#include <vector>

#include "reference/arithmetic/tensor_core.h"

namespace assay {

// The rows of `text`, which messages call `file`. The texts and lists of a row live as long as the program.
// Errors: InvalidArgument, as "my.txt:3: products is 65: expected a whole number from 1 to 64".
std::vector<TensorCoreUnit> parse_units(std::string_view text, std::string_view file);

// Adds the rows of `text` to tensor_core_units(), all or none of them. A row that is in the table already, in equal
// words, changes nothing. Rows given out before stay valid, and lists given out before keep their rows. Call it before
// other threads read the table. Errors: InvalidArgument for a row that is at fault, or whose name another row has.
void add_tensor_core_units(std::string_view text, std::string_view file);

// "fused", "joined", ...
std::string_view name_of(StepSum sum);

// The row as it stands in a file, in one line: fields that have their plain value are left out.
std::string to_text(const TensorCoreUnit& unit);

}  // namespace assay
