#pragma once
// The storage of a number in an HDF5 file: the table of golden/schema.md that gives each `dtype` its storage.

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reference/types/format.h"

namespace assay::golden {

// The format with this `dtype`, or nothing if the schema has none of that name.
std::optional<Format> dtype_named(std::string_view name);

// "f32, i32, i64, ...": for messages.
std::string dtype_names();

// "float32", "uint16 (raw bits)", ...: what a dataset of this format is stored as. Errors: a format that has no dtype.
std::string_view storage_name(Format format);

// The little-endian HDF5 type of that storage, which is what the writer uses on every machine.
hid_t storage_type(Format format);

// True if `type` is that storage, in either byte order; f16 may also be stored as an IEEE float of 2 bytes.
bool stored_as(hid_t type, Format format);

// The format of a dataset of `type` that has no attribute `dtype`: f16, f32, i32 or i64 where it is that number. Nothing for
// other types: bytes and words of 16 bits can be several formats.
std::optional<Format> format_of_plain(hid_t type);

// A plain number: an integer of 1, 2, 4 or 8 bytes or an IEEE float of 2, 4 or 8, without padding.
struct StoredNumber {
  int bytes;
  bool is_float;
  bool is_signed;
  bool swapped;  // in the other byte order than this machine's
};

// The properties of `type`, or nothing if it is not a plain number.
std::optional<StoredNumber> stored_number(hid_t type);

// Reverses the bytes of each number of `width` bytes.
void swap_bytes(std::span<std::byte> bytes, std::size_t width);

}  // namespace assay::golden
