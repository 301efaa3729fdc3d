// The table of spec tensor-core-2.1: the built-in rows, and those that the caller adds.

#include "reference/arithmetic/unit_table.h"

#include <deque>

#include "reference/arithmetic/unit_text.h"
#include "reference/types/error.h"

namespace assay {
namespace {

// Tables that were ever given out; the last one is the present one. Never destroyed: rows are used until the program ends.
std::deque<std::vector<TensorCoreUnit>>& tables() {
  static auto* all = new std::deque<std::vector<TensorCoreUnit>>{parse_units(kUnitText, "reference/arithmetic/units.txt")};
  return *all;
}

}  // namespace

std::span<const TensorCoreUnit> tensor_core_units() { return tables().back(); }

const TensorCoreUnit* find_tensor_core_unit(std::string_view name) {
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

void add_tensor_core_units(std::string_view text, std::string_view file) {
  std::vector<TensorCoreUnit> table = tables().back();
  const std::size_t before = table.size();
  for (const TensorCoreUnit& each : parse_units(text, file)) {
    const TensorCoreUnit* known = find_tensor_core_unit(each.name);
    if (known == nullptr) {
      table.push_back(each);
    } else if (to_text(*known) != to_text(each)) {
      require(false, std::string(file) + ": name", each.name, "a new name, or the row that has it: " + to_text(*known));
    }
  }
  if (table.size() > before) tables().push_back(std::move(table));
}

}  // namespace assay
