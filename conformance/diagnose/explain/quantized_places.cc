// Quantization with the amax or the scale of other blocks: FP8 recipes and MXFP8, by plain loops over blocks.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/diagnose/other_calls/quantize_rules.h"
#include "conformance/ops/words.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/element_scalar.h"

namespace assay::conformance::explaining {
namespace {

using diagnosis::BlockScale;
using diagnosis::QuantizeCall;

// What a block is and where: in rows and columns of its group.
struct Block {
  std::int64_t i = 0, j = 0;                                                    // its number
  std::int64_t first_row = 0, last_row = 0, first_column = 0, last_column = 0;  // last: one past
};

struct Matrix {
  const QuantizeCall& call;
  const TensorView& x;
  std::int64_t group = 0, first_row = 0, rows = 0, columns = 0, height = 1, width = 1;
  float value(std::int64_t r, std::int64_t c) const { return scalar::load(x.type, x.data, (first_row + r) * columns + c); }
  Block block(std::int64_t i, std::int64_t j) const {
    i = std::clamp<std::int64_t>(i, 0, (rows + height - 1) / height - 1);
    j = std::clamp<std::int64_t>(j, 0, (columns + width - 1) / width - 1);
    return {i, j, i * height, std::min((i + 1) * height, rows), j * width, std::min((j + 1) * width, columns)};
  }
  // Over any part of the tensor's rows that is there, relative to the group.
  float amax(std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) const {
    float amax = 0;
    const std::int64_t all = x.shape.at(0);
    for (std::int64_t r = std::max(r0, -first_row); r < std::min(r1, all - first_row); ++r) {
      for (std::int64_t c = std::max<std::int64_t>(c0, 0); c < std::min(c1, columns); ++c)
        amax = scalar::accumulate_absmax(amax, value(r, c));
    }
    return amax;
  }
  float amax(const Block& of) const { return amax(of.first_row, of.last_row, of.first_column, of.last_column); }
  BlockScale scale(float amax) const { return diagnosis::right_scale(call, amax); }
  BlockScale right(std::int64_t i, std::int64_t j) const { return scale(amax(block(i, j))); }
};

// The scale of a block: what codes are made with, and what is stored.
struct Scales {
  BlockScale codes, stored;
};
struct Way {
  std::string text;
  std::function<Scales(const Matrix& matrix, const Block& block)> scales;
};

Scales both(const BlockScale& scale) { return {scale, scale}; }

BlockScale with_multiplier(const Matrix& matrix, BlockScale scale, float multiplier) {
  scale.multiplier = multiplier;
  if (matrix.call.recipe != Recipe::mxfp8) scale.stored = std::bit_cast<std::uint32_t>(1 / multiplier);
  return scale;
}

float cut_to_power(float scale) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & 0xff800000u); }

void add_neighbours(std::vector<Way>& ways) {
  const auto of = [&](const std::string& which, auto other) {
    ways.push_back({"with scales " + which, [other](const Matrix& m, const Block& b) { return both(other(m, b)); }});
    ways.push_back({"with codes by scales " + which, [other](const Matrix& m, const Block& b) {
                      return Scales{other(m, b), m.right(b.i, b.j)};
                    }});
    ways.push_back({"with scale_inv " + which, [other](const Matrix& m, const Block& b) {
                      return Scales{m.right(b.i, b.j), other(m, b)};
                    }});
  };
  of("of the block before along the columns", [](const Matrix& m, const Block& b) { return m.right(b.i, b.j - 1); });
  of("of the block after along the columns", [](const Matrix& m, const Block& b) { return m.right(b.i, b.j + 1); });
  of("of the block before down the rows", [](const Matrix& m, const Block& b) { return m.right(b.i - 1, b.j); });
  of("of the block after down the rows", [](const Matrix& m, const Block& b) { return m.right(b.i + 1, b.j); });
  of("of the first block along the columns", [](const Matrix& m, const Block& b) { return m.right(b.i, 0); });
  of("of the first block down the rows", [](const Matrix& m, const Block& b) { return m.right(0, b.j); });
  of("of the whole group", [](const Matrix& m, const Block&) { return m.scale(m.amax(0, m.rows, 0, m.columns)); });
  of("of the whole tensor",
     [](const Matrix& m, const Block&) { return m.scale(m.amax(-m.first_row, m.x.shape.at(0) - m.first_row, 0, m.columns)); });
}

void add_amaxes(std::vector<Way>& ways) {
  ways.push_back({"with blocks counted from the first row of the tensor, across groups", [](const Matrix& m, const Block& b) {
                    const std::int64_t first = (m.first_row + b.first_row) / m.height * m.height - m.first_row;
                    return both(m.scale(m.amax(first, first + m.height, b.first_column, b.last_column)));
                  }});
  ways.push_back({"with the rows of the next group in the last block of each", [](const Matrix& m, const Block& b) {
                    return both(m.scale(m.amax(b.first_row, b.first_row + m.height, b.first_column, b.last_column)));
                  }});
  for (const std::int64_t width : {16, 32, 64, 256, 512}) {
    ways.push_back({fmt::format("with amax over blocks of {} columns", width), [width](const Matrix& m, const Block& b) {
                      const std::int64_t first = b.first_column / width * width;
                      return both(m.scale(m.amax(b.first_row, b.last_row, first, first + std::max(width, m.width))));
                    }});
    ways.push_back({fmt::format("with amax over blocks of {} rows", width), [width](const Matrix& m, const Block& b) {
                      const std::int64_t first = b.first_row / width * width;
                      return both(m.scale(
                          m.amax(first, std::min(first + std::max(width, m.height), m.rows), b.first_column, b.last_column)));
                    }});
  }
  ways.push_back({"with amax of the group before", [](const Matrix& m, const Block& b) {
                    return both(m.scale(m.amax(b.first_row - m.rows, b.last_row - m.rows, b.first_column, b.last_column)));
                  }});
}

void add_values(std::vector<Way>& ways) {
  const auto scaled = [&](const std::string& text, float (*change)(float)) {
    ways.push_back({"with " + text, [change](const Matrix& m, const Block& b) {
                      const BlockScale right = m.right(b.i, b.j);
                      return both(with_multiplier(m, right, change(right.multiplier)));
                    }});
    ways.push_back({"with codes by " + text, [change](const Matrix& m, const Block& b) {
                      const BlockScale right = m.right(b.i, b.j);
                      return Scales{with_multiplier(m, right, change(right.multiplier)), right};
                    }});
    ways.push_back({"with scale_inv of " + text, [change](const Matrix& m, const Block& b) {
                      const BlockScale right = m.right(b.i, b.j);
                      return Scales{right, with_multiplier(m, right, change(right.multiplier))};
                    }});
  };
  scaled("scales one unit in the last place larger",
         [](float s) { return std::nextafter(s, std::numeric_limits<float>::infinity()); });
  scaled("scales one unit in the last place smaller", [](float s) { return std::nextafter(s, 0.0f); });
  scaled("scales twice as large", [](float s) { return s * 2; });
  scaled("scales half as large", [](float s) { return s / 2; });
  scaled("scales cut to powers of two", cut_to_power);
  scaled("scales of 1", [](float) { return 1.0f; });
  ways.push_back({"with scales not cut to powers of two", [](const Matrix& m, const Block& b) {
                    QuantizeCall call = m.call;
                    call.pow2 = false;
                    return both(diagnosis::right_scale(call, m.amax(b)));
                  }});
  ways.push_back({"with codes by scales that are not cut to powers of two", [](const Matrix& m, const Block& b) {
                    QuantizeCall call = m.call;
                    call.pow2 = false;
                    return Scales{diagnosis::right_scale(call, m.amax(b)), m.right(b.i, b.j)};
                  }});
  ways.push_back(
      {"with eps added to amax", [](const Matrix& m, const Block& b) { return both(m.scale(m.amax(b) + m.call.eps)); }});
  ways.push_back(
      {"with NaN scales where amax is 0", [](const Matrix& m, const Block& b) {
         const float amax = m.amax(b);
         if (amax != 0) return both(m.scale(amax));
         return both(BlockScale{std::numeric_limits<float>::quiet_NaN(), m.call.recipe == Recipe::mxfp8 ? 0xffu : 0x7fc00000u});
       }});
}

struct OutputPlaces {
  bool rowwise, to_data, swizzled;
  ScaleShape scales;
  std::int64_t first_scale;
};

void write(const Matrix& m, const Way& way, const OutputPlaces& to, Tensor& tensor) {
  for (std::int64_t i = 0; i * m.height < m.rows; ++i) {
    for (std::int64_t j = 0; j * m.width < m.columns; ++j) {
      const Block block = m.block(i, j);
      const Scales scales = way.scales(m, block);
      if (!to.to_data) {
        bool turned = false;
        if (m.call.recipe == Recipe::block_1x128) turned = to.rowwise;
        if (m.call.recipe == Recipe::block_128x128) turned = !to.rowwise;
        std::int64_t at = to.first_scale + (turned ? j * to.scales.columns + i : i * to.scales.columns + j);
        if (to.swizzled)
          at = to.first_scale +
               swizzled_index(to.rowwise ? i : j, to.rowwise ? j : i, (to.rowwise ? to.scales.columns : to.scales.rows) / 4);
        if (m.call.recipe == Recipe::mxfp8) {
          tensor.as<std::uint8_t>()[at] = static_cast<std::uint8_t>(scales.stored.stored);
        } else {
          tensor.as<std::uint32_t>()[at] = scales.stored.stored;
        }
        continue;
      }
      for (std::int64_t r = block.first_row; r < block.last_row; ++r) {
        for (std::int64_t c = block.first_column; c < block.last_column; ++c) {
          const std::int64_t base = m.first_row * m.columns;
          const std::int64_t at = to.rowwise || m.call.recipe == Recipe::mxfp8 ? base + r * m.columns + c : base + c * m.rows + r;
          tensor.as<std::uint8_t>()[at] = scalar::encode_fp8(m.call.output, m.value(r, c) * scales.codes.multiplier);
        }
      }
    }
  }
}

bool write_outputs(const Failure& failure, const QuantizeCall& call, const Way& way, Outputs& outputs) {
  const Request& request = failure.request();
  const TensorView& x = request.input("x");
  const std::int64_t columns = x.shape.at(1);
  const std::vector<std::int64_t> groups = group_rows(request, x.shape.at(0));
  const bool swizzled = scale_layout_of(request) == ScaleLayout::swizzled;
  for (auto& [name, tensor] : outputs) {
    const bool to_data = name.ends_with("wise_data");
    if (!to_data && !name.ends_with("wise_scale_inv")) continue;
    const bool rowwise = name.starts_with("row");
    const Direction direction = rowwise || is_per_tensor(call.recipe) ? Direction::rowwise : Direction::columnwise;
    const auto offsets = scale_offsets(call.recipe, direction, groups, columns);
    std::int64_t first_row = 0;
    for (std::size_t t = 0; t < groups.size(); first_row += groups[t], ++t) {
      Matrix m{call, x, static_cast<std::int64_t>(t), first_row, groups[t], columns};
      switch (call.recipe) {
        case Recipe::block_1x128: (rowwise ? m.width : m.height) = 128; break;
        case Recipe::block_128x128: m.height = m.width = 128; break;
        case Recipe::mxfp8: (rowwise ? m.width : m.height) = 32; break;
        default: m.height = std::max<std::int64_t>(groups[t], 1), m.width = std::max<std::int64_t>(columns, 1);
      }
      write(m, way, {rowwise, to_data, swizzled, scale_shape(call.recipe, direction, groups[t], columns), offsets[t]}, tensor);
    }
  }
  return true;
}

}  // namespace

void propose_quantized(const Failure& failure, const Propose& propose) {
  if (failure.call().op != "quantize" || is_skipped(failure.request())) return;
  const QuantizeConfig config = quantize_config_of(failure.request());
  if (config.recipe == Recipe::nvfp4 || config.recipe == Recipe::tensor_delayed || config.two_dimensional) return;
  const auto call = std::make_shared<QuantizeCall>(QuantizeCall{config.recipe, config.output, failure.request().input("x").type,
                                                                config.force_pow_2_scales, config.amax_epsilon});
  std::vector<Way> ways;
  add_values(ways);
  add_amaxes(ways);
  add_neighbours(ways);
  for (Way& way : ways) {
    const std::string text = way.text;
    Candidate candidate{text, 13};
    candidate.all = [&failure, call, way = std::move(way)](Outputs& outputs) {
      return write_outputs(failure, *call, way, outputs);
    };
    propose(std::move(candidate));
  }
}

}  // namespace assay::conformance::explaining
