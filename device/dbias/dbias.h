#pragma once
// Column sums of each group on the device, in the order of reference/recipes/dbias.h: halves of 64 rows, tiles of 128,
// tiles in sequence, all in f32. The result does not depend on the launch.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/support/error.h"
#include "device/support/stream.h"
#include "reference/types/format.h"

namespace assay::device {

struct DbiasCall {
  Format x_type = Format::bf16;
  const void* x = nullptr;  // device [rows.capacity, columns]
  Rows rows;
  std::int64_t columns = 0;
  Format output_type = Format::f32;  // f32, bf16, f16
  void* dbias = nullptr;             // device [G, columns]
  const float* added_to = nullptr;   // device f32 [G, columns]: dbias = added_to + sums, f32 output only; null: none
  void* workspace = nullptr;         // dbias_workspace_bytes()
  std::int64_t workspace_bytes = 0;
  std::uint32_t* status = nullptr;
};
std::int64_t dbias_workspace_bytes(const DbiasCall& call);
void grouped_dbias(const DbiasCall& call, Stream stream);

// The second half alone: from the tile sums that a quantize kernel left in the workspace ([tiles, columns] f32, tile i of
// group t at row sum over s<t of ceil(splits[s]/128), plus i), with the same noop flag. If a group is not a multiple of
// `rows_multiple` rows there are no tile sums, and nothing is written.
void finish_dbias(const DbiasCall& call, const float* tile_sums, const float* noop, Stream stream,
                  std::uint32_t rows_multiple = 1);

}  // namespace assay::device
