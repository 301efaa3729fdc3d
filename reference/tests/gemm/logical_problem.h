#pragma once
// A grouped GEMM as matrices along k, and how it is stored by each recipe. The addresses are written out here from spec
// fp8-block-2.1, mxfp8-2.1, nvfp4-2.1 and layouts-3.2, and share nothing with reference/layout or problem.cc.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "reference/gemm/grouped_gemm.h"

namespace assay::logical {

inline std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

inline std::int64_t up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }
inline std::int64_t blocks(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }

// One group of one operand: codes [extent, depth], scales [extent blocks, k blocks] as codes of their type.
struct Matrix {
  std::int64_t extent = 0, depth = 0;
  std::vector<std::uint32_t> codes;
  std::int64_t i_block = 1, k_block = 0;  // k_block 0: one scale a group, or for each i
  bool scale_per_i = false;
  std::vector<std::uint32_t> scales;
  float amax = 1;

  std::int64_t k_blocks() const { return k_block == 0 ? 1 : blocks(depth, k_block); }
  std::uint32_t& code(std::int64_t i, std::int64_t k) { return codes[static_cast<std::size_t>(i * depth + k)]; }
  std::uint32_t code(std::int64_t i, std::int64_t k) const { return codes[static_cast<std::size_t>(i * depth + k)]; }
  std::uint32_t scale(std::int64_t i, std::int64_t k) const {
    if (k_block == 0) return scales.at(scale_per_i ? static_cast<std::size_t>(i) : 0);
    return scales.at(static_cast<std::size_t>(i / i_block * k_blocks() + k / k_block));
  }
};

struct Operand {
  Format type = Format::bf16;
  bool columnwise = false;
  std::vector<Matrix> groups;
  std::vector<std::uint8_t> data, scales;  // as stored
  std::vector<float> amax;
};

struct Setting {
  GemmKind kind = GemmKind::bf16;
  GemmLayout layout = GemmLayout::TN;
  Format rows_type = Format::bf16, columns_type = Format::bf16;
  std::vector<std::int64_t> splits;
  std::int64_t N = 0, K = 0, spare_rows = 0;
  WeightBlock weight_block = WeightBlock::b128x128;
  ScaleLayout scale_layout = ScaleLayout::compact;
  bool other_storage = false;  // bf16, f16, and tensor on sm100: the storage that is not the usual one
  Format d_type = Format::f32;
  std::string architecture = "sm90";
  bool split_accumulator = false;
  bool row_and_column_scales = false;
};

inline void put(Format type, std::vector<std::uint8_t>& bytes, std::int64_t at, std::uint32_t code) {
  const std::int64_t bits = bits_of(type);
  const auto first = static_cast<std::size_t>(at * bits / 8);
  if (bytes.size() < first + 4) bytes.resize(first + 4, 0xEE);
  if (bits == 4) {
    bytes[first] = static_cast<std::uint8_t>(at % 2 == 0 ? (bytes[first] & 0xF0) | code : (bytes[first] & 0x0F) | code << 4);
  } else {
    std::memcpy(&bytes[first], &code, static_cast<std::size_t>(bits) / 8);
  }
}

// A problem over storages that live as long as this.
class Problem {
 public:
  explicit Problem(const Setting& setting) : setting_(setting) {
    const bool nt = setting.layout == GemmLayout::NT, nn = setting.layout == GemmLayout::NN;
    for (Operand* operand : {&rows, &columns}) {
      const bool weight = operand == &columns && !nt;
      const bool along_rows = nt || (weight && nn);
      operand->type = operand == &rows ? setting.rows_type : setting.columns_type;
      operand->columnwise = along_rows;
      if (setting.kind == GemmKind::bf16 || setting.kind == GemmKind::f16) operand->columnwise = false;
      if (setting.other_storage) operand->columnwise = !operand->columnwise;
      for (const std::int64_t m : setting.splits) {
        Matrix matrix;
        matrix.extent = operand == &rows ? (nt ? setting.N : m) : (nt || nn ? setting.K : setting.N);
        matrix.depth = nt ? m : nn ? setting.N : setting.K;
        matrix.codes.assign(static_cast<std::size_t>(matrix.extent * matrix.depth), 0);
        std::uint32_t one = 0;
        switch (setting.kind) {
          case GemmKind::bf16:
          case GemmKind::f16: break;
          case GemmKind::fp8_per_tensor: one = 0x3F800000, matrix.scale_per_i = setting.row_and_column_scales; break;
          case GemmKind::fp8_block:
            one = 0x3F800000, matrix.k_block = 128;
            matrix.i_block = weight && setting.weight_block == WeightBlock::b128x128 ? 128 : 1;
            break;
          case GemmKind::mxfp8: one = 127, matrix.k_block = 32; break;
          case GemmKind::nvfp4: one = 0x38, matrix.k_block = 16; break;
        }
        matrix.scales.assign(
            static_cast<std::size_t>(std::max<std::int64_t>(1, blocks(matrix.extent, matrix.i_block) * matrix.k_blocks())), one);
        if (matrix.scale_per_i) matrix.scales.resize(static_cast<std::size_t>(matrix.extent));
        operand->groups.push_back(matrix);
      }
    }
  }

  // Fills codes and scales by functions of (operand 0 or 1, group, i, k).
  template <class Code>
  void fill_codes(const Code& code) {
    for (int which = 0; which < 2; ++which) {
      Operand& operand = which == 0 ? rows : columns;
      for (std::size_t t = 0; t < operand.groups.size(); ++t) {
        Matrix& m = operand.groups[t];
        for (std::int64_t i = 0; i < m.extent; ++i) {
          for (std::int64_t k = 0; k < m.depth; ++k) m.code(i, k) = code(which, static_cast<std::int64_t>(t), i, k);
        }
      }
    }
  }
  template <class Scale>
  void fill_scales(const Scale& scale) {
    for (int which = 0; which < 2; ++which) {
      Operand& operand = which == 0 ? rows : columns;
      for (std::size_t t = 0; t < operand.groups.size(); ++t) {
        for (std::size_t s = 0; s < operand.groups[t].scales.size(); ++s) {
          operand.groups[t].scales[s] = scale(which, static_cast<std::int64_t>(t), static_cast<std::int64_t>(s));
        }
      }
    }
  }

  // Writes the storages and returns the problem that reads them.
  GroupedGemmProblem& stored() {
    problem = {};
    problem.kind = setting_.kind;
    problem.layout = setting_.layout;
    problem.splits = setting_.splits;
    problem.rows = setting_.spare_rows;
    for (const std::int64_t m : setting_.splits) problem.rows += m;
    problem.N = setting_.N;
    problem.K = setting_.K;
    problem.weight_block = setting_.weight_block;
    problem.scale_layout = setting_.scale_layout;
    problem.d_type = setting_.d_type;
    problem.architecture = setting_.architecture;
    problem.split_accumulator = setting_.split_accumulator;
    problem.row_and_column_scales = setting_.row_and_column_scales;
    const bool nt = setting_.layout == GemmLayout::NT, nn = setting_.layout == GemmLayout::NN;
    store(rows, nt);
    store(columns, nt || nn);
    (setting_.layout == GemmLayout::TN ? problem.x : problem.dy) = operand_of(rows);
    (nt ? problem.x : problem.w) = operand_of(columns);
    return problem;
  }

  Operand rows, columns;
  GroupedGemmProblem problem;
  const Setting& setting() const { return setting_; }

 private:
  GemmOperand operand_of(const Operand& operand) const {
    const bool scaled = setting_.kind != GemmKind::bf16 && setting_.kind != GemmKind::f16;
    return {operand.type, operand.data.data(), scaled ? operand.scales.data() : nullptr, operand.columnwise,
            setting_.kind == GemmKind::nvfp4 ? operand.amax.data() : nullptr};
  }

  void store(Operand& operand, bool along_rows) const {
    operand.data.assign(16, 0xEE);
    operand.scales.assign(16, 0xEE);
    operand.amax.clear();
    std::int64_t data_base = 0, scale_base = 0;
    for (const Matrix& m : operand.groups) {
      operand.amax.push_back(m.amax);
      // The matrix as named: `height` x `width`, k along its rows or its columns.
      const std::int64_t height = along_rows ? m.depth : m.extent, width = along_rows ? m.extent : m.depth;
      for (std::int64_t i = 0; i < m.extent; ++i) {
        for (std::int64_t k = 0; k < m.depth; ++k) {
          const std::int64_t row = along_rows ? k : i, column = along_rows ? i : k;
          const bool transposed = operand.columnwise && setting_.kind != GemmKind::mxfp8;
          put(operand.type, operand.data, data_base + (transposed ? column * height + row : row * width + column), m.code(i, k));
        }
      }
      data_base += height * width;
      scale_base += store_scales(operand, m, scale_base, height, width);
    }
  }

  // Returns the scales of the group, padding included.
  std::int64_t store_scales(Operand& operand, const Matrix& m, std::int64_t base, std::int64_t height, std::int64_t width) const {
    const bool swizzled = setting_.scale_layout == ScaleLayout::swizzled;
    std::int64_t count = 0;
    const auto each = [&](Format type, std::int64_t size, const auto& place) {
      count = size;
      for (std::int64_t i = 0; i < m.extent; i += m.i_block) {
        for (std::int64_t kb = 0; kb < m.k_blocks(); ++kb) {
          put(type, operand.scales, base + place(i / m.i_block, kb), m.scale(i, kb * m.k_block));
        }
      }
    };
    const auto swizzle = [](std::int64_t i, std::int64_t j, std::int64_t tiles) {
      return (i / 128 * tiles + j / 4) * 512 + i % 32 * 16 + i % 128 / 32 * 4 + j % 4;
    };
    switch (setting_.kind) {
      case GemmKind::bf16:
      case GemmKind::f16: return 0;
      case GemmKind::fp8_per_tensor:
        for (std::int64_t i = 0; i < (m.scale_per_i ? m.extent : 1); ++i)
          put(Format::f32, operand.scales, base + i, m.scale(i, 0));
        return m.scale_per_i ? m.extent : 1;
      case GemmKind::fp8_block:
        if (m.i_block == 1) {
          const std::int64_t pitch = up(m.extent, 4);
          each(Format::f32, m.k_blocks() * pitch, [&](auto i, auto kb) { return kb * pitch + i; });
        } else {
          const std::int64_t pitch = up(blocks(m.depth, 128), 4);
          each(Format::f32, blocks(m.extent, 128) * pitch, [&](auto ib, auto kb) { return ib * pitch + kb; });
        }
        return count;
      case GemmKind::mxfp8: {
        if (!operand.columnwise) {
          const std::int64_t pitch = up(blocks(width, 32), 4), tiles = blocks(width, 128);
          each(Format::e8m0, up(height, 128) * pitch,
               [&](auto i, auto kb) { return swizzled ? swizzle(i, kb, tiles) : i * pitch + kb; });
        } else {
          const std::int64_t pitch = up(width, 128), tiles = blocks(height, 128);
          each(Format::e8m0, up(blocks(height, 32), 4) * pitch,
               [&](auto i, auto kb) { return swizzled ? swizzle(i, kb, tiles) : kb * pitch + i; });
        }
        return count;
      }
      case GemmKind::nvfp4: {
        const std::int64_t pitch = up(blocks(m.depth, 16), 4), tiles = blocks(blocks(m.depth, 16), 4);
        each(Format::e4m3, up(m.extent, 128) * pitch,
             [&](auto i, auto kb) { return swizzled ? swizzle(i, kb, tiles) : i * pitch + kb; });
        return count;
      }
    }
    return 0;
  }

  Setting setting_;
};

}  // namespace assay::logical
