// Quantization: the block, its amax, the scale, the product, the code and what the code stands for.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/diagnose/other_calls/quantize_rules.h"
#include "conformance/diagnose/other_calls/quantized_matrix.h"
#include "conformance/diagnose/trace/trace_parts.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/words.h"
#include "reference/recipes/element_scalar.h"

namespace assay::conformance::tracing {
namespace {

struct Range {
  std::int64_t first = 0, last = 0;  // last: one past
};

std::string text_of(const Range& range) {
  return range.first + 1 == range.last ? std::to_string(range.first) : fmt::format("{}-{}", range.first, range.last - 1);
}

class QuantizedTrace {
 public:
  QuantizedTrace(const QuantizedElement& of, std::vector<TraceLine>& lines)
      : of_(of),
        config_(quantize_config_of(of.request)),
        quantized_(of.request, of.request.input("x")),
        x_(quantized_.view()),
        lines_(lines) {
    const std::vector<std::int64_t> rows = group_rows(of.request, x_.shape.at(0));
    for (std::int64_t g = 0; g < of.segment.group; ++g) first_row_ += rows[static_cast<std::size_t>(g)];
    rows_ = rows[static_cast<std::size_t>(of.segment.group)];
    columns_ = x_.shape.at(1);
    rowwise_ = !of.output.starts_with("columnwise");
    is_data_ = of.output.ends_with("data");
    find_block();
  }

  void run() {
    if (is_data_ && config_.activation != Activation::off) {
      const TensorView& given = of_.request.input("x");
      const std::int64_t gate = (first_row_ + row_) * 2 * columns_ + column_;
      lines_.push_back({"gate", show_of(given, gate), ""});
      lines_.push_back({"up", show_of(given, gate + columns_), ""});
    }
    if (is_data_) {
      lines_.push_back({fmt::format("x of row {}, column {} of the group", row_, column_), show_x(row_, column_), ""});
    }
    lines_.push_back({fmt::format("block: rows {}, columns {}", text_of(block_rows_), text_of(block_columns_)), "", ""});
    float amax = 0;
    std::int64_t at_row = -1, at_column = -1;
    for (std::int64_t r = block_rows_.first; r < block_rows_.last; ++r) {
      for (std::int64_t c = block_columns_.first; c < block_columns_.last; ++c) {
        const float more = scalar::accumulate_absmax(amax, x(r, c));
        if (more != amax) at_row = r, at_column = c;
        amax = more;
      }
    }
    const std::string where = at_row < 0 ? "" : fmt::format(", of row {}, column {}", at_row, at_column);
    lines_.push_back({"amax of the block" + where, shown_f32(amax), ""});
    const bool by_tensor = config_.recipe == Recipe::nvfp4;
    if (by_tensor) tensor_amax();
    float multiplier = 1;
    if (!by_tensor) {
      multiplier = multiplier_of(amax);
      lines_.push_back({"scale: what x is multiplied by", shown_f32(multiplier), ""});
    }
    stored_scale();
    if (!is_data_) return;
    if (!by_tensor) lines_.push_back({"x times scale", shown_f32(x(row_, column_) * multiplier), ""});
    decoded();
  }

 private:
  float x(std::int64_t r, std::int64_t c) const { return scalar::load(x_.type, x_.data, (first_row_ + r) * columns_ + c); }
  std::string show_x(std::int64_t r, std::int64_t c) const { return show_of(x_, (first_row_ + r) * columns_ + c); }
  static std::string show_of(const TensorView& x, std::int64_t at) {
    Elements elements;
    elements.type = x.type;
    elements.bytes = static_cast<const std::byte*>(x.data);
    elements.bits = bits_of(x.type);
    return show_element(x.type, elements[at]);
  }

  // Rows and columns of a block.
  Coordinates shape() const {
    switch (config_.recipe) {
      case Recipe::block_1x128: return rowwise_ ? Coordinates{1, 128} : Coordinates{128, 1};
      case Recipe::block_128x128: return {128, 128};
      case Recipe::mxfp8: return rowwise_ ? Coordinates{1, 32} : Coordinates{32, 1};
      case Recipe::nvfp4:
        if (config_.two_dimensional) return {16, 16};
        return rowwise_ ? Coordinates{1, 16} : Coordinates{16, 1};
      default: return {std::max<std::int64_t>(rows_, 1), std::max<std::int64_t>(columns_, 1)};
    }
  }
  // Whether the stored matrix of codes is that of x transposed.
  bool transposed() const { return !rowwise_ && config_.recipe != Recipe::mxfp8; }

  void find_block() {
    const Coordinates block = shape(), at = of_.place;
    Coordinates first;  // element of x in the block
    if (is_data_) {
      row_ = transposed() ? at.column : at.row;
      column_ = transposed() ? at.row : at.column;
      first = {row_, column_};
    } else if (is_per_tensor(config_.recipe)) {
      first = {0, 0};
    } else {
      // The order of scales in storage: as in quantize_hypotheses.cc, scale_shape.h.
      bool turned = false;
      if (config_.recipe == Recipe::block_1x128) turned = rowwise_;
      if (config_.recipe == Recipe::block_128x128) turned = !rowwise_;
      if (config_.recipe == Recipe::nvfp4) turned = !rowwise_;
      first = turned ? Coordinates{at.column * block.row, at.row * block.column}
                     : Coordinates{at.row * block.row, at.column * block.column};
    }
    block_rows_.first = std::min(first.row / block.row * block.row, rows_);
    block_columns_.first = std::min(first.column / block.column * block.column, columns_);
    block_rows_.last = std::min(block_rows_.first + block.row, rows_);
    block_columns_.last = std::min(block_columns_.first + block.column, columns_);
  }

  float multiplier_of(float amax) const {
    if (config_.recipe == Recipe::tensor_delayed) return floats(&of_.request.input("scale"))[of_.segment.group];
    return diagnosis::right_scale({config_.recipe, config_.output, x_.type, config_.force_pow_2_scales, config_.amax_epsilon},
                                  amax)
        .multiplier;
  }

  void tensor_amax() {
    for (const char* name : {"amax", "columnwise_amax"}) {
      const auto found = of_.want.find(name);
      if (found == of_.want.end() || (name[0] == 'c') == rowwise_) continue;
      pair(std::string("amax of the tensor (") + name + ")", name, of_.segment.group);
    }
  }

  // The same element of an output, expected and given.
  void pair(const std::string& what, const std::string& output, std::int64_t at) {
    const Tensor& want = of_.want.at(output);
    const auto given = of_.given.find(output);
    const std::string got = given == of_.given.end() ? "" : show_element(want.type, Elements(given->second)[at]);
    lines_.push_back({what, show_element(want.type, Elements(want)[at]), got});
  }

  // Where the scale of the block lies in its output; nothing if there is no such output.
  std::int64_t scale_at(const std::string& output) const {
    const OutputMap map = map_output(of_.call, output, of_.want.at(output));
    for (const Segment& segment : map.segments) {
      if (segment.group != of_.segment.group) continue;
      if (is_per_tensor(config_.recipe)) return segment.first;
      if (!is_data_) return segment.first + offset_of(segment, of_.place);
      const Coordinates block = shape();
      const std::int64_t i = row_ / block.row, j = column_ / block.column;
      bool turned = false;
      if (config_.recipe == Recipe::block_1x128) turned = rowwise_;
      if (config_.recipe == Recipe::block_128x128 || config_.recipe == Recipe::nvfp4) turned = !rowwise_;
      return segment.first + offset_of(segment, turned ? Coordinates{j, i} : Coordinates{i, j});
    }
    return -1;
  }

  void stored_scale() {
    const std::string name = rowwise_ ? "rowwise_scale_inv" : "columnwise_scale_inv";
    if (of_.want.count(name) == 0) return;
    scale_ = scale_at(name);
    if (scale_ >= 0) pair(name + ", what codes are multiplied by", name, scale_);
  }

  // What the code stands for: its value times the stored scale.
  void decoded() {
    const std::string name = rowwise_ ? "rowwise_scale_inv" : "columnwise_scale_inv";
    const std::int64_t at = of_.segment.first + offset_of(of_.segment, of_.place);
    const auto value = [&](const std::map<std::string, Tensor>& outputs) -> std::string {
      const auto data = outputs.find(of_.output), scale = outputs.find(name);
      if (data == outputs.end() || scale == outputs.end() || scale_ < 0) return "";
      const Tensor& codes = data->second;
      return fmt::format(
          "{}", value_of(codes.type, Elements(codes)[at]) * value_of(scale->second.type, Elements(scale->second)[scale_]));
    };
    pair("code", of_.output, at);
    lines_.push_back({config_.recipe == Recipe::nvfp4 ? "code times the scale of its block" : "decoded: code times scale_inv",
                      value(of_.want), value(of_.given)});
  }

  const QuantizedElement& of_;
  const QuantizeConfig config_;
  const diagnosis::QuantizedMatrix quantized_;
  const TensorView& x_;
  std::vector<TraceLine>& lines_;
  std::int64_t first_row_ = 0, rows_ = 0, columns_ = 0, row_ = 0, column_ = 0, scale_ = -1;
  bool rowwise_ = true, is_data_ = true;
  Range block_rows_, block_columns_;
};

}  // namespace

void trace_quantized(const QuantizedElement& of, std::vector<TraceLine>& lines) { QuantizedTrace(of, lines).run(); }

}  // namespace assay::conformance::tracing
