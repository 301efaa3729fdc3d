// Groups whose rows lie apart, and permutations of tokens: backends that take a wrong row, group or weight there fail on lines of the
// catalogue, those that the table of faults names (items E1 to E5).

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/tests/judge/rogue_backend.h"

namespace assay::conformance {
namespace {

// Inputs of a call that a fault changes; they are what they were when the call is over.
class Changed {
 public:
  std::uint8_t* bytes_of(const assay_call& call, const std::string& name) {
    const assay_tensor& input = tensor(call, name);
    auto* const data = static_cast<std::uint8_t*>(input.data);
    kept_.push_back({data, {data, data + input.bytes}});
    return data;
  }
  std::int32_t* integers(const assay_call& call, const std::string& name) {
    return reinterpret_cast<std::int32_t*>(bytes_of(call, name));
  }
  ~Changed() {
    for (const auto& [data, before] : kept_) std::memcpy(data, before.data(), before.size());
  }

 private:
  std::vector<std::pair<std::uint8_t*, std::vector<std::uint8_t>>> kept_;
};

std::int64_t rows_of(const assay_call& call, const std::string& name) { return tensor(call, name).shape[0]; }
std::int64_t pitch_of(const assay_call& call, const std::string& name) {
  return tensor(call, name).bytes / tensor(call, name).shape[0];
}
std::int64_t parameter(const assay_call& call, const std::string& name) {
  for (int i = 0; i < call.parameter_count; ++i) {
    if (name == call.parameters[i].name) return call.parameters[i].integer;
  }
  throw std::logic_error("the call has no parameter " + name);
}

using Spoil = void (*)(const assay_call&, Changed&);

// ---- What the backend takes for its inputs ------------------------------------------------------------------------------------

// The last block of rows that has any belongs to another group, or to none.
void last_block_to(const assay_call& call, Changed& changed, bool none) {
  std::int32_t* const groups = changed.integers(call, "m_indices");
  const std::int64_t block = parameter(call, "alignment");
  std::int64_t last = rows_of(call, "m_indices") - 1;
  while (groups[last] < 0) --last;
  const std::int32_t other = none ? -1 : groups[last] == 0 ? 1 : 0;
  for (std::int64_t row = last / block * block; row <= last; ++row) groups[row] = other;
}
void last_block_of_another_group(const assay_call& call, Changed& changed) { last_block_to(call, changed, false); }
void last_block_left_out(const assay_call& call, Changed& changed) { last_block_to(call, changed, true); }

// The last row of the last group with rows is not computed.
void last_row_lost(const assay_call& call, Changed& changed) {
  std::int32_t* const ends = changed.integers(call, "psum");
  --ends[rows_of(call, "psum") - 1];
}

// Group 0 has a row more: that of poison behind it.
void row_of_poison(const assay_call& call, Changed& changed) {
  std::uint8_t* const x = changed.bytes_of(call, "x");
  const std::int64_t pitch = pitch_of(call, "x"), rows = 5;  // of group 0
  std::memmove(x, x + pitch, static_cast<std::size_t>(rows * pitch));
}

// Each group has the number of rows of the one before.
void counts_of_the_group_before(const assay_call& call, Changed& changed) {
  auto* const splits = reinterpret_cast<std::int64_t*>(changed.bytes_of(call, "splits"));
  const std::int64_t groups = rows_of(call, "splits"), last = splits[groups - 1];
  for (std::int64_t g = groups - 1; g > 0; --g) splits[g] = splits[g - 1];
  splits[0] = last;
}

// Groups 2 and 3 exchange their weights.
void weights_exchanged(const assay_call& call, Changed& changed) {
  std::uint8_t* const w = changed.bytes_of(call, "w");
  const std::int64_t groups = rows_of(call, "splits"), bytes = tensor(call, "w").bytes / groups;
  std::swap_ranges(w + 2 * bytes, w + 3 * bytes, w + 3 * bytes);
}

// The sum of group 0 runs on by one row, into that of the next group.
void sum_runs_on(const assay_call& call, Changed& changed) {
  std::int32_t* const ends = changed.integers(call, "psum");
  const std::int64_t next = parameter(call, "alignment"), end = ends[0]++;
  for (const char* name : {"x", "dy"}) {
    std::uint8_t* const rows = changed.bytes_of(call, name);
    const std::int64_t pitch = pitch_of(call, name);
    std::memcpy(rows + end * pitch, rows + next * pitch, static_cast<std::size_t>(pitch));
  }
}

// A dropped choice is taken for a row: one that no choice has, or row 0.
void dropped_choice_copied(const assay_call& call, Changed& changed) {
  std::int32_t* const map = changed.integers(call, "row_map");
  const std::int64_t choices = tensor(call, "row_map").bytes / 4;
  std::set<std::int32_t> named(map, map + choices);
  std::int32_t free = 0;
  while (named.count(free) != 0) ++free;
  ASSERT_LT(free, rows_of(call, "permuted"));
  *std::find(map, map + choices, -1) = free;
}
void dropped_choice_summed(const assay_call& call, Changed& changed) {
  std::int32_t* const map = changed.integers(call, "row_map");
  const std::int64_t choices = tensor(call, "row_map").bytes / 4;
  std::int32_t* const dropped = std::find(map, map + choices, -1);
  ASSERT_NE(dropped, map + choices);
  *dropped = 0;
  float& weight = reinterpret_cast<float*>(changed.bytes_of(call, "weights"))[dropped - map];
  if (!(weight == weight)) weight = 1;  // whatever lies there
}
void choices_exchanged(const assay_call& call, Changed& changed) {
  std::int32_t* const map = changed.integers(call, "row_map");
  std::swap(map[0], map[tensor(call, "row_map").shape[1]]);  // the first choices of tokens 0 and 1
}
void scales_of_the_token_before(const assay_call& call, Changed& changed) {
  std::uint8_t* const scales = changed.bytes_of(call, "scale_inv");
  const std::int64_t pitch = pitch_of(call, "scale_inv");
  std::memmove(scales + pitch, scales, static_cast<std::size_t>(tensor(call, "scale_inv").bytes - pitch));
}

// ---- What it does to its outputs ------------------------------------------------------------------------------------------------

void last_row_of_d_written(const assay_call& call, Changed&) {
  const assay_tensor& d = tensor(call, "d");
  const std::int64_t pitch = pitch_of(call, "d");
  std::memset(static_cast<std::uint8_t*>(d.data) + d.bytes - pitch, 0x11, static_cast<std::size_t>(pitch));
}
void unnamed_rows_cleared(const assay_call& call, Changed&) {
  const auto* map = static_cast<const std::int32_t*>(tensor(call, "row_map").data);
  const std::set<std::int32_t> named(map, map + tensor(call, "row_map").bytes / 4);
  std::uint8_t* const rows = bytes(call, "permuted");
  const std::int64_t pitch = pitch_of(call, "permuted");
  for (std::int32_t row = 0; row < rows_of(call, "permuted"); ++row) {
    if (named.count(row) == 0) std::memset(rows + row * pitch, 0, static_cast<std::size_t>(pitch));
  }
}

struct Fault {
  const char* item;
  const char* name;
  const char* line;
  Spoil before, after = nullptr;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

// clang-format off
constexpr const char *kIndices = "grouped_gemm kind=fp8_block grouped_layout=m_indices splits=128,0,127,129,1 N=136 K=144 seed=2510",
    *kPsum = "grouped_gemm kind=fp8_block grouped_layout=psum splits=128,0,127,129,1 N=24 K=144 extra_rows=130 seed=2511",
    *kMasked = "grouped_gemm kind=bf16 grouped_layout=masked max_m=20 splits=5,0,20,8 N=24 K=40 beyond=large d_type=f32 seed=2551",
    *kNt = "grouped_gemm kind=bf16 layout=NT grouped_layout=psum alignment=32 splits=5,0,70,64 N=24 K=40 beta=1 d_type=f32 seed=2503",
    *kPermute = "permute x_type=e4m3 token_scales=f32 R=33 topk=2 experts=5 dropped=7 alignment=8 K=136 seed=2601",
    *kUnpermute = "unpermute R=33 topk=2 experts=5 dropped=7 alignment=8 K=72 weights=1 seed=2602";
const Fault kFaults[] = {
    {"E1", "rows_behind_the_last_tile", kPsum, nullptr, last_row_of_d_written},
    {"E1", "unnamed_rows_cleared", kPermute, nullptr, unnamed_rows_cleared},
    {"E2", "last_block_of_another_group", kIndices, last_block_of_another_group},
    {"E2", "last_block_left_out", kIndices, last_block_left_out},
    {"E2", "weights_exchanged", kMasked, weights_exchanged},
    {"E3", "last_row_lost", kPsum, last_row_lost},
    {"E3", "counts_of_the_group_before", kMasked, counts_of_the_group_before},
    {"E3", "sum_runs_on", kNt, sum_runs_on},
    {"E4", "row_of_poison", kMasked, row_of_poison},
    {"E5", "dropped_choice_copied", kPermute, dropped_choice_copied},
    {"E5", "dropped_choice_summed", kUnpermute, dropped_choice_summed},
    {"E5", "choices_exchanged", kPermute, choices_exchanged},
    {"E5", "choices_summed_for_another_token", kUnpermute, choices_exchanged},
    {"E5", "scales_of_the_token_before", kPermute, scales_of_the_token_before},
};
// clang-format on

class LayoutFaults : public testing::TestWithParam<Fault> {};

TEST_P(LayoutFaults, AreFound) {
  const Fault& fault = GetParam();
  Rogue rogue;
  EXPECT_EQ(judge_text(rogue, fault.line).verdict, Verdict::passed);
  rogue.execute = [&](const assay_call& call) {
    Changed changed;
    if (fault.before != nullptr) fault.before(call, changed);
    const assay_status status = rogue.honest(call);
    if (fault.after != nullptr) fault.after(call, changed);
    return status;
  };
  const Judgement judgement = judge_text(rogue, fault.line);
  EXPECT_EQ(judgement.verdict, Verdict::failed) << judgement.text;
  EXPECT_FALSE(contains(judgement.text, "the input was changed")) << judgement.text;
}

INSTANTIATE_TEST_SUITE_P(Items, LayoutFaults, testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.item) + "_" + info.param.name; });

// The table of faults names these lines for these items, and they are in the catalogue.
TEST(LayoutFaultTable, NamesTheseLines) {
  std::ifstream file(ASSAY_FAULTS);
  std::map<std::string, std::string> found_by;
  for (std::string row; std::getline(file, row);) {
    if (row.starts_with("| E")) found_by[row.substr(2, 2)] += row;
  }
  std::set<std::string> all, met;
  for (const CaseLine& line : catalogue(Profile::standard)) all.insert(to_text(line));
  for (const Fault& fault : kFaults) {
    EXPECT_TRUE(contains(found_by[fault.item], "`" + std::string(fault.line) + "`")) << fault.item << " " << fault.name;
    EXPECT_TRUE(all.count(to_text(parse_case_line(fault.line)))) << fault.line;
    met.insert(fault.item);
  }
  EXPECT_EQ(met.size(), found_by.size());
}

}  // namespace
}  // namespace assay::conformance
