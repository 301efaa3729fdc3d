// NVFP4 on the device: a call as a launch that reads the splits, a pass for the amaxes that were not given, and a
// pass over rows (quantize_rows.cuh) or tiles (quantize_tiles.cuh). Each begins while the one before ends (early_launch.cuh).

#include <cfloat>
#include <cstdint>
#include <limits>
#include <string>

#include "device/dbias/dbias_tiles.h"
#include "device/layout/check_rows.h"
#include "device/quantize/group_amax.h"
#include "device/quantize/nvfp4/cut_codes.cuh"
#include "device/quantize/nvfp4/quantize_rows.cuh"
#include "device/quantize/quantize.h"
#include "device/support/early_launch.cuh"

namespace assay::device {
namespace {

constexpr std::int64_t kTile = 128, kTileColumns = nvfp4::kTileColumns;
constexpr int kPrepareThreads = 1024;

// The workspace: values for later launches of the call, then the groups of tiles and of rows, then the tile sums of dbias.
struct Notes {
  float skip;  // 1.0: the caller's flag is set, or the splits are invalid; nothing is written
  std::uint32_t unused[63];
  std::uint32_t row_amax_bits[kMaxGroups];
  std::uint32_t column_amax_bits[kMaxGroups];
  Nvfp4Group groups[kMaxGroups];
  Nvfp4Scaling row_scaling[kMaxGroups];
  Nvfp4Scaling column_scaling[kMaxGroups];
};
static_assert(sizeof(Notes) % 256 == 0);

// Their size does not depend on whether there are splits.
struct Lists {
  std::int64_t tiles, segments;  // how many
  std::int64_t bytes;

  explicit Lists(const Rows& rows)
      : tiles(rows.capacity / kTile + rows.groups + 1),
        segments(ceil_div(rows.capacity, kNvfp4SegmentRows)),
        bytes(round_up((tiles + segments) * std::int64_t{sizeof(std::uint32_t)}, 256)) {}
};

// The amaxes of the groups, and where they are reported to the caller.
struct Amaxes {
  const float *row, *column;  // either may be null
  float *row_output, *column_output;
  float e4m3_max;
};
using nvfp4::codes_may_be_cut;
__device__ Nvfp4Scaling scaling_of(float amax, float e4m3_max) {
  Nvfp4Scaling scaling;
  scaling.amax = amax;
  scaling.scale = fminf(divide(multiply(6.0f, e4m3_max), amax), FLT_MAX);
  if (amax == 0 || scaling.scale == 0) scaling.scale = 1;
  scaling.inverse = reciprocal(scaling.scale);
  scaling.cuts = codes_may_be_cut(scaling.inverse);
  return scaling;
}
__device__ void note_scalings(const Amaxes& amaxes, int groups, Notes* notes) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= groups) return;
  if (amaxes.row != nullptr) {
    const float amax = amaxes.row[t];
    notes->row_scaling[t] = scaling_of(amax, amaxes.e4m3_max);
    if (amaxes.row_output != nullptr) amaxes.row_output[t] = amax;
  }
  if (amaxes.column != nullptr) {
    const float amax = amaxes.column[t];
    notes->column_scaling[t] = scaling_of(amax, amaxes.e4m3_max);
    if (amaxes.column_output != nullptr) amaxes.column_output[t] = amax;
  }
}

// The last group with before[t] <= item; before[0] is 0.
__device__ std::uint32_t find_group(const std::uint32_t* before, int groups, std::uint32_t item) {
  int low = 0, high = groups;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (before[middle] <= item ? low : high) = middle;
  }
  return static_cast<std::uint32_t>(low);
}

// Checks the splits, also for odd ones where codes are packed down the rows: with faults no group is written. Clears the
// amaxes to be found, stores the groups of tiles and rows, and the scalings of amaxes that are given.
__global__ void __launch_bounds__(kPrepareThreads)
    prepare(const Rows rows, bool packed_rows, const float* noop, const Amaxes amaxes, std::uint32_t tiles,
            std::uint32_t segments, Notes* notes, std::uint32_t* status) {
  using Sums = group_detail::Sums<Blocks<kTile>, ScaleLayoutOf<Recipe::nvfp4, Direction::columnwise>::Measure>;
  __shared__ group_detail::BlockScratch<Sums> scratch;
  __shared__ std::uint32_t first_row[kMaxGroups], tiles_before[kMaxGroups];
  const int thread = static_cast<int>(threadIdx.x);
  wait_for_earlier_kernels();
  if (is_skipped(noop)) {
    if (thread == 0) notes->skip = 1;
    return;
  }
  notes->row_amax_bits[thread] = 0;
  notes->column_amax_bits[thread] = 0;
  if (rows.splits != nullptr) {
    const bool odd = packed_rows && thread < rows.groups && load_split(rows, thread) % 2 != 0;
    const bool any_odd = __syncthreads_or(odd) != 0;
    if (any_odd && thread == 0) group_detail::tell(status, kStatusOddPackedExtent);
    int first, last;  // a group for each thread
    Sums before, total;
    const bool sound = group_detail::scan_block(rows, scratch, status, first, last, before, total);
    if (!sound || any_odd) {
      if (thread == 0) notes->skip = 1;
      return;
    }
    if (first < last) {
      unsigned no_faults = 0;
      const std::uint32_t own = group_detail::read_split(rows, first, no_faults);
      notes->groups[first] = {before.value[0], own, before.value[1], before.value[2]};
      first_row[first] = before.value[0];
      tiles_before[first] = before.value[1];
    }
    __syncthreads();
    auto* const group_of_tile = reinterpret_cast<std::uint32_t*>(notes + 1);
    for (std::uint32_t k = static_cast<std::uint32_t>(thread); k < tiles; k += kPrepareThreads) {
      group_of_tile[k] = k < total.value[1] ? find_group(tiles_before, rows.groups, k) : kNvfp4NoGroup;
    }
    for (std::uint32_t k = static_cast<std::uint32_t>(thread); k < segments; k += kPrepareThreads) {
      const std::uint32_t row = k * kNvfp4SegmentRows;
      group_of_tile[tiles + k] = row < total.value[0] ? find_group(first_row, rows.groups, row) : kNvfp4NoGroup;
    }
  }
  if (thread == 0) notes->skip = 0;
  note_scalings(amaxes, rows.groups, notes);
}
static_assert(kPrepareThreads >= kMaxGroups);

__global__ void __launch_bounds__(kPrepareThreads) note_found(const Amaxes amaxes, int groups, Notes* notes) {
  wait_for_earlier_kernels();
  if (!is_skipped(&notes->skip)) note_scalings(amaxes, groups, notes);
}

// The arguments of the kernels that follow from the call alone.
Nvfp4Tiles tiles_of(const QuantizeCall& call) {
  const QuantizeConfig& config = call.config;
  const QuantizeOutput& output = call.output;
  Nvfp4Tiles tiles{};
  tiles.x = call.x;
  tiles.rows = call.rows;
  tiles.columns = call.columns;
  tiles.zero = zero_addend(config.zero_sign == ZeroSign::kept);
  tiles.e4m3_max = config.nvfp4_e4m3_max;
  tiles.sign_mask = config.hadamard_sign_mask;
  tiles.swizzled = config.scale_layout == ScaleLayout::swizzled;
  tiles.two_dimensional = config.two_dimensional;
  tiles.hadamard = config.hadamard && config.columnwise;
  tiles.stochastic = config.stochastic_rounding;
  tiles.four_over_six = config.four_over_six != FourOverSix::off;
  tiles.squared = config.four_over_six == FourOverSix::mean_squared_error;
  tiles.aligned = call.columns % 8 == 0 && is_aligned(call.x, 16);
  tiles.status = call.status;
  if (config.rowwise) {
    tiles.row_data = static_cast<std::uint8_t*>(output.rowwise_data);
    tiles.row_scale = static_cast<std::uint8_t*>(output.rowwise_scale_inv);
    tiles.row_random = call.rowwise_random;
  }
  if (config.columnwise) {
    tiles.column_data = static_cast<std::uint8_t*>(output.columnwise_data);
    tiles.column_scale = static_cast<std::uint8_t*>(output.columnwise_scale_inv);
    tiles.column_random = call.columnwise_random;
  }
  tiles.draws = call.draws.assignment;
  tiles.draws_rowwise = call.draws.rowwise;
  tiles.draws_columnwise = call.draws.columnwise;
  tiles.draw_state = call.draws.state;
  return tiles;
}

// Blocks of a launch over tiles, and where the stored values of the call are. Errors: NotSupported for too many tiles.
void set_tiles(const QuantizeCall& call, const Lists& lists, Notes* notes, Nvfp4Tiles& tiles) {
  const std::int64_t strips = max_tiles(call.rows, kTile);
  const std::int64_t column_tiles = call.columns == 0 ? 1 : ceil_div(call.columns, kTileColumns);
  if (strips > std::numeric_limits<std::int32_t>::max() / column_tiles) {
    throw NotSupported("rows.capacity is " + std::to_string(call.rows.capacity) + " with columns " +
                       std::to_string(call.columns) + ": more than 2^31 - 1 tiles of 128 x 128");
  }
  tiles.column_tiles = static_cast<std::uint32_t>(column_tiles);
  tiles.blocks = static_cast<std::uint32_t>(strips * column_tiles);
  tiles.skip = &notes->skip;
  tiles.groups = notes->groups;
  tiles.group_of_tile = reinterpret_cast<const std::uint32_t*>(notes + 1);
  tiles.group_of_rows = tiles.group_of_tile + lists.tiles;
  tiles.row_scaling = notes->row_scaling;
  tiles.column_scaling = notes->column_scaling;
}

// Whether the kernel of quantize_rows.cuh takes the call.
bool takes_rows_kernel(const QuantizeCall& call, const Nvfp4Tiles& tiles) {
  const bool columns = tiles.column_data != nullptr || tiles.column_scale != nullptr;
  return tiles.aligned && call.x_type != Format::f32 && !columns && !tiles.hadamard && !tiles.two_dimensional &&
         !tiles.four_over_six && tiles.draws == RandomDraws::given && is_aligned(tiles.row_data, 4) &&
         is_aligned(tiles.row_random, 8);
}

// G of x and of its transform, nvfp4.h: given, or found by a pass over x.
struct TensorAmaxes {
  Amaxes amaxes{};
  bool transformed, plain;  // found: of the transform, of x

  TensorAmaxes(const QuantizeCall& call, bool hadamard, const Notes* notes) {
    const QuantizeConfig& config = call.config;
    const auto* const found_row = reinterpret_cast<const float*>(notes->row_amax_bits);
    const auto* const found_column = reinterpret_cast<const float*>(notes->column_amax_bits);
    transformed = hadamard && call.columnwise_amax == nullptr;
    const bool plain_columns = config.columnwise && !hadamard && call.columnwise_amax == nullptr;
    plain = call.amax == nullptr && (config.rowwise || plain_columns);
    if (config.rowwise) amaxes.row = call.amax != nullptr ? call.amax : found_row;
    if (config.columnwise) {
      amaxes.column = call.columnwise_amax != nullptr ? call.columnwise_amax
                      : hadamard                      ? found_column
                      : call.amax != nullptr          ? call.amax
                                                      : found_row;
    }
    amaxes.row_output = config.rowwise ? call.output.amax : nullptr;
    amaxes.column_output = config.columnwise ? call.output.columnwise_amax : nullptr;
    amaxes.e4m3_max = config.nvfp4_e4m3_max;
  }
  bool all_given() const { return !transformed && !plain; }
};

}  // namespace

std::int64_t nvfp4_workspace_bytes(const QuantizeCall& call) {
  const std::int64_t sums = call.config.dbias ? dbias_workspace_bytes(dbias_of(call)) : 0;
  return static_cast<std::int64_t>(sizeof(Notes)) + Lists(call.rows).bytes + sums;
}

void quantize_nvfp4(const QuantizeCall& call, Stream stream) {
  const QuantizeConfig& config = call.config;
  const Rows& rows = call.rows;
  if (rows.groups == 0) return;
  auto* const notes = static_cast<Notes*>(call.workspace);
  const Lists lists(rows);
  Nvfp4Tiles tiles = tiles_of(call);
  set_tiles(call, lists, notes, tiles);

  const TensorAmaxes tensor(call, tiles.hadamard, notes);
  launch_kernel_early("nvfp4: prepare", prepare, 1, kPrepareThreads, 0, stream, rows, config.columnwise, call.noop,
                      tensor.all_given() ? tensor.amaxes : Amaxes{}, static_cast<std::uint32_t>(lists.tiles),
                      static_cast<std::uint32_t>(lists.segments), notes, call.status);

  const bool elements = rows.capacity != 0 && call.columns != 0;
  if (tensor.transformed && elements) {
    tiles.row_amax_bits = tensor.plain ? notes->row_amax_bits : nullptr;
    tiles.column_amax_bits = notes->column_amax_bits;
    launch_nvfp4_hadamard_amax(tiles, stream);
  } else if (tensor.plain && elements) {
    accumulate_group_amax(call.x_type, call.x, rows, call.columns, tiles.skip, notes->row_amax_bits, call.status, stream);
  }
  tiles.reversed = !tensor.all_given() && elements;
  if (!tensor.all_given()) {
    launch_kernel_early("nvfp4: note_found", note_found, 1, kPrepareThreads, 0, stream, tensor.amaxes, rows.groups, notes);
  }

  if (takes_rows_kernel(call, tiles)) {
    tiles.variant = Nvfp4Variant::rows;
    tiles.column_tiles = static_cast<std::uint32_t>(ceil_div(call.columns, nvfp4::kRowColumns));
    tiles.blocks = static_cast<std::uint32_t>(ceil_div(rows.capacity, kNvfp4SegmentRows) * tiles.column_tiles);
  }
  const bool drawn = tiles.draws != RandomDraws::given;
  const auto launch = tiles.hadamard                ? launch_nvfp4_hadamard
                      : call.x_type == Format::bf16 ? (drawn ? launch_nvfp4_drawn_bf16 : launch_nvfp4_bf16)
                      : call.x_type == Format::f16  ? (drawn ? launch_nvfp4_drawn_f16 : launch_nvfp4_f16)
                                                    : (drawn ? launch_nvfp4_drawn_f32 : launch_nvfp4_f32);
  if (elements) launch(tiles, stream);

  if (config.dbias && call.output.dbias != nullptr) {
    auto* const tile_sums = reinterpret_cast<float*>(reinterpret_cast<unsigned char*>(notes + 1) + lists.bytes);
    const DbiasCall dbias = dbias_of(call);
    sum_tiles(dbias, tile_sums, tiles.skip, stream);
    finish_dbias(dbias, tile_sums, tiles.skip, stream);
  }
}

}  // namespace assay::device
