// The map of scales: for a backend that reads other scales in some rectangle of D it shows exactly these; for the reference every
// scale is right. Places are written out by hand from the storage of scales (spec fp8-block-2.1).

#include <gtest/gtest.h>

#include <limits>
#include <ostream>
#include <sstream>

#include "conformance/diagnose/scale_map/scale_map.h"
#include "conformance/tests/judge/rogue_backend.h"
#include "reference/types/error.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

ScaleMap map_of(Rogue&, const std::string& line, ScaleMapOptions options = {}) {
  Backend backend(Rogue::table());
  return map_scales(backend, parse_case_line(line), options);
}

// The whole of a piece as one line.
std::string text_of(const ScalePiece& piece) {
  std::ostringstream text;
  text << "group " << piece.group << " tile " << piece.tile_row << "," << piece.tile_column << " number " << piece.by_rows << " " << piece.by_columns << " rows "
       << piece.row << "+" << piece.rows << " columns " << piece.column << "+" << piece.columns << " read " << list_text(piece.reads) << " wanted "
       << list_text(piece.wanted);
  return text.str();
}

// ---- every scale right ---------------------------------------------------------------------------------------------

struct Sound {
  const char* name;
  const char* line;
  std::int64_t tiles, pairs;  // 128x128 tiles of D, and pairs of such a tile and a block of K
};
void PrintTo(const Sound& sound, std::ostream* out) { *out << sound.name; }

class RightScales : public testing::TestWithParam<Sound> {};

TEST_P(RightScales, AreAllRight) {
  Rogue rogue;
  const CaseLine line = parse_case_line(GetParam().line);
  int reported = 0;
  ScaleMapOptions options;
  options.called = [&](const std::string&) { ++reported; };
  const ScaleMap map = map_of(rogue, GetParam().line, options);
  EXPECT_EQ(name_of(map.verdict), "passed") << map.trouble;
  EXPECT_EQ(map.trouble, "");
  ASSERT_EQ(map.sides.size(), 2u);
  EXPECT_FALSE(map.sides[0].array.of_columns);
  EXPECT_TRUE(map.sides[1].array.of_columns);
  for (const ScaleSide& side : map.sides) {
    EXPECT_EQ(side.tiles, GetParam().tiles);
    EXPECT_EQ(side.pairs, GetParam().pairs);
    EXPECT_EQ(side.wrong_pairs, 0);
    EXPECT_TRUE(side.pieces.empty());
    EXPECT_EQ(side.calls, side.planned);
  }
  EXPECT_EQ(rogue.calls, scale_map_calls(line, options));
  EXPECT_EQ(reported, rogue.calls);
  EXPECT_TRUE(rogue.buffers.empty());
}

constexpr Sound kSound[] = {
    {"TN_128x128", "grouped_gemm kind=fp8_block d_type=f32 splits=130,0,260 N=300 K=300", 15, 45},
    {"TN_1x128", "grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 splits=130,0,260 N=300 K=304", 15, 45},
    {"TN_rows_beyond", "grouped_gemm kind=fp8_block d_type=f32 splits=0,5,0 extra_rows=140 N=16 K=1024", 1, 8},
    {"TN_e5m2", "grouped_gemm kind=fp8_block x_type=e5m2 d_type=f32 splits=128 N=128 K=128", 1, 1},
    {"TN_places_times_127_past_2_to_24", "grouped_gemm kind=fp8_block d_type=f32 splits=40000 N=16 K=639", 313, 1565},
    {"NN_128x128", "grouped_gemm kind=fp8_block layout=NN d_type=f32 splits=130,0,260 N=300 K=400", 20, 60},
    {"NN_1x128", "grouped_gemm kind=fp8_block layout=NN weight_block=1x128 d_type=f32 splits=130,0,260 N=300 K=400", 20, 60},
    {"NT", "grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=130,0,260 N=300 K=200", 12, 30},
    {"NT_e5m2", "grouped_gemm kind=fp8_block layout=NT dy_type=e5m2 d_type=f32 splits=1,127 extra_rows=3 N=64 K=65", 2, 2},
};
INSTANTIATE_TEST_SUITE_P(Harness, RightScales, testing::ValuesIn(kSound), [](const auto& each) { return std::string(each.param.name); });

// ---- scales read elsewhere -----------------------------------------------------------------------------------------

// Whole rows and columns of D.
struct Rectangle {
  std::int64_t row, column, rows, columns;
};

struct Shift {
  const char* name;
  const char* line;
  const char* tensor;
  std::int64_t (*read)(std::int64_t place);
  std::vector<Rectangle> where;
  std::vector<std::string> pieces;
  std::int64_t others, padding, outside, several;
  std::vector<std::string> reported;
};
void PrintTo(const Shift& shift, std::ostream* out) { *out << shift.name; }

// The reference's D, with the results of other scales in the rectangles.
void plant(Rogue& rogue, const Shift& shift) {
  rogue.execute = [&rogue, &shift](const assay_call& call) {
    const Elsewhere elsewhere(call);
    std::vector<assay_tensor> inputs(call.inputs, call.inputs + call.input_count);
    std::vector<float> other;
    for (assay_tensor& each : inputs) {
      if (each.name != std::string(shift.tensor)) continue;
      const auto* scales = static_cast<const float*>(each.data);
      for (std::int64_t i = 0; i < each.bytes / 4; ++i) other.push_back(scales[shift.read(i)]);
      each.data = other.data();
    }
    if (other.empty()) return ASSAY_INVALID_ARGUMENT;
    assay_call changed = elsewhere.call();
    changed.inputs = inputs.data();
    if (rogue.honest(changed) != ASSAY_OK || rogue.honest(call) != ASSAY_OK) return ASSAY_FAILED;
    const std::int64_t width = call.outputs[0].shape[1];
    for (const Rectangle& each : shift.where) {
      for (std::int64_t i = each.row; i < each.row + each.rows; ++i) {
        std::memcpy(static_cast<float*>(call.outputs[0].data) + i * width + each.column,
                    static_cast<const float*>(changed.outputs[0].data) + i * width + each.column, static_cast<std::size_t>(each.columns) * 4);
      }
    }
    return ASSAY_OK;
  };
}

class ShiftedScale : public testing::TestWithParam<Shift> {};

TEST_P(ShiftedScale, IsMapped) {
  const Shift& shift = GetParam();
  Rogue rogue;
  plant(rogue, shift);
  const ScaleMap map = map_of(rogue, shift.line);
  EXPECT_EQ(name_of(map.verdict), "failed") << map.trouble;
  ASSERT_EQ(map.sides.size(), 2u);
  for (const ScaleSide& side : map.sides) {
    if (side.array.tensor != shift.tensor) {
      EXPECT_EQ(side.wrong_pairs, 0) << text_of(side);
      EXPECT_TRUE(side.pieces.empty());
      continue;
    }
    std::vector<std::string> pieces;
    for (const ScalePiece& piece : side.pieces) pieces.push_back(text_of(piece));
    EXPECT_EQ(pieces, shift.pieces);
    EXPECT_EQ(side.others, shift.others);
    EXPECT_EQ(side.padding, shift.padding);
    EXPECT_EQ(side.outside, shift.outside);
    EXPECT_EQ(side.several, shift.several);
    EXPECT_EQ(side.nothing, 0);
    EXPECT_EQ(side.wrong_pieces, shift.others + shift.padding + shift.outside + shift.several);
    const std::string text = text_of(side);
    for (const std::string& part : shift.reported) EXPECT_TRUE(contains(text, part)) << part << "\nis not in\n" << text;
  }
}

// Of TN with splits=130,0,260 N=300 K=300 the scales of w are 3 groups of 3 rows with 3 scales and one of padding; those of x are
// 3 rows of 132 with two of padding, then 3 rows of 260. Group 2 has rows 130 to 389 of D.
constexpr const char* kFprop = "grouped_gemm kind=fp8_block d_type=f32 splits=130,0,260 N=300 K=300";
constexpr const char* kFpropRows = "grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 splits=130,0,260 N=300 K=300";
constexpr const char* kDgrad = "grouped_gemm kind=fp8_block layout=NN d_type=f32 splits=130,0,260 N=300 K=400";
constexpr const char* kWgrad = "grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=130,0,260 N=300 K=200";

const Shift kShifts[] = {
    {"w_of_another_group", kFprop, "w_rowwise_scale_inv", [](std::int64_t place) { return place < 24 ? place : place - 24; },
     {{130 + 256, 0, 4, 128}}, {"group 2 tile 2,0 number 12 8 rows 256+4 columns 0+128 read 0-2 wanted 24-26"}, 3, 0, 0, 0,
     {"42 of 45 pairs of tile and block right", "wrong: 1 of 15 tiles 128x128, 3 pairs", "group 2, tile rows 2, tile columns 0\n",
      "row by row: 12; column by column: 8", "index read - index wanted = -24 in every wrong pair", "(group 0, n-block 0, k-block 0) for (group 2, n-block 0, k-block 0)",
      "1 of 1 wrong piece read all scales of another n-block", "each wrong tile is one piece"}},
    {"w_of_the_first_row", kFprop, "w_rowwise_scale_inv", [](std::int64_t place) { return place % 4; },
     {{130 + 128, 128, 132, 172}},
     {"group 2 tile 1,1 number 10 10 rows 128+128 columns 128+128 read 0-2 wanted 28-30",
      "group 2 tile 1,2 number 11 13 rows 128+128 columns 256+44 read 0-2 wanted 32-34",
      "group 2 tile 2,1 number 13 11 rows 256+4 columns 128+128 read 0-2 wanted 28-30",
      "group 2 tile 2,2 number 14 14 rows 256+4 columns 256+44 read 0-2 wanted 32-34"}, 12, 0, 0, 0,
     {"group 2, tile rows 1-2, tile columns 1-2\n", "index read depends on the block alone: blocks 0-2 read 0-2", "list    0-2: 4 pieces, tiles 10-11,13-14\n", "-32 (2 pieces), -28 (2 pieces)",
      "among 15 over all groups: 10-11,13-14\n", "each of the 3 blocks of the contraction is wrong somewhere"}},
    {"w_from_the_last_tiles_on", kFprop, "w_rowwise_scale_inv", [](std::int64_t place) { return place == 33 ? std::int64_t{3} : place; },
     {{130 + 128, 256, 132, 44}},
     {"group 2 tile 1,2 number 11 13 rows 128+128 columns 256+44 read 32,3,34 wanted 32-34",
      "group 2 tile 2,2 number 14 14 rows 256+4 columns 256+44 read 32,3,34 wanted 32-34"}, 0, 2, 0, 0,
     {"row by row: 11,14; column by column: 13-14, all from there on", "wrong in blocks 1 of the contraction's 3", "(padding of group 0 at [0,3])",
      "index read - index wanted = -30 in every wrong pair"}},
    {"w_a_block_ahead", kFprop, "w_rowwise_scale_inv", [](std::int64_t place) { return place / 4 * 4 + (place % 4 + 1) % 3; }, {{0, 0, 128, 128}},
     {"group 0 tile 0,0 number 0 0 rows 0+128 columns 0+128 read 1-2,0 wanted 0-2"}, 3, 0, 0, 0,
     {"k-block read - k-block wanted, modulo the blocks of the contraction, is the same within 1 of 1 wrong piece: 1 (1 piece)"}},
    {"w_before_the_array", kFprop, "w_rowwise_scale_inv", [](std::int64_t place) { return place - 5; }, {{0, 0, 128, 128}},
     {"group 0 tile 0,0 number 0 0 rows 0+128 columns 0+128 read -5..-3 wanted 0-2"}, 0, 0, 3, 0, {"5 before the array", "3 memory outside the array"}},
    {"w_one_word", kFprop, "w_rowwise_scale_inv", [](std::int64_t place) { return place + 4; }, {{70, 1, 1, 1}},
     {"group 0 tile 0,0 number 0 0 rows 64+64 columns 0+64 read 3xseveral wanted 0-2"}, 0, 0, 0, 3,
     {"1 wrong element, first D[70][1] = 131712", "no wrong pair shows an index", "each wrong tile is one piece"}},
    {"x_of_the_next_block", kFprop, "x_rowwise_scale_inv", [](std::int64_t place) { return place + 260; }, {{130, 256, 128, 44}},
     {"group 2 tile 0,2 number 8 12 rows 0+128 columns 256+44 read 656-1176/260 wanted 396-916/260"}, 2, 0, 1, 0,
     {"(group 2, row 0, k-block 1) for (group 2, row 0, k-block 0)", "2 another scale; 1 memory outside the array"}},
    {"w_half_a_tile", kDgrad, "w_columnwise_scale_inv", [](std::int64_t place) { return place + 1; }, {{0, 64, 128, 64}},
     {"group 0 tile 0,0 number 0 0 rows 0+128 columns 64+64 read 1-3 wanted 0-2"}, 2, 1, 0, 0, {"index read - index wanted = 1"}},
    {"w_lines_of_one_row_of_tiles", kFpropRows, "w_rowwise_scale_inv", [](std::int64_t place) { return place + 1; }, {{64, 128, 64, 128}},
     {"group 0 tile 0,1 number 1 2 rows 64+64 columns 128+128 read 129-729/300 wanted 128-728/300"}, 3, 0, 0, 0,
     {"(group 0, n 129, k-block 0) for (group 0, n 128, k-block 0)", "read all scales of another n, each in its place"}},
    {"dy_of_dgrad", kDgrad, "dy_rowwise_scale_inv", [](std::int64_t place) { return place == 132 ? std::int64_t{130} : place; }, {{0, 0, 1, 64}},
     {"group 0 tile 0,0 number 0 0 rows 0+64 columns 0+64 read 0,several,264 wanted 0-264/132"}, 0, 0, 0, 1, {"64 wrong elements, first D[0][0]"}},
    {"x_of_wgrad", kWgrad, "x_columnwise_scale_inv", [](std::int64_t place) { return place < 400 ? place : place - 400; }, {{600 + 256, 128, 44, 72}},
     {"group 2 tile 2,1 number 11 11 rows 256+44 columns 128+72 read 128-528/200 wanted 528-928/200"}, 3, 0, 0, 0,
     {"27 of 30 pairs", "(group 0, k 128, row-block 0) for (group 2, k 128, row-block 0)", "numbers of these tiles among 12 over all groups: 11, all from there on"}},
};
INSTANTIATE_TEST_SUITE_P(Harness, ShiftedScale, testing::ValuesIn(kShifts), [](const auto& each) { return std::string(each.param.name); });

// ---- calls that go wrong -------------------------------------------------------------------------------------------

struct Fault {
  const char* name;
  const char* verdict;
  const char* reported;  // part of the error, or of the text about the operand of the rows
  void (*plant)(Rogue&);
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class FaultyCall : public testing::TestWithParam<Fault> {};

TEST_P(FaultyCall, IsTold) {
  Rogue rogue;
  GetParam().plant(rogue);
  ScaleMapOptions options;
  options.timeout_ms = 250;
  const ScaleMap map = map_of(rogue, kFprop, options);
  EXPECT_EQ(name_of(map.verdict), GetParam().verdict);
  const std::string text = map.trouble + (map.sides.empty() ? "" : text_of(map.sides[0]));
  EXPECT_TRUE(contains(text, GetParam().reported)) << text;
  // Memory that an unfinished call may still write to is not released; releasing it could also wait for the call.
  EXPECT_EQ(rogue.buffers.empty(), !contains(map.trouble, "not finished"));
}

assay_status with_word(Rogue& rogue, const assay_call& call, std::int64_t at, float word) {
  const assay_status status = rogue.honest(call);
  reinterpret_cast<float*>(bytes(call, "d"))[at] = word;
  return status;
}

const Fault kFaults[] = {
    {"nothing_written", "failed", "blocks 0-2 read 3xunwritten", [](Rogue& rogue) { rogue.execute = [](const assay_call&) { return ASSAY_OK; }; }},
    {"written_once", "failed", "blocks 0-2 read 0,2xunwritten", [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) { return rogue.calls == 1 ? rogue.honest(call) : ASSAY_OK; };
     }},
    {"last_word_nan", "failed", "1 wrong element, first D[259][299] = nan",
     [](Rogue& rogue) { rogue.execute = [&rogue](const assay_call& call) { return with_word(rogue, call, 390 * 300 - 1, std::numeric_limits<float>::quiet_NaN()); }; }},
    {"a_fraction", "failed", "first D[0][0] = 0.5", [](Rogue& rogue) { rogue.execute = [&rogue](const assay_call& call) { return with_word(rogue, call, 0, 0.5f); }; }},
    {"fails", "failed", "returned 'failed': why not", [](Rogue& rogue) {
       rogue.error = "why not";
       rogue.execute = [](const assay_call&) { return ASSAY_FAILED; };
     }},
    {"lost", "failed", "returned 'device lost'", [](Rogue& rogue) { rogue.execute = [](const assay_call&) { return ASSAY_DEVICE_LOST; }; }},
    {"no_memory", "machine failed", "could not allocate", [](Rogue& rogue) { rogue.allocate = [](std::int64_t) { return ASSAY_OUT_OF_MEMORY; }; }},
    {"never_finishes", "unfinished", "not finished after 250 ms",
     [](Rogue& rogue) { rogue.synchronize = [&rogue] { return rogue.calls == 2 ? ASSAY_TIMEOUT : ASSAY_OK; }; }},
    {"never_finishes_after_a_wrong_one", "failed", "only 1 of 3 blocks were examined", [](Rogue& rogue) {
       rogue.execute = [](const assay_call&) { return ASSAY_OK; };
       rogue.synchronize = [&rogue] { return rogue.calls == 2 ? ASSAY_TIMEOUT : ASSAY_OK; };
     }},
    {"absent", "not run", "not today", [](Rogue& rogue) {
       rogue.error = "not today";
       rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
       rogue.execute = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
     }},
    {"absent_without_proof", "skip without proof", "the call returned 'ok'", [](Rogue& rogue) { rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; }; }},
    {"writes_past_its_end", "failed", "d: 1 bytes written past its end", [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         bytes(call, "d")[tensor(call, "d").bytes] ^= 1;
         return rogue.honest(call);
       };
     }},
    {"changes_a_scale", "failed", "in/w_rowwise_scale_inv: changed by the call, at scale 7", [](Rogue& rogue) {
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         if (rogue.calls == 3) reinterpret_cast<float*>(bytes(call, "w_rowwise_scale_inv"))[7] = 3;
         return status;
       };
     }},
};
INSTANTIATE_TEST_SUITE_P(Harness, FaultyCall, testing::ValuesIn(kFaults), [](const auto& each) { return std::string(each.param.name); });

TEST(ScaleMap, StopsWhereItIsInterrupted) {
  Rogue rogue;
  ScaleMapOptions options;
  options.interrupted = [&] { return rogue.calls == 4; };
  const ScaleMap map = map_of(rogue, kFprop, options);
  EXPECT_EQ(name_of(map.verdict), "unfinished");
  EXPECT_EQ(map.trouble, "interrupted before the end");
  ASSERT_EQ(map.sides.size(), 2u);
  EXPECT_EQ(map.sides[0].calls, 3);
  EXPECT_EQ(map.sides[1].calls, 1);
  EXPECT_EQ(map.sides[1].pairs, 15);
}

TEST(ScaleMap, LooksAtOneOperandIfAsked) {
  Rogue rogue;
  ScaleMapOptions options;
  options.operand = "w";
  const ScaleMap map = map_of(rogue, kFprop, options);
  EXPECT_EQ(name_of(map.verdict), "passed");
  ASSERT_EQ(map.sides.size(), 1u);
  EXPECT_EQ(map.sides[0].array.tensor, "w_rowwise_scale_inv");
  EXPECT_EQ(rogue.calls, 3);
  options.operand = "dy";
  EXPECT_THROW(map_of(rogue, kFprop, options), InvalidArgument);
}

TEST(ScaleMap, HasNothingToSayWhereNoScaleIsUsed) {
  Rogue rogue;
  for (const char* line : {"grouped_gemm kind=fp8_block d_type=f32 splits=0,0 N=300 K=300", "grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=0,0 N=300 K=300"}) {
    EXPECT_EQ(name_of(map_of(rogue, line).verdict), "not run") << line;
  }
  EXPECT_EQ(rogue.calls, 0);
}

TEST(ScaleMap, RefusesWhatItCannotTell) {
  Rogue rogue;
  for (const char* line : {"grouped_gemm kind=mxfp8 d_type=f32 splits=128 N=128 K=128", "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=128 N=128 K=128",
                           "grouped_gemm kind=fp8_block splits=128 N=128 K=128", "grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 splits=1048576 N=16 K=2048"}) {
    EXPECT_THROW(map_of(rogue, line), NotSupported) << line;
  }
  for (const char* line : {"quantize recipe=mxfp8 R=128 K=128", "grouped_gemm kind=fp8_block d_type=f32 alpha=2 splits=128 N=128 K=128",
                           "grouped_gemm kind=fp8_block d_type=f32 beta=1 splits=128 N=128 K=128", "grouped_gemm kind=fp8_block d_type=f32 bias=1 splits=128 N=128 K=128"}) {
    EXPECT_THROW(map_of(rogue, line), InvalidArgument) << line;
  }
  EXPECT_EQ(rogue.calls, 0);
}

TEST(ScaleMap, ListsAreShort) {
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(list_text(List{}), "");
  EXPECT_EQ(list_text(List{5}), "5");
  EXPECT_EQ(list_text(List{0, 1, 2, 3}), "0-3");
  EXPECT_EQ(list_text(List{0, 1}), "0-1");
  EXPECT_EQ(list_text(List{7, 7, 7, 7, 7, 7, 7, 7}), "8x7");
  EXPECT_EQ(list_text(List{0, 16, 32, 5, 9}), "0-32/16,5,9");
  EXPECT_EQ(list_text(List{3, 2, 1}), "3-1/-1");
  EXPECT_EQ(list_text(List{0, 1, 2, 2, 2, 3, 4}), "0-2,2x2,3-4");
}

}  // namespace
}  // namespace assay::conformance
