// Groups whose rows do not follow one another: gathered by hand into the plain layout, multiplied there, and put back, every byte of
// D is that of the product in place; the other rows of D keep what they held.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/expectation.h"
#include "conformance/ops/answer.h"
#include "conformance/ops/output_map.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::conformance {
namespace {

std::int64_t up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// Which rows of the matrix belong to each group, read here a second time.
std::vector<std::vector<std::int64_t>> rows_of_groups(const Case& problem) {
  const auto integer = [&](const char* name) { return std::get<std::int64_t>(problem.attributes.at(name)); };
  const std::string layout = std::get<std::string>(problem.attributes.at("grouped_layout"));
  std::vector<std::vector<std::int64_t>> groups;
  if (layout == "m_indices") {
    const Tensor& indices = problem.in.at("m_indices");
    groups.resize(static_cast<std::size_t>(integer("groups")));
    for (std::int64_t row = 0; row < indices.elements(); ++row) {
      const std::int32_t group = indices.as<std::int32_t>()[row];
      if (group != -1) groups[static_cast<std::size_t>(group)].push_back(row);
    }
  } else if (layout == "psum") {
    const Tensor& ends = problem.in.at("psum");
    std::int64_t row = 0;
    for (std::int64_t g = 0; g < ends.elements(); ++g) {
      groups.emplace_back();
      for (; row < ends.as<std::int32_t>()[g]; ++row) groups.back().push_back(row);
      while (row % integer("alignment") != 0) ++row;
    }
  } else {
    const Tensor& counts = problem.in.at("splits");
    for (std::int64_t g = 0; g < counts.elements(); ++g) {
      groups.emplace_back();
      for (std::int64_t i = 0; i < counts.as<std::int32_t>()[g]; ++i) groups.back().push_back(g * integer("max_m") + i);
    }
  }
  return groups;
}

using Groups = std::vector<std::vector<std::int64_t>>;

std::vector<std::int64_t> all_rows(const Groups& groups) {
  std::vector<std::int64_t> rows;
  for (const auto& group : groups) rows.insert(rows.end(), group.begin(), group.end());
  return rows;
}

Tensor gathered_rows(const Tensor& from, const std::vector<std::int64_t>& rows) {
  Tensor to{from.type, from.shape, {}};
  to.shape[0] = static_cast<std::int64_t>(rows.size());
  const std::size_t bytes = from.shape[0] == 0 ? 0 : from.bytes.size() / static_cast<std::size_t>(from.shape[0]);
  for (const std::int64_t row : rows) {
    const auto begin = from.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * bytes);
    to.bytes.insert(to.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
  }
  return to;
}

// Where the scale of row i and block j lies in the scales of a matrix of `rows` rows of `width` elements (spec fp8-block-2.1,
// mxfp8-2.1, nvfp4-2.1, layouts-3.2).
struct ScaleMatrix {
  std::string kind;
  bool swizzled;
  std::int64_t rows, width;
  std::int64_t block() const { return kind == "block" ? 128 : kind == "mxfp8" ? 32 : 16; }
  std::int64_t blocks() const { return (width + block() - 1) / block(); }
  std::int64_t size() const { return kind == "block" ? blocks() * up(rows, 4) : up(rows, 128) * up(blocks(), 4); }
  std::int64_t at(std::int64_t i, std::int64_t j) const {
    if (kind == "block") return j * up(rows, 4) + i;
    const std::int64_t pitch = up(blocks(), 4);
    if (!swizzled) return i * pitch + j;
    return (i / 128 * (pitch / 4) + j / 4) * 512 + i % 32 * 16 + i % 128 / 32 * 4 + j % 4;
  }
};

// Scales of all rows, or of max_m rows a group, as scales of each group by itself.
Tensor gathered_scales(const Tensor& from, const Case& problem, const Groups& groups, std::int64_t rows, std::int64_t width) {
  const std::string kind = std::get<std::string>(problem.attributes.at("kind"));
  const auto order = problem.attributes.find("scale_layout");
  const bool swizzled = order != problem.attributes.end() && std::get<std::string>(order->second) == "swizzled";
  const auto max_m = problem.attributes.find("max_m");
  const std::int64_t height = max_m == problem.attributes.end() ? rows : std::get<std::int64_t>(max_m->second);
  const ScaleMatrix whole{kind, swizzled, height, width};
  const std::size_t bytes = from.type == Format::f32 ? 4 : 1;
  Tensor to{from.type, {0}, {}};
  for (const auto& group : groups) {
    const ScaleMatrix own{kind, swizzled, static_cast<std::int64_t>(group.size()), width};
    const std::size_t base = to.bytes.size();
    to.bytes.resize(base + static_cast<std::size_t>(own.size()) * bytes);
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::int64_t j = 0; j < own.blocks(); ++j) {
        const std::int64_t at = group[i] / height * whole.size() + whole.at(group[i] % height, j);
        std::memcpy(to.bytes.data() + base + static_cast<std::size_t>(own.at(static_cast<std::int64_t>(i), j)) * bytes,
                    from.bytes.data() + static_cast<std::size_t>(at) * bytes, bytes);
      }
    }
  }
  to.shape[0] = static_cast<std::int64_t>(to.bytes.size() / bytes);
  return to;
}

// The same product with groups that follow one another.
Case gathered(const Case& problem) {
  Case plain = problem;
  const Groups groups = rows_of_groups(problem);
  const std::vector<std::int64_t> rows = all_rows(groups);
  const std::string layout = std::get<std::string>(problem.attributes.at("layout")),
                    kind = std::get<std::string>(problem.attributes.at("kind"));
  for (const char* name : {"grouped_layout", "alignment", "groups", "max_m"}) plain.attributes.erase(name);
  for (const char* name : {"m_indices", "psum", "splits"}) plain.in.erase(name);
  Tensor splits = make_tensor(Format::i64, {static_cast<std::int64_t>(groups.size())});
  for (std::size_t g = 0; g < groups.size(); ++g) splits.as<std::int64_t>()[g] = static_cast<std::int64_t>(groups[g].size());
  plain.in["splits"] = splits;
  for (const std::string name : {"x", "dy"}) {
    const std::int64_t width = std::get<std::int64_t>(problem.attributes.at(name == "x" ? "K" : "N"));
    for (const std::string& data : {name, name + "_rowwise_data", name + "_columnwise_data"}) {
      if (problem.in.count(data) != 0) plain.in[data] = gathered_rows(problem.in.at(data), rows);
    }
    const std::string scales = name + "_rowwise_scale_inv";
    if (problem.in.count(scales) == 0 || layout == "NT") continue;
    const bool of_rows = problem.attributes.count("scaling") != 0;
    if (of_rows) plain.in[scales] = gathered_rows(problem.in.at(scales), rows);
    if (kind != "tensor")
      plain.in[scales] =
          gathered_scales(problem.in.at(scales), problem, groups, problem.in.at(name + "_rowwise_data").shape[0], width);
  }
  if (layout != "NT" && problem.in.count("c") != 0) plain.in["c"] = gathered_rows(problem.in.at("c"), rows);
  return plain;
}

Tensor product(Case problem, Layer layer, std::byte before) {
  Request request = Request::of(problem);
  request.out.clear();
  const OutputSpec spec = outputs_of(request).at(0);
  Tensor d = make_tensor(spec.type, spec.shape);
  std::fill(d.bytes.begin(), d.bytes.end(), before);
  request.out["d"] = {d.type, d.shape, d.bytes.empty() ? nullptr : d.bytes.data(), static_cast<std::int64_t>(d.bytes.size())};
  answer(request, layer);
  return d;
}

constexpr const char* kLines[] = {
    // clang-format off
    "grouped_gemm kind=bf16 grouped_layout=m_indices alignment=8 splits=5,0,17,8 N=24 K=40 extra_rows=3 seed=1",
    "grouped_gemm kind=bf16 grouped_layout=m_indices alignment=128 splits=5,0,130 N=24 K=40 beta=0.5 d_type=f32 seed=2",
    "grouped_gemm kind=f16 layout=NN grouped_layout=m_indices alignment=1 splits=5,3,0,8 N=24 K=40 seed=3",
    "grouped_gemm kind=fp8_per_tensor grouped_layout=m_indices alignment=16 splits=5,3,0,30 N=32 K=40 alpha=0.75 bias=1 seed=4",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column grouped_layout=m_indices alignment=16 splits=5,3,0,30 N=32 K=40 seed=5",
    "grouped_gemm kind=fp8_block grouped_layout=m_indices alignment=16 splits=5,30,0,17 N=136 K=272 d_type=f32 seed=6",
    "grouped_gemm kind=fp8_block layout=NN weight_block=1x128 grouped_layout=m_indices alignment=16 splits=5,30,0,17 N=136 K=40 seed=7",
    "grouped_gemm kind=mxfp8 grouped_layout=m_indices alignment=48 splits=50,0,100,7 N=32 K=96 seed=8",
    "grouped_gemm kind=mxfp8 scale_layout=compact layout=NN grouped_layout=m_indices alignment=48 splits=50,0,100,7 N=160 K=32 seed=9",
    "grouped_gemm kind=nvfp4 grouped_layout=m_indices alignment=48 splits=50,0,100,7 N=32 K=96 extra_rows=5 seed=10",
    "grouped_gemm kind=bf16 grouped_layout=psum alignment=8 splits=0,5,0,17,8 N=24 K=40 extra_rows=3 d_type=f16 seed=11",
    "grouped_gemm kind=fp8_per_tensor layout=NN grouped_layout=psum alignment=16 splits=5,30,0 N=32 K=40 beta=1 seed=12",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column layout=NN grouped_layout=psum alignment=16 splits=5,30,0 N=32 K=40 seed=13",
    "grouped_gemm kind=fp8_block grouped_layout=psum alignment=16 splits=5,30,0,17 N=136 K=272 seed=14",
    "grouped_gemm kind=mxfp8 grouped_layout=psum alignment=32 splits=50,0,100,7 N=32 K=96 extra_rows=9 seed=15",
    "grouped_gemm kind=nvfp4 layout=NN grouped_layout=psum alignment=48 splits=50,0,100,7 N=32 K=96 seed=16",
    "grouped_gemm kind=nvfp4 scale_layout=compact grouped_layout=psum alignment=48 splits=50,0,100,7 N=32 K=96 seed=17",
    "grouped_gemm kind=bf16 grouped_layout=masked max_m=20 splits=5,0,20,8 N=24 K=40 seed=18",
    "grouped_gemm kind=f16 layout=NN grouped_layout=masked max_m=17 splits=5,0,17,8 N=24 K=40 alpha=2 beta=-1 seed=19",
    "grouped_gemm kind=fp8_per_tensor grouped_layout=masked max_m=40 splits=5,0,17,8 N=32 K=40 bias=1 seed=20",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column grouped_layout=masked max_m=21 splits=5,0,17,8 N=32 K=40 seed=21",
    "grouped_gemm kind=fp8_block grouped_layout=masked max_m=42 splits=5,0,17,42 N=136 K=272 d_type=f32 seed=22",
    "grouped_gemm kind=mxfp8 grouped_layout=masked max_m=130 splits=50,0,130,7 N=32 K=96 seed=23",
    "grouped_gemm kind=nvfp4 scale_layout=compact grouped_layout=masked max_m=130 splits=50,0,130,7 N=32 K=96 seed=24",
    "grouped_gemm kind=bf16 arch=sm100 alpha=1,2,0.5,-1 beta=0,1,0,0.25 grouped_layout=m_indices alignment=4 splits=5,0,6,8 N=16 K=32 seed=25",
    "grouped_gemm kind=bf16 layout=NT grouped_layout=psum alignment=64 splits=5,0,70,64 N=24 K=40 beta=1 d_type=f32 seed=26",
    "grouped_gemm kind=f16 layout=NT grouped_layout=psum alignment=32 splits=0,33,31,0 N=24 K=40 extra_rows=7 seed=27",
    "grouped_gemm kind=mxfp8 layout=NT grouped_layout=psum alignment=32 splits=0,33,31,150 N=32 K=64 beta=1 d_type=f32 seed=28",
    "grouped_gemm kind=mxfp8 layout=NT scale_layout=compact grouped_layout=psum alignment=128 splits=0,33,31,150 N=32 K=64 seed=29",
    "grouped_gemm kind=fp8_per_tensor arch=sm100 layout=NT grouped_layout=psum alignment=16 splits=3,0,33 N=32 K=64 seed=30",
    "grouped_gemm kind=bf16 grouped_layout=m_indices splits=20,0,9 N=8 K=0 beta=1 alignment=16 seed=31",
    "grouped_gemm kind=fp8_per_tensor grouped_layout=psum splits=20,0,9 N=16 K=0 alignment=16 seed=32",
    "grouped_gemm kind=bf16 grouped_layout=masked max_m=24 splits=20,0,9 N=8 K=0 seed=33",
    "grouped_gemm kind=bf16 grouped_layout=m_indices splits=20,0,9 N=1 K=33 alignment=16 seed=34",
    "grouped_gemm kind=bf16 layout=NT grouped_layout=psum splits=20,0,9 N=1 K=16 alignment=16 seed=35",
    "grouped_gemm kind=fp8_block grouped_layout=masked max_m=24 splits=20,0,9 N=1 K=144 seed=36",
    "grouped_gemm kind=bf16 grouped_layout=psum splits=1025x3 N=8 K=8 alignment=4 seed=37",
    "grouped_gemm kind=bf16 grouped_layout=m_indices splits=3x0 N=8 K=8 alignment=4 extra_rows=5 seed=38",
    "grouped_gemm kind=bf16 grouped_layout=masked max_m=4 splits=3x0 N=8 K=8 seed=39",
    "grouped_gemm kind=bf16 grouped_layout=psum splits=0x0 N=8 K=8 extra_rows=2 seed=40",
    "grouped_gemm kind=bf16 layout=NT grouped_layout=psum splits=3x0 N=8 K=8 beta=1 seed=41",
    "grouped_gemm kind=fp8_block grouped_layout=masked max_m=42 splits=5,0,17,42 N=136 K=272 beyond=large seed=42",
    // clang-format on
};

class GroupedLayout : public testing::TestWithParam<const char*> {};

TEST_P(GroupedLayout, HasTheBitsOfTheGroupsGathered) {
  const Case problem = generate(parse_case_line(GetParam()));
  const Case plain = gathered(problem);
  const bool wgrad = std::get<std::string>(problem.attributes.at("layout")) == "NT";
  const std::vector<std::int64_t> rows = all_rows(rows_of_groups(problem));
  for (const Layer layer : {Layer::fast, Layer::scalar}) {
    const Tensor d = product(problem, layer, std::byte{0xC3}), want = product(plain, layer, std::byte{0xC3});
    Tensor expected = wgrad ? want : make_tensor(d.type, d.shape);
    if (!wgrad) {
      std::fill(expected.bytes.begin(), expected.bytes.end(), std::byte{0xC3});
      const std::size_t row = d.shape[0] == 0 ? 0 : d.bytes.size() / static_cast<std::size_t>(d.shape[0]);
      for (std::size_t i = 0; i < rows.size(); ++i)
        std::memcpy(expected.bytes.data() + static_cast<std::size_t>(rows[i]) * row, want.bytes.data() + i * row, row);
    }
    EXPECT_EQ(d.bytes, expected.bytes) << (layer == Layer::fast ? "fast" : "scalar");
  }
}

// What lies between the groups and is not theirs is poison, or 0 where the contraction runs over it.
TEST_P(GroupedLayout, HasPoisonBetweenTheGroups) {
  const CaseLine line = parse_case_line(GetParam());
  const Case problem = generate(line);
  std::vector<bool> with;
  for (const char* name : {"x", "x_rowwise_data", "x_columnwise_data", "dy", "dy_rowwise_data"}) {
    const auto found = problem.in.find(name);
    if (found == problem.in.end() || found->second.shape.size() != 2 || found->second.bytes.empty()) continue;
    const Tensor& matrix = found->second;
    with.assign(static_cast<std::size_t>(matrix.shape[0]), false);
    for (const std::int64_t row : all_rows(rows_of_groups(problem))) with[static_cast<std::size_t>(row)] = true;
    if (line.text("layout") == "NT") with.resize(with.size() - static_cast<std::size_t>(line.integer("extra_rows")));
    const std::size_t bytes = matrix.bytes.size() / static_cast<std::size_t>(matrix.shape[0]),
                      width = static_cast<std::size_t>(bytes_of(matrix.type, 1));
    for (std::size_t row = 0; row < with.size(); ++row) {
      for (std::size_t at = row * bytes; !with[row] && at < (row + 1) * bytes; ++at) {
        const auto byte = static_cast<std::uint8_t>(matrix.bytes[at]);
        if (line.text("layout") == "NT") {
          ASSERT_EQ(byte, 0) << name << " row " << row;
        } else if (line.text("beyond") == "large") {
          ASSERT_EQ(byte, 0x7E) << name << " row " << row;
        } else if (matrix.type == Format::bf16 || matrix.type == Format::f16) {
          ASSERT_EQ(byte, at % width == 1               ? (matrix.type == Format::bf16 ? 0x7F : 0x7E)
                          : matrix.type == Format::bf16 ? 0xC0
                                                        : 0x00)
              << name << " row " << row;
        } else {
          ASSERT_EQ(byte, matrix.type == Format::e2m1 ? 0x77 : 0x7F) << name << " row " << row;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, GroupedLayout, testing::ValuesIn(kLines));

}  // namespace
}  // namespace assay::conformance
