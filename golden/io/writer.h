#pragma once
// Writes a fixture file whose bytes depend on nothing but the fixture and the versions of libhdf5 and zlib.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "golden/io/fixture.h"
#include "golden/io/fixture_error.h"

namespace assay::golden {

struct WriteOptions {
  // Equal tensors are one dataset with several links, outputs too. If false, each output is an object of its own, so that a
  // change to one in place changes no other.
  bool shares_outputs = true;
  // Tensors of more than 1 MiB are stored uncompressed: gzip takes most of the time to write them and saves a quarter.
  bool leaves_large_uncompressed = false;
};

// The bytes of the file that holds `fixture`, with its cases in the order of their names.
//
// The same fixture gives the same bytes on every machine with the same libhdf5 and zlib: no times are stored, the file
// format version, chunk shapes and compression are fixed, numbers are little-endian. Another version may lay the file
// out otherwise or compress better; contents_digest (manifest.h) is what then still agrees.
// Tensors that are the same are stored once and linked. Tensors of 1 KiB and more are shuffled and gzipped in chunks of
// at most 1 MiB. Strings are variable-length UTF-8, so h5py gives them as str.
//
// Errors: InvalidArgument if the fixture could not be read back unchanged: no case, an unknown schema, two cases
// of one name, a name that is no path (empty parts, ".", control characters, not UTF-8), a case named as the `in` or
// `out` of another, an attribute `op`, a dtype without storage, bytes that do not fill the shape, text with NUL or not
// UTF-8, expected values without provenance.
std::vector<std::byte> fixture_image(const Fixture& fixture, const WriteOptions& options = {});

// Writes fixture_image to `path`: into a file beside it that then takes its name, so that `path` never holds a part.
// Errors: as above, and those of replace_file.
void write_fixture(const std::filesystem::path& path, const Fixture& fixture, const WriteOptions& options = {});

}  // namespace assay::golden
