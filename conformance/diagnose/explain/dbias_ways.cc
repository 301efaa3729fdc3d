// The sum of a bias gradient in other orders, over other rows, in another type (spec dbias-1.1).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/ops/words.h"
#include "reference/recipes/element_scalar.h"

namespace assay::conformance::explaining {
namespace {

// A column of the matrix, from the first row of a group on.
struct DbiasColumn {
  std::int64_t group = 0, rows = 0;  // rows of the group
  std::int64_t first = 0, all = 0;   // its first row, and the rows of the whole matrix
  std::function<float(std::int64_t row)> value;
};
using DbiasSum = std::function<float(const DbiasColumn& column)>;

// By halves of `half` rows, two a tile, as the right order has 64.
float by_halves(const DbiasColumn& column, std::int64_t begin, std::int64_t end, std::int64_t half) {
  float sum = 0;
  for (std::int64_t tile = begin; tile < end; tile += 2 * half) {
    float halves[2] = {0, 0};
    for (std::int64_t r = tile; r < std::min(tile + 2 * half, end); ++r) halves[(r - tile) / half] += column.value(r);
    sum += halves[0] + halves[1];
  }
  return sum;
}

struct DbiasWay {
  std::string text;
  DbiasSum sum;
};

void add_dbias_orders(std::vector<DbiasWay>& ways) {
  ways.push_back({"added row after row, without halves of 64", [](const DbiasColumn& c) {
                    float sum = 0;
                    for (std::int64_t r = 0; r < c.rows; ++r) sum += c.value(r);
                    return sum;
                  }});
  ways.push_back({"added from the last row to the first", [](const DbiasColumn& c) {
                    float sum = 0;
                    for (std::int64_t r = c.rows - 1; r >= 0; --r) sum += c.value(r);
                    return sum;
                  }});
  for (const std::int64_t half : {8, 16, 32, 128, 256})
    ways.push_back({fmt::format("added in parts of {} rows, not of 64", half),
                    [half](const DbiasColumn& c) { return by_halves(c, 0, c.rows, half); }});
  for (const std::int64_t tile : {32, 64, 128, 256}) {
    ways.push_back(
        {fmt::format("added row after row in tiles of {}, and the tiles one after another", tile), [tile](const DbiasColumn& c) {
           float sum = 0;
           for (std::int64_t first = 0; first < c.rows; first += tile) {
             float part = 0;
             for (std::int64_t r = first; r < std::min(first + tile, c.rows); ++r) part += c.value(r);
             sum += part;
           }
           return sum;
         }});
  }
  for (const std::int64_t lanes : {2, 4, 8, 16, 32}) {
    const auto strided = [lanes](const DbiasColumn& c, std::int64_t first, std::int64_t last) {
      std::vector<float> part(static_cast<std::size_t>(lanes), 0.0f);
      for (std::int64_t r = first; r < last; ++r) part[static_cast<std::size_t>((r - first) % lanes)] += c.value(r);
      for (std::int64_t distance = lanes / 2; distance > 0; distance /= 2)
        for (std::int64_t i = 0; i < distance; ++i)
          part[static_cast<std::size_t>(i)] += part[static_cast<std::size_t>(i + distance)];
      return part[0];
    };
    ways.push_back({fmt::format("added in {} strided parts of all rows", lanes),
                    [strided](const DbiasColumn& c) { return strided(c, 0, c.rows); }});
    ways.push_back({fmt::format("added in {} strided parts of each tile of 128 rows", lanes), [strided](const DbiasColumn& c) {
                      float sum = 0;
                      for (std::int64_t tile = 0; tile < c.rows; tile += 128)
                        sum += strided(c, tile, std::min(tile + 128, c.rows));
                      return sum;
                    }});
  }
}

void add_dbias_types(std::vector<DbiasWay>& ways) {
  const auto bf16 = [](float value) { return scalar::decode_bf16(scalar::encode_bf16(value)); };
  const auto f16 = [](float value) { return scalar::decode_f16(scalar::encode_f16(value)); };
  const auto in = [&](const std::string& type, float (*rounded)(float)) {
    ways.push_back({"added row after row in " + type, [rounded](const DbiasColumn& c) {
                      float sum = 0;
                      for (std::int64_t r = 0; r < c.rows; ++r) sum = rounded(sum + c.value(r));
                      return sum;
                    }});
    ways.push_back({"added in halves of 64 rows in " + type, [rounded](const DbiasColumn& c) {
                      float sum = 0;
                      for (std::int64_t tile = 0; tile < c.rows; tile += 128) {
                        float halves[2] = {0, 0};
                        for (std::int64_t r = tile; r < std::min(tile + 128, c.rows); ++r) {
                          float& half = halves[(r - tile) / 64];
                          half = rounded(half + c.value(r));
                        }
                        sum = rounded(sum + rounded(halves[0] + halves[1]));
                      }
                      return sum;
                    }});
  };
  in("bf16", bf16);
  in("f16", f16);
  ways.push_back({"added exactly, rounded once", [](const DbiasColumn& c) {
                    double sum = 0;  // of columns whose sums a double holds
                    for (std::int64_t r = 0; r < c.rows; ++r) sum += c.value(r);
                    return static_cast<float>(sum);
                  }});
}

void add_dbias_rows(std::vector<DbiasWay>& ways) {
  const auto of = [&](const std::string& text, auto begin_end) {
    ways.push_back({text, [begin_end](const DbiasColumn& c) {
                      const auto [begin, end] = begin_end(c);
                      return by_halves(c, std::max(begin, -c.first), std::min(end, c.all - c.first), 64);
                    }});
  };
  using Rows = std::pair<std::int64_t, std::int64_t>;
  for (const std::int64_t tile : {2, 4, 8, 16, 32, 64, 128}) {
    of(fmt::format("without the rows past a multiple of {}", tile), [tile](const DbiasColumn& c) {
      return Rows{0, c.rows / tile * tile};
    });
    of(fmt::format("with the rows behind, up to a multiple of {}", tile), [tile](const DbiasColumn& c) {
      return Rows{0, (c.rows + tile - 1) / tile * tile};
    });
    of(fmt::format("of the first {} rows", tile), [tile](const DbiasColumn& c) { return Rows{0, std::min(c.rows, tile)}; });
  }
  of("without the first row", [](const DbiasColumn& c) { return Rows{std::min<std::int64_t>(1, c.rows), c.rows}; });
  of("without the last row", [](const DbiasColumn& c) { return Rows{0, std::max<std::int64_t>(c.rows - 1, 0)}; });
  of("with the first row of the next group", [](const DbiasColumn& c) { return Rows{0, c.rows + 1}; });
  of("with the last row of the group before", [](const DbiasColumn& c) { return Rows{-1, c.rows}; });
  of("of the rows one further", [](const DbiasColumn& c) { return Rows{1, c.rows + 1}; });
  of("of the rows one before", [](const DbiasColumn& c) { return Rows{-1, c.rows - 1}; });
  of("of the whole tensor", [](const DbiasColumn& c) { return Rows{-c.first, c.all - c.first}; });
}

// The sums by `way`, over the expected ones.
bool write_sums(const Failure& failure, const FailedOutput& output, const DbiasSum& sum, Tensor& tensor) {
  const Request& request = failure.request();
  const TensorView* const x = request.find_input(request.find_input("dy") != nullptr ? "dy" : "x");
  if (x == nullptr || x->shape.size() != 2) return false;
  const std::int64_t columns = x->shape[1];
  const std::vector<std::int64_t> groups = group_rows(request, x->shape[0]);
  if (tensor.elements() != static_cast<std::int64_t>(groups.size()) * columns) return false;
  std::int64_t first = 0;
  const TensorView* const before = request.find_input("dbias");
  for (std::size_t t = 0; t < groups.size(); first += groups[t], ++t) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const DbiasColumn column{static_cast<std::int64_t>(t), groups[t], first, x->shape[0],
                               [&](std::int64_t row) { return scalar::load(x->type, x->data, (first + row) * columns + c); }};
      const std::int64_t at = static_cast<std::int64_t>(t) * columns + c;
      float value = sum(column);
      if (before != nullptr) value = floats(before)[at] + value;
      scalar::store(output.want.type, tensor.bytes.data(), at, value);
    }
  }
  return true;
}

}  // namespace

void propose_dbias(const Failure& failure, const Propose& propose) {
  if (is_skipped(failure.request())) return;
  for (const FailedOutput& output : failure.outputs()) {
    if (output.name != "dbias" || output.wrong.empty()) continue;
    std::vector<DbiasWay> ways;
    add_dbias_orders(ways);
    add_dbias_types(ways);
    add_dbias_rows(ways);
    for (DbiasWay& way : ways) {
      Candidate candidate{"with the sums of dbias " + way.text, 11};
      candidate.all = [&failure, &output, sum = std::move(way.sum)](Outputs& outputs) {
        return write_sums(failure, output, sum, outputs[output.name]);
      };
      propose(std::move(candidate));
    }
  }
}

}  // namespace assay::conformance::explaining
