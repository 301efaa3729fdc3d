#pragma once
// Which element of an output belongs to which group and where in it. An output is a row of segments, one per group: a matrix
// [rows, columns] each, of which a part is in use. What follows the last segment belongs to rows beyond the splits.

#include <cstdint>
#include <string>
#include <vector>

#include "golden/io/fixture.h"

namespace assay::conformance {

enum class Swizzle { none, straight, flipped };  // flipped: the 128x4 map of the transposed scale matrix (mxfp8 columnwise)

struct Segment {
  std::int64_t group = 0;
  std::int64_t first = 0;  // element of the output where it begins; e2m1 counts codes
  std::int64_t rows = 0, columns = 0;
  std::int64_t used_rows = 0, used_columns = 0;
  Swizzle swizzle = Swizzle::none;
  std::int64_t elements() const { return rows * columns; }
};

// Row and column of the element `offset` of a segment.
struct Coordinates {
  std::int64_t row = 0, column = 0;
};
Coordinates coordinates_of(const Segment& segment, std::int64_t offset);
// The inverse.
std::int64_t offset_of(const Segment& segment, Coordinates at);

struct OutputMap {
  std::string row_name = "row", column_name = "column";  // "": not shown
  bool grouped = false;
  bool is_scale = false;  // scales of blocks: a wrong one may be another block's
  std::vector<Segment> segments;
  std::int64_t elements = 0;  // e2m1: codes
};

// The map of output `name` of this case, for a tensor of this type and shape. Ops and names beyond the fixture schema and
// shapes that do not fit the case give one plain matrix.
OutputMap map_output(const Case& problem, const std::string& name, const Tensor& tensor);

}  // namespace assay::conformance
