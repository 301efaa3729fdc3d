// Quantization with the amax or the scale of other blocks: FP8 recipes and MXFP8, by plain loops over blocks.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/diagnose/other_calls/quantize_rules.h"
#include "conformance/diagnose/other_calls/quantized_matrix.h"
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
  mutable float last_amax = 0;  // that a scale was made of
  float value(std::int64_t r, std::int64_t c) const { return scalar::load(x.type, x.data, (first_row + r) * columns + c); }
  Block block(std::int64_t i, std::int64_t j) const {
    i = std::clamp<std::int64_t>(i, 0, std::max<std::int64_t>((rows + height - 1) / height - 1, 0));
    j = std::clamp<std::int64_t>(j, 0, std::max<std::int64_t>((columns + width - 1) / width - 1, 0));
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
  // Of the elements that `takes` names, by row and column of the group.
  template <class Takes>
  float amax_where(const Block& of, Takes takes) const {
    float amax = 0;
    for (std::int64_t r = of.first_row; r < of.last_row; ++r) {
      for (std::int64_t c = of.first_column; c < of.last_column; ++c) {
        if (takes(r, c)) amax = scalar::accumulate_absmax(amax, value(r, c));
      }
    }
    return amax;
  }
  BlockScale scale(float amax) const {
    last_amax = amax;
    return diagnosis::right_scale(call, amax);
  }
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
                      const BlockScale stored = other(m, b);
                      return Scales{m.right(b.i, b.j), stored};
                    }});
  };
  for (const std::int64_t by : {2, 4, 8, 16, 32, 64, 128}) {
    of(fmt::format("of the block {} before down the rows", by),
       [by](const Matrix& m, const Block& b) { return m.right(b.i - by, b.j); });
    of(fmt::format("of the block {} after down the rows", by),
       [by](const Matrix& m, const Block& b) { return m.right(b.i + by, b.j); });
    of(fmt::format("of the first of every {} blocks down the rows", by),
       [by](const Matrix& m, const Block& b) { return m.right(b.i / by * by, b.j); });
  }
  of("of the rowwise block that its first row begins in", [](const Matrix& m, const Block& b) {
    const std::int64_t block = m.call.recipe == Recipe::mxfp8 ? 32 : 128, first = b.first_column / block * block;
    return m.scale(m.amax(b.first_row, b.first_row + 1, first, std::min(first + block, m.columns)));
  });
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

// Elements of a block that its amax passes over.
void add_passed_over(std::vector<Way>& ways) {
  const auto of = [&](const std::string& text, auto takes) {
    ways.push_back({"with amax " + text, [takes](const Matrix& m, const Block& b) {
                      return both(m.scale(m.amax_where(b, [&](std::int64_t r, std::int64_t c) { return takes(b, r, c); })));
                    }});
  };
  for (const std::int64_t n : {1, 2, 4, 8, 16, 32, 64}) {
    of(fmt::format("passing over the last {} of every 128 columns", n),
       [n](const Block&, std::int64_t, std::int64_t c) { return c % 128 < 128 - n; });
    of(fmt::format("passing over the first {} of every 128 columns", n),
       [n](const Block&, std::int64_t, std::int64_t c) { return c % 128 >= n; });
    of(fmt::format("of the first {} rows of every block", n),
       [n](const Block& b, std::int64_t r, std::int64_t) { return r < b.first_row + n; });
    of(fmt::format("passing over the first {} rows of every block", n),
       [n](const Block& b, std::int64_t r, std::int64_t) { return r >= b.first_row + n; });
    of(fmt::format("of the first {} columns of every block", n),
       [n](const Block& b, std::int64_t, std::int64_t c) { return c < b.first_column + n; });
    of(fmt::format("passing over the last {} columns of every block", n),
       [n](const Block& b, std::int64_t, std::int64_t c) { return c < b.last_column - n; });
  }
  ways.push_back({"with the amax of the last, short block reading on into the next row", [](const Matrix& m, const Block& b) {
                    const std::int64_t past = b.first_column + m.width - m.columns;
                    float amax = m.amax(b);
                    if (m.width > 1 && past > 0 && past < m.columns)
                      amax = std::max(amax, m.amax(b.first_row + 1, b.last_row + 1, 0, past));
                    return both(m.scale(amax));
                  }});
  ways.push_back({"with the amax of the last, short block reading on into the next rows", [](const Matrix& m, const Block& b) {
                    return both(m.scale(m.amax(b.first_row, b.first_row + m.height, b.first_column, b.last_column)));
                  }});
}

// Of a replay: an amax that is not reset is the largest of the calls so far, on the same groups.
void add_earlier(const Failure& failure, std::vector<Way>& ways) {
  const auto& earlier = failure.earlier();
  if (activation_of(failure.request()) != Activation::off) return;  // what lies there is gate and up
  const TensorView& own = failure.request().input("x");
  for (std::size_t back = 1; back <= earlier.size(); ++back) {
    std::vector<TensorView> before;
    for (std::size_t i = earlier.size() - back; i < earlier.size(); ++i) {
      const auto x = earlier[i]->in.find("x");
      if (x == earlier[i]->in.end() || x->second.shape != own.shape || x->second.type != own.type) return;
      before.push_back({own.type, own.shape, x->second.bytes.data(), static_cast<std::int64_t>(x->second.bytes.size())});
    }
    const std::string calls = back == 1 ? "call" : fmt::format("{} calls", back);
    ways.push_back(
        {"with amax of the " + calls + " before kept: it is not reset", [before](const Matrix& m, const Block& b) {
           float amax = m.amax(b);
           for (const TensorView& x : before)
             amax = std::max(amax, Matrix{m.call, x, m.group, m.first_row, m.rows, m.columns, m.height, m.width}.amax(b));
           return both(m.scale(amax));
         }});
  }
}

// Scales at the ends of the range.
void add_ends(std::vector<Way>& ways) {
  const auto of = [&](const std::string& text, auto scale) {
    ways.push_back({text, [scale](const Matrix& m, const Block& b) { return both(scale(m, m.amax(b))); }});
  };
  of("with a subnormal amax taken as 0",
     [](const Matrix& m, float amax) { return m.scale(amax < std::numeric_limits<float>::min() ? 0 : amax); });
  of("with a scale that overflows becoming 1", [](const Matrix& m, float amax) {
    const bool over = m.call.recipe != Recipe::mxfp8 && amax > 0 && std::isinf(max_finite(m.call.output) / amax);
    const BlockScale right = m.scale(amax);
    return over ? BlockScale{1, 0x3f800000u} : right;
  });
  of("with a scale that overflows staying infinite", [](const Matrix& m, float amax) {
    const bool over = m.call.recipe != Recipe::mxfp8 && amax > 0 && std::isinf(max_finite(m.call.output) / amax);
    const BlockScale right = m.scale(amax);
    return over ? BlockScale{std::numeric_limits<float>::infinity(), 0} : right;
  });
  of("with 1 for the least code of a scale, not 0", [](const Matrix& m, float amax) {
    BlockScale right = m.scale(amax);
    if (m.call.recipe == Recipe::mxfp8 && right.stored == 0) right = {std::ldexp(1.0f, 126), 1};
    return right;
  });
  of("with the largest finite value for an infinite amax",
     [](const Matrix& m, float amax) { return m.scale(std::isinf(amax) ? max_finite(m.x.type) : amax); });
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

enum class Written { codes, scale_inv, scale, amax };

struct OutputPlaces {
  bool rowwise, swizzled;
  Written written;
  ScaleShape scales;
  std::int64_t first_scale;
};

void write(const Matrix& m, const Way& way, const OutputPlaces& to, Tensor& tensor) {
  if (m.rows == 0 && is_per_tensor(m.call.recipe) && to.written != Written::codes) {  // a group without rows has a scale too
    const Scales scales = way.scales(m, m.block(0, 0));
    const float value = to.written == Written::amax    ? m.last_amax
                        : to.written == Written::scale ? scales.codes.multiplier
                                                       : std::bit_cast<float>(scales.stored.stored);
    tensor.as<float>()[m.group] = value;
  }
  for (std::int64_t i = 0; i * m.height < m.rows; ++i) {
    for (std::int64_t j = 0; j * m.width < m.columns; ++j) {
      const Block block = m.block(i, j);
      const Scales scales = way.scales(m, block);
      if (to.written == Written::scale || to.written == Written::amax) {
        tensor.as<float>()[m.group] = to.written == Written::amax ? m.last_amax : scales.codes.multiplier;
        continue;
      }
      if (to.written == Written::scale_inv) {
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
  const diagnosis::QuantizedMatrix matrix(request, request.input("x"));
  const TensorView& x = matrix.view();
  const std::int64_t columns = x.shape.at(1);
  const std::vector<std::int64_t> groups = group_rows(request, x.shape.at(0));
  const bool swizzled = scale_layout_of(request) == ScaleLayout::swizzled;
  for (auto& [name, tensor] : outputs) {
    const Written written = name.ends_with("wise_data") ? Written::codes
                            : name == "scale"           ? Written::scale
                            : name == "amax"            ? Written::amax
                                                        : Written::scale_inv;
    if (written == Written::scale_inv && !name.ends_with("wise_scale_inv")) continue;
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
      write(m, way, {rowwise, swizzled, written, scale_shape(call.recipe, direction, groups[t], columns), offsets[t]}, tensor);
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
  add_ends(ways);
  add_amaxes(ways);
  add_passed_over(ways);
  add_earlier(failure, ways);
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
