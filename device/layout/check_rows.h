#pragma once
// Checks of a call on a ragged matrix, on the host.

#include <cstdint>
#include <string>

#include "device/layout/group_table.cuh"
#include "device/layout/groups.h"
#include "device/support/error.h"

namespace assay::device {

// Throws InvalidArgument("NAME is VALUE: expected EXPECTED") unless `holds`.
inline void require(bool holds, const std::string& argument, const std::string& value, const std::string& expected) {
  if (!holds) throw InvalidArgument(argument + " is " + value + ": expected " + expected);
}
inline void require(bool holds, const std::string& argument, std::int64_t value, const std::string& expected) {
  if (!holds) throw InvalidArgument(argument + " is " + std::to_string(value) + ": expected " + expected);
}
inline bool is_aligned(const void* pointer, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}
inline void require_pointer(const void* pointer, const std::string& argument, std::uintptr_t alignment = 1) {
  if (pointer == nullptr) throw InvalidArgument(argument + " is null: expected device memory");
  if (!is_aligned(pointer, alignment)) {
    throw InvalidArgument(argument + " is misaligned: expected a multiple of " + std::to_string(alignment) + " bytes");
  }
}

inline void check_rows(const Rows& rows) {
  require(rows.capacity >= 0, "rows.capacity", rows.capacity, "a value of at least 0");
  if (rows.capacity > kMaxRows) {
    throw NotSupported("rows.capacity is " + std::to_string(rows.capacity) + ": at most " + std::to_string(kMaxRows) +
                       " rows are supported");
  }
  if (rows.splits == nullptr) {
    require(rows.groups == 1, "rows.groups", rows.groups, "1 without splits");
  } else {
    require(rows.groups >= 0, "rows.groups", rows.groups, "a value of at least 0");
    require(rows.groups <= kMaxGroups, "rows.groups", rows.groups, "at most " + std::to_string(kMaxGroups));
    require_pointer(rows.splits, "rows.splits", static_cast<std::uintptr_t>(rows.split_bytes()));
  }
}

}  // namespace assay::device
