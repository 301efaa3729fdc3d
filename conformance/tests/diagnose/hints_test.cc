// Hints: a planted fault of each class gives the text of that class.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "conformance/judge/compare/compare.h"
#include "conformance/tests/judge/words.h"
#include "reference/layout/swizzle.h"

namespace assay::conformance {
namespace {

// A planted fault: the written output, made from the right one. `map` is the output's. "$" in a hint: the number of wrong words.
struct Plant {
  const char* name;
  const char* line;
  const char* output;
  Format type;
  std::vector<std::int64_t> shape;
  std::function<void(const OutputMap& map, const Tensor& want, Tensor& got)> fault;
  std::vector<std::string> hints;
};
void PrintTo(const Plant& p, std::ostream* out) { *out << p.name; }

Difference differ(const Plant& plant, std::uint64_t seed = 1) {
  const Case problem = case_of(plant.line);
  const Tensor want = drawn(plant.type, plant.shape, seed);
  Tensor got = want;
  const OutputMap map = map_output(problem, plant.output, want);
  plant.fault(map, want, got);
  return compare(problem, plant.output, want, got);
}

class PlantedFault : public testing::TestWithParam<Plant> {};
TEST_P(PlantedFault, GetsItsHint) {
  const Difference found = differ(GetParam());
  std::vector<std::string> hints = GetParam().hints;
  for (std::string& each : hints) {
    if (const std::size_t at = each.find('$'); at != std::string::npos) each.replace(at, 1, std::to_string(found.count));
  }
  EXPECT_EQ(found.hints, hints);
}

constexpr const char* kCodes = "quantize recipe=mxfp8 splits=256,0,131 K=256";
constexpr const char* kNibbles = "quantize recipe=nvfp4 splits=128,64 K=128";
constexpr const char* kProduct = "grouped_gemm kind=bf16 d_type=f32 splits=128,96 N=256 K=8";
constexpr const char* kShort = "grouped_gemm kind=bf16 splits=128,96 N=256 K=8";
constexpr const char* kRowScales = "quantize recipe=block_1x128 splits=96,64 K=512";                   // [4, 96] and [4, 64]
constexpr const char* kSwizzled = "quantize recipe=mxfp8 scale_layout=swizzled splits=256,128 K=512";  // [256, 16] and [128, 16]
constexpr const char* kColumnSwizzled = "quantize recipe=mxfp8 direction=columnwise scale_layout=swizzled splits=256,128 K=512";
constexpr const char* kPlain = "quantize recipe=mxfp8 splits=256,128 K=512";
constexpr const char* kOffsets = "splits_to_offsets splits=4095x3";

std::uint64_t times(std::uint64_t bits, float factor) {
  const auto word = static_cast<std::uint32_t>(bits);
  float value;
  std::memcpy(&value, &word, sizeof value);
  value *= factor;
  std::uint32_t made;
  std::memcpy(&made, &value, sizeof made);
  return made;
}

const Plant kPlants[] = {
    // Places.
    {"row_after",
     kProduct,
     "d",
     Format::f32,
     {224, 256},
     moved([](Coordinates at) {
       return Coordinates{at.row + 1, at.column};
     }),
     {"values of the row after: all $"}},
    {"three_columns_before",
     kCodes,
     "rowwise_data",
     Format::e4m3,
     {387, 256},
     moved([](Coordinates at) {
       return Coordinates{at.row, at.column - 3};
     }),
     {"values of 3 columns before: all $"}},
    {"column_after_within_blocks",
     kShort,
     "d",
     Format::bf16,
     {224, 256},
     moved([](Coordinates at) {
       return Coordinates{at.row, at.column / 32 * 32 + (at.column + 1) % 32};
     }),
     {"columns are rotated by 1 within every 32: all $"}},
    {"scale_block_after",
     kRowScales,
     "rowwise_scale_inv",
     Format::f32,
     {640},
     moved([](Coordinates at) {
       return Coordinates{at.row + 1, at.column};
     }),
     {"scales of the k-block after: all $"}},
    {"another_group",
     kProduct,
     "d",
     Format::f32,
     {224, 256},
     [](const OutputMap& map, const Tensor& want, Tensor& got) {
       for (std::int64_t i = 0; i < 96 * 256; ++i) put(got, map.segments[1].first + i, get(want, i));
     },
     {"values of another group: group 1 has those of group 0: all $"}},
    {"groups_turned",
     "grouped_gemm kind=bf16 d_type=f32 splits=32,32,32,32 N=64 K=8",
     "d",
     Format::f32,
     {128, 64},
     [](const OutputMap& map, const Tensor& want, Tensor& got) {
       for (std::int64_t i = 0; i < 3 * 32 * 64; ++i) put(got, i, get(want, map.segments[1].first + i));
     },
     {"values of another group: each has those of the group after: all $"}},
    {"tensor_scales_of_other_groups",
     "quantize recipe=tensor_current splits=3,2,5,6,7 K=4",
     "rowwise_scale_inv",
     Format::f32,
     {5},
     [](const OutputMap&, const Tensor& want, Tensor& got) {
       for (std::int64_t g = 0; g < 5; ++g) put(got, g, get(want, (g + 2) % 5));
     },
     {"values of another group: group 0 has those of group 2, group 1 has those of group 3, group 2 has those of group 4, group "
      "3 has "
      "those of group 0, ...: all $"}},
    // Orders.
    {"transposed_groups",
     kCodes,
     "rowwise_data",
     Format::e4m3,
     {387, 256},
     [](const OutputMap& map, const Tensor& want, Tensor& got) {
       each_used(map, [&](const Segment& s, std::int64_t i, std::int64_t j, std::int64_t element) {
         put(got, s.first + j * s.rows + i, get(want, element));
       });
     },
     {"each group is transposed: all $"}},
    {"transposed_tiles",
     kProduct,
     "d",
     Format::f32,
     {224, 256},
     moved([](Coordinates at) {
       const std::int64_t i = at.row % 32, j = at.column % 32;
       return Coordinates{at.row - i + j, at.column - j + i};
     }),
     {"tiles of 32x32 are transposed: all $"}},
    {"one_transposed_tile",
     kCodes,
     "rowwise_data",
     Format::e4m3,
     {387, 256},
     moved([](Coordinates at) {
       return at.row < 128 && at.column >= 128 ? Coordinates{at.column - 128, at.row + 128} : at;
     }),
     {"tiles of 128x128 are transposed: all $"}},
    {"rows_exchanged",
     kProduct,
     "d",
     Format::f32,
     {224, 256},
     moved([](Coordinates at) {
       return Coordinates{at.row ^ 1, at.column};
     }),
     {"rows are exchanged: row i has the values of row i xor 1: all $"}},
    {"rows_in_another_order",
     kShort,
     "d",
     Format::bf16,
     {224, 256},
     moved([](Coordinates at) {
       constexpr std::int64_t kOrder[] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
       return Coordinates{at.row / 16 * 16 + kOrder[at.row % 16], at.column};
     }),
     {"rows are in another order within every 16: 1 has those of 8, 2 has those of 1, 3 has those of 9, 4 has those of 2, ...: "
      "all $"}},
    {"bytes_within_words",
     kCodes,
     "rowwise_data",
     Format::e4m3,
     {387, 256},
     moved([](Coordinates at) {
       return Coordinates{at.row, at.column ^ 3};
     }),
     {"columns are exchanged: column i has the values of column i xor 3: all $"}},
    {"shared_memory_swizzle",
     kShort,
     "d",
     Format::bf16,
     {224, 256},
     moved([](Coordinates at) {
       return Coordinates{at.row, ((at.column / 8) ^ (at.row % 8)) * 8 + at.column % 8};
     }),
     {"chunks of 16 bytes are exchanged as in shared memory swizzled by 128 bytes: all $"}},
    {"nibbles",
     kNibbles,
     "rowwise_data",
     Format::e2m1,
     {192, 64},
     moved([](Coordinates at) {
       return Coordinates{at.row, at.column ^ 1};
     }),
     {"high and low nibble are exchanged: all $"}},
    // Layouts of scales.
    {"not_swizzled",
     kSwizzled,
     "rowwise_scale_inv",
     Format::e8m0,
     {6144},
     [](const OutputMap& map, const Tensor& want, Tensor& got) {
       each_used(map, [&](const Segment& s, std::int64_t i, std::int64_t j, std::int64_t element) {
         put(got, s.first + i * s.columns + j, get(want, element));
       });
     },
     {"scales lie row by row, rows padded: all $: not swizzled"}},
    {"not_swizzled_columnwise",
     kColumnSwizzled,
     "columnwise_scale_inv",
     Format::e8m0,
     {6144},
     [](const OutputMap& map, const Tensor& want, Tensor& got) {
       each_used(map, [&](const Segment& s, std::int64_t i, std::int64_t j, std::int64_t element) {
         put(got, s.first + i * s.columns + j, get(want, element));
       });
     },
     {"scales lie row by row, rows padded: all $: not swizzled"}},
    {"tiles_of_scales_in_the_other_order",
     kSwizzled,
     "rowwise_scale_inv",
     Format::e8m0,
     {6144},
     [](const OutputMap& map, const Tensor& want, Tensor& got) {
       for (std::int64_t t = 0; t < 8; ++t) {
         for (std::int64_t i = 0; i < 512; ++i)
           put(got, map.segments[0].first + (t % 4 * 2 + t / 4) * 512 + i, get(want, t * 512 + i));
       }
     },
     {"tiles of 128x4 lie column by column: all $"}},
    {"swizzled_where_plain",
     kPlain,
     "rowwise_scale_inv",
     Format::e8m0,
     {6144},
     [](const OutputMap& map, const Tensor& want, Tensor& got) {
       each_used(map, [&](const Segment& s, std::int64_t i, std::int64_t j, std::int64_t element) {
         put(got, s.first + swizzled_index(i, j, 4), get(want, element));
       });
     },
     {"scales are swizzled, where a plain layout is expected: all $"}},
    // Values.
    {"scales_doubled",
     kSwizzled,
     "rowwise_scale_inv",
     Format::e8m0,
     {6144},
     changed([](std::uint64_t bits) { return bits + 1; }),
     {"scales off by a factor of 2, always twice the expected one: all $"}},
    {"f32_scales_halved",
     kRowScales,
     "rowwise_scale_inv",
     Format::f32,
     {640},
     changed([](std::uint64_t bits) { return times(bits, 0.5f); }),
     {"scales off by a factor of 2, always half the expected one: all $"}},
    {"scales_of_another_range",
     kRowScales,
     "rowwise_scale_inv",
     Format::f32,
     {640},
     changed([](std::uint64_t bits) { return times(bits, 448.0f / 240.0f); }),
     {"the expected value times about 1.8666667: all $: a scale"}},
    {"a_factor",
     kProduct,
     "d",
     Format::f32,
     {224, 256},
     changed([](std::uint64_t bits) { return times(bits, 0.125f); }),
     {"the expected value times 0.125: all $: a scale"}},
    {"truncated",
     kShort,
     "d",
     Format::bf16,
     {224, 256},
     changed([](std::uint64_t bits) { return bits % 3 == 0 ? bits - 1 : bits; }),
     {"a truncation: off by one unit in the last place, always toward zero: all $"}},
    {"rounded_up_and_down",
     kShort,
     "d",
     Format::bf16,
     {224, 256},
     changed([](std::uint64_t bits) { return bits % 3 == 0   ? bits - 1
                                             : bits % 3 == 1 ? bits + 1
                                                             : bits; }),
     {"a rounding: off by one unit in the last place: all $"}},
    {"through_bf16",
     kProduct,
     "d",
     Format::f32,
     {224, 256},
     changed([](std::uint64_t bits) { return (bits + 0x8000) & 0xFFFF0000; }),
     {"rounded to bf16: all $"}},
    {"sign_lost",
     kShort,
     "d",
     Format::bf16,
     {224, 256},
     changed([](std::uint64_t bits) { return bits & 0x7FFF; }),
     {"only the sign differs: all $, where a negative number is expected: the sign is lost"}},
    {"byte_order",
     kProduct,
     "d",
     Format::f32,
     {224, 256},
     changed([](std::uint64_t bits) { return std::uint64_t{__builtin_bswap32(static_cast<std::uint32_t>(bits))}; }),
     {"the bytes of each element are in the other order: all $"}},
    {"some_zeros",
     kShort,
     "d",
     Format::bf16,
     {224, 256},
     [](const OutputMap&, const Tensor&, Tensor& got) { std::memset(got.bytes.data() + 1000, 0, 2000); },
     {"0 where another value is expected: all $"}},
    // Sums.
    {"sums_of_32_bits",
     kOffsets,
     "offsets",
     Format::i64,
     {4096},
     [](const OutputMap&, const Tensor& want, Tensor& got) {
       for (std::int64_t i = 0; i < 4096; ++i) put(got, i, static_cast<std::uint32_t>(get(want, i)));
     },
     {"only the low 32 bits of the expected value, the rest 0: all $: computed in 32 bits"}},
    {"sums_of_32_bits_with_a_sign",
     kOffsets,
     "offsets",
     Format::i64,
     {4096},
     [](const OutputMap&, const Tensor& want, Tensor& got) {
       for (std::int64_t i = 0; i < 4096; ++i) {
         if (get(want, i) >> 31 == 1) put(got, i, get(want, i) | 0xFFFF'FFFF'0000'0000);
       }
     },
     {"only the low 32 bits of the expected value, with its sign spread: all $: computed in 32 bits"}},
    {"carry_lost_in_chunks",
     kOffsets,
     "offsets",
     Format::i64,
     {4096},
     [](const OutputMap&, const Tensor& want, Tensor& got) {
       for (std::int64_t i = 1024; i < 4096; ++i) put(got, i, get(want, i) - get(want, i / 1024 * 1024));
     },
     {"sums begin at 0 again every 1024 elements: all $: the carry is lost"}},
    {"carry_lost_once",
     kOffsets,
     "offsets",
     Format::i64,
     {4096},
     [](const OutputMap&, const Tensor& want, Tensor& got) {
       for (std::int64_t i = 1024; i < 4096; ++i) put(got, i, get(want, i) - 77);
     },
     {"77 too small from index 1024 to the end: all $: a carry that is wrong at index 1024"}},
    {"inclusive",
     kOffsets,
     "offsets",
     Format::i64,
     {4096},
     [](const OutputMap&, const Tensor& want, Tensor& got) {
       for (std::int64_t i = 0; i < 4095; ++i) put(got, i, get(want, i + 1));
     },
     {"values of the index after: all $: an inclusive sum where an exclusive one is expected"}},
    {"without_its_stride",
     kOffsets,
     "offsets",
     Format::i64,
     {4096},
     changed([](std::uint64_t bits) { return bits * 7; }),
     {"the expected value times 7: all $"}},
};
INSTANTIATE_TEST_SUITE_P(All, PlantedFault, testing::ValuesIn(kPlants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::conformance
