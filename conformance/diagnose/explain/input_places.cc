// Dequantization with the scales of other blocks.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/diagnose/other_calls/other_call.h"

namespace assay::conformance::explaining {
namespace {

// Where the scales lie: as op quantize writes them for the same tensor.
OutputMap map_of_scales(const Case& call, const std::string& name, const Tensor& scales, const Tensor& x) {
  Case like;
  like.op = "quantize";
  like.attributes = call.attributes;
  like.in["x"] = {Format::bf16, {x.shape.at(0), x.shape.at(1)}, {}};
  const auto splits = call.in.find("splits");
  if (splits != call.in.end()) like.in["splits"] = splits->second;
  return map_output(like, name, scales);
}

struct ScaleShift {
  std::string text;
  std::int64_t rows, columns;  // of the matrix of scales in storage
};

}  // namespace

void propose_input_places(const Failure& failure, const Propose& propose) {
  const Case& call = failure.call();
  if (call.op != "dequantize" || failure.outputs().empty()) return;
  for (const auto& [name, scales] : call.in) {
    if (!name.ends_with("scale_inv")) continue;
    const auto map = std::make_shared<OutputMap>(map_of_scales(call, name, scales, failure.outputs().front().want));
    const std::string row = map->row_name.empty() ? "row" : map->row_name,
                      column = map->column_name.empty() ? "column" : map->column_name;
    for (const ScaleShift& shift : {ScaleShift{fmt::format("of the {} before", row), -1, 0},
                                    {fmt::format("of the {} after", row), 1, 0},
                                    {fmt::format("of the {} before", column), 0, -1},
                                    {fmt::format("of the {} after", column), 0, 1}}) {
      Candidate candidate{fmt::format("with {} {}", name, shift.text), 12};
      candidate.all = [&failure, &scales = scales, &name = name, map, shift](Outputs& outputs) {
        Tensor moved = scales;
        const std::int64_t width = bits_of(scales.type) / 8;
        for (const Segment& segment : map->segments) {
          for (std::int64_t r = 0; r < segment.used_rows; ++r) {
            for (std::int64_t c = 0; c < segment.used_columns; ++c) {
              const Coordinates from{std::clamp<std::int64_t>(r + shift.rows, 0, segment.used_rows - 1),
                                     std::clamp<std::int64_t>(c + shift.columns, 0, segment.used_columns - 1)};
              std::memcpy(moved.bytes.data() + (segment.first + offset_of(segment, {r, c})) * width,
                          scales.bytes.data() + (segment.first + offset_of(segment, from)) * width,
                          static_cast<std::size_t>(width));
            }
          }
        }
        diagnosis::OtherCall other(failure.request());
        other.replace(name, std::move(moved));
        for (auto& [output, tensor] : failure.answered(other.request)) outputs[output].bytes = std::move(tensor.bytes);
        return true;
      };
      propose(std::move(candidate));
    }
  }
}

}  // namespace assay::conformance::explaining
