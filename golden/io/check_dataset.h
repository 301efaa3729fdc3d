#pragma once
// Type, shape and storage of a dataset, checked before memory is allocated for it.

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

#include "golden/io/read_context.h"
#include "reference/types/format.h"

namespace assay::golden {

inline constexpr int kMaxRank = 8;

struct Dataset {
  Format type = Format::f32;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
};

// Type, shape and storage of the open dataset at `path`. Errors: FixtureError if it is not what reader.h accepts.
Dataset check_dataset(ReadContext& context, hid_t dataset, const std::string& path);

}  // namespace assay::golden
