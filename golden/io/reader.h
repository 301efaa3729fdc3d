#pragma once
// Reads a fixture file (schema 1 or 2) into memory, after every claim in it has been checked.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/io/fixture.h"
#include "golden/io/fixture_error.h"

namespace assay::golden {

inline constexpr std::int64_t kNewestSchema = 2;

struct ReadLimits {
  std::int64_t bytes = std::int64_t{8} << 30;       // of all tensors together; a shared dataset counts once for each link
  std::int64_t objects = 1'000'000;                 // links, and so groups and datasets, in the file
  std::int64_t attributes = 1'000;                  // of one object
  std::int64_t text = std::int64_t{16} << 20;       // bytes of one string
  std::int64_t all_text = std::int64_t{256} << 20;  // bytes of all paths, names and strings; a shared one counts at each use
  int depth = 64;                                   // of groups in groups
};

// Objects of a file that are not part of the fixture and are not read: attributes of groups that are not cases and of datasets,
// datasets and types outside cases.
struct LeftOut {
  static constexpr std::size_t kMaxNamed = 20;
  std::int64_t count = 0;
  std::vector<std::string> named;  // the first of them, fit for a line of output: "attribute author of /", "dataset /raw/x"
};

// What is read of a fixture: all, or its cases without their tensors, which are neither opened nor checked.
enum class Extent { whole, outline };

// The fixture in a file, its cases in the order of their names (compared byte by byte).
//
// What is accepted (golden/schema.md):
// - A case is a group with a string attribute `op`. It holds the group `in`, and `out` if there are expected values,
//   with nothing but datasets in them, and may hold further cases. Anything else in a case is an error, as is a group
//   that holds an `in` or `out` with datasets but has no `op`: a misspelt attribute must not hide a case.
//   A case at the root of the file is named "/".
// - Groups outside cases only give names. Datasets outside cases are ignored: they may be link targets.
// - Attributes: integers of 1 to 8 bytes (enumerations of them included, which is how numpy stores bool) become int64,
//   float32 and float64 become float64, strings (UTF-8) may be fixed or variable in length. A scalar or one element.
// - Datasets: at most 8 extents; storage exactly as the schema says for the `dtype`, in either byte order (bytes are
//   swapped to native, never converted). float16, float32, int32 and int64 need no `dtype`. Contiguous, compact or chunked, with the filters that HDF5 itself brings.
//   What was never written reads as the dataset's fill value, as HDF5 defines it.
// - `provenance` may be absent only where no case has expected values.
// - Only hard links. A dataset may have many, and so may `in` and `out`; any other group has one, so there are no cycles.
// - Names: UTF-8 without control characters (utf8.h says which), once in a group.
//
// Sizes are checked before memory is taken: a dataset may claim no more than the whole file could hold at the highest
// ratio of gzip, and all of them together no more than `limits.bytes`. Then `admitted` is called with the bytes of all
// tensors; it may throw. `begins` is called with each object before HDF5
// works on it, so that the object can be named should the process end there.
// `left_out` receives the objects of the file that are not in the fixture.
//
// A file that changes while it is read is an error.
//
// Errors: FixtureError, always one line (LacksMemory if an allocation failed). libhdf5 itself may crash on a damaged file: use
// contained_reader.h for a file of unknown origin.
Fixture read_fixture(const std::filesystem::path& path, const ReadLimits& limits = {},
                     const std::function<void(std::int64_t bytes)>& admitted = {},
                     const std::function<void(std::string_view object)>& begins = {}, LeftOut* left_out = nullptr,
                     Extent extent = Extent::whole);

}  // namespace assay::golden
