#pragma once
// golden/manifest.json: the list of fixtures, with the digest and the origin of each.
//
// A fixture that the reference made is rebuilt and compared (`origin` is "reference"); one recorded from another
// library cannot be, and is pinned by its digest ("outside").

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "golden/io/fixture.h"
#include "golden/io/fixture_error.h"

namespace assay::golden {

struct ManifestEntry {
  std::string file;                           // beside the manifest
  std::string origin;                         // "reference" or "outside"
  std::int64_t bytes = 0;                     // of the file
  std::string sha256;                         // of the file
  std::string contents;                       // contents_digest of the fixture in it
  std::map<std::string, std::int64_t> cases;  // how many of each op
  std::string provenance;                     // JSON text: the value in the file, spaced as the manifest has it
};

// In the order of the files' names.
using Manifest = std::vector<ManifestEntry>;

// SHA-256 of the contents of a fixture, independent of the layout of its file: of schema, provenance and cases in the order of
// their names, each number as 8 little-endian bytes, each text and tensor preceded by its length. Two files with the same
// contents digest give the same fixture, also if another version of libhdf5 or zlib wrote other bytes.
std::string contents_digest(const Fixture& fixture);

// The entry for a fixture file. Errors: FixtureError if it cannot be read.
ManifestEntry describe(const std::filesystem::path& path, const std::string& origin);

// Errors: FixtureError if the file cannot be read or is no manifest; the object names the place in it, such as
// "fixtures[2].sha256".
Manifest read_manifest(const std::filesystem::path& path);

// Writes a manifest; the same entries give the same bytes. Errors: FixtureError if the file cannot be written.
void write_manifest(const std::filesystem::path& path, const Manifest& manifest);

// Compares a folder with its manifest.json: every listed file is there with its size and digest, and every *.h5 is
// listed. Returns one line for each deviation. Errors: FixtureError if there is no readable manifest.
std::vector<std::string> check_manifest(const std::filesystem::path& folder);

}  // namespace assay::golden
