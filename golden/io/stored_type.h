#pragma once
// How a number lies in an HDF5 file: the table of fixtures.md that gives each `dtype` its storage.

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/formats/format.h"

namespace assay::golden {

// The format with this `dtype`, or nothing if the schema has none of that name.
std::optional<Format> dtype_named(std::string_view name);

// "f32, i32, i64, ...": for messages.
std::string dtype_names();

// "float32", "uint16 (raw bits)", ...: what a dataset of this format is stored as. Errors: a format that has no dtype.
std::string_view storage_name(Format format);

// The little-endian HDF5 type of that storage, which is what the writer uses on every machine.
hid_t storage_type(Format format);

// True if `type` is that storage, in either byte order.
bool stored_as(hid_t type, Format format);

// A plain number: an integer of 1, 2, 4 or 8 bytes or an IEEE float of 4 or 8, without padding.
struct StoredNumber {
  int bytes;
  bool is_float;
  bool is_signed;
  bool swapped;  // in the other byte order than this machine's
};

// What `type` is, or nothing if it is not a plain number.
std::optional<StoredNumber> stored_number(hid_t type);

}  // namespace assay::golden
