#pragma once
// Checks that quantize, dequantize and dbias share: groups and pointers.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {

// Rows of each group of a matrix [rows, columns]: `splits`, or all rows where `grouped` is false. Errors
// (InvalidArgument): a negative size or split, splits that sum to more than `rows`, more elements than int64 counts.
inline std::vector<std::int64_t> checked_group_rows(std::int64_t rows, std::int64_t columns, bool grouped,
                                                    std::span<const std::int64_t> splits) {
  require(rows >= 0, "rows", rows, "a value of at least 0");
  require(columns >= 0, "columns", columns, "a value of at least 0");
  // Eight bytes per element: no buffer of this matrix can then be too large to address in bytes.
  checked_product(checked_product(rows, columns, "rows", rows), 8, "rows", rows);
  if (!grouped) return {rows};
  require(splits.empty() || splits.data() != nullptr, "splits", "null", "a pointer to the rows of each group");
  std::int64_t left = rows;
  for (std::size_t t = 0; t < splits.size(); ++t) {
    const auto name = [t] { return "splits[" + show(t) + "]"; };
    if (splits[t] < 0) throw InvalidArgument(name(), show(splits[t]), "a value of at least 0");
    if (splits[t] > left) throw InvalidArgument(name(), show(splits[t]), "splits that sum to at most rows, " + show(rows));
    left -= splits[t];
  }
  return {splits.begin(), splits.end()};
}

// Errors: null, or not aligned to an element of `element_bytes`, although there are `elements` to read or write.
inline void require_buffer(const void* buffer, std::int64_t elements, std::size_t element_bytes, std::string_view name) {
  if (elements == 0) return;
  require(buffer != nullptr, name, "null", "a pointer to " + show(elements) + " elements");
  require(reinterpret_cast<std::uintptr_t>(buffer) % element_bytes == 0, name, "misaligned",
          "an address that is a multiple of " + show(element_bytes));
}

// The same for an optional buffer.
inline void require_aligned(const void* buffer, std::int64_t elements, std::size_t element_bytes, std::string_view name) {
  if (buffer != nullptr) require_buffer(buffer, elements, element_bytes, name);
}

}  // namespace assay
