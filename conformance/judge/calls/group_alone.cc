#include "conformance/judge/calls/group_alone.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "conformance/ops/grouped_gemm.h"
#include "reference/layout/scale_shape.h"

namespace assay::conformance {
namespace {

// Where the rows of one group lie in matrices of all groups.
struct Place {
  std::vector<std::int64_t> splits, alone;
  std::size_t group = 0;
  std::int64_t first = 0, rows = 0;
};

Place largest(const std::vector<std::int64_t>& splits) {
  Place place{splits, std::vector<std::int64_t>(splits.size(), 0)};
  place.group = static_cast<std::size_t>(std::max_element(splits.begin(), splits.end()) - splits.begin());
  place.first = std::accumulate(splits.begin(), splits.begin() + static_cast<std::ptrdiff_t>(place.group), std::int64_t{0});
  place.rows = splits[place.group];
  place.alone[place.group] = place.rows;
  return place;
}

void keep_bytes(Tensor& tensor, std::int64_t first, std::int64_t count) {
  const auto begin = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(first);
  tensor.bytes = std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

// A matrix of rows, or (flat) matrices that are transposed group by group.
void keep_rows(Tensor& tensor, const Place& place, std::int64_t width) {
  if (tensor.shape.size() == 2) {
    const std::int64_t row_bytes = tensor.shape[0] == 0 ? 0 : static_cast<std::int64_t>(tensor.bytes.size()) / tensor.shape[0];
    keep_bytes(tensor, place.first * row_bytes, place.rows * row_bytes);
    tensor.shape[0] = place.rows;
    return;
  }
  const std::int64_t count = bytes_of(tensor.type, place.rows * width);
  keep_bytes(tensor, bytes_of(tensor.type, place.first * width), count);
  tensor.shape = {tensor.type == Format::e2m1 ? count : place.rows * width};
}

void keep_scales(Tensor& tensor, const Place& place, Recipe recipe, Direction direction, std::int64_t width) {
  const std::vector<std::int64_t> offsets = scale_offsets(recipe, direction, place.splits, width);
  const std::vector<std::int64_t> alone = scale_offsets(recipe, direction, place.alone, width);
  const std::int64_t size = bytes_of(tensor.type, 1);
  std::vector<std::byte> bytes(static_cast<std::size_t>(alone.back() * size));
  std::memcpy(bytes.data() + alone[place.group] * size, tensor.bytes.data() + offsets[place.group] * size,
              static_cast<std::size_t>((alone[place.group + 1] - alone[place.group]) * size));
  tensor.bytes = std::move(bytes);
  tensor.shape = {alone.back()};
}

void write_splits(Tensor& splits, const Place& place) {
  for (std::size_t g = 0; g < place.alone.size(); ++g) {
    if (splits.type == Format::i32) {
      splits.as<std::int32_t>()[g] = static_cast<std::int32_t>(place.alone[g]);
    } else {
      splits.as<std::int64_t>()[g] = place.alone[g];
    }
  }
}

void keep_operand(Case& problem, const ParsedGroupedGemm& parsed, const std::string& name, const Place& place,
                  std::int64_t width) {
  const GemmKind kind = parsed.problem.kind;
  if (const auto plain = problem.in.find(name); plain != problem.in.end()) keep_rows(plain->second, place, width);
  for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
    const std::string prefix = name + (direction == Direction::rowwise ? "_rowwise_" : "_columnwise_");
    const auto data = problem.in.find(prefix + "data"), scales = problem.in.find(prefix + "scale_inv");
    if (data == problem.in.end() || scales == problem.in.end()) continue;
    keep_rows(data->second, place, width);
    if (kind == GemmKind::fp8_per_tensor && !(parsed.problem.row_and_column_scales && direction == Direction::rowwise))
      continue;  // one per group, empty ones too, or one for each column
    if (kind == GemmKind::fp8_per_tensor) {
      keep_bytes(scales->second, bytes_of(Format::f32, place.first), bytes_of(Format::f32, place.rows));
      scales->second.shape = {place.rows};
      continue;
    }
    const Recipe recipe = kind == GemmKind::mxfp8 ? Recipe::mxfp8 : kind == GemmKind::nvfp4 ? Recipe::nvfp4 : Recipe::block_1x128;
    keep_scales(scales->second, place, recipe, direction, width);
  }
}

}  // namespace

std::optional<GroupAlone> largest_group_alone(const Case& problem) {
  const bool product = problem.op == "grouped_gemm", linear = problem.op.starts_with("linear_");
  if (!product && !linear) return std::nullopt;
  if (problem.attributes.count("grouped_layout") != 0) return std::nullopt;  // its rows have places of their own
  GroupAlone made{problem};
  const Request request = Request::of(made.problem);
  const std::vector<std::int64_t> splits = request.splits();
  if (std::count_if(splits.begin(), splits.end(), [](std::int64_t each) { return each > 0; }) < 2) return std::nullopt;
  const Place place = largest(splits);
  const std::int64_t N = request.integer("N"), K = request.integer("K");
  bool weight_gradient = problem.op == "linear_wgrad";
  if (product) {
    ParsedGroupedGemm parsed;
    parse_grouped_gemm(request, parsed);
    weight_gradient = parsed.problem.layout == GemmLayout::NT;
    keep_operand(made.problem, parsed, "x", place, K);
    keep_operand(made.problem, parsed, "dy", place, N);
    if (const auto c = made.problem.in.find("c"); c != made.problem.in.end() && !weight_gradient) keep_rows(c->second, place, 0);
  } else {
    for (const char* name : {"x", "dy"}) {
      if (const auto found = made.problem.in.find(name); found != made.problem.in.end()) keep_rows(found->second, place, 0);
    }
  }
  write_splits(made.problem.in.at("splits"), place);
  made.first = weight_gradient ? static_cast<std::int64_t>(place.group) * N : place.first;
  made.first_alone = weight_gradient ? made.first : 0;
  made.rows = weight_gradient ? N : place.rows;
  return made;
}

}  // namespace assay::conformance
