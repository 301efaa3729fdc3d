#pragma once
// Checks that the calls of assay::device share, on the host, beside check_rows().

#include <charconv>
#include <cstdint>
#include <string>

#include "device/layout/check_rows.h"
#include "device/support/format_name.h"
#include "reference/recipes/quantize.h"
#include "reference/types/format.h"

namespace assay::device {

inline constexpr std::int64_t kMaxColumns = kMaxRows;

inline bool is_wide(Format format) { return format == Format::bf16 || format == Format::f16 || format == Format::f32; }
inline bool is_fp8(Format format) { return format == Format::e4m3 || format == Format::e5m2; }
inline int wide_bytes(Format format) { return format == Format::f32 ? 4 : 2; }

// The shortest text that reads back as the same value.
inline std::string shown(float value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

inline void check_wide(Format format, const char* argument) {
  if (!is_wide(format)) require(false, argument, format_name(format), "bf16, f16 or f32");
}

// The reference may have recipes for which no kernel was written. Errors: NotSupported.
inline void check_recipe(Recipe recipe) {
  if (recipe <= Recipe::nvfp4) return;
  throw NotSupported("recipe is " + std::to_string(static_cast<std::uint32_t>(recipe)) +
                     ": the device has kernels for tensor_current to nvfp4 (0 to 5)");
}

// A pointer that may be null.
inline void check_alignment(const void* pointer, const char* argument, std::uintptr_t alignment) {
  if (!is_aligned(pointer, alignment)) require_pointer(pointer, argument, alignment);
}

// Rows and columns of a call. Eight bytes per element: no buffer of this matrix is then too large to address.
inline void check_matrix(const Rows& rows, std::int64_t columns) {
  if (columns < 0) require(false, "columns", columns, "a value of at least 0");
  std::int64_t bytes;
  if (rows.capacity > 0 && (__builtin_mul_overflow(rows.capacity, columns, &bytes) || __builtin_mul_overflow(bytes, 8, &bytes))) {
    require(false, "rows.capacity", rows.capacity, "a number of elements that fits int64");
  }
  check_rows(rows);
  if (columns > kMaxColumns) {
    throw NotSupported("columns is " + std::to_string(columns) + ": at most " + std::to_string(kMaxColumns) + " are supported");
  }
}

inline void check_workspace(const void* workspace, std::int64_t bytes, std::int64_t needed) {
  if (needed == 0) return;
  if (bytes < needed) require(false, "workspace_bytes", bytes, "at least " + std::to_string(needed));
  require_pointer(workspace, "workspace", 256);
}

}  // namespace assay::device
